#!/usr/bin/env python3
"""Records the programs of programs.py with PyTorch's profiler, and a few with Nsight Compute.

    tests/traces/record.py --device cpu|cuda --out FOLDER [--only NAME,...] [--jobs N] [--tar FILE]
                           [--wheels FOLDER] [--octet PROGRAM] [--octet-lib LIBRARY] [--seconds N]
    tests/traces/record.py --expected FOLDER       writes expected.json for the traces in there

Each program runs in a process of its own, with a time limit: what fails costs nothing else. It is
recorded twice, NAME.shapes.json.gz with shapes and names of layers, NAME.plain.json.gz without.
FOLDER/names.txt lists all kernels and ops. --wheels: zip files of packages that are not installed.
"""

from __future__ import annotations

import argparse
import collections
import concurrent.futures
import gzip
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
STEPS = 1
VARIANTS = ("shapes", "plain")
SUFFIX = ".json.gz"

# What tells about the machine or its user, and not about the run.
PRIVATE = ((re.compile(r'("host_?name": ")[^"]*"', re.I), r'\1host"'),
           (re.compile(r'("traceName": ")[^"]*"'), r'\1trace.json"'),
           (re.compile(r'("(?:distributedInfo|PT_PROFILER_JOB[A-Z_]*|username)": )'
                       r'("[^"]*"|\{[^{}]*\})'), r'\1""'),
           (re.compile(r'"/[^"\s]*/([^"/\s]+)"'), r'"\1"'))


# --- one program, in its own process -------------------------------------------------------------


def named_linears(network):
    """Hooks that put each linear's name around what it calls."""
    import torch

    hooks = []
    for name, module in network.named_modules() if network is not None else ():
        if not hasattr(module, "weight") and not hasattr(module, "blocks"):
            continue
        if name == "" or "norm" in name or next(module.children(), None) is not None:
            continue

        def before(module, _, name=name):
            module.recorded_range = torch.profiler.record_function(name)
            module.recorded_range.__enter__()

        def after(module, *_):
            module.recorded_range.__exit__(None, None, None)

        hooks += [module.register_forward_pre_hook(before), module.register_forward_hook(after)]
    return hooks


def without_private(text: str) -> str:
    for pattern, replacement in PRIVATE:
        text = pattern.sub(replacement, text)
    return text


def compressed(text: str) -> bytes:
    return gzip.compress(text.encode(), 9, mtime=0)


def profiled(step, shapes: bool, is_cuda: bool) -> str:
    import torch
    from torch.profiler import ProfilerActivity, profile

    activities = [ProfilerActivity.CPU] + [ProfilerActivity.CUDA] * is_cuda
    with profile(activities=activities, record_shapes=shapes) as profiler:
        for _ in range(STEPS):
            step()
        if is_cuda:
            torch.cuda.synchronize()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        profiler.export_chrome_trace(str(path))
        return path.read_text()


def record_one(name: str, device: str, out: Path, run_only: bool) -> None:
    import torch

    import programs

    torch.manual_seed(0)
    torch.set_num_threads(2)
    is_cuda = device == "cuda"
    program = programs.PROGRAMS[name]
    with torch.no_grad():
        network, step = program.make(program.setting(device))
        for _ in range(3):
            step()
        if run_only:  # for Nsight Compute, which is told to look at what lies between
            torch.cuda.synchronize()
            torch.cuda.profiler.start()
            step()
            torch.cuda.synchronize()
            torch.cuda.profiler.stop()
            return
        profiled(step, False, is_cuda)  # the first start of the profiler is slow, and leaves marks
        for variant in VARIANTS:
            hooks = named_linears(network) if variant == "shapes" else []
            text = profiled(step, variant == "shapes", is_cuda)
            for hook in hooks:
                hook.remove()
            (out / f"{name}.{variant}{SUFFIX}").write_bytes(compressed(without_private(text)))


# --- all of them ---------------------------------------------------------------------------------


def last_line(text: str) -> str:
    lines = [line for line in text.strip().splitlines() if line.strip()]
    return lines[-1].strip()[:300] if lines else "no output"


class Recorder:
    def __init__(self, arguments):
        self.arguments = arguments
        self.end = time.monotonic() + arguments.seconds
        self.out = Path(arguments.out).resolve()
        self.out.mkdir(parents=True, exist_ok=True)
        self.environment = dict(os.environ, TORCHINDUCTOR_COMPILE_THREADS="4")
        if arguments.octet_lib:
            self.environment["OCTET_LIBRARY"] = str(Path(arguments.octet_lib).resolve())

    def with_packages(self, folder: Path) -> None:
        """Unpacks the carried packages where the programs' processes look for them."""
        for archive in sorted(Path(self.arguments.wheels).glob("*.zip")):
            try:
                zipfile.ZipFile(archive).extractall(folder)
                print(f"{archive.name}: unpacked", flush=True)
            except (OSError, zipfile.BadZipFile, NotImplementedError) as error:
                print(f"{archive.name}: failed, {error}", flush=True)
        paths = [str(folder), self.environment.get("PYTHONPATH", "")]
        self.environment["PYTHONPATH"] = os.pathsep.join(filter(None, paths))

    def left(self) -> float:
        return self.end - time.monotonic()

    def run(self, command, limit: float, say: str) -> str | None:
        """None when it ended well, else why not."""
        limit = min(limit, self.left())
        if limit <= 1:
            return "no time left"
        try:
            done = subprocess.run([str(word) for word in command], capture_output=True, text=True,
                                  errors="replace", timeout=limit, env=self.environment, cwd=HERE)
        except subprocess.TimeoutExpired:
            return f"ran past {limit:.0f} s"
        except OSError as error:
            return str(error)
        if done.returncode != 0:
            (self.out / f"failed_{say}.txt").write_text((done.stdout + done.stderr)[-20000:])
            return f"exit code {done.returncode}: {last_line(done.stderr or done.stdout)}"
        return None

    def of_program(self, program) -> str:
        start = time.monotonic()
        error = self.run([sys.executable, __file__, "--one", program.name, "--device",
                          self.arguments.device, "--out", self.out],
                         program.seconds * self.arguments.patience, program.name)
        took = f"{time.monotonic() - start:.0f} s"
        if error:
            return f"{program.name}: failed ({took}), {error}"
        sizes = " + ".join(str((self.out / f"{program.name}.{variant}{SUFFIX}").stat().st_size)
                           for variant in VARIANTS)
        kernels = summary(self.out / f"{program.name}.shapes{SUFFIX}").kernels
        top = ", ".join(name[:60] for name, _ in kernels.most_common(3))
        return f"{program.name}: ok ({took}), {sizes} bytes, {len(kernels)} kernels: {top}"

    def all_programs(self, programs) -> None:
        with concurrent.futures.ThreadPoolExecutor(self.arguments.jobs) as pool:
            # The slow ones first.
            tasks = [pool.submit(self.of_program, program)
                     for program in sorted(programs, key=lambda program: -program.seconds)]
            for task in concurrent.futures.as_completed(tasks):
                print(task.result(), flush=True)

    # --- Nsight Compute --------------------------------------------------------------------------

    def tensor_metrics(self, ncu: str) -> list[str]:
        """Counters of tensor instructions that this card has."""
        words = [ncu, "--query-metrics", "--csv"]
        listed = subprocess.run(words, capture_output=True, text=True, errors="replace",
                                timeout=max(1, min(30, self.left()))).stdout
        names = sorted(set(re.findall(r"\bsm__[a-z0-9_]*tensor[a-z0-9_]*", listed)))
        (self.out / "ncu_metrics.txt").write_text("\n".join(names) + "\n")
        wanted = re.compile(r"sm__(inst_executed_pipe_tensor(_op_(imma|hmma|dmma|gmma)\w*)?|"
                            r"ops_path_tensor_(src|op)_(int8|bf16|fp16|fp8|tf32)\w*)$")
        return [f"{name}.sum" for name in names
                if wanted.match(name) and "sparsity_on" not in name][:16]

    def compute_csv(self, ncu: str, name: str, command, flags, pages) -> str:
        """Profiles a command once, and writes FOLDER/ncu_NAME.PAGE.csv for each page."""
        report = self.out / f"{name}.ncu-rep"
        error = self.run([ncu, "--force-overwrite", "-o", report, "--clock-control", "none",
                          *flags, *command], 45, f"ncu_{name}")
        if not report.is_file():
            return f"ncu {name}: failed, {error or 'no report'}"
        made = []
        for page in pages:
            done = subprocess.run([ncu, "--import", report, "--csv", "--page", page],
                                  capture_output=True, text=True, errors="replace", timeout=30)
            path = self.out / f"ncu_{name}.{page}.csv"
            path.write_text(without_private(done.stdout))
            made.append(f"{page} {path.stat().st_size} bytes")
        report.unlink()
        return f"ncu {name}: ok, {', '.join(made)}" + (f" (but {error})" if error else "")

    def with_compute(self) -> None:
        ncu = shutil.which("ncu") or shutil.which("/usr/local/cuda/bin/ncu")
        if not ncu:
            print("ncu: not installed", flush=True)
            return
        try:
            metrics = self.tensor_metrics(ncu)
        except (OSError, subprocess.TimeoutExpired) as error:
            metrics = []
            print(f"ncu: its metrics cannot be listed, {error}", flush=True)
        chosen = ["--metrics", ",".join(["gpu__time_duration.sum", *metrics])]
        print(f"ncu: {len(metrics)} counters of tensor instructions", flush=True)

        def of_program(name):
            return [sys.executable, __file__, "--one", name, "--device", "cuda", "--out", self.out,
                    "--run-only"]

        between = ["--profile-from-start", "off"]
        for name in ("fake_int8", "int_mm", "fp8_row", "bf16"):
            print(self.compute_csv(ncu, name, of_program(name),
                                   [*between, *chosen, "--launch-count", "48"],
                                   ["details", "raw"]), flush=True)
        print(self.compute_csv(ncu, "fake_int8_default", of_program("fake_int8"),
                               [*between, "--launch-count", "12"], ["details"]), flush=True)
        if self.arguments.octet:
            gemm = [self.arguments.octet, "bench", "gemm", "--device", "cuda", "--shapes",
                    "1024,1536,1536;1024,4608,1536", "--seconds", "0.05", "--tune", "off"]
            print(self.compute_csv(ncu, "octet_gemm", gemm, [*chosen, "--launch-count", "40"],
                                   ["details", "raw"]), flush=True)

    def of_octet(self) -> None:
        """Its own reports."""
        octet = self.arguments.octet
        for name, words in {
            "octet_gemm": ["gemm", "--shapes", "1024,1536,1536;1024,4608,1536", "--seconds",
                           "0.05"],
            "octet_step": ["step", "--size", "512", "--layers", "4", "--steps", "2"],
        }.items():
            path = self.out / f"{name}.report.json"
            error = self.run([octet, "bench", *words, "--device", "cuda", "--json", path], 40, name)
            print(f"{name}: {'failed, ' + error if error else 'ok'}", flush=True)


# --- what the traces hold ------------------------------------------------------------------------


class Summary:
    def __init__(self):
        self.kernels, self.ops = collections.Counter(), collections.Counter()
        self.calls = collections.Counter()


def summary(path: Path) -> Summary:
    """Kernels by time, ops with the types of their operands by time."""
    result = Summary()
    with gzip.open(path, "rt") as file:
        events = json.load(file)["traceEvents"]
    for event in events:
        kind = event.get("cat")
        if kind in ("kernel", "gpu_memcpy", "gpu_memset"):
            result.kernels[event["name"]] += event.get("dur", 0)
            result.calls[event["name"]] += 1
        elif kind in ("cpu_op", "user_annotation"):
            types = [text for text in event.get("args", {}).get("Input type", []) if text]
            name = f"{event['name']}({', '.join(types)})"
            result.ops[name] += event.get("dur", 0)
            result.calls[name] += 1
    return result


def write_names(out: Path) -> None:
    with open(out / "names.txt", "w") as file:
        for path in sorted(out.glob(f"*.shapes{SUFFIX}")):
            found = summary(path)
            file.write(f"== {path.name.removesuffix('.shapes' + SUFFIX)}\n")
            for what, counter in (("kernel", found.kernels), ("op", found.ops)):
                for name, us in counter.most_common():
                    file.write(f"{what}\t{found.calls[name]}\t{us:.1f}\t{name}\n")


def write_expected(folder: Path) -> None:
    """expected.json for the traces of the profiler in FOLDER/cpu and FOLDER/cuda."""
    import programs

    entries = []
    for path in sorted(folder.glob(f"c*/*{SUFFIX}")):
        name, variant = path.name.removesuffix(SUFFIX).rsplit(".", 1)
        program = programs.PROGRAMS[name]
        entry = {"file": str(path.relative_to(folder)), "program": program.sentence,
                 "verdict": program.verdict}
        for key in ("linears", "native", "fake"):
            count = getattr(program, key)
            if count is not None:
                entry[key] = count * STEPS
        others = list(program.may_be.get(variant, []))
        on_host = path.parent.name == "cpu"
        is_floating = program.verdict.startswith(("fake", "unquantized"))
        if on_host and is_floating and (variant == "plain" or "compiled" in name):
            # Ops of a CPU have types with their shapes alone, and Inductor's own code there leaves
            # no event: a dequantization would not be seen.
            others = sorted({*others, "unclear"})
        if others:
            entry["may_be"] = others
        entries.append(entry)
    others = folder / "expected_others.json"  # not of the profiler: by hand
    entries += json.loads(others.read_text()) if others.is_file() else []
    (folder / "expected.json").write_text(json.dumps(entries, indent=1) + "\n")
    print(f"{len(entries)} entries")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--out", default="traces")
    parser.add_argument("--tar", help="also all of it in one file")
    parser.add_argument("--only", help="names, separated by commas")
    parser.add_argument("--jobs", type=int, default=max(1, min(8, (os.cpu_count() or 2) // 2)))
    parser.add_argument("--seconds", type=float, default=600, help="for all")
    parser.add_argument("--patience", type=float, default=1, help="times each program's limit")
    parser.add_argument("--wheels")
    parser.add_argument("--octet")
    parser.add_argument("--octet-lib")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--run-only", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--expected", metavar="FOLDER")
    arguments = parser.parse_args()
    sys.path.insert(0, str(HERE))
    if arguments.expected:
        write_expected(Path(arguments.expected))
        return 0
    if arguments.one:
        record_one(arguments.one, arguments.device, Path(arguments.out), arguments.run_only)
        return 0

    import programs

    chosen = [program for program in programs.PROGRAMS.values()
              if arguments.device in program.devices
              and (not arguments.only or program.name in arguments.only.split(","))
              and (program.name != "octet" or arguments.octet_lib)]
    recorder = Recorder(arguments)
    with tempfile.TemporaryDirectory() as packages:
        if arguments.wheels:
            recorder.with_packages(Path(packages))
        recorder.all_programs(chosen)
        if arguments.device == "cuda" and not arguments.only:
            if arguments.octet:
                recorder.of_octet()
            recorder.with_compute()
    write_names(recorder.out)
    if arguments.tar:
        with tarfile.open(arguments.tar, "w") as tar:
            tar.add(recorder.out, arcname=recorder.out.name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
