"""Arrays of any framework: as kernels read them, and as results are handed back.

Tensors of torch are worked on by octet.torch, arrays of NumPy here. All others come and go by
DLPack or the buffer protocol: as NumPy's from the host, as torch's from a GPU, on its current
stream.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Any, NamedTuple, NoReturn

from octet import _octet
from octet.errors import OctetError, OctetTypeError, refuse, refuse_type

np: Any = None
try:
    import numpy as np
except ImportError:
    pass

FLOATS = {"float32": _octet.F32, "bfloat16": _octet.BF16, "float16": _octet.F16}
_HOST_KINDS = (1, 3)  # of DLPack: the host's memory, and what CUDA has pinned of it


class Route(NamedTuple):
    """How arrays of a framework get to the one that works on them, and results back."""

    to_torch: bool
    take: Callable[[Any], Any] | None = None  # None: they are there
    give: Callable[[Any], Any] | None = None

    def taken(self, *arrays: Any) -> tuple[Any, ...]:
        if self.take is None:
            return arrays
        return tuple(
            array if array is None or isinstance(array, (int, float)) else self.take(array)
            for array in arrays
        )

    def given(self, array: Any) -> Any:
        return array if self.give is None else self.give(array)


def is_tensor(x: Any) -> bool:
    """Of torch, which is not imported for the question."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(x, getattr(torch, "Tensor", ()))


_HERE = Route(to_torch=False)
_TORCH = Route(to_torch=True)


def route_of(x: Any, name: str) -> Route:
    """`x` decides for all arrays of a call."""
    if is_tensor(x):
        return _TORCH
    if np is not None and isinstance(x, np.ndarray):
        return _HERE
    kind = _kind_of(x, name)
    give = None
    if hasattr(x, "__array_namespace__"):
        give = partial(_to_namespace, x.__array_namespace__())
    if kind in _HOST_KINDS:
        if np is None:
            raise OctetError(
                f"`{name}` is of type {type(x).__name__}, which takes NumPy; run "
                "`pip install numpy`, or pass tensors of torch"
            )
        return Route(to_torch=False, take=_to_numpy, give=give)
    try:
        import torch  # noqa: PLC0415 - only such arrays need it
    except ImportError:
        raise OctetError(
            f"`{name}` is of type {type(x).__name__} and on a GPU, which takes torch; run "
            "`pip install torch`"
        ) from None
    return Route(to_torch=True, take=torch.from_dlpack, give=give)


def _kind_of(x: Any, name: str) -> int:
    """DLPack's kind of device."""
    if hasattr(x, "__dlpack_device__"):
        try:
            return int(x.__dlpack_device__()[0])
        except Exception as error:  # whatever the framework throws
            raise OctetError(
                f"`{name}`, of type {type(x).__name__}, does not say where it is: {error}; "
                "expected an array that was not freed"
            ) from error
    try:
        memoryview(x)
    except TypeError:
        raise OctetTypeError(
            f"`{name}` is of type {type(x).__name__}; expected an array of NumPy, torch, or "
            "another framework with DLPack or the buffer protocol"
        ) from None
    return _HOST_KINDS[0]


# NumPy's DLPack has no bfloat16, which its arrays may have all the same.
_NOT_BY_DLPACK = (BufferError, RuntimeError, TypeError)


def _to_numpy(x: Any) -> Any:
    if not hasattr(x, "__dlpack__"):
        return np.asarray(x)
    try:
        return np.from_dlpack(x)
    except _NOT_BY_DLPACK as error:
        try:
            return np.asarray(x)
        except Exception:  # whatever the framework throws: it was freed, or has no such way
            raise OctetError(
                f"an array of type {type(x).__name__} cannot be read: {error}"
            ) from error


def _to_namespace(namespace: Any, array: Any) -> Any:
    try:
        return namespace.from_dlpack(array)
    except _NOT_BY_DLPACK:
        return namespace.asarray(array)


# --- arrays of NumPy ---


def array_of(x: Any, name: str) -> Any:
    if not isinstance(x, np.ndarray):
        refuse_type(name, f"`{name}` is of type {type(x).__name__}; expected an array of NumPy")
    return x


def describe(array: Any) -> str:
    return f"{array.dtype.name} {list(array.shape)}"


def wrong_type(name: str, array: Any, expected: str) -> NoReturn:
    refuse_type(name, f"`{name}` is {describe(array)}; expected {expected}")


def wrong_value(name: str, array: Any, expected: str) -> NoReturn:
    refuse(name, f"`{name}` is {describe(array)}; expected {expected}")


@dataclass(slots=True)
class Rows:
    """An array as a matrix whose rows are all its leading dimensions; the stride in elements."""

    array: Any  # that has them, and has to live as long
    columns: int
    stride: int

    @property
    def address(self) -> int:
        return address_of(self.array)

    @property
    def count(self) -> int:
        return prod(self.array.shape[:-1])

    @property
    def dtype(self) -> int:
        return FLOATS[self.array.dtype.name]


def address_of(array: Any) -> int:
    address: int = array.__array_interface__["data"][0]
    return address


def rows_in_place(array: Any) -> Rows | None:
    """None: kernels cannot read or write it as it lies."""
    flags = array.flags
    if not (flags.aligned and array.dtype.isnative):
        return None
    columns = array.shape[-1]
    if flags.c_contiguous:
        return Rows(array, columns, columns)
    if array.ndim == 2 and array.strides[1] == array.itemsize:
        stride, rest = divmod(array.strides[0], array.itemsize)
        if stride >= columns and not rest:
            return Rows(array, columns, stride)
    return None


def rows_of(array: Any) -> Rows:
    rows = rows_in_place(array)
    if rows is None:  # a new array, never a subclass, in the order of bytes of this machine
        copy = np.array(array, dtype=array.dtype.newbyteorder("="), order="C", copy=True)
        rows = Rows(copy, copy.shape[-1], copy.shape[-1])
    return rows
