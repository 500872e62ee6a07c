"""torch.ops.octet on the CPU: the bits of the definition, in every way that torch calls an op.

Twenty seconds, most of it torch.compile's.
"""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

torch = pytest.importorskip("torch")

import int8_definition as definition  # noqa: E402
import octet  # noqa: E402
from int8_definition import random_codes  # noqa: E402
from octet.torch import (  # noqa: E402
    int8_linear,
    int8_linear_codes,
    int8_linear_parts,
    int8_mm,
    quantize_rows,
)
from octet.torch.rotation import rotate  # noqa: E402

DTYPES = [torch.float32, torch.bfloat16, torch.float16]
SHAPES = [(1, 32, 16), (7, 48, 64), (33, 70, 100), (64, 96, 256)]  # m, n, k; with odd N and K


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)


def a_weight(n: int, k: int, dtype=torch.float32):
    """Codes with -128 among them, scales and a bias."""
    return random_codes(n, k, -128), torch.rand(n, 1) * 0.01, torch.randn(n).to(dtype)


# --- the numbers ---


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("m, n, k", SHAPES)
def test_a_linear_has_the_bits_of_its_definition(m, n, k, dtype):
    x, (weight, scale, bias) = torch.randn(m, k).to(dtype), a_weight(n, k, dtype)
    assert torch.equal(int8_linear(x, weight, scale), definition.linear(x, weight, scale))
    with_bias = int8_linear(x, weight, scale.reshape(-1), bias)
    assert torch.equal(with_bias, definition.linear(x, weight, scale, bias))
    one_scale = int8_linear(x, weight, torch.tensor(0.02))
    assert torch.equal(one_scale, definition.linear(x, weight, torch.tensor(0.02)))
    smooth = torch.rand(k) + 0.5
    smoothed = int8_linear(x, weight, scale, smooth=smooth)
    assert torch.equal(smoothed, definition.linear(x, weight, scale, smooth=smooth))


@pytest.mark.parametrize("group", [4, 16, 64, 256, 1024])
def test_a_rotation_is_the_regular_hadamard_one(group):
    x = torch.randn(5, 1024)
    exact = definition.rotated(x, group)
    assert torch.allclose(rotate(x, group).double(), exact, rtol=0, atol=1e-5)
    assert torch.allclose(rotate(rotate(x, group), group), x, rtol=0, atol=1e-5)
    codes, scales = quantize_rows(x, group)
    expected_codes, expected_scales = definition.quantized(rotate(x, group))
    assert torch.equal(codes, expected_codes) and torch.equal(scales, expected_scales)
    weight, scale, _ = a_weight(32, 1024)
    y = int8_linear(x, weight, scale, rotation_group=group)
    assert torch.equal(y, definition.linear(rotate(x, group), weight, scale))


def test_rows_that_are_zero_or_no_numbers():
    x = torch.randn(4, 32)
    x[1], x[2, 5], x[3, 0] = 0, torch.nan, torch.inf
    codes, scales = quantize_rows(x)
    expected_codes, expected_scales = definition.quantized(x)
    assert torch.equal(codes, expected_codes)
    assert torch.equal(scales.nan_to_num(-1), expected_scales.nan_to_num(-1))
    weight, scale, _ = a_weight(16, 32)
    y = int8_linear(x, weight, scale)
    assert torch.isfinite(y[0]).all() and (y[1] == 0).all() and torch.isnan(y[2:]).all()
    scale[3] = torch.nan
    with pytest.raises(octet.OctetError, match="row 3 is nan, expected a finite number"):
        int8_linear(torch.randn(4, 32), weight, scale)


def test_swiglu_is_in_one_product():
    x, (weight, scale, _) = torch.randn(9, 64), a_weight(96, 64)
    gate, up = definition.linear(x, weight, scale).chunk(2, dim=-1)
    y = int8_linear(x, weight, scale, gate_up=True)
    assert y.shape == (9, 48)
    assert torch.allclose(y, torch.nn.functional.silu(gate) * up, rtol=2e-6, atol=1e-6)


@pytest.mark.parametrize("dtype", DTYPES)
def test_codes_and_their_product(dtype):
    x, (weight, scale, bias) = torch.randn(2, 3, 64).to(dtype), a_weight(48, 64)
    codes, scales = quantize_rows(x)
    assert codes.shape == (2, 3, 64) and scales.shape == (2, 3)
    y = int8_linear_codes(codes, scales, weight, scale, bias, out_dtype=dtype)
    assert torch.equal(y, int8_linear(x, weight, scale, bias))


def test_the_output_has_the_dtype_that_is_asked_for():
    x, (weight, scale, _) = torch.randn(3, 64), a_weight(32, 64)
    wide = int8_linear(x, weight, scale)
    for dtype in DTYPES:
        assert torch.equal(int8_linear(x, weight, scale, out_dtype=dtype), wide.to(dtype))


@pytest.mark.parametrize("m, n, k", SHAPES)
def test_int8_mm_is_torchs(m, n, k):
    a, b = random_codes(m, k, -128), random_codes(n, k, -128).t()
    a[0], b[:, 0] = -128, -128
    expected = a.int() @ b.int()
    for right in (b, b.contiguous()):
        assert torch.equal(int8_mm(a, right), expected)
    if m > 16 and n % 8 == 0 and k % 8 == 0:  # what torch._int_mm takes
        assert torch.equal(torch._int_mm(a, b.contiguous()), expected)
    assert int8_mm(a[:0], b).shape == (0, n)


def test_parts_are_one_linear():
    x = torch.randn(5, 64)
    whole, scale, bias = a_weight(80, 64)
    expected = int8_linear(x, whole, scale, bias)
    sizes = [32, 32, 16]
    adjacent = [whole.split(sizes), scale.split(sizes), bias.split(sizes)]
    apart = [[part.clone() for part in parts] for parts in adjacent]
    for parts in (adjacent, apart):
        assert torch.equal(int8_linear_parts(x, *parts), expected)
    # A single row is contiguous whatever its stride is.
    rows = [whole[::2][:1], whole[1:2]]
    y = int8_linear_parts(x, rows, [scale[:1], scale[1:2]], [bias[:1], bias[1:2]])
    assert torch.equal(y, expected[:, :2])


# --- shapes and memory ---


def test_any_leading_dimensions_and_strides():
    weight, scale, _ = a_weight(48, 64)
    flat = torch.randn(24, 64)
    expected = definition.linear(flat, weight, scale)
    assert torch.equal(int8_linear(flat[0], weight, scale), expected[0])
    assert torch.equal(
        int8_linear(flat.view(2, 3, 4, 64), weight, scale), expected.view(2, 3, 4, 48)
    )
    wide = torch.cat([flat, torch.randn(24, 9)], dim=1)[:, :64]  # rows apart
    columns = flat.t().contiguous().t()  # columns, not rows
    assert torch.equal(int8_linear(wide, weight, scale), expected)
    assert torch.equal(int8_linear(columns, weight, scale), expected)
    permuted = flat.view(4, 6, 64).transpose(0, 1)
    assert torch.equal(
        int8_linear(permuted, weight, scale), expected.view(4, 6, 48).transpose(0, 1)
    )
    repeated = flat[:1].expand(5, 64)
    assert torch.equal(int8_linear(repeated, weight, scale), expected[:1].expand(5, 48))
    for shape in [(0, 64), (3, 0, 64)]:
        assert int8_linear(torch.zeros(shape), weight, scale).shape == (*shape[:-1], 48)


def test_a_weight_may_be_rows_of_another():
    x, (weight, scale, _) = torch.randn(3, 64), a_weight(96, 80)
    rows = weight[16:64, :64]
    y = int8_linear(x, rows, scale[16:64])
    assert torch.equal(y, definition.linear(x, rows.contiguous(), scale[16:64]))


def test_scales_and_biases_may_be_apart():
    x, (weight, scale, bias) = torch.randn(3, 64), a_weight(32, 64)
    expected = int8_linear(x, weight, scale, bias)
    apart = [torch.stack([t.flatten(), t.flatten() + 9], 1)[:, 0] for t in (scale, bias)]
    assert torch.equal(int8_linear(x, weight, *apart), expected)
    one = bias[:1].expand(32)
    assert torch.equal(int8_linear(x, weight, scale, one), int8_linear(x, weight, scale, one + 0))


def test_a_weight_that_changes_is_seen():
    x, (weight, scale, bias) = torch.randn(3, 64), a_weight(32, 64)
    for change in (
        lambda: weight.add_(1),
        lambda: scale.mul_(2),
        lambda: bias.neg_(),
        lambda: setattr(weight, "data", weight.flip(0).contiguous()),
    ):
        int8_linear(x, weight, scale, bias)
        change()
        y = int8_linear(x, weight, scale, bias)
        assert torch.equal(y, definition.linear(x, weight, scale, bias))


# --- the ways of torch ---


def test_threads_at_once():
    weight, scale, _ = a_weight(64, 128)
    inputs = [torch.randn(8, 128) for _ in range(40)]
    with ThreadPoolExecutor(4) as pool:
        outputs = list(pool.map(lambda x: int8_linear(x, weight, scale), inputs))
    for x, y in zip(inputs, outputs):
        assert torch.equal(y, definition.linear(x, weight, scale))


def test_inference_mode():
    x, (weight, scale, _) = torch.randn(3, 64), a_weight(32, 64)
    with torch.inference_mode():
        y = int8_linear(x * 2, weight, scale)
        made_here = random_codes(32, 64)
        assert torch.equal(
            int8_linear(x, made_here, scale), definition.linear(x, made_here, scale)
        )
    assert torch.equal(y, definition.linear(x * 2, weight, scale))


def test_autocast_is_that_of_a_linear():
    x, (weight, scale, bias) = torch.randn(3, 64), a_weight(32, 64)
    for dtype in (torch.bfloat16, torch.float16):
        with torch.autocast("cpu", dtype):
            y = int8_linear(x, weight, scale, bias)
            parts = int8_linear_parts(x, [weight], [scale], [bias])
        assert y.dtype == dtype and torch.equal(y, int8_linear(x.to(dtype), weight, scale, bias))
        assert torch.equal(y, parts)


@pytest.mark.parametrize("options", [{}, {"rotation_group": 16}, {"gate_up": True}])
def test_gradients_are_those_of_the_linear_in_floating_point(options):
    weight, scale, bias = a_weight(32, 64)
    x = torch.randn(2, 5, 64, requires_grad=True)
    bias = None if "gate_up" in options else bias.requires_grad_()
    y = int8_linear(x, weight, scale, bias, **options)
    y.backward(grad := torch.randn_like(y))

    values = rotate(weight * scale, 16) if "rotation_group" in options else weight * scale
    there = x.detach().clone().requires_grad_()
    expected = there @ values.t()
    if "gate_up" in options:
        gate, up = expected.chunk(2, dim=-1)
        expected = torch.nn.functional.silu(gate) * up
    expected.backward(grad)
    assert (x.grad - there.grad).norm() < 0.02 * there.grad.norm()  # x was rounded to 8 bits
    if bias is not None:
        assert torch.allclose(bias.grad, grad.sum((0, 1)), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_compiled_without_breaks_and_with_the_same_bits(backend):
    weight, scale, bias = a_weight(32, 64)
    codes = random_codes(64, 48)

    def model(x):
        y = int8_linear(x, weight, scale, bias, rotation_group=64)
        left, scales = quantize_rows(y)
        right = int8_linear_codes(left, scales, weight[:16, :32], scale[:16])
        sums = int8_mm(left.reshape(-1, 32), codes[:32])
        parts = int8_linear_parts(x, [weight, weight], [scale, scale], gate_up=True)
        return y, right, sums, parts

    compiled = torch.compile(model, fullgraph=True, backend=backend, dynamic=True)
    with torch.no_grad():
        for shape in [(2, 3, 64), (4, 5, 64)]:
            x = torch.randn(shape)
            for eager, made in zip(model(x), compiled(x)):
                assert torch.equal(eager, made)


def test_one_graph_for_all_numbers_of_rows():
    counter = pytest.importorskip("torch._dynamo.testing").CompileCounterWithBackend("aot_eager")
    weight, scale, _ = a_weight(32, 64)
    compiled = torch.compile(
        lambda x: int8_linear(x, weight, scale), fullgraph=True, backend=counter
    )
    with torch.no_grad():
        for m in (2, 5, 9):
            x = torch.randn(m, 64)
            torch._dynamo.mark_dynamic(x, 0)
            assert torch.equal(compiled(x), definition.linear(x, weight, scale))
    assert counter.frame_count == 1


def test_torchs_own_checks_of_ops():
    weight, scale, bias = a_weight(32, 64)
    x = torch.randn(3, 64, requires_grad=True)
    utils = ("test_schema", "test_faketensor", "test_autograd_registration")
    ops = torch.ops.octet
    for op, args in [
        (ops.int8_linear, (x, weight, scale, bias)),
        (ops.int8_linear_parts, (x, [weight, weight], [scale, scale], [bias, bias])),
        (ops.quantize_rows, (x.detach(), None, 16)),
        (ops.int8_mm, (random_codes(3, 64), weight.t())),
        (ops.int8_linear_codes, (random_codes(3, 64), torch.ones(3), weight, scale, None, False,
                                 torch.bfloat16)),  # fmt: skip
    ]:
        torch.library.opcheck(op.default, args, test_utils=utils)


def test_modes_and_profilers_see_the_op():
    weight, scale, _ = a_weight(32, 64)
    seen = []

    class Watch(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append(str(func))
            return func(*args, **(kwargs or {}))

    with Watch():
        int8_linear(torch.randn(2, 64), weight, scale)
    assert "octet.int8_linear.default" in seen
    assert torch.fx.symbolic_trace(lambda x: int8_linear(x, weight, scale)).code.count(
        "octet.int8_linear"
    )


# --- what is refused ---


def freed() -> torch.Tensor:
    x = torch.randn(2, 64)
    x.untyped_storage().resize_(0)
    return x


CODES, SCALE = random_codes(32, 64), torch.ones(32)


@pytest.mark.parametrize(
    "call, kind, words",
    [
        (lambda: int8_linear(torch.randn(2, 65), CODES, SCALE), ValueError, r"\[\.\.\., 64\]"),
        (lambda: int8_linear(torch.ones(2, 64).int(), CODES, SCALE), TypeError, "float32"),
        (lambda: int8_linear(torch.randn(2, 64).double(), CODES, SCALE), TypeError, "float64"),
        (lambda: int8_linear(torch.tensor(1.0), CODES, SCALE), ValueError, r"\[\.\.\., 64\]"),
        (lambda: int8_linear(torch.randn(2, 64), CODES.float(), SCALE), TypeError, "int8"),
        (lambda: int8_linear(torch.randn(2, 64), CODES[0], SCALE), ValueError, "2 dimensions"),
        (lambda: int8_linear(torch.randn(2, 64), CODES, SCALE[:3]), ValueError, r"one, \[32\]"),
        (lambda: int8_linear(torch.randn(2, 64), CODES, SCALE.int()), TypeError, "float32"),
        (lambda: int8_linear(torch.randn(2, 64), CODES, SCALE, SCALE[:2]), ValueError, r"\[32\]"),
        (lambda: int8_linear(torch.randn(2, 64), "w", SCALE), TypeError, "a tensor"),
        (lambda: int8_linear(None, CODES, SCALE), TypeError, "`x` is NoneType None"),
        (lambda: [int8_linear(torch.randn(2, 64), CODES, scale) for scale in (SCALE, 3.0)],
         TypeError, "`weight_scale` is float 3.0"),  # with a weight that is known
        (lambda: int8_linear(torch.randn(2, 64), CODES, SCALE, [1]), TypeError, "`bias` is list"),
        (lambda: int8_linear(torch.randn(2, 64), CODES, SCALE, smooth=[1]), TypeError, "`smooth`"),
        (lambda: int8_linear(torch.randn(2, 64), CODES, SCALE, rotation_group=4.0), ValueError,
         "is 4.0"),
        (lambda: int8_linear(torch.randn(2, 64), CODES, SCALE, gate_up="yes"), ValueError, "'yes'"),
        (lambda: int8_linear(torch.randn(2, 64), CODES, torch._neg_view(SCALE)), ValueError,
         "resolve_neg"),
        (lambda: int8_linear_parts(torch.randn(2, 64), [CODES] * 2, [SCALE] * 2, [SCALE]),
         ValueError, "2 `weights`, 2 `weight_scales` and 1 `biases`"),
        (lambda: torch.ops.octet.int8_linear_parts(torch.randn(2, 64), [CODES], [SCALE] * 2, []),
         ValueError, "1 `weights`, 2 `weight_scales`"),
        (lambda: int8_linear_parts(torch.randn(2, 64), [], []), ValueError, "0 `weights`"),
        (lambda: int8_linear(freed(), CODES, SCALE), ValueError, "freed"),
        (lambda: int8_linear(torch.randn(2, 64), CODES, SCALE, rotation_group=8), ValueError, "8"),
        (lambda: int8_linear(torch.randn(2, 64), CODES, SCALE, out_dtype=torch.int8), TypeError,
         "out_dtype"),
        (lambda: int8_linear(torch.randn(2, 64), CODES, SCALE, SCALE, gate_up=True), ValueError,
         "no bias"),
        (lambda: int8_linear(torch.randn(2, 64), CODES.to("meta"), SCALE), ValueError, "device"),
        (lambda: quantize_rows(torch.ones(3, 4).int()), TypeError, "float32"),
        (lambda: quantize_rows(torch.randn(3, 64), smooth=SCALE), ValueError, r"\[64\]"),
        (lambda: int8_mm(CODES, CODES), ValueError, r"\[64, columns\]"),
        (lambda: int8_mm(CODES, torch.ones(64, 3)), TypeError, "int8"),
        (lambda: int8_linear_codes(CODES, SCALE[:3], CODES, SCALE), ValueError, "each row"),
    ],
)  # fmt: skip
def test_wrong_arguments_are_told(call, kind, words):
    with pytest.raises(octet.OctetError, match=words) as caught:
        call()
    assert isinstance(caught.value, kind) and caught.value.field


@pytest.mark.parametrize(
    "there, words",
    [
        ("None", "which is not installed"),
        ("type(sys)('torch')", "found 2.3.1"),
    ],
)
def test_no_torch_or_an_old_one(build_dir, there, words):
    code = f"""if True:
        import sys
        sys.path.insert(0, {str(build_dir / "python")!r})
        sys.modules["torch"] = {there}
        if sys.modules["torch"]:
            sys.modules["torch"].__version__ = "2.3.1"
        import octet
        import octet.torch"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 1
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("ImportError: octet.torch needs PyTorch 2.4 or newer") and words in last
