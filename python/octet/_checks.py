"""Checks of arrays and tensors, each with one sentence for its error.

No framework is imported here: an array is anything with a dtype and a shape.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Hashable
from functools import cache
from typing import Any, NoReturn

from octet._octet import BF16, F16, F32
from octet.errors import one_line, refuse, refuse_type, shown

FLOATS = {"float32": F32, "bfloat16": BF16, "float16": F16}  # activations, outputs and biases
_FLOATS_IN_WORDS = "float32, bfloat16 or float16"
ROTATION_GROUPS = (4, 16, 64, 256, 1024)
MOST_COLUMNS = 132_104  # whose products certainly fit into an int32
_LARGEST_FLOAT32 = 3.4028235e38


def is_tensor(value: Any) -> bool:
    """Whether it is torch's, without importing torch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, getattr(torch, "Tensor", ()))


@cache
def dtype_name(dtype: Any) -> str:
    """Without the framework's prefix: "bfloat16"."""
    return getattr(dtype, "name", None) or str(dtype).removeprefix("torch.")


def describe(value: Any) -> str:
    """In words: "torch.int8 [3, 4] on cpu" for a tensor, "int8 [3, 4]" for another array."""
    if is_tensor(value):
        return f"{value.dtype} {list(value.shape)} on {value.device}"
    if not hasattr(value, "dtype"):
        return shown(value)
    return f"{dtype_name(value.dtype)} {list(value.shape)}"


def wrong_type(name: str, value: Any, expected: str) -> NoReturn:
    refuse_type(name, f"`{name}` is {describe(value)}; expected {expected}")


def wrong_value(name: str, value: Any, expected: str) -> NoReturn:
    refuse(name, f"`{name}` is {describe(value)}; expected {expected}")


def check_tensor(name: str, value: Any) -> None:
    if not is_tensor(value):
        refuse_type(name, f"`{name}` is {shown(value)}; expected a tensor")


def check_floating(name: str, value: Any) -> int:
    """The engine's number for its dtype."""
    code = FLOATS.get(dtype_name(getattr(value, "dtype", None)))
    if code is None:
        wrong_type(name, value, _FLOATS_IN_WORDS if hasattr(value, "dtype") else "a tensor")
    return code


def check_int8(name: str, value: Any, matrix: str = "") -> None:
    """`matrix`: the caller's words for "it has two dimensions"."""
    if dtype_name(getattr(value, "dtype", None)) != "int8":
        wrong_type(name, value, "int8" if hasattr(value, "dtype") else "a tensor")
    if matrix and value.ndim != 2:
        wrong_value(name, value, matrix)


def check_columns(name: str, columns: int) -> None:
    if columns > MOST_COLUMNS:
        refuse(
            name,
            f"`{name}` has {columns} columns; expected at most {MOST_COLUMNS}, since an int32 sum "
            "of more could overflow",
        )


def check_scales(scale: Any, n: int) -> None:
    """Of the rows of a weight."""
    if tuple(scale.shape) not in ((), (1,), (1, 1), (n,), (n, 1)):
        wrong_value("weight_scale", scale, f"one, [{n}] or [{n}, 1]")


def check_scale(scale: Any) -> float:
    """One number for all rows, which float32 has to hold."""
    if not abs(scale) <= _LARGEST_FLOAT32:  # of Python, and of any size; or a NaN
        said = "out of range" if isinstance(scale, int) else one_line(str(scale))
        refuse("weight_scale", f"`weight_scale` is {said}; expected a finite number of float32")
    return float(scale)


def check_vector(name: str, value: Any, count: int) -> None:
    if value.shape != (count,):
        wrong_value(name, value, f"[{count}]")


def check_device(name: str, value: Any, device: Any) -> None:
    if value.device != device:
        wrong_value(name, value, f"it on {device}; all tensors must be on one device")


def check_memory(name: str, value: Any) -> int:
    """Its address; a tensor with elements but no memory was freed."""
    address: int = value.data_ptr()
    if not address and value.numel():
        refuse(
            name, f"`{name}` is {describe(value)} and has no memory; it was freed, or never filled"
        )
    return address


def check_parts(weights: Any, weight_scales: Any, biases: Any) -> None:
    """As many scales as weights, and as many biases or none."""
    for name, given in (("weights", weights), ("weight_scales", weight_scales), ("biases", biases)):
        if not isinstance(given, (list, tuple)):
            refuse_type(name, f"`{name}` is {shown(given)}; expected a list of tensors")
    parts, scales, added = len(weights), len(weight_scales), len(biases)
    if not parts or scales != parts or added not in (0, parts):
        refuse(
            "weights",
            f"there are {parts} `weights`, {scales} `weight_scales` and {added} `biases`; expected "
            "at least one weight, as many scales, and as many biases or none",
        )


def check_output(dtype: Any) -> int:
    """The engine's number for an output's dtype."""
    code = FLOATS.get(dtype_name(dtype)) if isinstance(dtype, Hashable) else None
    if code is None:
        refuse_output(dtype)
    return code


def refuse_output(given: Any) -> NoReturn:
    said = given.__name__ if isinstance(given, type) else one_line(str(given))
    said = type(given).__name__ if said.startswith("<") else said
    refuse_type("out_dtype", f"`out_dtype` is {said}; expected {_FLOATS_IN_WORDS}")


def output_name(given: Any) -> str:
    """The name of an output's dtype, which is a word, or a dtype of any framework."""
    name = given if isinstance(given, str) else getattr(given, "name", None)
    name = name or getattr(given, "__name__", None) or str(given)
    name = name.removeprefix("torch.")
    if name not in FLOATS:
        refuse_output(given)
    return name


def fits_rotation(group: Any, k: int) -> bool:
    return isinstance(group, int) and group in ROTATION_GROUPS and k % group == 0


def check_rotation(group: Any, k: int) -> None:
    if not isinstance(group, int) or (group and not fits_rotation(group, k)):
        refuse(
            "rotation_group",
            f"`rotation_group` is {one_line(repr(group))}; expected 0, or one of 4, 16, 64, 256 "
            f"and 1024 that divides the {k} columns",
        )


def check_framework(
    ours: str, name: str, package: str, least: tuple[int, int], to_install: str = ""
) -> None:
    """Checks that it can be imported and is new enough for this module of ours."""
    needs = f"{ours} needs {name} {least[0]}.{least[1]} or newer"
    try:
        version: str = importlib.import_module(package).__version__
    except ImportError as error:
        raise ImportError(
            f"{needs}, which is not installed; try `pip install {to_install or package}`"
        ) from error
    if tuple(int(part) for part in version.split("+")[0].split(".")[:2]) < least:
        raise ImportError(f"{needs}, found {version}; try `pip install --upgrade {package}`")
