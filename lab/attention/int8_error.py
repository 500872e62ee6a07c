"""What INT8 scores cost attention, and whether a finer quantization would cost less.

    record_heads MODEL CAPTION,CAPTION STEPS heads.safetensors    (ninja record_heads)
    int8_error.py [heads.safetensors]

NRMSE of the output against the same attention in float32, without a GPU. Products of codes are
exact; values, weights and the output are bf16 as in Octet's kernels. `bf16` is attention without
codes; `row` is what Octet does: a scale for each row of each head, keys without the mean of some
hundred of them. The other ways change that; except for the rounding, none changes the value of the
scores:

    group 64     a scale for every 64 channels of a row (32: for every 32)
    hadamard     q and k rotated by a Hadamard matrix, a row's outliers spread over all channels
    balanced     channels of k divided, and of q multiplied, by a vector that evens out their
                 maxima; both halves of a rotary pair alike, so norm weights could hold it
    q mean       q without its mean as well, whose scores are added to each key in float32
    both         hadamard, group 64
    q exact      only k in codes: what eight bits cost however well q is done
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator

import torch

Heads = torch.Tensor  # [heads, rows, head size]
ROWS, KEYS = 256, 2048
GATE = 0.005  # nn::kInt8ScoresGate


def codes(x: Heads, group: int = 0) -> Heads:
    """The values of the codes of rows, or of groups of their channels."""
    parts = x.unflatten(-1, (-1, group or x.shape[-1]))
    amax = parts.abs().amax(-1, keepdim=True)
    step = torch.where(amax > 0, amax / 127, 1)
    return (torch.round(parts / step) * step).flatten(-2)


def smooth(k: Heads) -> Heads:
    return k - k[:, :: max(1, k.shape[1] // 256)].mean(1, keepdim=True)


def hadamard(x: Heads) -> Heads:
    size = x.shape[-1]
    matrix = torch.ones(1, 1)
    while len(matrix) < size:
        matrix = torch.cat([torch.cat([matrix, matrix], 1), torch.cat([matrix, -matrix], 1)])
    return x @ (matrix / math.sqrt(size))


def balanced(q: Heads, k: Heads) -> tuple[Heads, Heads]:
    def largest(x: Heads) -> Heads:
        pairs = x.abs().amax((0, 1)).unflatten(-1, (2, -1)).amax(0)
        return torch.cat([pairs, pairs]).clamp(min=1e-6)

    factor = torch.sqrt(largest(k) / largest(q))
    return q * factor, k / factor


def dot(q: Heads, k: Heads) -> torch.Tensor:
    return q @ k.transpose(-1, -2)


def of_balanced(q: Heads, k: Heads) -> torch.Tensor:
    q, k = balanced(q, smooth(k))
    return dot(codes(q), codes(k))


def without_means(q: Heads, k: Heads) -> torch.Tensor:
    k = smooth(k)
    mean = q.mean(1, keepdim=True)
    return dot(codes(q - mean), codes(k)) + dot(mean, k)


def rounded(x: torch.Tensor) -> torch.Tensor:
    return x.bfloat16().float()


WAYS: dict[str, Callable[[Heads, Heads], torch.Tensor]] = {
    "bf16": lambda q, k: dot(rounded(q), rounded(k)),
    "row": lambda q, k: dot(codes(q), codes(smooth(k))),
    "with mean": lambda q, k: dot(codes(q), codes(k)),
    "group 64": lambda q, k: dot(codes(q, 64), codes(smooth(k), 64)),
    "group 32": lambda q, k: dot(codes(q, 32), codes(smooth(k), 32)),
    "hadamard": lambda q, k: dot(codes(hadamard(q)), codes(hadamard(smooth(k)))),
    "balanced": of_balanced,
    "q mean": without_means,
    "both": lambda q, k: dot(codes(hadamard(q), 64), codes(hadamard(smooth(k)), 64)),
    "q exact": lambda q, k: dot(q, codes(smooth(k))),
}


class Errors:
    """Squared errors of all ways, summed over attentions."""

    def __init__(self) -> None:
        self.squares = dict.fromkeys(WAYS, 0.0)
        self.whole = 0.0

    def add(self, q: Heads, k: Heads, v: Heads) -> None:
        scale = 1 / math.sqrt(q.shape[-1])
        want = torch.softmax(dot(q.double(), k.double()) * scale, -1) @ v.double()
        self.whole += want.square().sum().item()
        for name, scores_of in WAYS.items():
            scores = scores_of(q, k) * scale
            weights = torch.exp(scores - scores.amax(-1, keepdim=True))
            total = weights.sum(-1, keepdim=True)
            got = rounded(rounded(weights) @ rounded(v) / total)
            self.squares[name] += (got - want).square().sum().item()

    def merge(self, other: Errors) -> None:
        self.whole += other.whole
        for name in WAYS:
            self.squares[name] += other.squares[name]

    def nrmse(self) -> dict[str, float]:
        return {name: math.sqrt(squares / self.whole) for name, squares in self.squares.items()}


def line(name: str, errors: Errors) -> None:
    print(f"{name:56s}" + "".join(f"{error:10.4f}" for error in errors.nrmse().values()))


def made(head: int) -> Iterator[tuple[str, Heads, Heads, Heads]]:
    generator = torch.Generator().manual_seed(1)

    def normal(rows: int) -> Heads:
        return torch.randn(1, rows, head, generator=generator)

    q, k, v = normal(ROWS), normal(KEYS), normal(KEYS)
    yield "random, scores of deviation 1", q, k, v
    yield "random, scores of deviation 1/4", q / 2, k / 2, v
    yield "random, scores of deviation 4", 2 * q, 2 * k, v
    yield "huge scores, deviation 64", 8 * q, 8 * k, v
    yield "keys with a common bias of 8 deviations", q, k + 8 * normal(1), v
    channel = k.clone()
    channel[:, :, 7] *= 30
    yield "one channel of the keys x 30", q, channel, v
    rows = k.clone()
    rows[:, ::97] *= 20
    yield "every 97th key x 20", q, rows, v
    spikes = k.clone()
    spikes[:, ::97, 7] *= 20
    yield "a channel of every 97th key x 20", q, spikes, v
    yield "constant rows of q", torch.ones_like(q), k, v
    yield "values with a mean of 4", q, k, v + 4


def recorded(path: str) -> None:
    from safetensors import safe_open

    layers: dict[str, Errors] = {}
    spreads: dict[str, list[float]] = {}
    with safe_open(path, "pt") as file:
        for name in sorted(file.keys()):
            if not name.endswith(".q"):
                continue
            q, k, v = (file.get_tensor(name[:-1] + part) for part in "qkv")
            network, layer, _, _, _ = name.split(".")
            at = f"{network} {layer}, heads of {q.shape[-1]}"
            layers.setdefault(at, Errors()).add(q, k, v)
            scores = dot(q, k) / math.sqrt(q.shape[-1])
            spreads.setdefault(at, []).append(scores.std(-1).mean().item())
    whole = Errors()
    for at, errors in sorted(layers.items()):
        spread = sum(spreads[at]) / len(spreads[at])
        line(f"{at} (scores' deviation {spread:.1f})", errors)
        whole.merge(errors)
    line("all layers", whole)
    worst = {way: max(errors.nrmse()[way] for errors in layers.values()) for way in WAYS}
    print(f"{'worst layer':56s}" + "".join(f"{worst[way]:10.4f}" for way in WAYS))
    passing = {way: sum(e.nrmse()[way] <= GATE for e in layers.values()) for way in WAYS}
    print(f"{f'layers of {len(layers)} within {GATE}':56s}"
          + "".join(f"{passing[way]:10d}" for way in WAYS))


def main() -> None:
    print(f"{'NRMSE':56s}" + "".join(f"{name:>10s}" for name in WAYS))
    if len(sys.argv) > 1:
        recorded(sys.argv[1])
    for head in (64, 128, 256):
        print(f"made, heads of {head}")
        for name, q, k, v in made(head):
            errors = Errors()
            errors.add(q, k, v)
            line(name, errors)


if __name__ == "__main__":
    main()
