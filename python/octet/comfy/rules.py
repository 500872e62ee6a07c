"""Which calls of comfy-kitchen this backend serves.

A rule looks at a call's arguments and names what it cannot serve, or nothing. comfy-kitchen asks
before each call, so rules take less than two microseconds: they only read attributes and never
touch device memory.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from octet._checks import fits_rotation
from octet.torch.private import PLAIN
from octet.torch.runtime import DTYPES

from . import four_bits, kernels
from .four_bits import Refusal

INT8 = torch.int8
MOST_COLUMNS = 131_071  # of a weight: with more, sums of products could exceed 32 bits

# How many columns of x become one column that is quantized.
INPUT_ACTS = {None: 1, "none": 1, "gelu_tanh": 1, "rms_norm": 1, "swiglu": 2, "situ": 2}

_LINEAR = ("x", "weight", "weight_scale", "bias", "out_dtype", "convrot", "convrot_groupsize")
# The known parameters of each function. If a later comfy-kitchen adds one, calls that use it are
# declined.
PARAMETERS = {
    "int8_linear": frozenset((*_LINEAR, "input_act", "input_act_weight", "input_act_eps",
                              "residual", "residual_scale")),
    "int8_linear_modulated": frozenset((*_LINEAR, "modulation_scale")),
    "int8_linear_rms_modulated": frozenset((*_LINEAR, "modulation_scale", "norm_weight",
                                            "norm_eps")),
    "convrot_w4a4_linear": frozenset(("x", "qweight", "wscales", "bias", "convrot_groupsize",
                                      "quant_group_size", "linear_dtype")),
    "w4a8_int8_linear": frozenset(("x", "qdata", "s_rel", "s_channel", "codebook", "correction",
                                   "bias", "group_size", "convrot_groupsize", "out_dtype",
                                   "input_act", "input_act_weight", "input_act_eps", "residual",
                                   "residual_scale")),
}
_FOUR_BITS = ("convrot_w4a4_linear", "w4a8_int8_linear")


def _unknown(function: str, arguments: Mapping[str, Any]) -> Refusal | None:
    for name, value in arguments.items():
        # None, False, 0 and "" have no effect.
        if name not in PARAMETERS[function] and (isinstance(value, Tensor) or value):
            return Refusal(name, "a parameter that this version of Octet does not know")
    return None


def _is_vector(value: Any, length: int) -> bool:
    return type(value) in PLAIN and value.dtype in DTYPES and value.numel() == length


def _more(function: str, arguments: Mapping[str, Any], k: int) -> Refusal | None:
    """For rare arguments, and those of the modulated forms."""
    if function.startswith("int8_linear_"):
        if not _is_vector(arguments.get("modulation_scale"), k):
            return Refusal("modulation_scale", "expected one float for each column of the weight")
        if "norm_weight" in arguments and not _is_vector(arguments["norm_weight"], k):
            return Refusal("norm_weight", "expected one float for each column of the weight")
        return None
    if (arguments.get("input_act") == "rms_norm"
            and not _is_vector(arguments.get("input_act_weight"), k)):
        return Refusal("input_act_weight", "rms_norm takes one float for each column")
    if (arguments.get("residual") is None) != (arguments.get("residual_scale") is None):
        return Refusal("residual", "residual and residual_scale belong together")
    return None


def why_not(function: str, arguments: Mapping[str, Any]) -> Refusal | None:
    """Why a call with these arguments is declined; None: it is served."""
    get = arguments.get
    if not PARAMETERS[function].issuperset(arguments):
        refusal = _unknown(function, arguments)
        if refusal is not None:
            return refusal
    shape = None
    if function in _FOUR_BITS:
        made = four_bits.as_linear(function, arguments)
        if isinstance(made, Refusal):
            return made
        arguments, get, shape = made, made.get, made["shape"]
    x, weight, act = get("x"), get("weight"), get("input_act")
    if type(x) not in PLAIN:
        return Refusal("x", "expected a plain tensor, not a subclass")
    if type(weight) not in PLAIN:
        return Refusal("weight", "expected a plain tensor, not a subclass")
    if x.is_neg():
        return Refusal("x", "a negative view, whose numbers differ in memory")
    if x.dtype not in DTYPES:
        return Refusal("x", f"{x.dtype}, expected float32, float16 or bfloat16")
    shape, x_shape = shape or weight.shape, x.shape
    if weight.dtype is not INT8 or len(shape) != 2:
        return Refusal("weight", f"{len(shape)} dimensions of {weight.dtype}, expected int8 [n, k]")
    device = x.device
    if weight.device != device:
        return Refusal("weight", f"on {weight.device}, but x is on {device}")
    reason = kernels.why_not(device)
    if reason is not None:
        return Refusal("x", reason)
    n, k = shape
    if not 0 < k <= MOST_COLUMNS:
        return Refusal("weight", f"k = {k}, expected 1 to {MOST_COLUMNS}")
    width = INPUT_ACTS.get(act)
    if width is None:
        return Refusal("input_act", f"{act!r}, which this version of Octet does not know")
    if not x_shape or x_shape[-1] != k * width:
        return Refusal("x", "its last dimension does not fit the weight")
    if get("convrot"):
        group = get("convrot_groupsize", 256)
        if not fits_rotation(group, k):
            return Refusal("convrot_groupsize", f"{group} for k = {k}, expected 4, 16, 64, 256 or "
                                                "1024, and a divisor of k")
    out_dtype = get("out_dtype")
    if out_dtype is not None and out_dtype not in DTYPES:
        return Refusal("out_dtype", f"{out_dtype}, expected float32, float16 or bfloat16")
    scale, bias = get("weight_scale"), get("bias")
    if scale is None:
        return None  # an inquiry, see below
    if type(scale) not in PLAIN or scale.dtype not in DTYPES or scale.numel() not in (1, n):
        return Refusal("weight_scale", "expected one float, or one for each row of the weight")
    if bias is not None and not _is_vector(bias, n):
        return Refusal("bias", "expected one float for each row of the weight")
    plain = act is None and not function.startswith("int8_linear_")
    if plain and get("residual") is get("residual_scale"):
        return None  # neither is there
    return _more(function, arguments, k)


def is_question(arguments: Mapping[str, Any]) -> bool:
    """Whether comfy-kitchen only asks who would serve such a call; it then omits arguments."""
    scales = ("weight_scale", "wscales", "s_channel")
    return all(arguments.get(name) is None for name in scales)
