#!/usr/bin/env python3
"""Writes a trace as PyTorch's profiler records it from a transformer on a GPU, of any size.

    tests/python/big_trace.py FILE MEGABYTES [--plain]

With shapes and Python stacks, flows between host and device, and the long names of templates;
--plain leaves shapes and stacks out. For measuring how fast and in how little memory one is read.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Iterator, TextIO

_CUTLASS = (
    "void cutlass::device_kernel<cutlass::gemm::kernel::GemmUniversal<cute::tuple<int, int, int, "
    "int>, cutlass::gemm::collective::CollectiveMma<cutlass::gemm::MainloopSm90TmaGmma"
    "WarpSpecialized<4, cute::tuple<cute::C<2>, cute::C<1>, cute::C<1> >, "
    "cutlass::gemm::KernelTmaWarpSpecializedCooperative>, cute::tuple<cute::C<128>, cute::C<256>, "
    "cute::C<64> >, cutlass::bfloat16_t, "
    "cute::tuple<long, cute::C<1>, long>, cutlass::bfloat16_t, cute::tuple<long, cute::C<1>, long> "
    "> > >(Params)"
)
_ELEMENTWISE = (
    "void at::native::vectorized_elementwise_kernel<4, at::native::BinaryFunctor<c10::BFloat16, "
    "c10::BFloat16, c10::BFloat16, at::native::binary_internal::MulFunctor<float> >, "
    "std::array<char*, 3ul> >(int, at::native::BinaryFunctor<c10::BFloat16, c10::BFloat16, "
    "c10::BFloat16, at::native::binary_internal::MulFunctor<float> >, std::array<char*, 3ul>)"
)
# Name of the op, of what it calls, of its kernel, and its operands.
_LAYERS = (
    ("aten::linear", "aten::addmm", _CUTLASS, [[4608], [4096, 4608], [4608, 13824]]),
    ("aten::mul", "aten::mul", _ELEMENTWISE, [[1, 4096, 4608], [1, 4096, 4608]]),
    ("aten::_to_copy", "aten::copy_", "void at::native::unrolled_elementwise_kernel<...>(int)",
     [[4608, 4608], [4608, 4608]]),
    ("aten::linear", "aten::mm", "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_"
     "warpgroupsize1x1x1_execute_segment_k_off_kernel__5x_cublas", [[4096, 4608], [4608, 4608]]),
    ("aten::scaled_dot_product_attention", "aten::_flash_attention_forward",
     "void flash_fwd_kernel<Flash_fwd_kernel_traits<128, 128, 64, 4, false, false, "
     "cutlass::bfloat16_t> >(Flash_fwd_params)", [[1, 36, 4096, 128]] * 3),
)
_FRAMES = ("torch/nn/modules/module.py(1751): _wrapped_call_impl", "model/layers.py(212): forward",
           "torch/nn/modules/linear.py(125): forward", "nn.Module: Linear_{}")


class _Writer:
    """Events with the profiler's blanks and line breaks."""

    def __init__(self, out: TextIO, plain: bool) -> None:
        self.out, self.plain = out, plain
        self.id, self.ts = 1, 4066831720000.0
        self.separator = ""

    def event(self, category: str, name: str, ts: float, duration: float, place: tuple[int, int],
              args: str) -> None:
        self.out.write(
            f'{self.separator}\n  {{\n    "ph": "X", "cat": "{category}", '
            f'"name": {json.dumps(name)}, "pid": {place[0]}, "tid": {place[1]},\n'
            f'    "ts": {ts:.3f}, "dur": {duration:.3f},\n'
            f'    "args": {{\n      {args}\n    }}\n  }}')
        self.separator = ","

    def flow(self, phase: str, flow: int, place: tuple[int, int], ts: float) -> None:
        self.out.write(
            f'{self.separator}\n  {{\n    "ph": "{phase}", "id": {flow}, "pid": {place[0]}, '
            f'"tid": {place[1]}, "ts": {ts:.3f},\n    "cat": "ac2g", "name": "ac2g"\n  }}')

    def op(self, name: str, ts: float, duration: float, dims: list[list[int]]) -> int:
        self.id += 1
        args = f'"External id": {self.id},"Record function id": 0, '
        if not self.plain:
            strides = [[1] * len(d) for d in dims]
            args += (f'"Concrete Inputs": {json.dumps([""] * len(dims))}, '
                     f'"Input type": {json.dumps(["c10::BFloat16"] * len(dims))}, '
                     f'"Input Strides": {strides}, "Input Dims": {dims}, ')
        self.event("cpu_op", name, ts, duration, (10003, 10003), f'{args}"Ev Idx": {self.id}')
        return self.id

    def layer(self, index: int) -> None:
        name, inner, kernel, dims = _LAYERS[index % len(_LAYERS)]
        ts = self.ts
        if not self.plain:
            for depth, frame in enumerate(_FRAMES):
                args = f'"Python parent id": {index}, "Python id": {index + 1}, "Ev Idx": {index}'
                self.event("python_function", frame.format(index % 500), ts + depth, 70 - depth,
                           (10003, 10003), args)
        self.op(name, ts + 5, 60, dims)
        self.op("aten::t", ts + 6, 8, dims[-1:])
        launcher = self.op(inner, ts + 16, 40, dims)
        correlation = launcher + 7
        args = f'"External id": {launcher}, "cbid": 211, "correlation": {correlation}'
        self.event("cuda_runtime", "cudaLaunchKernel", ts + 20, 6, (10003, 10003), args)
        self.flow("s", correlation, (10003, 10003), ts + 20)
        self.event("kernel", kernel, ts + 90, 55.5, (0, 7),
                   f'"External id": {launcher}, "queued": 0, "device": 0, "context": 1,\n'
                   f'      "stream": 7, "correlation": {correlation},\n'
                   '      "registers per thread": 168, "shared memory": 213248, "blocks per SM": '
                   '1.000000, "warps per SM": 12.000000,\n      "grid": [2, 66, 1], '
                   '"block": [384, 1, 1],\n      "est. achieved occupancy %": 19')
        self.flow("f", correlation, (0, 7), ts + 90)
        self.ts += 100


def _layers() -> Iterator[int]:
    index = 0
    while True:
        yield index
        index += 1


def write_trace(path: Path, megabytes: float, plain: bool = False) -> None:
    """A whole trace of at least so many megabytes."""
    with path.open("w", encoding="utf-8") as out:
        out.write('{\n  "schemaVersion": 1,\n  "deviceProperties": [\n    {\n      "id": 0, '
                  '"name": "NVIDIA H200", "totalGlobalMem": 150110011392, '
                  '"numSms": 132\n    }\n  ],\n'
                  '  "displayTimeUnit": "ms",\n  "traceEvents": [')
        writer = _Writer(out, plain)
        for index in _layers():
            if index % 64 == 0 and out.tell() >= megabytes * 1e6:
                break
            writer.layer(index)
        out.write('\n  ],\n  "traceName": "big.json"\n}\n')


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("megabytes", type=float)
    parser.add_argument("--plain", action="store_true")
    arguments = parser.parse_args()
    write_trace(arguments.file, arguments.megabytes, arguments.plain)
