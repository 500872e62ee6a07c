"""`octet compare` over many captions, and with linears in fake INT8."""

from __future__ import annotations

import json
import subprocess

import pytest

pytest.importorskip("diffusers")
pytest.importorskip("transformers")
pytest.importorskip("skimage")

import numpy as np
import tiny_ideogram4 as tiny
from generating import model  # noqa: F401: a fixture
from PIL import Image
from running import only_sentence
from test_compare import FLOAT_AND_INT8, NONE, command, compare, report  # noqa: F401

WORDS = ("a red fox", "two green pears", "a blue boat", "rain", "a yellow door", "seven stones")


@pytest.fixture
def captions(tmp_path):
    """A folder of as many captions as there are WORDS."""
    folder = tmp_path / "captions"
    folder.mkdir()
    for number, words in enumerate(WORDS):
        caption = json.loads(tiny.CAPTION)
        caption["high_level_description"] = words
        (folder / f"c{number}.json").write_text(json.dumps(caption, ensure_ascii=False))
    return folder


def draws(count, captions):
    """The generator of src/measure/bootstrap.cpp: which captions each resample has."""
    mask = (1 << 64) - 1
    counter = 0

    def mixed(x):
        x = (x ^ (x >> 33)) * 0xFF51AFD7ED558CCD & mask
        x = (x ^ (x >> 33)) * 0xC4CEB9FE1A85EC53 & mask
        return x ^ (x >> 33)

    rows = []
    for _ in range(count):
        row = []
        for _ in range(captions):
            counter += 1
            row.append((mixed(counter * 0x9E3779B97F4A7C15 & mask) >> 32) * captions >> 32)
        rows.append(row)
    return np.array(rows)


def test_intervals_are_over_captions(compare, model, captions):
    done = report(compare(model, model, "--caption", captions, "-n", 2, "--size", "16x12",
                          "--seed", 3, *FLOAT_AND_INT8))
    assert done["caption"] is None
    assert [each["name"] for each in done["captions"]] == [f"c{i}" for i in range(len(WORDS))]
    assert WORDS[1] in done["captions"][1]["caption"]
    places = [(image["caption"], image["seed"]) for image in done["images"]]
    assert places == [(f"c{i}", seed) for i in range(len(WORDS)) for seed in (3, 4)]
    resamples = draws(2000, len(WORDS))
    for key in ("psnr_db", "ssim"):
        values = np.array([image[key] for image in done["images"]]).reshape(-1, 2)
        assert done[key]["mean"] == pytest.approx(values.mean(), rel=1e-12)
        assert done[key]["median"] == pytest.approx(np.median(values), rel=1e-12)
        means = values[resamples].mean(axis=(1, 2))
        expected = np.percentile(means, [2.5, 97.5])
        assert done[key]["interval"] == pytest.approx(list(expected), rel=1e-12)
        assert done[key]["interval"][0] < done[key]["mean"] < done[key]["interval"][1]
    assert done["steps"][-1]["snr_db"]["interval"] is not None


def test_a_list_gives_what_single_captions_give(compare, model, captions, tmp_path):
    """The engine stays loaded, and no caption changes the next one."""
    flags = ("--size", "16x12", "-n", 2, "--seed", 9)
    many = report(compare(model, model, "--caption", captions, *flags, "--pictures",
                          tmp_path / "p", *FLOAT_AND_INT8))
    for number in range(len(WORDS)):
        one = report(compare(model, model, "--caption", captions / f"c{number}.json", *flags,
                             *FLOAT_AND_INT8))
        pair = many["images"][2 * number : 2 * number + 2]
        for image in (*pair, *one["images"]):
            image.pop("caption")
        assert pair == one["images"]
    names = [str(tmp_path / f"p-c{i}-{seed}-{side}.png") for i in range(len(WORDS))
             for seed in (9, 10) for side in ("a", "b", "difference")]
    assert sorted(many["pictures"]) == sorted(names)
    with Image.open(tmp_path / "p-c2-10-a.png") as image:
        assert image.text["seed"] == "10" and WORDS[2] in image.text["caption"]


def test_the_table_of_a_list(built_program, model, captions):
    flags = ("--caption", captions, "--size", "16x12", "--a-linears", "float")
    done = subprocess.run(command(built_program("octet"), model, model, flags), timeout=60,
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    header = next(line for line in lines if "cosine" in line)
    assert header.index("SNR dB") < header.index("95 % interval") < header.index("median")
    assert next(line for line in lines if line.startswith("velocity")).count(" to ") == 1
    assert "±" not in done.stdout and "median" in lines[-1]
    assert "A: 2/6 c1: denoising" in done.stderr and "B: 6/6 c5: decoding" in done.stderr
    # Each model is loaded once.
    assert len([line for line in done.stderr.splitlines() if "A: 2/6 c1: loading" in line]) == 0


def test_a_list_is_equal_to_itself(compare, model, captions):
    done = report(compare(model, model, "--caption", captions, "--json", "-"))
    assert done["equal"] is True and done["psnr_db"] == NONE


@pytest.mark.parametrize("bad", ["not json", "", '{"high_level_description": 1}'])
def test_a_bad_caption_ends_a_comparison(compare, model, captions, bad):
    (captions / "c3.json").write_text(bad)
    assert "c3.json" in only_sentence(compare(model, model, "--caption", captions, "--pictures",
                                        captions / "p"))
    assert len(list(captions.iterdir())) == len(WORDS)


def test_an_empty_folder(compare, model, tmp_path):
    (tmp_path / "none").mkdir()
    assert "contains no .json files" in only_sentence(
        compare(model, model, "--caption", tmp_path / "none"))


def test_pictures_of_the_same_name(compare, model, captions, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    (other / "c1.json").write_text(tiny.CAPTION)
    done = compare(model, model, "--caption", captions, "--prompt", "x", "--pictures",
                   tmp_path / "p{nothing}")
    sentence = only_sentence(done, code=2)
    assert "--pictures" in sentence and "{nothing}" in sentence
    both = subprocess.run([*command(compare_program(compare), model, model,
                                    ["--caption", captions, "--pictures", tmp_path / "p"]),
                           "--caption", str(other)], capture_output=True, text=True, timeout=60)
    assert "two pictures would be" in only_sentence(both, code=2) and "--pictures" in both.stderr


def compare_program(compare):
    """The program that the fixture runs."""
    return compare.__closure__[0].cell_contents("octet")


# --- fake INT8 -----------------------------------------------------------------------------------


@pytest.mark.parametrize("device", ["cpu", "ref"])
def test_fake_int8_is_native_int8_but_for_rounding(compare, model, device):
    """In F32 both multiply the same codes: sums differ in their last bits, and a code that this
    tips over at a tie may differ by one."""
    flags = ("--a-dtype", "f32", "--b-dtype", "f32", "--device", device, "--json", "-")
    near = report(compare(model, model, "--a-linears", "fake", *flags))
    far = report(compare(model, model, "--a-linears", "float", *flags))
    assert near["equal"] is False
    assert near["first_velocity"]["snr_db"]["mean"] > 60 > 50 > far["first_velocity"]["snr_db"][
        "mean"]
    # The error of fake INT8 is that of INT8.
    fake = report(compare(model, model, "--a-linears", "float", "--b-linears", "fake", *flags))
    assert fake["first_velocity"]["snr_db"]["mean"] == pytest.approx(
        far["first_velocity"]["snr_db"]["mean"], abs=0.2)


def test_fake_int8_in_streamed_blocks(compare, model):
    flags = ("--a-linears", "fake", "--size", "16x12", "--json", "-")
    resident = report(compare(model, model, *flags))
    streamed = report(compare(model, model, *flags, "--keep", "stream"))
    assert resident["images"] == streamed["images"]


def test_fake_int8_says_so(compare, model):
    done = report(compare(model, model, "--a-linears", "fake", "--json", "-"))
    assert done["a"]["linears"] == "fake" and done["b"]["linears"] == "int8"
    a, b = done["a"]["linears_ran"], done["b"]["linears_ran"]
    assert a["fake"] == b["int8"] > 0 and a["int8"] == b["fake"] == 0
    paths = {use["layer"]: use["path"] for use in done["a"]["kernels"]}
    native = {use["layer"] for use in done["b"]["kernels"] if use["path"] == "int8"}
    assert native and all(paths[layer] == "fake int8" for layer in native)
    assert "int8" not in paths.values()


def test_fake_int8_is_not_native(compare, model, built_program):
    """--require-int8 holds for the side that is to be native alone."""
    assert compare(model, model, "--require-int8", "--a-linears", "fake").returncode == 0
    words = ["generate", "--model", str(model), "--linears", "fake", "--require-int8", "-p", "x",
             "--size", "8x6"]
    done = subprocess.run([built_program("octet"), *words], capture_output=True, text=True)
    assert "--require-int8" in only_sentence(done, code=2) and "fake INT8" in done.stderr
