"""`octet quantize` of networks that need another model for the rest, and the command that it ends
with."""

from __future__ import annotations

import shlex
import shutil

import pytest
from demo_folder import SIZE, demo_folder  # noqa: F401: a fixture
from PIL import Image
from running import octet  # noqa: F401: a fixture
from safetensors.torch import load_file, save_file

PARTS = ("transformer", "unconditional_transformer")
WEIGHTS = "diffusion_pytorch_model.safetensors"


@pytest.fixture
def split(octet, demo_folder, tmp_path):  # noqa: F811
    """A folder with the networks alone, and a complete model that has them in INT8."""
    networks, base = tmp_path / "networks", tmp_path / "a base"
    shutil.copytree(demo_folder, base)
    for part in PARTS:
        shutil.move(base / part, networks / part)
    done = octet("quantize", networks, tmp_path / "int8", "--device", "cpu")
    assert done.returncode == 0, done.stderr
    # Nothing that was named has a text encoder, so no command could be printed that works.
    assert "with a MODEL that has the rest: octet generate" in done.stdout
    for part in PARTS:
        shutil.move(tmp_path / "int8" / part, base / part)
    return networks, base


def test_a_base_in_int8_is_no_obstacle(octet, split, tmp_path):  # noqa: F811
    networks, base = split
    done = octet("quantize", networks, tmp_path / "again", "--base", base, "--device", "cpu",
                 "--verify")  # fmt: skip
    assert done.returncode == 0, done.stderr
    for part in PARTS:
        made = load_file(tmp_path / "again" / part / WEIGHTS)
        expected = load_file(base / part / WEIGHTS)
        assert made.keys() == expected.keys()
        assert all(made[name].equal(expected[name]) for name in made)
    # The command that it ends with runs as it is.
    line = done.stdout.splitlines()[-1]
    assert line.startswith("To make pictures with it: octet generate ")
    words = shlex.split(line.split(": octet ", 1)[1])
    assert str(base) in words
    out = tmp_path / "out.png"
    done = octet(*words, "--device", "cpu", "-o", out)
    assert done.returncode == 0, done.stderr
    assert Image.open(out).size == SIZE


def test_linears_that_only_the_base_has_in_int8_are_refused(octet, split, tmp_path):  # noqa: F811
    networks, base = split
    path = networks / PARTS[0] / WEIGHTS
    tensors = load_file(path)
    save_file({name: value for name, value in tensors.items() if "layers.0." not in name}, path)
    done = octet("quantize", networks, tmp_path / "again", "--base", base, "--device", "cpu")
    assert done.returncode != 0 and "is in INT8 already" in done.stderr
    assert str(base / PARTS[0]) in done.stderr
