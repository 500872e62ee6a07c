"""What 8 bits of values and weights cost attention, without a GPU: NRMSE against float64.

`scores`: q and k as codes, weights and values in bf16. `and values`: `--attention int8-full`, a
scale for 128 keys of v, weights as whole numbers up to 255, relative to the largest of the same 128
keys. `alone`: the latter with exact scores. The last two: only values as codes, and only weights,
relative to the largest of all keys, as a kernel without a scale for each block would have them.
"""

import math

import torch

ROWS, KEYS, HEAD, BLOCK = 256, 2048, 256, 128


def codes(x, amax):
    """The values of the codes of x, whose largest magnitudes are `amax`."""
    return torch.where(amax > 0, torch.round(x * (127 / amax)) * (amax / 127), 0)


def of_rows(x):
    return codes(x, x.abs().amax(-1, keepdim=True))


def of_values(v):
    blocks = v.view(-1, BLOCK, HEAD)
    return codes(blocks, blocks.abs().amax((1, 2), keepdim=True)).view(v.shape)


def coded(scores, values, width=BLOCK):
    blocks = scores.view(ROWS, -1, width)
    largest = blocks.amax(-1, keepdim=True)
    weights = torch.round(255 * torch.exp(blocks - largest))
    weights = (weights * torch.exp(largest - largest.amax(1, keepdim=True))).view(scores.shape)
    return weights @ values / weights.sum(-1, keepdim=True)


def floating(scores, values, rounds):
    weights = torch.exp(scores - scores.amax(-1, keepdim=True))
    total = weights.sum(-1, keepdim=True)
    return (weights.bfloat16().double() if rounds else weights) @ values / total


def main() -> None:
    generator = torch.Generator().manual_seed(1)
    q, k, v = (torch.randn(n, HEAD, generator=generator, dtype=torch.float64)
               for n in (ROWS, KEYS, KEYS))
    cases = {"random, scores of deviation 1": (q, k), "random, 1/4": (q / 2, k / 2),
             "random, 4": (2 * q, 2 * k), "random, 64: one key takes all": (8 * q, 8 * k),
             "constant rows of q": (torch.ones_like(q), k)}
    columns = ("scores", "and values", "alone", "values", "weights, one maximum")
    print(f"{'':32s}" + "".join(f"{column:>22s}" for column in columns))
    rounded = v.bfloat16().double()
    for name, (q, k) in cases.items():
        exact = q @ k.T / math.sqrt(HEAD)
        scores = of_rows(q) @ of_rows(k - k[::KEYS // 256].mean(0)).T / math.sqrt(HEAD)
        want = floating(exact, v, rounds=False)
        results = (floating(scores, rounded, rounds=True), coded(scores, of_values(rounded)),
                   coded(exact, of_values(rounded)), floating(exact, of_values(v), rounds=False),
                   coded(exact, v, width=KEYS))
        errors = [((got - want).norm() / want.norm()).item() for got in results]
        print(f"{name:32s}" + "".join(f"{error:22.4f}" for error in errors))


if __name__ == "__main__":
    main()
