"""The contestants of bench/peers.py: how each multiplies the same operands, and what its result has
to be. Everything takes its output as an argument, so that it can be poisoned beforehand."""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch._dynamo

import kitchen
from octet_library import WrongResult

DEVICE = "cuda"
FP8 = torch.float8_e4m3fn
FP8_MAX = torch.finfo(FP8).max


class Contestant(NamedTuple):
    work: object  # a function without arguments
    out: torch.Tensor | None  # none: work() returns its result, in memory that it allocates
    kind: str  # of its result: which check it has to pass
    also: tuple = ()  # whatever else it has to write: also poisoned before the check


# --- passes around a GEMM, compiled by torch.compile ---------------------------------------------


def _dequantize(sums, row_scale, col_scale, bias, out):
    y = sums.float() * row_scale[:, None] * col_scale[None, :]
    out.copy_((y if bias is None else y + bias).to(out.dtype))


def _dequantize_rows(values, scales, out):
    out.copy_((values.float() * scales[:, None]).to(out.dtype))


def _quantize(x, values, scales):
    amax = x.float().abs().amax(1)
    scales.copy_(amax / 127)
    values.copy_(torch.round(x.float() * (127 / amax)[:, None]).to(torch.int8))


def _quantize_fp8(x, values, scales):
    amax = x.float().abs().amax(1, keepdim=True)
    scales.copy_(amax / FP8_MAX)
    values.copy_((x.float() * (FP8_MAX / amax)).to(FP8))


def _swiglu(both, out):
    gate, up = both.float().chunk(2, dim=1)
    out.copy_((torch.nn.functional.silu(gate) * up).to(out.dtype))


def compile_passes():
    """Rows are marked as dynamic and the rest is not: one compilation serves every number of rows,
    and loads are still known to be aligned."""
    config = torch._dynamo.config
    config.automatic_dynamic_shapes = False
    for name in ("recompile_limit", "cache_size_limit"):  # the name before torch 2.7
        if hasattr(config, name):
            setattr(config, name, 64)
    return {function.__name__[1:]: torch.compile(function)
            for function in (_dequantize, _dequantize_rows, _quantize, _quantize_fp8, _swiglu)}


def with_dynamic_rows(*tensors):
    for tensor in tensors:
        if tensor.shape[0] > 1:  # torch.compile takes a 1 for what it is
            torch._dynamo.mark_dynamic(tensor, 0)


# --- operands ------------------------------------------------------------------------------------


def quantized_rows(x, largest: float, dtype):
    """(values, scales [rows]) by the row's maximum. Both divisions are of tensors: by a number,
    torch would multiply with its inverse, which rounds twice."""
    wide = x.float()
    amax = wide.abs().amax(1)
    most = torch.full_like(amax, largest)
    values = wide * torch.div(most, amax)[:, None]
    values = torch.round(values).to(dtype) if dtype == torch.int8 else values.to(dtype)
    return values, torch.div(amax, most)


def quantized_tensor(x):
    scale = x.float().abs().amax() / FP8_MAX
    return (x.float() / scale).to(FP8), scale


class WeightOperand:
    """One weight [n, k] in every form that contestants take, made once for all its cases."""

    def __init__(self, octet, n: int, k: int, with_bias: bool, gate_up: bool = False):
        self.n, self.k = n, k
        self.w = torch.randn(n, k, device=DEVICE, dtype=torch.bfloat16) * 0.02
        self.q, self.scale = quantized_rows(self.w, 127.0, torch.int8)
        self.bias = torch.randn(n, device=DEVICE) if with_bias else None
        torch.cuda.synchronize()
        self.packed = octet.pack(self.q, self.scale, self.bias)
        self.packed_gate_up = octet.pack(self.q, self.scale, gate_up=True) if gate_up else None
        self.rotated = quantized_rows(kitchen.rotated(self.w), 127.0, torch.int8)
        self.fp8, fp8_scale = quantized_rows(self.w, FP8_MAX, FP8)
        self.fp8_scale = fp8_scale[None, :].contiguous()
        self.fp8_whole, self.fp8_whole_scale = quantized_tensor(self.w)
        self.dequantized = torch.empty_like(self.w)

    def close(self) -> None:
        torch.cuda.synchronize()
        for packed in (self.packed, self.packed_gate_up):
            if packed is not None:
                packed.close()


class Rows:
    """m tokens for a weight."""

    def __init__(self, octet, weight: WeightOperand, m: int):
        n, k = weight.n, weight.k
        self.m, self.weight = m, weight
        self.x = torch.randn(m, k, device=DEVICE, dtype=torch.bfloat16)
        self.q = torch.empty(m, k, device=DEVICE, dtype=torch.int8)
        self.scale = torch.empty(m, device=DEVICE)
        self.out = torch.empty(m, n, device=DEVICE, dtype=torch.bfloat16)
        self.sums = torch.empty(m, n, device=DEVICE, dtype=torch.int32)
        self.fp8, self.fp8_scale = quantized_rows(self.x, FP8_MAX, FP8)
        self.fp8_scale = self.fp8_scale[:, None].contiguous()
        self.fp8_whole, self.fp8_whole_scale = quantized_tensor(self.x)
        # Of fake INT8, which quantizes for itself: what the others multiply stays.
        self.fake_q, self.fake_scale = torch.empty_like(self.q), torch.empty_like(self.scale)
        self.dequantized = torch.empty_like(self.x)
        self.triton = None  # (config, function, configs measured) once it was searched for
        with_dynamic_rows(self.x, self.q, self.scale, self.out, self.sums, self.fake_q,
                          self.fake_scale, self.dequantized)
        octet.quantize(self.x, self.q, self.scale)()
        self._check_quantization()

    def _check_quantization(self) -> None:
        values, scale = quantized_rows(self.x, 127.0, torch.int8)
        off = (values.int() - self.q.int()).abs()
        if off.max() > 1 or (off > 0).float().mean() > 1e-3 or not torch.allclose(
                scale, self.scale, rtol=1e-6, atol=0):
            raise WrongResult(f"Octet's quantized activations at m={self.m} k={self.weight.k} are "
                              "not those of the formula")


# --- the GEMMs -----------------------------------------------------------------------------------


def gemms(octet, turns, passes, rows: Rows, notes: dict):
    """{name: function that makes a Contestant}. Making one may fail if a library does not take the
    shape. notes receives remarks about contestants."""
    weight, out = rows.weight, rows.out
    bias16 = None if weight.bias is None else weight.bias.bfloat16()
    fusion = "none" if weight.bias is None else "bias"

    def int_mm():
        torch._int_mm(rows.q, weight.q.t(), out=rows.sums)

    def int_mm_dequantized():
        int_mm()
        passes["dequantize"](rows.sums, rows.scale, weight.scale, weight.bias, out)

    def unquantized(x, w):
        if bias16 is None:
            return lambda: torch.mm(x, w.t(), out=out)
        return lambda: torch.addmm(bias16, x, w.t(), out=out)

    multiply_dequantized = unquantized(rows.dequantized, weight.dequantized)

    def fake_int8():  # the steps of `octet bench gemm`
        passes["quantize"](rows.x, rows.fake_q, rows.fake_scale)
        passes["dequantize_rows"](rows.fake_q, rows.fake_scale, rows.dequantized)
        passes["dequantize_rows"](weight.q, weight.scale, weight.dequantized)
        multiply_dequantized()

    def fp8(a, b, scale_a, scale_b):
        return lambda: torch._scaled_mm(a, b.t(), scale_a=scale_a, scale_b=scale_b, bias=bias16,
                                        out_dtype=torch.bfloat16, use_fast_accum=True, out=out)

    def triton():
        import triton_int8

        if rows.triton is None:  # the same operands serve several cases
            rows.triton = triton_int8.tuned(turns.medians, rows.q, weight.q, rows.scale,
                                            weight.scale, weight.bias, out)
        notes["triton"], work, notes["triton_configs"] = rows.triton
        return Contestant(work, out, "int8")

    return {
        "octet": lambda: Contestant(octet.gemm(weight.packed, rows.q, rows.scale, out, fusion),
                                    out, "exact"),
        "bf16": lambda: Contestant(unquantized(rows.x, weight.w), out, "close"),
        "int_mm": lambda: Contestant(int_mm, rows.sums, "sums"),
        "int_mm_dequant": lambda: Contestant(int_mm_dequantized, out, "int8", (rows.sums,)),
        "fake_int8": lambda: Contestant(fake_int8, out, "close",
                                        (rows.fake_q, rows.fake_scale, rows.dequantized,
                                         weight.dequantized)),
        "triton": triton,
        "fp8_row": lambda: Contestant(
            fp8(rows.fp8, weight.fp8, rows.fp8_scale, weight.fp8_scale), out, "close"),
        "fp8_tensor": lambda: Contestant(
            fp8(rows.fp8_whole, weight.fp8_whole, rows.fp8_whole_scale, weight.fp8_whole_scale),
            out, "close"),
    }


def swiglus(octet, turns, passes, rows: Rows, notes: dict):
    """w13 with the SwiGLU: fused into our GEMM, and after a GEMM as a compiled pass."""
    weight, both = rows.weight, rows.out
    out = torch.empty(rows.m, weight.n // 2, device=DEVICE, dtype=torch.bfloat16)
    with_dynamic_rows(out)
    plain = gemms(octet, turns, passes, rows, notes)

    def followed(name):
        def make():
            multiply = plain[name]().work

            def work():
                multiply()
                passes["swiglu"](both, out)

            return Contestant(work, out, "close", (both,))

        return make

    def fused():
        return Contestant(octet.gemm(weight.packed_gate_up, rows.q, rows.scale, out, "swiglu"),
                          out, "swiglu")

    return {
        "octet": fused,
        "octet_plain": plain["octet"],
        "octet_separate": followed("octet"),
        "triton_separate": followed("triton"),
        "bf16_separate": followed("bf16"),
    }


def linears(octet, passes, rows: Rows, notes: dict):
    """What a whole linear needs besides a GEMM, and whole linears, from activations in bf16. Like
    gemms(), but into buffers of their own: what the GEMMs multiply stays."""
    weight = rows.weight
    values, scales = torch.empty_like(rows.q), torch.empty_like(rows.scale)
    fp8, fp8_scale = torch.empty_like(rows.fp8), torch.empty_like(rows.fp8_scale)
    with_dynamic_rows(values, scales, fp8, fp8_scale)

    def quantized(work, kind="quantized", out=values, also=scales):
        return lambda: Contestant(work, out, kind, (also,))

    def comfy_kitchen(q, scale, convrot):
        def make():
            bias = None if weight.bias is None else weight.bias.bfloat16()
            notes["kitchen"] = kitchen.version_and_backend(rows.x, q, scale)
            return Contestant(lambda: kitchen.linear(rows.x, q, scale, bias, convrot), None,
                              "close")

        return make

    return {
        "quantize": quantized(octet.quantize(rows.x, values, scales)),
        "quantize_rotated": quantized(octet.quantize(rows.x, values, scales, kitchen.GROUP),
                                      "rotated"),
        "quantize_torch": quantized(lambda: passes["quantize"](rows.x, values, scales)),
        "quantize_fp8": quantized(lambda: passes["quantize_fp8"](rows.x, fp8, fp8_scale),
                                  "fp8", fp8, fp8_scale),
        "kitchen": comfy_kitchen(weight.q, weight.scale, False),
        "kitchen_convrot": comfy_kitchen(*weight.rotated, True),
    }


# --- what the results have to be -----------------------------------------------------------------


def poison(contestant: Contestant) -> None:
    """Its buffers may contain right values from another's run: after this, none do."""
    for tensor in filter(lambda tensor: tensor is not None, (contestant.out, *contestant.also)):
        if tensor.dtype == FP8:
            tensor.view(torch.int8).fill_(127)  # a NaN
        elif tensor.is_floating_point():
            tensor.fill_(float("nan"))
        else:
            tensor.fill_(torch.iinfo(tensor.dtype).min)


def scaled(sums, rows: Rows, part=slice(None)):
    """The epilogue of the numeric contract in float32, one rounding after the other."""
    y = (sums.float() * rows.scale[part, None]) * rows.weight.scale[None, :]
    return y if rows.weight.bias is None else y + rows.weight.bias[None, :]


def check_ours(contestant: Contestant, rows: Rows) -> None:
    """Compares rows from both ends with the product in float64, where sums of int8 products are
    exact. The SwiGLU contains an exponential, which torch computes in its own way."""
    kind, out = contestant.kind, contestant.out
    ends = min(rows.m, 128)
    for part in (slice(0, ends), slice(rows.m - ends, rows.m)):
        y = scaled(rows.q[part].double() @ rows.weight.q.double().t(), rows, part)
        if kind == "exact":
            wrong = (out[part] != y.bfloat16()).sum().item()  # a NaN is unlike everything
            if wrong > 0:
                raise WrongResult(f"{wrong} of {y.numel()} outputs are not those of the contract")
            continue
        gate, up = y.chunk(2, dim=1)
        expected = torch.nn.functional.silu(gate) * up
        if not (out[part].float() - expected).norm() <= 0.01 * expected.norm():
            raise WrongResult("the fused SwiGLU is off by more than bf16's rounding")


def check_quantized(contestant: Contestant, rows: Rows) -> None:
    """Half of a row's maximum lies between two int8 values and falls to either of them; sums of a
    rotation differ in their last place, and so may a scale."""
    values, scale = {
        "quantized": lambda: (rows.q, rows.scale),
        "rotated": lambda: quantized_rows(kitchen.rotated(rows.x), 127.0, torch.int8),
        "fp8": lambda: (rows.fp8, rows.fp8_scale),
    }[contestant.kind]()
    off = (contestant.out.float() != values.float()).float().mean()
    far = (contestant.out.float() - values.float()).abs() > 1 + values.float().abs() / 8
    if off > 1e-2 or far.any():
        raise WrongResult(f"{off:.3g} of the quantized activations are not those of the formula")
    if not torch.allclose(contestant.also[0], scale, rtol=1e-5, atol=0):
        raise WrongResult("the scales of the quantized activations are not those of the formula")


def check_against(contestant: Contestant, ours, rows: Rows) -> None:
    """`ours` is Octet's output. int8: the same sums, up to the order of the scales' roundings."""
    kind, out = contestant.kind, contestant.out
    if kind == "exact":  # Octet itself, on another product than `ours`
        check_ours(contestant, rows)
        return
    if kind in ("quantized", "rotated", "fp8"):
        check_quantized(contestant, rows)
        return
    if kind == "sums":
        if not torch.equal(scaled(out, rows).bfloat16(), ours):
            raise WrongResult("the sums are not Octet's")
        return
    wide, expected = out.float(), ours.float()
    norm = expected.norm()
    if kind == "int8":
        noise = 1e-3 * norm / expected.numel() ** 0.5
        fits = ((wide - expected).abs() <= 2.0 ** -7 * expected.abs() + noise).all()
    else:
        fits = (wide - expected).norm() <= 0.1 * norm
    if not fits:  # NaNs, what was never written, compare as false
        off = ((wide - expected).norm() / norm).item()
        raise WrongResult(f"the result is off from Octet's by {off:.3g} of its norm")
