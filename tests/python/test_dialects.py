"""Transformers that other tools quantized give the velocity that those tools' own dequantised
weights give in diffusers.

In floating point Octet must agree with diffusers in float32 as closely as with plain files. In INT8
what a file stores in INT8 runs as it is: torch with the same weights and with quantized inputs must
agree. Of other files the linears are quantized on loading, and their own rounding adds to it.
"""

from __future__ import annotations

import json

import dialect_files
import pytest
import reference
import tiny_ideogram4 as tiny
import torch
from test_parity import (
    GRIDS,
    VELOCITY_F32,
    check_codes,
    dit_inputs,
    relative_error,
    run_model,  # noqa: F401 (a fixture)
    their_velocity,
)

SHAPE = "wide"  # inputs of 128 and 192 channels: ConvRot's groups of 64 and 16, blocks of 32

# Both weights and activations in 8 bits: some 0.5 % per linear, over two layers of them. Measured
# on this model: 0.7 to 1.4 %. A wrong scale, transform or order of rows gives tens of percent.
INT8_ERROR = 0.04

WRITERS = {
    "comfy tensor-wise": ("comfy_kitchen", dialect_files.comfy_tensorwise),
    "comfy row-wise": ("comfy_kitchen", dialect_files.comfy_rowwise),
    "comfy ConvRot 64": ("comfy_kitchen", dialect_files.comfy_convrot(64)),
    "comfy ConvRot 16": ("comfy_kitchen", dialect_files.comfy_convrot(16)),
    "comfy FP8": ("comfy_kitchen", dialect_files.comfy_fp8),
    "comfy NVFP4": ("comfy_kitchen", dialect_files.comfy_nvfp4),
    "NF4": ("bitsandbytes", dialect_files.bitsandbytes_4bit("nf4", False)),
    "NF4 twice": ("bitsandbytes", dialect_files.bitsandbytes_4bit("nf4", True)),
    "FP4": ("bitsandbytes", dialect_files.bitsandbytes_4bit("fp4", False)),
    "compressed-tensors": ("compressed_tensors", dialect_files.compressed_tensors),
    "Transformer Lab": (None, dialect_files.transformer_lab),
}

# Of INT8 that runs as it is: what is done to activations before they are quantized, and undone.
UNCHANGED = (dialect_files.unchanged, dialect_files.unchanged)
CHANGES = {
    "comfy tensor-wise": UNCHANGED,
    "comfy row-wise": UNCHANGED,
    "comfy ConvRot 64": (dialect_files.rotated(64), dialect_files.rotated(64)),
    "comfy ConvRot 16": (dialect_files.rotated(16), dialect_files.rotated(16)),
    "compressed-tensors": UNCHANGED,
    "Transformer Lab": (dialect_files.divided, dialect_files.multiplied),
}


def writer_of(name):
    library, writer = WRITERS[name]
    if library is not None:
        pytest.importorskip(library, reason=f"{library} has no wheel for this machine")
    return writer


def transformer_of(state):
    network = tiny.make_transformer(tiny.SHAPES[SHAPE], seed=3)
    network.load_state_dict(state)
    return network


def make_folder(path):
    """The transformer alone, as a repository has it."""
    network = tiny.make_transformer(tiny.SHAPES[SHAPE], seed=3)
    network.save_pretrained(path / "transformer")
    return path


def check_velocity(run, folder, state):
    tensors = dit_inputs(SHAPE, GRIDS[0], 0.5, 7)
    meant = their_velocity(transformer_of(state), tensors)
    got = run("dit", folder, tensors)["velocity"]
    assert relative_error(got, meant) < VELOCITY_F32
    rounded = run("dit", folder, tensors, linears="int8")["velocity"]
    error = relative_error(rounded, meant)
    assert 1e-4 < error < INT8_ERROR  # activations were quantized, and well


@pytest.mark.parametrize("fused", [False, True], ids=["split", "fused"])
@pytest.mark.parametrize("name", WRITERS)
def test_files_of_other_tools(run_model, tmp_path, name, fused):  # noqa: F811
    writer = writer_of(name)
    folder = make_folder(tmp_path / "model")
    plain = tiny.make_transformer(tiny.SHAPES[SHAPE], seed=3).state_dict()
    state = dialect_files.rewrite_transformer(folder, writer, fused=fused)
    linear = "layers.0.feed_forward.w2.weight"
    assert not torch.equal(state[linear], plain[linear])  # something was quantized at all
    check_velocity(run_model, folder, state)


def check_int8(run, folder, network):
    """The velocity in INT8 is that of the network, for several inputs."""
    for seed in range(3):
        tensors = dit_inputs(SHAPE, GRIDS[0], 0.3, 7, seed=seed)
        got = run("dit", folder, tensors, linears="int8")["velocity"]
        check_codes(got, network, tensors)


@pytest.mark.parametrize("name", CHANGES)
def test_int8_runs_as_it_is(run_model, tmp_path, name):  # noqa: F811
    """Codes that were made anew would differ from the file's, for every input."""
    folder = make_folder(tmp_path / "model")
    state = dialect_files.rewrite_transformer(folder, writer_of(name), fused=True)
    network = dialect_files.quantize_inputs(transformer_of(state), *CHANGES[name])
    check_int8(run_model, folder, network)


@pytest.mark.parametrize("name", ["NF4", "NF4 twice", "FP4"])
def test_sources_are_quantized_as_by_torch(run_model, tmp_path, name):  # noqa: F811
    """Not of FP8 and NVFP4: many of their values are exactly half of their row's largest, which is
    63.5 codes, and either neighbour is right."""
    folder = make_folder(tmp_path / "model")
    state = dialect_files.rewrite_transformer(folder, writer_of(name), fused=True)
    network = reference.quantize_transformer(transformer_of(state))
    check_int8(run_model, folder, network)


@pytest.mark.parametrize("fused", [False, True], ids=["split", "fused"])
def test_gguf_file(run_model, tmp_path, fused):  # noqa: F811
    pytest.importorskip("gguf")
    folder = make_folder(tmp_path / "model")
    check_velocity(run_model, folder, dialect_files.write_gguf(folder, fused=fused))


def test_descriptions_in_the_metadata(run_model, tmp_path):  # noqa: F811
    """The layers' descriptions as one metadata entry, instead of a tensor beside each weight."""
    pytest.importorskip("comfy_kitchen")
    layers = {}
    for index in range(tiny.SHAPES[SHAPE].layers):
        for part in ("attention.qkv", "attention.o", *(f"feed_forward.w{i}" for i in (1, 2, 3))):
            layers[f"layers.{index}.{part}"] = {
                "format": "int8_tensorwise",
                "params": {"convrot": True, "convrot_groupsize": 16},
            }

    def write(weight):
        tensors, meant = dialect_files.comfy_convrot(16)(weight)
        del tensors["comfy_quant"]
        return tensors, meant

    folder = make_folder(tmp_path / "model")
    metadata = {"_quantization_metadata": json.dumps({"layers": layers})}
    state = dialect_files.rewrite_transformer(folder, write, fused=True, metadata=metadata)
    check_velocity(run_model, folder, state)


def test_protected_linears_stay(run_model, tmp_path):  # noqa: F811
    """In an INT8 file a plain linear is one that was protected: it is not quantized on loading."""
    folder = make_folder(tmp_path / "model")
    tensors = dit_inputs(SHAPE, GRIDS[0], 0.5, 7)
    calls = []

    def only_one(weight):
        calls.append(weight)
        if len(calls) == 1:
            return dialect_files.transformer_lab(weight)
        return {"weight": weight}, weight

    state = dialect_files.rewrite_transformer(folder, only_one, fused=True)
    meant = their_velocity(transformer_of(state), tensors)
    got = run_model("dit", folder, tensors, linears="int8")["velocity"]
    everything = dialect_files.rewrite_transformer(
        make_folder(tmp_path / "other"), dialect_files.transformer_lab, fused=True
    )
    all_int8 = run_model("dit", tmp_path / "other", tensors, linears="int8")["velocity"]
    error_of_all = relative_error(all_int8, their_velocity(transformer_of(everything), tensors))
    assert relative_error(got, meant) < error_of_all / 1.5
