"""`octet compare` with what it has to refuse, and interrupted."""

from __future__ import annotations

import re
import resource
import signal
import subprocess
import time

import pytest

pytest.importorskip("diffusers")
pytest.importorskip("transformers")
pytest.importorskip("skimage")

import tiny_ideogram4 as tiny
from comparing import (
    command,
    compare,  # noqa: F401: a fixture
)
from generating import (
    SETTINGS,
    copy,  # noqa: F401: a fixture
    edit_tensors,
    model,  # noqa: F401: a fixture
)
from running import only_sentence


# --- bad input -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("flag", "value"), [
    ("--a-linears", "int4"), ("--b-linears", ""), ("--a-dtype", "f16"), ("--b-device", "tpu"),
    ("--min-cosine", "1.5"), ("--min-cosine", "nan"), ("--min-psnr", "-1"), ("--min-psnr", "x"),
    ("--pictures", ""), ("--images", "0"), ("--caption", None), ("--linears", "int8"),
    ("--model", "x"), ("--out", "x.png"), ("--steps", "0")])
def test_wrong_usage(compare, model, flag, value):
    sentence = only_sentence(compare(model, model, flag, value), code=2)
    assert flag in sentence
    assert "octet compare --help" in sentence or "did you mean --a-linears?" in sentence


def test_two_models_are_needed(built_program, model):
    for models, word in (([], "A is missing"), ([model], "B is missing"),
                         ([model] * 3, "was not expected")):
        words = [built_program("octet"), "compare", "--caption", "-", *models]
        done = subprocess.run(words, input="", capture_output=True, text=True, timeout=60)
        assert word in only_sentence(done, code=2)


def test_guidance_does_not_swallow_the_models(built_program, model):
    settings = [str(word) for pair in SETTINGS.items() for word in pair]
    words = [built_program("octet"), "compare", "-q", *settings, "--guidance", "2,1", model, model]
    done = subprocess.run(words, input=tiny.CAPTION, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("side", ["a", "b"])
def test_a_bad_model_is_named_before_anything_runs(built_program, model, copy, side):
    edit_tensors(copy / "vae", lambda tensors: tensors.pop("decoder.conv_in.weight"))
    for bad, word, code in ((copy, "decoder.conv_in.weight", 1),
                            (model / "nowhere", "no such file", 1), ("", "empty", 2)):
        pair = (bad, model) if side == "a" else (model, bad)
        done = subprocess.run(command(built_program("octet"), *pair, ()), input=tiny.CAPTION,
                              capture_output=True, text=True, timeout=60)
        assert word in only_sentence(done, code)  # one line: no progress before it


@pytest.mark.parametrize("side", ["a", "b"])
def test_weights_that_are_no_numbers(compare, model, copy, side):
    edit_tensors(copy / "vae",
                 lambda tensors: tensors["decoder.conv_in.weight"].fill_(float("nan")))
    pair = (copy, model) if side == "a" else (model, copy)
    assert str(copy / "vae") in only_sentence(compare(*pair))


def test_latents_of_other_shapes(compare, model, tmp_path):
    """Each is a sound model, with tokens of other sizes."""
    other = tiny.save_pipeline(tmp_path / "other", tiny.SHAPES["wide"])
    sentence = only_sentence(compare(model, other, "--size", "64x64", "--guidance", "1"))
    assert "the latents of" in sentence and "1024 tokens of 16 channels" in sentence
    assert str(model) in sentence and str(other) in sentence


def test_bad_captions_and_sizes(compare, model):
    nowhere = model / "nowhere.json"
    assert str(nowhere) in only_sentence(compare(model, model, "--caption", nowhere))
    assert "image size" in only_sentence(compare(model, model, "--size", "7x8"), code=2)
    # Once for both, not once for each.
    odd = tiny.CAPTION.replace('"high_level_description"', '"descripton"')
    done = compare(model, model, caption=odd)
    assert done.returncode == 0 and len(done.stderr.splitlines()) == 1
    assert 'unknown key "descripton"' in done.stderr
    assert "--require-int8" in only_sentence(
        compare(model, model, "--require-int8", "--b-device", "ref"))
    assert compare(model, model, "--require-int8", "--a-linears", "float").returncode == 0


@pytest.mark.parametrize("place", ["file/p", "x" * 300])
def test_pictures_that_cannot_be_written(compare, model, tmp_path, place):
    (tmp_path / "file").write_text("")
    sentence = only_sentence(compare(model, model, "--pictures", tmp_path / place))
    assert str(tmp_path / place) in sentence
    assert len(list(tmp_path.rglob("*"))) == 1


def test_temporary_files(compare, model, tmp_path):
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    there = {"TMPDIR": str(temporary)}
    assert compare(model, model, environment=there).returncode == 0
    assert list(temporary.iterdir()) == []
    # The limit on the size of files stands for a full disk: both fail in write().
    full = compare(
        model, model, environment=there,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100)),
        restore_signals=False,  # Python ignores SIGXFSZ, and so shall the program
    )
    sentence = only_sentence(full)
    assert str(temporary) in sentence and "TMPDIR" in sentence
    nowhere = {"TMPDIR": str(temporary / "nowhere")}
    assert "TMPDIR" in only_sentence(compare(model, model, environment=nowhere))


@pytest.mark.parametrize(("moment", "steps"), [
    ("A: text encoder", 1000), ("A: denoising", 1000),
    ("A: denoising, some of it", 30),  # images that are complete stay
    ("B: denoising", 10)])
def test_interruption(built_program, model, tmp_path, moment, steps):
    words = command(built_program("octet"), model, model,
                    ["--steps", steps, "--images", "100", "--pictures", tmp_path / "p"])
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True) as process:
        process.stdin.write(tiny.CAPTION)
        process.stdin.close()
        for line in process.stderr:
            if line.startswith(moment.removesuffix(", some of it")):
                break
        while steps == 30 and len(list(tmp_path.glob("p-a-*.png"))) < 3:
            time.sleep(0.005)
        process.send_signal(signal.SIGINT)
        rest = process.stderr.read().splitlines()
        assert process.wait(timeout=30) == 130
        assert process.stdout.read() == ""
    assert rest[-1].startswith(f"octet: compare: stopped on request while {moment[0]} ran")
    assert [line for line in rest if line.startswith("octet: ")] == rest[-1:]
    pictures = len(list(tmp_path.glob("p-a-*.png")))
    assert len(list(tmp_path.iterdir())) == pictures
    assert pictures == 100 if moment[0] == "B" else pictures < 100
    assert pictures > 0 or steps != 30
