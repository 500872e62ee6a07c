"""The rotation of ConvRot in torch, to turn a weight back into floating point.

The engine rotates activations and weights itself; this is for what only torch can do, such as
gradients and dequantized weights, and follows the same definition.
"""

from __future__ import annotations

import torch
from torch import Tensor


def rotate(x: Tensor, group: int) -> Tensor:
    """x H within groups of the last dimension, in float32; H is symmetric and its own inverse.

    With the engine's sums, in its order: the same bits.
    """
    shape, x = x.shape, x.float()
    distance, factor = 1, 1.0
    while distance < group:
        x = x.reshape(*shape[:-1], shape[-1] // (4 * distance), 4, distance)
        a, b, c, d = x.unbind(-2)
        s, t, u, v = a + b, a - b, c + d, c - d
        x = torch.stack((s + v, s - v, u + t, u - t), dim=-2)
        distance, factor = 4 * distance, 0.5 * factor
    return x.reshape(shape) * factor


def dequantize_rows(
    weight: Tensor,
    weight_scale: Tensor,
    smooth: Tensor | None,
    rotation_group: int,
    dtype: torch.dtype,
) -> Tensor:
    """The weight in floating point, for activations without a transform."""
    values = weight.float() * weight_scale.float().reshape(-1, 1)
    if rotation_group:
        values = rotate(values, rotation_group)
    if smooth is not None:
        values = values * smooth.float()
    return values.to(dtype)
