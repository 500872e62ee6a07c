"""INT8 in diffusers.

Importing this module makes `quant_method: octet` known to diffusers, so that
`Model.from_pretrained(folder, quantization_config=OctetConfig())` quantizes while it loads, and a
folder saved that way is loaded by plain `from_pretrained`. `load_int8` loads a checkpoint in any
dialect that Octet reads into the networks of an Ideogram 4 pipeline; `load_pipeline` makes the
pipeline as well.
"""

from __future__ import annotations

from octet._checks import check_framework

check_framework("octet.diffusers", "diffusers", "diffusers", (0, 40), "diffusers accelerate")

import octet.torch  # noqa: E402, F401 - reports an old or missing torch
from octet.diffusers.config import OctetConfig  # noqa: E402
from octet.diffusers.load import load_int8, load_pipeline  # noqa: E402
from octet.diffusers.quantizer import OctetQuantizer  # noqa: E402
from octet.diffusers.registration import register, unregister  # noqa: E402

__all__ = [
    *("OctetConfig", "OctetQuantizer", "load_int8", "load_pipeline", "register", "unregister"),
]

register()
