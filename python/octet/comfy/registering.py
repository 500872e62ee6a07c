"""The backend's place in a registry of comfy-kitchen.

comfy-kitchen can add a backend and replace the list of priorities. It can neither read that list
nor remove a backend: both need the registry's own fields, which are used only here, after a check
that they exist.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.metadata import version
from typing import Any

import comfy_kitchen
from comfy_kitchen.constraints import FunctionConstraints, ValidationResult

from . import backend, rules, tally

_SERVED = ValidationResult(success=True)
_FIELDS = ("_backends", "_capabilities", "_constraints", "_disabled", "_lock", "_priority")


def _check_fields(registry: Any) -> None:
    missing = [field for field in _FIELDS if not hasattr(registry, field)]
    if missing:
        raise ImportError(f"this comfy-kitchen has a registry without {', '.join(missing)}; "
                          "expected one as in 0.2.23 to 0.2.40, which Octet knows; install a newer "
                          "Octet, or the version that ComfyUI's requirements.txt names")


def _rule_of(function: str) -> Callable[[Mapping[str, Any]], ValidationResult]:
    def rule(arguments: Mapping[str, Any]) -> ValidationResult:
        try:
            refusal = rules.why_not(function, arguments)
        except Exception as error:  # leave unforeseen kinds of arguments to other backends
            refusal = rules.Refusal("x", f"not understood: {type(error).__name__}")
        if refusal is None:
            return _SERVED
        if not rules.is_question(arguments):
            tally.note_declined(function, *refusal)
        return ValidationResult(False, *refusal)

    return rule


def _capabilities() -> dict[str, FunctionConstraints]:
    """Those of our functions that this comfy-kitchen has, too."""
    if "call_rules" not in FunctionConstraints.__dataclass_fields__:
        raise ImportError(f"comfy-kitchen {version('comfy-kitchen')} is too old: its backends "
                          "cannot decline calls; 0.2.23 and newer can; update ComfyUI, then run "
                          "`pip install -r requirements.txt` in its folder, which installs the "
                          "version that it asks for")
    return {name: FunctionConstraints(call_rules=(_rule_of(name),),
                                      default_devices=frozenset({"cuda", "cpu"}))
            for name in rules.PARAMETERS if hasattr(comfy_kitchen, name)}


def register(registry: Any, name: str) -> list[str]:
    """The functions that are served from now on."""
    _check_fields(registry)
    capabilities = _capabilities()
    registry.register(name, backend, capabilities)
    if name not in registry._priority:
        registry.set_priority([name, *registry._priority])
    return list(capabilities)


def is_reachable(registry: Any, name: str) -> bool:
    _check_fields(registry)
    return (registry._backends.get(name) is backend and name in registry._priority
            and registry.is_available(name))


def remove(registry: Any, name: str) -> None:
    _check_fields(registry)
    if registry._backends.get(name) is not backend:
        return
    registry.set_priority([other for other in registry._priority if other != name])
    with registry._lock:
        for function in registry._capabilities.pop(name, ()):
            registry._constraints.pop((name, function), None)
        registry._backends.pop(name)
        registry._disabled.discard(name)
