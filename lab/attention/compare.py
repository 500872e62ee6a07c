"""Octet's attention kernels for Hopper against cuDNN's, in one process: first right, then fast.

`cold`: in turns, both orders, 512 MB written before each run; medians. `load`: without pause,
slices of 50 ms in turns, both orders, after half a second of all of them; medians. Needs a Hopper
GPU, torch with cuDNN, and libkernels.so (see kernels.cu).
"""

import ctypes
import math
import sys
import time
from pathlib import Path

import torch
import torch.nn.functional as functional
from torch.nn.attention import SDPBackend, sdpa_kernel

KERNELS = ctypes.CDLL(str(Path(__file__).resolve().parent / "libkernels.so"))
POINTER, LONG, INT = ctypes.c_void_p, ctypes.c_long, ctypes.c_int
KERNELS.attend.argtypes = [INT] + 4 * [POINTER, LONG] + 3 * [POINTER, LONG] + 6 * [INT] + [POINTER]
FIELDS = ("head_dim", "keys", "stages", "groups", "cluster", "int8", "alternates", "int8_values")
LENGTHS = (4096, 4608, 16384)
# rows, keys, heads, heads of k, causal
CHECKED = ((1, 1, 1, 1, 0), (64, 64, 2, 2, 0), (129, 81, 3, 3, 0), (513, 777, 4, 2, 0),
           (1000, 1000, 2, 2, 1), (4096, 4096, 2, 2, 0), (77, 77, 2, 1, 1))


def describe(kernel: int) -> dict:
    fields = (INT * len(FIELDS))()
    KERNELS.describe(kernel, fields)
    return dict(zip(FIELDS, fields, strict=True))


def title(tile: dict) -> str:
    return (f"{tile['head_dim']} {64 * tile['groups']}x{tile['keys']} s{tile['stages']}"
            f" c{tile['cluster']}" + (" int8" if tile["int8"] else "")
            + (" full" if tile["int8_values"] else "")
            + (" in turns" if tile["alternates"] else ""))


def codes(x, heads, smooth):
    rows = x.shape[0]
    y = x.float().view(rows, heads, -1)
    if smooth:
        y = y - y.mean(0, keepdim=True)
    amax = y.abs().amax(-1)
    scales = torch.zeros(heads, (rows + 3) // 4 * 4, device="cuda")
    scales[:, :rows] = (amax / 127).t()
    return torch.round(y * (127 / amax)[..., None]).to(torch.int8).view(rows, -1), scales


def value_codes(v, heads):
    """As in QuantizedValues: transposed, 128 added, a scale for 128 keys of a head."""
    keys = v.shape[0]
    blocks = (keys + 127) // 128
    y = torch.zeros(blocks * 128, v.shape[1], device="cuda")
    y[:keys] = v.float()
    y = y.view(blocks, 128, heads, -1)
    amax = y.abs().amax((1, 3), keepdim=True)
    shifted = (torch.round(y * (127 / amax)) + 128).to(torch.uint8)
    at = torch.arange(128, device="cuda")
    key_at = at // 16 * 16 + 8 * (at % 4 // 2) + 2 * (at // 4 % 4) + at % 2
    rows = shifted[:, key_at].permute(2, 3, 0, 1).reshape(v.shape[1], blocks * 128)
    return rows.contiguous(), (amax / 127).view(blocks, heads).t().contiguous()


class Case:
    def __init__(self, rows, keys, heads, kv_heads, head_dim, causal=0):
        self.sizes = (rows, keys, heads, kv_heads, causal)
        if rows == keys and heads == kv_heads:  # columns of one matrix
            wide = heads * head_dim
            qkv = torch.randn(rows, 3 * wide, device="cuda", dtype=torch.bfloat16)
            self.q, self.k, self.v = (qkv[:, i * wide:(i + 1) * wide] for i in range(3))
        else:
            self.q, self.k, self.v = (
                torch.randn(n, h * head_dim, device="cuda", dtype=torch.bfloat16)
                for n, h in ((rows, heads), (keys, kv_heads), (keys, kv_heads)))
        self.codes = codes(self.q, heads, False) + codes(self.k, kv_heads, True)
        self.value_codes = value_codes(self.v, kv_heads)
        self.out = torch.full((rows, heads * head_dim), math.nan, device="cuda",
                              dtype=torch.bfloat16)

    def run(self, kernel, shares):
        stream = torch.cuda.current_stream().cuda_stream
        tile = describe(kernel)
        v, out = (self.v.data_ptr(), 2 * self.v.stride(0)), (self.out.data_ptr(),
                                                             2 * self.out.stride(0))
        v_scales = (0, 0)
        if tile["int8_values"]:
            v_codes, scales_of_v = self.value_codes
            v = (v_codes.data_ptr(), v_codes.stride(0))
            v_scales = (scales_of_v.data_ptr(), scales_of_v.stride(0))
        if tile["int8"]:
            q, q_scales, k, k_scales = self.codes
            scales = (q_scales.data_ptr(), q_scales.stride(0), k_scales.data_ptr(),
                      k_scales.stride(0))
            views = (q.data_ptr(), q.stride(0), k.data_ptr(), k.stride(0))
        else:
            scales = (0, 0, 0, 0)
            views = (self.q.data_ptr(), 2 * self.q.stride(0), self.k.data_ptr(),
                     2 * self.k.stride(0))
        error = KERNELS.attend(kernel, *views, *v, *out, *scales, *v_scales, *self.sizes, shares,
                               stream)
        assert error == 0, error

    def heads(self, x, count):
        return x.view(x.shape[0], count, -1).transpose(0, 1)[None]

    def expected(self):
        _, _, heads, kv_heads, causal = self.sizes
        q = self.heads(self.q.float(), heads)
        k, v = (self.heads(x.float(), kv_heads).repeat_interleave(heads // kv_heads, 1)
                for x in (self.k, self.v))
        scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
        if causal:
            hidden = torch.ones_like(scores, dtype=torch.bool).triu(1)
            scores = scores.masked_fill(hidden, -math.inf)
        return (scores.softmax(-1) @ v)[0].transpose(0, 1).reshape(self.out.shape)

    def cudnn(self):
        heads, kv_heads = self.sizes[2:4]
        with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
            functional.scaled_dot_product_attention(
                self.heads(self.q, heads), self.heads(self.k, kv_heads),
                self.heads(self.v, kv_heads))


def check(kernel: int) -> float:
    worst = 0.0
    for rows, keys, heads, kv_heads, causal in CHECKED:
        case = Case(rows, keys, heads, kv_heads, describe(kernel)["head_dim"], causal)
        want = case.expected()
        for shares in (0, 1):
            case.run(kernel, shares)
            first = case.out.clone()
            case.run(kernel, shares)
            assert torch.equal(first, case.out), "different bits when run again"
            worst = max(worst, ((first.float() - want).norm() / want.norm()).item())
    assert worst < (0.03 if describe(kernel)["int8"] else 0.006), worst
    return worst


def event():
    return torch.cuda.Event(enable_timing=True)


def cold_times(ways, rounds=14):
    flush = torch.empty(512 << 20, dtype=torch.uint8, device="cuda")
    times = {name: [] for name in ways}
    for turn in range(rounds + 2):
        for name in list(ways)[:: 1 if turn % 2 else -1]:
            flush.zero_()
            begin, end = event(), event()
            begin.record()
            ways[name]()
            end.record()
            torch.cuda.synchronize()
            if turn >= 2:
                times[name].append(1e3 * begin.elapsed_time(end))
    return {name: sorted(us)[len(us) // 2] for name, us in times.items()}


def loaded_times(ways, estimates, slices=5, slice_us=50e3):
    until = time.time() + 0.5
    while time.time() < until:
        for run in ways.values():
            for _ in range(8):
                run()
        torch.cuda.synchronize()
    times = {name: [] for name in ways}
    for turn in range(slices):
        for name in list(ways)[:: 1 if turn % 2 else -1]:
            count = max(3, int(slice_us / estimates[name]))
            begin, end = event(), event()
            for _ in range(max(2, count // 4)):
                ways[name]()
            begin.record()
            for _ in range(count):
                ways[name]()
            end.record()
            times[name].append((begin, end, count))
    torch.cuda.synchronize()
    return {name: sorted(1e3 * b.elapsed_time(e) / n for b, e, n in runs)[len(runs) // 2]
            for name, runs in times.items()}


def main() -> None:
    torch.backends.cuda.matmul.allow_tf32 = False
    count = KERNELS.kernel_count()
    for kernel in range(count):
        print(f"{title(describe(kernel)):30s} error {check(kernel):.5f}", flush=True)
    lengths = LENGTHS if len(sys.argv) == 1 else tuple(map(int, sys.argv[1:]))
    for head_dim, heads, of_length in ((256, 18, lengths), (128, 24, (4608,)), (64, 32, (4608,))):
        for length in of_length:
            case = Case(length, length, heads, heads, head_dim)
            operations = 4 * length * length * head_dim * heads
            ways = {"cuDNN": case.cudnn}
            for kernel in range(count):
                tile = describe(kernel)
                if tile["head_dim"] != head_dim:
                    continue
                for shares in (0, 1):
                    name = title(tile) + (", shared tail" if shares else "")
                    ways[name] = lambda k=kernel, s=shares, c=case: c.run(k, s)
            cold = cold_times(ways)
            load = loaded_times(ways, cold)
            for name in ways:
                print(f"{length:6d} {heads} x {head_dim} {name:42s}"
                      f" cold {cold[name]:8.1f} us {operations / cold[name] * 1e-6:5.0f} TFLOPS"
                      f"   load {load[name]:8.1f} us {operations / load[name] * 1e-6:5.0f}",
                      flush=True)


if __name__ == "__main__":
    main()
