"""The ops as functions, which bypass torch's dispatcher where nothing in it would act."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.compiler import is_compiling

from octet._checks import check_parts, check_tensor, refuse_output, wrong_value
from octet.errors import refuse_type, shown
from octet.torch.ops import DifferentiableLinear  # and registers the ops
from octet.torch.private import is_plain, is_transformed
from octet.torch.runtime import linear, rows_of


def int8_linear(
    x: Tensor,
    weight: Tensor,
    weight_scale: Tensor,
    bias: Tensor | None = None,
    *,
    smooth: Tensor | None = None,
    rotation_group: int = 0,
    gate_up: bool = False,
    out_dtype: torch.dtype | None = None,
) -> Tensor:
    """y [..., n] = x [..., k] times the rows of `weight` (int8 [n, k]), + bias.

    Rows of x are multiplied by `smooth` [k], or rotated within groups of 4, 16, 64, 256 or 1024,
    and then quantized. `weight_scale`: one, [n] or [n, 1]. `gate_up`: the first half of the rows is
    a gate, y [..., n / 2] = silu(gate) * up.
    """
    if is_compiling() or not is_plain(x) or getattr(bias, "requires_grad", False):
        _check_tensors(x=x, weight=weight, weight_scale=weight_scale, bias=bias, smooth=smooth)
        _check_options(rotation_group, gate_up, out_dtype)
        if not is_compiling() and isinstance(x, Tensor) and x.is_nested:
            options = {"rotation_group": rotation_group, "gate_up": gate_up}
            options |= {"smooth": smooth, "out_dtype": out_dtype}
            return _of_nested(x, partial(int8_linear, **options), weight, weight_scale, bias)
        if not is_compiling() and is_transformed():
            return _transformed(
                *(x, (weight, weight_scale), () if bias is None else (bias,), smooth),
                rotation_group=rotation_group,
                gate_up=gate_up,
                out_dtype=out_dtype,
            )
        return torch.ops.octet.int8_linear(
            *(x, weight, weight_scale, bias),
            smooth=smooth,
            rotation_group=rotation_group,
            gate_up=gate_up,
            out_dtype=out_dtype,
        )
    tensors = (weight, weight_scale) if bias is None else (weight, weight_scale, bias)
    if smooth is not None:
        tensors += (smooth,)
    rows = rows_of(tensors, (1, bias is not None, rotation_group, gate_up))
    return linear(x, rows, out_dtype)


def int8_linear_parts(
    x: Tensor,
    weights: Sequence[Tensor],
    weight_scales: Sequence[Tensor],
    biases: Sequence[Tensor] = (),
    *,
    smooth: Tensor | None = None,
    rotation_group: int = 0,
    gate_up: bool = False,
    out_dtype: torch.dtype | None = None,
) -> Tensor:
    """int8_linear() with several weights, whose outputs lie side by side in y.

    One product, without copies if the weights (and scales, and biases) lie one after the other in
    memory. Either all of them have a bias, or none.
    """
    check_parts(weights, weight_scales, biases)
    trained = True in [getattr(bias, "requires_grad", False) for bias in biases]
    if is_compiling() or not is_plain(x) or trained:
        _check_tensors(x=x, smooth=smooth)
        for weight, weight_scale in zip(weights, weight_scales):
            _check_tensors(weight=weight, weight_scale=weight_scale)
        for bias in biases:
            _check_tensors(bias=bias)
        _check_options(rotation_group, gate_up, out_dtype)
        if not is_compiling() and isinstance(x, Tensor) and x.is_nested:
            options = {"rotation_group": rotation_group, "gate_up": gate_up}
            options |= {"smooth": smooth, "out_dtype": out_dtype}
            joined = partial(int8_linear_parts, **options)
            return _of_nested(x, joined, weights, weight_scales, biases)
        if not is_compiling() and is_transformed():
            return _transformed(
                *(x, (*weights, *weight_scales), biases, smooth),
                rotation_group=rotation_group,
                gate_up=gate_up,
                out_dtype=out_dtype,
            )
        return torch.ops.octet.int8_linear_parts(
            *(x, weights, weight_scales, biases),
            smooth=smooth,
            rotation_group=rotation_group,
            gate_up=gate_up,
            out_dtype=out_dtype,
        )
    tensors = (*weights, *weight_scales, *biases)
    if smooth is not None:
        tensors += (smooth,)
    rows = rows_of(tensors, (len(weights), len(biases) > 0, rotation_group, gate_up))
    return linear(x, rows, out_dtype)


def quantize_rows(
    x: Tensor, rotation_group: int = 0, smooth: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Codes in x's shape and a float32 scale for each row: scale = amax / 127."""
    _check_tensors(x=x, smooth=smooth)
    _check_options(rotation_group, False, None)
    return torch.ops.octet.quantize_rows(x, smooth, rotation_group)


def int8_linear_codes(
    codes: Tensor,
    scales: Tensor,
    weight: Tensor,
    weight_scale: Tensor,
    bias: Tensor | None = None,
    *,
    gate_up: bool = False,
    out_dtype: torch.dtype = torch.bfloat16,
) -> Tensor:
    """int8_linear() for rows from quantize_rows()."""
    _check_tensors(codes=codes, scales=scales, weight=weight, weight_scale=weight_scale, bias=bias)
    _check_options(0, gate_up, out_dtype)
    if out_dtype is None:
        refuse_output(out_dtype)
    return torch.ops.octet.int8_linear_codes(
        codes, scales, weight, weight_scale, bias, gate_up, out_dtype
    )


def int8_mm(a: Tensor, b: Tensor) -> Tensor:
    """a [m, k] times b [k, n] in int8, exactly, as int32, like torch._int_mm."""
    _check_tensors(a=a, b=b)
    return torch.ops.octet.int8_mm(a, b)


def _of_nested(x: Tensor, function: Callable[..., Tensor], *weights: Any) -> Tensor:
    """The rows of all sequences in one product. torch's encoder makes nested tensors of padded
    batches."""
    if x.layout is torch.jagged:
        y = function(x.values(), *weights)
        return torch.nested.nested_tensor_from_jagged(y, x.offsets(), x.lengths())
    parts = x.unbind()
    rows = torch.cat([part.reshape(-1, part.shape[-1]) for part in parts])
    made = function(rows, *weights).split([math.prod(part.shape[:-1]) for part in parts])
    return torch.nested.as_nested_tensor(
        [y.reshape(*part.shape[:-1], y.shape[-1]) for y, part in zip(made, parts)]
    )


def _transformed(
    x: Tensor,
    rows: Sequence[Tensor],
    biases: Sequence[Tensor],
    smooth: Tensor | None,
    **options: Any,
) -> Tensor:
    """Under torch.func, whose transforms do not reach the gradients of an op."""
    parts = len(rows) // 2
    return DifferentiableLinear.apply(x, smooth, options, parts, *rows, *biases)


# For calls of ops, which torch would refuse with its whole signature.


def _check_tensors(**arguments: Tensor | None) -> None:
    if is_compiling():
        return
    for name, value in arguments.items():
        if value is None and name in ("bias", "smooth"):
            continue
        if not hasattr(value, "__torch_function__"):  # torch.fx has stand-ins with it
            check_tensor(name, value)
        elif isinstance(value, Tensor) and value.layout not in (torch.strided, torch.jagged):
            wrong_value(name, value, "a dense one; call to_dense()")


def _check_options(rotation_group: int, gate_up: bool, out_dtype: torch.dtype | None) -> None:
    if is_compiling():
        return
    for name, value, kind, words in (
        ("rotation_group", rotation_group, int, "a whole number"),
        ("gate_up", gate_up, bool, "True or False"),
        ("out_dtype", out_dtype, (torch.dtype, type(None)), "float32, bfloat16 or float16"),
    ):
        if not isinstance(value, kind):
            refuse_type(name, f"`{name}` is {shown(value)}; expected {words}")

