"""Calls of comfy-kitchen's INT8 linears, for the tests of our backend there."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
kitchen = pytest.importorskip("comfy_kitchen", reason="comfy-kitchen is not installed")

import octet.comfy as backend  # noqa: E402 - needs both
from octet.comfy import kernels  # noqa: E402
from octet.torch.runtime import engine  # noqa: E402

_device = torch.device("cpu")


@pytest.fixture(params=["cpu", "cuda"])
def device(request):
    """Where weight_of() and rows_of() are during a test: on each device that there is."""
    global _device
    if request.param == "cuda" and not torch.cuda.is_available():
        pytest.skip("torch sees no GPU")
    where = torch.device(request.param, 0) if request.param == "cuda" else torch.device("cpu")
    reason = kernels.why_not(where)
    if reason is not None:
        pytest.skip(reason)
    before, _device = _device, where
    yield _device
    _device = before


def without_lowest_code() -> bool:
    """Whether kernels here cannot multiply activations of -128, and take -127 instead: AVX2's."""
    return _device.type == "cpu" and "avx2" in engine(-1).description


def weight_of(n: int, k: int, rotation: int = 0, seed: int = 0, spread: float = 0.1):
    """(codes int8 [n, k], scales float32 [n, 1]) of normal values, rotated for ConvRot."""
    rows = torch.randn(n, k, generator=torch.Generator().manual_seed(seed)) * spread
    with kitchen.use_backend("eager"):
        if rotation:
            made = torch.ops.comfy_kitchen.quantize_int8_convrot_weight(rows, rotation)
        else:
            made = kitchen.quantize_int8_rowwise(rows)
    return tuple(part.to(_device) for part in made)


def rows_of(*shape: int, dtype=torch.bfloat16, seed: int = 1):
    made = torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(dtype)
    return made.to(_device)


def assert_as_eager(call) -> None:
    """call() here and by comfy-kitchen's portable backend agree as its own tests ask of backends:
    but for one in a hundred elements, to one in a hundred."""
    with kitchen.use_backend("eager"):
        expected = call()
    with kitchen.use_backend("octet"):
        got = call()
    assert got.shape == expected.shape and got.dtype == expected.dtype
    assert got.isfinite().all()
    wrong = ~torch.isclose(got.float(), expected.float(), rtol=1e-2, atol=1e-2)
    assert wrong.float().mean().item() <= 0.01, (got, expected)


@pytest.fixture
def installed():
    """Our backend in comfy-kitchen's registry, which is as before after the test."""
    reason = kernels.why_not(_device)
    if reason is not None:
        pytest.skip(reason)
    status = backend.install()
    assert status, status.message
    backend.report(clear=True)
    yield backend
    backend.uninstall()
    kitchen.registry.enable("octet")
