"""Arguments of octet.torch's functions that cannot be computed with: one sentence for each."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

import octet  # noqa: E402
from octet.torch import Int8Linear, int8_linear, int8_linear_codes  # noqa: E402
from octet.torch import int8_linear_parts, int8_mm, quantize_rows  # noqa: E402

X, CODES = torch.randn(3, 64), torch.ones(8, 64, dtype=torch.int8)
SCALE, BIAS, SMOOTH, ONES = torch.ones(8), torch.ones(8), torch.ones(64), torch.ones(8)

# --- numbers, shapes and dtypes ---


@pytest.mark.parametrize("gradient", [False, True])
@pytest.mark.parametrize("place", range(4))
def test_sparse_tensors_are_refused(place, gradient):
    tensors = [X.clone().requires_grad_(gradient), CODES, SCALE, BIAS]
    tensors[place] = tensors[place].detach().to_sparse()
    with pytest.raises(octet.InvalidRequest, match=r"call to_dense\(\)"):
        int8_linear(*tensors)
    if not place:
        with pytest.raises(octet.InvalidRequest, match=r"call to_dense\(\)"):
            quantize_rows(tensors[0])


@pytest.mark.parametrize("shape", [(1, 8), (2, 4), (8, 1, 1)])
def test_scales_have_a_shape(shape):
    with pytest.raises(octet.InvalidRequest, match=r"expected one, \[8\] or \[8, 1\]"):
        int8_linear(X, CODES, SCALE.reshape(shape))


def test_a_scale_is_a_number_of_float32():
    for wrong in (10**400, 1e300, float("nan"), -float("inf")):
        with pytest.raises(octet.InvalidRequest, match="expected a finite number"):
            octet.int8_linear(X, CODES, wrong)


def test_dtypes_of_any_framework():
    numpy = pytest.importorskip("numpy")
    x, codes, scale = X.numpy(), CODES.numpy(), SCALE.numpy()
    for given in ("float16", torch.float16, numpy.float16, numpy.dtype("float16")):
        assert octet.int8_linear(X, CODES, SCALE, out_dtype=given).dtype == torch.float16
        assert octet.int8_linear(x, codes, scale, out_dtype=given).dtype == numpy.float16
    for wrong in ("int8", float, numpy.int8, torch.int8, object(), 5, []):
        for arrays in ((X, CODES, SCALE), (x, codes, scale)):
            with pytest.raises(octet.OctetTypeError, match="`out_dtype` is [a-z0-9[]"):
                octet.int8_linear(*arrays, out_dtype=wrong)
    with pytest.raises(octet.OctetTypeError, match="`out_dtype` is None"):
        int8_linear_codes(CODES, ONES, CODES, SCALE, out_dtype=None)
    for wrong in (torch.int8, torch.float64):
        with pytest.raises(octet.OctetTypeError, match="`dtype` is torch"):
            Int8Linear(64, 8, dtype=wrong)


@pytest.mark.parametrize("n, k", [(0, 8), (4, 0), (0, 0)])
def test_empty_weights_are_those_of_a_linear(n, k):
    codes, scale, bias = torch.zeros(n, k, dtype=torch.int8), torch.ones(n), torch.rand(n)
    x = torch.randn(2, 3, k)
    for added in (None, bias):
        expected = torch.nn.functional.linear(x, codes.float(), added)
        arrays = [a if a is None else a.numpy() for a in (x, codes, scale, added)]
        assert torch.equal(torch.from_numpy(octet.int8_linear(*arrays)), expected)
        assert torch.equal(int8_linear(x, codes, scale, added), expected)
        assert int8_linear(x.clone().requires_grad_(), codes, scale, added).shape == (2, 3, n)
        parts = int8_linear_parts(x, [codes] * 2, [scale] * 2, [] if added is None else [added] * 2)
        assert torch.equal(parts, torch.cat([expected] * 2, -1))
        y = int8_linear_codes(*quantize_rows(x), codes, scale, added, out_dtype=torch.float32)
        assert torch.equal(y, expected)


def test_sums_that_could_overflow():
    a = torch.ones(1, 132_105, dtype=torch.int8)
    for arrays in ((a, a.t()), (a.numpy(), a.t().numpy())):
        with pytest.raises(octet.InvalidRequest, match="`a` has 132105 columns; expected at most"):
            octet.int8_mm(*arrays)
        assert int(octet.int8_mm(arrays[0][:, 1:], arrays[1][1:])[0, 0]) == 132_104
    for arrays in ((a.float(), a, ONES[:1]), (a.float().numpy(), a.numpy(), ONES[:1].numpy())):
        with pytest.raises(octet.InvalidRequest, match="`weight` has 132105 columns"):
            octet.int8_linear(*arrays)


def test_an_array_that_numpy_cannot_read():
    class Exchanged:
        __dlpack__, __dlpack_device__ = X.bfloat16().__dlpack__, X.__dlpack_device__

    with pytest.raises(octet.OctetError, match="of type Exchanged cannot be read: .*"):
        octet.int8_linear(Exchanged(), CODES, SCALE)


def test_an_output_that_cannot_be_written():
    for out in (torch.zeros(8).expand(3, 8), torch.zeros(3, 8, requires_grad=True)):
        with pytest.raises(octet.InvalidRequest, match="`out` is .* cannot be written"):
            octet.int8_linear(X, CODES, SCALE, out=out)


def test_the_name_of_a_linears_argument():
    linear = Int8Linear(64, 8)
    assert torch.equal(linear(input=X), linear(X))


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
