"""`octet demo`: where its model is found, what it paints and says; and the trained model itself."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys

import numpy as np
import pytest
from conftest import REPOSITORY
from demo_folder import (
    CAPTION,
    DESCRIPTION,
    SIZE,
    STEPS,
    demo_folder,  # noqa: F401: a fixture
    trained_folder,  # noqa: F401: a fixture
)
from PIL import Image
from running import octet, only_sentence  # noqa: F401: a fixture


@pytest.fixture
def demo(octet, demo_folder, tmp_path):  # noqa: F811
    """demo("--flag", ...) paints with the tiny model; the picture goes to demo.out."""
    out = tmp_path / "demo.png"

    def run(*flags, model=demo_folder):
        return octet("demo", "--device", "cpu", "-o", out, *flags, OCTET_DEMO_MODEL=str(model))

    run.out = out
    return run


def picture(done, demo):  # noqa: F811
    assert done.returncode == 0, done.stderr
    return Image.open(demo.out)


def test_paints_the_caption_of_the_models_folder(demo, demo_folder):  # noqa: F811
    done = demo()
    image = picture(done, demo)
    assert image.size == SIZE
    assert json.loads(image.text["caption"]) == CAPTION
    assert (image.text["preset"], image.text["steps"]) == ("default", str(STEPS["default"]))
    # What is on it, where it is, and how to go on.
    assert done.stdout.startswith(
        f"{DESCRIPTION}\n{demo.out} (256x256, seed 7), from the small model in ")
    assert "in native INT8" in done.stdout and "attention.qkv" not in done.stdout
    assert "attention.qkv" in demo("-v").stdout
    assert "octet demo --caption FILE" in done.stdout
    assert "octet generate --model FOLDER" in done.stdout
    first = demo.out.read_bytes()
    assert demo("-q").stdout == f"{demo.out}\n"
    assert demo.out.read_bytes() == first


def test_the_large_linears_run_in_int8(demo):  # noqa: F811
    result = json.loads(demo("--json", "-").stdout)
    paths = {use["layer"]: use["path"] for use in result["kernels"]}
    for layer in ("attention.qkv", "attention.o", "feed_forward.w1+w3", "feed_forward.w2"):
        assert paths[layer] == "int8"
    assert (result["preset"], result["size"]) == ("default", "256x256")


def test_a_caption_of_ones_own(demo, demo_folder, tmp_path):  # noqa: F811
    own = {**CAPTION, "high_level_description": "A blue square."}
    (tmp_path / "own.json").write_text(json.dumps(own))
    done = demo("--caption", tmp_path / "own.json", "--preset", "turbo", "--seed", 3)
    image = picture(done, demo)
    assert json.loads(image.text["caption"]) == own and done.stdout.startswith("A blue square.\n")
    assert (image.text["preset"], image.text["seed"]) == ("turbo", "3")
    done = demo("--prompt", "two green triangles", "--steps", 1)
    image = picture(done, demo)
    assert done.stdout.startswith("two green triangles\n") and image.text["steps"] == "1"
    # A folder without a caption paints one that is given.
    bare = tmp_path / "bare"
    shutil.copytree(demo_folder, bare)
    (bare / "demo.json").unlink()
    assert picture(demo("-p", "a ring", model=bare), demo).size == SIZE
    demo.out.unlink()
    assert "demo.json" in only_sentence(demo(model=bare))


def test_a_caption_without_a_description_has_no_first_line(demo, tmp_path):  # noqa: F811
    bare = {key: CAPTION[key] for key in CAPTION if key != "high_level_description"}
    (tmp_path / "bare.json").write_text(json.dumps(bare))
    assert demo("--caption", tmp_path / "bare.json").stdout.startswith(f"{demo.out} (256x256")


def test_the_name_of_the_picture_is_filled_in(demo, octet, demo_folder, tmp_path):  # noqa: F811
    """As `octet generate` does."""
    (tmp_path / "own.json").write_text(json.dumps(CAPTION))
    words = ("demo", "--device", "cpu", "-q", "--seed", 3, "-o")
    environment = {"OCTET_DEMO_MODEL": str(demo_folder)}
    done = octet(*words, tmp_path / "{name}-{seed}.png", "--caption", tmp_path / "own.json",
                 **environment)
    assert done.stdout == f"{tmp_path}/own-3.png\n", done.stderr
    done = octet(*words, tmp_path / "{name}.png", **environment)
    assert done.stdout == f"{tmp_path}/demo.png\n", done.stderr
    wrong = only_sentence(octet(*words, tmp_path / "{size}.png", **environment), code=2)
    assert "--out has {size}" in wrong


def test_wrong_words(demo, tmp_path):  # noqa: F811
    for blank in ("", "  ", "\n\t"):
        assert "--prompt is empty" in only_sentence(demo("--prompt", blank), code=2)
    assert "expected default or turbo" in only_sentence(demo("--preset", "quality"), code=2)
    missing = tmp_path / "no.json"
    assert str(missing) in only_sentence(demo("--caption", missing))
    both = only_sentence(demo("--caption", missing, "--prompt", "a ring"), code=2)
    assert "cannot be used together" in both
    assert not demo.out.exists()


def test_a_folder_without_a_model_is_named(demo, tmp_path):  # noqa: F811
    sentence = only_sentence(demo(model=tmp_path))
    assert "OCTET_DEMO_MODEL" in sentence and str(tmp_path) in sentence
    assert "model_index.json" in sentence


def test_an_installed_program_finds_its_own(built_program, demo_folder, tmp_path):  # noqa: F811
    """In any prefix, by any name, and not the source tree that it was built from."""
    prefix = tmp_path / "a prefix"
    (prefix / "bin").mkdir(parents=True)
    shutil.copy(built_program("octet"), prefix / "bin/octet")
    (tmp_path / "link").symlink_to(prefix / "bin/octet")
    words = [tmp_path / "link", "demo", "--device", "cpu", "-q"]
    environment = {name: value for name, value in os.environ.items() if name != "OCTET_DEMO_MODEL"}

    def run():
        return subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True)

    sentence = only_sentence(run())
    assert f"{prefix}/share/octet/demo" in sentence and "OCTET_DEMO_MODEL" in sentence
    assert "models/demo" not in sentence
    shutil.copytree(demo_folder, prefix / "share/octet/demo")
    done = run()
    assert (done.returncode, done.stdout) == (0, "demo.png\n"), done.stderr


# --- the trained model ----------------------------------------------------------------------------


def test_the_trained_model_paints_plain_words(octet, trained_folder, tmp_path):  # noqa: F811
    """The caption that they became is in the file; its boxes and colours are on the picture."""
    out = tmp_path / "words.png"
    prompt = "a red heart and the word HELLO on a yellow background"
    flags = ("--device", "cpu", "--preset", "turbo", "-o", out, "--json", tmp_path / "words.json")
    done = octet("demo", *flags, "--prompt", prompt, OCTET_DEMO_MODEL="")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"{prompt}\n")
    image = Image.open(out)
    caption = json.loads(image.text["caption"])
    assert json.loads(json.loads((tmp_path / "words.json").read_text())["caption"]) == caption
    heart, word = caption["compositional_deconstruction"]["elements"]
    assert (heart["desc"], word["text"]) == ("A red heart", "HELLO")

    pixels = np.asarray(image.convert("RGB")).astype(float)

    def inside(element):
        y0, x0, y1, x1 = (round(side * 256 / 1000) for side in element["bbox"])
        return pixels[y0:y1, x0:x1]

    def share(part, colour):
        """Of pixels that are near this colour."""
        return (np.abs(part - np.array(colour)).max(axis=-1) < 40).mean()

    yellow, red, navy = (250, 210, 40), (220, 40, 40), (27, 47, 107)
    assert share(pixels[:16], yellow) > 0.9 and share(pixels[-16:], yellow) > 0.9
    assert share(inside(heart), red) > 0.45
    assert 0.2 < share(inside(word), navy) < 0.8


def test_what_is_left_out_is_said_everywhere(octet, trained_folder, tmp_path):  # noqa: F811
    """On the terminal, in the report, in the JSON and in the picture."""
    out, report = tmp_path / "out.png", tmp_path / "out.json"
    words = ("demo", "--device", "cpu", "--steps", 1, "-o", out, "--json", report)
    done = octet(*words, "-p", "five stars and a cat under a red heart", OCTET_DEMO_MODEL="")
    assert done.returncode == 0, done.stderr
    named = ["cat", "under", "five stars: three fit"]
    assert f"octet: warning: left out: {', '.join(named)}\n" in done.stderr
    assert "eft out" not in done.stdout  # once is enough
    assert done.stdout.startswith("A picture with 3 gold stars and a red heart\n")
    assert json.loads(report.read_text())["left_out"] == named
    assert Image.open(out).text["left_out"] == ", ".join(named)
    done = octet(*words, "-p", "no stars, just a moon", OCTET_DEMO_MODEL="")
    assert "eft out" not in done.stdout + done.stderr
    assert json.loads(report.read_text())["left_out"] == []
    assert "left_out" not in Image.open(out).text
    out.unlink()
    refused = only_sentence(octet(*words, "-p", "the word Café", OCTET_DEMO_MODEL=""), code=2)
    assert 'the letter "é" of "Café"' in refused and "a-z A-Z 0-9" in refused
    assert not out.exists()


def test_what_nobody_will_see_is_warned_of(octet, trained_folder, tmp_path):  # noqa: F811
    out, report = tmp_path / "out.png", tmp_path / "out.json"
    words = ("demo", "--device", "cpu", "--steps", 1, "-o", out, "--json", report)
    done = octet(*words, "-p", "a white heart on white", OCTET_DEMO_MODEL="")
    assert done.returncode == 0, done.stderr
    warning = "the white heart can hardly be seen: the background has its colour"
    assert f"octet: warning: {warning}\n" in done.stderr
    assert warning in json.loads(report.read_text())["warnings"]


def test_words_that_it_does_not_know(octet, trained_folder, tmp_path):  # noqa: F811
    out = tmp_path / "no.png"
    done = octet("demo", "-p", "an elephant", "-o", out, OCTET_DEMO_MODEL="")
    sentence = only_sentence(done, code=2)
    assert '"an elephant"' in sentence and "heart" in sentence and "'HELLO'" in sentence
    assert not out.exists()


def test_its_words_are_those_of_its_training(trained_folder, tmp_path):  # noqa: F811
    script = REPOSITORY / "tools" / "demo_model" / "write_words.py"
    subprocess.run([sys.executable, script, tmp_path], check=True)
    for name in ("words.json", "octet_trained_for.json"):
        assert (tmp_path / name).read_text() == (trained_folder / name).read_text()


def test_the_captions_it_is_judged_by_are_valid(octet, trained_folder):  # noqa: F811
    captions = sorted((trained_folder / "captions").glob("*.json"))
    assert captions
    for path in captions:
        done = octet("caption", "check", path)  # some lack a description, of which it warns
        assert done.stdout.endswith(f"{path}: a valid caption\n"), done.stdout
