"""quantize_rows, int8_linear and int8_mm on arrays of NumPy and of frameworks that come by DLPack.

Five seconds, most of it for importing torch.
"""

from __future__ import annotations

import array
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import octet
import pytest
from conftest import BUILD

bfloat16 = pytest.importorskip("ml_dtypes").bfloat16
DTYPES = (np.float32, np.float16, bfloat16)


def random_linear(m: int, n: int, k: int, seed: int = 0):
    random = np.random.default_rng(seed)
    x = random.standard_normal((m, k)).astype(np.float32)
    weight = random.integers(-127, 128, (n, k)).astype(np.int8)
    scale = random.uniform(0.001, 0.01, n).astype(np.float32)
    return x, weight, scale


def expected_linear(x, weight, scale):
    """What INT8 gives of float32 activations, in float64."""
    codes, scales = octet.quantize_rows(x)
    sums = codes.astype(np.int64) @ weight.T.astype(np.int64)
    return sums * scales.astype(np.float64)[..., None] * scale.astype(np.float64)


# --- what they compute ---


@pytest.mark.parametrize("dtype", DTYPES)
def test_codes_are_the_rounded_rows(dtype):
    x = random_linear(7, 4, 96)[0].astype(dtype)
    codes, scales = octet.quantize_rows(x)
    values = x.astype(np.float32)
    largest = np.abs(values).max(axis=1)
    assert codes.dtype == np.int8 and scales.dtype == np.float32 and scales.shape == (7,)
    np.testing.assert_array_equal(scales, largest / np.float32(127))
    assert np.abs(codes - values * 127 / largest[:, None]).max() <= 0.5 + 1e-4
    assert np.abs(codes).max() == 127


def test_smooth_and_rotation():
    x = random_linear(3, 4, 64)[0]
    smooth = np.random.default_rng(1).uniform(0.5, 2, 64).astype(np.float32)
    for given, meant in zip(octet.quantize_rows(x, smooth=smooth), octet.quantize_rows(x * smooth)):
        np.testing.assert_array_equal(given, meant)
    four = np.float32([[1, 1, 1, -1], [1, 1, -1, 1], [1, -1, 1, 1], [-1, 1, 1, 1]]) / 2
    codes, scales = octet.quantize_rows(x, 4)
    rotated = (x.reshape(3, 16, 4) @ four).reshape(3, 64)
    difference = codes * scales[:, None] - rotated
    assert np.abs(difference).max() <= 0.51 * scales.max()


@pytest.mark.parametrize("dtype", DTYPES)
def test_linear_is_the_scaled_product(dtype):
    x, weight, scale = random_linear(9, 37, 80)
    bias = np.random.default_rng(2).standard_normal(37).astype(np.float32)
    x = x.astype(dtype)
    y = octet.int8_linear(x, weight, scale, bias)
    assert y.dtype == dtype and y.shape == (9, 37)
    meant = expected_linear(x, weight, scale) + bias
    tolerance = {np.float32: 1e-5, np.float16: 2e-3, bfloat16: 1.6e-2}[dtype]
    np.testing.assert_allclose(y.astype(np.float64), meant, rtol=tolerance, atol=tolerance)


def test_leading_dimensions_and_output_types():
    x, weight, scale = random_linear(12, 8, 16)
    flat = octet.int8_linear(x, weight, scale)
    cube = octet.int8_linear(x.reshape(2, 3, 2, 16), weight, scale)
    np.testing.assert_array_equal(cube, flat.reshape(2, 3, 2, 8))
    np.testing.assert_array_equal(octet.int8_linear(x[0], weight, scale), flat[0])
    for name in ("float32", np.float32, np.dtype("f4")):
        np.testing.assert_array_equal(octet.int8_linear(x, weight, scale, out_dtype=name), flat)
    half = octet.int8_linear(x, weight, scale, out_dtype="bfloat16")
    np.testing.assert_array_equal(half, flat.astype(bfloat16))


@pytest.mark.parametrize("shape", [(), (1,), (1, 1), (8,), (8, 1)])
def test_shapes_of_scales(shape):
    x, weight, _ = random_linear(3, 8, 16)
    scale = np.full(shape, 0.25)  # float64, which is converted
    meant = octet.int8_linear(x, weight, np.full(8, 0.25, np.float32))
    np.testing.assert_array_equal(octet.int8_linear(x, weight, scale), meant)
    np.testing.assert_array_equal(octet.int8_linear(x, weight, 0.25), meant)


def test_arrays_that_lie_in_other_ways():
    x, weight, scale = random_linear(6, 8, 32)
    meant = octet.int8_linear(x, weight, scale)
    wide = np.zeros((6, 50), np.float32)
    wide[:, 5:37] = x
    unaligned = np.frombuffer(b"\0" + x.tobytes(), np.uint8)[1:].view(np.float32).reshape(6, 32)
    assert not unaligned.flags.aligned
    frozen = x.copy()
    frozen.flags.writeable = False
    for other in (
        wide[:, 5:37],
        np.asfortranarray(x),
        x[::-1][::-1],
        np.repeat(x, 2, axis=0)[::2],
        unaligned,
        frozen,
        x.astype(">f4"),
    ):
        np.testing.assert_array_equal(octet.int8_linear(other, weight, scale), meant)
    for other in (np.asfortranarray(weight), np.hstack([weight, weight])[:, :32]):
        np.testing.assert_array_equal(octet.int8_linear(x, other, scale), meant)
    same = np.broadcast_to(x[:1], (6, 32))  # rows with a stride of 0
    y = octet.int8_linear(same, weight, scale)
    np.testing.assert_array_equal(y, np.repeat(meant[:1], 6, axis=0))


def test_out_is_written_to_and_returned():
    x, weight, scale = random_linear(5, 8, 16)
    wide = np.full((5, 12), 7, np.float32)
    assert octet.int8_linear(x, weight, scale, out=wide[:, 2:10]) is not None
    np.testing.assert_array_equal(wide[:, 2:10], octet.int8_linear(x, weight, scale))
    assert (wide[:, :2] == 7).all() and (wide[:, 10:] == 7).all()


@pytest.mark.parametrize("low", [-128, -127])
@pytest.mark.parametrize("m, k, n", [(1, 1, 1), (5, 64, 48), (33, 100, 70), (17, 257, 129)])
def test_int8_mm_is_exact(m, k, n, low):
    random = np.random.default_rng(m)
    a = random.integers(low, 128, (m, k)).astype(np.int8)
    b = random.integers(-128, 128, (k, n)).astype(np.int8)
    meant = a.astype(np.int32) @ b.astype(np.int32)
    for left in (a, np.asfortranarray(a), a[::-1][::-1]):
        for right in (b, np.asfortranarray(b)):
            y = octet.int8_mm(left, right)
            assert y.dtype == np.int32
            np.testing.assert_array_equal(y, meant)
    lowest = np.full((m, k), -128, np.int8)
    assert (octet.int8_mm(lowest, np.full((k, n), -128, np.int8)) == k * 128 * 128).all()


@pytest.mark.parametrize(
    "kernel", ["scalar_4x16", "avx2_4x16", "avx512_vnni_8x48", "neon_dotprod_8x8"]
)
def test_int8_mm_is_exact_with_every_kernel(kernel):
    program = (
        "import numpy as np, octet\n"
        "a = np.full((5, 70), -128, np.int8); b = np.full((70, 33), -128, np.int8)\n"
        "assert (octet.int8_mm(a, b) == 70 * 128 * 128).all()\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(BUILD / "python"), "OCTET_FORCE_KERNEL": kernel}
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if "cannot run" in done.stderr or "no kernel named" in done.stderr:
        pytest.skip(done.stderr.strip().splitlines()[-1])
    assert done.returncode == 0, done.stderr


# --- sizes of zero ---


def test_nothing_of_it():
    x, weight, scale = random_linear(3, 8, 16)
    bias = np.arange(8, dtype=np.float32)
    assert octet.int8_linear(x[:0], weight, scale).shape == (0, 8)
    assert octet.int8_linear(x, weight[:0], scale[:0]).shape == (3, 0)
    no_columns = octet.int8_linear(x[:, :0], weight[:, :0], scale, bias)
    np.testing.assert_array_equal(no_columns, np.tile(bias, (3, 1)))
    codes, scales = octet.quantize_rows(x[:, :0])
    assert codes.shape == (3, 0) and (scales == 0).all()
    assert octet.quantize_rows(np.zeros((0, 4), np.float32))[0].shape == (0, 4)
    for m, k, n in ((0, 4, 4), (4, 0, 4), (4, 4, 0)):
        y = octet.int8_mm(np.ones((m, k), np.int8), np.ones((k, n), np.int8))
        assert y.shape == (m, n) and not y.any()


def test_rows_of_zeros_and_of_no_numbers():
    x, weight, scale = random_linear(4, 8, 16)
    x[1] = 0
    x[2, 3] = np.nan
    x[3, 0] = np.inf
    y = octet.int8_linear(x, weight, scale)
    assert (y[1] == 0).all() and np.isnan(y[2:]).all() and np.isfinite(y[0]).all()


# --- what is wrong ---

X, WEIGHT, SCALE = random_linear(4, 8, 16)
NAN = SCALE.copy()
NAN[5] = np.nan
FROZEN = np.zeros((4, 8), np.float32)
FROZEN.flags.writeable = False


@pytest.mark.parametrize(
    "arguments, options, error, words",
    [
        ((X.astype(np.float64), WEIGHT, SCALE), {}, TypeError, "`x` is float64 [4, 16]; expected"),
        ((X.astype(np.int32), WEIGHT, SCALE), {}, TypeError, "`x` is int32"),
        ((X.tolist(), WEIGHT, SCALE), {}, TypeError, "`x` is of type list"),
        ((None, WEIGHT, SCALE), {}, TypeError, "`x` is of type NoneType"),
        ((X[0, 0], WEIGHT, SCALE), {}, (TypeError, ValueError), "`x` is"),
        ((X, WEIGHT.astype(np.uint8), SCALE), {}, TypeError, "`weight` is uint8 [8, 16]"),
        ((X, WEIGHT.tolist(), SCALE), {}, TypeError, "`weight` is of type list"),
        ((X, WEIGHT[0], SCALE), {}, ValueError, "`weight` is int8 [16]; expected [n, k]"),
        ((X, WEIGHT[:, :8], SCALE), {}, ValueError, "`x` is float32 [4, 16]; expected [..., 8]"),
        ((X, WEIGHT, SCALE[:3]), {}, ValueError, "`weight_scale` is float32 [3]; expected one"),
        ((X, WEIGHT, SCALE.astype(np.int32)), {}, TypeError, "`weight_scale` is int32"),
        ((X, WEIGHT, NAN), {}, ValueError, "`weight_scale` has a NaN"),
        ((X, WEIGHT, 10**400), {}, ValueError, "`weight_scale` is out of range"),
        ((X, WEIGHT, 1e300), {}, ValueError, "`weight_scale` is 1e+300"),
        ((X, WEIGHT, float("inf")), {}, ValueError, "`weight_scale` is inf"),
        ((X, WEIGHT, None), {}, TypeError, "`weight_scale` is of type NoneType"),
        ((X, WEIGHT, SCALE, SCALE[:3]), {}, ValueError, "`bias` is float32 [3]; expected [8]"),
        ((X, WEIGHT, SCALE, WEIGHT[:, 0]), {}, TypeError, "`bias` is int8"),
        ((X, WEIGHT, SCALE), {"rotation_group": 5}, ValueError, "`rotation_group` is 5"),
        ((X, WEIGHT, SCALE), {"rotation_group": 64}, ValueError, "`rotation_group` is 64"),
        ((X, WEIGHT, SCALE), {"rotation_group": -4}, ValueError, "`rotation_group` is -4"),
        ((X, WEIGHT, SCALE), {"smooth": SCALE}, ValueError, "`smooth` is float32 [8]; expected"),
        ((X, WEIGHT, SCALE), {"smooth": X[0], "rotation_group": 4}, ValueError, "one of them"),
        ((X, WEIGHT, SCALE), {"out_dtype": "float64"}, TypeError, "`out_dtype` is float64"),
        ((X, WEIGHT, SCALE), {"out_dtype": "nonsense"}, TypeError, "`out_dtype` is nonsense"),
        ((X, WEIGHT, SCALE), {"out_dtype": 3}, TypeError, "`out_dtype` is 3"),
        ((X, WEIGHT, SCALE), {"out": FROZEN}, ValueError, "`out` is float32 [4, 8]; expected"),
        ((X, WEIGHT, SCALE), {"out": X}, ValueError, "`out` is float32 [4, 16]; expected [4, 8]"),
        ((X, WEIGHT, SCALE), {"out": FROZEN.astype(int)}, TypeError, "`out` is int64"),
        ((X, WEIGHT, SCALE), {"out": np.zeros((8, 4), np.float32).T}, ValueError, "in place"),
        ((X, WEIGHT, SCALE), {"out": [1]}, TypeError, "`out` is of type list"),
    ],
)
def test_wrong_arguments_of_int8_linear(arguments, options, error, words):
    with pytest.raises(octet.OctetError) as raised:
        octet.int8_linear(*arguments, **options)
    assert isinstance(raised.value, error)
    assert words in str(raised.value)


@pytest.mark.parametrize(
    "a, b, error, words",
    [
        (X, WEIGHT, TypeError, "`a` is float32"),
        (WEIGHT, WEIGHT, ValueError, "`b` is int8 [8, 16]; expected [16, n]"),
        (WEIGHT[0], WEIGHT, ValueError, "`a` is int8 [16]; expected two dimensions"),
        (WEIGHT, WEIGHT.T.astype(np.int16), TypeError, "`b` is int16"),
        (WEIGHT, None, TypeError, "`b` is of type NoneType"),
        ("text", WEIGHT, TypeError, "`a` is of type str"),
    ],
)
def test_wrong_arguments_of_int8_mm(a, b, error, words):
    with pytest.raises(octet.OctetError) as raised:
        octet.int8_mm(a, b)
    assert isinstance(raised.value, error)
    assert words in str(raised.value)


def test_a_scale_is_any_number():
    expected = octet.int8_linear(X, WEIGHT, 0.5)
    for half in (np.float32(0.5), np.float64(0.5), np.full(8, 0.5, np.float32)):
        assert np.array_equal(octet.int8_linear(X, WEIGHT, half), expected)


def test_sizes_that_no_memory_holds():
    huge = np.lib.stride_tricks.as_strided(X, (1 << 28, 16), (0, 4))  # 16 GiB, if it were copied
    with pytest.raises((octet.OctetError, MemoryError)):
        octet.int8_linear(np.broadcast_to(X[:1], (1 << 45, 16)), WEIGHT, SCALE)
    with pytest.raises((octet.OctetError, MemoryError)):
        octet.int8_linear(np.broadcast_to(huge[:1], (1 << 45, 16)), WEIGHT, SCALE)
    wide = np.lib.stride_tricks.as_strided(WEIGHT, (1, (1 << 30) + 16), (0, 0))
    with pytest.raises((octet.OctetError, MemoryError)):
        octet.int8_mm(wide, np.broadcast_to(WEIGHT[:1, :1], ((1 << 30) + 16, 1 << 20)))


# --- other frameworks, threads, processes ---


class Foreign:
    """An array that knows DLPack, and nothing else."""

    def __init__(self, values: np.ndarray) -> None:
        self.values = values

    def __dlpack__(self, **options):
        return self.values.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.values.__dlpack_device__()


class Namespaced(Foreign):
    """One whose framework takes results back."""

    def __array_namespace__(self):
        return self

    @staticmethod
    def from_dlpack(array) -> Namespaced:
        return Namespaced(np.from_dlpack(array))


def test_arrays_by_dlpack_and_buffers():
    meant = octet.int8_linear(X, WEIGHT, SCALE)
    y = octet.int8_linear(Foreign(X), Foreign(WEIGHT), Foreign(SCALE))
    np.testing.assert_array_equal(y, meant)
    y = octet.int8_linear(Namespaced(X), WEIGHT, SCALE)
    assert isinstance(y, Namespaced)
    np.testing.assert_array_equal(y.values, meant)
    codes, scales = octet.quantize_rows(array.array("f", X[0]))
    np.testing.assert_array_equal(codes, octet.quantize_rows(X[0])[0])
    assert scales.shape == ()
    a = memoryview(np.ascontiguousarray(WEIGHT))
    np.testing.assert_array_equal(octet.int8_mm(a, WEIGHT.T), octet.int8_mm(WEIGHT, WEIGHT.T))


class Freed(Foreign):
    def __dlpack__(self, **options):
        raise RuntimeError("it was deleted")

    def __array__(self, *_, **__):
        raise RuntimeError("it was deleted")


def test_an_array_that_was_freed():
    for arrays in ((Freed(X), WEIGHT, SCALE), (Foreign(X), Freed(WEIGHT), SCALE)):
        with pytest.raises(octet.OctetError, match="cannot be read: it was deleted"):
            octet.int8_linear(*arrays)


def test_tensors_of_torch_go_to_octet_torch():
    torch = pytest.importorskip("torch")
    x, weight, scale = map(torch.from_numpy, (X, WEIGHT, SCALE))
    meant = octet.int8_linear(X, WEIGHT, SCALE)
    y = octet.int8_linear(x, weight, scale)
    assert isinstance(y, torch.Tensor)
    np.testing.assert_array_equal(y.numpy(), meant)
    out = torch.empty(4, 8, dtype=torch.bfloat16)
    assert octet.int8_linear(x, weight, scale, out=out) is out
    assert torch.equal(out, y.bfloat16())
    one = octet.int8_linear(x, weight, 0.5)
    assert torch.equal(one, octet.int8_linear(x, weight, torch.full((8,), 0.5)))
    codes, scales = octet.quantize_rows(x)
    np.testing.assert_array_equal(codes.numpy(), octet.quantize_rows(X)[0])
    assert scales.shape == (4,)
    sums = octet.int8_mm(weight, weight.t())
    assert torch.equal(sums, torch._int_mm(weight, weight.t()))
    with pytest.raises(octet.OctetError):
        octet.int8_linear(x, weight, scale, out=torch.empty(3, 8))
    with pytest.raises(octet.OctetError):
        octet.int8_linear(x, WEIGHT, SCALE)
    with pytest.raises(octet.OctetError):
        octet.int8_linear(x.double(), weight, scale)


def test_threads_share_the_device():
    inputs = [random_linear(16, 64, 256, seed) for seed in range(8)]
    meant = [octet.int8_linear(*arrays) for arrays in inputs]
    with ThreadPoolExecutor(8) as threads:
        for _ in range(5):
            for y, expected in zip(threads.map(lambda a: octet.int8_linear(*a), inputs), meant):
                np.testing.assert_array_equal(y, expected)


def test_a_forked_child_opens_its_own_device():
    meant = octet.int8_linear(X, WEIGHT, SCALE)
    child = os.fork()
    if child == 0:
        same = (octet.int8_linear(X, WEIGHT, SCALE) == meant).all()
        os._exit(0 if same else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_the_report_counts_calls():
    before = octet.report().native
    octet.int8_linear(X, WEIGHT, SCALE)
    assert octet.report().native == before + 1
