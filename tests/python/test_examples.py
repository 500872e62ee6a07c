"""The captions in examples/: valid without a warning, and fit for a model. Two seconds in all."""

from __future__ import annotations

import json
import subprocess

import pytest

pytest.importorskip("diffusers")
pytest.importorskip("transformers")

from conftest import REPOSITORY
from generating import (
    generate,  # noqa: F401: a fixture
    model,  # noqa: F401: a fixture
    picture,
)

EXAMPLES = sorted((REPOSITORY / "examples").glob("*.json"))
PLAIN = REPOSITORY / "examples" / "plain.txt"


def test_there_are_examples():
    assert len(EXAMPLES) >= 6 and PLAIN.is_file()


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_is_valid(built_program, path):
    words = [built_program("octet"), "caption", "check", path]
    done = subprocess.run(words, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, f"{path}: a valid caption\n")
    fixed = subprocess.run([*words, "--fix"], capture_output=True, text=True).stdout
    text = json.dumps(json.loads(path.read_text()), ensure_ascii=False, separators=(",", ":"))
    assert fixed == text + "\n"  # in canonical order already


def test_pictures_of_them(generate, model):
    poster = REPOSITORY / "examples" / "poster.json"
    image = picture(generate(model, "--caption", poster), generate)
    assert json.loads(image.text["caption"]) == json.loads(poster.read_text())
    image = picture(generate(model, "--caption", PLAIN, "--wrap-text"), generate)
    words = json.loads(image.text["caption"])["high_level_description"]
    assert words == PLAIN.read_text().strip()
