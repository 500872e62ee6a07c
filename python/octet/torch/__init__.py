"""INT8 linears for PyTorch: ops, a module, and `quantize_()` for whole models."""

from __future__ import annotations

try:
    import torch as _torch
except ImportError as error:
    raise ImportError(
        "octet.torch needs PyTorch 2.4 or newer, which is not installed; try `pip install torch`"
    ) from error

_version = tuple(int(part) for part in _torch.__version__.split("+")[0].split(".")[:2])
if _version < (2, 4):
    raise ImportError(
        f"octet.torch needs PyTorch 2.4 or newer, found {_torch.__version__}; "
        "try `pip install --upgrade torch`"
    )

from octet.torch.functional import (  # noqa: E402 - after the check above
    int8_linear,
    int8_linear_codes,
    int8_linear_parts,
    int8_mm,
    quantize_rows,
)
from octet.torch.linear import Int8Linear  # noqa: E402
from octet.torch.model import dequantize_, describe_linears, fuse_, quantize_  # noqa: E402
from octet.torch.ops import same_bits_when_compiled  # noqa: E402
from octet.torch.selection import default_filter  # noqa: E402

__all__ = [
    *("Int8Linear", "default_filter", "dequantize_", "describe_linears", "fuse_", "int8_linear"),
    *("int8_linear_codes", "int8_linear_parts", "int8_mm", "quantize_", "quantize_rows"),
    "same_bits_when_compiled",
]
