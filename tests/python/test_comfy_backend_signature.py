"""The parameters of comfy-kitchen's INT8 linears are those that our backend knows.

They move: a parameter that is new here is declined when it is used, and this test says that it is
time to serve it. Once for the version that is installed, and once for the newest on PyPI (its wheel
without binaries, 0.3 MB, in a second or two), which is skipped where PyPI is out of reach.
"""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
import zipfile
from importlib.metadata import version
from pathlib import Path

import pytest
from comfy_calls import kitchen, torch
from octet.comfy.rules import PARAMETERS


# Where they are: linears in INT8, and those of fewer bits that are multiplied in INT8.
FILES = ("__init__.py", "tensor/convrot_w4a4.py", "tensor/w4a8_int8.py")
# Says which of two functions of the registry is called.
ROUTING = {"w4a8_int8_linear": {"mma_packed"}}


def is_ours(name: str) -> bool:
    return name.startswith("int8_linear") or name in PARAMETERS


def parameters_in(*sources: str) -> dict[str, set[str]]:
    """{function: its parameters} of those in these modules."""
    found = {}
    for node in (node for source in sources for node in ast.parse(source).body):
        if isinstance(node, ast.FunctionDef) and is_ours(node.name):
            every = node.args.posonlyargs + node.args.args + node.args.kwonlyargs
            more = [more for more in (node.args.vararg, node.args.kwarg) if more is not None]
            names = {argument.arg for argument in every + more}
            found[node.name] = names - ROUTING.get(node.name, set())
    return found


def assert_known(found: dict[str, set[str]], version: str) -> None:
    for name in found.keys() | PARAMETERS.keys():
        assert found.get(name, set()) == PARAMETERS.get(name, set()), (
            f"comfy-kitchen {version}: {name} has other parameters than octet.comfy knows; see "
            "python/octet/comfy/rules.py")


def test_the_check_finds_what_is_new():
    known = {name: set(parameters) for name, parameters in PARAMETERS.items()}
    assert_known(known, "made up")
    for source in ("def int8_linear(x, weight, *, new=None): ...", "def int8_linear_new(x): ..."):
        with pytest.raises(AssertionError, match="other parameters"):
            assert_known(known | parameters_in(source), "made up")


def test_the_installed_version():
    folder = Path(inspect.getfile(kitchen)).parent
    sources = [(folder / file).read_text() for file in FILES]
    assert_known(parameters_in(*sources), version("comfy-kitchen"))
    schema = torch.ops.comfy_kitchen.int8_linear.default._schema
    of_the_op = {argument.name for argument in schema.arguments} - {"output_dtype_code"}
    assert of_the_op == PARAMETERS["int8_linear"] - {"out_dtype"}


def test_the_newest_on_pypi(tmp_path):
    download = [sys.executable, "-m", "pip", "download", "comfy-kitchen", "--no-deps", "--quiet",
                "--only-binary=:all:", "--platform=any", "--retries=0", "--timeout=10",
                "--no-cache-dir", f"--dest={tmp_path}"]
    try:
        run = subprocess.run(download, capture_output=True, text=True, timeout=90)
    except subprocess.TimeoutExpired:
        pytest.skip("PyPI did not answer within 90 s")
    wheels = list(tmp_path.glob("*.whl"))
    if not wheels:
        reason = (run.stderr.strip().splitlines() or ["pip said nothing"])[-1]
        pytest.skip(f"comfy-kitchen cannot be had from PyPI here: {reason}")
    with zipfile.ZipFile(wheels[0]) as wheel:
        sources = [wheel.read(f"comfy_kitchen/{file}").decode() for file in FILES]
    assert_known(parameters_in(*sources), wheels[0].name.split("-")[1])
