#!/usr/bin/env python3
"""Octet's INT8 GEMM beside what PyTorch and Triton offer, on one GPU.

All in one process, on the same operands and the same stream: bf16 (cuBLAS), torch._int_mm alone and
with a compiled dequantization, fake INT8, FP8 with scales per row and per tensor, and a fused INT8
kernel in Triton whose config is searched for each shape. Each result is checked against Octet's
before it is timed, from an output full of NaNs; Octet's own against the product in float64.

    bench/peers.py [--quick] [--rounds N] [--bias] [--json F] [--markdown F] [--plots [FOLDER]]
    bench/peers.py --from-json F [--markdown F] [--plots [FOLDER]]      without a GPU

Needs torch with CUDA, Triton, and build/liboctet_bench.so.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import peers_report
from octet_library import OctetError

ROOT = Path(__file__).resolve().parents[1]

# n, k of the linears of one DiT block, and of two that meet few rows.
LINEARS = {"qkv": (13824, 4608), "o": (4608, 4608), "w13": (24576, 4608), "w2": (4608, 12288)}
SKINNY = {"modulation": (18432, 512), "embedding": (4608, 4608)}
TOKENS = (2304, 4096, 4608, 16384)  # 768 and 1024 px, 1024 px with 512 text tokens, 2048 px
UNALIGNED_TOKENS = (4133,)
FEW_ROWS = (1, 8, 64)
QUICK_TOKENS = (4096,)
SUSTAINED_TOKENS, SUSTAINED_SECONDS = (4096,), 0.8
ROUNDS, QUICK_ROUNDS = 20, 8


class Measurement:
    """What stays the same from case to case."""

    def __init__(self, torch, octet, turns, rounds: int):
        import gpu_contestants

        self.torch, self.octet, self.turns, self.rounds = torch, octet, turns, rounds
        self.contestants = gpu_contestants
        self.passes = gpu_contestants.compile_passes()
        self.start = time.monotonic()
        self.warned = set()

    def say(self, text: str) -> None:
        print(f"{time.monotonic() - self.start:6.1f} s  {text}", file=sys.stderr, flush=True)

    def ready(self, makers: dict, rows):
        """({name: work}, {name: why it was left out}) of those whose result is right."""
        works, left_out, ours = {}, {}, None
        for name, make in makers.items():
            try:
                work, out, kind = make()
                self.contestants.poison(out)
                work()
                self.torch.cuda.synchronize()
                if name == peers_report.OURS:
                    kernel = self.octet.kernel
                    self.contestants.check_ours(kind, out, rows)
                    ours = out.clone()
                else:
                    self.contestants.check_against(kind, out, ours, rows)
            except Exception as error:  # a shape that a library does not take, a wrong result
                self.torch.cuda.synchronize()  # raises when the GPU is no longer usable at all
                if name == peers_report.OURS:
                    raise OctetError(f"Octet's {self.octet.kernel} at m={rows.m} "
                                     f"n={rows.weight.n} k={rows.weight.k}: {error}") from error
                left_out[name] = (str(error).strip() or type(error).__name__).splitlines()[0]
                continue
            works[name] = work
        return works, left_out, kernel

    def case(self, section: str, name: str, makers: dict, rows, notes: dict) -> dict:
        if section == "linear":
            makers = makers | self.contestants.quantizers(self.octet, self.passes, rows)
        works, left_out, kernel = self.ready(makers, rows)
        if section == "sustained":
            us, launches = self.turns.sustained(works, SUSTAINED_SECONDS), {}
        else:
            us, launches = self.turns.medians_and_launches(works, self.rounds)
        for contestant, host_us in launches.items():
            if host_us > self.turns.flush_us() and contestant not in self.warned:
                self.warned.add(contestant)
                self.say(f"note: the host needs {host_us:.0f} us to launch {contestant}, more than "
                         "the flush hides: small times of it may hold some of that")
        n, k = rows.weight.n, rows.weight.k
        case = {"section": section, "name": f"{name} {n}x{k}", "m": rows.m, "n": n, "k": k,
                "kernel": kernel, "us": us, "left_out": left_out, "notes": notes}
        self.say(f"{section} m={rows.m} {case['name']}: {us['octet']:.1f} us, "
                 f"{peers_report.tops(case, 'octet'):.0f} TOPS, {kernel}")
        return case

    def weight(self, name: str, shape, plan: dict, with_bias: bool, swiglu_tokens=()) -> list:
        """The cases of one weight. plan: {section: numbers of rows}."""
        weight = self.contestants.WeightOperand(self.octet, *shape, with_bias,
                                                gate_up=bool(swiglu_tokens))
        cases = []
        for section, tokens in plan.items():
            for m in tokens:
                rows, notes = self.contestants.Rows(self.octet, weight, m), {}
                makers = self.contestants.gemms(self.octet, self.turns, self.passes, rows, notes)
                cases.append(self.case(section, name, makers, rows, notes))
                if section == "linear" and m in SUSTAINED_TOKENS:
                    some = {peer: makers[peer] for peer in peers_report.SUSTAINED if peer in makers}
                    cases.append(self.case("sustained", name, some, rows, notes))
                if section == "linear" and m in swiglu_tokens:
                    notes = {}
                    makers = self.contestants.swiglus(self.octet, self.turns, self.passes, rows,
                                                      notes)
                    cases.append(self.case("swiglu", name, makers, rows, notes))
        weight.close()
        return cases


def driver_version() -> str:
    try:
        done = subprocess.run(["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"],
                              capture_output=True, text=True, check=True, timeout=30)
        return done.stdout.splitlines()[0].strip()
    except (OSError, subprocess.SubprocessError, IndexError):
        return "unknown"


def missing_for_gpu() -> str:
    """What this Python lacks to measure, as the end of a sentence; empty when nothing."""
    try:
        import torch
    except ImportError:
        return f"torch is not installed for {sys.executable}"
    try:
        import triton  # noqa: F401
    except ImportError:
        return f"triton is not installed for {sys.executable}"
    if not torch.cuda.is_available():
        return "torch finds no CUDA device"
    return ""


def measure(arguments) -> dict:
    # The passes to compile are small: starting a pool of compilers takes longer than they do.
    os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")
    import torch
    import triton

    from gpu_turns import Turns
    from octet_library import Octet

    rounds = arguments.rounds or (QUICK_ROUNDS if arguments.quick else ROUNDS)
    tokens = QUICK_TOKENS if arguments.quick else TOKENS
    plan = {"linear": tokens}
    if not arguments.quick:
        plan["unaligned"] = UNALIGNED_TOKENS
    torch.manual_seed(0)
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream), torch.no_grad():
        octet = Octet(f"cuda:{torch.cuda.current_device()}", stream.cuda_stream, arguments.tune)
        measurement = Measurement(torch, octet, Turns(torch, stream), rounds)
        cases = []
        for name, shape in LINEARS.items():
            # A gated weight takes no bias, so that the comparison is one without it.
            swiglu_tokens = tokens if name == "w13" and not arguments.bias else ()
            cases += measurement.weight(name, shape, plan, arguments.bias, swiglu_tokens)
        if not arguments.quick:
            for name, shape in SKINNY.items():
                cases += measurement.weight(name, shape, {"skinny": FEW_ROWS}, arguments.bias)
        measurement.say("done")
        report = {
            "device": octet.description,
            "driver": driver_version(),
            "date": f"{datetime.datetime.now(datetime.timezone.utc):%Y-%m-%dT%H:%M:%SZ}",
            "commit": octet.commit,
            "torch": torch.__version__,
            "triton": triton.__version__,
            "cuda": torch.version.cuda,
            "command": "bench/peers.py" + (" --quick" if arguments.quick else "") +
                       (" --bias" if arguments.bias else "") + f" --rounds {rounds}",
            "rounds": rounds,
            "bias": arguments.bias,
            "cases": cases,
        }
        torch.cuda.synchronize()
        octet.close()
    return report


def positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is not a positive whole number")
    return value


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true",
                        help=f"m = {QUICK_TOKENS[0]} alone, {QUICK_ROUNDS} rounds")
    parser.add_argument("--rounds", type=positive, help=f"default: {ROUNDS}")
    parser.add_argument("--bias", action="store_true", help="everybody adds a bias as well")
    parser.add_argument("--tune", choices=("off", "missing", "all"), default="missing",
                        help="which of Octet's kernels are chosen by measuring them first")
    parser.add_argument("--json", type=Path, help="write the results there")
    parser.add_argument("--from-json", type=Path, help="render these results, measure nothing")
    parser.add_argument("--markdown", type=Path, help="write the tables there too")
    parser.add_argument("--plots", type=Path, nargs="?", const=ROOT / "docs",
                        help="write gpu_tops.svg and gpu_ratios.svg there (default: docs)")
    arguments = parser.parse_args()
    if arguments.from_json:
        report = json.loads(arguments.from_json.read_text())
    else:
        missing = missing_for_gpu()
        if missing:
            print(f"peers: {missing}; --from-json renders results without a GPU", file=sys.stderr)
            return 1
        try:
            report = measure(arguments)
        except OctetError as error:
            print(f"peers: {error}", file=sys.stderr)
            return 1
    # First of all: what took minutes to measure must not be lost to a fault in a table.
    if arguments.json:
        arguments.json.write_text(json.dumps(report, indent=1) + "\n")
    text = peers_report.markdown(report)
    print(text)
    if arguments.markdown:
        arguments.markdown.write_text(text)
    if arguments.plots:
        peers_report.write_plots(report, arguments.plots)
    return 0


if __name__ == "__main__":
    sys.exit(main())
