"""Octet's INT8 GEMM in this process: liboctet_bench.so through ctypes.

Tensors are torch's, on the device that was opened. A call puts its work on the stream that Octet()
was given and returns; errors are raised as OctetError with the library's sentence.
"""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LIBRARY = Path(os.environ.get("OCTET_BUILD_DIR", ROOT / "build")) / "liboctet_bench.so"

_POINTER, _TEXT, _INT64, _INT = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int64, ctypes.c_int
_SIGNATURES = {
    "error": (_TEXT, []),
    "commit": (_TEXT, []),
    "open": (_POINTER, [_TEXT, _POINTER, _TEXT]),
    "close": (None, [_POINTER]),
    "description": (_TEXT, [_POINTER]),
    "kernel": (_TEXT, [_POINTER]),
    "pack": (_POINTER, [_POINTER, _POINTER, _POINTER, _POINTER, _INT64, _INT64, _INT]),
    "free_weight": (None, [_POINTER]),
    "gemm": (_INT, [_POINTER, _POINTER, _POINTER, _POINTER, _INT64, _POINTER, _TEXT, _TEXT]),
    "quantize": (_INT, [_POINTER, _POINTER, _TEXT, _INT64, _INT64, _INT64, _POINTER, _POINTER]),
}


class OctetError(RuntimeError):
    """Its text is one sentence for the user."""


class WrongResult(OctetError):
    """Nothing is timed that does not compute the product."""


def _dtype_name(tensor) -> bytes:
    names = {"torch.bfloat16": b"BF16", "torch.float16": b"F16", "torch.float32": b"F32",
             "torch.int32": b"I32"}
    name = names.get(str(tensor.dtype))
    if name is None:
        raise OctetError(f"a tensor is {tensor.dtype}, expected one of {', '.join(names)}")
    return name


def _address(tensor, dtype: str, shape: tuple) -> int:
    """The library sees bare addresses, so what is wrong with a tensor must be noticed here."""
    if str(tensor.dtype) != f"torch.{dtype}" or tuple(tensor.shape) != shape:
        raise OctetError(f"a tensor is {tensor.dtype} {list(tensor.shape)}, expected "
                         f"torch.{dtype} {list(shape)}")
    if not tensor.is_contiguous():
        raise OctetError(f"a tensor {list(tensor.shape)} is not dense")
    return tensor.data_ptr()


class Weight:
    def __init__(self, library, handle, n: int, k: int):
        self._library, self.handle, self.n, self.k = library, handle, n, k

    def close(self) -> None:
        if self.handle:
            self._library.octet_bench_free_weight(self.handle)
        self.handle = None


class Octet:
    def __init__(self, device: str, stream: int = 0, tune: str = "missing",
                 library: Path = LIBRARY):
        if not library.is_file():
            raise OctetError(f"{library} is not there; build it with "
                             "tools/build.sh default octet_bench_library")
        self.library = library
        self._handle = None
        try:
            self._library = ctypes.CDLL(str(library))
            for name, (result, arguments) in _SIGNATURES.items():
                function = getattr(self._library, f"octet_bench_{name}")
                function.restype, function.argtypes = result, arguments
        except (OSError, AttributeError) as error:  # no library at all, or not all of this one
            raise OctetError(f"{library} cannot be used ({error}); build it anew with "
                             "tools/build.sh default octet_bench_library") from error
        self._handle = self._library.octet_bench_open(device.encode(), stream, tune.encode())
        self._check(self._handle is not None)

    def _check(self, succeeded: bool) -> None:
        if not succeeded:
            raise OctetError(self._library.octet_bench_error().decode())

    def close(self) -> None:
        if self._handle:
            self._library.octet_bench_close(self._handle)
        self._handle = None

    @property
    def description(self) -> str:
        return self._library.octet_bench_description(self._handle).decode()

    @property
    def commit(self) -> str:
        return self._library.octet_bench_commit().decode()

    @property
    def kernel(self) -> str:
        """That the latest gemm ran."""
        return self._library.octet_bench_kernel(self._handle).decode()

    def pack(self, rows, scales, bias=None, gate_up: bool = False) -> Weight:
        """rows int8 [n, k], scales float32 [n], bias float32 [n] or None."""
        n, k = rows.shape
        handle = self._library.octet_bench_pack(
            self._handle, _address(rows, "int8", (n, k)), _address(scales, "float32", (n,)),
            _address(bias, "float32", (n,)) if bias is not None else None, n, k, int(gate_up))
        self._check(handle is not None)
        return Weight(self._library, handle, n, k)

    def gemm(self, weight: Weight, a, row_scale, out, fusion: str = "none"):
        """A function that runs this GEMM; its arguments are checked once, here. It keeps them: the
        library has their addresses alone."""
        m = a.shape[0]
        columns = weight.n // 2 if fusion == "swiglu" else weight.n
        dtype = _dtype_name(out)
        arguments = (self._handle, weight.handle, _address(a, "int8", (m, weight.k)),
                     _address(row_scale, "float32", (m,)), m,
                     _address(out, str(out.dtype).removeprefix("torch."), (m, columns)), dtype,
                     fusion.encode())
        function = self._library.octet_bench_gemm

        def run():
            if weight.handle is None:
                raise OctetError("the weight of this gemm is closed")
            if function(*arguments) != 0:
                self._check(False)

        run.keeps = (a, row_scale, out)
        return run

    def quantize(self, x, values, scales, group: int = 0):
        """A function that quantizes x [m, k] by rows, rotated in groups of `group` if any, into
        values int8 [m, k], scales [m]; it keeps all three."""
        m, k = x.shape
        arguments = (self._handle, _address(x, str(x.dtype).removeprefix("torch."), (m, k)),
                     _dtype_name(x), m, k, group, _address(values, "int8", (m, k)),
                     _address(scales, "float32", (m,)))
        function = self._library.octet_bench_quantize

        def run():
            if function(*arguments) != 0:
                self._check(False)

        run.keeps = (x, values, scales)
        return run
