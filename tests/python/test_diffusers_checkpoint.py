"""_octet.Checkpoint: weights of a file into the caller's memory, and what it refuses. A second."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")
from safetensors.torch import save_file

from octet import OctetError
from octet._octet import Checkpoint

ROWS, K = 6, 8


@pytest.fixture
def stored():
    generator = torch.Generator().manual_seed(0)
    return {
        "a.wq": torch.randint(-127, 128, (ROWS, K), generator=generator).to(torch.int8),
        "a.ws": torch.rand(ROWS, generator=generator),
        "a.smooth": 0.5 + torch.rand(K, generator=generator),
        "b.weight": torch.randn(ROWS, K, generator=generator).bfloat16(),
        "b.bias": torch.randn(ROWS, generator=generator),
    }


@pytest.fixture
def checkpoint(stored, tmp_path):
    save_file(stored, tmp_path / "m.safetensors", metadata={"smooth": "multiply", "key": "value"})
    return Checkpoint(str(tmp_path / "m.safetensors"))


def test_what_is_in_it(checkpoint):
    assert checkpoint.path.endswith("m.safetensors")
    assert checkpoint.metadata == {"smooth": "multiply", "key": "value"}
    assert checkpoint.tensors["a.wq"] == ("I8", (ROWS, K))
    assert checkpoint.tensors["b.weight"] == ("BF16", (ROWS, K))
    names = [checkpoint.dialect(module) for module in ("a", "b", "c")]
    assert names == ["transformerlab", "plain", None]


def test_int8(checkpoint, stored):
    weight = checkpoint.weight("a", ROWS, K)
    assert (weight.rows, weight.k, weight.is_int8, weight.has_smooth) == (ROWS, K, True, True)
    assert weight.format == "INT8 row-wise, SmoothQuant"
    assert sorted(weight.tensors) == ["a.smooth", "a.wq", "a.ws"]
    codes, scales, smooth = torch.empty(4, K, dtype=torch.int8), torch.empty(4), torch.empty(K)
    weight.read_codes(codes, 2)
    weight.read_scales(scales, first=2)
    weight.read_smooth(smooth)
    assert torch.equal(codes, stored["a.wq"][2:]) and torch.equal(scales, stored["a.ws"][2:])
    assert torch.equal(smooth, stored["a.smooth"])
    whole = torch.empty(ROWS, K)
    weight.read(whole)
    meant = stored["a.wq"] * stored["a.ws"][:, None] * stored["a.smooth"]
    torch.testing.assert_close(whole, meant)


def test_floating_point_and_other_arrays(checkpoint, stored):
    weight = checkpoint.weight("b", ROWS, K)
    narrow, wide = torch.empty(ROWS, K, dtype=torch.bfloat16), np.empty((ROWS, K), np.float32)
    weight.read(narrow)
    weight.read(wide)
    assert torch.equal(narrow, stored["b.weight"])
    assert np.array_equal(wide, stored["b.weight"].float().numpy())
    bias = torch.empty(ROWS)
    checkpoint.read_vector("b.bias", bias)
    assert torch.equal(bias, stored["b.bias"])


def test_the_file_stays_open_for_its_weights(checkpoint, stored):
    weight = Checkpoint(checkpoint.path).weight("b", ROWS, K)
    narrow = torch.empty(ROWS, K, dtype=torch.bfloat16)
    weight.read(narrow)
    assert torch.equal(narrow, stored["b.weight"])


def test_refusals(checkpoint, tmp_path):
    weight = checkpoint.weight("a", ROWS, K)
    for call, into in [
        (weight.read_codes, torch.empty(ROWS, K)),
        (weight.read_codes, torch.empty(ROWS + 1, K, dtype=torch.int8)),
        (weight.read_codes, torch.empty(ROWS, K + 1, dtype=torch.int8)),
        (weight.read_codes, torch.empty(ROWS * K, dtype=torch.int8)),
        (weight.read, torch.empty(ROWS, K, dtype=torch.float16)),
        (weight.read_scales, torch.empty(ROWS + 1)),
        (weight.read_scales, torch.empty(ROWS, 1)),
        (weight.read_smooth, torch.empty(K + 1)),
        (checkpoint.weight("b", ROWS, K).read_smooth, torch.empty(0)),
        (checkpoint.weight("b", ROWS, K).read_codes, torch.empty(ROWS, K, dtype=torch.int8)),
    ]:
        with pytest.raises(OctetError):
            call(into)
    codes = torch.empty(2, K, dtype=torch.int8)
    for first in (-1, ROWS - 1, 2**62):
        with pytest.raises(OctetError, match=r"at most 6 x 8"):
            weight.read_codes(codes, first)
    # Neither copies are filled in place of what was given, nor memory that is not to be written.
    frozen = np.zeros((ROWS, K), np.int8)
    frozen.flags.writeable = False
    for into in (torch.empty(K, ROWS, dtype=torch.int8).t(), frozen, [[0] * K] * ROWS, None):
        with pytest.raises(TypeError):
            weight.read_codes(into)
    with pytest.raises(OctetError, match=r'"a.wq" is \[6, 8\], expected \[7, 8\]'):
        checkpoint.weight("a", ROWS + 1, K)
    with pytest.raises(OctetError, match=r'"c.weight" is missing'):
        checkpoint.weight("c", ROWS, K)
    with pytest.raises(OctetError, match="cannot be opened"):
        Checkpoint(str(tmp_path / "nowhere"))
