"""Functions that take arrays and models of any framework, and pass them to the right module.

octet.torch handles tensors of torch, octet._linear arrays of NumPy. All others are converted by
DLPack or the buffer protocol: to NumPy's on the host, to torch's on a GPU, on its current stream.
octet.torch is imported when a tensor or a model is passed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from numbers import Real
from typing import Any, NamedTuple

from octet import _linear
from octet._checks import check_scale, check_tensor, describe, is_tensor, output_name, wrong_value
from octet._linear import np
from octet.errors import OctetError, OctetTypeError, one_line, refuse
from octet.report import Report, fallbacks_raise, report_of_process

_HOST_KINDS = (1, 3)  # of DLPack: host memory, and host memory pinned by CUDA


def quantize_rows(x: Any, rotation_group: int = 0, smooth: Any = None) -> tuple[Any, Any]:
    """INT8 codes in x's shape, and a float32 scale for each row: codes = rint(x / scale).

    The scale is the largest magnitude of the row / 127. Before that, x is multiplied by `smooth`
    [columns], or rotated within groups of 4, 16, 64, 256 or 1024 columns.
    """
    route = _route_of(x, "x")
    x, smooth = route.taken(x, smooth)
    codes, scales = route.functions().quantize_rows(x, rotation_group, smooth)
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
    one, [n] or [n, 1]. y has the dtype of x, or `out_dtype`; with `out`, it is written there.
    """
    route = _route_of(x, "x")
    x, weight, weight_scale, bias, smooth, into = route.taken(
        x, weight, weight_scale, bias, smooth, out
    )
    work = _torch_linear if route.to_torch else _linear.int8_linear
    y = work(x, weight, weight_scale, bias, rotation_group, smooth, out_dtype, into)
    return route.given(y) if out is None else out


def int8_mm(a: Any, b: Any) -> Any:
    """a [m, k] times b [k, n] in int8, exactly, as int32, like torch._int_mm."""
    route = _route_of(a, "a")
    return route.given(route.functions().int8_mm(*route.taken(a, b)))


def report(model: Any = None) -> Report:
    """The linears of a torch model, or of a pipeline; without one, what ran in this process."""
    if model is None:
        return report_of_process()
    from octet.torch import describe_linears  # noqa: PLC0415 - torch is not needed without a model

    return Report(rows=describe_linears(model))


@contextmanager
def require_int8(model: Any = None) -> Iterator[None]:
    """Within it, in all threads, a fallback raises OctetError.

    A fallback is an op of Octet that did not run in native INT8, or a ComfyUI call that was
    declined. With a model, a linear in it that should be INT8 and is not raises at once.
    """
    left = [] if model is None else [row for row in report(model).rows if row.fallback]
    if left:
        raise OctetError(
            f"{left[0].name} is not in INT8, which octet.require_int8() demands: "
            f"{left[0].note}" + (f" (and {len(left) - 1} more)" if len(left) > 1 else "")
        )
    with fallbacks_raise():
        yield


# --- conversion of arrays ---


class Route(NamedTuple):
    """How arrays of a framework are converted for the module that handles them, and back."""

    to_torch: bool
    take: Callable[[Any], Any] | None = None  # None: as they are
    give: Callable[[Any], Any] | None = None

    def taken(self, *arrays: Any) -> tuple[Any, ...]:
        if self.take is None:
            return arrays
        return tuple(
            array if array is None or isinstance(array, Real) else self.take(array)
            for array in arrays
        )

    def functions(self) -> Any:
        """The module that handles them."""
        if not self.to_torch:
            return _linear
        from octet.torch import functional  # noqa: PLC0415 - only tensors need it

        return functional

    def given(self, array: Any) -> Any:
        return array if self.give is None else self.give(array)


_HERE = Route(to_torch=False)
_TORCH = Route(to_torch=True)


def _route_of(x: Any, name: str) -> Route:
    """Chosen by `x`, for all arrays of a call."""
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
                f"`{name}` is of type {type(x).__name__}, which needs NumPy; run "
                "`pip install numpy`, or pass tensors of torch"
            )
        return Route(to_torch=False, take=_to_numpy, give=give)
    try:
        import torch  # noqa: PLC0415 - only such arrays need it
    except ImportError:
        raise OctetError(
            f"`{name}` is of type {type(x).__name__} and on a GPU, which needs torch; run "
            "`pip install torch`"
        ) from None
    return Route(to_torch=True, take=torch.from_dlpack, give=give)


def _kind_of(x: Any, name: str) -> int:
    """The kind of device, as DLPack numbers it."""
    if hasattr(x, "__dlpack_device__"):
        try:
            return int(x.__dlpack_device__()[0])
        except Exception as error:  # whatever the framework throws
            raise OctetError(
                f"`{name}`, of type {type(x).__name__}, does not say where it is: {error}; "
                "expected an array that is not freed"
            ) from error
    try:
        memoryview(x)
    except TypeError:
        raise OctetTypeError(
            f"`{name}` is of type {type(x).__name__}; expected an array of NumPy, torch, or "
            "another framework with DLPack or the buffer protocol"
        ) from None
    return _HOST_KINDS[0]


# NumPy's DLPack has no bfloat16, but its arrays may have it.
_NOT_BY_DLPACK = (BufferError, RuntimeError, TypeError)


def _to_numpy(x: Any) -> Any:
    if not hasattr(x, "__dlpack__"):
        return np.asarray(x)
    try:
        return np.from_dlpack(x)
    except _NOT_BY_DLPACK as error:
        try:
            array = np.asarray(x)
        except Exception:  # whatever the framework throws: it was freed, or has no buffer
            array = None
        if array is None or array.dtype == object:  # then it is the only element of that
            raise OctetError(
                f"an array of type {type(x).__name__} cannot be read: {one_line(str(error))}"
            ) from error
        return array


def _to_namespace(namespace: Any, array: Any) -> Any:
    try:
        return namespace.from_dlpack(array)
    except _NOT_BY_DLPACK:
        return namespace.asarray(array)


def _torch_linear(
    x: Any, weight: Any, scale: Any, bias: Any, group: int, smooth: Any, dtype: Any, out: Any
) -> Any:
    functional = _TORCH.functions()
    if isinstance(scale, Real):
        scale = x.new_full((1,), check_scale(scale), dtype=functional.torch.float32)
    if dtype is not None:
        dtype = getattr(functional.torch, output_name(dtype))
    if out is not None:
        check_tensor("out", out)
        dtype = out.dtype if dtype is None else dtype
    y = functional.int8_linear(
        x, weight, scale, bias, smooth=smooth, rotation_group=group, out_dtype=dtype
    )
    if out is None:
        return y
    if out.shape != y.shape or out.dtype != y.dtype or out.device != y.device:
        wrong_value("out", out, describe(y))
    try:
        return out.copy_(y)
    except RuntimeError as error:  # elements that share memory, or a leaf with a gradient
        refuse("out", f"`out` is {describe(out)} and cannot be written: {one_line(str(error))}")
