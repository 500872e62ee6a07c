#!/usr/bin/env python3
"""Octet as a backend of comfy-kitchen, compared with comfy-kitchen's CUDA backend, on this GPU.

Both are called as in ComfyUI, through comfy_kitchen.int8_linear() and its dispatch, on the same
operands and stream. Results are compared before anything is timed. Cold: medians of alternating
calls, caches flushed before each. Under load: each alone without pause until the GPU has settled at
its power limit. Overhead: the host's time for a call of few rows beyond that of launching Octet's
kernels.

    bench/comfy_backend.py [--quick] [--rounds N] [--json F] [--markdown F]

Needs torch with CUDA, comfy-kitchen and the Python package (build/python, or installed).
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import json
import os
import statistics
import sys
import time
from importlib.metadata import version
from pathlib import Path

from whole_files import check_writable, write_whole

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(Path(os.environ.get("OCTET_BUILD_DIR", ROOT / "build")) / "python"))

SHAPES = ((13824, 4608), (4608, 4608), (24576, 4608), (4608, 12288))  # n, k of a DiT block
ROWS, QUICK_ROWS = (1, 77, 512, 4096), (4096,)
LOADED_ROWS, LOADED_SECONDS = 4096, 0.4
ROUNDS, QUICK_ROUNDS = 20, 8
GROUP = 256
DEVICE, THEIRS = "cuda", "cuda"  # where, and which of comfy-kitchen's own backends
LARGEST_DIFFERENCE = 0.02  # of the results' norm: codes that differ by one here and there
TINY = (1, 512, 512)  # m, n, k whose kernels take less than the host needs to call them
CALLS, BATCHES = 200, 15

OURS, OURS_FLOAT32, KITCHEN = "octet", "octet_float32", "kitchen"
LABELS = {OURS: "Octet", OURS_FLOAT32: "Octet, float32 codes", KITCHEN: "comfy-kitchen"}


def missing() -> str:
    """Why nothing can be measured here; empty if it can."""
    try:
        import torch
    except ImportError:
        return "torch is not installed"
    if not torch.cuda.is_available():
        return "torch sees no GPU"
    try:
        import comfy_kitchen

        import octet.comfy
    except ImportError as error:
        return str(error)
    if not comfy_kitchen.registry.is_available(THEIRS):
        return "this comfy-kitchen has no CUDA backend"
    status = octet.comfy.install()
    return "" if status else status.message


class Case:
    """One weight and m rows, and the call of each contestant."""

    def __init__(self, torch, m: int, n: int, k: int, convrot: bool):
        import comfy_kitchen
        import kitchen
        from gpu_contestants import quantized_rows

        self.torch, self.kitchen = torch, comfy_kitchen
        rows = torch.randn(n, k, device=DEVICE, dtype=torch.bfloat16) * 0.02
        self.codes, scales = quantized_rows(kitchen.rotated(rows) if convrot else rows, 127.0,
                                            torch.int8)
        self.scales = scales[:, None].contiguous()
        self.x = torch.randn(m, k, device=DEVICE, dtype=torch.bfloat16)
        self.convrot = convrot

    def call(self):
        return self.kitchen.int8_linear(self.x, self.codes, self.scales,
                                        out_dtype=self.torch.bfloat16, convrot=self.convrot,
                                        convrot_groupsize=GROUP)

    def works(self) -> dict:
        return {name: lambda name=name: self.called_by(name) for name in LABELS}

    def called_by(self, name: str):
        with contestant(name):
            return self.call()

    def check(self) -> None:
        results = {name: work().double() for name, work in self.works().items()}
        expected = results[KITCHEN]
        for name in (OURS, OURS_FLOAT32):
            difference = (results[name] - expected).norm() / expected.norm()
            if not difference <= LARGEST_DIFFERENCE:  # NaN as well
                raise RuntimeError(
                    f"{LABELS[name]} differs from comfy-kitchen by {difference:.3g} of the norm at "
                    f"x {list(self.x.shape)}, weight {list(self.codes.shape)}; nothing is timed")


@contextlib.contextmanager
def contestant(name: str):
    """Directs calls of comfy-kitchen there."""
    import comfy_kitchen
    from octet.comfy import backend

    backend.quantize_in_float32 = name == OURS_FLOAT32
    with comfy_kitchen.use_backend(THEIRS if name == KITCHEN else "octet"):
        yield
    backend.quantize_in_float32 = False


def kernel_that_ran(work) -> str:
    import octet.comfy

    octet.comfy.report(clear=True)
    work()
    (row, _count), = octet.comfy.report(clear=True).served
    return row.kernel


def measure_case(torch, turns, shape, rounds: int) -> dict:
    m, n, k, convrot = shape
    case = Case(torch, *shape)
    case.check()
    works = case.works()
    measured = {"m": m, "n": n, "k": k, "convrot": convrot,
                "kernel": kernel_that_ran(works[OURS]), "cold_us": turns.medians(works, rounds)}
    if m == LOADED_ROWS:
        measured["loaded_us"] = turns.sustained(works, LOADED_SECONDS)
    return measured


# --- the host's time ---


def host_us(torch, work) -> float:
    """Per call, the median over batches; the GPU is done long before the host."""
    def batch() -> float:
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(CALLS):
            work()
        return (time.perf_counter() - begin) * 1e6 / CALLS

    batch()
    return statistics.median(batch() for _ in range(BATCHES))


def launch_work(torch, case: Case):
    """Only Octet's two kernels, with everything they need made beforehand."""
    from octet import _octet
    from octet.torch import runtime

    (m, k), n = case.x.shape, case.codes.shape[0]
    y = torch.empty(m, n, device=DEVICE, dtype=torch.bfloat16)
    index = case.x.get_device()
    engine = runtime.engine(index)
    weight = _octet.PlainWeight(case.codes.data_ptr(), n, k, k, case.scales.data_ptr(), n,
                                0, 0, 0, 0, False)
    needed = _octet.linear_memory(engine, weight, m)
    memory = torch.empty(needed, device=DEVICE, dtype=torch.uint8)
    arguments = (engine, runtime.current_stream(index), memory.data_ptr(), needed,
                 lambda count: torch.empty(count, device=DEVICE, dtype=torch.uint8), weight,
                 case.x.data_ptr(), k, _octet.BF16, m, y.data_ptr(), n, _octet.BF16)
    return lambda: _octet.linear(*arguments), (y, memory)


def measure_overhead(torch) -> dict:
    """{what: microseconds of the host for a call}"""
    case = Case(torch, *TINY, convrot=False)
    launch, _alive = launch_work(torch, case)
    measured = {"launch": host_us(torch, launch)}
    for name in LABELS:
        with contestant(name):
            measured[name] = host_us(torch, case.call)
    return measured


# --- the report ---


def table(report: dict, key: str, title: str) -> list[str]:
    lines = [f"### {title}", "",
             "| m | n x k | ConvRot | " + " | ".join(f"{label}, us" for label in LABELS.values())
             + " | comfy-kitchen takes | kernel |",
             "| ---: | --- | --- | " + "---: | " * (len(LABELS) + 1) + "--- |"]
    for case in report["cases"]:
        us = case.get(key)
        if us is None:
            continue
        cells = [str(case["m"]), f"{case['n']} x {case['k']}", "yes" if case["convrot"] else "no",
                 *(f"{us[name]:.1f}" for name in LABELS), f"{us[KITCHEN] / us[OURS]:.2f}x",
                 f"`{case['kernel']}`"]
        lines.append("| " + " | ".join(cells) + " |")
    return [*lines, ""]


def markdown(report: dict) -> str:
    host = report["host_us"]
    m, n, k = TINY
    calls = ", ".join(f"{LABELS[name]} {host[name]:.1f}" for name in LABELS)
    lines = [f"{report['device']}; {report['date']}; commit {report['commit']}; "
             f"torch {report['torch']}; comfy-kitchen {report['comfy_kitchen']}; "
             f"`bench/comfy_backend.py --rounds {report['rounds']}`.", "",
             *table(report, "cold_us", "int8_linear in bf16, caches flushed"),
             *table(report, "loaded_us", "The same under load"),
             f"A call of {m} x {k} by {n} x {k} takes this many us of the host: {calls}. "
             f"Launching only Octet's kernels takes {host['launch']:.1f}: in float32 codes the "
             f"call costs {host[OURS_FLOAT32] - host['launch']:.1f} us on top of its kernels.", ""]
    return "\n".join(lines)


def measure(arguments) -> dict:
    import torch

    import octet
    from gpu_turns import Turns
    from octet import _octet

    torch.manual_seed(0)
    stream = torch.cuda.Stream()
    rounds = arguments.rounds or (QUICK_ROUNDS if arguments.quick else ROUNDS)
    report = {"device": torch.cuda.get_device_name(),
              "date": f"{datetime.datetime.now(datetime.timezone.utc):%Y-%m-%dT%H:%M:%SZ}",
              "commit": _octet.commit, "octet": octet.__version__, "torch": torch.__version__,
              "comfy_kitchen": version("comfy-kitchen"), "rounds": rounds, "cases": []}
    with torch.cuda.stream(stream), torch.inference_mode():
        turns = Turns(torch, stream)
        for n, k in SHAPES:
            for m in QUICK_ROWS if arguments.quick else ROWS:
                for convrot in (False, True):
                    case = measure_case(torch, turns, (m, n, k, convrot), rounds)
                    report["cases"].append(case)
                    print(f"m={m} {n}x{k} {'ConvRot ' if convrot else ''}"
                          f"{case['cold_us'][OURS]:.1f} us, comfy-kitchen "
                          f"{case['cold_us'][KITCHEN]:.1f} us", file=sys.stderr, flush=True)
        report["host_us"] = measure_overhead(torch)
    return report


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], allow_abbrev=False)
    parser.add_argument("--quick", action="store_true",
                        help=f"only m = {QUICK_ROWS[0]}, {QUICK_ROUNDS} rounds")
    parser.add_argument("--rounds", type=int, help=f"default: {ROUNDS}")
    parser.add_argument("--json", type=Path, help="write the results there")
    parser.add_argument("--markdown", type=Path, help="write the tables there too")
    arguments = parser.parse_args()
    reason = missing()
    if reason:
        print(f"comfy_backend: {reason}", file=sys.stderr)
        return 1
    try:
        for path in filter(None, (arguments.json, arguments.markdown)):
            check_writable(path)
        report = measure(arguments)
        if arguments.json:
            write_whole(arguments.json, json.dumps(report, indent=1) + "\n")
        text = markdown(report)
        print(text)
        if arguments.markdown:
            write_whole(arguments.markdown, text)
    except (OSError, RuntimeError) as error:  # a disk, a wrong result, a GPU that is gone
        print(f"comfy_backend: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
