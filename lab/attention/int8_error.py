"""What INT8 scores cost attention, without a GPU: NRMSE of the output against float64.

q and k become codes as Octet makes them (a scale for each row of each head, keys without the mean
of some hundred of them); scores are exact integers then, weights are rounded to bf16 as the kernels
do, and values are bf16. Beside it the same with bf16 q and k, as of `--attention bf16`.
"""

import math

import torch

ROWS, KEYS, HEAD = 256, 2048, 256


def codes(x: torch.Tensor) -> torch.Tensor:
    """What the codes of rows stand for."""
    amax = x.abs().amax(-1, keepdim=True)
    return torch.where(amax > 0, torch.round(x * (127 / amax)) * (amax / 127), x)


def attention(q, k, v, rounds_weights=False):
    scores = q @ k.T / math.sqrt(q.shape[-1])
    weights = torch.exp(scores - scores.amax(-1, keepdim=True))
    total = weights.sum(-1, keepdim=True)
    if rounds_weights:
        weights = weights.bfloat16().double()
    return weights @ v / total


def cases(generator):
    def normal(rows):
        return torch.randn(rows, HEAD, generator=generator, dtype=torch.float64)

    q, k, v = normal(ROWS), normal(KEYS), normal(KEYS)
    yield "random, scores of deviation 1", q, k, v
    yield "random, scores of deviation 1/4", q / 2, k / 2, v
    yield "random, scores of deviation 4", 2 * q, 2 * k, v
    yield "huge scores, deviation 64: one key takes all", 8 * q, 8 * k, v
    yield "keys with a common bias of 8 deviations", q, k + 8 * normal(1), v
    outlier = k.clone()
    outlier[:, 7] *= 30
    yield "one channel of the keys 30 times as large", q, outlier, v
    rows = k.clone()
    rows[::97] *= 20
    yield "every 97th key 20 times as large", q, rows, v
    constant = q.clone()
    constant[:] = 1
    yield "constant rows of q", constant, k, v
    yield "values with a mean of 4", q, k, v + 4


def main() -> None:
    generator = torch.Generator().manual_seed(1)
    print(f"{'case':50s} {'bf16':>8s} {'INT8':>8s} {'INT8, keys with their mean':>28s}")
    for name, q, k, v in cases(generator):
        v = v.bfloat16().double()
        want = attention(q, k, v)

        def error(of_q, of_k, want=want, v=v):
            return ((attention(of_q, of_k, v, True) - want).norm() / want.norm()).item()

        smooth = k - k[:: max(1, KEYS // 256)].mean(0, keepdim=True)
        row = (error(q.bfloat16().double(), k.bfloat16().double()),
               error(codes(q), codes(smooth)), error(codes(q), codes(k)))
        print(f"{name:50s} {row[0]:8.4f} {row[1]:8.4f} {row[2]:28.4f}")


if __name__ == "__main__":
    main()
