"""The custom node folder integrations/comfyui: loads anywhere, installs, reports, breaks nothing.

Python is started where something is missing or switched off, before anything imports torch.
"""

from __future__ import annotations

import importlib.util
import logging
import os
import re
import subprocess
import sys

import comfy_calls
import octet
import pytest
import torch
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


def test_it_installs_and_reports(caplog):
    caplog.set_level(logging.INFO)
    spec = importlib.util.spec_from_file_location("comfyui_octet", FOLDER / "__init__.py")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
        node = module.NODE_CLASS_MAPPINGS["OctetReport"]()
        node.report(clear=True)
        codes, one = torch.zeros(32, 64, dtype=torch.int8), torch.ones(())
        comfy_calls.kitchen.int8_linear(torch.ones(3, 64), codes, one)
        with pytest.raises(ValueError):
            comfy_calls.kitchen.int8_linear(torch.ones(3, 64), codes, one, input_act="silu")
        said = getattr(node, node.FUNCTION)(clear=True, after=object(), node="7")
    finally:
        octet.comfy.uninstall()
    assert module.NODE_DISPLAY_NAME_MAPPINGS["OctetReport"] == "Octet report"
    assert said["ui"]["text"] == said["result"]
    (line,) = (record for record in caplog.records if "Octet serves" in record.message)
    assert line.levelname == "INFO" and " of comfy-kitchen on " in line.message
    assert line.message == module.STATE and line.message.startswith("Octet serves int8_linear, ")
    (text,) = said["result"]
    assert "1 call ran here" in text and "32 x 64" in text
    assert "1 call went to the next backend" in text and "'silu'" in text


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
