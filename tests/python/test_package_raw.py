"""octet._octet: the functions on addresses, which octet.torch and octet.comfy stand on.

Three seconds.
"""

from __future__ import annotations

import os
import pickle
import sys
import threading
import warnings

import numpy as np
import octet
import pytest
from octet import _octet as raw

M, N, K = 5, 48, 64
RANDOM = np.random.default_rng(3)
X = RANDOM.standard_normal((M, K)).astype(np.float32)
CODES = RANDOM.integers(-127, 128, (N, K)).astype(np.int8)
SCALES = RANDOM.uniform(0.001, 0.01, N).astype(np.float32)


def at(array: np.ndarray) -> int:
    return array.ctypes.data


@pytest.fixture(scope="module")
def device():
    return raw.Device("cpu")


def plain_weight(**changes) -> raw.PlainWeight:
    arguments = {
        "codes": at(CODES), "n": N, "k": K, "row_stride": K, "scales": at(SCALES),
        "scale_count": N, "bias": 0, "bias_dtype": 0, "smooth": 0, "rotation_group": 0,
        "gate_up": False,
    }  # fmt: skip
    assert changes.keys() <= arguments.keys()
    return raw.PlainWeight(*{**arguments, **changes}.values())


def packed_weight(on) -> raw.PackedWeight:
    return raw.PackedWeight(on, at(CODES), N, K, at(SCALES), 0, 0, 0, False)


def run_linear(on, out: np.ndarray, weight: raw.Weight | None = None, /, **changes) -> str:
    arguments = {
        "device": on, "stream": 0, "memory": 0, "memory_bytes": 0, "allocate": None,
        "weight": weight or plain_weight(), "x": at(X), "x_stride": K, "x_dtype": raw.F32, "m": M,
        "y": at(out), "y_stride": out.shape[1], "y_dtype": raw.F32,
    }  # fmt: skip
    assert changes.keys() <= arguments.keys()
    return raw.linear(*{**arguments, **changes}.values())


def test_the_ways_to_one_result(device):
    y, packed, of_codes, both = (np.empty((M, N), np.float32) for _ in range(4))
    kernel = run_linear(device, y)
    assert kernel and kernel is sys.intern(kernel)
    run_linear(device, packed, packed_weight(device))
    codes, scales = np.empty((M, K), np.int8), np.empty(M, np.float32)
    raw.quantize_rows(device, 0, at(X), K, raw.F32, M, K, 0, 0, at(codes), K, at(scales))
    for weight, out in ((plain_weight(), of_codes), (packed_weight(device), both)):
        raw.linear_int8(
            *(device, 0, 0, 0, None, weight, at(codes), K, at(scales), M, at(out), N, raw.F32)
        )
        assert (weight.n, weight.k, weight.gate_up) == (N, K, False)
    for other in (packed, of_codes, both):
        np.testing.assert_array_equal(other, y)
    sums = codes.astype(np.int32) @ CODES.T.astype(np.int32)
    np.testing.assert_allclose(y, sums * scales[:, None] * SCALES, rtol=1e-6)


def test_a_gate_and_an_up_projection(device):
    y, both = np.empty((M, N // 2), np.float32), np.empty((M, N), np.float32)
    run_linear(device, both)
    run_linear(device, y, plain_weight(gate_up=True))
    gate, up = both[:, : N // 2], both[:, N // 2 :]
    np.testing.assert_allclose(y, gate / (1 + np.exp(-gate)) * up, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "changes, field",
    [
        ({"x": 0}, "x"),
        ({"m": -1}, "x"),
        ({"m": 1 << 62}, "x"),
        ({"x_stride": 3}, "x"),
        ({"x_dtype": 9}, "x"),
        ({"x_dtype": raw.I8}, None),
        ({"y": 0}, "y"),
        ({"y_dtype": raw.I8}, None),
    ],
)
def test_arguments_that_make_no_sense(device, changes, field):
    refuses(device, field, **changes)


@pytest.mark.parametrize(
    "changes, field",
    [
        ({"codes": 0}, "codes"),
        ({"n": -1}, None),
        ({"k": 1 << 40}, None),
        ({"row_stride": 3}, "row_stride"),
        ({"scales": 0}, "scales"),
        ({"scale_count": 7}, "scale_count"),
        ({"rotation_group": 5}, None),
        ({"rotation_group": 256}, None),
        ({"bias": at(SCALES), "bias_dtype": raw.I8}, "bias"),
    ],
)
def test_plain_weights_that_make_no_sense(device, changes, field):
    refuses(device, field, weight=plain_weight(**changes))


def refuses(device, field: str | None, **changes) -> None:
    y = np.full((M, N), 7, np.float32)
    with pytest.raises(raw.OctetError) as raised:
        run_linear(device, y, **changes)
    assert (y == 7).all()
    if field is not None:
        assert isinstance(raised.value, ValueError) and raised.value.field == field


@pytest.mark.parametrize(
    "changes",
    [
        *({"device": None}, {"x": -1}, {"x": 1.5}, {"m": "5"}, {"allocate": 3}, {"m": 1 << 64}),
        *({"weight": None}, {"weight": at(CODES)}),
    ],
)
def test_arguments_of_wrong_types(device, changes):
    with pytest.raises(TypeError):
        run_linear(device, np.empty((M, N), np.float32), **changes)


def test_a_device_that_was_never_opened():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # nanobind warns of it, too
        with pytest.raises(TypeError):
            run_linear(raw.Device.__new__(raw.Device), np.empty((M, N), np.float32))


@pytest.mark.parametrize(
    "arguments, words",
    [
        (("gpu",), "expected auto, ref, cpu, cuda"),
        (("",), "expected"),
        (("cpu", -1), "`threads` is -1"),
        (("cpu", 0, "often"), "`tuning` is \"often\""),
    ],
)
def test_devices_that_do_not_exist(arguments, words):
    with pytest.raises(raw.OctetError, match=words.replace("(", r"\(")):
        raw.Device(*arguments)


def test_weights_outlive_their_device():
    device = raw.Device("cpu", 1)
    weight = packed_weight(device)
    del device
    other = raw.Device("cpu", 1)
    y = np.empty((M, N), np.float32)
    with pytest.raises(raw.InvalidRequest, match="another device"):
        run_linear(other, y, weight)


@pytest.mark.parametrize("changes", [{1: 0}, {2: -1}, {3: 1 << 40}, {4: 0}, {7: 3}])
def test_weights_that_make_no_sense(device, changes):
    arguments = [device, at(CODES), N, K, at(SCALES), 0, 0, 0, False]
    for index, value in changes.items():
        arguments[index] = value
    with pytest.raises((raw.OctetError, TypeError)):
        raw.PackedWeight(*arguments)


def test_threads_open_use_and_drop_devices_and_weights():
    expected = np.empty((M, N), np.float32)
    shared = raw.Device("cpu")
    run_linear(shared, expected)
    wrong = []

    def work() -> None:
        own = raw.Device("cpu", 1)
        for device in (shared, own) * 10:
            y = np.empty((M, N), np.float32)
            run_linear(device, y, packed_weight(device))
            if not (y == expected).all():
                wrong.append(y)

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_forked_child_is_told_that_the_device_stayed_behind():
    device = raw.Device("cpu")
    weight = packed_weight(device)
    child = os.fork()
    if child == 0:
        status = 1
        try:
            run_linear(device, np.empty((M, N), np.float32))
        except raw.OctetError as error:
            status = 0 if "forked" in str(error) else 2
        del device, weight  # which does not wait for threads that are not there
        os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
    assert weight.n == N


def test_errors_are_python_errors():
    assert issubclass(octet.OctetError, RuntimeError)
    assert issubclass(octet.InvalidRequest, (octet.OctetError, ValueError))
    assert issubclass(octet.OutOfMemory, (octet.OctetError, MemoryError))
    assert issubclass(octet.Cancelled, octet.OctetError)
    assert octet.OctetError.__module__ == "octet" and octet.OctetError("words").field == ""
    again = pickle.loads(pickle.dumps(octet.InvalidRequest("words")))
    assert isinstance(again, octet.InvalidRequest) and str(again) == "words"


@pytest.mark.parametrize("changes", [{1: 0}, {6: 0}, {4: -1}, {5: 1 << 40}, {10: 0}, {11: 3}])
def test_arguments_of_int8_mm_that_make_no_sense(device, changes):
    sums = np.zeros((N, N), np.int32)
    arguments = [device, at(CODES), K, 1, N, K, at(CODES), 1, K, N, at(sums), N]
    raw.int8_mm(*arguments)
    assert sums[0, 0] == (CODES[0].astype(np.int32) ** 2).sum()
    for index, value in changes.items():
        arguments[index] = value
    with pytest.raises(raw.InvalidRequest):
        raw.int8_mm(*arguments)


def test_memory_that_a_linear_needs():
    device, weight = raw.Device("ref"), plain_weight()
    assert raw.linear_memory(device, weight, M) >= M * K
    assert raw.linear_memory(device, weight, 0) == 0
    assert raw.linear_memory(device, weight, M, True) == 0
    with pytest.raises(TypeError):
        raw.linear_memory(device, M, K)
