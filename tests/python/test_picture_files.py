"""Picture files as `octet generate` writes them: their folders, names, formats and metadata."""

import json
import re
import subprocess

import numpy as np
import pytest
from generating import (
    command,
    generate,  # noqa: F401: a fixture
    model,  # noqa: F401: a fixture
)
from PIL import Image
from running import only_sentence

MISSING = "this build has no lib"


def written(done):
    """The picture that a run names, unless the build lacks the library for it."""
    if MISSING in done.stderr:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stderr
    path = done.stdout.splitlines()[0]
    with Image.open(path) as image:
        image.load()
        return path, image


def metadata_of(image):
    text = re.search(rb"<octet:metadata>(.*)</octet:metadata>", image.info["xmp"]).group(1).decode()
    for name, character in (("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&")):
        text = text.replace(name, character)
    return json.loads(text)


def test_folders_are_made(generate, model):  # noqa: F811
    done = generate(model, "--out", generate.out / "new/deeper/{name}-{seed}.png",
                    "--json", generate.out / "reports/a.json")
    path, _ = written(done)
    assert path == str(generate.out / "new/deeper/stdin-0.png")
    assert (generate.out / "reports/a.json").is_file()
    blocked = generate(model, "--out", f"{path}/a.png")
    assert f"{path}/a.png" in only_sentence(blocked)


def test_a_name_without_an_ending_gets_png(generate, model):  # noqa: F811
    for name, expected in (("plain", "plain.png"), ("guidance-7.5", "guidance-7.5.png"),
                           ("{name}", "stdin.png"), ("whole.PNG", "whole.PNG")):
        path, image = written(generate(model, "--out", generate.out / name))
        assert path == str(generate.out / expected) and image.format == "PNG"


def test_devices_keep_their_names(built_program, generate, model):  # noqa: F811
    words = command(built_program("octet"), model, generate.out, ["--out", "/dev/stdout"])
    done = subprocess.run(words, input=b"{}", capture_output=True)
    assert done.returncode == 1  # the caption
    done = generate(model, "--out", "/dev/null")
    assert (done.returncode, done.stdout) == (0, "/dev/null\n")
    assert "/dev/stdout" in only_sentence(generate(model, "--out", "-"), code=2)


@pytest.mark.parametrize("ending", ["jpg", "jpeg", "webp"])
def test_other_formats_hold_the_same_picture_and_words(generate, model, ending):  # noqa: F811
    size = ("--size", "64x48")
    _, exact = written(generate(model, *size))
    path, image = written(generate(model, *size, "--out", generate.out / f"a.{ending}"))
    assert image.format == {"webp": "WEBP"}.get(ending, "JPEG") and image.size == exact.size
    assert metadata_of(image) == exact.text
    _, small = written(generate(model, *size, "--out", generate.out / f"b.{ending}",
                                "--quality", 20))

    def distance(other):
        return np.abs(np.asarray(other, float) - np.asarray(exact, float)).mean()

    assert distance(image) < distance(small)
    assert (generate.out / f"b.{ending}").stat().st_size < (
        generate.out / f"a.{ending}").stat().st_size


def test_a_webp_of_quality_100_is_exact(generate, model):  # noqa: F811
    _, exact = written(generate(model))
    _, image = written(generate(model, "--out", generate.out / "a.webp", "--quality", 100))
    assert np.array_equal(np.asarray(image), np.asarray(exact))
