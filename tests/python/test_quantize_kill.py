"""`octet quantize` under kill -9: whenever it comes, the output is the old one or complete, the
next run goes on, and the result is the same to the last byte."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import time
from pathlib import Path

import pytest

pytest.importorskip("diffusers")
pytest.importorskip("transformers")

import tiny_ideogram4 as tiny

# Thirty kills in all. The plain loops of `ref` take their time, so that most of it is writing;
# where the worst linears are looked for, most of it is measuring.
WAYS = {"writing": ("ref", "layers.3.*", 22), "measuring": ("cpu", "auto:5", 8)}
PROTECTED = 5
OLD = b"what was here before"

# Some 4 MB of INT8, of which each megabyte is finished on its own under the smallest bound.
SHAPE = tiny.Shape(layers=8, heads=2, head_dim=64, ffn=1024, mrope_section=(16, 8, 8))

BY_PRODUCTS = {".part", ".part.journal", ".part.journal.new", ".part.errors", ".part.errors.new"}


@pytest.fixture(scope="module")
def source(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("source")
    tiny.make_transformer(SHAPE, seed=3).save_pretrained(folder)
    return folder


class Job:
    """Quantizing to one file."""

    def __init__(self, program: Path, source: Path, out: Path, way: str) -> None:
        self.out = out
        device, protect, _ = WAYS[way]
        words = [source, out, "--max-memory", "24M", "--protect", protect, "--json", "-", "-q"]
        self.command = [program, "quantize", "--device", device, "--threads", "1", *words]

    def run(self, seconds: float = 60) -> dict | None:
        """The report; nothing when it had to be killed after that time."""
        with subprocess.Popen(
            self.command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as process:
            try:
                out, sentence = process.communicate(timeout=seconds)
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)
                out, sentence = process.communicate()
                if process.returncode == -signal.SIGKILL:
                    return None  # else it was done just before
        assert process.returncode == 0, sentence
        return json.loads(out)

    def beside(self) -> set[str]:
        """What lies in the folder but the output, by what is behind its name."""
        names = {path.name for path in self.out.parent.iterdir()} - {self.out.name}
        return {name.removeprefix(self.out.name) for name in names}


@pytest.mark.parametrize("way", WAYS)
def test_killed_at_any_moment(built_program, source, tmp_path, way):
    program, kills = built_program("octet"), WAYS[way][2]
    whole = Job(program, source, tmp_path / "whole" / "out.safetensors", way)
    whole.out.parent.mkdir()
    started = time.monotonic()
    whole.run()
    length = time.monotonic() - started
    expected = whole.out.read_bytes()
    assert whole.beside() == set()

    moments = random.Random(6)
    job = Job(program, source, tmp_path / "killed" / "out.safetensors", way)
    job.out.parent.mkdir()
    killed = completed = resumed = 0
    while killed < kills:
        # Half of the jobs replace a file.
        before = OLD if completed % 2 else None
        job.out.unlink(missing_ok=True)
        if before is not None:
            job.out.write_bytes(before)
        # Several kills in a row, so that what was resumed is killed as well.
        for patience in [moments.uniform(0, length) for _ in range(6)] + [60]:
            report = job.run(patience)
            assert job.beside() <= BY_PRODUCTS, "something that no run would take away"
            now = job.out.read_bytes() if job.out.exists() else None
            assert now in (before, expected), "neither the old file nor the whole new one"
            if report is not None:
                break
            killed += 1
        completed += 1
        resumed += report["resumed_tensors"] > 0
        assert now == expected
        assert job.beside() == set()
        assert report["branches"][0]["protected"] == PROTECTED
    assert resumed > 0 or way == "measuring", "no run found anything to go on with"
    print(f"{killed} kills, {completed} jobs, {resumed} of them resumed; one takes {length:.2f} s")


def test_two_at_once(built_program, source, tmp_path):
    """The second is told, and the first is not disturbed."""
    job = Job(built_program("octet"), source, tmp_path / "out.safetensors", "writing")
    part = tmp_path / "out.safetensors.part"
    first = subprocess.Popen(job.command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        while not part.exists() and first.poll() is None:
            time.sleep(0.001)
        os.kill(first.pid, signal.SIGSTOP)
        assert part.exists() or job.out.exists()
        if not job.out.exists():
            done = subprocess.run(job.command, capture_output=True, text=True, timeout=60)
            assert done.returncode == 1 and "another" in done.stderr, done.stderr
    finally:
        os.kill(first.pid, signal.SIGCONT)
        assert first.wait() == 0
    assert [path.name for path in tmp_path.iterdir()] == [job.out.name]
