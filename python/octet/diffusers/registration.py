"""The two dictionaries by which diffusers finds a quantization method."""

from __future__ import annotations

from diffusers.quantizers import auto

from octet.diffusers.config import METHOD, OctetConfig
from octet.diffusers.quantizer import OctetQuantizer
from octet.torch.saving import SAVED_METHOD

_ENTRIES = (
    (auto.AUTO_QUANTIZER_MAPPING, OctetQuantizer),
    (auto.AUTO_QUANTIZATION_CONFIG_MAPPING, OctetConfig),
)


def register() -> None:
    """Adds `octet` if it is missing; importing octet.diffusers calls this."""
    for mapping, ours in _ENTRIES:
        for method in (METHOD, SAVED_METHOD):
            mapping.setdefault(method, ours)


def unregister() -> None:
    """Removes what register() added."""
    for mapping, ours in _ENTRIES:
        for method in (METHOD, SAVED_METHOD):
            if mapping.get(method) is ours:
                del mapping[method]
