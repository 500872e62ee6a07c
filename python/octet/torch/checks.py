"""What the ops ask of tensors, said in one sentence where it is not so."""

from __future__ import annotations

from typing import Any, NoReturn

import torch

from octet._linear import check_rotation  # noqa: F401 - for tensors as for other arrays
from octet._octet import BF16, F16, F32
from octet.errors import refuse, refuse_type

# Activations, outputs and biases.
DTYPES = {torch.float32: F32, torch.bfloat16: BF16, torch.float16: F16}


def describe(value: Any) -> str:
    """A tensor in words: "torch.int8 [3, 4] on cpu"."""
    if not isinstance(value, torch.Tensor):
        return f"{type(value).__name__} {value!r}"
    return f"{value.dtype} {list(value.shape)} on {value.device}"


def wrong_type(name: str, expected: str, got: Any) -> NoReturn:
    refuse_type(name, f"`{name}` is {describe(got)}; expected {expected}")


def wrong_value(name: str, expected: str, got: Any) -> NoReturn:
    refuse(name, f"`{name}` is {describe(got)}; expected {expected}")


def check_tensor(name: str, value: Any) -> None:
    if not isinstance(value, torch.Tensor):
        wrong_type(name, "a tensor", value)


def check_floating(name: str, value: torch.Tensor) -> int:
    """The engine's number of its dtype."""
    check_tensor(name, value)
    code = DTYPES.get(value.dtype)
    if code is None:
        wrong_type(name, "float32, bfloat16 or float16", value)
    return code


def check_int8(name: str, value: torch.Tensor, dimensions: int | None = None) -> None:
    check_tensor(name, value)
    if value.dtype != torch.int8:
        wrong_type(name, "int8", value)
    if dimensions is not None and value.dim() != dimensions:
        wrong_value(name, f"{dimensions} dimensions", value)


def check_device(name: str, value: torch.Tensor, device: torch.device) -> None:
    if value.device != device:
        wrong_value(name, f"it on {device}; all tensors must be on one device", value)


def check_memory(name: str, value: torch.Tensor) -> int:
    """Its address; a tensor with elements and no memory was freed."""
    address = value.data_ptr()
    if not address and value.numel():
        refuse(
            name, f"`{name}` is {describe(value)} and has no memory; it was freed, or never filled"
        )
    return address


def check_parts(weights: Any, weight_scales: Any, biases: Any) -> None:
    """As many scales as weights, and as many biases or none."""
    parts, scales, added = len(weights), len(weight_scales), len(biases)
    if not parts or scales != parts or added not in (0, parts):
        refuse(
            "weights",
            f"there are {parts} `weights`, {scales} `weight_scales` and {added} `biases`; expected "
            "as many scales as weights, at least one, and as many biases or none",
        )


def check_output(out_dtype: torch.dtype) -> int:
    code = DTYPES.get(out_dtype)
    if code is None:
        refuse_type(
            "out_dtype", f"`out_dtype` is {out_dtype}; expected float32, bfloat16 or float16"
        )
    return code
