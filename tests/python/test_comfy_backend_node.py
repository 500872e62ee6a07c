"""The custom node folder integrations/comfyui: loads anywhere, installs, reports, breaks nothing.

Each test starts Python, as ComfyUI would load the folder: a few seconds where it imports torch.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys

import comfy_calls  # noqa: F401: skips where a package is missing
import octet
import pytest
from conftest import BUILD, REPOSITORY

FOLDER = REPOSITORY / "integrations" / "comfyui"

# As ComfyUI loads a folder of custom_nodes.
LOAD = f"""
import importlib.util, logging, sys
logging.basicConfig(level=logging.INFO, format="%(levelname)s %(message)s")
spec = importlib.util.spec_from_file_location("custom_nodes.octet", {str(FOLDER / "__init__.py")!r})
module = importlib.util.module_from_spec(spec)
sys.modules["custom_nodes.octet"] = module
spec.loader.exec_module(module)
node = module.NODE_CLASS_MAPPINGS["OctetReport"]()
assert module.NODE_DISPLAY_NAME_MAPPINGS["OctetReport"] == "Octet report"
"""
RENDER = """
import torch, comfy_kitchen
codes = torch.zeros(32, 64, dtype=torch.int8)
comfy_kitchen.int8_linear(torch.ones(3, 64), codes, torch.ones(()))
try:
    comfy_kitchen.int8_linear(torch.ones(3, 64), codes, torch.ones(()), input_act="silu")
except ValueError:
    pass
"""
REPORT = """
made = getattr(node, node.FUNCTION)(clear=False, after=object(), node="7")
assert made["ui"]["text"] == made["result"]
print(made["result"][0])
"""


def run(script: str, package: bool = True, **environment: str) -> subprocess.CompletedProcess:
    given = {**os.environ, **environment}
    given["PYTHONPATH"] = str(BUILD / "python") if package else ""
    return subprocess.run([sys.executable, "-c", script], env=given, capture_output=True,
                          text=True, cwd="/")


def test_it_installs_and_reports():
    done = run(LOAD + RENDER + REPORT)
    assert done.returncode == 0, done.stderr
    line = next(line for line in done.stderr.splitlines() if "Octet serves" in line)
    assert line.startswith("INFO Octet serves int8_linear, ") and " of comfy-kitchen on " in line
    assert "1 call ran here" in done.stdout and "32 x 64" in done.stdout
    assert "1 call went to the next backend" in done.stdout and "'silu'" in done.stdout


def test_it_can_be_switched_off():
    done = run(LOAD + REPORT, OCTET_COMFY="off")
    assert done.returncode == 0, done.stderr
    assert "OCTET_COMFY is off" in done.stderr and "OCTET_COMFY is off" in done.stdout


def test_without_the_package_it_is_one_line_of_the_log():
    done = run(LOAD + REPORT, package=False)
    if "Octet serves" in done.stderr:
        pytest.skip("octet-int8 is installed in this Python")
    assert done.returncode == 0, done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert "Octet is not used: ModuleNotFoundError" in done.stderr
    assert "Octet is not used" in done.stdout


def test_without_comfy_kitchen_it_is_one_line_of_the_log():
    done = run("import sys; sys.modules['comfy_kitchen'] = None" + LOAD + REPORT)
    assert done.returncode == 0, done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert "comfy-kitchen, which is not installed" in done.stderr


def test_its_metadata():
    tomllib = pytest.importorskip("tomllib", reason="Python 3.11 reads TOML")
    project = tomllib.loads((FOLDER / "pyproject.toml").read_text())
    assert project["project"]["version"] == octet.__version__
    package = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]["name"]
    assert project["project"]["dependencies"] == [f"{package}>={octet.__version__}"]
    # What ComfyUI-Manager installs.
    assert (FOLDER / "requirements.txt").read_text().split() == project["project"]["dependencies"]
    # The registry's rules for names, which also ask to leave "ComfyUI" out.
    name = project["project"]["name"]
    assert re.fullmatch(r"[A-Za-z](?:[-_.]?[A-Za-z0-9])*", name) and "comfy" not in name.lower()
    # Nobody has published it: fields of the registry that only a publisher can fill are not there.
    assert "PublisherId" not in project["tool"]["comfy"] and "urls" not in project["project"]
    for field in ("PublisherId", "Repository"):
        assert f"{field} = " in (FOLDER / "README.md").read_text()
