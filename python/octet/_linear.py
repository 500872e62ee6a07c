"""INT8 linears on arrays of any framework."""

from __future__ import annotations

import math
import os
import threading
from typing import Any

from octet import _octet
from octet._arrays import (
    FLOATS,
    Rows,
    address_of,
    array_of,
    np,
    route_of,
    rows_in_place,
    rows_of,
    wrong_type,
    wrong_value,
)
from octet.errors import OctetTypeError, refuse, refuse_type
from octet.report import note_run

ROTATION_GROUPS = (4, 16, 64, 256, 1024)
_kept: list[_octet.Device] = []
_lock = threading.Lock()
# A child has none of the threads of its parent's device.
os.register_at_fork(after_in_child=_kept.clear)


def _host() -> _octet.Device:
    if not _kept:
        with _lock:
            if not _kept:
                _kept.append(_octet.Device("cpu"))
    return _kept[0]


def quantize_rows(x: Any, rotation_group: int = 0, smooth: Any = None) -> tuple[Any, Any]:
    """INT8 codes of x's shape, and a float32 scale for each row: codes = rint(x / scale).

    The scale is the largest magnitude of the row / 127. Before that, x is multiplied by `smooth`
    [columns], or rotated within groups of 4, 16, 64, 256 or 1024 columns.
    """
    route = route_of(x, "x")
    x, smooth = route.taken(x, smooth)
    if route.to_torch:
        codes, scales = _torch_functions().quantize_rows(x, rotation_group, smooth)
        return route.given(codes), route.given(scales)
    rows = _activations(x)
    factors = _factors(smooth, rotation_group, rows.columns)
    codes = np.zeros(x.shape, dtype="int8")
    scales = np.zeros(x.shape[:-1], dtype="float32")
    if x.size:
        _octet.quantize_rows(
            *(_host(), 0, rows.address, rows.stride, rows.dtype, rows.count, rows.columns),
            *(factors.address if factors else 0, rotation_group),
            *(address_of(codes), rows.columns, address_of(scales)),
        )
    return route.given(codes), route.given(scales)


def int8_linear(
    x: Any,
    weight: Any,
    weight_scale: Any,
    bias: Any = None,
    *,
    rotation_group: int = 0,
    smooth: Any = None,
    out_dtype: Any = None,
    out: Any = None,
) -> Any:
    """y [..., n] = x [..., k] times the rows of `weight` (int8 [n, k]) in INT8, + bias.

    Rows of x (float32, bfloat16 or float16) are quantized as by quantize_rows(). `weight_scale`:
    one, [n] or [n, 1]. y is like x, in `out_dtype` if there is one; or it is `out`.
    """
    route = route_of(x, "x")
    x, weight, weight_scale, bias, smooth = route.taken(x, weight, weight_scale, bias, smooth)
    if route.to_torch:
        y = _torch_linear(
            x, weight, weight_scale, bias, rotation_group, smooth, out_dtype, route.taken(out)[0]
        )
        return route.given(y) if out is None else out
    rows = _activations(x)
    codes = _weight(weight)
    n, k = codes.count, codes.columns
    if rows.columns != k:
        wrong_value("x", x, f"[..., {k}], as many columns as `weight` has")
    scales = _scales(weight_scale, n)
    addends = None if bias is None else _vector("bias", bias, n)
    factors = _factors(smooth, rotation_group, k)
    y, target = _output(x, n, out_dtype, route.taken(out)[0])
    if y.size and k:
        plain = _octet.PlainWeight(
            *(codes.address, n, k, codes.stride, scales.address, scales.columns),
            *((addends.address, addends.dtype) if addends else (0, 0)),
            *(factors.address if factors else 0, rotation_group, False),
        )
        kernel = _octet.linear(
            *(_host(), 0, 0, 0, None, plain, rows.address, rows.stride, rows.dtype, rows.count),
            *(target.address, target.stride, target.dtype),
        )
        note_run(kernel, rows.count, n, k)
    else:
        y[...] = 0 if addends is None else addends.array
    return route.given(y) if out is None else out


def int8_mm(a: Any, b: Any) -> Any:
    """a [m, k] times b [k, n] in int8, exactly, as int32: what torch._int_mm returns."""
    route = route_of(a, "a")
    a, b = route.taken(a, b)
    if route.to_torch:
        return route.given(_torch_functions().int8_mm(a, b))
    for name, matrix in (("a", a), ("b", b)):
        if array_of(matrix, name).dtype != "int8":
            wrong_type(name, matrix, "int8")
        if matrix.ndim != 2:
            wrong_value(name, matrix, "two dimensions")
    (m, k), n = a.shape, b.shape[1]
    if b.shape[0] != k:
        wrong_value("b", b, f"[{k}, n], as many rows as `a` has columns")
    y = np.zeros((m, n), dtype="int32")
    if y.size and k:
        _octet.int8_mm(
            *(_host(), address_of(a), *a.strides, m, k),
            *(address_of(b), *b.strides, n, address_of(y), n),
        )
    return route.given(y)


# --- what the functions ask of their arguments ---


def _activations(x: Any) -> Rows:
    if x.dtype.name not in FLOATS:
        wrong_type("x", x, "float32, bfloat16 or float16")
    if not x.ndim:
        wrong_value("x", x, "rows, [..., columns]")
    return rows_of(x)


def _weight(weight: Any) -> Rows:
    if array_of(weight, "weight").dtype != "int8":
        wrong_type("weight", weight, "int8")
    if weight.ndim != 2:
        wrong_value("weight", weight, "[n, k]")
    return rows_of(weight)


def _vector(name: str, values: Any, count: int, dtypes: Any = FLOATS) -> Rows:
    if array_of(values, name).dtype.kind not in "fV":  # V: bfloat16
        wrong_type(name, values, "floating point")
    if values.shape != (count,):
        wrong_value(name, values, f"[{count}]")
    return rows_of(values if values.dtype.name in dtypes else values.astype("float32"))


def _scales(scale: Any, n: int) -> Rows:
    if isinstance(scale, (int, float)):
        scale = np.float32([scale])
    if array_of(scale, "weight_scale").size not in (1, n) or scale.shape not in (
        *((), (1,), (n,), (n, 1), (1, 1)),
    ):
        wrong_value("weight_scale", scale, f"one, [{n}] or [{n}, 1]")
    scales = _vector("weight_scale", scale.reshape(-1), scale.size, ("float32",))
    if not np.isfinite(scales.array).all():
        refuse("weight_scale", "`weight_scale` has a NaN or an infinity; expected numbers")
    return scales


def check_rotation(group: int, k: int) -> None:
    if not isinstance(group, int) or (group and (group not in ROTATION_GROUPS or k % group)):
        refuse(
            "rotation_group",
            f"`rotation_group` is {group!r}; expected 0, or one of 4, 16, 64, 256 and 1024 that "
            f"divides the {k} columns",
        )


def _factors(smooth: Any, rotation_group: int, k: int) -> Rows | None:
    check_rotation(rotation_group, k)
    if smooth is None:
        return None
    if rotation_group:
        refuse("smooth", "there are `smooth` and `rotation_group`; expected one of them")
    return _vector("smooth", smooth, k, ("float32",))


def _output(x: Any, n: int, out_dtype: Any, out: Any) -> tuple[Any, Rows]:
    shape = (*x.shape[:-1], n)
    if out is None:
        dtype = x.dtype.newbyteorder("=") if out_dtype is None else _dtype(out_dtype)
        out = np.empty(shape, dtype=dtype)
        return out, Rows(out, n, n)
    if array_of(out, "out").dtype.name not in FLOATS:
        wrong_type("out", out, "float32, bfloat16 or float16")
    if out_dtype is not None and _dtype(out_dtype) != out.dtype:
        wrong_type("out", out, f"{_dtype(out_dtype).name}, as `out_dtype` says")
    rows = rows_in_place(out) if out.ndim else None
    if rows is None or out.shape != shape or not out.flags.writeable:
        wrong_value("out", out, f"{list(shape)} with rows that can be written to as they lie")
    return out, rows


def _dtype(given: Any) -> Any:
    name = given if isinstance(given, str) else str(getattr(given, "name", given))
    try:
        if name.endswith("bfloat16"):
            import ml_dtypes  # noqa: PLC0415 - NumPy alone has no bfloat16

            return np.dtype(ml_dtypes.bfloat16)
        dtype = np.dtype(given)
    except ImportError:
        raise OctetTypeError(
            "`out_dtype` is bfloat16, which NumPy has with ml_dtypes alone; run "
            "`pip install ml_dtypes`"
        ) from None
    except TypeError:
        dtype = None
    if dtype is None or dtype.name not in FLOATS:
        refuse_type("out_dtype", f"`out_dtype` is {given}; expected float32, bfloat16 or float16")
    return dtype


# --- torch ---


def _torch_functions() -> Any:
    from octet.torch import functional  # noqa: PLC0415 - only tensors need it

    return functional


def _torch_linear(
    x: Any,
    weight: Any,
    weight_scale: Any,
    bias: Any,
    rotation_group: int,
    smooth: Any,
    out_dtype: Any,
    out: Any,
) -> Any:
    functional = _torch_functions()
    if isinstance(weight_scale, (int, float)):
        if not math.isfinite(weight_scale):
            refuse("weight_scale", f"`weight_scale` is {weight_scale}; expected a finite number")
        weight_scale = functional.torch.full((1,), float(weight_scale), device=x.device)
    y = functional.int8_linear(
        *(x, weight, weight_scale, bias),
        smooth=smooth,
        rotation_group=rotation_group,
        out_dtype=out.dtype if out is not None and out_dtype is None else out_dtype,
    )
    if out is None:
        return y
    if out.shape != y.shape or out.dtype != y.dtype or out.device != y.device:
        refuse(
            "out",
            f"`out` is {out.dtype} {list(out.shape)} on {out.device}; expected {y.dtype} "
            f"{list(y.shape)} on {y.device}",
        )
    return out.copy_(y)
