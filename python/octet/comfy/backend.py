"""The functions that comfy-kitchen's registry calls, named as in its other backends.

Everything before the quantization and after the product uses the same operations, in the same
types, as comfy-kitchen's own portable backend, so that a call means the same here. Calls that are
not served never arrive: see rules.py.
"""

from __future__ import annotations

import torch
from torch.nn import functional

from . import four_bits, kernels, tally

# True: rows of float16 and bfloat16 are quantized in float32, as everywhere else in Octet. False:
# with each step rounded to their type, as comfy-kitchen does.
quantize_in_float32 = False


def _activated(x: torch.Tensor, act: str | None, weight: torch.Tensor | None,
               eps: float) -> torch.Tensor:
    if act is None or act == "none":
        return x
    if act == "gelu_tanh":
        return functional.gelu(x, approximate="tanh")
    if act == "rms_norm":
        return functional.rms_norm(x, (x.shape[-1],), weight.to(x.dtype), eps)
    first, second = x.chunk(2, dim=-1)
    if act == "swiglu":
        return functional.silu(first).mul_(second)
    if act == "situ":
        gate = torch.tanh(second / 4).mul_(4).mul_(torch.sigmoid(second))
        return torch.tanh(first / 25).mul_(25).mul_(gate)
    raise ValueError(f"input_act is {act!r}, expected None, gelu_tanh, swiglu, situ or rms_norm")


def _modulated(x: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    return x * (1.0 + scale.reshape((1,) * (x.ndim - 1) + (-1,)))


def _added(residual: torch.Tensor, y: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    return torch.addcmul(residual.to(y.dtype), y, scale.to(y.dtype))


def _placed(value: torch.Tensor, device: torch.device, dtype: torch.dtype) -> torch.Tensor:
    """A dense vector on that device, in that type; usually it is one already."""
    if value.dtype is not dtype or value.device != device:
        value = value.to(device=device, dtype=dtype)
    return value if value.is_contiguous() else value.contiguous()


def _linear(function: str, x: torch.Tensor, weight: torch.Tensor, weight_scale: torch.Tensor,
            bias: torch.Tensor | None, out_dtype: torch.dtype | None, convrot: bool,
            group: int, act: str | None = None) -> torch.Tensor:
    out_dtype = out_dtype or torch.bfloat16
    rotation = group if convrot else 0
    n, k = weight.shape
    device = x.device
    scales = _placed(weight_scale, device, torch.float32)
    if bias is not None:
        bias = _placed(bias, device, bias.dtype)
    # comfy-kitchen's codes of float32 are those of Octet, except for ties.
    stepwise = x.dtype is not torch.float32 and not quantize_in_float32
    y, m, kernel = kernels.linear(x, weight, scales, bias, rotation, out_dtype, stepwise)
    if kernel:  # else there was nothing to compute
        tally.served.add((function, n, k, m, x.dtype, rotation, act, kernel))
    return y


def _check_unused(function: str, unused: dict) -> None:
    """Only a call that bypasses the registry, which applies the rules, can fail here."""
    for name, value in unused.items():
        if isinstance(value, torch.Tensor) or value:
            raise TypeError(f"{function}() got {name}, which this version of Octet does not know")


def int8_linear(
    x: torch.Tensor,
    weight: torch.Tensor,
    weight_scale: torch.Tensor,
    bias: torch.Tensor | None = None,
    out_dtype: torch.dtype | None = torch.bfloat16,
    convrot: bool = False,
    convrot_groupsize: int = 256,
    input_act: str | None = None,
    input_act_weight: torch.Tensor | None = None,
    input_act_eps: float = 0.0,
    residual: torch.Tensor | None = None,
    residual_scale: torch.Tensor | None = None,
    **unused,
) -> torch.Tensor:
    """residual + residual_scale * (quantized act(x) @ weight.T * scales + bias)"""
    if unused:
        _check_unused("int8_linear", unused)
    x = _activated(x, input_act, input_act_weight, input_act_eps)
    y = _linear("int8_linear", x, weight, weight_scale, bias, out_dtype, convrot,
                convrot_groupsize, input_act)
    return y if residual is None else _added(residual, y, residual_scale)


def int8_linear_modulated(
    x: torch.Tensor,
    modulation_scale: torch.Tensor,
    weight: torch.Tensor,
    weight_scale: torch.Tensor,
    bias: torch.Tensor | None = None,
    out_dtype: torch.dtype | None = torch.bfloat16,
    convrot: bool = False,
    convrot_groupsize: int = 256,
    **unused,
) -> torch.Tensor:
    """int8_linear of x * (1 + modulation_scale), one row of scales for all tokens."""
    if unused:
        _check_unused("int8_linear_modulated", unused)
    return _linear("int8_linear_modulated", _modulated(x, modulation_scale), weight, weight_scale,
                   bias, out_dtype, convrot, convrot_groupsize)


def int8_linear_rms_modulated(
    x: torch.Tensor,
    norm_weight: torch.Tensor,
    norm_eps: float,
    modulation_scale: torch.Tensor,
    weight: torch.Tensor,
    weight_scale: torch.Tensor,
    bias: torch.Tensor | None = None,
    out_dtype: torch.dtype | None = torch.bfloat16,
    convrot: bool = False,
    convrot_groupsize: int = 256,
    **unused,
) -> torch.Tensor:
    """The same for rms_norm(x) * norm_weight."""
    if unused:
        _check_unused("int8_linear_rms_modulated", unused)
    normed = functional.rms_norm(x, (x.shape[-1],), norm_weight, norm_eps)
    return _linear("int8_linear_rms_modulated", _modulated(normed, modulation_scale), weight,
                   weight_scale, bias, out_dtype, convrot, convrot_groupsize)


def convrot_w4a4_linear(
    x: torch.Tensor,
    qweight: torch.Tensor,
    wscales: torch.Tensor,
    bias: torch.Tensor | None = None,
    convrot_groupsize: int = 256,
    quant_group_size: int = 64,
    linear_dtype: str = "int4",
    **unused,
) -> torch.Tensor:
    """int8_linear of four-bit codes; activations have eight bits."""
    if unused or linear_dtype != "int8":
        _check_unused("convrot_w4a4_linear", {**unused, "linear_dtype": linear_dtype != "int8"})
    return _linear("convrot_w4a4_linear", x, four_bits.unpack_int4(qweight), wscales, bias, x.dtype,
                   True, convrot_groupsize)


def w4a8_int8_linear(
    x: torch.Tensor,
    qdata: torch.Tensor,
    s_rel: torch.Tensor,
    s_channel: torch.Tensor,
    codebook: torch.Tensor | None = None,
    correction: torch.Tensor | None = None,
    bias: torch.Tensor | None = None,
    group_size: int = 16,
    convrot_groupsize: int = 256,
    out_dtype: torch.dtype | None = torch.bfloat16,
    input_act: str | None = None,
    input_act_weight: torch.Tensor | None = None,
    input_act_eps: float = 0.0,
    residual: torch.Tensor | None = None,
    residual_scale: torch.Tensor | None = None,
    **unused,
) -> torch.Tensor:
    """int8_linear of four- or six-bit codes with a scale for each group of columns."""
    if unused or correction is not None:
        _check_unused("w4a8_int8_linear", {**unused, "correction": correction})
    weight = four_bits.decode_grouped(qdata, s_rel, codebook, group_size)
    x = _activated(x, input_act, input_act_weight, input_act_eps)
    y = _linear("w4a8_int8_linear", x, weight, s_channel, bias, out_dtype, True, convrot_groupsize,
                input_act)
    return y if residual is None else _added(residual, y, residual_scale)
