"""Feed-forward blocks that are w2(silu(w1(x)) * w3(x)), as two calls of the engine.

The product of the gate and the up projection then ends in silu(gate) * up, and nothing of twice the
hidden width is ever written. A block is recognised by what it computes, with small stand-ins for
its three linears, not by the name of its class. It then gets a class with another `forward`, the
same for all blocks of its kind: torch.compile tells functions of instances apart, and would compile
each block of a model separately.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import torch
from torch import Tensor, nn

from octet.torch.linear import Int8Linear
from octet.torch.shared import multiply

# Names of gate, up and down projections.
NAMES = (
    ("w1", "w3", "w2"),
    ("gate_proj", "up_proj", "down_proj"),
    ("linear_1", "linear_3", "linear_2"),
    ("gate", "up", "down"),
)


def _random(shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
    """Independent of the default device and dtype."""
    return torch.randn(shape, generator=generator, device="cpu", dtype=torch.float32)


class _StandIn(nn.Linear):
    """Counts its calls: each linear must be called once."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__(inputs, outputs, bias=False, device="cpu", dtype=torch.float32)
        generator = torch.Generator().manual_seed(inputs * 31 + outputs)
        with torch.no_grad():
            self.weight.copy_(_random((outputs, inputs), generator))
        self.calls = 0

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        return super().forward(x)


@torch.no_grad()
def computes_swiglu(block: nn.Module, names: tuple[str, str, str]) -> bool:
    """Whether block(x) is exactly down(silu(gate(x)) * up(x))."""
    kept = {name: block._modules[name] for name in names}
    gate, up, down = stands = _StandIn(8, 12), _StandIn(8, 12), _StandIn(12, 8)
    x = _random((2, 3, 8), torch.Generator().manual_seed(5))
    try:
        block._modules.update(zip(names, stands))
        y = type(block).forward(block, x)
    except Exception:  # it takes other arguments or sizes: another kind of block
        return False
    finally:
        block._modules.update(kept)
    once = all(stand.calls == 1 for stand in stands)
    expected = down(nn.functional.silu(gate(x)) * up(x))
    return (
        once
        and isinstance(y, Tensor)
        and y.shape == expected.shape
        and torch.allclose(y.float(), expected, rtol=1e-5, atol=1e-5)
    )


def find_names(block: nn.Module) -> tuple[str, str, str] | None:
    """Names of gate, up and down in a block that computes swiglu; None for any other."""
    children = block._modules
    for names in NAMES:
        gate, up, down = (children.get(name) for name in names)
        if not all(isinstance(linear, nn.Linear) for linear in (gate, up, down)):
            continue
        fits = gate.bias is None and up.bias is None and gate.weight.shape == up.weight.shape
        own = "forward" in vars(block) or hasattr(type(block), "swiglu_of")
        if fits and not own and computes_swiglu(block, names):
            return names
    return None


@cache
def _fused_class(base: type[nn.Module], names: tuple[str, str, str]) -> type[nn.Module]:
    class Fused(base):
        swiglu_of = base

        def forward(self, *args: Any, **options: Any) -> Any:
            gate, up, down = (self._modules[name] for name in names)
            if len(args) == 1 and not options and _can_share(gate, up):
                return down(multiply([gate, up], args[0], gate_up=True))
            return base.forward(self, *args, **options)

        # No module has a class of this name.
        def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
            _, (_, *arguments), *rest = super().__reduce_ex__(protocol)
            return (_restore, (base, names, *arguments), *rest)

    Fused.__name__, Fused.__qualname__, Fused.__module__ = (
        *(base.__name__, base.__qualname__, base.__module__),
    )
    return Fused


def _restore(base: type[nn.Module], names: tuple[str, str, str], *arguments: Any) -> nn.Module:
    block = base.__new__(base, *arguments)
    fuse(block, names)
    return block


def _can_share(gate: nn.Module, up: nn.Module) -> bool:
    return (
        _is_plain_int8(gate)
        and _is_plain_int8(up)
        and gate.shared is not None
        and gate.shared.mates_of(gate.place) == [gate, up]
    )


def _is_plain_int8(module: nn.Module | None) -> bool:
    """Not wrapped by an adapter, and without hooks."""
    return type(module) is Int8Linear and not (
        module._forward_hooks or module._forward_pre_hooks or "forward" in module.__dict__
    )


def fuse(block: nn.Module, names: tuple[str, str, str]) -> None:
    block.__class__ = _fused_class(type(block), names)


def unfuse(block: nn.Module) -> None:
    """Restores its own class."""
    base = getattr(type(block), "swiglu_of", None)
    if base is not None:
        block.__class__ = base
