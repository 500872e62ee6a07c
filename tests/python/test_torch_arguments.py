"""Arguments of octet.torch's functions that cannot be computed with: one sentence for each."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

import octet  # noqa: E402
from octet.torch import int8_linear, int8_linear_codes, int8_linear_parts  # noqa: E402
from octet.torch import int8_mm, quantize_rows  # noqa: E402

X, CODES = torch.randn(3, 64), torch.ones(8, 64, dtype=torch.int8)
SCALE, BIAS, SMOOTH, ONES = torch.ones(8), torch.ones(8), torch.ones(64), torch.ones(8)

# --- devices ---

_CALLS = {
    "linear": (int8_linear, (X, CODES, SCALE, BIAS)),
    "smooth": (lambda *a: int8_linear(*a[:-1], smooth=a[-1]), (X, CODES, SCALE, SMOOTH)),
    "parts": (lambda *a: int8_linear_parts(a[0], a[1:3], a[3:5], a[5:]),
              (X, CODES, CODES.clone(), SCALE, ONES, BIAS, BIAS.clone())),
    "rows": (lambda x, smooth: quantize_rows(x, 0, smooth), (X, SMOOTH)),
    "codes": (int8_linear_codes, (CODES, ONES, CODES.clone(), SCALE, BIAS)),
    "mm": (int8_mm, (CODES, CODES.t())),
}  # fmt: skip


@pytest.mark.parametrize("gradient", [False, True])
@pytest.mark.parametrize("name", _CALLS)
def test_one_tensor_without_numbers_is_refused(name, gradient):
    """torch asks for a shape as soon as one tensor is on meta, and returned whatever was in the
    memory of the result."""
    function, tensors = _CALLS[name]
    first = tensors[0]
    if gradient and first.is_floating_point():
        tensors = (first.clone().requires_grad_(), *tensors[1:])
    for place in range(len(tensors)):
        mixed = [t.to("meta") if i == place else t for i, t in enumerate(tensors)]
        with pytest.raises(octet.InvalidRequest, match="all tensors must be on one device|memory"):
            function(*mixed)
    made = function(*(t.to("meta") for t in tensors))
    assert all(y.is_meta for y in (made if isinstance(made, tuple) else (made,)))
