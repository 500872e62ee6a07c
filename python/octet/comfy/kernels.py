"""The INT8 linear on tensors that belong to ComfyUI.

Nothing about a weight is kept between calls, and nothing is put on its tensor: ComfyUI moves
weights, and writes others into the same memory. A GPU reads the rows where they are; on a CPU they
are packed in each call, which costs little beyond a few rows; comfy-kitchen transposes them there.
"""

from __future__ import annotations

import logging

import torch
from torch import Tensor

from octet import _octet
from octet.report import note_run
from octet.torch.runtime import DTYPES, engine, multiply

_log = logging.getLogger(__name__)
_reasons: dict[torch.device, str | None] = {}  # why a device is not served; None: it is


def why_not(device: torch.device) -> str | None:
    """Why linears on this device are left to other backends; None: they are served."""
    try:
        return _reasons[device]
    except KeyError:
        try:
            reason = _reasons[device] = _find_reason(device)
        except _octet.OutOfMemory:  # the next call may find more
            return "too little memory is free to open the device"
        if reason is not None:
            _log.warning("Octet does not serve linears on %s: %s", device, reason)
        return reason


def _find_reason(device: torch.device) -> str | None:
    if device.type not in ("cpu", "cuda"):
        return f"on {device.type}, expected a CPU or an NVIDIA GPU"
    try:
        opened = engine(-1 if device.type == "cpu" else device.index)
    except _octet.OutOfMemory:
        raise
    except RuntimeError as error:  # no CUDA in this build, an old GPU
        return str(error)
    # Its last word is the kernel. Portable C++ would be slower than what comfy-kitchen runs.
    if device.type == "cpu" and opened.description.split()[-1].startswith("scalar"):
        return "this CPU has no int8 instructions that Octet knows"
    return None


def _plain(weight: Tensor) -> tuple[Tensor, int]:
    """A matrix whose rows may be apart but are dense, and the stride of its rows."""
    stride, step = weight.stride()
    if step == 1 and stride >= weight.shape[1]:
        return weight, stride
    return weight.contiguous(), weight.shape[1]


def linear(x: Tensor, weight: Tensor, scales: Tensor, bias: Tensor | None, rotation: int,
           out_dtype: torch.dtype, stepwise: bool) -> tuple[Tensor, int, str]:
    """x [..., k], rotated and quantized by rows (`stepwise`: each step rounded to their type),
    times the weight; the number of rows, and the kernel."""
    weight, stride = _plain(weight)
    (n, k), index = weight.shape, x.get_device()
    plain = _octet.PlainWeight(
        weight.data_ptr(), n, k, stride, scales.data_ptr(), scales.numel(),
        0 if bias is None else bias.data_ptr(), 0 if bias is None else DTYPES[bias.dtype], 0,
        rotation, False)
    y, m, kernel = multiply(engine(index), plain, index, x, x.shape, n, out_dtype, stepwise)
    if kernel:
        note_run(kernel, m, n, k)
    return y, m, kernel
