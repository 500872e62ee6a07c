#!/usr/bin/env python3
"""Octet's INT8 linears and one denoising step, compared with what else runs on this GPU.

Linears, all in one process, on the same operands and the same stream: bf16 (cuBLAS), torch._int_mm
alone and with a compiled dequantization, fake INT8, FP8 with scales per row and per tensor, a fused
INT8 kernel in Triton whose config is searched for each shape, and comfy-kitchen's INT8 linear if it
is installed. Each result is checked against Octet's before it is timed, from buffers full of NaNs;
Octet's own against the product in float64. The step: see step_peers.py.

    bench/peers.py [--quick] [--only linears|step] [--rounds N] [--bias] [--json F] [--markdown F]
                   [--plots [FOLDER]]
    bench/peers.py --from-json F [--markdown F] [--plots [FOLDER]]      without a GPU

Needs torch with CUDA, Triton, build/liboctet.so and build/octet. What is missing or fails is
left out, with the reason, and counted at the end.
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
import step_peers
from octet_library import OctetError, WrongResult
from whole_files import check_folder, check_writable, write_whole

ROOT = Path(__file__).resolve().parents[1]

# n, k of the linears of one DiT block, and of two that meet few rows.
LINEARS = {"qkv": (13824, 4608), "o": (4608, 4608), "w13": (24576, 4608), "w2": (4608, 12288)}
SKINNY = {"modulation": (18432, 512), "embedding": (4608, 4608)}
TOKENS = (2304, 4096, 4608, 16384)  # 768 and 1024 px, 1024 px with 512 text tokens, 2048 px
UNALIGNED_TOKENS = (4133,)
FEW_ROWS = (1, 8, 64)
QUICK_TOKENS = (4096,)
SUSTAINED_TOKENS, SUSTAINED_SECONDS = (4096, 16384), 0.4  # for each contestant and pass
ROUNDS, QUICK_ROUNDS = 20, 8
TUNE = "missing"


def sentence_of(error) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]


class Measurement:
    """Fills a report, case by case, and keeps what all cases share."""

    def __init__(self, torch, octet, turns, contestants, report: dict):
        self.torch, self.octet, self.turns, self.report = torch, octet, turns, report
        self.contestants = contestants
        self.passes = contestants.compile_passes()
        self.start = time.monotonic()
        self.launches = {}  # {contestant: the longest that the host needed to launch it, in us}
        self.own_failed = False

    def say(self, text: str) -> None:
        print(f"{time.monotonic() - self.start:6.1f} s  {text}", file=sys.stderr, flush=True)

    def attempt(self, section: str, name: str, shape, m, work):
        """What work() returns, or None if it failed: that is reported and recorded, and the run
        continues. Not after a wrong result of Octet's, nor on a GPU that is no longer usable."""
        try:
            return work()
        except WrongResult:
            raise
        except (RuntimeError, OSError) as error:  # out of memory, an error of a library
            reason = sentence_of(error)
            self.own_failed |= isinstance(error, OctetError)
        n, k = shape
        self.report["failed"].append({"section": section, "name": f"{name} {n}x{k}", "m": m,
                                      "n": n, "k": k, "reason": reason})
        self.say(f"{section} m={m} {name} {n}x{k} is left out: {reason}")
        self.torch.cuda.synchronize()
        self.torch.cuda.empty_cache()
        return None

    def ready(self, makers: dict, rows):
        """({name: work}, {name: why it was left out}, Octet's kernel) of those whose result is
        right."""
        works, left_out, ours, kernel = {}, {}, None, ""
        for name, make in makers.items():
            try:
                contestant = make()
                self.contestants.poison(contestant)
                made = contestant.work()
                self.torch.cuda.synchronize()
                if contestant.out is None:
                    contestant = contestant._replace(out=made)
                if name == peers_report.OURS:
                    kernel = self.octet.kernel
                    self.contestants.check_ours(contestant, rows)
                    ours = contestant.out.clone()
                else:
                    self.contestants.check_against(contestant, ours, rows)
            except Exception as error:  # a shape that a library does not take, a wrong result
                self.torch.cuda.synchronize()  # raises when the GPU is no longer usable at all
                if name in peers_report.OWN:
                    kind = WrongResult if isinstance(error, WrongResult) else OctetError
                    raise kind(f"{peers_report.LABELS[name]} of Octet's ({self.octet.kernel}) at "
                               f"m={rows.m} n={rows.weight.n} k={rows.weight.k}: "
                               f"{sentence_of(error)}") from error
                left_out[name] = sentence_of(error)
                continue
            works[name] = contestant.work
        return works, left_out, kernel

    def case(self, section: str, name: str, makers: dict, rows, notes: dict) -> dict:
        if section == "linear":
            makers = makers | self.contestants.linears(self.octet, self.passes, rows, notes)
        works, left_out, kernel = self.ready(makers, rows)
        if section == "sustained":
            us = self.turns.sustained(works, SUSTAINED_SECONDS)
        else:
            us, launches = self.turns.medians_and_launches(works, self.report["rounds"])
            self.note_launches(launches)
        n, k = rows.weight.n, rows.weight.k
        case = {"section": section, "name": f"{name} {n}x{k}", "m": rows.m, "n": n, "k": k,
                "kernel": kernel, "us": us, "left_out": left_out, "notes": notes}
        self.say(f"{section} m={rows.m} {case['name']}: {us['octet']:.1f} us, "
                 f"{peers_report.tops(case, 'octet'):.0f} TOPS, {kernel}")
        return case

    def note_launches(self, launches: dict) -> None:
        hidden = self.turns.flush_us()
        for name, us in launches.items():
            if us > max(hidden, self.launches.get(name, 0.0)):
                self.launches[name] = us
        if self.launches:
            slow = ", ".join(f"{us:.0f} us to launch {peers_report.LABELS.get(name, name)}"
                             for name, us in self.launches.items())
            self.report["notes"] = [f"the host needs up to {slow}, more than the {hidden:.0f} us "
                                    "that the flush hides: small times may include some of that"]

    def weight(self, name: str, shape, plan: dict, with_bias: bool, swiglu_tokens=()) -> None:
        """The cases of one weight. plan: {section: numbers of rows}."""
        weight = self.attempt("weight", name, shape, "any", lambda: self.contestants.WeightOperand(
            self.octet, *shape, with_bias, gate_up=bool(swiglu_tokens)))
        if weight is None:
            return
        for section, tokens in plan.items():
            for m in tokens:
                rows = self.attempt(section, name, shape, m,
                                    lambda: self.contestants.Rows(self.octet, weight, m))
                if rows is not None:
                    self.cases_of_rows(section, name, rows, m in swiglu_tokens)
        weight.close()

    def cases_of_rows(self, section: str, name: str, rows, with_swiglu: bool) -> None:
        def add(section, make_makers):
            def measured():
                notes = {}
                return self.case(section, name, make_makers(notes), rows, notes)

            case = self.attempt(section, name, (rows.weight.n, rows.weight.k), rows.m, measured)
            if case is not None:
                self.report["cases"].append(case)

        def gemms(notes):
            return self.contestants.gemms(self.octet, self.turns, self.passes, rows, notes)

        def some_gemms(notes):
            makers = gemms(notes)
            return {peer: makers[peer] for peer in peers_report.SUSTAINED}

        add(section, gemms)
        if section == "linear" and rows.m in SUSTAINED_TOKENS:
            add("sustained", some_gemms)
        if section == "linear" and with_swiglu:
            add("swiglu", lambda notes: self.contestants.swiglus(self.octet, self.turns,
                                                                 self.passes, rows, notes))


def driver_version() -> str:
    try:
        done = subprocess.run(["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"],
                              capture_output=True, text=True, check=True, timeout=30)
        return done.stdout.splitlines()[0].strip()
    except (OSError, subprocess.SubprocessError, IndexError):
        return "unknown"


def missing_for_gpu() -> str:
    """What this Python lacks to measure, as the end of a sentence; empty if nothing."""
    try:
        import torch
        import triton  # noqa: F401
    except ImportError as error:
        return f"{error.name} is not installed for {sys.executable}"
    return "" if torch.cuda.is_available() else "torch finds no CUDA device"


def command(arguments, rounds: int) -> str:
    flags = [("--quick", arguments.quick), ("--bias", arguments.bias),
             (f"--only {arguments.only}", arguments.only),
             (f"--tune {arguments.tune}", arguments.tune != TUNE)]
    return " ".join(["bench/peers.py", *(flag for flag, given in flags if given),
                     f"--rounds {rounds}"])


def measure_linears(measurement, arguments, save) -> None:
    tokens = QUICK_TOKENS if arguments.quick else TOKENS
    plan = {"linear": tokens} | ({} if arguments.quick else {"unaligned": UNALIGNED_TOKENS})
    for name, shape in LINEARS.items():
        # A gated weight has no bias, so the comparison is without one.
        swiglu_tokens = tokens if name == "w13" and not arguments.bias else ()
        measurement.weight(name, shape, plan, arguments.bias, swiglu_tokens)
        save()
    for name, shape in () if arguments.quick else SKINNY.items():
        measurement.weight(name, shape, {"skinny": FEW_ROWS}, arguments.bias)
        save()


def measure_step(measurement, arguments, device: str, save) -> dict:
    case = step_peers.StepCase(steps=6 if arguments.quick else 50)
    others, attention = step_peers.torch_contestants(
        measurement.torch, step_peers.QUICK_PATHS if arguments.quick else step_peers.PATHS, case,
        device)
    contestants = step_peers.octet_contestants(step_peers.PROGRAM, case, step_peers.LAYERS, device)
    step = step_peers.measure(contestants | others, case, step_peers.LAYERS, measurement.say,
                              save=lambda so_far: save({**so_far, "attention": attention}))
    return {**step, "attention": attention}


def measure(arguments, save):
    """(report, whether everything succeeded). `save` is called with the report now and then."""
    # The passes to compile are small: starting a pool of compilers takes longer than they do.
    os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")
    import torch
    import triton

    import gpu_contestants
    from gpu_turns import Turns
    from octet_library import Octet

    torch.manual_seed(0)
    stream = torch.cuda.Stream()
    device = f"cuda:{torch.cuda.current_device()}"
    rounds = arguments.rounds or (QUICK_ROUNDS if arguments.quick else ROUNDS)
    with torch.cuda.stream(stream), torch.no_grad():
        octet = Octet(device, stream.cuda_stream, arguments.tune)
        report = {
            "device": octet.description,
            "driver": driver_version(),
            "date": f"{datetime.datetime.now(datetime.timezone.utc):%Y-%m-%dT%H:%M:%SZ}",
            "commit": octet.commit,
            "torch": torch.__version__,
            "triton": triton.__version__,
            "cuda": torch.version.cuda,
            "command": command(arguments, rounds),
            "rounds": rounds,
            "bias": arguments.bias,
            "tune": arguments.tune,
            "notes": [],
            "failed": [],
            "cases": [],
        }
        measurement = Measurement(torch, octet, Turns(torch, stream), gpu_contestants, report)
        try:
            if arguments.only != "step":
                measure_linears(measurement, arguments, lambda: save(report))
            torch.cuda.synchronize()
            octet.close()
            if arguments.only != "linears":
                report["step"] = measure_step(measurement, arguments, device,
                                              lambda step: save({**report, "step": step}))
                measurement.own_failed |= peers_report.OURS in report["step"]["left_out"]
            measurement.say("done")
        except RuntimeError as error:  # a wrong result, or a GPU that is gone
            print(f"peers: the run ends early: {sentence_of(error)}", file=sys.stderr)
            return report, False
    return report, not measurement.own_failed


def positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is not a positive whole number")
    return value


def rendered(path: Path):
    """(report, its tables) of a file; None after printing why it is not a report."""
    try:
        report = json.loads(path.read_text(encoding="utf-8"))
        return report, peers_report.markdown(report)
    except OSError as error:
        problem = error.strerror or str(error)
    except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError) as error:
        problem = f"{type(error).__name__}: {sentence_of(error)}"
    print(f"peers: {path} is not a report of bench/peers.py: {problem}", file=sys.stderr)
    return None


def save_json(path, report: dict) -> bool:
    """A full disk does not end the run: the tables are printed in any case."""
    try:
        if path:
            write_whole(path, json.dumps(report, indent=1) + "\n")
    except OSError as error:
        print(f"peers: the results are not saved: {error}", file=sys.stderr)
        return False
    return True


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], allow_abbrev=False)
    parser.add_argument("--quick", action="store_true",
                        help=f"only m = {QUICK_TOKENS[0]}, {QUICK_ROUNDS} rounds, fewer paths")
    parser.add_argument("--only", choices=("linears", "step"), help="leave out the other")
    parser.add_argument("--rounds", type=positive, help=f"default: {ROUNDS}")
    parser.add_argument("--bias", action="store_true", help="all contestants add a bias")
    parser.add_argument("--tune", choices=("off", "missing", "all"), default=TUNE,
                        help="which of Octet's kernels are chosen by measuring them first")
    parser.add_argument("--json", type=Path, help="write the results there")
    parser.add_argument("--from-json", type=Path, help="render these results, measure nothing")
    parser.add_argument("--markdown", type=Path, help="write the tables there too")
    parser.add_argument("--plots", type=Path, nargs="?", const=ROOT / "docs",
                        help="write gpu_*.svg there (default: docs)")
    return parser.parse_args()


def main() -> int:
    arguments = parse_arguments()
    try:
        for path in filter(None, (arguments.json, arguments.markdown)):
            check_writable(path)
        if arguments.plots:
            check_folder(arguments.plots)
    except OSError as error:
        print(f"peers: the results could not be written: {error}", file=sys.stderr)
        return 1
    good = True
    if arguments.from_json:
        made = rendered(arguments.from_json)
        if made is None:
            return 1
        report, text = made
    else:
        missing = missing_for_gpu()
        if missing:
            print(f"peers: {missing}; --from-json renders results without a GPU", file=sys.stderr)
            return 1
        try:
            report, good = measure(arguments, lambda so_far: save_json(arguments.json, so_far))
        except OctetError as error:
            print(f"peers: {error}", file=sys.stderr)
            return 1
        # First of all: what took minutes to measure must not be lost to a fault in a table.
        good &= save_json(arguments.json, report)
        text = peers_report.markdown(report)
    print(text)
    lines = len(peers_report.left_out(report)) + len(peers_report.failed(report))
    print(f"peers: {len(report['cases'])} cases; left out or failed: {lines}", file=sys.stderr)
    try:
        if arguments.markdown:
            write_whole(arguments.markdown, text)
        if arguments.plots:
            peers_report.write_plots(report, arguments.plots)
    except OSError as error:
        print(f"peers: {error}", file=sys.stderr)
        return 1
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
