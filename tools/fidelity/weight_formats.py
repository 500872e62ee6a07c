"""Networks whose large linears are stored in FP8 or NF4, to compare INT8 with; the dialects are
those of docs/checkpoints.md."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file, save_file

Writer = Callable[[torch.Tensor], dict[str, torch.Tensor]]

NF4_BLOCK = 64
# The quantiles of a normal distribution that bitsandbytes uses, zero among them.
NF4_VALUES = np.array(
    [
        -1.0,
        -0.6961928009986877,
        -0.5250730514526367,
        -0.39491748809814453,
        -0.28444138169288635,
        -0.18477343022823334,
        -0.09105003625154495,
        0.0,
        0.07958029955625534,
        0.16093020141124725,
        0.24611230194568634,
        0.33791524171829224,
        0.44070982933044434,
        0.5626170039176941,
        0.7229568362236023,
        1.0,
    ],
    np.float32,
)


def fp8_rowwise(weight: torch.Tensor) -> dict[str, torch.Tensor]:
    """E4M3 with a scale per row, as Ideogram's own files."""
    largest = torch.finfo(torch.float8_e4m3fn).max
    scale = weight.abs().amax(dim=1, keepdim=True).clamp(min=1e-12) / largest
    codes = (weight / scale).clamp(-largest, largest).to(torch.float8_e4m3fn)
    return {"weight": codes, "weight_scale": scale}


def nf4(weight: torch.Tensor) -> dict[str, torch.Tensor]:
    """As bitsandbytes without double quantization: blocks of the flattened weight."""
    values = weight.numpy().reshape(-1)
    blocks = np.pad(values, (0, -len(values) % NF4_BLOCK)).reshape(-1, NF4_BLOCK)
    largest = np.abs(blocks).max(axis=1)
    scaled = blocks / np.maximum(largest, 1e-30)[:, None]
    middles = (NF4_VALUES[1:] + NF4_VALUES[:-1]) / 2
    codes = np.searchsorted(middles, scaled).astype(np.uint8).reshape(-1)[: len(values)]
    codes = np.pad(codes, (0, len(codes) % 2))
    state = {
        "quant_type": "nf4",
        "blocksize": NF4_BLOCK,
        "dtype": "bfloat16",
        "shape": list(weight.shape),
    }
    text = np.frombuffer(json.dumps(state).encode(), np.uint8)
    return {
        "weight": torch.from_numpy(((codes[0::2] << 4) | codes[1::2]).reshape(-1, 1)),
        "weight.absmax": torch.from_numpy(largest),
        "weight.quant_map": torch.from_numpy(NF4_VALUES.copy()),
        "weight.quant_state.bitsandbytes__nf4": torch.from_numpy(text.copy()),
    }


WRITERS: dict[str, Writer] = {"fp8": fp8_rowwise, "nf4": nf4}


def is_large_linear(name: str) -> bool:
    return name.endswith(".weight") and (".attention.to_" in name or ".feed_forward." in name)


def rewrite_transformer(source: Path, target: Path, writer: Writer) -> None:
    """From one folder with a config.json and weights to another; the small linears stay."""
    stored = {}
    for path in sorted(source.glob("*.safetensors")):
        for name, tensor in load_file(path).items():
            if is_large_linear(name) and tensor.dim() == 2:
                module = name.removesuffix("weight")
                for suffix, part in writer(tensor.float().contiguous()).items():
                    stored[module + suffix] = part.contiguous()
            else:
                stored[name] = tensor
    target.mkdir(parents=True)
    save_file(stored, target / "diffusion_pytorch_model.safetensors", metadata={"format": "pt"})
    shutil.copy(source / "config.json", target)
