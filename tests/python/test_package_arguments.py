"""Arguments of wrong types: one sentence that names the argument, and what was expected. The
extension itself would show its whole signature."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from types import MappingProxyType

import numpy as np
import octet
import pytest
from conftest import BUILD, REPOSITORY

MODEL = REPOSITORY / "models" / "demo"
CAPTION = json.loads((MODEL / "demo.json").read_text())
QUICK = {"steps": 1, "size": 64}


@pytest.fixture(scope="module")
def engine():
    with octet.Engine(MODEL, device="cpu", lazy=True) as engine:
        yield engine


def refusal(function, *args, field=None, **options) -> str:
    with pytest.raises((TypeError, ValueError)) as raised:
        function(*args, **options)
    sentence = str(raised.value)
    assert "\n" not in sentence and len(sentence) < 250, sentence
    assert isinstance(raised.value, octet.OctetError)
    if options:
        assert raised.value.field == (field or next(iter(options)))
    return sentence


@pytest.mark.parametrize("name, value, expected", [
    ("device", 5, "expected text"), ("threads", "x", "expected a whole number"),
    ("max_memory", "8G", "expected a whole number"), ("max_memory", -5, "out of range"),
    ("guided", "perhaps", "expected True or False"), ("stop", "x", "expected an octet.Stop"),
    ("loras", [5], "an octet.Lora for each"), ("loras", 5, "expected a list"),
    ("parts", {"vae": 5}, "expected a path"),
    ("base", 5, "expected a path"), ("parts", 5, "expected a dict"), ("keep", 5, "expected a dict"),
    ("device", "tpu", "expected auto, ref"), ("threads", -1, "expected 1 to"),
])  # fmt: skip
def test_engine(name, value, expected):
    assert expected in refusal(octet.Engine, MODEL, **{name: value})


def test_slips_of_a_request(engine):
    sentence = refusal(engine.render, CAPTION, stepz=1)
    assert sentence == "render() has no argument `stepz`; did you mean steps?"
    assert "pathlib.Path" in refusal(engine.render, "poster.json", steps=1, field="caption")


@pytest.mark.parametrize("name, value, expected", [
    ("steps", "2", "expected a whole number"), ("steps", 2.5, "expected a whole number"),
    ("preset", 5, "expected text"), ("guidance", "7", "is str '7'; expected a number"),
    ("guidance", object(), "a number for each"),
    ("images", "x", "expected a whole number"), ("negative", 5, "expected text"),
    ("noise", "x", "an array of float32"),
    ("stop", 5, "expected an octet.Stop"), ("size", 64.0, "expected a number of pixels"),
    ("size", (64,), "expected a number of pixels"), ("seed", True, "expected a number from 0"),
    ("size", 2**33, "out of range"), ("size", (128, -2**40), "out of range"),
    ("guidance", [10**400], "out of range"), ("width", 128.5, "is float 128.5; expected a whole"),
    ("height", None, "expected a whole number"),
])  # fmt: skip
def test_requests(engine, name, value, expected):
    assert expected in refusal(engine.check, CAPTION, **{name: value})


def test_noise(engine):
    for shape in ((3, 3), (16 * 128,), (128, 16), (1, 16, 128)):  # of 16 tokens, 128 channels
        words = r"expected [16, 128] for a picture of this size"
        assert words in refusal(engine.check, CAPTION, noise=np.zeros(shape, np.float32), **QUICK)
    noise = np.zeros((16, 128), np.float32)
    engine.check(CAPTION, noise=noise, **QUICK)
    noise[3, 5] = np.nan
    assert "has a NaN" in refusal(engine.check, CAPTION, noise=noise, **QUICK)


def test_rendering(engine):
    for wrong in (0, -3):
        words = f"is {wrong}; expected 1 or more steps"
        assert words in refusal(engine.render, CAPTION, preview_every=wrong, **QUICK)
    assert "out of range" in refusal(engine.warm_up, size=2**33)
    assert "did you mean steps?" in refusal(engine.render, CAPTION, stepz=1)


def test_captions(engine):
    assert "JSON does not have" in refusal(engine.check, {"a": {1, 2}})
    circle: dict = {}
    circle["a"] = circle
    for wrong in ({(1, 2): 3}, circle):
        assert "cannot be written as JSON: " in refusal(engine.check, wrong)
    assert "pathlib.Path('poster.json')" in refusal(engine.check, "poster.json")
    said = refusal(engine.check, "a star")
    assert "becomes one with `wrap_text`" in said and "prompt" not in said
    assert "prompt" not in str(octet.check_caption("a star").as_dict())
    assert "surrogate" in refusal(engine.check, "\ud800")
    assert "expected an octet.Job" in refusal(engine.estimate, 5)
    # Any mapping, and NumPy's numbers.
    engine.check(MappingProxyType(CAPTION), steps=1, size=np.int64(64), seed=np.uint64(1 << 63))
    engine.check(CAPTION, guidance=np.float32(3))


@pytest.mark.parametrize("name, value, expected", [
    ("file", 5, "of type int; expected a path"), ("file", "\ud800", "expected a path"),
    ("strength", None, "expected a number"), ("strength", "1", "expected a number"),
    ("strength", float("nan"), "is nan, expected a finite"), ("strength", 1e300, "is 1e+300"),
    ("strength", 10**400, "out of range"), ("networks", 5, "expected a list of names"),
    ("networks", "vae", "expected a list of names"), ("networks", [5], "a list of names"),
])  # fmt: skip
def test_loras(name, value, expected):
    options = {"file": "style.safetensors", name: value}
    assert expected in refusal(octet.Lora, **options, field=name)


def test_what_callers_make():
    lora = octet.Lora(MODEL / "a.safetensors", 0.5, ["vae"])
    assert lora == octet.Lora(str(MODEL / "a.safetensors"), 0.5, ["vae"])
    assert pickle.loads(pickle.dumps(lora)) == lora
    assert lora.as_dict()["strength"] == 0.5 and repr(lora).startswith("Lora(file=")
    assert octet.Stop().requested is False
    assert refusal(octet.Stop, 5) == "Stop() takes no arguments"
    assert "Engine.check() returns" in refusal(octet.Job)
    assert refusal(octet.Lora) == "Lora() takes a file, its strength and names of networks"
    assert "surrogate" in refusal(octet.Engine, MODEL, loras=["\ud800"], field="text")
    assert "expected a path" in refusal(octet.inspect, 5)
    assert "expected a path" in refusal(octet.inspect, MODEL, base=5)


@pytest.mark.parametrize("name, value, expected", [
    ("recipe", 5, "expected text"), ("progress", 5, "expected a function"),
    ("calibration_size", (2**40, 64), "is (1099511627776, 64), which is out of range"),
    ("calibration_size", 5, "expected (number, number)"), ("seed", -1, "out of range"),
    ("captions", [5], "expected a path"),
    ("captions", "a.json", "expected a list"), ("captions", 5, "expected a list"),
])  # fmt: skip
def test_quantize(tmp_path, name, value, expected):
    assert expected in refusal(octet.quantize, MODEL, tmp_path / "out", **{name: value})


def test_help_without_frameworks():
    """help() asks for every name in dir(), and octet.torch cannot be imported there."""
    code = "import octet, pydoc; print(pydoc.render_doc(octet, renderer=pydoc.plaintext))"
    done = subprocess.run(
        [sys.executable, "-S", "-c", code],  # without site-packages
        capture_output=True,
        text=True,
        env={"PYTHONPATH": str(BUILD / "python")},
    )
    assert done.returncode == 0, done.stderr
    assert "int8_linear" in done.stdout
