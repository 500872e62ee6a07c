"""The programs that are recorded: one for each way to run, or to pretend to run, quantized linears,
and those of unquantized_programs.py.
"""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn

import linears
import unquantized_programs  # noqa: F401: they register themselves
from network import Dit, compiled, graphed, input_of, stack
from registry import ALL, CPU, GPU, LONG, PROGRAMS, program

__all__ = ["PROGRAMS"]

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
_SMALL_UNSEEN = {"plain": ["unclear"]}


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
         "native_int8", devices=GPU, linears=None, native=ALL)
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
         linears=ALL, native=ALL // 2, fake=ALL // 2, may_be=_CODES_UNSEEN)
def _(setting):
    def kind(weight, block):
        return (linears.IntMm if block < setting.blocks // 2 else linears.FakeInt8)(weight)

    return stack(setting, kind, by_block=True)


@program("fallback_compiled", "The same mix through torch.compile.", "fallback", devices=GPU,
         linears=ALL, native=ALL // 2, fake=ALL // 2, may_be=_CODES_UNSEEN)
def _(setting):
    def kind(weight, block):
        return (linears.IntMm if block < setting.blocks // 2 else linears.FakeInt8)(weight)

    network, x = Dit(setting, kind, by_block=True), input_of(setting)
    fast = torch.compile(network)
    return None, lambda: fast(x)


@program("protected", "torch._int_mm, but the last of two blocks kept in bf16 on purpose: half of "
         "the linears of each size, with nothing that tells the purpose.", "unclear", linears=ALL,
         native=ALL // 2)
def _(setting):
    def kind(weight, block):
        is_last = block == setting.blocks - 1
        return linears.Plain(weight, bias=False) if is_last else linears.IntMm(weight)

    return stack(setting, kind, by_block=True)
