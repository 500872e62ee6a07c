"""Requests and outputs that `octet generate` refuses: one sentence that names the culprit, and no
file."""

from __future__ import annotations

import json
import resource
import subprocess

import pytest

pytest.importorskip("diffusers")
pytest.importorskip("transformers")

import tiny_ideogram4 as tiny
from generating import (
    copy,  # noqa: F401: a fixture
    edit_tensors,
    generate,  # noqa: F401: a fixture
    model,  # noqa: F401: a fixture
    refusal,
)

CONV = ("vae", "decoder.conv_in.weight")


# --- the request ---------------------------------------------------------------------------------


def with_box(box):
    caption = json.loads(tiny.CAPTION)
    caption["compositional_deconstruction"]["elements"][0]["bbox"] = box
    return json.dumps(caption, ensure_ascii=False)


@pytest.mark.parametrize(
    ("caption", "word"),
    [
        ("a red cube", "--wrap-text"),
        ("", "caption"),
        ("{}", "compositional_deconstruction"),
        ("[1]", "caption"),
        (b'{"high_level_description":"\xff"}', "UTF-8"),
        (with_box([0, 0, 1]), "bbox"),
        (with_box([900, 0, 100, 10]), "bbox"),
        (with_box("left"), "bbox"),
        ("x" * 5_000_000, "caption"),
    ],
)
def test_bad_caption(generate, model, caption, word):
    assert word in refusal(generate(model, caption=caption), generate)


def test_all_errors_of_a_caption_are_named(generate, model):
    caption = json.loads(tiny.CAPTION)
    caption["compositional_deconstruction"]["elements"] = [
        {"type": "object", "desc": "d"},
        {"type": "obj", "description": "d", "bbox": [1, 2]},
    ]
    sentence = refusal(generate(model, caption=json.dumps(caption)), generate)
    # All at once, not after the errors are mended.
    assert 'also, as warnings: $.compositional' in sentence
    assert 'unknown key "description"' in sentence
    for error in ('.elements[0].type: expected "obj" or "text", got "object"; did you mean "obj"?',
                  '.elements[1]: desc is missing', '"description" seems to stand for desc',
                  '.elements[1].bbox: expected an array of 4 integers', "--any-caption"):
        assert error in sentence


@pytest.mark.parametrize("words", ["a cat", "a cat. " * 100, "cat"])
def test_words_in_the_place_of_a_caption_file(generate, model, words):
    assert "--prompt" in refusal(generate(model, "--caption", words), generate)


def test_caption_with_more_tokens_than_the_model_takes(generate, model):
    caption = json.loads(tiny.CAPTION)
    caption["high_level_description"] = "zq " * 3000
    text = json.dumps(caption, ensure_ascii=False)
    assert "2048" in refusal(generate(model, caption=text), generate)


def test_caption_file_that_cannot_be_read(generate, model, tmp_path):
    for path in (tmp_path / "nowhere.json", tmp_path):
        assert str(path) in refusal(generate(model, "--caption", path), generate)


@pytest.mark.parametrize("size", ["7x8", "8x7", "0x8", "-8x8", "axb", "7", "8x8x8", "", "2x99998",
                                  "99999999999999999999x8", "8000x8000"])
def test_size(generate, model, size):
    sentence = refusal(generate(model, "--size", size), generate, code=2)
    assert "image size" in sentence and sentence.endswith("see octet generate --help")


def test_a_picture_of_another_kind(generate, model):
    done = generate(model, "--out", generate.out / "out.gif")
    assert ".png" in refusal(done, generate, code=2)


@pytest.mark.parametrize(("flag", "value"), [
    ("--steps", "0"), ("--steps", "-1"), ("--steps", "1001"), ("--steps", "two"),
    ("--images", "0"), ("--images", "1001"), ("--seed", "-1"), ("--seed", "1e9"),
    ("--guidance", "strong"), ("--guidance", ""), ("--linears", "int4"), ("--dtype", "f16"),
    ("--convention", "mine"), ("--tune", "maybe"), ("--device", "tpu"), ("--threads", "0"),
    ("--seed", "18446744073709551616"), ("--seed", "Random"), ("--seed", ""),
    ("--model", None), ("--caption", None), ("--caption", ""), ("--prompt", ""),
    ("--nope", "1")])
def test_wrong_usage(generate, model, flag, value):
    sentence = refusal(generate(model, flag, value), generate, code=2)
    assert flag in sentence and "octet generate --help" in sentence


@pytest.mark.parametrize(("flag", "value", "word"), [
    ("--guidance", "1,2,3", "--guidance: 3 values for 2 steps"), ("--guidance", "nan", "guidance"),
    ("--guidance", "1,inf", "guidance"), ("--preset", "best", '--preset: "best" is unknown')])
@pytest.mark.parametrize("folder", ["model", "nowhere"])
def test_request_that_makes_no_sense(generate, model, flag, value, word, folder):
    """Wrong usage, whether or not there is a model."""
    done = generate(model if folder == "model" else folder, flag, value)
    sentence = refusal(done, generate, code=2)
    assert word in sentence and sentence.endswith("see octet generate --help")


@pytest.mark.parametrize(("flag", "ours"), [
    ("--width", "--size"), ("-W", "--size"), ("--height", "--size"), ("-H", "--size"),
    ("--cfg", "--guidance"), ("--cfg-scale", "--guidance"), ("--guidance-scale", "--guidance"),
    ("--batch-count", "-n")])
def test_flags_of_other_programs(generate, model, flag, ours):
    assert ours in refusal(generate(model, flag, "7"), generate, code=2)


def test_help_lists_the_presets_by_both_names(built_program):
    done = subprocess.run([built_program("octet"), "generate", "--help"], capture_output=True,
                          text=True, check=True)
    text = " ".join(done.stdout.split())
    for preset in ("quality or V4_QUALITY_48 (48 steps)", "default or V4_DEFAULT_20 (20 steps)",
                   "turbo or V4_TURBO_12 (12 steps)"):
        assert preset in text
    assert "--cfg" not in text and "--width" not in text  # hints, not flags


# --- writing -------------------------------------------------------------------------------------


@pytest.mark.parametrize("place", ["folder", "folder/", "caption/out.png", "x" * 300 + ".png", ""])
def test_output_that_cannot_be_written_is_refused_before_the_work(generate, copy, tmp_path, place):
    """The model is damaged where only loading sees it, which would come later."""
    (tmp_path / "folder").mkdir()
    (tmp_path / "caption").write_text("a file")
    edit_tensors(copy / "vae", lambda tensors: tensors[CONV[1]].fill_(float("nan")))
    path = f"{tmp_path}/{place}" if place else ""
    is_usage = place.startswith("folder") or not place
    sentence = refusal(generate(copy, "--out", path), generate, code=2 if is_usage else 1)
    assert (path or "path") in sentence
    assert list((tmp_path / "folder").iterdir()) == []


def test_full_disk(generate, model):
    """The limit on the size of files stands for it: both fail in write()."""
    done = generate(
        model,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100)),
        restore_signals=False,  # Python ignores SIGXFSZ, and so shall the program
    )
    assert str(generate.out / "out.png") in refusal(done, generate)


def test_full_device(generate, model):
    assert "/dev/full" in refusal(generate(model, "--out", "/dev/full"), generate)
