"""By how many INT8 codes two W8A8 networks differ.

Octet and torch take sums in different orders. A value that lies next to a half of a code, as near
as float32 rounds, may then get either neighbour, and one such code moves a velocity by about a
thousandth. Which inputs have one is luck, and differs from processor to processor. So no tolerance
covers for it: the network is computed anew with such values rounded to the other side, one by one,
until its velocity is ours as closely as in floating point. What counts is how many it took.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch.overrides import TorchFunctionMode

# Of one code. Activations agree to some 1e-7 of their row's largest, which is 127 codes: the
# furthest that a flipped value was ever seen from a half is 4e-5.
NEAR_A_HALF = 2e-4

_ROUND = {torch.round, torch.Tensor.round, torch.Tensor.round_}

# A value is known by where it stands and what it is: q, k and v round the same one.
Value = tuple[int, float]


class _RoundedElsewhere(TorchFunctionMode):
    """round(), but to the other side for the flipped values; `near` are those next to a half."""

    def __init__(self, flipped: frozenset[Value]) -> None:
        super().__init__()
        self.flipped = flipped
        self.near: dict[Value, float] = {}

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if func not in _ROUND:
            return func(*args, **(kwargs or {}))
        values = args[0].flatten().clone()  # round_() writes over them
        result = func(*args, **(kwargs or {}))
        codes = result.view(-1)
        from_half = (0.5 - (values - codes).abs()).abs()
        for index in (from_half < NEAR_A_HALF).nonzero().flatten().tolist():
            value = (index, values[index].item())
            self.near[value] = from_half[index].item()
            if value in self.flipped:
                codes[index] += 1 if values[index] > codes[index] else -1
        return result


def count_flips(
    got: torch.Tensor, compute: Callable[[], torch.Tensor], tolerance: float, most: int
) -> int:
    """How many codes of the network that `compute` runs lie on the other side of a half in the one
    that gave `got`; fails when up to `most` do not explain it."""

    def run(flipped: frozenset[Value]) -> tuple[float, dict[Value, float]]:
        with _RoundedElsewhere(flipped) as rounding:
            expected = compute()
        error = ((got.double() - expected.double()).norm() / expected.double().norm()).item()
        return error, rounding.near

    flipped: dict[Value, float] = {}
    error, near = run(frozenset())
    while error >= tolerance and len(flipped) < most:
        best = error, near, None
        for value in sorted(near.keys() - flipped.keys(), key=near.__getitem__):
            tried = (*run(frozenset({*flipped, value})), value)
            best = min(best, tried, key=lambda result: result[0])
            if best[0] < tolerance:
                break
        if best[2] is None:  # a wrong one adds its own error to that which is there
            break
        flipped[best[2]] = near[best[2]]
        error, near = best[:2]
    distances = ", ".join(f"{distance:.0e}" for distance in flipped.values())
    print(f"relative error {error:.2e}, {len(flipped)} codes flipped ({distances}) of {len(near)}")
    assert error < tolerance, f"{len(flipped)} codes on the other side of a half leave {error:.2e}"
    return len(flipped)
