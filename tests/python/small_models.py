"""Small transformers of plain torch, to be quantized."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F


class Attention(nn.Module):
    def __init__(self, dim: int, bias: bool = False) -> None:
        super().__init__()
        self.to_q = nn.Linear(dim, dim, bias=bias)
        self.to_k = nn.Linear(dim, dim // 2, bias=bias)
        self.to_v = nn.Linear(dim, dim // 2, bias=bias)
        self.to_out = nn.ModuleList([nn.Linear(dim, dim), nn.Dropout(0.0)])

    def forward(self, x, context=None):
        context = x if context is None else context
        q, k, v = self.to_q(x), self.to_k(context), self.to_v(context)
        seen = torch.cat([k, v], dim=-1).mean(-2, keepdim=True)
        return self.to_out[0](q + torch.tanh(seen))


class SwiGlu(nn.Module):
    def __init__(self, dim: int) -> None:
        super().__init__()
        self.w1 = nn.Linear(dim, 2 * dim, bias=False)
        self.w2 = nn.Linear(2 * dim, dim, bias=False)
        self.w3 = nn.Linear(dim, 2 * dim, bias=False)

    def forward(self, x):
        return self.w2(F.silu(self.w1(x)) * self.w3(x))


class GeluGlu(SwiGlu):
    def forward(self, x):
        return self.w2(F.gelu(self.w1(x)) * self.w3(x))


class Block(nn.Module):
    def __init__(self, dim: int, feed_forward=SwiGlu) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(dim)
        self.adaln_modulation = nn.Linear(dim, dim)
        self.attn = Attention(dim, bias=True)
        self.feed_forward = feed_forward(dim)
        self.tiny = nn.Linear(dim, 4)

    def forward(self, x, t):
        h = self.norm1(x) * (1 + self.adaln_modulation(t)) + self.tiny(x).mean() * 0
        x = x + self.attn(h)
        return x + self.feed_forward(x)


class Transformer(nn.Module):
    def __init__(self, dim: int = 64, layers: int = 2, feed_forward=SwiGlu) -> None:
        super().__init__()
        self.proj_in = nn.Linear(16, dim)
        self.time_embed = nn.Linear(dim, dim)
        self.blocks = nn.ModuleList([Block(dim, feed_forward) for _ in range(layers)])
        self.proj_out = nn.Linear(dim, 16)

    def forward(self, x, t):
        x, t = self.proj_in(x), self.time_embed(t)
        for block in self.blocks:
            x = block(x, t)
        return self.proj_out(x)


def inputs(dtype=torch.bfloat16):
    return torch.randn(2, 5, 16, dtype=dtype), torch.randn(64, dtype=dtype)


def transformer(**options) -> nn.Module:
    return Transformer(**options).to(torch.bfloat16).eval()


def residue(model: nn.Module) -> bool:
    """Whether anything waits to be taken."""
    groups = [m.shared for m in model.modules() if getattr(m, "shared", None) is not None]
    assert groups
    return any(group.runs or group.traced for group in groups)
