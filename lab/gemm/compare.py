"""Octet's INT8 GEMM against CUTLASS's, in one process: first right, then cold, then under load.

    OCTET_BUILD_DIR=build python lab/gemm/compare.py [--cutlass lab/gemm/libcutlass_int8.so]
        [--seconds S] [--only qkv,w13:4133] [--shapes "m,n,k;m,n,k"] [--json F]
        [--octet-kernels 'sm90_256x192*,sm90_128x*'] [--tune missing]

Needs a Hopper GPU, torch, liboctet.so, and libcutlass_int8.so (cutlass.cu tells how to build it).
Every kernel of CUTLASS, rasterised along m and n with swizzles of 1, 2, 4, 8, has to give Octet's
bits. Then, for each shape:
  cold         in turns, both orders, 1 GB written before each run; medians. All of CUTLASS a few
               times to find the best, those and Octet again, more often: these times count.
  under load   without pause, at the power limit. Ten of CUTLASS in short slices to find the
               best four; those and Octet in slices of 0.2 s, in turns, both orders, over two sets
               of operands; medians of the slices' means, a slice's first quarter left out.
Octet runs the kernel that its tuner chose. --octet-kernels adds others of its kernels, each forced.
Ratios are CUTLASS's time over Octet's: above 1, Octet is faster. Under load they are given twice:
for CUTLASS's best by the times that count, and by those of the other slices.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import math
import statistics
import subprocess
import sys
import time
from pathlib import Path

import torch
from contestants import (
    OURS,
    Contestant,
    Cutlass,
    Operands,
    WeightRows,
    cutlass_contestants,
    open_octets,
    our_contestants,
)
from gpu_turns import Turns  # bench/, which contestants put on the path
from octet_library import OctetError
from whole_files import check_writable, write_whole

HERE = Path(__file__).resolve().parent
LINEARS = {"qkv": (13824, 4608), "o": (4608, 4608), "w13": (24576, 4608), "w2": (4608, 12288)}
TOKENS = (4096, 4133, 4608, 16384)  # of the older harness of docs/benchmarks.md
RAGGED_TOKENS = (4999, 8191)
SETS = 2  # of operands: no run finds its weights in L2
SCREENING_ROUNDS, COLD_ROUNDS = 3, 20
LOADED, PER_KERNEL = 10, 2  # that the short slices see: in all, and of one kernel
FINALISTS, FORCED_FINALISTS = 4, 3
SHORT_SLICE_US, SLICE_US, WARM_UP_US = 30e3, 200e3, 400e3
FEWEST_ROUNDS, MOST_ROUNDS = 2, 8  # of long slices; even, for as many forwards as backwards


# --- one shape -----------------------------------------------------------------------------------


def best(contestants, us: dict, most: int, per_family: int) -> list[Contestant]:
    chosen = []
    for contestant in sorted(contestants, key=lambda c: us[c.name]):
        same = sum(c.family == contestant.family for c in chosen)
        if len(chosen) < most and same < per_family:
            chosen.append(contestant)
    return chosen


class Load:
    """Launches without pause: the host is ahead of the GPU from the first slice to the last."""

    def __init__(self, stream, us: dict):
        self._stream, self._us, self._slices = stream, us, []

    def _event(self):
        event = torch.cuda.Event(enable_timing=True)
        event.record(self._stream)
        return event

    def warm_up(self, contestants) -> None:
        for contestant in contestants:
            for _ in range(int(WARM_UP_US / len(contestants) / self._us[contestant.name]) + 1):
                contestant.work()

    def round(self, contestants, slice_us: float) -> None:
        for contestant in contestants:
            count = max(4, math.ceil(slice_us / self._us[contestant.name]))
            for _ in range(count // 4):  # the clock is still its predecessor's
                contestant.work()
            begin = self._event()
            for _ in range(count - count // 4):
                contestant.work()
            self._slices.append((contestant.name, begin, self._event(), count - count // 4))

    def slices(self) -> dict:
        """{name: [microseconds per run, of each slice]}"""
        self._stream.synchronize()
        times = {}
        for name, begin, end, runs in self._slices:
            times.setdefault(name, []).append(begin.elapsed_time(end) * 1e3 / runs)
        return times


def medians(slices: dict) -> dict:
    return {name: statistics.median(us) for name, us in slices.items()}


@contextlib.contextmanager
def power_and_clock(found: dict):
    """One reading of the card, at some time within the block."""
    query = ["nvidia-smi", "--query-gpu=power.draw,clocks.sm", "--format=csv,noheader,nounits"]
    try:
        look = subprocess.Popen(query, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    except OSError:
        yield
        return
    yield
    with contextlib.suppress(ValueError, IndexError):
        watts, mhz = look.communicate()[0].splitlines()[torch.cuda.current_device()].split(",")
        found["watts"], found["mhz"] = float(watts), int(mhz)


def measure_shape(ours, peers, turns: Turns, stream, until: float) -> dict:
    """Its times, all in microseconds by contestant."""
    forced = [c for c in ours if c.side == "forced"]
    chosen = [c for c in ours if c.side == OURS]
    works = {c.name: c.work for c in (*ours, *peers)}

    def cold(contestants, rounds):
        return turns.medians({c.name: works[c.name] for c in contestants}, rounds)

    def finalists(us, most, most_forced, per_family):
        return chosen + best(forced, us, most_forced, 1) + best(peers, us, most, per_family)

    screened = cold((*ours, *peers), SCREENING_ROUNDS)
    case = {"screening": screened}
    case["cold"] = cold(finalists(screened, FINALISTS, FORCED_FINALISTS, FINALISTS), COLD_ROUNDS)

    entrants = finalists(screened, LOADED, LOADED, PER_KERNEL)
    load = Load(stream, screened)
    load.warm_up(entrants[:2])
    load.round(entrants, SHORT_SLICE_US)
    load.round(entrants[::-1], SHORT_SLICE_US)
    case["short_slices"] = load.slices()

    def among_entrants(side):
        return [c for c in entrants if c.side == side]

    loaded = medians(case["short_slices"])
    last = (chosen + best(among_entrants("forced"), loaded, FORCED_FINALISTS, 1)
            + best(among_entrants("cutlass"), loaded, FINALISTS, FINALISTS))
    seconds = until - time.monotonic() - WARM_UP_US * 1e-6
    rounds = int(seconds / (len(last) * SLICE_US * 1e-6)) // 2 * 2
    load = Load(stream, loaded)
    load.warm_up(last)
    with power_and_clock(case):
        for number in range(min(max(rounds, FEWEST_ROUNDS), MOST_ROUNDS)):
            load.round(last[:: 1 if number % 2 == 0 else -1], SLICE_US)
        case["slices"] = load.slices()
    case["load"] = medians(case["slices"])
    case["family"] = {c.name: c.family for c in (*ours, *peers)}
    case["side"] = {c.name: c.side for c in (*ours, *peers)}
    return case


# --- what is printed -----------------------------------------------------------------------------


def best_of(case: dict, when: str, side: str):
    """(name, microseconds), or nothing."""
    times = {name: us for name, us in case[when].items() if case["side"][name] == side}
    return min(times.items(), key=lambda item: item[1]) if times else None


def ratio(case: dict, when: str) -> float:
    return best_of(case, when, "cutlass")[1] / case[when][OURS]


def geometric_mean(values) -> float:
    return math.exp(statistics.mean(map(math.log, values)))


def held_out_ratio(case: dict) -> float:
    """Under load, each slice against the kernel of CUTLASS that was the best in the other slices.

    The best by the very times that count was also lucky; Octet's kernel was chosen beforehand.
    """
    slices = case["slices"]
    peers = [name for name in slices if case["side"][name] == "cutlass"]
    ratios = []
    for number, ours in enumerate(slices[OURS]):
        def elsewhere(name, left_out=number):
            return statistics.mean(us for i, us in enumerate(slices[name]) if i != left_out)
        ratios.append(slices[min(peers, key=elsewhere)][number] / ours)
    return geometric_mean(ratios)


def lines(case: dict):
    m, n, k = case["m"], case["n"], case["k"]
    yield f"{case['name']} m={m} n={n} k={k}: {case['family'][OURS]}"
    for when in ("cold", "load"):
        us = case[when][OURS]
        name, peer_us = best_of(case, when, "cutlass")
        yield (f"  {when:4s} {us:8.1f} us {2e-6 * m * n * k / us:5.0f} TOPS   CUTLASS "
               f"{peer_us:8.1f} us  ratio {peer_us / us:.3f}  {name}")
        forced = best_of(case, when, "forced")
        if forced:
            yield f"       {forced[1]:8.1f} us, {forced[1] / us:.3f} of it, forced: {forced[0]}"
    own = case["slices"][OURS]
    yield (f"       {len(own)} slices, Octet's within {100 * (max(own) / min(own) - 1):.1f} %"
           + (f"; {case['watts']:.0f} W, {case['mhz']} MHz" if "watts" in case else ""))


def summary(cases: list):
    groups = {"all": cases,
              "m = " + ", ".join(map(str, TOKENS)): [c for c in cases if c["m"] in TOKENS],
              "ragged m": [c for c in cases if c["m"] % 128 != 0]}
    yield "CUTLASS's best time over Octet's, geometric mean       cold   load  best of other slices"
    for name, members in groups.items():
        if members:
            means = [geometric_mean(ratio(c, when) for c in members) for when in ("cold", "load")]
            held_out = geometric_mean(map(held_out_ratio, members))
            yield (f"  {name:30s} {len(members):3d} shapes   {means[0]:10.3f} {means[1]:6.3f} "
                   f"{held_out:6.3f}")


# --- the run -------------------------------------------------------------------------------------


def shapes_of(arguments) -> dict:
    """{(n, k): (name, [m])}"""
    shapes = {}
    if arguments.shapes:
        for text in arguments.shapes.split(";"):
            m, n, k = map(int, text.split(","))
            name = next((name for name, shape in LINEARS.items() if shape == (n, k)), "linear")
            shapes.setdefault((n, k), (name, []))[1].append(m)
        return shapes
    wanted = arguments.only.split(",") if arguments.only else list(LINEARS)
    for name, shape in LINEARS.items():
        tokens = [m for m in sorted((*TOKENS, *RAGGED_TOKENS))
                  if name in wanted or f"{name}:{m}" in wanted]
        if tokens:
            shapes[shape] = (name, tokens)
    return shapes


def run(arguments, report: dict, save) -> None:
    start = time.monotonic()
    deadline = start + arguments.seconds

    def say(text):
        print(f"{time.monotonic() - start:6.1f} s  {text}", flush=True)

    stream = torch.cuda.Stream()
    shapes = shapes_of(arguments)
    if not shapes:
        raise OctetError(f"'{arguments.only}' names none of {', '.join(LINEARS)}")
    left = sum(len(tokens) for _, tokens in shapes.values())
    with torch.cuda.stream(stream), torch.no_grad():
        device = f"cuda:{torch.cuda.current_device()}"
        octets = open_octets(arguments.octet_kernels, device, stream.cuda_stream, arguments.tune)
        cutlass = Cutlass(arguments.cutlass, stream.cuda_stream)
        turns = Turns(torch, stream)
        report |= {"device": octets[OURS].description, "commit": octets[OURS].commit,
                   "torch": torch.__version__, "cutlass": cutlass.version}
        say(f"{report['device']}; Octet {report['commit']}, CUTLASS {report['cutlass']}, "
            f"{left} shapes")
        for (n, k), (name, tokens) in shapes.items():
            weights = [WeightRows(octets, n, k) for _ in range(SETS)]
            for m in tokens:
                until = time.monotonic() + (deadline - time.monotonic()) / left
                sets = [Operands(weight, m) for weight in weights]
                ours = our_contestants(octets, sets, say)
                peers = cutlass_contestants(cutlass, sets, say)
                case = {"name": name, "m": m, "n": n, "k": k}
                case |= measure_shape(ours, peers, turns, stream, until)
                torch.cuda.synchronize()
                for release in itertools.chain.from_iterable(peer.releases for peer in peers):
                    release()
                report["cases"].append(case)
                for line in lines(case):
                    say(line)
                save()
                left -= 1
            torch.cuda.synchronize()
            for weight in weights:
                weight.close()
        for octet in octets.values():
            octet.close()
    for line in summary(report["cases"]):
        print(line)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], allow_abbrev=False)
    parser.add_argument("--cutlass", type=Path, default=HERE / "libcutlass_int8.so")
    parser.add_argument("--seconds", type=float, default=190,
                        help="of the whole run, about; more means more slices under load")
    parser.add_argument("--only", help="names of linears, or name:m, separated by commas")
    parser.add_argument("--shapes", help='"m,n,k;m,n,k" instead of the usual ones')
    parser.add_argument("--octet-kernels", help="patterns of names, with commas: forced as well")
    parser.add_argument("--tune", choices=("off", "missing", "all"), default="missing")
    parser.add_argument("--json", type=Path, help="write all times there")
    arguments = parser.parse_args()
    torch.manual_seed(0)
    report = {"command": sys.argv[1:], "cases": []}

    def save():
        if arguments.json:
            write_whole(arguments.json, json.dumps(report, indent=1) + "\n")

    try:
        if arguments.json:
            check_writable(arguments.json)
        run(arguments, report, save)
    except (OctetError, OSError) as error:
        print(f"compare: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
