"""The network that the recorded programs run: transformer blocks, small, with the shapes of large
ones. What its linears are is up to the program.
"""

from __future__ import annotations

import dataclasses
from functools import partial

import torch
import torch.nn.functional as F
from torch import nn


@dataclasses.dataclass(frozen=True)
class Setting:
    device: str
    tokens: int
    hidden: int
    ffn: int
    heads: int
    blocks: int = 2

    @property
    def is_cuda(self) -> bool:
        return self.device == "cuda"


# Large enough for the kernels that large models get.
SETTINGS = {"cuda": Setting("cuda", tokens=1024, hidden=1536, ffn=2048, heads=12),
            "cpu": Setting("cpu", tokens=64, hidden=256, ffn=512, heads=4)}


class Attention(nn.Module):
    def __init__(self, setting: Setting, make):
        super().__init__()
        self.heads = setting.heads
        self.qkv = make(3 * setting.hidden, setting.hidden)
        self.o = make(setting.hidden, setting.hidden)
        self.sdpa = F.scaled_dot_product_attention

    def forward(self, x):
        b, m, _ = x.shape
        q, k, v = (part.view(b, m, self.heads, -1).transpose(1, 2)
                   for part in self.qkv(x).chunk(3, -1))
        return self.o(self.sdpa(q, k, v).transpose(1, 2).reshape(b, m, -1))


class FeedForward(nn.Module):
    def __init__(self, setting: Setting, make):
        super().__init__()
        self.w13 = make(2 * setting.ffn, setting.hidden)
        self.w2 = make(setting.hidden, setting.ffn)

    def forward(self, x):
        gate, up = self.w13(x).chunk(2, -1)
        return self.w2(F.silu(gate) * up)


class Block(nn.Module):
    def __init__(self, setting: Setting, make, dtype):
        super().__init__()
        norm = partial(nn.RMSNorm, setting.hidden, eps=1e-6, device=setting.device, dtype=dtype)
        self.norm1, self.attention = norm(), Attention(setting, make)
        self.norm2, self.feed_forward = norm(), FeedForward(setting, make)

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.feed_forward(self.norm2(x))


class Dit(nn.Module):
    """`kind(weight)` makes a linear, or kind(weight, number of the block) where `by_block`."""

    def __init__(self, setting: Setting, kind, dtype=torch.bfloat16, by_block: bool = False):
        super().__init__()

        def maker(block: int):
            def make(n: int, k: int):
                weight = torch.randn(n, k, device=setting.device, dtype=dtype) / k**0.5
                return kind(weight, block) if by_block else kind(weight)

            return make

        self.blocks = nn.ModuleList(Block(setting, maker(i), dtype)
                                    for i in range(setting.blocks))

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x


def input_of(setting: Setting, dtype=torch.bfloat16, tokens: int | None = None):
    return torch.randn(1, tokens or setting.tokens, setting.hidden, device=setting.device,
                       dtype=dtype)


def stack(setting: Setting, kind, dtype=torch.bfloat16, tokens: int | None = None, **rest):
    """The network and a step of it: step.network is what has names."""
    network, x = Dit(setting, kind, dtype, **rest), input_of(setting, dtype, tokens)
    return network, lambda: network(x)


def compiled(setting: Setting, kind, **options):
    network, x = Dit(setting, kind), input_of(setting)
    fast = torch.compile(network, **options)
    return None, lambda: fast(x)


def graphed(setting: Setting, kind):
    """Replays a CUDA graph: the kernels of the trace have no op that launched them."""
    network, x = Dit(setting, kind), input_of(setting)
    for _ in range(3):
        network(x)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        network(x)
    return None, graph.replay
