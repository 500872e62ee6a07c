"""Ideogram 4's transformer in plain PyTorch, as fast as PyTorch allows: q, k and v in one product
and w1 and w3 in another, no mask, the text projected once per prompt, each block compiled, cuDNN's
attention if it runs. Large linears are of the kinds in KINDS; the rest is bf16.

A test compares it with diffusers' transformer.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
import torch.nn.functional as F

import kitchen

FP8 = torch.float8_e4m3fn
FP8_MAX = torch.finfo(FP8).max
IMAGE_POSITION = 65536  # of the first image token, on every axis


class Sizes(NamedTuple):
    """Those of the published model."""

    layers: int = 34
    heads: int = 18
    head_dim: int = 256
    ffn: int = 12288
    modulation: int = 512
    channels: int = 128
    theta: float = 5e6
    sections: tuple = (24, 20, 20)
    eps: float = 1e-5

    @property
    def hidden(self) -> int:
        return self.heads * self.head_dim


# --- kinds of linears: the form of a weight [n, k], and the product with it ----------------------


class Kind(NamedTuple):
    pack: object  # weight -> tensors
    run: object  # x [m, k], tensors -> [m, n]


def _scaled_to(largest: float, amax, wide, dtype):
    scale = amax.clamp_min(1e-12) / largest
    return (wide / scale).to(dtype), scale


def _pack_int8(weight, convrot: bool):
    wide = kitchen.rotated(weight) if convrot else weight.float()
    scale = wide.abs().amax(1).clamp_min(1e-12) / 127
    return torch.round(wide / scale[:, None]).to(torch.int8), scale


def _pack_fp8_row(weight):
    values, scale = _scaled_to(FP8_MAX, weight.float().abs().amax(1, keepdim=True),
                               weight.float(), FP8)
    return values, scale.t().contiguous()


def _run_fp8_row(x, packed):
    values, scale = _scaled_to(FP8_MAX, x.abs().amax(1, keepdim=True).float(), x.float(), FP8)
    return torch._scaled_mm(values, packed[0].t(), scale_a=scale, scale_b=packed[1],
                            out_dtype=torch.bfloat16, use_fast_accum=True)


def _run_fp8_tensor(x, packed):
    values, scale = _scaled_to(FP8_MAX, x.abs().amax().float(), x.float(), FP8)
    return torch._scaled_mm(values, packed[0].t(), scale_a=scale, scale_b=packed[1],
                            out_dtype=torch.bfloat16, use_fast_accum=True)


# An op of our own: torch.compile cannot look into comfy-kitchen's dispatch.
@torch.library.custom_op("octet_bench::kitchen_linear", mutates_args=())
def _kitchen_linear(x: torch.Tensor, weight: torch.Tensor, scale: torch.Tensor,
                    convrot: bool) -> torch.Tensor:
    return kitchen.linear(x.contiguous(), weight, scale, convrot=convrot)


@_kitchen_linear.register_fake
def _(x, weight, scale, convrot):
    return x.new_empty((x.shape[0], weight.shape[0]), dtype=torch.bfloat16)


KINDS = {
    "bf16": Kind(lambda weight: (weight,), lambda x, packed: F.linear(x, packed[0])),
    "fp8_row": Kind(_pack_fp8_row, _run_fp8_row),
    "fp8_tensor": Kind(lambda weight: _scaled_to(FP8_MAX, weight.float().abs().amax(),
                                                 weight.float(), FP8), _run_fp8_tensor),
    "kitchen": Kind(lambda weight: _pack_int8(weight, False),
                    lambda x, packed: _kitchen_linear(x, *packed, False)),
    "kitchen_convrot": Kind(lambda weight: _pack_int8(weight, True),
                            lambda x, packed: _kitchen_linear(x, *packed, True)),
}


# --- the model -----------------------------------------------------------------------------------


def make_model(sizes: Sizes, kind: Kind, tensor) -> dict:
    """tensor(name, shape): the weight of this name, in diffusers' layout except attention.qkv and
    feed_forward.w13, whose rows follow one another."""
    d, a = sizes.hidden, sizes.modulation

    def affine(name, n, k):
        return tensor(f"{name}.weight", (n, k)), tensor(f"{name}.bias", (n,))

    def block(at):
        def large(name, n, k):
            return kind.pack(tensor(f"{at}.{name}.weight", (n, k)))

        def norm(name, length=d):
            return tensor(f"{at}.{name}.weight", (length,))

        return {
            "modulation": affine(f"{at}.adaln_modulation", 4 * d, a),
            "qkv": large("attention.qkv", 3 * d, d),
            "o": large("attention.to_out.0", d, d),
            "w13": large("feed_forward.w13", 2 * sizes.ffn, d),
            "w2": large("feed_forward.w2", d, sizes.ffn),
            "norm_q": norm("attention.norm_q", sizes.head_dim),
            "norm_k": norm("attention.norm_k", sizes.head_dim),
            "before": (norm("attention_norm1"), norm("ffn_norm1")),
            "after": (norm("attention_norm2"), norm("ffn_norm2")),
        }

    return {
        "input": affine("input_proj", d, sizes.channels),
        "roles": tensor("embed_image_indicator.weight", (2, d)),
        "time_in": affine("t_embedding.mlp_in", d, d),
        "time_out": affine("t_embedding.mlp_out", d, d),
        "conditioning": affine("adaln_proj", a, d),
        "blocks": [block(f"layers.{i}") for i in range(sizes.layers)],
        "final_modulation": affine("final_layer.adaln_modulation", d, a),
        "final": affine("final_layer.linear", sizes.channels, d),
    }


def rotary_tables(sizes: Sizes, text_tokens: int, grid: tuple, device):
    """cos and sin [tokens, 1, head_dim] in float32."""
    half = sizes.head_dim // 2
    rates = sizes.theta ** -(torch.arange(half, dtype=torch.float64) / half)
    text = torch.arange(text_tokens, dtype=torch.float64)[:, None].expand(-1, 3)
    rows, columns = torch.meshgrid(*(torch.arange(n, dtype=torch.float64) for n in grid),
                                   indexing="ij")
    image = torch.stack([torch.zeros_like(rows), rows, columns], -1).flatten(0, 1)
    positions = torch.cat([text, image + IMAGE_POSITION])
    axes = torch.zeros(half, dtype=torch.long)
    for axis in (1, 2):
        axes[axis:3 * sizes.sections[axis]:3] = axis
    angles = (positions[:, axes] * rates).repeat(1, 2)[:, None]
    return angles.cos().float().to(device), angles.sin().float().to(device)


def _normed(x, weight, eps: float):
    return F.rms_norm(x, (x.shape[-1],), weight, eps)


def _turned(x, cos, sin):
    first, second = x.float().chunk(2, -1)
    return (x * cos + torch.cat([-second, first], -1) * sin).to(x.dtype)


def run_block(linear, sizes: Sizes, h, c, cos, sin, block: dict):
    """h [L, D] after one block; c [A]."""
    scale1, gate1, scale2, gate2 = F.linear(c, *block["modulation"]).chunk(4)
    x = _normed(h, block["before"][0], sizes.eps) * (1 + scale1)
    q, k, v = linear(x, block["qkv"]).view(-1, 3, sizes.heads, sizes.head_dim).unbind(1)
    q = _turned(_normed(q, block["norm_q"], 1e-5), cos, sin)
    k = _turned(_normed(k, block["norm_k"], 1e-5), cos, sin)
    mixed = F.scaled_dot_product_attention(*(t.transpose(0, 1)[None] for t in (q, k, v)))
    a = linear(mixed[0].transpose(0, 1).flatten(1), block["o"])
    h = h + gate1.tanh() * _normed(a, block["after"][0], sizes.eps)
    gate, up = linear(_normed(h, block["before"][1], sizes.eps) * (1 + scale2),
                      block["w13"]).chunk(2, -1)
    m = linear(F.silu(gate) * up, block["w2"])
    return h + gate2.tanh() * _normed(m, block["after"][1], sizes.eps)


def forward(run, sizes: Sizes, model: dict, text, z, time: float, tables):
    """The velocity [image tokens, channels] of latents z. text [n, D]: its projected tokens, with
    their role added. run: what block_runner() returned."""
    half = sizes.hidden // 2
    rates = torch.exp(torch.arange(half, device=z.device) * (-math.log(1e4) / (half - 1)))
    angles = 1e4 * torch.tensor(time, dtype=z.dtype).float().item() * rates
    waves = torch.cat([angles.sin(), angles.cos()]).to(z.dtype)
    c = F.linear(F.silu(F.linear(waves, *model["time_in"])), *model["time_out"])
    c = F.silu(F.linear(c, *model["conditioning"]))
    h = torch.cat([text, F.linear(z, *model["input"]) + model["roles"][1]])
    for block in model["blocks"]:
        h = run(h, c, *tables, block)
    scale = 1 + F.linear(F.silu(c), *model["final_modulation"])
    h = F.layer_norm(h[len(text):], (sizes.hidden,), eps=1e-6)
    return F.linear(h * scale, *model["final"])


def block_runner(kind: Kind, sizes: Sizes, compiled: bool = True):
    """run_block without its first two arguments; one compilation serves all blocks of a shape."""

    def run(h, c, cos, sin, block):
        return run_block(kind.run, sizes, h, c, cos, sin, block)

    return torch.compile(run, dynamic=False) if compiled else run
