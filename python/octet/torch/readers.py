"""Modules that read the weight of a linear within them instead of calling it.

Codes of INT8 are not what they expect. Four kinds are known: torch's encoder layers call the
linear in training, and pass its weight to one fused function otherwise, so they are told to call
it; diffusers' attention joins weights on request, so it is given the joined codes; its models merge
LoRAs on request, which is refused; and linears of modules whose `forward` reads a weight stay in
floating point.
"""

from __future__ import annotations

import dis
from functools import cache, wraps
from typing import Any

from torch import nn

from octet.errors import OctetError
from octet.torch.linear import Int8Linear
from octet.torch.projections import join_codes_in

# Attributes of a weight that are safe to read: its numbers are not.
_DESCRIPTIONS = ("dtype", "device", "shape", "size", "ndim", "dim", "is_cuda", "is_meta")


@cache
def _read_by(kind: type[nn.Module]) -> frozenset[str]:
    """Names of the children whose weights `forward` reads."""
    code = getattr(kind.forward, "__code__", None)
    # torch's own layer calls them as well, see below.
    if code is None or kind.forward is nn.TransformerEncoderLayer.forward:
        return frozenset()
    names = [step.argval for step in dis.get_instructions(code) if step.opname != "CACHE"]
    return frozenset(
        name
        for name, attribute, use in zip(names, names[1:], [*names[2:], None])
        if attribute == "weight" and isinstance(name, str) and use not in _DESCRIPTIONS
    )


def linears_read_in(model: nn.Module) -> set[nn.Module]:
    """The linears of a model whose weights are read by the module around them."""
    return {
        parent._modules[name]
        for parent in model.modules()
        for name in _read_by(type(parent)) & parent._modules.keys()
        if isinstance(parent._modules[name], nn.Linear)
    }


def adapt(model: nn.Module) -> None:
    """Tells the readers in a model about its INT8 linears, or that these are gone. Call it after
    linears were replaced."""
    quantized = any(isinstance(module, Int8Linear) for module in model.modules())
    for module in model.modules():
        if quantized and callable(getattr(module, "fuse_lora", None)):
            _refuse_merging_in(type(module))
        if isinstance(module, nn.TransformerEncoderLayer):
            _choose(module, "activation_relu_or_gelu", 0, _has_int8(module))
        elif isinstance(module, nn.TransformerEncoder):  # nested tensors need the fused function
            _choose(module, "use_nested_tensor", False, any(map(_has_int8, module.layers)))
        elif _has_int8(module) and callable(getattr(module, "fuse_projections", None)):
            join_codes_in(type(module))


def _refuse_merging_in(kind: type[nn.Module]) -> None:
    """Merging adds to codes as if they were weights, or to a copy of them that rounds all of a LoRA
    to nothing (`safe_fusing`)."""
    owner = next(base for base in kind.__mro__ if "fuse_lora" in vars(base))
    fuse = vars(owner)["fuse_lora"]
    if hasattr(fuse, "knows_int8"):
        return

    @wraps(fuse)
    def fuse_lora(self: nn.Module, *args: Any, **options: Any) -> Any:
        for name, module in self.named_modules():
            if isinstance(getattr(module, "base_layer", None), Int8Linear):
                raise OctetError(
                    f"fuse_lora() cannot merge into {name}, which has INT8 codes; leave it out: "
                    "a LoRA works beside them; or merge it before the model is quantized"
                )
        return fuse(self, *args, **options)

    fuse_lora.knows_int8 = True
    owner.fuse_lora = fuse_lora


def _has_int8(module: nn.Module) -> bool:
    return any(isinstance(child, Int8Linear) for child in module.children())


def _choose(module: nn.Module, name: str, value: Any, chosen: bool) -> None:
    """Sets an attribute of torch's module, or restores what it was."""
    kept = f"_octet_{name}"
    if chosen and kept not in vars(module) and hasattr(module, name):
        setattr(module, kept, getattr(module, name))
        setattr(module, name, value)
    elif not chosen and kept in vars(module):
        setattr(module, name, vars(module).pop(kept))
