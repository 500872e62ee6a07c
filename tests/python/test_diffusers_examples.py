"""examples/diffusers_ideogram4.py and examples/any_transformer.py, on small random models.

They run in this process, where diffusers is imported already: ten seconds.
"""

from __future__ import annotations

import re
import runpy
import sys
from argparse import Namespace

import pytest

pytest.importorskip("diffusers")
pytest.importorskip("accelerate")
pytest.importorskip("transformers")

import torch
from conftest import REPOSITORY
from diffusers import DiffusionPipeline
from PIL import Image


@pytest.fixture
def run(monkeypatch, capsys):
    """run("name.py", "--flag", ...) is what the example prints."""

    def example(name: str, *words: str) -> str:
        path = REPOSITORY / "examples" / name
        monkeypatch.setattr(sys, "argv", [str(path), *map(str, words)])
        runpy.run_path(str(path), run_name="__main__")
        return capsys.readouterr().out

    return example


def test_ideogram4(run, tmp_path):
    prompt = tmp_path / "caption.json"
    prompt.write_text('{"high_level_description": "A red cube."}')
    picture, folder = tmp_path / "picture.png", tmp_path / "int8"
    words = ("--tiny", "--prompt", prompt, "--tokens", "64")
    printed = run("diffusers_ideogram4.py", *words, "-o", picture, "--save", folder)
    assert Image.open(picture).size == (64, 64)
    assert "14 in INT8, 9 kept in floating point, 0 fallbacks" in printed
    # What was saved is loaded as it is, and as a checkpoint for another model.
    words = ("--model", folder, *words[1:], "--size", "64", "--steps", "2", "-o", picture)
    first = picture.read_bytes()
    run("diffusers_ideogram4.py", *words)
    assert picture.read_bytes() == first
    run("diffusers_ideogram4.py", *words, "--checkpoint", folder)
    assert picture.read_bytes() == first


def cosine_in(printed: str) -> float:
    return float(re.search(r"^int8 +[\d.]+ +([\d.]+)$", printed, re.MULTILINE)[1])


def test_any_transformer(run):
    printed = run("any_transformer.py", "--tiny", "--repeats", "1")
    assert "34 in INT8" in printed
    assert cosine_in(printed) > 0.999


class Denoiser(torch.nn.Module):
    def forward(self, hidden_states, timestep, guidance=None):
        raise AssertionError("is not to run")


class Pipe:
    """What the example needs of a pipeline; real ones take half a minute to reach their model."""

    transformer = Denoiser()

    def to(self, device):
        return self

    def __call__(self, prompt, height=0, width=0):
        assert (prompt, height, width) == ("A cube.", 64, 64)
        self.transformer(torch.ones(1, 2), timestep=0.5)


def test_what_a_pipeline_calls_its_transformer_with(monkeypatch):
    monkeypatch.setattr(DiffusionPipeline, "from_pretrained", lambda *words, **options: Pipe())
    example = runpy.run_path(str(REPOSITORY / "examples" / "any_transformer.py"))
    words = {"pipeline": "some/where", "part": "transformer", "device": "cpu"}
    model, inputs = example["of_pipeline"](Namespace(**words, prompt="A cube.", size=64))
    assert model is Pipe.transformer and not model._forward_pre_hooks
    assert set(inputs) == {"hidden_states", "timestep"} and inputs["timestep"] == 0.5


def test_a_model_is_asked_for(run):
    for name in ("diffusers_ideogram4.py", "any_transformer.py"):
        with pytest.raises(SystemExit):
            run(name)
