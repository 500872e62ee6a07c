"""Linears whose rows a file stores in several ways: some in INT8 and some not, or with vectors of
their own that activations are divided by. They run as several products."""

from __future__ import annotations

import pytest
import tiny_ideogram4 as tiny
import torch
from generating import weights_of
from model_files import save
from safetensors.torch import load_file
from test_dialects import INT8_ERROR, SHAPE, make_folder, transformer_of
from test_parity import (
    GRIDS,
    VELOCITY_F32,
    dit_inputs,
    relative_error,
    run_model,  # noqa: F401 (a fixture)
    their_velocity,
)


def smoothed(smooth):
    """SmoothQuant with this vector: its tensors, and the weight that they stand for."""

    def write(weight):
        changed = weight * smooth
        scale = changed.abs().amax(dim=1) / 127
        codes = torch.round(changed / scale[:, None]).to(torch.int8)
        tensors = {"wq": codes, "ws": scale, "smooth": smooth}
        return tensors, codes.float() * scale[:, None] / smooth

    return write


def vector(seed, count=tiny.SHAPES[SHAPE].hidden):
    return 0.5 + torch.rand(count, generator=torch.Generator().manual_seed(seed))


def unsmoothed(weight):
    return smoothed(torch.ones(weight.shape[1]))(weight)


def kept(weight):
    rounded = weight.bfloat16()
    return {"weight": rounded}, rounded.float()


CASES = {
    "w1 INT8, w3 kept": {"feed_forward.w1": unsmoothed, "feed_forward.w3": kept},
    "w1 kept, w3 INT8": {"feed_forward.w1": kept, "feed_forward.w3": smoothed(vector(1))},
    "w1 and w3 smoothed apart": {
        "feed_forward.w1": smoothed(vector(1)),
        "feed_forward.w3": smoothed(vector(2)),
    },
    "q, k and v smoothed apart": {
        "attention.to_q": smoothed(vector(1)),
        "attention.to_k": smoothed(vector(2)),
        "attention.to_v": smoothed(vector(3)),
    },
    "one vector for all": {f"attention.to_{part}": smoothed(vector(1)) for part in "qkv"},
    "k kept between q and v": {
        "attention.to_q": unsmoothed,
        "attention.to_k": kept,
        "attention.to_v": unsmoothed,
    },
    "everything at once": {
        "attention.to_q": smoothed(vector(1)),
        "attention.to_k": kept,
        "attention.to_v": unsmoothed,
        "attention.to_out.0": smoothed(vector(4)),
        "feed_forward.w1": unsmoothed,
        "feed_forward.w3": smoothed(vector(5)),
        "feed_forward.w2": kept,
    },
}


@pytest.mark.parametrize("case", CASES)
def test_velocity_is_that_of_the_dequantised_weights(run_model, tmp_path, case):  # noqa: F811
    folder = make_folder(tmp_path / "model")
    path = weights_of(folder / "transformer")
    stored = load_file(path)
    meant = {name: tensor.clone() for name, tensor in stored.items()}
    for layer in range(tiny.SHAPES[SHAPE].layers):
        for part, writer in CASES[case].items():
            module = f"layers.{layer}.{part}"
            tensors, meant[f"{module}.weight"] = writer(stored.pop(f"{module}.weight"))
            stored |= {f"{module}.{suffix}": tensor for suffix, tensor in tensors.items()}
    save(path, stored)
    tensors = dit_inputs(SHAPE, GRIDS[0], 0.5, 7)
    expected = their_velocity(transformer_of(meant), tensors)
    got = run_model("dit", folder, tensors)["velocity"]
    assert relative_error(got, expected) < VELOCITY_F32
    rounded = run_model("dit", folder, tensors, linears="int8")["velocity"]
    assert 1e-4 < relative_error(rounded, expected) < INT8_ERROR


def test_exchanged_vectors_would_show(run_model, tmp_path):  # noqa: F811
    """What the tests above would see if the vectors of w1 and w3 were exchanged."""
    folder = make_folder(tmp_path / "model")
    path = weights_of(folder / "transformer")
    stored = load_file(path)
    meant = {name: tensor.clone() for name, tensor in stored.items()}
    module = "layers.0.feed_forward.w"
    for part, seed in ((1, 1), (3, 2)):
        tensors, meant[f"{module}{part}.weight"] = smoothed(vector(seed))(
            stored.pop(f"{module}{part}.weight")
        )
        stored |= {f"{module}{part}.{suffix}": tensor for suffix, tensor in tensors.items()}
    first, second = stored[f"{module}1.smooth"], stored[f"{module}3.smooth"]
    stored[f"{module}1.smooth"], stored[f"{module}3.smooth"] = second, first
    save(path, stored)
    tensors = dit_inputs(SHAPE, GRIDS[0], 0.5, 7)
    expected = their_velocity(transformer_of(meant), tensors)
    got = run_model("dit", folder, tensors, linears="int8")["velocity"]
    assert relative_error(got, expected) > INT8_ERROR
