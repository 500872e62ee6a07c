"""Octet and the safetensors library of PyPI read each other's files alike.

OCTET_BUILD_DIR names the build folder (default: build).
"""

import json
import os
import struct
import subprocess
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy
import safetensors.torch
import torch
from safetensors import safe_open

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("OCTET_BUILD_DIR", ROOT / "build"))
OCTET = BUILD / "octet"
WRITE_SAMPLE = BUILD / "write_sample"

TORCH_DTYPES = {
    "F64": torch.float64,
    "F32": torch.float32,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "F8_E4M3": torch.float8_e4m3fn,
    "F8_E5M2": torch.float8_e5m2,
    "I64": torch.int64,
    "I32": torch.int32,
    "I16": torch.int16,
    "I8": torch.int8,
    "U64": torch.uint64,
    "U32": torch.uint32,
    "U16": torch.uint16,
    "U8": torch.uint8,
    "BOOL": torch.bool,
    "C64": torch.complex64,
}


def run_inspect(path):
    return subprocess.run(
        [OCTET, "inspect", "--json", "-", path], capture_output=True, text=True, timeout=60
    )


def inspect(path):
    done = run_inspect(path)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def torch_tensors():
    tensors = {}
    for name, dtype in TORCH_DTYPES.items():
        tensors[f"matrix.{name}"] = torch.zeros(3, 5).to(dtype)
        tensors[f"scalar.{name}"] = torch.zeros(()).to(dtype)
        tensors[f"empty.{name}"] = torch.zeros(0, 4).to(dtype)
        tensors[f"deep.{name}"] = torch.zeros(1, 2, 1, 2, 1, 2, 1, 3).to(dtype)
    tensors["name with spaces, ü and 日本"] = torch.zeros(2, dtype=torch.int8)
    return tensors


def assert_same(summary, path):
    """What Octet says about a file equals what the PyPI library says."""
    with safe_open(path, framework="pt") as file:
        expected = {}
        for name in file.keys():
            part = file.get_slice(name)
            expected[name] = (part.get_dtype(), list(part.get_shape()))
        metadata = file.metadata() or {}
    found = {t["name"]: (t["dtype"], t["shape"]) for t in summary["tensors"]}
    assert found == expected
    assert summary["metadata"] == metadata


def test_files_written_by_torch_are_read_alike(tmp_path):
    path = tmp_path / "torch.safetensors"
    tensors = torch_tensors()
    safetensors.torch.save_file(tensors, path, metadata={"format": "pt", "note": 'é\n"quoted"'})
    summary = inspect(path)
    assert_same(summary, path)
    for entry in summary["tensors"]:
        tensor = tensors[entry["name"]]
        assert entry["bytes"] == tensor.numel() * tensor.element_size()
        assert entry["file"] == path.name
    assert summary["path"] == str(path)
    assert summary["files"] == [path.name]
    assert summary["parameters"] == sum(t.numel() for t in tensors.values())
    assert summary["total_bytes"] == sum(t.numel() * t.element_size() for t in tensors.values())
    assert summary["dtypes"]["BF16"] == {"tensors": 4, "bytes": 2 * (15 + 1 + 0 + 24)}


def test_files_written_by_numpy_are_read_alike(tmp_path):
    path = tmp_path / "numpy.safetensors"
    dtypes = "float64 float32 float16 int64 int32 int16 int8 uint64 uint32 uint16 uint8 bool"
    arrays = {name: np.arange(6).reshape(2, 3).astype(name) for name in dtypes.split()}
    safetensors.numpy.save_file(arrays, path)
    assert_same(inspect(path), path)


def test_a_file_without_tensors_is_read_alike(tmp_path):
    path = tmp_path / "none.safetensors"
    safetensors.torch.save_file({}, path)
    summary = inspect(path)
    assert summary["tensors"] == []
    assert summary["total_bytes"] == 0


def test_a_sharded_checkpoint_is_read_as_one(tmp_path):
    shards = {"model-1.safetensors": ["a", "b"], "model-2.safetensors": ["c"]}
    for shard, names in shards.items():
        tensors = {name: torch.ones(4, dtype=torch.int8) for name in names}
        safetensors.torch.save_file(tensors, tmp_path / shard)
    weight_map = {name: shard for shard, names in shards.items() for name in names}
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"metadata": {"total_size": 12}, "weight_map": weight_map}))
    for path in (index, tmp_path):
        summary = inspect(path)
        assert {t["name"]: t["file"] for t in summary["tensors"]} == weight_map
        assert summary["total_bytes"] == 12


@pytest.mark.parametrize(
    "damage, word",
    [
        (lambda data: data[:-1], "truncated"),
        (lambda data: data + b"x", "trailing"),
        (lambda data: struct.pack("<Q", 2**63) + data[8:], "does not begin with a header length"),
        (lambda data: data.replace(b'"F32"', b'"F3Z"'), "F3Z"),
        (lambda data: b"", "is empty"),
    ],
)
def test_a_damaged_file_is_refused_with_one_sentence(tmp_path, damage, word):
    path = tmp_path / "damaged.safetensors"
    path.write_bytes(damage(safetensors.torch.save({"w": torch.ones(4)})))
    done = run_inspect(path)
    assert done.returncode == 1
    assert done.stdout == ""
    assert len(done.stderr.strip().splitlines()) == 1
    assert str(path) in done.stderr and word in done.stderr


def test_a_file_written_by_octet_is_read_by_the_library(tmp_path):
    path = tmp_path / "sample.safetensors"
    subprocess.run([WRITE_SAMPLE, path], check=True, timeout=60)
    tensors = safetensors.torch.load_file(path)
    assert len(tensors) == 17
    assert tensors["empty"].shape == (0, 3)
    assert tensors["scalar"].shape == ()
    for name, tensor in tensors.items():
        if name.startswith("odd."):
            assert tensor.dtype == TORCH_DTYPES[name.removeprefix("odd.")]
            assert tensor.shape == (5, 3)
        expected = np.arange(tensor.numel() * tensor.element_size()) * 7 + len(name.encode())
        raw = tensor.reshape(-1).view(torch.uint8).numpy()
        np.testing.assert_array_equal(raw, expected.astype(np.uint8), err_msg=name)
    with safe_open(path, framework="pt") as file:
        assert file.metadata() == {"format": "pt", "note": 'é\n"q"'}
    header = struct.unpack("<Q", path.read_bytes()[:8])[0]
    assert (8 + header) % 64 == 0
