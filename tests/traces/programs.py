"""The programs that are recorded: one for each way to run, or to pretend to run, quantized linears,
and some that have none, but look as if.
"""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn

import linears
from network import Dit, compiled, graphed, input_of, stack
from registry import ALL, LONG, PROGRAMS, program

__all__ = ["PROGRAMS"]

# --- unquantized ---------------------------------------------------------------------------------

GPU, CPU = ("cuda",), ("cpu",)


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


# --- fake ----------------------------------------------------------------------------------------

# Without shapes nothing but the sizes of launches tells weights from activations.
_CODES_UNSEEN = {"plain": ["unclear"]}
_FAKE = {"linears": ALL, "fake": ALL}


@program("fake_int8", "INT8 weights, dequantized before each bf16 product.", "fake_int8",
         linears=2 * ALL, fake=2 * ALL, **LONG, may_be=_CODES_UNSEEN)
def _(setting):
    return stack(setting, linears.FakeInt8)


@program("fake_int8_activations", "Fake INT8 that also quantizes and dequantizes activations.",
         "fake_int8", **_FAKE, may_be=_CODES_UNSEEN)
def _(setting):
    return stack(setting, linears.FakeInt8Activations)


@program("fake_int8_cast", "INT8 weights cast to bf16 for each product, the scale applied to the "
         "output.", "fake_int8", **_FAKE, may_be=_CODES_UNSEEN)
def _(setting):
    return stack(setting, linears.FakeInt8InPieces)


@program("fake_int8_compiled", "Fake INT8 through torch.compile: dequantizations are fused "
         "kernels (of Triton on a GPU).", "fake_int8", **_FAKE,
         may_be=_CODES_UNSEEN | {"cpu": ["unclear"]})
def _(setting):
    return compiled(setting, linears.FakeInt8)


@program("fake_int8_autotuned", "Fake INT8 through torch.compile, products in Triton: the "
         "dequantization may be fused into them.", "fake_int8", devices=GPU, seconds=75, **_FAKE,
         may_be={"shapes": ["weight_only", "unclear"], "plain": ["weight_only", "unclear"]})
def _(setting):
    return compiled(setting, linears.FakeInt8, options={
        "max_autotune_gemm": True, "max_autotune_gemm_backends": "TRITON"})


@program("fake_int8_graph", "Fake INT8 from a CUDA graph.", "fake_int8", devices=GPU, **_FAKE,
         may_be={"shapes": ["unclear"], "plain": ["unclear"]})
def _(setting):
    return graphed(setting, linears.FakeInt8)


@program("fake_int8_from_host", "Fake INT8 whose codes are sent from host memory for each call.",
         "fake_int8", devices=GPU, **_FAKE, may_be=_CODES_UNSEEN)
def _(setting):
    return stack(setting, linears.FakeInt8FromHost)


@program("fake_int8_one_token", "Fake INT8 with one token.", "fake_int8", devices=GPU, **_FAKE,
         may_be=_CODES_UNSEEN)
def _(setting):
    return stack(setting, linears.FakeInt8, tokens=1)


@program("fake_fp8", "FP8 weights with a scale, dequantized before each bf16 product.",
         "fake_fp8", **_FAKE, may_be=_CODES_UNSEEN)
def _(setting):
    return stack(setting, linears.FakeFp8)


@program("fake_fp8_cast", "FP8 weights without scales, cast before each bf16 product.",
         "fake_fp8", **_FAKE, may_be=_CODES_UNSEEN)
def _(setting):
    return stack(setting, linears.CastFp8)


@program("fake_fp8_compiled", "Fake FP8 through torch.compile.", "fake_fp8", devices=GPU, **_FAKE,
         may_be=_CODES_UNSEEN)
def _(setting):
    return compiled(setting, linears.FakeFp8)


@program("gguf_q8", "GGUF's Q8_0, dequantized in PyTorch for each product.", "fake_int8", **_FAKE,
         may_be=_CODES_UNSEEN)
def _(setting):
    return stack(setting, linears.GgufQ8)


@program("gguf_q4", "GGUF's Q4_0, dequantized in PyTorch for each product.", "fake_four_bit",
         **_FAKE, may_be={"shapes": ["fake_int8"], "plain": ["fake_int8", "unclear"]})
def _(setting):
    return stack(setting, linears.GgufQ4)


@program("bitsandbytes_nf4", "bitsandbytes' NF4 linears: dequantized, then bf16.",
         "fake_four_bit", **_FAKE)
def _(setting):
    return stack(setting, linears.nf4)


@program("bitsandbytes_nf4_one_token", "bitsandbytes' NF4 with one token: its kernel widens "
         "weights inside of the product.", "weight_only", devices=GPU)
def _(setting):
    return stack(setting, linears.nf4, tokens=1)


@program("kitchen_nvfp4", "NVFP4 weights that comfy-kitchen dequantizes, then bf16.",
         "fake_four_bit", **_FAKE, devices=GPU)
def _(setting):
    return stack(setting, linears.KitchenNvfp4)


@program("quanto_int8", "optimum-quanto's int8 weights.", "fake_int8", devices=GPU, linears=ALL,
         native=None, fake=None,
         may_be={"shapes": ["weight_only"], "plain": ["weight_only", "unclear"]})
def _(setting):
    from optimum.quanto import freeze, qint8, quantize

    network, step = stack(setting, linears.Plain)
    quantize(network, weights=qint8)
    freeze(network)
    return network, step


# --- weights widened inside of the product -------------------------------------------------------


@program("int4_pack", "PyTorch's 4-bit weights, widened inside of the GEMM.", "weight_only",
         devices=GPU)
def _(setting):
    return stack(setting, linears.Int4Pack)


def _with_torchao(setting, config):
    from torchao import quantization

    network, step = stack(setting, linears.Plain)
    quantization.quantize_(network, getattr(quantization, config)())
    return network, step


@program("torchao_weight_only", "torchao's int8 weight-only linears, eager.", "fake_int8",
         devices=GPU, linears=ALL, native=None, fake=None,
         may_be={"shapes": ["weight_only"], "plain": ["weight_only", "unclear"]})
def _(setting):
    return _with_torchao(setting, "Int8WeightOnlyConfig")


# --- native --------------------------------------------------------------------------------------

_NATIVE = {"linears": ALL, "native": ALL}
# Without shapes a small product cannot be told from a large one.
_SMALL_UNSEEN = {"plain": ["fallback"]}


@program("int_mm", "torch._int_mm, and a dequantization of its int32 sums, eager.", "native_int8",
         linears=2 * ALL, native=2 * ALL, **LONG)
def _(setting):
    return stack(setting, linears.IntMm)


@program("int_mm_compiled", "torch._int_mm through torch.compile.", "native_int8", **_NATIVE)
def _(setting):
    return compiled(setting, linears.IntMm)


@program("int_mm_autotuned", "torch._int_mm through torch.compile, as kernels of Triton.",
         "native_int8", devices=GPU, seconds=75, **_NATIVE)
def _(setting):
    return compiled(setting, linears.IntMm, options={
        "max_autotune_gemm": True, "max_autotune_gemm_backends": "TRITON"})


@program("int_mm_graph", "torch._int_mm from a CUDA graph.", "native_int8", devices=GPU, **_NATIVE)
def _(setting):
    return graphed(setting, linears.IntMm)


@program("int_mm_lora", "torch._int_mm with a LoRA of rank 16 in bf16 beside each linear.",
         "native_int8", linears=None, native=ALL, may_be=_SMALL_UNSEEN)
def _(setting):
    return stack(setting, linears.IntMmWithLora)


@program("int_mm_whole", "torch._int_mm in the blocks; embedding, modulation and last layer are "
         "small, and bf16.", "native_int8", linears=None, native=ALL, may_be=_SMALL_UNSEEN)
def _(setting):
    def plain(n, k):
        return linears.Plain(torch.randn(n, k, device=setting.device, dtype=torch.bfloat16))

    network = Dit(setting, linears.IntMm)
    network.embed, network.last = plain(setting.hidden, 64), plain(64, setting.hidden)
    network.modulation = plain(2 * setting.hidden, 256)
    kinds = {"device": setting.device, "dtype": torch.bfloat16}
    x, time = torch.randn(1, setting.tokens, 64, **kinds), torch.randn(1, 256, **kinds)

    def step():
        scale, shift = network.modulation(F.silu(time)).chunk(2, -1)
        return network.last(network(network.embed(x) * (1 + scale) + shift))

    return network, step


@program("triton_int8", "A fused INT8 GEMM in Triton (bench/triton_int8.py).", "native_int8",
         devices=GPU, **_NATIVE)
def _(setting):
    return stack(setting, linears.TritonInt8)


@program("kitchen", "comfy-kitchen's INT8 linears, its CUDA kernels.", "native_int8",
         devices=GPU, **_NATIVE)
def _(setting):
    return stack(setting, linears.Kitchen)


@program("kitchen_convrot", "comfy-kitchen's INT8 linears with rotated activations.",
         "native_int8", devices=GPU, **_NATIVE)
def _(setting):
    return stack(setting, partial(linears.Kitchen, convrot=True))


@program("kitchen_triton", "comfy-kitchen's INT8 linears, its CUDA kernels switched off: Triton.",
         "native_int8", devices=GPU, **_NATIVE)
def _(setting):
    import comfy_kitchen

    comfy_kitchen.registry.disable("cuda")
    return stack(setting, linears.Kitchen)


@program("kitchen_eager", "comfy-kitchen's INT8 linears, CUDA and Triton switched off: "
         "torch._int_mm, slow around it.", "native_int8", **_NATIVE)
def _(setting):
    import comfy_kitchen

    for backend in ("cuda", "triton"):
        comfy_kitchen.registry.disable(backend)
    return stack(setting, linears.Kitchen)


@program("bitsandbytes_int8", "bitsandbytes' LLM.int8 without outliers.", "native_int8",
         **_NATIVE)
def _(setting):
    return stack(setting, partial(linears.llm_int8, threshold=0.0), torch.float16)


@program("bitsandbytes_int8_outliers", "bitsandbytes' LLM.int8, outliers beside it in fp16.",
         "native_int8", devices=GPU, linears=None, native=ALL,
         may_be={"shapes": ["fallback"], "plain": ["fallback"]})
def _(setting):
    return stack(setting, partial(linears.llm_int8, threshold=3.0), torch.float16)


@program("torchao_dynamic", "torchao's int8 weights with dynamic int8 activations, eager.",
         "native_int8", **_NATIVE)
def _(setting):
    return _with_torchao(setting, "Int8DynamicActivationInt8WeightConfig")


@program("quantize_dynamic", "PyTorch's dynamic quantization for CPUs, quantized::linear_dynamic.",
         "native_int8", devices=CPU, **_NATIVE)
def _(setting):
    from torch.ao.quantization import quantize_dynamic

    def plain(weight):  # it knows no classes derived from this one
        return nn.Linear(weight.shape[1], weight.shape[0])

    network = quantize_dynamic(Dit(setting, plain, torch.float32), {nn.Linear}, torch.qint8)
    x = input_of(setting, torch.float32)
    return network, lambda: network(x)


@program("octet", "Octet's INT8 linears, through its library.", "native_int8", devices=GPU,
         linears=2 * ALL, native=2 * ALL, **LONG)
def _(setting):
    library = os.environ.get("OCTET_LIBRARY")
    if not library:
        raise RuntimeError("needs --octet-lib")
    return stack(setting, partial(linears.OctetInt8, library=Path(library)))


@program("fp8_row", "FP8 products, scales by rows.", "native_fp8", devices=GPU, **_NATIVE)
def _(setting):
    return stack(setting, partial(linears.Fp8, by_rows=True))


@program("fp8_tensor", "FP8 products, one scale per tensor.", "native_fp8", devices=GPU, **_NATIVE)
def _(setting):
    return stack(setting, partial(linears.Fp8, by_rows=False))


@program("fp8_compiled", "FP8 products by rows through torch.compile.", "native_fp8",
         devices=GPU, **_NATIVE)
def _(setting):
    return compiled(setting, partial(linears.Fp8, by_rows=True))


# --- some of each --------------------------------------------------------------------------------


@program("fallback", "torch._int_mm in the first block, fake INT8 in the other.", "fallback",
         linears=ALL, native=ALL // 2, fake=ALL // 2)
def _(setting):
    def kind(weight, block):
        return (linears.IntMm if block < setting.blocks // 2 else linears.FakeInt8)(weight)

    return stack(setting, kind, by_block=True)


@program("fallback_compiled", "The same mix through torch.compile.", "fallback", devices=GPU,
         linears=ALL, native=ALL // 2, fake=ALL // 2)
def _(setting):
    def kind(weight, block):
        return (linears.IntMm if block < setting.blocks // 2 else linears.FakeInt8)(weight)

    network, x = Dit(setting, kind, by_block=True), input_of(setting)
    fast = torch.compile(network)
    return None, lambda: fast(x)


@program("protected", "torch._int_mm, but the last block kept in bf16 on purpose: no sign of "
         "quantized weights there.", "native_int8", linears=ALL, native=ALL // 2,
         may_be={"shapes": ["fallback"], "plain": ["fallback"]})
def _(setting):
    def kind(weight, block):
        is_last = block == setting.blocks - 1
        return linears.Plain(weight, bias=False) if is_last else linears.IntMm(weight)

    return stack(setting, kind, by_block=True)
