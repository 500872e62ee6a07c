#!/usr/bin/env python3
"""One denoising step: Octet compared with the fastest PyTorch that we could write (torch_dit.py).

Each contestant has the GPU to itself and builds its own model of random numbers, so that only one
is in memory. Its steps follow one another without pause, conditional and unconditional passes
alternating, at the clock that the power limit allows. All contestants run once, then once more in
the opposite order; the means of the two medians count.

    bench/step_peers.py [--json F] [--markdown F] [--plots [FOLDER]] [--steps N] [--passes N]
                        [--paths bf16,fp8_row,...] [--seconds S] [--size S] [--text-tokens N]
                        [--layers N] [--device D] [--eager]
    bench/step_peers.py --from-json F [--markdown F] [--plots [FOLDER]]      without a GPU

Needs build/octet; without torch only Octet is measured. The results are written after every run, so
that a command that is cut off keeps what it has.
"""

from __future__ import annotations

import argparse
import datetime
import functools
import gc
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import peers_report
import power
from whole_files import check_folder, check_writable, write_whole

ROOT = Path(__file__).resolve().parents[1]
PROGRAM = Path(os.environ.get("OCTET_BUILD_DIR", ROOT / "build")) / "octet"
ATTENTION = {"octet": "bf16", "octet_int8": "int8"}  # of Octet's paths
PATHS = ("bf16", "fp8_row", "fp8_tensor", "kitchen", "kitchen_convrot")
QUICK_PATHS = ("bf16", "fp8_row", "kitchen_convrot")
USUAL_PATHS = ("bf16", "fp8_row")
LAYERS = 34  # of the published model
TIME = 0.5  # of the schedule
FAR = 0.5  # of bf16's velocity: a wrong result is uncorrelated, and 1.4 away


class StepCase(NamedTuple):
    size: int = 1024  # pixels, of a square
    text_tokens: int = 512
    steps: int = 50  # of each pass

    @property
    def grid(self) -> tuple:
        return (self.size // 16, self.size // 16)


class Run(NamedTuple):
    """One contestant, once."""

    ms: dict  # {branch: median}
    power: dict  # as in `octet bench step`; empty if it is unknown
    velocity: object = None  # the conditional one, on the host
    about: dict = {}  # what the contestant says about itself and the device


# --- Octet ---------------------------------------------------------------------------------------


def octet_step(program: Path, case: StepCase, layers: int, device: str, path: str = "octet") -> Run:
    """By `octet bench step`, in a process of its own."""
    done = subprocess.run(
        [program, "bench", "step", "--device", device, "--size",
         f"{case.size}x{case.size}", "--text-tokens", str(case.text_tokens), "--layers",
         str(layers), "--steps", str(case.steps), "--attention", ATTENTION[path], "-q", "--json",
         "-"], capture_output=True, text=True, timeout=300)
    if done.returncode != 0:
        raise RuntimeError((done.stderr.strip() or "octet bench step failed").splitlines()[-1])
    bench = json.loads(done.stdout)
    return Run({branch["name"]: branch["ms"] for branch in bench["branches"]},
               bench["power"] or {}, about={name: bench[name] for name in ("device", "commit")})


def octet_contestants(program: Path, case: StepCase, layers: int, device: str) -> dict:
    return {path: functools.partial(octet_step, program, case, layers, device, path)
            for path in ATTENTION}


# --- PyTorch -------------------------------------------------------------------------------------


def attention_backend(torch, device):
    """cuDNN's if it takes heads of 256, otherwise FlashAttention's."""
    from torch.nn.attention import SDPBackend, sdpa_kernel

    q = torch.randn(1, 2, 128, 256, device=device, dtype=torch.bfloat16)
    for backend in (SDPBackend.CUDNN_ATTENTION, SDPBackend.FLASH_ATTENTION):
        try:
            with sdpa_kernel(backend):
                torch.nn.functional.scaled_dot_product_attention(q, q, q)
            return backend
        except RuntimeError:
            continue
    return SDPBackend.MATH


def torch_contestants(torch, paths, case: StepCase, device, sizes=None, compiled: bool = True):
    """({path: its run}, the name of the attention). A block is compiled in the first run of its
    path, and that serves the later ones."""
    import torch_dit
    from torch.nn.attention import sdpa_kernel

    sizes = sizes or torch_dit.Sizes()
    # All paths run through one function, two shapes each: more than Dynamo compiles by itself.
    for limit in ("recompile_limit", "cache_size_limit"):
        if hasattr(torch._dynamo.config, limit):
            setattr(torch._dynamo.config, limit, 64)
    backend = attention_backend(torch, device)
    gauge = power.gauge_of(torch, device)

    @functools.cache
    def runner(path):
        return torch_dit.block_runner(torch_dit.KINDS[path], sizes, compiled)

    def run(path):
        with torch.no_grad(), sdpa_kernel(backend):
            return torch_step(torch, torch_dit.KINDS[path], runner(path), sizes, case, device,
                              gauge)

    return {path: functools.partial(run, path) for path in paths}, backend.name.lower()


def torch_step(torch, kind, run, sizes, case: StepCase, device, gauge) -> Run:
    import torch_dit

    gc.collect()  # of the contestant before
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    random = torch.Generator(device).manual_seed(0)

    def tensor(name, shape):
        # Norms near 1, outputs of linears of the size of their inputs.
        values = torch.randn(shape, generator=random, device=device, dtype=torch.bfloat16)
        if len(shape) == 1:
            return 1 + 0.1 * values if "norm" in name else 0.02 * values
        return values * shape[1] ** -0.5

    model = torch_dit.make_model(sizes, kind, tensor)
    z = torch.randn(case.grid[0] * case.grid[1], sizes.channels, generator=random, device=device,
                    dtype=torch.bfloat16)
    works = {}
    for branch, tokens in (("conditional", case.text_tokens), ("unconditional", 0)):
        text = torch.randn(tokens, sizes.hidden, generator=random, device=device,
                           dtype=torch.bfloat16)
        tables = torch_dit.rotary_tables(sizes, tokens, case.grid, device)
        works[branch] = functools.partial(torch_dit.forward, run, sizes, model, text, z, TIME,
                                          tables)
    velocity = works["conditional"]().float().cpu()
    works["unconditional"]()
    times, used = timed(torch, works, case.steps, device, gauge)
    return Run({branch: statistics.median(of_branch) for branch, of_branch in times.items()}, used,
               velocity)


def timed(torch, works: dict, steps: int, device, gauge=None):
    """({name: [ms]}, what was drawn): two steps warm up. By the GPU's clock, or the host's if there
    is none."""
    spans = {name: [] for name in works}
    on_gpu = torch.device(device).type == "cuda"

    def now():
        if not on_gpu:
            return time.perf_counter()
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def wait():
        if on_gpu:
            torch.cuda.synchronize(device)

    def step():
        for name, work in works.items():
            begin = now()
            work()
            spans[name].append((begin, now()))

    for _ in range(2):
        step()
    wait()
    with power.sampled(gauge) as used:
        for _ in range(steps):
            step()
        wait()
    return {name: [begin.elapsed_time(end) if on_gpu else (end - begin) * 1e3
                   for begin, end in of_name[2:]] for name, of_name in spans.items()}, used


# --- all of them ---------------------------------------------------------------------------------


def distance(velocity, expected) -> float:
    return ((velocity - expected).norm() / expected.norm()).item()


def mean_of(dicts: list) -> dict:
    """The mean of each numeric entry that all have."""
    return {name: statistics.mean(entry[name] for entry in dicts) for name in dicts[0]
            if all(isinstance(entry.get(name), (int, float)) for entry in dicts)}


def measure(contestants: dict, case: StepCase, layers: int, say, passes: int = 2,
            seconds: float = float("inf"), save=lambda result: None) -> dict:
    """{"size", "text_tokens", "layers", "steps", "passes", "ms": {path: {branch: ms}}, "power":
    {path: ...}, "runs": {path: [...]}, "off": {path: distance to bf16's velocity}, "about": of
    Octet, "left_out": {path: why}}. contestants: {path: a function that returns its Run}; every
    other pass is backwards. A run that would probably end after `seconds` is not begun, except
    in the first pass. `save` receives the result after every run."""
    result = {"size": case.size, "text_tokens": case.text_tokens, "layers": layers,
              "steps": case.steps, "passes": passes, "ms": {}, "power": {}, "runs": {}, "off": {},
              "about": {}, "left_out": {}}
    begun, took, expected = time.monotonic(), {}, None

    def leave_out(path, reason):
        result["left_out"][path] = reason
        for kept in ("ms", "power", "runs", "off"):
            result[kept].pop(path, None)
        say(f"step, {path} is left out: {reason}")

    def note(path, made):
        runs = result["runs"].setdefault(path, [])
        runs.append({"ms": made.ms, "power": made.power})
        result["ms"][path] = mean_of([run["ms"] for run in runs])
        if made.power:
            result["power"][path] = mean_of([run["power"] for run in runs if run["power"]])
        result["about"].update(made.about)
        watts = f", {made.power['mean_w']:.0f} W" if made.power.get("mean_w") else ""
        say(f"step, {path}: {sum(made.ms.values()):.1f} ms{watts}")

    for number in range(passes):
        order = list(contestants)[::-1 if number % 2 else 1]
        for path in order:
            if path in result["left_out"]:
                continue
            start = time.monotonic()
            if number > 0 and start - begun + took[path] > seconds:
                say(f"step, {path}: no time for another run")
                continue
            try:
                made = contestants[path]()
            except Exception as error:  # no memory, no such package, a kernel that is not there
                if path not in result["ms"]:
                    leave_out(path, (str(error).strip() or type(error).__name__).splitlines()[0])
                else:
                    say(f"step, {path}: a further run failed: {error}")
                continue
            took[path] = time.monotonic() - start
            if made.velocity is not None:
                expected = made.velocity if path == "bf16" else expected
                if expected is not None:
                    off = distance(made.velocity, expected)
                    if not off <= FAR:
                        leave_out(path, f"its velocity is {off:.3g} away from that of bf16")
                        continue
                    result["off"].setdefault(path, off)
            note(path, made)
            save(result)
    return result


# --- the command ---------------------------------------------------------------------------------


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], allow_abbrev=False)
    case = StepCase()
    parser.add_argument("--device", default="cuda:0", help="default: cuda:0")
    parser.add_argument("--size", type=int, default=case.size, help="pixels of a side")
    parser.add_argument("--text-tokens", type=int, default=case.text_tokens)
    parser.add_argument("--layers", type=int, default=LAYERS, help="fewer shorten the model")
    parser.add_argument("--steps", type=int, default=case.steps, help="of each pass")
    parser.add_argument("--passes", type=int, default=2, help="default: 2, there and back")
    parser.add_argument("--paths", default=",".join(USUAL_PATHS),
                        help=f"of PyTorch, of {','.join(PATHS)}; default: {','.join(USUAL_PATHS)}")
    parser.add_argument("--seconds", type=float, default=220,
                        help="begin no run of a later pass that would end after this many")
    parser.add_argument("--eager", action="store_true", help="nothing is compiled")
    parser.add_argument("--json", type=Path, help="write the results there")
    parser.add_argument("--from-json", type=Path, help="render these results, measure nothing")
    parser.add_argument("--markdown", type=Path, help="write the table there too")
    parser.add_argument("--plots", type=Path, nargs="?", const=ROOT / "docs",
                        help="write gpu_step.svg there (default: docs)")
    return parser.parse_args()


def all_contestants(arguments, case: StepCase, step: dict, say):
    """({path: its run}, versions). What cannot run at all is noted in step["left_out"]."""
    contestants = octet_contestants(PROGRAM, case, arguments.layers, arguments.device)
    paths = tuple(filter(None, arguments.paths.split(",")))
    # A few small blocks: starting a pool of compilers takes longer than compiling them.
    os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")
    try:
        import torch
        import torch_dit

        if torch.device(arguments.device).type == "cuda" and not torch.cuda.is_available():
            raise RuntimeError("torch finds no CUDA device")
        sizes = torch_dit.Sizes(layers=arguments.layers)
        others, step["attention"] = torch_contestants(torch, paths, case, arguments.device, sizes,
                                                      not arguments.eager)
        return contestants | others, {"torch": torch.__version__, "cuda": torch.version.cuda}
    except Exception as error:  # no torch, or one for another driver: Octet still runs
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        step["left_out"] = dict.fromkeys(paths, reason)
        say(f"PyTorch is left out: {reason}")
        return contestants, {"torch": None, "cuda": None}


def run(arguments, save) -> dict:
    begun = time.monotonic()

    def say(text):
        print(f"{time.monotonic() - begun:6.1f} s  {text}", file=sys.stderr, flush=True)

    case = StepCase(arguments.size, arguments.text_tokens, arguments.steps)
    known = {"attention": None, "left_out": {}}
    contestants, versions = all_contestants(arguments, case, known, say)
    report = {"date": f"{datetime.datetime.now(datetime.timezone.utc):%Y-%m-%dT%H:%M:%SZ}",
              "device": arguments.device, "commit": "unknown", **versions,
              "command": " ".join(["bench/step_peers.py", *sys.argv[1:]]), "cases": []}

    def keep(step):
        report.update(step["about"])
        report["step"] = {**step, "attention": known["attention"],
                          "left_out": {**known["left_out"], **step["left_out"]}}
        save(report)

    keep(measure(contestants, case, arguments.layers, say, arguments.passes,
                 arguments.seconds - (time.monotonic() - begun), keep))
    say("done")
    return report


def markdown(report: dict) -> str:
    lines = [f"# One denoising step on {report['device'].split(',')[0]}",
             f"{report['device']}; {report['date']}; commit {report['commit']}; torch "
             f"{report['torch']}, CUDA {report['cuda']}; `{report['command']}`."]
    if report["step"]["ms"]:
        lines.append(peers_report.step_table(report["step"]))
    left_out = peers_report.left_out(report)
    if left_out:
        lines += ["Left out:", "\n".join(left_out)]
    return "\n\n".join(lines) + "\n"


def main() -> int:
    arguments = parse_arguments()
    try:
        for path in filter(None, (arguments.json, arguments.markdown)):
            check_writable(path)
        if arguments.plots:
            check_folder(arguments.plots)
        if arguments.from_json:
            report = json.loads(arguments.from_json.read_text(encoding="utf-8"))
        else:
            def save(so_far):
                if arguments.json:
                    write_whole(arguments.json, json.dumps(so_far, indent=1) + "\n")

            report = run(arguments, save)
        text = markdown(report)
        print(text)
        if arguments.markdown:
            write_whole(arguments.markdown, text)
        if arguments.plots:
            peers_report.write_plots(report, arguments.plots)
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        print(f"step_peers: {type(error).__name__}: {error}", file=sys.stderr)
        return 1
    return 0 if peers_report.OURS in report["step"]["ms"] else 1


if __name__ == "__main__":
    sys.exit(main())
