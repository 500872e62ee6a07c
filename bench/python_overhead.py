#!/usr/bin/env python3
"""What a call of Octet from Python costs the host, on a GPU with next to nothing to do.

    bench/python_overhead.py [--json F] [--calls N] [--device D]

Rows are ways to run the same small linear: the engine's call with its arguments ready (two launches
and what leads to them), the function, the op through torch's dispatcher, the module, and the module
in bf16 that it replaces. Each is timed until all its calls are issued, in turns; medians. The
difference to the engine's call is what Python adds.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from pathlib import Path

import torch
from torch import nn

import octet.torch
from octet import _octet
from octet.torch import runtime

SHAPE = (16, 256, 256)  # m, n, k
ROUNDS = 9


def ways(device: str) -> dict:
    m, n, k = SHAPE
    x = torch.randn(m, k, device=device, dtype=torch.bfloat16)
    linear = nn.Linear(k, n, bias=False, device=device, dtype=torch.bfloat16)
    module = octet.torch.Int8Linear.from_linear(linear, "rowwise")
    module(x)
    rows = runtime.rows_of((module.weight, module.weight_scale), (1, False, 0, False))
    y = x.new_empty(m, n)
    needed = _octet.linear_memory(rows.engine, rows.weight, m)
    memory = torch.empty(needed, dtype=torch.uint8, device=device)
    stream = runtime.current_stream(rows.index) if rows.index >= 0 else 0
    ready = (rows.engine, stream, memory.data_ptr(), needed, runtime.allocator(rows.index),
             rows.weight, x.data_ptr(), k, _octet.BF16, m, y.data_ptr(), n, _octet.BF16)
    keep = (x, y, memory, module, linear)
    return {
        "the engine's call": lambda: _octet.linear(*ready),
        "octet.torch.int8_linear": lambda: octet.torch.int8_linear(x, module.weight,
                                                                   module.weight_scale),
        "torch.ops.octet.int8_linear": lambda: torch.ops.octet.int8_linear(x, module.weight,
                                                                           module.weight_scale),
        "Int8Linear": lambda: module(x),
        "nn.Linear, bf16": lambda: linear(x),
    }, keep


def measure(options: argparse.Namespace) -> dict[str, float]:
    found, keep = ways(options.device)
    times: dict[str, list[float]] = {name: [] for name in found}
    with torch.inference_mode():
        for _ in range(ROUNDS):
            for name, call in found.items():
                for _ in range(20):
                    call()
                torch.cuda.synchronize()
                begun = time.perf_counter()
                for _ in range(options.calls):
                    call()
                times[name].append((time.perf_counter() - begun) / options.calls * 1e6)
                torch.cuda.synchronize()
    del keep
    return {name: statistics.median(values) for name, values in times.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--json", type=Path)
    parser.add_argument("--calls", type=int, default=300)
    parser.add_argument("--device", default="cuda")
    options = parser.parse_args()
    found = measure(options)
    base = next(iter(found.values()))
    print("| way | us of the host | on top of the engine's call |\n|---|---|---|")
    for name, us in found.items():
        print(f"| {name} | {us:.1f} | {us - base:+.1f} |")
    if options.json:
        options.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
