"""What the tests of `octet quantize` share: a tiny model with planted outliers, and the program."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
import tiny_ideogram4 as tiny
from generating import edit_tensors
from safetensors.torch import load_file
from test_parity import GRIDS, dit_inputs

SHAPE = "wide"  # inputs of 128 and 192 channels: ConvRot's groups of 64
OUTLIER, TIMES = 5, 32.0
PARTS = ("transformer", "unconditional_transformer")
WEIGHTS = "diffusion_pytorch_model.safetensors"
LINEARS = [
    f"layers.{layer}.{name}"
    for layer in range(tiny.SHAPES[SHAPE].layers)
    for name in ("attention.qkv", "attention.o", *(f"feed_forward.w{i}" for i in (1, 3, 2)))
]

# Both weights and activations in 8 bits: some 1 % per linear, over two layers of them. A wrong
# scale, transform or order of rows gives tens of percent.
INT8_ERROR = 0.04


def plant_outliers(tensors) -> None:
    """A channel that the norms before attention and feed-forward make large, and the linears behind
    them small again: powers of two, so that the function is the same to the last bit."""
    for name, tensor in tensors.items():
        if name.endswith(("attention_norm1.weight", "ffn_norm1.weight")):
            tensor[OUTLIER] *= TIMES
        elif name.endswith(("to_q.weight", "to_k.weight", "to_v.weight", "w1.weight", "w3.weight")):
            tensor[:, OUTLIER] /= TIMES


def save_planted(folder: Path) -> Path:
    tiny.save_pipeline(folder, tiny.SHAPES[SHAPE])
    for part in PARTS:
        edit_tensors(folder / part, plant_outliers)
    return folder


def network_of(state):
    network = tiny.make_transformer(tiny.SHAPES[SHAPE], seed=3)
    network.load_state_dict(state)
    return network


def network_at(folder, part="transformer"):
    return network_of(load_file(folder / part / WEIGHTS))


def inputs_for(part, seed=11):
    return dit_inputs(SHAPE, GRIDS[0], 0.5, 7 if part == "transformer" else None, seed=seed)


@pytest.fixture(scope="session")
def planted(tmp_path_factory) -> Path:
    """Not to be changed."""
    return save_planted(tmp_path_factory.mktemp("planted"))


@pytest.fixture(scope="session")
def caption(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("captions") / "caption.json"
    path.write_text(tiny.CAPTION)
    return path


@pytest.fixture(scope="session")
def statistics_file(built_program, planted, caption, tmp_path_factory) -> Path:
    """Activations of the planted model. Not to be changed."""
    path = tmp_path_factory.mktemp("statistics") / "activations.safetensors"
    run_quantize(built_program("octet"), planted, *calibration(caption, path), "-q")
    return path


def calibration(caption: Path, path: Path) -> list:
    words = ["--captions", caption, "--statistics", path]
    return words + ["--calibration-size", "256x256", "--calibration-steps", "2"]


def run_quantize(program, *words, code=0, environment=None, **options):
    words = [str(word) for word in words]
    threads = [] if "--threads" in words else ["--threads", "1"]
    done = subprocess.run(
        [str(program), "quantize", "--device", "cpu", *threads, *words],
        capture_output=True,
        text=True,
        timeout=600,
        env={**os.environ, **(environment or {})},
        **options,
    )
    assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
    return done


@pytest.fixture
def quantize(built_program):
    """quantize(source, out, ...) is the JSON of a run that succeeds."""

    def run(*words):
        done = run_quantize(built_program("octet"), *words, "-q", "--json", "-")
        assert done.stderr == ""
        return json.loads(done.stdout)

    return run


@pytest.fixture
def refused(built_program, tmp_path):
    """refused(source, out, ...) is the one sentence of a run that fails and leaves nothing new in
    the test's folder."""

    def run(*words, code=1, **options):
        before = sorted(tmp_path.rglob("*"))
        done = run_quantize(built_program("octet"), *words, "-q", code=code, **options)
        assert done.stdout == ""
        lines = done.stderr.splitlines()
        assert len(lines) == 1 and lines[0].startswith("octet: "), done.stderr
        assert "unexpected failure" not in lines[0]
        assert sorted(tmp_path.rglob("*")) == before
        return lines[0]

    run.program = built_program("octet")
    return run
