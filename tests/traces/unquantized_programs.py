"""Recorded programs that quantize nothing, some of which look as if."""

from __future__ import annotations

from functools import partial

import torch
import torch.nn.functional as F
from torch import nn

import linears
from network import Dit, compiled, graphed, input_of, stack
from registry import ALL, GPU, LONG, program


@program("bf16", "A transformer in bf16, eager, linears with biases.", "unquantized",
         linears=2 * ALL, **LONG)
def _(setting):
    return stack(setting, linears.Plain)


@program("bf16_attention", "bf16; each block has another backend of SDPA: flash, cuDNN, "
         "memory-efficient, math.", "unquantized", devices=GPU, linears=2 * ALL, **LONG)
def _(setting):
    from torch.nn.attention import SDPBackend, sdpa_kernel

    backends = (SDPBackend.FLASH_ATTENTION, SDPBackend.CUDNN_ATTENTION,
                SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH)

    def with_backend(backend, q, k, v):
        with sdpa_kernel(backend):
            return F.scaled_dot_product_attention(q, k, v)

    network, step = stack(setting, partial(linears.Plain, bias=False))
    for block, backend in zip(network.blocks, backends):
        block.attention.sdpa = partial(with_backend, backend)
    return network, step


@program("bf16_compiled", "bf16 through torch.compile.", "unquantized",
         may_be={"cpu": ["unclear"]})
def _(setting):
    return compiled(setting, linears.Plain)


@program("bf16_autotuned", "bf16 through torch.compile, its products in Triton.", "unquantized",
         devices=GPU, seconds=75)
def _(setting):
    return compiled(setting, linears.Plain, options={
        "max_autotune_gemm": True, "max_autotune_gemm_backends": "TRITON",
        "max_autotune_gemm_search_space": "DEFAULT"})


@program("bf16_graph", "bf16 from a CUDA graph.", "unquantized", devices=GPU)
def _(setting):
    return graphed(setting, linears.Plain)


@program("bf16_one_token", "bf16 with one token, as a language model decodes.", "unquantized")
def _(setting):
    return stack(setting, partial(linears.Plain, bias=False), tokens=1)


@program("bf16_picture", "bf16 linears that read a uint8 picture: the codes that are widened are "
         "no weight.", "unquantized", linears=ALL + 1, may_be={"plain": ["unclear"]})
def _(setting):
    side = 1024 if setting.is_cuda else 64
    picture = torch.randint(0, 256, (1, 3, side, side), dtype=torch.uint8, device=setting.device)
    network = Dit(setting, partial(linears.Plain, bias=False))
    weight = torch.randn(setting.hidden, picture.numel() // setting.tokens,
                         device=setting.device, dtype=torch.bfloat16)
    network.embed = linears.Plain(weight)

    def step():
        x = picture.to(torch.bfloat16) / 127.5 - 1
        return network(network.embed(x.reshape(1, setting.tokens, -1)))

    return network, step


@program("f32", "float32, TF32 off.", "unquantized")
def _(setting):
    torch.backends.cuda.matmul.allow_tf32 = False
    return stack(setting, linears.Plain, torch.float32)


@program("tf32", "float32 weights, products in TF32.", "unquantized", devices=GPU)
def _(setting):
    torch.backends.cuda.matmul.allow_tf32 = True
    return stack(setting, linears.Plain, torch.float32)


@program("autocast", "float32 weights under autocast: they are cast to 16 bits for each product, "
         "which is no dequantization.", "unquantized", may_be={"plain": ["unclear"]})
def _(setting):
    network, x = Dit(setting, linears.Plain, torch.float32), input_of(setting, torch.float32)
    dtype = torch.float16 if setting.is_cuda else torch.bfloat16

    def step():
        with torch.autocast(setting.device, dtype):
            return network(x)

    return network, step


@program("convolutions", "A decoder of convolutions, as of a VAE.", "no_linears", linears=0)
def _(setting):
    channels, side = (256, 64) if setting.is_cuda else (32, 16)
    kinds = {"device": setting.device, "dtype": torch.bfloat16}
    layers = [nn.Sequential(nn.GroupNorm(8, channels, **kinds), nn.SiLU(),
                            nn.Conv2d(channels, channels, 3, padding=1, **kinds))
              for _ in range(4)]
    network = nn.Sequential(*layers, nn.Upsample(scale_factor=2),
                            nn.Conv2d(channels, 3, 3, padding=1, **kinds))
    x = torch.randn(1, channels, side, side, **kinds)
    return network, lambda: network(x)
