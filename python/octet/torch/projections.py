"""fuse_projections() of diffusers' attention, for INT8 linears.

It joins the weights of q, k and v into one linear, `to_qkv`, and knows floating point alone. Here
it runs on outlines of the linears, without memory, and what it makes is replaced by their codes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

import torch
from torch import nn

from octet.errors import OctetError
from octet.torch.linear import Int8Linear

# What it makes, and of what.
_MADE_OF = {
    "to_qkv": ("to_q", "to_k", "to_v"),
    "to_kv": ("to_k", "to_v"),
    "to_added_qkv": ("add_q_proj", "add_k_proj", "add_v_proj"),
    "to_added_kv": ("add_k_proj", "add_v_proj"),
}
_SOURCES = sorted({name for names in _MADE_OF.values() for name in names})


def join_codes_in(kind: type[nn.Module]) -> None:
    """Gives a class of attention, for all its objects, a fuse_projections() that joins codes where
    linears are INT8; others are joined as before."""
    owner = next(base for base in kind.__mro__ if "fuse_projections" in vars(base))
    fuse = vars(owner)["fuse_projections"]
    if not hasattr(fuse, "joins_codes"):
        owner.fuse_projections = _joining_codes(fuse)


def _joining_codes(fuse: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(fuse)
    def fuse_projections(self: nn.Module, *args: Any, **options: Any) -> Any:
        children = self._modules
        linears = {n: children[n] for n in _SOURCES if isinstance(children.get(n), nn.Linear)}
        if not any(isinstance(linear, Int8Linear) for linear in linears.values()):
            return fuse(self, *args, **options)
        before = dict(children)
        fused = getattr(self, "fused_projections", False)
        try:
            children.update({name: _outline(linear) for name, linear in linears.items()})
            result = fuse(self, *args, **options)
            children.update(linears)
            for made in children.keys() - before.keys():
                children[made] = _join(made, [linears[name] for name in _MADE_OF[made]])
        except BaseException:
            children.clear()
            children.update(before)
            self.fused_projections = fused
            raise
        return result

    fuse_projections.joins_codes = True
    return fuse_projections


def _outline(linear: nn.Linear) -> nn.Linear:
    sizes = linear.in_features, linear.out_features
    return nn.Linear(*sizes, bias=linear.bias is not None, device="meta")


def _traits(linear: nn.Linear) -> tuple[Any, ...]:
    if not isinstance(linear, Int8Linear):
        return (linear.bias is None,)
    smoothed = linear.pre_quant_scale is not None
    # Two that are smoothed have factors of their own.
    own = id(linear) if smoothed else 0
    return linear.bias is None, linear.rotation_group, linear.full_precision, own


@torch.no_grad()
def _join(name: str, linears: Sequence[nn.Linear]) -> nn.Linear:
    first, rows = linears[0], sum(linear.out_features for linear in linears)
    if len({_traits(linear) for linear in linears}) > 1:
        raise OctetError(
            f"fuse_projections() cannot make {name} of linears that are quantized in different "
            "ways; expected the same for all; leave the call out: INT8 linears that share an input "
            "run as one product without it"
        )
    with torch.inference_mode(False):
        weight = torch.cat([linear.weight.detach() for linear in linears])
        biases = [linear.bias.detach() for linear in linears if linear.bias is not None]
        sizes = first.in_features, rows, bool(biases), "meta"
        if isinstance(first, Int8Linear):
            made: nn.Linear = Int8Linear(*sizes, first.float_dtype, recipe=first.recipe)
            made.rotation_group, made.full_precision = first.rotation_group, first.full_precision
            made.weight = weight
            made.weight_scale = torch.cat([linear.weight_scale for linear in linears])
        else:
            made = nn.Linear(*sizes)
            made.weight = nn.Parameter(weight, first.weight.requires_grad)
        if biases:
            made.bias = nn.Parameter(torch.cat(biases), requires_grad=first.bias.requires_grad)
    return made.train(first.training)
