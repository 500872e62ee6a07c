"""Linears that share an input: one quantization and one product for all of them.

A model calls `to_q(x)`, `to_k(x)` and `to_v(x)` one after the other. The first call multiplies x by
the rows of all three, which lie one after the other in memory; the others find their columns, as
long as they are called with the same tensor object, unchanged. The last one leaves nothing behind.

Whether they will be is not known beforehand: in cross-attention k and v see another input. Then
those that had x and those that had not are separated for good, and each group continues by itself.
Results are the same in all cases.

Tensors made in torch.inference_mode() do not count their changes, and a compiled graph cannot ask:
there x must not be changed in place between these calls.

Members own the object that they share, and it knows them by weak references: a model is freed, with
its memory on a GPU, when the last reference to it goes, without the garbage collector. In files and
state dicts each has a storage of its own; those that were written together find each other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import get_ident
from typing import Any, NamedTuple
from weakref import ref

import torch
from torch import Tensor, nn
from torch.compiler import is_compiling

from octet.torch.functional import int8_linear_parts
from octet.torch.private import current_stream, is_any_autocast_enabled, is_transformed
from octet.torch.runtime import adjoin

# Consecutive products of which not all members took their part. One may be due to an exception in
# the model; more mean that some members are never called.
_PATIENCE = 2


class _Plan(NamedTuple):
    """Which members share; replaced as a whole, since threads read it."""

    kinds: tuple[int, ...]  # members of one kind share
    mates: tuple[tuple[int, ...], ...]  # of each member: all of its kind, in order
    starts: tuple[int, ...]  # of each member's columns in the product of its kind


class _Run:
    """A product that some members still wait for."""

    __slots__ = ("x", "state", "parts")

    def __init__(self, x: Tensor, parts: dict[int, Tensor]) -> None:
        self.x, self.state, self.parts = x, _state(x), parts  # by place, of those that wait


def _state(x: Tensor) -> tuple[Any, ...]:
    """What a product depends on besides the tensor object itself."""
    version = 0 if x.is_inference() else x._version
    stream = current_stream(x.get_device()) if x.is_cuda else 0
    return version, stream, torch.is_grad_enabled(), is_any_autocast_enabled()


class SharedInput:
    """Int8Linears that share an input until they are called with different ones."""

    def __init__(self, members: list[nn.Linear]) -> None:
        self.plan = _Plan((0,) * len(members), (), ())
        self._start([ref(member) for member in members])
        for place, member in enumerate(members):
            member.shared, member.place = self, place
        self.join()

    def _start(self, members: list[Callable[[], nn.Linear | None]]) -> None:
        self._members = members
        self.unfinished = 0
        self.runs: dict[tuple[int, int], _Run] = {}  # by thread and kind
        self.traced: dict[int, tuple[Tensor, Tensor, int]] = {}  # by kind, while compiling

    def adopt(self, member: nn.Linear) -> bool:
        """A copy, or one from a file, takes its place, unless that is taken."""
        if self._members[member.place]() is not None:
            return False
        self._members[member.place] = ref(member)
        self.join()
        return True

    def members(self) -> list[nn.Linear]:
        """Those that there are."""
        return [member for held in self._members if (member := held()) is not None]

    def mates_of(self, place: int) -> list[nn.Linear]:
        """The members that share one product with this member, itself included."""
        mates = [self._members[mate]() for mate in self.plan.mates[place]]
        return [mate for mate in mates if mate is not None]

    def product(self, member: nn.Linear, x: Tensor) -> Tensor:
        """y of one member."""
        if is_compiling():
            return self._traced_product(member, x)
        # Stand-ins, with which torch.fx traces, cannot be compared; those of torch.func must not be
        # kept for another call; nested ones have no columns to take.
        if not isinstance(x, Tensor) or is_transformed() or x.is_nested:
            return member.product(x)
        plan, place = self.plan, member.place
        mates = plan.mates[place]
        if len(mates) == 1:
            return member.product(x)
        key = (get_ident(), plan.kinds[place])
        run = self.runs.get(key)
        if run is None:
            members = [self._members[mate]() for mate in mates]
            if None in members:  # removed from the model
                self.join()
                return self.product(member, x)
            try:
                y = multiply(members, x)
            except (KeyError, RuntimeError):
                # One of them is elsewhere, such as offloaded, or has a parametrization instead of a
                # weight; or x is wrong, and this call says so.
                return member.product(x)
            # Not plain views: autograd would refuse to change several of one call in place.
            sizes = [mate.out_features for mate in members]
            parts = dict(zip(mates, torch.unsafe_split_with_sizes(y, sizes, -1)))
            part = parts.pop(place)
            self.runs[key] = _Run(x, parts)
            return part
        if run.x is x and place in run.parts and run.state == _state(x):
            part = run.parts.pop(place)
            if not run.parts:
                self.runs.pop(key, None)
                self.unfinished = 0
            return part
        self.runs.pop(key, None)
        self._give_up(place, sum([1 << waiting for waiting in run.parts]))
        return self.product(member, x)

    def _traced_product(self, member: nn.Linear, x: Tensor) -> Tensor:
        """The same while torch.compile traces: the trace settles who finds what."""
        place = member.place
        kind = self.plan.kinds[place]
        if kind in self.traced:
            seen, y, left = self.traced.pop(kind)
            if seen is x and left >> place & 1:
                left &= ~(1 << place)
                if left:
                    self.traced[kind] = (x, y, left)
                return self._part(y, member)
            self._part_ways(left)
        mates = self.plan.mates[place]
        members = self.mates_of(place)
        if len(mates) == 1 or len(members) < len(mates) or not _are_together(members):
            return member.product(x)
        y = multiply(members, x)
        self.traced[self.plan.kinds[place]] = (x, y, _all_but(place, mates))
        return self._part(y, member)

    def _part(self, y: Tensor, member: nn.Linear) -> Tensor:
        return y.narrow(-1, self.plan.starts[member.place], member.out_features)

    def _give_up(self, place: int, left: int) -> None:
        """A product was abandoned while members waited for it: this one has another input, or was
        called again before them."""
        if not left >> place & 1:
            self.unfinished += 1
            if self.unfinished < _PATIENCE:
                return
        self._part_ways(left)
        self.join()

    def _part_ways(self, left: int) -> None:
        """The remaining members become a kind of their own."""
        plan = self.plan
        kind = max(plan.kinds) + 1
        kinds = [kind if left >> place & 1 else its for place, its in enumerate(plan.kinds)]
        mates = [[o for o in m if kinds[o] == kinds[p]] for p, m in enumerate(plan.mates)]
        self._arrange(kinds, mates)

    def _arrange(self, kinds: Sequence[int], mates: list[list[int]]) -> None:
        members = [held() for held in self._members]
        sizes = [0 if member is None else member.out_features for member in members]
        starts = [sum([sizes[o] for o in m if o < p]) for p, m in enumerate(mates)]
        self.plan = _Plan(tuple(kinds), tuple([tuple(m) for m in mates]), tuple(starts))

    @torch.no_grad()
    def join(self) -> None:
        """Puts the tensors of members that share one after the other in memory. Call it after
        members were moved or loaded; each is complete by itself at all times."""
        self.runs.clear()
        kinds, all_members = self.plan.kinds, [held() for held in self._members]
        there = [place for place, member in enumerate(all_members) if member is not None]
        mates = [[o for o in there if kinds[o] == kind] for kind in kinds]
        agree = [_agree([all_members[other] for other in m]) for m in mates]
        self._arrange(kinds, [m if agree[p] else [p] for p, m in enumerate(mates)])
        for mates in set(self.plan.mates):
            members = [all_members[mate] for mate in mates]
            if len(members) == 1:
                continue
            with torch.inference_mode(False):
                for name in ("weight", "weight_scale"):
                    _lay_out([member._buffers for member in members], name)
                if members[0].bias is not None:
                    _lay_out([member._parameters for member in members], "bias")

    # Members come by themselves; unfinished products belong to this process and these objects.
    def __getstate__(self) -> dict[str, Any]:
        return {"plan": self.plan}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._start([_nobody] * len(self.plan.kinds))


def _nobody() -> None:
    return None


def multiply(members: list[nn.Linear], x: Tensor, gate_up: bool = False) -> Tensor:
    """The product of all members, side by side."""
    first = members[0]
    biased = first._parameters["bias"] is not None
    return int8_linear_parts(
        x,
        [member._buffers["weight"] for member in members],
        [member._buffers["weight_scale"] for member in members],
        [member._parameters["bias"] for member in members] if biased else [],
        rotation_group=first.rotation_group,
        gate_up=gate_up,
    )


def _all_but(place: int, mates: tuple[int, ...]) -> int:
    return sum([1 << mate for mate in mates if mate != place])


def _agree(members: list[nn.Linear]) -> bool:
    """Whether one product can serve them all, and there are several."""
    return (
        len(members) > 1
        and len({_traits(member) for member in members}) == 1
        and all(map(_can_share, members))
    )


def _are_together(members: list[nn.Linear]) -> bool:
    """accelerate keeps parameters elsewhere, on meta, until their module is called."""
    biases = [member._parameters["bias"] for member in members]
    return len({bias.device for bias in biases if bias is not None}) < 2


def _can_share(member: nn.Linear) -> bool:
    plain = member.pre_quant_scale is None and "weight" in member._buffers
    return plain and not member.full_precision


def _traits(member: nn.Linear) -> tuple[Any, ...]:
    bias = member.bias
    return (
        *(member.in_features, member.weight.device, member.weight.dtype, member.rotation_group),
        *(member.weight_scale.device, member.full_precision, member.pre_quant_scale is None),
        None if bias is None else (bias.dtype, bias.device),
    )


def _lay_out(places: list[dict[str, Any]], name: str) -> None:
    tensors = [place[name] for place in places]
    if tensors[0].is_meta or adjoin(tensors):
        return
    whole = torch.cat([tensor.detach() for tensor in tensors])
    start = 0
    for place, tensor in zip(places, tensors):
        part = whole.narrow(0, start, tensor.shape[0])
        if isinstance(tensor, nn.Parameter):
            tensor.data = part
        else:
            place[name] = part
        start += tensor.shape[0]
