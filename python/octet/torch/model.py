"""Whole models: converts their linears to INT8 and back, and describes them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from torch import nn

from octet._recipes import Recipe, parse_recipe
from octet.errors import OctetTypeError
from octet.report import Row
from octet.torch import swiglu
from octet.torch.linear import Int8Linear
from octet.torch.readers import adapt
from octet.torch.saving import forget_in_configs, note_in_configs
from octet.torch.selection import Filter, Selection, check_module, linears_of
from octet.torch.shared import SharedInput

# Linears that share an input, by their names within one module; the first match is used. The first
# line is for blocks that compute attention and feed-forward side by side.
_GROUPS = (
    ("attn.to_q", "attn.to_k", "attn.to_v", "proj_mlp"),
    ("to_q", "to_k", "to_v", "to_gate"),
    ("to_q", "to_k", "to_v"),
    ("add_q_proj", "add_k_proj", "add_v_proj"),
    ("q_proj", "k_proj", "v_proj"),
    ("query", "key", "value"),
    ("wq", "wk", "wv"),
    ("q", "k", "v"),
    *(names[:2] for names in swiglu.NAMES),
)
# If q has another input than k and v.
_CROSS_ATTENTION = ("attn2", "cross_attn", "cross_attention")


def quantize_(
    model: nn.Module,
    recipe: str | Recipe = "convrot",
    filter: Filter = None,
    fuse: bool = True,
) -> nn.Module:
    """Converts the large linears of a model to INT8, in place, and returns the model.

    recipe: "convrot" (rotated within groups of 256, or of as many as fit), "convrot:64", "rowwise".
    filter: which linears: a function of name and linear, or names with * (those that begin with !
    are left out). None: the linears within repeated blocks, see octet.torch.selection.
    fuse: linears that share an input become one product. The state dict is the same either way.
    """
    recipe = parse_recipe(recipe)
    check_module(model)
    selection = Selection(model, filter)
    chosen = {}
    for name, linear in linears_of(model).items():
        reason = selection.reason(name, linear)
        if reason:
            linear._octet_kept = (reason, reason == selection.obstacle(linear))
        else:
            chosen[name] = linear
    if "" in chosen:
        return Int8Linear.from_linear(model, recipe)
    places = _places(model)
    while chosen:  # one by one, so that the weights of each are gone before the next
        name, linear = chosen.popitem()
        made = Int8Linear.from_linear(linear, recipe, f"{name}.weight")
        for parent, name in places.pop(linear):
            parent._modules[name] = made
    adapt(model)
    note_in_configs(model, recipe)
    if fuse:
        fuse_(model)
    return model


def dequantize_(model: nn.Module) -> nn.Module:
    """Replaces every Int8Linear with an nn.Linear that has the dequantized weights."""
    check_module(model)
    if _is_int8(model):
        return model.to_linear()
    for module in model.modules():
        swiglu.unfuse(module)
    for linear, places in _places(model).items():
        if _is_int8(linear):
            made = linear.to_linear()
            for parent, name in places:
                parent._modules[name] = made
    adapt(model)
    forget_in_configs(model)
    return model


def fuse_(model: nn.Module) -> nn.Module:
    """Makes one product of INT8 linears that share an input; quantize_() calls it."""
    check_module(model)
    for name, module in model.named_modules():
        for names in _GROUPS:
            if len(names) == 3 and _crosses(name, module):
                names = names[1:]
            _share(module, names)
    for module in model.modules():
        names = swiglu.find_names(module)
        if names is not None and all(_is_int8(module._modules[name]) for name in names[:2]):
            swiglu.fuse(module, names)
    return model


def _crosses(name: str, attention: nn.Module) -> bool:
    said = getattr(attention, "is_cross_attention", None)
    if isinstance(said, bool):
        return said
    return any(part in _CROSS_ATTENTION for part in name.split("."))


def _share(parent: nn.Module, names: tuple[str, ...]) -> None:
    members = [_submodule(parent, name) for name in names]
    if not all(_is_int8(member) and member.shared is None for member in members):
        return
    first = members[0]
    same = all(
        member.in_features == first.in_features
        and member.rotation_group == first.rotation_group
        and (member.bias is None) == (first.bias is None)
        for member in members
    )
    if same and len({id(member) for member in members}) == len(members):
        SharedInput(members)


def _submodule(parent: nn.Module, name: str) -> nn.Module | None:
    for part in name.split("."):
        parent = None if parent is None else parent._modules.get(part)
    return parent


def _is_int8(module: nn.Module | None) -> bool:
    return isinstance(module, Int8Linear)


def _places(model: nn.Module) -> dict[nn.Module, list[tuple[nn.Module, str]]]:
    """Where the linears are: by parent and name; some are in several places."""
    places: dict[nn.Module, list[tuple[nn.Module, str]]] = {}
    for parent in model.modules():
        for name, child in parent._modules.items():
            if isinstance(child, nn.Linear):
                places.setdefault(child, []).append((parent, name))
    return places


def describe_linears(model: Any) -> list[Row]:
    """Rows of octet.report(): all linears, those in INT8 and those that were kept. For a pipeline,
    those of its parts that have any in INT8."""
    if isinstance(model, nn.Module):
        return list(_rows(model))
    parts = getattr(model, "components", None)
    if not isinstance(parts, dict):
        raise OctetTypeError(f"`model` is {type(model).__name__}; expected a module or a pipeline")
    rows = []
    for name, part in parts.items():
        if isinstance(part, nn.Module) and any(map(_is_int8, part.modules())):
            rows += [replace(row, name=f"{name}.{row.name}") for row in _rows(part)]
    return rows


def _rows(model: nn.Module) -> Iterator[Row]:
    for name, module in model.named_modules():
        if _is_int8(module):
            yield module.describe(name)
        elif isinstance(module, nn.Linear):
            reason, obstacle = getattr(module, "_octet_kept", ("", False))
            yield Row(
                *(name, module.out_features, module.in_features, "float"),
                recipe=str(module.weight.dtype).removeprefix("torch."),
                device=str(module.weight.device),
                note=reason,
                fallback=obstacle,
            )
