"""Transformers in the dialects of other tools, written with those tools' own code.

Each writer takes the plain weight of a linear, F32 [out, in], and returns the tensors that stand
for it, by their suffix behind the module's name, and the weight that they stand for, dequantised by
the tool itself.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import reference
import tiny_ideogram4 as tiny
import torch
from safetensors.torch import load_file, save_file

Stored = tuple[dict[str, torch.Tensor], torch.Tensor]
Writer = Callable[[torch.Tensor], Stored]


def text_tensor(value: object) -> torch.Tensor:
    return torch.tensor(list(json.dumps(value).encode()), dtype=torch.uint8)


# --- ComfyUI, by comfy-kitchen's eager code ------------------------------------------------------


def _kitchen():
    from comfy_kitchen.backends.eager import quantization

    return quantization


def comfy_tensorwise(weight: torch.Tensor) -> Stored:
    codes, scale = _kitchen().quantize_int8_tensorwise(weight)
    conf = text_tensor({"format": "int8_tensorwise"})
    tensors = {"weight": codes, "weight_scale": scale, "comfy_quant": conf}
    return tensors, _kitchen().dequantize_int8_simple(codes, scale)


def comfy_rowwise(weight: torch.Tensor) -> Stored:
    codes, scale = _kitchen().quantize_int8_rowwise(weight)
    conf = text_tensor({"format": "int8_tensorwise"})
    tensors = {"weight": codes, "weight_scale": scale, "comfy_quant": conf}
    return tensors, _kitchen().dequantize_int8_simple(codes, scale)


def comfy_convrot(group: int) -> Writer:
    def write(weight: torch.Tensor) -> Stored:
        codes, scale = _kitchen().quantize_int8_convrot_weight(weight, group)
        conf = {"format": "int8_tensorwise", "convrot": True, "convrot_groupsize": group}
        tensors = {"weight": codes, "weight_scale": scale, "comfy_quant": text_tensor(conf)}
        return tensors, _kitchen().dequantize_int8_convrot_weight(codes, scale, group)

    return write


def comfy_fp8(weight: torch.Tensor) -> Stored:
    scale = weight.abs().amax() / torch.finfo(torch.float8_e4m3fn).max
    codes = _kitchen().quantize_per_tensor_fp8(weight, scale, torch.float8_e4m3fn)
    conf = text_tensor({"format": "float8_e4m3fn"})
    tensors = {"weight": codes, "weight_scale": scale, "comfy_quant": conf}
    return tensors, _kitchen().dequantize_per_tensor_fp8(codes, scale, torch.float32)


def comfy_nvfp4(weight: torch.Tensor) -> Stored:
    scale = weight.abs().amax() / (448.0 * 6.0)
    codes, blocks = _kitchen().quantize_nvfp4(weight, scale)
    conf = text_tensor({"format": "nvfp4"})
    tensors = {
        "weight": codes,
        "weight_scale": blocks,
        "weight_scale_2": scale,
        "comfy_quant": conf,
    }
    return tensors, _kitchen().dequantize_nvfp4(codes, scale, blocks, torch.float32)


# --- the others ----------------------------------------------------------------------------------


def bitsandbytes_4bit(kind: str, double: bool) -> Writer:
    def write(weight: torch.Tensor) -> Stored:
        from bitsandbytes import functional

        codes, state = functional.quantize_4bit(
            weight, blocksize=64, quant_type=kind, compress_statistics=double
        )
        tensors = {"weight": codes}
        for name, tensor in state.as_dict(packed=True).items():
            tensors[f"weight.{name}"] = tensor
        return tensors, functional.dequantize_4bit(codes, state)

    return write


def compressed_tensors(weight: torch.Tensor) -> Stored:
    from compressed_tensors.compressors import IntQuantizationCompressor
    from compressed_tensors.quantization import QuantizationArgs, QuantizationScheme
    from compressed_tensors.quantization.utils import calculate_qparams

    args = QuantizationArgs(num_bits=8, type="int", symmetric=True, strategy="channel")
    scheme = QuantizationScheme(targets=["Linear"], weights=args)
    low, high = weight.amin(dim=1, keepdim=True), weight.amax(dim=1, keepdim=True)
    scale, zero_point = calculate_qparams(low, high, args)
    plain = {"weight": weight, "weight_scale": scale, "weight_zero_point": zero_point}
    tensors = IntQuantizationCompressor.compress(plain, scheme)
    return tensors, IntQuantizationCompressor.decompress(tensors, scheme)["weight"]


def transformer_lab_smooth(count: int) -> torch.Tensor:
    return torch.linspace(0.5, 2.0, count)


def transformer_lab(weight: torch.Tensor) -> Stored:
    """As SmoothQuant is defined: columns are multiplied by what activations are divided by."""
    smooth = transformer_lab_smooth(weight.shape[1])
    smoothed = weight * smooth
    scale = smoothed.abs().amax(dim=1) / 127
    codes = torch.round(smoothed / scale[:, None]).to(torch.int8)
    tensors = {"wq": codes, "ws": scale, "smooth": smooth}
    return tensors, codes.float() * scale[:, None] / smooth


# --- what becomes of activations -----------------------------------------------------------------

Change = Callable[[torch.Tensor], torch.Tensor]


def unchanged(x: torch.Tensor) -> torch.Tensor:
    return x


def rotated(group: int) -> Change:
    """Its own inverse."""

    def rotate(x: torch.Tensor) -> torch.Tensor:
        from comfy_kitchen.tensor import int8_utils

        return int8_utils._rotate_activation(x, int8_utils._build_hadamard(group), group)

    return rotate


def divided(x: torch.Tensor) -> torch.Tensor:
    return x / transformer_lab_smooth(x.shape[-1])


def multiplied(x: torch.Tensor) -> torch.Tensor:
    return x * transformer_lab_smooth(x.shape[-1])


def quantize_inputs(network: torch.nn.Module, change: Change, undo: Change) -> torch.nn.Module:
    """W8A8 in real numbers: the inputs of the blocks' linears become what their codes stand for,
    and meet the dequantised weights, which are not touched."""

    def replace(_module, arguments):
        codes, scale = reference.quantize_rows(change(arguments[0]))
        return (undo(codes.float() * scale[..., None]),)

    for name, module in network.named_modules():
        if isinstance(module, torch.nn.Linear) and is_block_linear(name + "."):
            module.register_forward_pre_hook(replace)
    return network


# --- whole transformers --------------------------------------------------------------------------


def is_block_linear(name: str) -> bool:
    """Weights of attention and feed-forward parts, which the public files quantize."""
    return ".attention." in name or ".feed_forward." in name


def rewrite_transformer(
    folder: Path, writer: Writer, *, fused: bool, metadata: dict[str, str] | None = None
) -> dict[str, torch.Tensor]:
    """Rewrites folder/transformer; the state, in diffusers' names, that the file stands for."""
    path = next((folder / "transformer").glob("*.safetensors"))
    plain = load_file(path)
    layout = tiny.fuse_attention(plain) if fused else plain
    stored: dict[str, torch.Tensor] = {}
    meant: dict[str, torch.Tensor] = {}
    for name, tensor in layout.items():
        if is_block_linear(name) and tensor.dim() == 2:
            tensors, meant[name] = writer(tensor.float().contiguous())
            module = name.removesuffix("weight")
            stored |= {module + suffix: value.contiguous() for suffix, value in tensors.items()}
        else:
            stored[name] = meant[name] = tensor
    save_file(stored, path, metadata={"format": "pt"} | (metadata or {}))
    return unfuse(meant) if fused else meant


def unfuse(tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    split = {}
    for name, tensor in tensors.items():
        if name.endswith("attention.qkv.weight"):
            stem = name.removesuffix("qkv.weight")
            for part, rows in zip("qkv", tensor.chunk(3), strict=True):
                split[f"{stem}to_{part}.weight"] = rows.contiguous()
        else:
            split[name.replace("attention.o.", "attention.to_out.0.")] = tensor
    return split


def write_gguf(folder: Path, *, fused: bool) -> dict[str, torch.Tensor]:
    """folder/transformer as one GGUF file with Q8_0 blocks, by the gguf package; as above."""
    import gguf
    import numpy

    path = next((folder / "transformer").glob("*.safetensors"))
    plain = load_file(path)
    layout = tiny.fuse_attention(plain) if fused else plain
    kind = gguf.GGMLQuantizationType.Q8_0
    writer = gguf.GGUFWriter(folder / "transformer" / "model.gguf", "ideogram4")
    meant = {}
    for name, tensor in layout.items():
        values = tensor.float().numpy()
        if is_block_linear(name) and tensor.dim() == 2 and tensor.shape[1] % 32 == 0:
            blocks = gguf.quants.quantize(values, kind)
            writer.add_tensor(name, blocks, raw_dtype=kind)
            meant[name] = torch.from_numpy(numpy.array(gguf.quants.dequantize(blocks, kind)))
        elif tensor.dim() == 2:
            writer.add_tensor(name, values.astype(numpy.float16))
            meant[name] = tensor.half().float()
        else:
            writer.add_tensor(name, values)
            meant[name] = tensor
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    path.unlink()
    return unfuse(meant) if fused else meant
