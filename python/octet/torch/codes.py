"""Calls on codes: rows quantized by themselves, products of codes, torch._int_mm."""

from __future__ import annotations

import torch
from torch import Tensor

from octet import _checks as checks
from octet import _octet
from octet.report import note_run
from octet.torch.private import current_stream
from octet.torch.runtime import Rows, allocator, empty_linear, engine_of, matrix, rows_of


def quantize_rows(
    x: Tensor, smooth: Tensor | None = None, rotation_group: int = 0
) -> tuple[Tensor, Tensor]:
    """Codes in x's shape, and a scale for each row."""
    x_dtype = checks.check_floating("x", x)
    if not x.dim():
        checks.wrong_value("x", x, "[..., inputs]")
    k = x.shape[-1]
    checks.check_rotation(rotation_group, k)
    if smooth is not None:
        checks.check_floating("smooth", smooth)
        checks.check_device("smooth", smooth, x.device)
        checks.check_vector("smooth", smooth, k)
        if rotation_group:
            checks.wrong_value("smooth", smooth, "none with a rotation")
        smooth = smooth.detach().float().contiguous()
    codes = torch.empty(x.shape, dtype=torch.int8, device=x.device)
    scales = torch.empty(x.shape[:-1], dtype=torch.float32, device=x.device)
    if not x.numel():
        return codes, scales.zero_()
    engine = engine_of(x)
    rows, m, stride = matrix(x, k)
    _octet.quantize_rows(
        *(engine, current_stream(x.get_device()) if x.is_cuda else 0),
        *(checks.check_memory("x", rows), stride, x_dtype, m, k),
        *(0 if smooth is None else smooth.data_ptr(), rotation_group),
        *(codes.data_ptr(), k, scales.data_ptr()),
    )
    return codes, scales


def _multiply(codes: Tensor, scales: int, rows: Rows, y: Tensor, y_dtype: int) -> str:
    """Codes [m, k] times the weight, into y."""
    codes, m, stride = matrix(codes, rows.k)
    address = checks.check_memory("codes", codes)
    memory_bytes = stream = 0
    if codes.is_cuda:
        memory_bytes = _octet.linear_memory(rows.engine, rows.weight, m, True)
        stream = current_stream(rows.index)
    allocate = allocator(rows.index)
    memory = allocate(memory_bytes)
    return _octet.linear_int8(
        *(rows.engine, stream, memory.data_ptr(), memory_bytes, allocate, rows.weight),
        *(address, stride, scales, m, y.data_ptr(), rows.outputs, y_dtype),
    )


def linear_codes(
    codes: Tensor,
    scales: Tensor,
    weight: Tensor,
    weight_scale: Tensor,
    bias: Tensor | None,
    gate_up: bool,
    out_dtype: torch.dtype,
) -> Tensor:
    """The linear for rows that are already quantized; codes are never -128."""
    checks.check_int8("codes", codes)
    y_dtype = checks.check_output(out_dtype)
    biases = () if bias is None else (bias,)
    rows = rows_of((weight, weight_scale, *biases), (1, bool(biases), 0, gate_up))
    if not codes.dim() or codes.shape[-1] != rows.k:
        checks.wrong_value("codes", codes, f"[..., {rows.k}], the inputs of the weight")
    checks.check_device("weight", weight, codes.device)
    checks.check_tensor("scales", scales)
    checks.check_device("scales", scales, codes.device)
    if scales.dtype != torch.float32 or scales.numel() * rows.k != codes.numel():
        checks.wrong_value("scales", scales, "float32, one for each row of `codes`")
    if not rows.n or not rows.k:
        return empty_linear(codes, rows, out_dtype)
    y = torch.empty(codes.shape[:-1] + (rows.outputs,), dtype=out_dtype, device=codes.device)
    if codes.numel():
        dense = scales.contiguous()
        address = checks.check_memory("scales", dense)
        rows.ran(_multiply(codes, address, rows, y, y_dtype), codes.numel() // rows.k)
    return y


def mm(a: Tensor, b: Tensor) -> Tensor:
    """a [m, k] times b [k, n], exact in int32: torch._int_mm's convention and bits."""
    checks.check_int8("a", a, "2 dimensions")
    checks.check_int8("b", b, "2 dimensions")
    checks.check_device("b", b, a.device)
    (m, k), n = a.shape, b.shape[1]
    if b.shape[0] != k:
        checks.wrong_value("b", b, f"[{k}, columns], as `a` is {list(a.shape)}")
    checks.check_columns("a", k)
    sums = torch.empty((m, n), dtype=torch.int32, device=a.device)
    if not sums.numel() or not k:
        return sums.zero_()
    weight = b.t().contiguous()
    ones = torch.ones(n, dtype=torch.float32, device=a.device)
    row_ones = torch.ones(m, dtype=torch.float32, device=a.device)
    rows = Rows((weight, ones), (1, False, 0, False))

    def multiply(codes: Tensor, into: Tensor) -> None:
        kernel = _multiply(codes, row_ones.data_ptr(), rows, into, _octet.I32)
        note_run(kernel, m, n, k)

    # Kernels of CPUs take activations from -127 up; those of GPUs take all of int8.
    if a.is_cpu and a.min() == -128:
        rest = torch.empty_like(sums)
        multiply(a.clamp(min=-127), sums)
        multiply(-(a == -128).to(torch.int8), rest)
        return sums.add_(rest)
    multiply(a, sums)
    return sums
