"""ComfyUI's INT8 linears on Octet's kernels: a backend of comfy-kitchen.

    import octet.comfy
    octet.comfy.install()           # first in priority; workflows stay as they are
    print(octet.comfy.report())     # the kernel of each linear, and what was declined and why
    octet.comfy.uninstall()         # leaves nothing behind
"""

from __future__ import annotations

import os
from typing import Any, NamedTuple

from .tally import Report, take_report

__all__ = ["Status", "install", "is_installed", "report", "uninstall"]

NAME = "octet"
OFF_VALUES = ("off", "0", "no", "false")
FLOAT32_VALUE = "float32"


class Status(NamedTuple):
    """Whether calls reach this backend, and a sentence about it."""

    installed: bool
    message: str

    def __bool__(self) -> bool:
        return self.installed


def _kitchen_registry() -> Any:
    try:
        import comfy_kitchen
    except ModuleNotFoundError as error:
        if error.name != "comfy_kitchen":
            raise  # what comfy-kitchen itself lacks, such as torch
        raise ImportError("octet.comfy is a backend for comfy-kitchen, which is not installed; "
                          "it comes with ComfyUI, or run: pip install comfy-kitchen") from error
    return comfy_kitchen.registry


def _off() -> bool:
    return os.environ.get("OCTET_COMFY", "").strip().lower() in OFF_VALUES


def install(registry: Any = None, *, float32: bool | None = None) -> Status:
    """Registers the backend before all others; calling it again restores that order.

    `registry`: one other than comfy-kitchen's own. `float32`: activations in float16 and bfloat16
    are quantized in float32, closer to the unquantized product, with codes that differ from
    comfy-kitchen's here and there; None: as the variable OCTET_COMFY says.
    """
    if _off():
        return Status(False, "OCTET_COMFY is off: comfy-kitchen's own backends run")
    registry = _kitchen_registry() if registry is None else registry
    from . import backend, registering

    if float32 is None:
        float32 = os.environ.get("OCTET_COMFY", "").strip().lower() == FLOAT32_VALUE
    backend.quantize_in_float32 = float32
    functions = registering.register(registry, NAME)
    if not registry.is_available(NAME):
        return Status(False, f"comfy-kitchen's registry has {NAME} disabled: its other backends "
                             f"run, until registry.enable({NAME!r})")
    return _status(functions)


def _status(functions: list[str]) -> Status:
    """Says which devices are served: a build may lack CUDA, a CPU its instructions."""
    import torch

    from . import kernels

    devices = [torch.device("cpu")]
    if torch.cuda.is_available():
        devices.insert(0, torch.device("cuda", torch.cuda.current_device()))
    reasons = {str(device): kernels.why_not(device) for device in devices}
    served = [device for device, reason in reasons.items() if reason is None]
    left = "; ".join(f"linears on {device} stay with comfy-kitchen: {reason}"
                     for device, reason in reasons.items() if reason is not None)
    if not served:
        return Status(False, f"Octet serves nothing: {left}")
    return Status(True, f"Octet serves {', '.join(functions)} of comfy-kitchen on "
                        f"{' and '.join(served)}{left and '; '}{left}")


def uninstall(registry: Any = None) -> None:
    """Removes the backend; the registry is as if it had never been there."""
    from . import registering

    registering.remove(_kitchen_registry() if registry is None else registry, NAME)


def is_installed(registry: Any = None) -> bool:
    """Whether the backend is registered and calls can reach it."""
    from . import registering

    return registering.is_reachable(_kitchen_registry() if registry is None else registry, NAME)


def report(clear: bool = False) -> Report:
    """What ran here, with its kernels, and which calls were declined; print it as text.

    `clear`: start counting again.
    """
    if _off():
        state = "Octet is not used: OCTET_COMFY is off."
    else:
        try:
            state = ("Octet is a backend of comfy-kitchen." if is_installed() else
                     "Octet is not installed as a backend of comfy-kitchen.")
        except ImportError as error:
            state = str(error)
    return take_report(state, clear)
