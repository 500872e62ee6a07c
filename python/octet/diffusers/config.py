"""What a model's config.json says about its INT8 linears."""

from __future__ import annotations

from enum import Enum
from fnmatch import fnmatchcase
from typing import Any

from diffusers.quantizers.quantization_config import QuantizationConfigMixin

from octet._checks import FLOATS
from octet._recipes import parse_recipe
from octet.errors import refuse, refuse_type, shown
from octet.torch.saving import SAVED_METHOD, saved_config

METHOD = "octet"
_DTYPES = (None, *sorted(FLOATS))


class _Method(str, Enum):
    # diffusers reads a method's `value`, and its own enumeration cannot be extended.
    OCTET = METHOD


class OctetConfig(QuantizationConfigMixin):
    """Large linears become INT8.

    recipe: "convrot" (weights and activations rotated in groups of up to 256 channels, which
        spreads outliers), "convrot:64" and so on, or "rowwise".
    modules_to_not_convert: modules that stay as they are, by name or by consecutive names of a path
        ("proj_out", "attn.to_q"), with * and ? within a name.
    dtype: of everything that is not INT8, set by the first loading: what `from_pretrained` uses
        if no `torch_dtype` is given.
    """

    def __init__(
        self,
        recipe: str = "convrot",
        modules_to_not_convert: list[str] | str | None = None,
        dtype: str | None = None,
        quant_method: str = METHOD,
    ) -> None:
        if quant_method not in (METHOD, SAVED_METHOD):
            refuse("quant_method", f"quant_method is {quant_method!r}, expected {METHOD!r}")
        if dtype not in _DTYPES:
            refuse("dtype", f"dtype is {dtype!r}, expected one of {_DTYPES}")
        parse_recipe(recipe)
        if isinstance(modules_to_not_convert, str):
            modules_to_not_convert = [modules_to_not_convert]
        names = [] if modules_to_not_convert is None else modules_to_not_convert
        if not isinstance(names, (list, tuple)) or not all(isinstance(n, str) for n in names):
            refuse_type(
                "modules_to_not_convert",
                f"`modules_to_not_convert` is {shown(names)}; expected a list of names",
            )
        self.quant_method = _Method.OCTET
        self.recipe = recipe
        self.modules_to_not_convert = list(names)
        self.dtype = dtype

    def to_dict(self) -> dict[str, Any]:
        return saved_config(self.recipe, list(self.modules_to_not_convert), self.dtype)

    # What __repr__ of diffusers prints.
    to_diff_dict = to_dict

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OctetConfig) and self.to_dict() == other.to_dict()

    __hash__ = None

    def excludes(self, module: str) -> bool:
        """Whether `modules_to_not_convert` names this module or one that contains it."""
        path = module.split(".")
        return any(_is_part(words.split("."), path) for words in self.modules_to_not_convert)


def _is_part(words: list[str], path: list[str]) -> bool:
    starts = range(len(path) - len(words) + 1)
    return any(all(map(fnmatchcase, path[start:], words)) for start in starts)
