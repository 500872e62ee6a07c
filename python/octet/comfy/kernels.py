"""The INT8 linear on tensors that belong to ComfyUI.

Nothing is kept of a weight between calls, and nothing put on its tensor: ComfyUI moves weights, and
writes others into the same memory. A GPU reads the rows where they are; on a CPU they are packed
for each call, which its product outweighs beyond a few rows, and comfy-kitchen transposes them.
"""

from __future__ import annotations

import logging
from functools import partial

import torch
from torch import Tensor

from octet import _octet
from octet.report import note_run
from octet.torch.runtime import DTYPES, current_stream, engine, matrix

_log = logging.getLogger(__name__)
_reasons: dict[torch.device, str | None] = {}  # why a device is not served; None: it is


def why_not(device: torch.device) -> str | None:
    """Why linears on this device are left to others; None: they are not."""
    try:
        return _reasons[device]
    except KeyError:
        try:
            reason = _reasons[device] = _find_reason(device)
        except _octet.OutOfMemory as error:  # the next call may find more
            return str(error)
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
    """Rows may be apart, their elements may not; and the distance of rows."""
    stride, step = weight.stride()
    if step == 1 and stride >= weight.shape[1]:
        return weight, stride
    return weight.contiguous(), weight.shape[1]


def linear(x: Tensor, weight: Tensor, scales: Tensor, bias: Tensor | None, rotation: int,
           out_dtype: torch.dtype, stepwise: bool) -> tuple[Tensor, int, str]:
    """x [..., k], rotated and quantized by rows (`stepwise`: each step rounded to their type),
    times the weight; the number of rows, and the kernel."""
    weight, weight_stride = _plain(weight)
    n, k = weight.shape
    y = x.new_empty((*x.shape[:-1], n), dtype=out_dtype)
    x, m, stride = matrix(x, k)
    if not m or not n:
        return y, m, ""
    index = x.get_device()
    on, stream, memory_bytes = engine(index), 0, 0
    plain = _octet.PlainWeight(
        weight.data_ptr(), n, k, weight_stride, scales.data_ptr(), scales.numel(),
        0 if bias is None else bias.data_ptr(), 0 if bias is None else DTYPES[bias.dtype], 0,
        rotation, False)
    if index >= 0:
        stream, memory_bytes = current_stream(index), _octet.linear_memory(on, plain, m)
    allocate = partial(torch.empty, dtype=torch.uint8, device=x.device)
    memory = allocate(memory_bytes)
    kernel = _octet.linear(
        on, stream, memory.data_ptr(), memory_bytes, allocate, plain, x.data_ptr(), stride,
        DTYPES[x.dtype], m, y.data_ptr(), n, DTYPES[out_dtype], stepwise)
    note_run(kernel, m, n, k)
    return y, m, kernel
