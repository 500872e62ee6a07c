"""Octet's INT8 linear in this process: liboctet.so through ctypes, see include/octet/octet.h.

Tensors are torch's, on the device that was opened. A call queues its work on the stream passed to
Octet() and returns; errors are raised as OctetError with the library's sentence.
"""

from __future__ import annotations

import ctypes
import os
from ctypes import byref
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LIBRARY = Path(os.environ.get("OCTET_BUILD_DIR", ROOT / "build")) / "liboctet.so"

_POINTER, _TEXT, _INT64, _INT = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int64, ctypes.c_int32
_SIZE = ctypes.c_size_t


class _Matrix(ctypes.Structure):
    _fields_ = [("data", _POINTER), ("rows", _INT64), ("columns", _INT64), ("row_stride", _INT64),
                ("dtype", _INT), ("reserved", _INT)]


class _WeightRows(ctypes.Structure):
    _fields_ = [("struct_size", _SIZE), ("codes", _POINTER), ("scales", _POINTER),
                ("bias", _POINTER), ("smooth", _POINTER), ("n", _INT64), ("k", _INT64),
                ("rotation_group", _INT64), ("on_host", _INT), ("gate_up", _INT)]


_SIGNATURES = {
    "last_error": (_TEXT, []),
    "commit": (_TEXT, []),
    "device_open": (_INT, [_TEXT, _POINTER, _INT, _INT, _POINTER]),
    "device_free": (None, [_POINTER]),
    "device_describe": (_SIZE, [_POINTER, _POINTER, _SIZE]),
    "last_kernel": (_SIZE, [_POINTER, _POINTER, _SIZE]),
    "weight_create": (_INT, [_POINTER, _POINTER, _POINTER]),
    "weight_free": (None, [_POINTER]),
    "linear_int8": (_INT, [_POINTER, _POINTER, _POINTER, _POINTER, _INT, _POINTER]),
    "quantize_rows": (_INT, [_POINTER, _POINTER, _POINTER, _INT64, _POINTER, _POINTER]),
}
_DTYPES = {"torch.bfloat16": 2, "torch.float16": 3, "torch.float32": 1, "torch.int32": 5}
_INT8 = 4
_TUNINGS = {"missing": 0, "off": 1, "all": 2}
_FUSIONS = {"none": 0, "bias": 1, "swiglu": 2}


class OctetError(RuntimeError):
    """Its text is one sentence for the user."""


class WrongResult(OctetError):
    """What does not compute the product is not timed."""


def _choice(choices: dict[str, int], name: str, noun: str) -> int:
    if name not in choices:
        raise OctetError(f"'{name}' is not a {noun}, expected one of {', '.join(choices)}")
    return choices[name]


def _dtype(tensor) -> int:
    number = _DTYPES.get(str(tensor.dtype))
    if number is None:
        raise OctetError(f"a tensor is {tensor.dtype}, expected one of {', '.join(_DTYPES)}")
    return number


def _address(tensor, dtype: str, shape: tuple) -> int:
    """The library sees bare addresses, so errors in a tensor must be found here."""
    if str(tensor.dtype) != f"torch.{dtype}" or tuple(tensor.shape) != shape:
        raise OctetError(f"a tensor is {tensor.dtype} {list(tensor.shape)}, expected "
                         f"torch.{dtype} {list(shape)}")
    if not tensor.is_contiguous():
        raise OctetError(f"a tensor {list(tensor.shape)} is not dense")
    return tensor.data_ptr()


def _matrix(tensor, shape: tuple) -> _Matrix:
    """Of activations or outputs, in a type that _DTYPES has."""
    dtype = _dtype(tensor)
    return _Matrix(_address(tensor, str(tensor.dtype).removeprefix("torch."), shape), *shape, 0,
                   dtype, 0)


def _codes(tensor, shape: tuple) -> _Matrix:
    return _Matrix(_address(tensor, "int8", shape), *shape, 0, _INT8, 0)


class Weight:
    def __init__(self, library, handle, n: int, k: int):
        self._library, self.handle, self.n, self.k = library, handle, n, k

    def close(self) -> None:
        self._library.octet_weight_free(self.handle)
        self.handle = None


class Octet:
    def __init__(self, device: str, stream: int = 0, tune: str = "missing",
                 library: Path = LIBRARY):
        if not library.is_file():
            raise OctetError(f"{library} does not exist; build it with "
                             "tools/build.sh default octet_shared")
        self.library = library
        self._handle = None
        try:
            self._library = ctypes.CDLL(str(library))
            for name, (result, arguments) in _SIGNATURES.items():
                function = getattr(self._library, f"octet_{name}")
                function.restype, function.argtypes = result, arguments
        except (OSError, AttributeError) as error:  # no library at all, or not all of this one
            raise OctetError(f"{library} cannot be used ({error}); build it again with "
                             "tools/build.sh default octet_shared") from error
        handle = _POINTER()
        self._check(self._library.octet_device_open(
            device.encode(), stream, 0, _choice(_TUNINGS, tune, "tuning"), byref(handle)))
        self._handle = handle

    def _check(self, status: int) -> None:
        if status != 0:
            raise OctetError(self._library.octet_last_error().decode())

    def _text(self, function) -> str:
        text = ctypes.create_string_buffer(function(self._handle, None, 0) + 1)
        function(self._handle, text, len(text))
        return text.value.decode()

    def close(self) -> None:
        self._library.octet_device_free(self._handle)
        self._handle = None

    @property
    def description(self) -> str:
        return self._text(self._library.octet_device_describe)

    @property
    def commit(self) -> str:
        return self._library.octet_commit().decode()

    @property
    def kernel(self) -> str:
        """The kernel of the latest gemm."""
        return self._text(self._library.octet_last_kernel)

    def pack(self, rows, scales, bias=None, gate_up: bool = False) -> Weight:
        """rows int8 [n, k], scales float32 [n], bias float32 [n] or None."""
        n, k = rows.shape
        given = _WeightRows(
            ctypes.sizeof(_WeightRows), _address(rows, "int8", (n, k)),
            _address(scales, "float32", (n,)),
            _address(bias, "float32", (n,)) if bias is not None else None, None, n, k, 0, 0,
            int(gate_up))
        handle = _POINTER()
        self._check(self._library.octet_weight_create(self._handle, byref(given), byref(handle)))
        return Weight(self._library, handle, n, k)

    def gemm(self, weight: Weight, a, row_scale, out, fusion: str = "none"):
        """A function that runs this GEMM; its arguments are checked once, here. It keeps them: the
        library has only their addresses."""
        m = a.shape[0]
        columns = weight.n // 2 if fusion == "swiglu" else weight.n
        arguments = (self._handle, weight.handle, byref(_codes(a, (m, weight.k))),
                     _address(row_scale, "float32", (m,)), _choice(_FUSIONS, fusion, "fusion"),
                     byref(_matrix(out, (m, columns))))
        function = self._library.octet_linear_int8

        def run():
            if weight.handle is None:
                raise OctetError("the weight of this gemm is closed")
            self._check(function(*arguments))

        run.keeps = (a, row_scale, out)
        return run

    def quantize(self, x, values, scales, group: int = 0):
        """A function that quantizes x [m, k] by rows, rotated in groups of `group` if any, into
        values int8 [m, k], scales [m]; it keeps all three."""
        m, k = x.shape
        arguments = (self._handle, byref(_matrix(x, (m, k))), None, group,
                     byref(_codes(values, (m, k))), _address(scales, "float32", (m,)))
        function = self._library.octet_quantize_rows

        def run():
            self._check(function(*arguments))

        run.keeps = (x, values, scales)
        return run
