"""INT8 linears for any framework, and Ideogram 4, on CPUs and NVIDIA GPUs.

    import octet

    y = octet.int8_linear(x, weight, weight_scale)      # arrays of torch, NumPy, ...
    with octet.Engine("ideogram-4-int8") as engine:
        engine.render({"high_level_description": "A calm sea."}).image.save("sea.png")

octet.torch, octet.diffusers and octet.comfy are imported when they are used.
"""

from __future__ import annotations

import importlib
from importlib.util import find_spec
from types import ModuleType

from octet import _octet
from octet._engine import Engine, Preview, Rendering, check_caption
from octet._files import Inspection, devices, inspect, quantize
from octet._frameworks import int8_linear, int8_mm, quantize_rows, report, require_int8
from octet._octet import Job, Lora, Stop
from octet.errors import Cancelled, InvalidRequest, OctetError, OctetTypeError, OutOfMemory

__version__: str = _octet.__version__
__all__ = [
    "Cancelled",
    "Engine",
    "Inspection",
    "InvalidRequest",
    "Job",
    "Lora",
    "OctetError",
    "OctetTypeError",
    "OutOfMemory",
    "Preview",
    "Rendering",
    "Stop",
    "__version__",
    "check_caption",
    "devices",
    "inspect",
    "int8_linear",
    "int8_mm",
    "quantize",
    "quantize_rows",
    "report",
    "require_int8",
]

_FRAMEWORKS = {"torch": "torch", "diffusers": "diffusers", "comfy": "comfy_kitchen"}


def __getattr__(name: str) -> ModuleType:
    if name in _FRAMEWORKS:
        return importlib.import_module(f"octet.{name}")
    raise AttributeError(f"module 'octet' has no attribute {name!r}")


def __dir__() -> list[str]:
    # help() asks for every name, and an import that fails would end it.
    there = (ours for ours, package in _FRAMEWORKS.items() if find_spec(package))
    return sorted({*globals(), *there})
