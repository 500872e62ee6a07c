"""tools/run_tests.sh: what cannot run here is skipped with its reason, and counted."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

REASON = "no Python here has torch with CUDA, nanobind and pytest"
FINE = "#!/bin/sh\n"
CTEST = FINE + "echo '100% tests passed, 0 tests failed out of 3'\n"
BUILD = FINE + 'echo "built with CUDA=${CUDA:-} $*"\n'
# Of racecheck's shares the first finds something.
SANITIZER = FINE + """echo '[       OK ] A.B (1200 ms)'
case "$* $GTEST_SHARD_INDEX$FOUND" in
  *racecheck*' 0yes') echo '========= RACECHECK SUMMARY: 1 hazard displayed'; exit 9 ;;
esac
echo '========= ERROR SUMMARY: 0 errors'
"""


@pytest.fixture
def run_tests(repository: Path, tmp_path: Path, monkeypatch):
    """Runs a copy of it where builds and CTest succeed at once and no Python has torch."""
    tools, programs = tmp_path / "tools", tmp_path / "bin"
    fakes = {
        tools / "setup.sh": FINE, tools / "build.sh": BUILD, programs / "ctest": CTEST,
        programs / "python3": FINE + "exit 1\n", programs / "compute-sanitizer": SANITIZER,
    }  # fmt: skip
    for path, text in fakes.items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)
    for name in ("run_tests.sh", "common.sh"):
        shutil.copy(repository / "tools" / name, tools)

    def run(*parts: str, **variables: str) -> subprocess.CompletedProcess[str]:
        for name in ("CI", "OCTET_STRICT", "CUDA", "CTEST_ARGS"):
            monkeypatch.delenv(name, raising=False)
        path = f"{programs}:{os.environ['PATH']}"
        return subprocess.run(
            [tools / "run_tests.sh", *parts], env={**os.environ, "PATH": path, **variables},
            capture_output=True, text=True, check=False, timeout=60,
        )  # fmt: skip

    return run


def counts(done: subprocess.CompletedProcess[str]) -> tuple[int, ...]:
    """Parts that passed, were skipped, failed."""
    line = re.search(r"octet: (\d+) parts passed, (\d+) skipped, (\d+) failed", done.stdout)
    assert line, done.stdout + done.stderr
    return tuple(map(int, line.groups()))


def test_without_torch_the_gpu_tests_of_python_are_skipped(run_tests):
    done = run_tests("cuda")
    assert (done.returncode, counts(done)) == (0, (1, 1, 0))
    summary = done.stdout.split("==== summary")[1]
    assert re.search(rf"skipped +Python on the GPU +{REASON}\n", summary), summary


@pytest.mark.parametrize(
    "parts, variables",
    [
        (["cuda"], {"CI": "true"}),
        (["cuda"], {"OCTET_STRICT": "1"}),
        (["cuda", "gpu_python"], {}),
    ],
)
def test_what_has_to_run_and_cannot_has_failed(run_tests, parts, variables):
    done = run_tests(*parts, **variables)
    assert (done.returncode, counts(done)) == (1, (1, 0, 1))
    assert re.search(rf"failed +Python on the GPU +{REASON}\n", done.stdout)


def test_a_part_that_was_named_may_be_let_off(run_tests):
    done = run_tests("gpu_python", OCTET_STRICT="0")
    assert (done.returncode, counts(done)) == (0, (0, 1, 0))


@pytest.mark.parametrize("whole, kernels", [([], "check"), (["--whole"], "nvcc")])
def test_a_release_has_kernels_for_all_gpus(run_tests, whole, kernels):
    done = run_tests(*whole, "release")
    assert (done.returncode, counts(done)) == (0, (1, 0, 0))
    assert f"built with CUDA={kernels} default -DOCTET_TEST_SHARDS=4 all\n" in done.stdout


def test_sanitizers_link_the_compiled_tests_but_for_a_release(run_tests):
    assert "-DOCTET_PLAIN_OBJECTS=/" in run_tests("asan").stdout
    assert "-DOCTET_PLAIN_OBJECTS= test_programs" in run_tests("--whole", "asan").stdout


def test_cases_can_be_named(run_tests):
    done = run_tests("release", CTEST_ARGS="-R Gemm")
    assert "-DOCTET_TEST_SHARDS=0 all\n" in done.stdout


@pytest.mark.parametrize("found", ["", "yes"])
def test_all_four_tools_watch_the_gpu(run_tests, found):
    done = run_tests("sanitize", JOBS="2", FOUND=found)
    assert (done.returncode, counts(done)) == ((1, (0, 0, 1)) if found else (0, (1, 0, 0)))
    summary = done.stdout.split("==== summary")[1]
    for tool in ("memcheck", "racecheck", "synccheck", "initcheck"):
        errors = int(bool(found) and tool == "racecheck")
        line = f"compute-sanitizer {tool}: 4 tests passed, 0 skipped, 0 failed; {errors} errors; "
        assert line in summary, summary
    assert "the longest test 1 (A.B)" in summary
