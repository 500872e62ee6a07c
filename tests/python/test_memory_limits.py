"""Commands under a limit of memory: a result or one sentence, never a signal."""

from __future__ import annotations

import json
import resource
import struct
import subprocess

import pytest

MEGABYTE = 1 << 20
LIMITS = [28, 36, 44, 52, 60, 72, 90, 128, 192]  # megabytes


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    """60,000 tensors in one file: values by the hundred thousand in its header."""
    header = {
        f"model.layers.{i}.weight": {"dtype": "U8", "shape": [1, 1], "data_offsets": [i, i + 1]}
        for i in range(60_000)
    }
    text = json.dumps(header).encode()
    path = tmp_path_factory.mktemp("many") / "many.safetensors"
    path.write_bytes(struct.pack("<Q", len(text)) + text + bytes(len(header)))
    return path


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    """An index of 150,000 tensors, whose file is missing."""
    path = tmp_path_factory.mktemp("index") / "model.safetensors.index.json"
    names = {f"model.layers.{i}.weight": "a.safetensors" for i in range(150_000)}
    path.write_text(json.dumps({"metadata": {}, "weight_map": names}))
    return path


def run_with(program, megabytes, *arguments):
    limit = megabytes * MEGABYTE
    return subprocess.run(
        [program, *map(str, arguments)],
        capture_output=True,
        timeout=120,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)),
    )


def check_limits(program, *arguments):
    refused = 0
    for megabytes in LIMITS:
        done = run_with(program, megabytes, *arguments)
        if done.returncode == 127:
            continue  # not even its libraries fit
        said = done.stderr.decode()
        assert done.returncode in (0, 1, 2), (megabytes, done.returncode, said)
        assert "terminate" not in said, (megabytes, said)
        if done.returncode == 1 and "memory" in said:
            refused += 1
            assert said.startswith("octet: ") and len(said.splitlines()) == 1, (megabytes, said)
    return refused


@pytest.mark.parametrize("form", [[], ["--json", "-"]])
def test_inspect_of_many_tensors(built_program, many, form):
    assert check_limits(built_program("octet"), "inspect", many, *form) >= 2


def test_inspect_of_a_long_index(built_program, index):
    assert check_limits(built_program("octet"), "inspect", index) >= 2
