"""The INT8 linear, defined in plain torch: what every kernel returns, to the bit."""

from __future__ import annotations

import torch
from torch import Tensor


def hadamard(group: int) -> Tensor:
    """The rotation of a group: one sign for each pair of base-4 digits, -1 where they add to 3."""
    digit = 1 - 2 * torch.eye(4, dtype=torch.float64).flip(0)
    matrix = torch.ones(1, 1, dtype=torch.float64)
    while matrix.shape[0] < group:
        matrix = torch.kron(digit, matrix)
    return matrix / group**0.5


def rotated(x: Tensor, group: int) -> Tensor:
    """In float64, so that float32 is off by its own rounding alone."""
    if not group:
        return x.double()
    parts = x.double().reshape(*x.shape[:-1], -1, group)
    return (parts @ hadamard(group)).reshape(x.shape)


def quantized(x: Tensor, smooth: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Codes and scales of rows; x in any dtype, without a rotation."""
    wide = x.float() if smooth is None else x.float() * smooth
    amax = wide.abs().amax(-1)
    finite = torch.isfinite(wide).all(-1)
    inverse = torch.tensor(127.0) / amax  # 127 / amax would multiply by the reciprocal
    inverse = torch.where(torch.isfinite(inverse), inverse, 0)
    scales = torch.where(inverse > 0, amax / 127, 0)
    codes = torch.where(finite[..., None], torch.round(wide * inverse[..., None]), 0)
    return codes.to(torch.int8), torch.where(finite, scales, torch.nan)


def product(
    codes: Tensor,
    scales: Tensor,
    weight: Tensor,
    weight_scale: Tensor,
    bias: Tensor | None = None,
) -> Tensor:
    """In float32, before it is rounded to the output's dtype."""
    sums = (codes.double() @ weight.double().t()).float()  # exact: far below 2^53
    y = (sums * scales[..., None]) * weight_scale.reshape(-1)
    return y if bias is None else y + bias.float()


def linear(
    x: Tensor,
    weight: Tensor,
    weight_scale: Tensor,
    bias: Tensor | None = None,
    smooth: Tensor | None = None,
) -> Tensor:
    y = product(*quantized(x, smooth), weight, weight_scale, bias)
    return y.to(x.dtype)


def random_codes(rows: int, columns: int, low: int = -127) -> Tensor:
    return torch.randint(low, 128, (rows, columns), dtype=torch.int8)
