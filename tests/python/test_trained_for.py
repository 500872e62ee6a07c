"""octet_trained_for.json: what leaves it is said once, on the terminal and in the JSON."""

from __future__ import annotations

import json
import shutil

import pytest
from conftest import REPOSITORY
from demo_folder import CAPTION, demo_folder  # noqa: F401: a fixture
from running import octet, only_sentence  # noqa: F401: a fixture

TRAINED = REPOSITORY / "models" / "demo" / "octet_trained_for.json"
SUMMARY = "flat pictures of some shapes, icons and short words"
BOX = [100, 100, 400, 400]


@pytest.fixture
def warnings_of(octet, demo_folder, tmp_path):  # noqa: F811
    """warnings_of("--flag", ...) are those of a tiny model that says what it was trained for."""
    model = tmp_path / "model"
    shutil.copytree(demo_folder, model, copy_function=lambda a, b: shutil.copyfile(a, b))
    shutil.copyfile(TRAINED, model / TRAINED.name)
    report = tmp_path / "report.json"

    def run(*flags):
        done = octet("generate", "--model", model, "--device", "cpu", "--steps", 1, "--guidance", 1,
                     "-q", "--json", report, "-o", tmp_path / "out.png", *flags)  # fmt: skip
        assert done.returncode == 0, done.stderr
        warnings = json.loads(report.read_text())["warnings"]
        for warning in warnings:
            assert done.stderr.count(warning) == 1
        return warnings

    run.model = model
    return run


def caption_of(*elements):
    parts = {"background": "A white background.", "elements": list(elements)}
    return json.dumps({**CAPTION, "compositional_deconstruction": parts})


def test_plain_text(warnings_of):
    (warning,) = warnings_of("--prompt", "a red heart")
    assert f"was trained on {SUMMARY}" in warning and "octet demo --prompt" in warning


def test_json_without_a_picture_is_not_called_plain_text(warnings_of):
    *_, warning = warnings_of("--any-caption", "--caption", '{"a":1}')
    assert "JSON that does not say what is on the picture" in warning
    assert "plain text" not in warning


def test_a_caption_within_it(warnings_of):
    heart = {"type": "obj", "bbox": BOX, "desc": "A red heart"}
    word = {"type": "text", "bbox": BOX, "text": "HELLO", "desc": "Bold letters"}
    assert warnings_of("--caption", caption_of(heart, word)) == []


def test_a_caption_that_leaves_it(warnings_of):
    fox = {"type": "obj", "bbox": BOX, "desc": "A carpet with hearty foxes"}
    lines = {"type": "text", "bbox": BOX, "text": "TWO\nLINES", "desc": "Letters"}
    warning, *_ = warnings_of("--caption", caption_of(fox, lines), "--size", "128x128")
    for part in ('the object "A carpet with hearty foxes"', "has a line break", "9 letters",
                 "the size 128x128"):  # fmt: skip
        assert part in warning
    slash = {"type": "text", "text": "A\\nB", "desc": "Letters"}
    star = {"type": "obj", "bbox": BOX, "desc": "Two stars"}
    (warning,) = warnings_of("--caption", caption_of(slash, star, star, star, star))
    for part in ('which it cannot paint', "no bbox of", "5 elements, expected 4 at most"):
        assert part in warning


def test_a_known_word_within_another_meaning(warnings_of):
    attack = {"type": "obj", "bbox": BOX, "desc": "A heart attack"}
    hearts = {"type": "obj", "bbox": BOX, "desc": "Two big red hearts in #DC2828"}
    (warning,) = warnings_of("--caption", caption_of(hearts, attack))
    assert 'the object "A heart attack", with "attack", which it never saw' in warning
    assert "hearts" not in warning


def test_a_background_that_leaves_it(warnings_of):
    caption = json.loads(caption_of({"type": "obj", "bbox": BOX, "desc": "A red heart"}))
    parts = caption["compositional_deconstruction"]
    parts["background"] = "A photograph of a stormy sea at dawn"
    (warning,) = warnings_of("--caption", json.dumps(caption))
    assert 'the background "A photograph' in warning and '"stormy", "sea" and 1 more' in warning
    parts["background"] = "A flat sky blue background in #87C8F0"
    assert warnings_of("--caption", json.dumps(caption)) == []


def test_the_shipped_examples_stay_within_it(warnings_of):
    for path in sorted((REPOSITORY / "examples" / "demo").glob("*.json")):
        assert warnings_of("--caption", path) == []


def test_both_small_models_say_the_same():
    assert (REPOSITORY / "models" / "demo-bf16" / TRAINED.name).read_text() == TRAINED.read_text()


def test_a_wrong_file_is_named(octet, warnings_of, tmp_path):  # noqa: F811
    path = warnings_of.model / TRAINED.name
    for wrong in ({}, {"summary": 3}, {"summary": "a", "colour": 1}, {"summary": "a", "sizes": [1]},
                  {"summary": "a", "boxes": 1}, {"summary": "a", "words": [1]},
                  {"summary": "a", "most_letters": 0}):  # fmt: skip
        path.write_text(json.dumps(wrong))
        done = octet("generate", "--model", warnings_of.model, "-p", "a heart", "--device", "cpu",
                     "-o", tmp_path / "no.png")  # fmt: skip
        assert str(path) in only_sentence(done)
