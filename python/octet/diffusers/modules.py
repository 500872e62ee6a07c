"""INT8 linears in place of a model's own: made without memory, filled tensor by tensor."""

from __future__ import annotations

import torch
from torch import nn

from octet.torch import Int8Linear
from octet.torch.recipes import Recipe


def replace_modules(model: nn.Module, made: dict[nn.Module, nn.Module]) -> None:
    """In all places where they are used, of which a module may have several."""
    for parent in list(model.modules()):
        for name, child in parent._modules.items():
            if child in made:
                parent._modules[name] = made[child]


def put(module: nn.Module, name: str, value: torch.Tensor) -> None:
    """In place of a parameter or buffer, whatever its type and device."""
    if name in module._parameters:
        module._parameters[name] = nn.Parameter(value, requires_grad=False)
    else:
        module._buffers[name] = value


def empty_like(linear: nn.Linear, recipe: Recipe | str) -> Int8Linear:
    """An INT8 linear of its sizes, without memory."""
    return Int8Linear(
        *(linear.in_features, linear.out_features, linear.bias is not None),
        device="meta",
        dtype=linear.weight.dtype,
        recipe=recipe,
    ).train(linear.training)


def from_codes(
    codes: torch.Tensor,
    scales: torch.Tensor,
    bias: torch.Tensor | None,
    *,
    rotation_group: int,
    smooth: torch.Tensor | None,
    dtype: torch.dtype,
) -> Int8Linear:
    """An INT8 linear of codes that are taken as they are."""
    rows, k = codes.shape
    recipe = Recipe(rotation_group)
    made = Int8Linear(k, rows, bias is not None, device="meta", dtype=dtype, recipe=recipe)
    put(made, "weight", codes)
    put(made, "weight_scale", scales.reshape(-1, 1))
    put(made, "pre_quant_scale", smooth)
    if bias is not None:
        put(made, "bias", bias)
    return made


def from_weight(
    weight: torch.Tensor, bias: torch.Tensor | None, recipe: str, dtype: torch.dtype
) -> Int8Linear:
    """An INT8 linear of a weight that is quantized here."""
    rows, k = weight.shape
    made = Int8Linear(k, rows, bias is not None, device="meta", dtype=dtype, recipe=recipe)
    made.quantize_weight(weight)
    if bias is not None:
        put(made, "bias", bias)
    return made


def plain_linear(weight: torch.Tensor, bias: torch.Tensor | None) -> nn.Linear:
    rows, k = weight.shape
    made = nn.Linear(k, rows, bias=bias is not None, device="meta")
    put(made, "weight", weight)
    if bias is not None:
        put(made, "bias", bias)
    return made
