"""INT8 linears on arrays of NumPy, in host memory."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cache
from math import prod
from numbers import Real
from typing import Any

from octet import _checks as checks
from octet import _octet
from octet.errors import OctetTypeError, refuse, refuse_type
from octet.report import note_run

np: Any = None
try:
    import numpy as np
except ImportError:
    pass


@cache
def _host() -> _octet.Device:
    return _octet.Device("cpu")


# A child process lacks the threads of its parent's device.
os.register_at_fork(after_in_child=_host.cache_clear)


def quantize_rows(x: Any, rotation_group: int, smooth: Any) -> tuple[Any, Any]:
    """See octet.quantize_rows()."""
    rows = _activations(x)
    factors = _factors(smooth, rotation_group, rows.columns)
    codes = np.zeros(x.shape, dtype="int8")
    scales = np.zeros(x.shape[:-1], dtype="float32")
    if x.size:
        _octet.quantize_rows(
            *(_host(), 0, rows.address, rows.stride, rows.dtype, rows.count, rows.columns),
            *(factors.address if factors else 0, rotation_group),
            *(_address_of(codes), rows.columns, _address_of(scales)),
        )
    return codes, scales


def int8_linear(
    x: Any, weight: Any, scale: Any, bias: Any, group: int, smooth: Any, dtype: Any, out: Any
) -> Any:
    """See octet.int8_linear()."""
    rows = _activations(x)
    checks.check_int8("weight", _array("weight", weight), "[n, k]")
    codes = _rows_of(weight)
    n, k = codes.count, codes.columns
    checks.check_columns("weight", k)
    if rows.columns != k:
        checks.wrong_value("x", x, f"[..., {k}], as many columns as `weight` has")
    scales = _scales(scale, n)
    addends = None if bias is None else _vector("bias", bias, n)
    factors = _factors(smooth, group, k)
    y, target = _output(x, n, dtype, out)
    if y.size and k:
        plain = _octet.PlainWeight(
            *(codes.address, n, k, codes.stride, scales.address, scales.columns),
            *((addends.address, addends.dtype) if addends else (0, 0)),
            *(factors.address if factors else 0, group, False),
        )
        kernel = _octet.linear(
            *(_host(), 0, 0, 0, None, plain, rows.address, rows.stride, rows.dtype, rows.count),
            *(target.address, target.stride, target.dtype),
        )
        note_run(kernel, rows.count, n, k)
    else:
        y[...] = 0 if addends is None else addends.array
    return y


def int8_mm(a: Any, b: Any) -> Any:
    """See octet.int8_mm()."""
    for name, matrix in (("a", a), ("b", b)):
        checks.check_int8(name, _array(name, matrix), "two dimensions")
    (m, k), n = a.shape, b.shape[1]
    if b.shape[0] != k:
        checks.wrong_value("b", b, f"[{k}, n], as many rows as `a` has columns")
    checks.check_columns("a", k)
    y = np.zeros((m, n), dtype="int32")
    if y.size and k:
        _octet.int8_mm(
            *(_host(), _address_of(a), *a.strides, m, k),
            *(_address_of(b), *b.strides, n, _address_of(y), n),
        )
    return y


# --- arrays as kernels read them ---


@dataclass(slots=True)
class Rows:
    """An array as a matrix, all leading dimensions taken as rows; the stride is in elements."""

    array: Any  # owns the rows, and has to live as long
    columns: int
    stride: int

    @property
    def address(self) -> int:
        return _address_of(self.array)

    @property
    def count(self) -> int:
        return prod(self.array.shape[:-1])

    @property
    def dtype(self) -> int:
        return checks.FLOATS[self.array.dtype.name]


def _address_of(array: Any) -> int:
    address: int = array.__array_interface__["data"][0]
    return address


def _rows_in_place(array: Any) -> Rows | None:
    """None if kernels cannot read or write it in place."""
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


def _rows_of(array: Any) -> Rows:
    rows = _rows_in_place(array)
    if rows is None:  # a new array, never a subclass, in this machine's byte order
        copy = np.array(array, dtype=array.dtype.newbyteorder("="), order="C", copy=True)
        rows = Rows(copy, copy.shape[-1], copy.shape[-1])
    return rows


# --- checks of arguments ---


def _array(name: str, x: Any) -> Any:
    if not isinstance(x, np.ndarray):
        refuse_type(name, f"`{name}` is of type {type(x).__name__}; expected an array of NumPy")
    return x


def _activations(x: Any) -> Rows:
    checks.check_floating("x", x)
    if not x.ndim:
        checks.wrong_value("x", x, "rows, [..., columns]")
    return _rows_of(x)


def _vector(name: str, values: Any, count: int, dtypes: Any = checks.FLOATS) -> Rows:
    if _array(name, values).dtype.kind not in "fV":  # V: bfloat16
        checks.wrong_type(name, values, "floating point")
    checks.check_vector(name, values, count)
    return _rows_of(values if values.dtype.name in dtypes else values.astype("float32"))


def _scales(scale: Any, n: int) -> Rows:
    if isinstance(scale, Real):
        scale = np.float32([checks.check_scale(scale)])
    checks.check_scales(_array("weight_scale", scale), n)
    with np.errstate(over="ignore"):  # said below
        scales = _vector("weight_scale", scale.reshape(-1), scale.size, ("float32",))
    if not np.isfinite(scales.array).all():
        refuse("weight_scale", "`weight_scale` has a NaN or an infinity; expected finite numbers")
    return scales


def _factors(smooth: Any, rotation_group: int, k: int) -> Rows | None:
    checks.check_rotation(rotation_group, k)
    if smooth is None:
        return None
    if rotation_group:
        refuse("smooth", "there are both `smooth` and `rotation_group`; expected one of them")
    return _vector("smooth", smooth, k, ("float32",))


def _output(x: Any, n: int, out_dtype: Any, out: Any) -> tuple[Any, Rows]:
    shape = (*x.shape[:-1], n)
    if out is None:
        dtype = x.dtype.newbyteorder("=") if out_dtype is None else _dtype(out_dtype)
        out = np.empty(shape, dtype=dtype)
        return out, Rows(out, n, n)
    checks.check_floating("out", _array("out", out))
    if out_dtype is not None and _dtype(out_dtype) != out.dtype:
        checks.wrong_type("out", out, f"{_dtype(out_dtype).name}, as `out_dtype` says")
    rows = _rows_in_place(out) if out.ndim else None
    if rows is None or out.shape != shape or not out.flags.writeable:
        words = f"{list(shape)} with rows that can be written in place"
        checks.wrong_value("out", out, words)
    return out, rows


def _dtype(given: Any) -> Any:
    name = checks.output_name(given)
    if name != "bfloat16":
        return np.dtype(name)
    try:
        import ml_dtypes  # noqa: PLC0415 - NumPy by itself has no bfloat16
    except ImportError:
        raise OctetTypeError(
            "`out_dtype` is bfloat16, which NumPy has only with ml_dtypes; run "
            "`pip install ml_dtypes`"
        ) from None
    return np.dtype(ml_dtypes.bfloat16)
