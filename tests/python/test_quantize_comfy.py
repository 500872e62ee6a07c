"""Files of `octet quantize` in the ComfyUI dialect, read by comfy-kitchen's eager code and, where
nothing is in INT8, by diffusers. Tolerances are relative errors ||ours - theirs|| / ||theirs||."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("diffusers")
pytest.importorskip("transformers")

import dialect_files
import torch
from quantizing import (
    LINEARS,
    OUTLIER,
    PARTS,
    WEIGHTS,
    caption,  # noqa: F401: fixtures
    inputs_for,
    network_of,
    planted,  # noqa: F401
    quantize,  # noqa: F401
    statistics_file,  # noqa: F401
)
from safetensors.torch import load_file, save_file
from test_parity import (
    VELOCITY_F32,
    check_codes,
    relative_error,
    run_model,  # noqa: F401
    their_velocity,
)

class KitchenLinear(torch.nn.Module):
    """Comfy-kitchen's own INT8 linear in float32 on what the file holds."""

    def __init__(self, codes, scale, blob):
        super().__init__()
        self.codes, self.scale, self.blob = codes.contiguous(), scale.contiguous(), blob

    def forward(self, x):
        from comfy_kitchen.backends.eager import quantization

        return quantization.int8_linear(
            x,
            self.codes,
            self.scale,
            out_dtype=torch.float32,
            convrot=self.blob.get("convrot", False),
            convrot_groupsize=self.blob.get("convrot_groupsize", 256),
        )

    def weight(self):
        from comfy_kitchen.backends.eager import quantization

        if self.blob.get("convrot"):
            group = self.blob["convrot_groupsize"]
            return quantization.dequantize_int8_convrot_weight(self.codes, self.scale, group)
        return quantization.dequantize_int8_simple(self.codes, self.scale)


def kitchen_linears(file) -> tuple[dict[str, KitchenLinear], dict[str, torch.Tensor]]:
    """The INT8 linears of a file in diffusers' names, and its other tensors."""
    tensors, linears, rest = load_file(file), {}, {}
    for name, tensor in tensors.items():
        module = name.rpartition(".")[0]
        if f"{module}.comfy_quant" not in tensors:
            rest[name] = tensor
        elif name.endswith(".weight"):
            blob = json.loads(bytes(tensors[f"{module}.comfy_quant"].tolist()))
            scale = tensors[f"{module}.weight_scale"]
            if module.endswith("qkv"):
                for part, rows in zip("qkv", torch.arange(len(tensor)).chunk(3), strict=True):
                    split = module.removesuffix("qkv") + f"to_{part}"
                    linears[split] = KitchenLinear(tensor[rows], scale[rows], blob)
            else:
                split = module.replace("attention.o", "attention.to_out.0")
                linears[split] = KitchenLinear(tensor, scale, blob)
    return linears, dialect_files.unfuse(rest)


@pytest.mark.parametrize("recipe", ["rowwise", "smoothquant", "convrot", "convrot:16"])
def test_comfy_kitchen_computes_the_same(
    quantize, run_model, planted, statistics_file, tmp_path, recipe
):
    """Dequantised by comfy-kitchen, the weights give in float32 the velocity that Octet gives with
    what it reads; with its own INT8 linears, that of Octet in INT8."""
    pytest.importorskip("comfy_kitchen", reason="comfy_kitchen has no wheel for this machine")
    words = ["--recipe", recipe, "--statistics", statistics_file]
    quantize(planted, tmp_path / "out", *words)
    linears, state = kitchen_linears(tmp_path / "out" / "transformer" / WEIGHTS)
    assert len(linears) == len(LINEARS) + 2 * 2  # three of each qkv
    tensors = inputs_for("transformer")
    network = network_of(state | {f"{name}.weight": it.weight() for name, it in linears.items()})
    got = run_model("dit", tmp_path / "out", tensors)["velocity"]
    assert relative_error(got, their_velocity(network, tensors)) < VELOCITY_F32
    for name, linear in linears.items():
        network.set_submodule(name, linear)
    for seed in range(5):
        tensors = inputs_for("transformer", seed)
        got = run_model("dit", tmp_path / "out", tensors, linears="int8")["velocity"]
        check_codes(got, network, tensors)


# --- folding -------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_folding_leaves_the_function_as_it_is(
    quantize, planted, statistics_file, tmp_path, dtype
):
    """With every linear protected only the factors are folded. They are powers of two: products
    differ in their exponents alone, and only where sums are taken across channels (the mean square
    of a norm is before its weight) could anything round otherwise."""
    source = tmp_path / "source"
    for part in PARTS:
        (source / part).mkdir(parents=True)
        state = {k: v.to(dtype) for k, v in load_file(planted / part / WEIGHTS).items()}
        save_file(state, source / part / WEIGHTS)
        (source / part / "config.json").write_bytes((planted / part / "config.json").read_bytes())
    words = ["--recipe", "smoothquant", "--statistics", statistics_file, "--protect", "*"]
    for part in PARTS:
        flags = ["--unconditional"] if part != "transformer" else []
        out = tmp_path / f"{part}.safetensors"
        report = quantize(source / part, out, *words, "--verify", *flags)
        assert report["branches"][0]["int8"] == 0
        was = {k: v.float() for k, v in load_file(source / part / WEIGHTS).items()}
        now = {k: v.float() for k, v in dialect_files.unfuse(load_file(out)).items()}
        changed = {name for name in was if not torch.equal(was[name], now[name])}
        # Norms, v, w3 and the columns behind them; where in the tiny model factors are not all 1.
        for kind in ("attention_norm1.weight", "ffn_norm1.weight", "to_q.weight", "w1.weight"):
            assert any(name.endswith(kind) for name in changed), kind
        others = ("norm_q.weight", "norm2.weight", "input_proj.weight")
        assert not any(name.endswith(others) for name in changed)
        for name in changed:
            ratio = (now[name] / was[name])[was[name] != 0]
            assert torch.equal(ratio, torch.exp2(torch.log2(ratio).round())), name
        norm = "layers.0.ffn_norm1.weight"
        assert now[norm][OUTLIER] / was[norm][OUTLIER] <= 1 / 4  # the planted channel shrinks
        tensors = inputs_for(part)
        theirs = their_velocity(network_of(was), tensors)
        assert relative_error(their_velocity(network_of(now), tensors), theirs) < 1e-6
