"""What `octet audit --record` puts in front of a PyTorch program: it records, and changes nothing.

Each run imports torch, so that there are few, and each looks at several things.
"""

from __future__ import annotations

import gzip
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

NETWORK = """
import importlib.util, os, sys, threading
importlib.util.find_spec("torch")  # as ComfyUI, diffusers and others ask first
import torch

class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = torch.nn.Linear(32, 48), torch.nn.Linear(48, 32)
    def forward(self, x):
        return self.down(torch.relu(self.up(x)))

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = torch.nn.ModuleList([Block(), Block()])
    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x

model = Model()
@torch.no_grad()
def step():
    return model(torch.ones(16, 32))
"""


@pytest.fixture
def record(repository, tmp_path):
    """record(words, ...): runs Python with them. Its traces are in tmp_path / "out"."""
    hook, out = tmp_path / "hook", tmp_path / "out"
    hook.mkdir()
    out.mkdir()
    shutil.copy(repository / "apps/cli/record_sitecustomize.py", hook / "sitecustomize.py")

    def run(*words, path=(), **environment):
        return subprocess.run(
            [sys.executable, *map(str, words)], capture_output=True, text=True, timeout=300,
            cwd=tmp_path, env={**os.environ, "OCTET_RECORD_FILE": str(out / "trace.json.gz"),
                               "PYTHONPATH": os.pathsep.join(map(str, (hook, *path))),
                               **environment})

    return run


def events_of(path: Path) -> list[dict]:
    with gzip.open(path, "rt") as file:
        return [event for event in json.load(file)["traceEvents"] if event.get("ph") == "X"]


def layers_of(events) -> list[str]:
    return [event["name"] for event in events if event.get("cat") == "user_annotation"]


ONE_STEP = [f"Model.blocks.{block}.{name}" for block in (0, 1) for name in ("up", "down")]


def test_a_script_is_recorded_for_as_long_as_was_asked_for_and_fails_as_before(record, tmp_path):
    """Its steps run in threads that are not the main one, as a server's do. One after the first is
    asked for. Forked children are left alone."""
    other = tmp_path / "other"
    other.mkdir()
    (other / "sitecustomize.py").write_text("import sys\nsys.other_hook = 'ran'\n")
    script = tmp_path / "script.py"
    script.write_text(NETWORK + """
if os.fork() == 0:
    step()
    os._exit(0)
os.wait()
import time
for _ in range(3):
    thread = threading.Thread(target=step)
    thread.start()
    thread.join()
    time.sleep(0.2)
print(os.getpid(), sys.other_hook, sys.argv[1:])
raise ValueError("of the program")
""")
    done = record(script, "word", path=[other], OCTET_RECORD_SKIP_SECONDS="0.1",
                  OCTET_RECORD_SECONDS="0.1")
    assert done.returncode == 1
    assert done.stderr.endswith("ValueError: of the program\n") and "octet" not in done.stderr
    process, rest = done.stdout.split(maxsplit=1)
    assert rest == "ran ['word']\n"
    assert os.listdir(tmp_path / "out") == [f"trace.{process}.json.gz"]
    events = events_of(tmp_path / "out" / f"trace.{process}.json.gz")
    assert layers_of(events) == ONE_STEP
    products = [event["args"]["Input Dims"] for event in events if event["name"] == "aten::addmm"]
    assert [dims[1:3] for dims in products] == 2 * [[[16, 32], [32, 48]], [[16, 48], [48, 32]]]


def test_a_profiler_of_the_program_has_the_right_of_way(record, tmp_path):
    (tmp_path / "package.py").write_text(NETWORK + """
step()
with torch.profiler.profile() as own:
    step()
print(sum(event.count for event in own.key_averages() if event.key == "aten::addmm"))
""")
    done = record("-m", "package")
    assert (done.returncode, done.stdout) == (0, "4\n"), done.stderr
    assert [line for line in done.stderr.splitlines() if "octet" in line] == [
        "octet audit --record: the program started a profiler of its own, which ended this one"]
    (trace,) = (tmp_path / "out").iterdir()
    assert layers_of(events_of(trace)) == ONE_STEP


def test_it_does_nothing_unless_asked_to(record):
    done = record("-c", "import sys; print([type(finder).__name__ for finder in sys.meta_path])",
                  OCTET_RECORD_FILE="")
    assert done.returncode == 0 and done.stderr == ""
    assert "_Recorder" not in done.stdout
