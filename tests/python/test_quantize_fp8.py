"""Small linears of FP8 sources in the files of `octet quantize`: the same codes and scale where
others can read them beside INT8, else F32 of the same values."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("diffusers")
pytest.importorskip("transformers")

import tiny_ideogram4 as tiny
import torch
from dialect_files import is_block_linear, text_tensor
from quantizing import (
    SHAPE,
    WEIGHTS,
    inputs_for,
    planted,  # noqa: F401: fixtures
    quantize,  # noqa: F401
    run_quantize,
)
from safetensors.torch import load_file, save_file
from test_parity import run_model  # noqa: F401

MARKER = {"format": "float8_e4m3fn"}
# How a source stores them, and whether they stay FP8.
FORMS = {"comfyui": True, "one scale": True, "older": True, "rows": False, "inputs": False}


def is_small(name: str, tensor: torch.Tensor) -> bool:
    is_linear = name.endswith(".weight") and not name.startswith("embed_")
    return is_linear and tensor.dim() == 2 and not is_block_linear(name)


def to_fp8(weight: torch.Tensor, form: str) -> dict[str, torch.Tensor]:
    """The tensors of a linear by their suffixes."""
    largest = weight.abs().amax(dim=1) if form == "rows" else weight.abs().amax()
    scale = (largest / 448).float()
    made = {"weight": (weight / scale.reshape(-1, 1)).to(torch.float8_e4m3fn)}
    made["scale_weight" if form == "older" else "weight_scale"] = scale
    if form in ("comfyui", "inputs"):
        made["comfy_quant"] = text_tensor(MARKER)
    if form == "inputs":
        made["input_scale"] = torch.tensor(0.5)
    return made


@pytest.fixture
def source(planted, tmp_path):  # noqa: F811
    """source(form): a folder with small linears in FP8, and these."""

    def make(form):
        folder, small, tensors = tmp_path / "source", {}, {}
        folder.mkdir()
        for name, tensor in load_file(planted / "transformer" / WEIGHTS).items():
            if is_small(name, tensor):
                module = name.removesuffix(".weight")
                small[module] = to_fp8(tensor, form)
                tensors |= {f"{module}.{key}": value for key, value in small[module].items()}
            else:
                tensors[name] = tensor
        if form == "older":
            tensors["scaled_fp8"] = torch.zeros(0, dtype=torch.float8_e4m3fn)
        save_file(tensors, folder / WEIGHTS)
        config = planted / "transformer" / "config.json"
        (folder / "config.json").write_bytes(config.read_bytes())
        return folder, small

    return make


def values_of(stored: dict[str, torch.Tensor]) -> torch.Tensor:
    scale = stored.get("weight_scale", stored.get("scale_weight"))
    return stored["weight"].float() * scale.reshape(-1, 1)


@pytest.mark.parametrize("form", FORMS)
def test_small_linears_stay(quantize, run_model, source, tmp_path, form):  # noqa: F811
    folder, small = source(form)
    out = tmp_path / "out" / "transformer"
    quantize(folder, tmp_path / "out", "--verify")
    made = load_file(out / WEIGHTS)
    assert len(small) > 4
    for name, stored in small.items():
        weight = made[f"{name}.weight"]
        if not FORMS[form]:
            assert weight.dtype == torch.float32 and weight.equal(values_of(stored)), name
            assert f"{name}.comfy_quant" not in made
            continue
        assert weight.dtype == torch.float8_e4m3fn, name
        assert weight.view(torch.uint8).equal(stored["weight"].view(torch.uint8))
        scale = made[f"{name}.weight_scale"]
        assert scale.shape == () and scale == values_of(stored).abs().max() / 448
        marker = json.loads(bytes(made[f"{name}.comfy_quant"].tolist()))
        # Where the source says nothing of FP8 inputs, there are none.
        said = {} if form == "comfyui" else {"full_precision_matrix_mult": True}
        assert marker == MARKER | said
    # Octet reads the very values, whichever way they are written.
    tensors = inputs_for("transformer")
    got = run_model("dit", tmp_path / "out", tensors)["velocity"]
    for name, stored in small.items():
        made[f"{name}.weight"] = values_of(stored)
        made = {key: value for key, value in made.items()
                if key not in (f"{name}.weight_scale", f"{name}.comfy_quant")}  # fmt: skip
    save_file(made, out / WEIGHTS)
    assert got.equal(run_model("dit", tmp_path / "out", tensors)["velocity"])


def test_others_read_them(quantize, source, tmp_path):  # noqa: F811
    """comfy-kitchen, by the layout that ComfyUI takes for this marker, and load_int8()."""
    layout = pytest.importorskip("comfy_kitchen.tensor").TensorCoreFP8Layout
    load_int8 = pytest.importorskip("octet.diffusers").load_int8
    folder, small = source("one scale")
    quantize(folder, tmp_path / "out.safetensors")
    made = load_file(tmp_path / "out.safetensors")
    network = tiny.make_transformer(tiny.SHAPES[SHAPE], seed=5)
    load_int8(network, tmp_path / "out.safetensors")
    for name, stored in small.items():
        params = layout.Params(
            scale=made[f"{name}.weight_scale"], orig_dtype=torch.float32,
            orig_shape=tuple(stored["weight"].shape))  # fmt: skip
        assert layout.dequantize(made[f"{name}.weight"], params).equal(values_of(stored)), name
        assert network.get_submodule(name).weight.equal(values_of(stored)), name


def test_transformer_lab_has_floating_point_alone(quantize, source, tmp_path):  # noqa: F811
    folder, small = source("comfyui")
    words = ["--dialect", "transformerlab", "--recipe", "rowwise", "--verify"]
    quantize(folder, tmp_path / "out.safetensors", *words)
    made = load_file(tmp_path / "out.safetensors")
    for name, stored in small.items():
        assert made[f"conditional.{name}.weight"].equal(values_of(stored)), name


def test_a_damaged_code_is_refused(built_program, source, tmp_path):
    folder, small = source("comfyui")
    tensors = load_file(folder / WEIGHTS)
    name = next(iter(small))
    tensors[f"{name}.weight"].view(torch.uint8)[1, 2] = 0x7F
    save_file(tensors, folder / WEIGHTS)
    words = [folder, tmp_path / "out.safetensors", "-q"]
    message = run_quantize(built_program("octet"), *words, code=1).stderr
    assert f"{name}.weight" in message and "row 1" in message and message.count("\n") == 1
