"""Which linears of a model become INT8.

By default those that do most of the work: the linears within the repeated blocks, except those for
conditioning, modulation, norms and routing, which cost little and on which all tokens depend.
Embeddings and the projections into and out of the model stay as they are.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from fnmatch import fnmatchcase
from typing import Any, NoReturn, Union

from torch import nn

from octet.errors import refuse_type
from octet.torch.readers import linears_read_in
from octet.torch.runtime import DTYPES

Filter = Union[Callable[[str, nn.Linear], bool], str, Iterable[str], None]

_SMALLEST_SIDE = 16
_SMALLEST_SHARE = 256  # weights this many times smaller than the largest are not worth INT8
# Names, or parts of names between underscores, of what conditions a block.
_CONDITIONING = re.compile(
    r"(^|_)(norm\d*|layernorm|ln\d*|mod\d*|modulations?|ada(?!pt)\w*|time\w*|temb|emb|embeds?|"
    r"embedders?|embeddings?|guidance|pooled|router|gate_logits)(_|$)",
    re.IGNORECASE,
)


def linears_of(model: nn.Module) -> dict[str, nn.Linear]:
    """All plain linears, by their first name; subclasses may compute something else."""
    return {name: module for name, module in model.named_modules() if type(module) is nn.Linear}


def _has_several_linears(module: nn.Module) -> bool:
    return sum(isinstance(inner, nn.Linear) for inner in module.modules()) > 1


def _block_lists(model: nn.Module) -> list[str]:
    """Names of the lists of blocks: those with an element that has several linears."""
    return [
        name
        for name, module in model.named_modules()
        if isinstance(module, (nn.ModuleList, nn.Sequential))
        and any(_has_several_linears(element) for element in module)
    ]


def check_module(model: nn.Module) -> None:
    if not isinstance(model, nn.Module):
        refuse_type("model", f"`model` is {type(model).__name__}; expected a module of torch")


def _without_wrappers(name: str) -> str:
    """As the model's author wrote it: torch.compile() puts a module around what it compiles."""
    return name.replace("_orig_mod.", "")


class Selection:
    """Why a linear is kept in floating point, in a few words; "" for those that become INT8."""

    def __init__(self, model: nn.Module, filter: Filter = None) -> None:
        lists = map(_without_wrappers, (f"{name}." for name in _block_lists(model)))
        self._lists = tuple(name if name != "." else "" for name in lists)
        self._asked, self._excluded = _asked(filter)
        sizes = [
            linear.weight.numel()
            for name, linear in linears_of(model).items()
            if not self._by_name(_without_wrappers(name))
        ]
        self._smallest = max(sizes, default=0) / _SMALLEST_SHARE
        self._read = linears_read_in(model)
        self._without_weights = all(parameter.is_meta for parameter in model.parameters())

    def reason(self, name: str, linear: nn.Linear) -> str:
        name = _without_wrappers(name)
        if self._asked is None:
            kept = self._by_default(name, linear)
            if not kept and any(fnmatchcase(name, pattern) for pattern in self._excluded):
                kept = "the filter keeps it"
        else:
            kept = "" if self._asked(name, linear) else "the filter keeps it"
        return kept or self.obstacle(linear)

    def obstacle(self, linear: nn.Linear) -> str:
        """Why it cannot be INT8 although it was chosen."""
        if linear.weight.dtype not in DTYPES:
            return f"its weight is {linear.weight.dtype}"
        if linear._forward_hooks or linear._forward_pre_hooks or hasattr(linear, "_hf_hook"):
            return "its calls have hooks; quantize before they are added"
        if linear in self._read:
            return "the module around it reads its weight, and does not call it"
        if linear.weight.is_meta and not self._without_weights:
            return "its weight is not loaded"
        return ""

    def _by_default(self, name: str, linear: nn.Linear) -> str:
        if min(linear.in_features, linear.out_features) < _SMALLEST_SIDE:
            return self._by_name(name) or "small"
        if linear.weight.numel() < self._smallest:
            return self._by_name(name) or "small compared with the others"
        return self._by_name(name)

    def _by_name(self, name: str) -> str:
        if self._lists and not name.startswith(self._lists):
            return "outside the repeated blocks"
        if any(_CONDITIONING.search(part) for part in name.split(".")):
            return "conditioning, by its name"
        return ""


def _asked(filter: Filter) -> tuple[Callable[[str, nn.Linear], bool] | None, list[str]]:
    """What is requested instead of the default (or None), and names to leave out."""
    if filter is None:
        return None, []
    if callable(filter):
        return filter, []
    if not isinstance(filter, Iterable):
        _refuse_filter(filter)
    patterns = [filter] if isinstance(filter, str) else list(filter)
    if not all(isinstance(pattern, str) for pattern in patterns):
        _refuse_filter(filter)
    excluded = [pattern[1:] for pattern in patterns if pattern.startswith("!")]
    included = [pattern for pattern in patterns if not pattern.startswith("!")]
    if not included:
        return None, excluded

    def fits(name: str, linear: nn.Linear) -> bool:
        return any(fnmatchcase(name, pattern) for pattern in included) and not any(
            fnmatchcase(name, pattern) for pattern in excluded
        )

    return fits, []


def _refuse_filter(filter: Any) -> NoReturn:
    refuse_type(
        "filter",
        f"`filter` is {filter!r}; expected a function of name and linear, or names with *",
    )


def default_filter(model: nn.Module) -> Callable[[str, nn.Linear], bool]:
    """What `quantize_()` does without a filter, to be combined with another condition."""
    check_module(model)
    selection = Selection(model)
    return lambda name, linear: not selection.reason(name, linear)
