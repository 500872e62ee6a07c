"""INT8 linears for any framework, and Ideogram 4, on CPUs and NVIDIA GPUs.

    import octet

    y = octet.int8_linear(x, weight, weight_scale)      # arrays of torch, NumPy, ...
    with octet.Engine("ideogram-4-int8") as engine:
        engine.render({"high_level_description": "A calm sea."}).image.save("sea.png")

octet.torch, octet.diffusers and octet.comfy are imported when they are used.
"""

from __future__ import annotations

import importlib
from types import ModuleType

from octet import _octet
from octet._engine import Engine, Preview, Rendering, check_caption
from octet._files import Inspection, devices, inspect, quantize
from octet._frameworks import int8_linear, int8_mm, quantize_rows, report, require_int8
from octet._octet import Lora
from octet.errors import Cancelled, InvalidRequest, OctetError, OctetTypeError, OutOfMemory

__version__: str = _octet.__version__
__all__ = [
    "Cancelled",
    "Engine",
    "Inspection",
    "InvalidRequest",
    "Lora",
    "OctetError",
    "OctetTypeError",
    "OutOfMemory",
    "Preview",
    "Rendering",
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

_FRAMEWORKS = ("torch", "diffusers", "comfy")


def __getattr__(name: str) -> ModuleType:
    if name in _FRAMEWORKS:
        return importlib.import_module(f"octet.{name}")
    raise AttributeError(f"module 'octet' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_FRAMEWORKS])
