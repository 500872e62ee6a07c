"""INT8 linears for PyTorch: ops, a module, and `quantize_()` for whole models."""

from __future__ import annotations

from octet._checks import check_framework

check_framework("octet.torch", "PyTorch", "torch", (2, 4))

# ruff: noqa: E402 - after the check above
from octet.torch.functional import int8_linear, int8_linear_codes, int8_linear_parts
from octet.torch.functional import int8_mm, quantize_rows
from octet.torch.linear import Int8Linear
from octet.torch.model import dequantize_, describe_linears, fuse_, quantize_
from octet.torch.ops import same_bits_when_compiled
from octet.torch.selection import default_filter

__all__ = [
    *("Int8Linear", "default_filter", "dequantize_", "describe_linears", "fuse_", "int8_linear"),
    *("int8_linear_codes", "int8_linear_parts", "int8_mm", "quantize_", "quantize_rows"),
    "same_bits_when_compiled",
]
