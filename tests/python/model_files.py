"""Transformers as single files, in the containers of other tools, for the tests of `octet generate`
and `octet inspect`."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from pathlib import Path

import dialect_files
import generating
import numpy as np
import pytest
import tiny_ideogram4 as tiny
import torch
from safetensors.torch import load_file, save_file

# The head size and rotary settings of the published model: all else can be told from tensors.
SHAPE = replace(
    generating.SHAPE,
    heads=1,
    head_dim=128,
    ffn=96,
    rope_theta=5_000_000,
    mrope_section=(24, 20, 20),
)
PARTS = {"conditional": "transformer", "unconditional": "unconditional_transformer"}


@pytest.fixture(scope="session")
def whole(tmp_path_factory) -> Path:
    """A model in bf16, not to be changed."""
    folder = tmp_path_factory.mktemp("whole")
    return tiny.save_pipeline(folder, SHAPE, dtype=torch.bfloat16)


def tensors_of(model: Path, branch: str = "conditional") -> dict[str, torch.Tensor]:
    return load_file(generating.weights_of(model / PARTS[branch]))


def prefixed(prefix: str, tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return {prefix + name: tensor for name, tensor in tensors.items()}


def save(path: Path, tensors: dict[str, torch.Tensor], metadata=None) -> Path:
    whole = {name: tensor.contiguous().clone() for name, tensor in tensors.items()}
    save_file(whole, path, metadata=metadata)
    return path


def modules_of(tensors) -> list[str]:
    """Linears of attention and feed-forward parts."""
    return [
        name.removesuffix(".weight")
        for name, tensor in tensors.items()
        if dialect_files.is_block_linear(name) and tensor.dim() == 2
    ]


def quantized(tensors, writer, modules=None) -> dict[str, torch.Tensor]:
    """Some linears (all of the blocks) as a dialect stores them, the rest as it is."""
    stored = dict(tensors)
    for module in modules_of(tensors) if modules is None else modules:
        made, _meant = writer(stored.pop(f"{module}.weight").float())
        stored |= {f"{module}.{suffix}": tensor for suffix, tensor in made.items()}
    return stored


def metadata_config(model: Path) -> dict[str, str]:
    """What the quantizer writes into its files."""
    return {"octet.config": (model / "transformer" / "config.json").read_text()}


def pixels(image) -> np.ndarray:
    return np.asarray(image).astype(int)


def same(first, second) -> bool:
    return np.array_equal(pixels(first), pixels(second))


def apart(first, second) -> float:
    return float(np.abs(pixels(first) - pixels(second)).mean())


def write_gguf(path: Path, tensors: dict[str, torch.Tensor]) -> Path:
    """As Transformer Lab does: linears in Q8_0 where rows are whole blocks, the rest in F16."""
    import gguf

    kind = gguf.GGMLQuantizationType.Q8_0
    writer = gguf.GGUFWriter(path, "ideogram4")
    for name, tensor in tensors.items():
        values = tensor.float().numpy()
        if dialect_files.is_block_linear(name) and values.ndim == 2 and values.shape[1] % 32 == 0:
            writer.add_tensor(name, gguf.quants.quantize(values, kind), raw_dtype=kind)
        else:
            writer.add_tensor(name, values.astype(np.float16))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def inspect_json(program, *words) -> dict:
    done = subprocess.run(
        [program, "inspect", *map(str, words), "--json", "-"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
