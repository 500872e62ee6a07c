"""The kinds of linears that the recorded programs are made of, as one meets them in the wild.

Each is made from a weight [n, k] in floating point. Packages are imported by the kinds that need
them: what is not installed fails alone.
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn

sys.path.append(str(Path(__file__).resolve().parents[2] / "bench"))

FP8 = torch.float8_e4m3fn
GGUF_BLOCK = 32


def codes_of(weight):
    """int8 [n, k] and float32 [n, 1]."""
    scale = weight.float().abs().amax(1, keepdim=True) / 127
    return torch.round(weight.float() / scale).to(torch.int8), scale


def rows_of(x):
    """int8 [m, k] and float32 [m, 1] of activations [..., k]."""
    rows = x.reshape(-1, x.shape[-1])
    scale = rows.abs().amax(1, keepdim=True).float() / 127
    return torch.round(rows.float() / scale).clamp(-127, 127).to(torch.int8), scale


class Plain(nn.Linear):
    def __init__(self, weight, bias: bool = True):
        super().__init__(weight.shape[1], weight.shape[0], bias, weight.device, weight.dtype)
        self.weight.data.copy_(weight)


class FakeInt8(nn.Module):
    def __init__(self, weight):
        super().__init__()
        self.weight, self.scale = codes_of(weight)
        self.scale = self.scale.to(weight.dtype)

    def forward(self, x):
        return F.linear(x, self.weight.to(x.dtype) * self.scale)


class FakeInt8Activations(FakeInt8):
    """Simulates W8A8: activations are quantized, and widened again."""

    def forward(self, x):
        codes, scale = rows_of(x)
        x = (codes.to(self.scale.dtype) * scale.to(self.scale.dtype)).view(x.shape)
        return super().forward(x)


class FakeInt8InPieces(FakeInt8):
    """Scales the output, not the weight: what is left of the dequantization is a bare cast."""

    def forward(self, x):
        return F.linear(x, self.weight.to(x.dtype)) * self.scale.t()


class FakeInt8FromHost(FakeInt8):
    """Codes stay in host memory, and are sent for each call."""

    def __init__(self, weight):
        super().__init__(weight)
        self.weight = self.weight.cpu().pin_memory()

    def forward(self, x):
        codes = self.weight.to(x.device, non_blocking=True)
        return F.linear(x, codes.to(x.dtype) * self.scale)


class FakeFp8(nn.Module):
    """What ComfyUI does with FP8 files where the card, or a flag, rules FP8 products out."""

    def __init__(self, weight):
        super().__init__()
        self.scale = weight.float().abs().amax() / torch.finfo(FP8).max
        self.weight = (weight.float() / self.scale).to(FP8)

    def forward(self, x):
        return F.linear(x, self.weight.to(x.dtype) * self.scale.to(x.dtype))


class CastFp8(nn.Module):
    """FP8 storage without a scale: cast to the type of the activations at each call."""

    def __init__(self, weight):
        super().__init__()
        self.weight = weight.to(FP8)

    def forward(self, x):
        return F.linear(x, self.weight.to(device=x.device, dtype=x.dtype))


class IntMm(nn.Module):
    """torch._int_mm, and a dequantization of its int32 sums."""

    def __init__(self, weight):
        super().__init__()
        self.weight, scale = codes_of(weight)
        self.scale, self.dtype = scale.t().contiguous(), weight.dtype

    def forward(self, x):
        codes, scale = rows_of(x)
        sums = torch._int_mm(codes, self.weight.t())
        out = (sums.float() * scale * self.scale).to(self.dtype)
        return out.view(*x.shape[:-1], -1)


class IntMmWithLora(IntMm):
    """Beside a low-rank branch in bf16, as a LoRA on quantized weights runs."""

    def __init__(self, weight, rank: int = 16):
        super().__init__(weight)
        self.down = weight[:rank].clone()
        self.up = torch.randn(weight.shape[0], rank, dtype=weight.dtype, device=weight.device)

    def forward(self, x):
        return super().forward(x) + F.linear(F.linear(x, self.down), self.up)


class TritonInt8(nn.Module):
    def __init__(self, weight):
        super().__init__()
        self.weight, scale = codes_of(weight)
        self.scale = scale.flatten()

    def forward(self, x):
        from triton_int8 import launcher

        codes, scale = rows_of(x)
        out = x.new_empty(codes.shape[0], self.weight.shape[0])
        launcher((128, 128, 128, 8, 4), 8, codes, self.weight, scale.flatten(), self.scale, None,
                 out)()
        return out.view(*x.shape[:-1], -1)


class Fp8(nn.Module):
    """FP8 products, scales per row or per tensor."""

    def __init__(self, weight, by_rows: bool):
        super().__init__()
        self.by_rows = by_rows
        self.weight, self.scale = self._codes(weight)

    def _codes(self, x):
        amax = x.abs().amax(1, keepdim=True) if self.by_rows else x.abs().amax()
        scale = amax.float() / torch.finfo(FP8).max
        return (x.float() / scale).to(FP8), scale

    def forward(self, x):
        codes, scale = self._codes(x.reshape(-1, x.shape[-1]))
        out = torch._scaled_mm(codes, self.weight.t(), scale_a=scale,
                               scale_b=self.scale.t() if self.by_rows else self.scale,
                               out_dtype=x.dtype)
        return out.view(*x.shape[:-1], -1)


class GgufQ8(nn.Module):
    """Blocks of 32 codes after their float16 scale, in one uint8 tensor: GGUF's Q8_0."""

    def __init__(self, weight):
        super().__init__()
        self.shape = weight.shape
        blocks = weight.float().reshape(-1, GGUF_BLOCK)
        scale = blocks.abs().amax(1, keepdim=True) / 127
        codes = torch.round(blocks / scale).to(torch.int8)
        self.blocks = torch.cat([scale.half().view(torch.uint8), codes.view(torch.uint8)], 1)

    def widened(self, dtype):
        scale, codes = self.blocks.split([2, GGUF_BLOCK], 1)
        return scale.view(torch.float16).to(dtype) * codes.view(torch.int8)

    def forward(self, x):
        return F.linear(x, self.widened(x.dtype).view(self.shape))


class GgufQ4(GgufQ8):
    """Q4_0: nibbles, offset by 8. The low ones are the first half of the block."""

    def __init__(self, weight):
        super().__init__(weight)
        blocks = weight.float().reshape(-1, GGUF_BLOCK)
        scale = blocks.abs().amax(1, keepdim=True) / 7
        codes = (torch.round(blocks / scale) + 8).to(torch.uint8)
        nibbles = codes[:, : GGUF_BLOCK // 2] | (codes[:, GGUF_BLOCK // 2 :] << 4)
        self.blocks = torch.cat([scale.half().view(torch.uint8), nibbles], 1)

    def widened(self, dtype):
        scale, nibbles = self.blocks.split([2, GGUF_BLOCK // 2], 1)
        shifts = torch.tensor([0, 4], device=nibbles.device, dtype=torch.uint8).view(1, 2, 1)
        codes = ((nibbles.unsqueeze(1) >> shifts) & 15).view(-1, GGUF_BLOCK).to(torch.int8) - 8
        return scale.view(torch.float16).to(dtype) * codes


class Int4Pack(nn.Module):
    """PyTorch's own 4-bit weights: widened inside of the GEMM."""

    def __init__(self, weight, group: int = 128):
        super().__init__()
        n, k = weight.shape
        self.group = group
        codes = torch.randint(0, 256, (n, k // 2), dtype=torch.uint8, device=weight.device)
        self.weight = torch._convert_weight_to_int4pack(codes, 8)
        self.scales = torch.rand(k // group, n, 2, dtype=weight.dtype, device=weight.device) / 64

    def forward(self, x):
        rows = x.reshape(-1, x.shape[-1])
        out = torch._weight_int4pack_mm(rows, self.weight, self.group, self.scales)
        return out.view(*x.shape[:-1], -1)


class Kitchen(nn.Module):
    """comfy-kitchen's INT8 linear."""

    def __init__(self, weight, convrot: bool = False):
        super().__init__()
        import kitchen

        self.linear, self.convrot = kitchen.linear, convrot
        self.weight, scale = codes_of(kitchen.rotated(weight) if convrot else weight)
        self.scale = scale.flatten()

    def forward(self, x):
        rows = x.reshape(-1, x.shape[-1])
        return self.linear(rows, self.weight, self.scale, convrot=self.convrot).view(
            *x.shape[:-1], -1)


class KitchenNvfp4(nn.Module):
    """NVFP4 on a card without FP4 units: comfy-kitchen widens, then a bf16 product."""

    def __init__(self, weight):
        super().__init__()
        import comfy_kitchen

        self.package = comfy_kitchen
        self.amax = weight.abs().amax().float() / (448 * 6)
        self.weight, self.scale = comfy_kitchen.quantize_nvfp4(weight, self.amax)

    def forward(self, x):
        return F.linear(x, self.package.dequantize_nvfp4(self.weight, self.amax, self.scale,
                                                         x.dtype))


def nf4(weight):
    from bitsandbytes.nn import Linear4bit, Params4bit

    linear = Linear4bit(weight.shape[1], weight.shape[0], bias=False, compute_dtype=weight.dtype,
                        quant_type="nf4")
    linear.weight = Params4bit(weight.cpu(), requires_grad=False, quant_type="nf4",
                               module=linear)
    return linear.to(weight.device)


def llm_int8(weight, threshold: float):
    from bitsandbytes.nn import Int8Params, Linear8bitLt

    linear = Linear8bitLt(weight.shape[1], weight.shape[0], bias=False, has_fp16_weights=False,
                          threshold=threshold)
    linear.weight = Int8Params(weight.cpu(), requires_grad=False, has_fp16_weights=False)
    return linear.to(weight.device).eval()


class OctetInt8(nn.Module):
    """Octet's library in this process."""

    opened = None  # (device, Octet): one for all layers

    def __init__(self, weight, library: Path):
        super().__init__()
        from octet_library import Octet

        if OctetInt8.opened is None:
            stream = torch.cuda.current_stream().cuda_stream if weight.is_cuda else 0
            OctetInt8.opened = Octet(weight.device.type, stream, library=library)
        codes, scale = codes_of(weight)
        self.weight = OctetInt8.opened.pack(codes, scale.flatten())
        self.n = weight.shape[0]

    def forward(self, x):
        rows = x.reshape(-1, x.shape[-1])
        codes = torch.empty(rows.shape, dtype=torch.int8, device=x.device)
        scale = torch.empty(rows.shape[0], dtype=torch.float32, device=x.device)
        out = x.new_empty(rows.shape[0], self.n)
        OctetInt8.opened.quantize(rows, codes, scale)()
        OctetInt8.opened.gemm(self.weight, codes, scale, out)()
        return out.view(*x.shape[:-1], -1)
