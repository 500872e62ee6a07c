"""INT8 linears in place of a model's own: made without memory, filled tensor by tensor."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from octet._recipes import Recipe
from octet.torch import Int8Linear


def replace_modules(model: nn.Module, made: dict[nn.Module, nn.Module]) -> None:
    """In all places where they are used; a module may have several."""
    for parent in list(model.modules()):
        for name, child in parent._modules.items():
            if child in made:
                parent._modules[name] = made[child]


def put(module: nn.Module, name: str, value: Tensor | None) -> None:
    """Replaces a parameter or buffer, whatever its type and device."""
    if name not in module._parameters:
        module._buffers[name] = value
    elif value is not None:
        module._parameters[name] = nn.Parameter(value, requires_grad=False)


def empty_like(linear: nn.Linear, recipe: Recipe | str) -> Int8Linear:
    """An INT8 linear of the same size, without memory."""
    return _empty(linear.weight, linear.bias, linear.weight.dtype, recipe).train(linear.training)


def _empty(
    weight: Tensor, bias: Tensor | None, dtype: torch.dtype, recipe: Recipe | str
) -> Int8Linear:
    rows, k = weight.shape
    return Int8Linear(k, rows, bias is not None, device="meta", dtype=dtype, recipe=recipe)


def from_codes(
    codes: Tensor,
    scales: Tensor,
    bias: Tensor | None,
    *,
    rotation_group: int,
    smooth: Tensor | None,
    dtype: torch.dtype,
) -> Int8Linear:
    """An INT8 linear from codes that are taken as they are."""
    made = _empty(codes, bias, dtype, Recipe(rotation_group))
    put(made, "weight", codes)
    put(made, "weight_scale", scales.reshape(-1, 1))
    put(made, "pre_quant_scale", smooth)
    put(made, "bias", bias)
    return made


def from_weight(
    weight: Tensor, bias: Tensor | None, recipe: str, dtype: torch.dtype
) -> Int8Linear:
    """An INT8 linear from a weight that is quantized here."""
    made = _empty(weight, bias, dtype, recipe)
    made.quantize_weight(weight)
    put(made, "bias", bias)
    return made


def plain_linear(weight: Tensor, bias: Tensor | None) -> nn.Linear:
    rows, k = weight.shape
    made = nn.Linear(k, rows, bias=bias is not None, device="meta")
    put(made, "weight", weight)
    put(made, "bias", bias)
    return made
