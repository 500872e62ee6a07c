"""ComfyUI's int8_tensorwise in a state dict: how tensors of a linear are named and described.

`weight` int8 [n, k], `weight_scale` float32 [n, 1] (other tools: one for all), `comfy_quant` with
the bytes of a JSON text, `pre_quant_scale` [k] if activations are to be multiplied by it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

import torch
from torch import Tensor

from octet import _octet
from octet._checks import describe
from octet.errors import OctetError, refuse
from octet.torch.private import PLAIN

_FORMAT = "int8_tensorwise"
_LARGEST_MARKER = 65_536


@dataclass(frozen=True)
class Marker:
    """What `comfy_quant` says about a linear."""

    group: int = 0
    full_precision: bool = False  # multiply with dequantized weights


def write_marker(marker: Marker) -> Tensor:
    """The tensor `comfy_quant`, with the bytes that `octet quantize` writes."""
    fields: dict[str, object] = {"format": _FORMAT}
    if marker.group:
        fields |= {"convrot": True, "convrot_groupsize": marker.group}
    if marker.full_precision:
        fields["full_precision_matrix_mult"] = True
    return torch.tensor(list(json.dumps(fields).encode()), dtype=torch.uint8)


def read_marker(blob: Tensor, name: str) -> Marker:
    """What the tensor says; `name` begins the error about a broken one."""
    if blob.dtype != torch.uint8 or blob.dim() != 1 or blob.numel() > _LARGEST_MARKER:
        raise OctetError(f"{name} is {describe(blob)}, expected uint8 bytes of a JSON text")
    form, group, full_precision = _octet.parse_comfy_quant(bytes(blob.tolist()), name)
    if form != _FORMAT:
        raise OctetError(
            f'{name}: "format" is {form!r}, expected "{_FORMAT}"; octet.diffusers '
            "and `octet quantize` convert other formats"
        )
    return Marker(group, full_precision)


def check_scales(scales: Tensor, name: str) -> None:
    """Checks a weight's scales: one that is not finite would silently spoil every output."""
    if scales.is_meta or not scales.numel() or type(scales) not in PLAIN:
        return  # no numbers, or none that can be asked for: torch's fake tensors
    wrong = torch.nonzero(~torch.isfinite(scales.reshape(-1)))
    if wrong.numel():
        row = int(wrong[0])
        refuse(
            name,
            f"{name}: the scale of row {row} is {float(scales.reshape(-1)[row])}, expected a "
            "finite number; the weight or its file is damaged",
        )
