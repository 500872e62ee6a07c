"""The package as a whole: inspecting and quantizing files, devices, the self-test, imports."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import octet
import pytest
from conftest import BUILD, REPOSITORY
from octet.__main__ import main as self_test

MODEL = REPOSITORY / "models" / "demo"


# --- files ---


class Mine(Exception):
    pass


def test_inspect():
    found = octet.inspect(MODEL)
    assert [part.part for part in found.parts] == [
        *("transformer", "unconditional_transformer", "text_encoder", "vae"),
    ]  # fmt: skip
    linears = found.parts[0].linears
    assert {linear.runs for linear in linears} == {"int8", "bf16"}
    assert found.checkpoint is None and not found.problem
    one = octet.inspect(MODEL / "transformer").checkpoint
    assert one.dtypes["I8"].tensors == sum(linear.runs == "int8" for linear in linears)
    assert one.tensors[0].shape and one.total_bytes > 0 and json.dumps(one.as_dict())
    with pytest.raises(octet.OctetError, match="[Nn]o such file"):
        octet.inspect("no.safetensors")
    with pytest.raises(octet.OctetError):
        octet.inspect(__file__)


def test_quantize(tmp_path):
    steps = []
    out = tmp_path / "int8.safetensors"
    source = REPOSITORY / "models" / "demo-bf16" / "transformer"
    report = octet.quantize(
        source, out, recipe="rowwise", protect="*.0.*", device="cpu", verify=True,
        progress=steps.append,
    )  # fmt: skip
    (network,) = report.networks
    assert report.verified and report.recipe == "rowwise" and network.int8 > 0
    assert report.files and Path(report.files[0]).exists() and steps[-1].done == steps[-1].total
    stored = octet.inspect(out).parts[0].linears
    assert sum(linear.runs == "int8" for linear in stored) == network.int8

    def fail(_) -> None:
        raise Mine

    for callback, error in ((fail, Mine), (lambda _: False, octet.OctetError)):
        with pytest.raises(error):
            octet.quantize(source, tmp_path / "other.safetensors", progress=callback)
    for options in ({"recipe": "int4"}, {"dialect": "none"}, {"device": "tpu"}):
        with pytest.raises(octet.OctetError):
            octet.quantize(source, tmp_path / "other.safetensors", **options)


# --- the package ---


def test_devices():
    names = {device.name: device for device in octet.devices()}
    assert not names["cpu"].unavailable and names["cpu"].int8_kernel
    assert names["ref"].as_dict()["name"] == "ref"


def run_python(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        env={**os.environ, "PYTHONPATH": str(BUILD / "python"), **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_self_test(capsys):
    code, said = self_test(), capsys.readouterr().out
    assert code == 0, said
    assert said.startswith(f"octet {octet.__version__} (")
    assert "\n  cpu: ok\n" in said and "FAILED" not in said


def test_the_self_test_fails_with_a_kernel_that_is_not_there(capsys, monkeypatch):
    monkeypatch.setenv("OCTET_FORCE_KERNEL", "none")
    assert self_test() == 1
    assert "cpu: FAILED: gemm: there is no kernel named none" in capsys.readouterr().out


def test_importing_takes_no_framework():
    done = run_python(
        "-c",
        "import sys\n"
        "for name in ('torch', 'numpy', 'PIL', 'diffusers'): sys.modules[name] = None\n"
        "import octet\n"
        "octet.devices()\n"
        "for call in (lambda: octet.int8_mm(b'', b''), lambda: octet.torch,\n"
        f"             lambda: octet.Engine({str(MODEL)!r}).render('x', wrap_text=True)):\n"
        "    try: call()\n"
        "    except (octet.OctetError, ImportError) as error: print(error)\n",
    )
    assert done.returncode == 0, done.stderr
    numpy, torch, pillow = done.stdout.splitlines()
    assert "pip install numpy" in numpy and "torch" in torch and "pip install pillow" in pillow


def test_every_name_is_there_and_documented():
    for name in octet.__all__:
        value = getattr(octet, name)
        assert name == "__version__" or value.__doc__, f"octet.{name} has no docstring"
    assert {"torch", "diffusers", "comfy"} <= set(dir(octet))
    with pytest.raises(AttributeError):
        octet.nothing
