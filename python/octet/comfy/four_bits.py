"""Weights of comfy-kitchen with four or six bits, which are multiplied in INT8.

Their codes become int8 rows in each call, with PyTorch's operations; the product is that of
int8_linear. comfy-kitchen's CUDA backend does so in a kernel, chunk by chunk: it keeps the calls
for which writing out all rows could cost more than a faster product saves.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor

from octet.torch.private import PLAIN

# Rows of x on a GPU from which on unpacking four bits, an estimated 4 bytes of memory traffic for
# each weight, is small beside the product.
FEWEST_ROWS = 1024


class Refusal(NamedTuple):
    """Why a call is declined: a parameter and a reason, without numbers that vary from call to
    call, so that few different ones are kept."""

    parameter: str
    reason: str


def unpack_int4(packed: Tensor) -> Tensor:
    """int8 [n, k] of signed codes, two to a byte, the lower half first."""
    return torch.stack(((packed << 4) >> 4, packed >> 4), dim=-1).reshape(packed.shape[0], -1)


def decode_grouped(packed: Tensor, relative: Tensor, codebook: Tensor | None,
                   group: int) -> Tensor:
    """int8 [n, k] of codes with a scale for each group of columns: level * scale, rounded.

    `packed`: rows of k / 2 bytes with two codes each, the lower half first; with six bits k / 4
    more bytes that hold the upper two bits of four codes each.
    """
    n, k = packed.shape[0], relative.shape[1] * group
    codes = packed.view(torch.uint8)
    half = codes[:, : k // 2]
    low = torch.stack((half & 15, half >> 4), dim=-1).reshape(n, k)
    bits = 8 * packed.shape[1] // k
    if bits == 6:
        top = codes[:, k // 2 :]
        low |= torch.stack([top >> shift & 3 for shift in (0, 2, 4, 6)], dim=-1).reshape(n, k) << 4
    if codebook is None:
        levels = low.float() - (1 << (bits - 1))
    else:
        levels = codebook.to(device=packed.device, dtype=torch.float32)[low.int()]
    scaled = levels.view(n, -1, group).mul_(relative.float().unsqueeze(-1))
    return scaled.view(n, k).round_().clamp_(-127, 127).to(torch.int8)


def _is_matrix(value: Any, dtypes: tuple[torch.dtype, ...]) -> bool:
    return type(value) in PLAIN and value.dim() == 2 and value.dtype in dtypes


def as_linear(function: str, arguments: Mapping[str, Any]) -> Refusal | dict[str, Any]:
    """The arguments of the int8_linear that such a call becomes, with the shape of its weight in
    place of the weight; or why there is none."""
    if function == "convrot_w4a4_linear":
        return _of_w4a4(arguments)
    return _of_w4a8(arguments)


def _of_w4a4(arguments: Mapping[str, Any]) -> Refusal | dict[str, Any]:
    get = arguments.get
    x, packed = get("x"), get("qweight")
    if get("linear_dtype", "int4") != "int8":
        return Refusal("linear_dtype", "int4: Octet multiplies in INT8")
    if not _is_matrix(packed, (torch.int8,)):
        return Refusal("qweight", "expected int8 [n, k / 2]")
    few = isinstance(x, Tensor) and x.is_cuda and x.numel() < FEWEST_ROWS * x.shape[-1]
    if few and _has_own_cuda():
        return Refusal("x", f"fewer than {FEWEST_ROWS} rows, for which 4 bits are read faster")
    n, half = packed.shape
    return {
        "x": x, "weight": packed, "shape": (n, 2 * half), "weight_scale": get("wscales"),
        "bias": get("bias"), "convrot": True, "convrot_groupsize": get("convrot_groupsize", 256),
        "out_dtype": getattr(x, "dtype", None)}


def _of_w4a8(arguments: Mapping[str, Any]) -> Refusal | dict[str, Any]:
    get = arguments.get
    x, packed, relative, group = get("x"), get("qdata"), get("s_rel"), get("group_size", 16)
    if get("correction") is not None:
        return Refusal("correction", "an offset for each group, which no INT8 product has")
    if not _is_matrix(packed, (torch.int8,)):
        return Refusal("qdata", "expected int8 [n, bytes of a row]")
    if not _is_matrix(relative, (torch.float32, torch.float8_e4m3fn)):
        return Refusal("s_rel", "expected float32 or float8_e4m3fn [n, groups]")
    if isinstance(x, Tensor) and x.is_cuda and _has_own_cuda():
        return Refusal("x", "comfy-kitchen's CUDA backend decodes such weights in a kernel")
    n, columns = packed.shape
    k = relative.shape[1] * group
    if relative.shape[0] != n or k % 16 or 8 * columns not in (4 * k, 6 * k):
        return Refusal("s_rel", "its groups do not fit the rows of the weight")
    codebook = get("codebook")
    if codebook is not None and (codebook.numel() != 16 or 8 * columns != 4 * k):
        return Refusal("codebook", "expected 16 levels, for 4 bits")
    linear = {name: value for name, value in arguments.items()
              if name not in ("qdata", "s_rel", "s_channel", "codebook", "correction",
                              "group_size")}
    return {**linear, "weight": packed, "shape": (n, k), "weight_scale": get("s_channel"),
            "convrot": True, "convrot_groupsize": get("convrot_groupsize", 256)}


def _has_own_cuda() -> bool:
    """Whether comfy-kitchen's own kernels for NVIDIA GPUs would take the call."""
    import comfy_kitchen

    return comfy_kitchen.registry.is_available("cuda")
