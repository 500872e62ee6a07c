"""octet generate --from: the same picture again from its metadata."""

import json

import numpy as np
import pytest
import tiny_ideogram4 as tiny
from conftest import REPOSITORY
from generating import (
    copy,  # noqa: F401: a fixture
    edit_tensors,
    generate,  # noqa: F401: a fixture
    model,  # noqa: F401: a fixture
)
from PIL import Image
from running import octet, only_sentence  # noqa: F401: a fixture

# All that is not the default of --from's own run.
CHANGED = ("--seed", 5, "--size", "16x12", "--steps", 3, "--guidance", "3,2.5,1", "--preset",
           "turbo", "--dtype", "f32", "--linears", "float", "--attention", "bf16")
FREE = {"--caption": None, "--convention": None, "--size": None, "--steps": None}
NONE = [word for flag in FREE.items() for word in flag]


def pixels(path):
    with Image.open(path) as image:
        image.load()
        return np.asarray(image), dict(image.info)


@pytest.mark.parametrize("ending", ["png", "jpg", "webp"])
def test_the_same_picture_to_the_last_bit(generate, model, ending):  # noqa: F811
    first = generate(model, *CHANGED)
    assert first.returncode == 0, first.stderr
    expected, _ = pixels(generate.out / "out.png")
    source = generate.out / f"source.{ending}"
    made = generate(model, *CHANGED, "--out", source)
    if "this build has no" in made.stderr:
        pytest.skip(made.stderr)
    again = generate(model, *NONE, "--from", source, "--out", generate.out / "again.png")
    assert again.returncode == 0 and again.stderr == "", again.stderr
    got, words = pixels(generate.out / "again.png")
    assert np.array_equal(got, expected)
    assert words["seed"] == "5" and words["guidance"] == "3,2.5,1" and words["dtype"] == "f32"
    if ending == "png":
        assert (generate.out / "again.png").read_bytes() == source.read_bytes()


def test_what_the_demo_left_out_stays(octet, tmp_path):  # noqa: F811
    first, again, other = (tmp_path / f"{name}.png" for name in ("first", "again", "other"))
    flags = ("--steps", 1, "--device", "cpu")
    done = octet("demo", "-p", "a xylograph and a red heart", *flags, "-o", first)
    assert done.returncode == 0 and "left out: xylograph" in done.stderr
    words = ("generate", "--model", REPOSITORY / "models/demo", "--device", "cpu", "--from", first)
    done = octet(*words, "-o", again)
    assert done.returncode == 0, done.stderr
    assert again.read_bytes() == first.read_bytes()
    # It is about that caption, and no other.
    assert octet(*words, "-p", "a heart", "-o", other).returncode == 0
    assert "left_out" not in pixels(other)[1]


def test_flags_change_what_they_say(generate, model):  # noqa: F811
    source = generate.out / "source.png"
    assert generate(model, *CHANGED, "--out", source).returncode == 0
    other = json.loads(tiny.CAPTION)
    other["high_level_description"] = "something else"
    done = generate(model, "--convention", None, "--size", None, "--steps", 2, "--preset", None,
                    "--guidance", "2", "--seed", 9, "--from", source,
                    "--out", generate.out / "again.png",
                    caption=json.dumps(other, ensure_ascii=False))
    assert done.returncode == 0, done.stderr
    _, before = pixels(source)
    _, words = pixels(generate.out / "again.png")
    assert (words["seed"], words["steps"], words["guidance"]) == ("9", "2", "2")
    assert (words["dtype"], words["linears"], words["preset"]) == ("f32", "float", "turbo")
    assert "something else" in words["caption"] and words["caption"] != before["caption"]
    # Pictures that follow count up.
    done = generate(model, *NONE, "--from", source, "-n", 2,
                    "--out", generate.out / "{name}-{seed}.png")
    assert done.stdout.splitlines() == [str(generate.out / f"source-{seed}.png") for seed in (5, 6)]


def test_other_weights_are_said(generate, model, copy):  # noqa: F811
    source = generate.out / "source.png"
    assert generate(model, "--out", source).returncode == 0

    def change(tensors):
        tensors[min(tensors)][...] *= 1.5

    edit_tensors(copy / "transformer", change)
    done = generate(copy, *NONE, "--from", source)
    assert done.returncode == 0
    (line,) = done.stderr.splitlines()
    assert "was made by other weights" in line and pixels(source)[1]["checkpoint"] in line


def test_pictures_that_say_nothing_are_refused(generate, model, tmp_path):  # noqa: F811
    plain = tmp_path / "plain.png"
    Image.new("RGB", (16, 16)).save(plain)
    text = tmp_path / "text.png"
    text.write_text("no picture")
    for path, part in ((plain, "has no metadata of Octet"), (text, "is not a PNG, JPEG or WebP"),
                       (tmp_path / "none.png", "none.png")):
        sentence = only_sentence(generate(model, *NONE, "--from", path))
        assert part in sentence and str(path) in sentence
    assert generate(model, "--out", plain).returncode == 0
    # It is not overwritten by what is made of it.
    done = generate(model, *NONE, "--from", plain, "--out", plain)
    assert "belongs to what another argument names" in only_sentence(done, code=2)


def test_strange_metadata(generate, model, tmp_path):  # noqa: F811
    from PIL.PngImagePlugin import PngInfo

    assert generate(model).returncode == 0
    with Image.open(generate.out / "out.png") as image:
        image.load()
    for key, value in (("linears", "int3"), ("seed", "-1"), ("steps", "1e9"), ("guidance", "x"),
                       ("steps", "0"), ("steps", "1001"), ("guidance", "nan"), ("preset", "none")):
        info = PngInfo()
        for each, text in {**image.text, key: value}.items():
            info.add_text(each, text)
        image.save(tmp_path / "odd.png", pnginfo=info)
        done = generate(model, *NONE, "--from", tmp_path / "odd.png")
        sentence = only_sentence(done)
        assert "odd.png: its metadata" in sentence and value in sentence
        assert f"{key} '{value}'" in sentence or key in ("steps", "guidance", "preset")
        assert "--" not in sentence
