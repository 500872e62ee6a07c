"""`octet compare` from the outside, its numbers against numpy's and scikit-image's."""

from __future__ import annotations

import json
import math
import shutil
import subprocess

import pytest

pytest.importorskip("diffusers")
pytest.importorskip("transformers")
pytest.importorskip("skimage")

import numpy as np
import tiny_ideogram4 as tiny
from comparing import (
    command,
    compare,  # noqa: F401: a fixture
    report,
)
from generating import (
    SETTINGS,
    SHAPE,
    copy,  # noqa: F401: a fixture
    copy_of,
    edit_tensors,
    model,  # noqa: F401: a fixture
)
from PIL import Image
from running import only_sentence
from safetensors.numpy import load_file
from skimage.metrics import peak_signal_noise_ratio, structural_similarity

FLOAT_AND_INT8 = ("--a-linears", "float", "--json", "-")
# A statistic in which nothing had part.
NONE = {"mean": None, "median": None, "interval": None, "standard_error": None, "count": 0}


# --- numbers -------------------------------------------------------------------------------------


def test_a_model_against_itself_is_equal(compare, model):
    done = report(compare(model, model, "--json", "-", "-n", 2))
    assert done["equal"] is True
    assert done["size"] == "8x6" and done["caption"] == tiny.CAPTION and done["version"]
    assert done["a"]["model"] == done["b"]["model"] == str(model) and "model" not in done
    assert done["a"]["checkpoint"] == done["b"]["checkpoint"]
    assert done["tokens"] == 12 and done["channels"] == SHAPE.token_channels
    assert len(done["steps"]) == 2 and len(done["images"]) == 2
    for row in (done["first_velocity"], *done["steps"]):
        assert row["cosine"] == {"mean": 1, "median": 1, "interval": None, "standard_error": 0,
                                 "count": 2}
        assert row["relative_rmse"]["mean"] == row["max_abs"]["mean"] == 0
        assert row["snr_db"] == NONE
    assert done["psnr_db"]["mean"] is None
    assert compare(model, model).stdout == "PSNR equal, SSIM -\n"  # 8 x 6 pixels: no window fits


def test_features_of_a_text_encoder_in_int8(compare, model):
    flags = ("--b-text-encoder-linears", "int8", "--json", "-")
    done = report(compare(model, model, *flags))
    assert done["a"]["text_encoder_linears"] == "float"
    assert done["b"]["text_encoder_linears"] == "int8"
    (caption,) = done["captions"]
    text = caption["text"]
    assert text["tokens"] == done["a"]["text_tokens"] and text["max_abs"] > 0
    assert 0.9 < text["worst_cosine"] <= text["mean_cosine"] < 1
    assert done["equal"] is False
    same = report(compare(model, model, "--json", "-"))["captions"][0]["text"]
    assert same["max_abs"] == 0


def difference(a, b) -> dict:
    a, b = a.astype(np.float64), b.astype(np.float64)
    error = np.linalg.norm(b - a)
    return {
        "cosine": a @ b / (np.linalg.norm(a) * np.linalg.norm(b)),
        "relative_rmse": error / np.linalg.norm(a),
        "snr_db": 20 * math.log10(np.linalg.norm(a) / error),
        "max_abs": np.abs(b - a).max(),
    }


def test_the_numbers_are_those_of_numpy(compare, model, built_program, tmp_path):
    """Of latents that the public interface hands to another program."""
    caption = tmp_path / "caption.json"
    caption.write_text(tiny.CAPTION)
    latents = {}
    for linears in ("float", "int8"):
        out = tmp_path / f"{linears}.safetensors"
        words = [model, caption, linears, "8x6", 3, 3, 5, out]
        subprocess.run([built_program("record_latents"), *map(str, words)], check=True, timeout=60)
        latents[linears] = load_file(out)
    flags = ("--steps", 3, "-n", 3, "--seed", 5, *FLOAT_AND_INT8)
    done = report(compare(model, model, *flags))
    assert done["equal"] is False and done["seed"] == 5
    columns = {}
    for index, image in enumerate(done["images"]):
        names = [f"velocity.{index}.1", *(f"latent.{index}.{step}" for step in (1, 2, 3))]
        rows = [image["first_velocity"], *image["steps"]]
        assert len(rows) == len(names)
        for place, (row, name) in enumerate(zip(rows, names)):
            expected = difference(latents["float"][name], latents["int8"][name])
            assert row == pytest.approx(expected, rel=1e-9)  # sums in double, in another order
            assert 0.9 < row["cosine"] < 1 and row["snr_db"] > 5  # INT8 is near, and not there
            for key, value in expected.items():
                columns.setdefault((place, key), []).append(value)
    for place, row in enumerate([done["first_velocity"], *done["steps"]]):
        for key, statistic in row.items():
            values = columns[place, key]
            assert statistic["count"] == 3
            assert statistic["mean"] == pytest.approx(np.mean(values), rel=1e-9)
            assert statistic["median"] == pytest.approx(np.median(values), rel=1e-9)
            error = np.std(values, ddof=1) / math.sqrt(3)
            # Of cosines near 1 the variance keeps few digits.
            assert statistic["standard_error"] == pytest.approx(error, rel=1e-5, abs=1e-12)


@pytest.mark.parametrize("size", ["32x24", "12x34", "12x12"])
def test_pictures_are_measured_as_scikit_image_does(compare, model, tmp_path, size):
    flags = ("--size", size, "--pictures", tmp_path / "p", *FLOAT_AND_INT8)
    done = report(compare(model, model, *flags))
    names = ("a", "b", "difference")
    assert done["pictures"] == [str(tmp_path / f"p-{name}.png") for name in names]
    a, b, apart = (np.asarray(Image.open(path)).astype(int) for path in done["pictures"])
    assert np.array_equal(apart, np.minimum(255, 8 * np.abs(a - b)))
    assert done["psnr_db"]["mean"] == pytest.approx(
        peak_signal_noise_ratio(a, b, data_range=255), abs=1e-9
    )
    a, b = a.astype(np.uint8), b.astype(np.uint8)
    expected = structural_similarity(
        a, b, gaussian_weights=True, sigma=1.5, use_sample_covariance=False, data_range=255,
        channel_axis=2,
    )
    assert 0 < expected < 1
    assert done["ssim"]["mean"] == pytest.approx(expected, abs=1e-9)


def test_small_pictures_have_no_structural_similarity(compare, model):
    done = report(compare(model, model, "--size", "10x32", *FLOAT_AND_INT8))
    assert done["ssim"] == NONE
    assert done["images"][0]["ssim"] is None


def test_the_pictures_are_those_of_generate(compare, model, built_program, tmp_path):
    report(compare(model, model, "-n", 2, "--pictures", tmp_path / "p", *FLOAT_AND_INT8))
    for side, linears in (("a", "float"), ("b", "int8")):
        settings = {**SETTINGS, "--model": model, "--linears": linears, "-n": 2,
                    "--out": tmp_path / "g.png"}
        words = [str(word) for pair in settings.items() for word in pair]
        subprocess.run([built_program("octet"), "generate", "-q", *words], input=tiny.CAPTION,
                       text=True, check=True, timeout=60, capture_output=True)
        for number in (1, 2):
            ours = Image.open(tmp_path / f"p-{side}-{number}.png")
            theirs = Image.open(tmp_path / f"g-{number}.png")
            assert np.array_equal(np.asarray(ours), np.asarray(theirs))
            assert ours.text["linears"] == linears
    assert (tmp_path / "p-difference-2.png").is_file()


# --- sides ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("flag", "value"), [("--b-dtype", "f32"), ("--b-device", "ref")])
def test_other_paths(compare, model, flag, value):
    done = report(compare(model, model, flag, value, "--json", "-", "--a-linears", "float",
                          "--b-linears", "float"))
    assert done["equal"] is False
    assert done["steps"][-1]["cosine"]["mean"] > 0.99  # both unquantized
    if flag == "--b-dtype":
        assert (done["a"]["dtype"], done["b"]["dtype"]) == ("bf16", "f32")
    else:
        assert done["a"]["device"] != done["b"]["device"]


def test_another_model(compare, model, copy):
    edit_tensors(copy / "transformer",
                 lambda tensors: tensors["layers.0.attention.to_q.weight"].mul_(1.5))
    done = report(compare(model, copy, "--json", "-"))
    assert done["a"]["model"] == str(model) and done["b"]["model"] == str(copy)
    assert done["a"]["checkpoint"] != done["b"]["checkpoint"]
    assert done["first_velocity"]["cosine"]["mean"] < 1
    # The reference is A: the error is the same, what it is divided by is not.
    back = report(compare(copy, model, "--json", "-"))
    assert back["first_velocity"]["max_abs"] == done["first_velocity"]["max_abs"]
    assert back["first_velocity"]["cosine"] == done["first_velocity"]["cosine"]
    assert back["first_velocity"]["snr_db"] != done["first_velocity"]["snr_db"]


def test_a_reference_of_zeros_has_no_ratios(compare, built_program, model, copy):
    """It is not taken for an equal one."""
    for part in ("transformer", "unconditional_transformer"):
        edit_tensors(copy / part, lambda tensors: [tensors[f"final_layer.linear.{kind}"].zero_()
                                                   for kind in ("weight", "bias")])
    done = report(compare(copy, model, "--json", "-"))
    velocity = done["images"][0]["first_velocity"]
    assert velocity["cosine"] == 0 and velocity["max_abs"] > 0 and done["equal"] is False
    assert velocity["relative_rmse"] is None and velocity["snr_db"] is None
    shown = subprocess.run(command(built_program("octet"), copy, model, ()), input=tiny.CAPTION,
                           capture_output=True, text=True, timeout=60).stdout
    (row,) = [line for line in shown.splitlines() if line.startswith("velocity")]
    assert row.split("  ")[0] == "velocity of step 1" and row.split()[5:7] == ["-", "-"]


@pytest.mark.parametrize("missing_in", ["a", "b"])
def test_a_model_without_some_parts_takes_those_of_the_other(compare, model, copy, missing_in):
    for part in ("text_encoder", "vae", "unconditional_transformer", "tokenizer"):
        shutil.rmtree(copy / part)
    pair = (copy, model) if missing_in == "a" else (model, copy)
    assert report(compare(*pair, "--json", "-"))["equal"] is True
    transformer_alone = (model, copy / "transformer")
    assert report(compare(*transformer_alone, "--json", "-"))["equal"] is True
    assert "there is no" in only_sentence(compare(copy, copy))


def test_models_with_other_presets(compare, model, tmp_path):
    """Of pictures of other sizes, or after other steps, a difference says nothing."""
    folders = [copy_of(model, tmp_path / name) for name in "ab"]

    def written(size=(8, 6), **changes):
        preset = {"name": "own", "steps": 3, "guidance": 3, "mu": 0.5, "std": 1.2}
        for folder, own in zip(folders, ({}, changes)):
            (folder / "octet_presets.json").write_text(json.dumps(
                {"presets": [{**preset, **own}], "size": size if folder == folders[1] else [8, 6]}))
        return compare(*folders, "--size", None, "--steps", None, "--json", "-")

    assert report(written())["equal"] is True
    for size in ([6, 8], [8, 8]):
        sentence = only_sentence(written(size=size))
        assert f"{size[0]}x{size[1]}" in sentence and "--size" in sentence
    for changes in ({"mu": 0.6}, {"std": 1}, {"guidance": 2}):
        sentence = only_sentence(written(**changes))
        assert "different times or guidance" in sentence and "octet_presets.json" in sentence
    assert "after 4" in only_sentence(written(steps=4))


def test_parts_by_flag_are_for_both(compare, model, tmp_path):
    other = tiny.save_pipeline(tmp_path / "other", SHAPE, seed=50)
    plain = report(compare(model, model, "--json", "-"))
    done = report(compare(model, model, "--vae", other, "--json", "-"))
    assert done["equal"] is True
    assert done["a"]["checkpoint"] == done["b"]["checkpoint"] != plain["a"]["checkpoint"]


# --- output --------------------------------------------------------------------------------------


def test_the_table(built_program, model):
    flags = ("-n", 2, "--size", "16x12", "--a-linears", "float")
    done = subprocess.run(command(built_program("octet"), model, model, flags), timeout=60,
                          input=tiny.CAPTION, capture_output=True, text=True)
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert lines[0].startswith(f"A  {model}: linears float, activations bf16")
    assert lines[1].startswith(f"B  {model}: linears int8")
    rows = [line for line in lines if line.startswith(("velocity", "latent"))]
    assert [row.split("  ")[0] for row in rows] == [
        "velocity of step 1", "latent after step 1", "latent after step 2"]
    assert all(row.count("±") == 4 for row in rows)
    assert lines[-1].startswith("Pictures: PSNR ") and " dB ± " not in lines[-1]
    assert "A: denoising" in done.stderr and "B: decoding" in done.stderr


def test_json_file(compare, model, tmp_path):
    done = compare(model, model, "--json", tmp_path / "report.json")
    assert done.stdout.startswith("PSNR equal")
    assert json.loads((tmp_path / "report.json").read_text())["equal"] is True


@pytest.mark.parametrize("flag", ["--min-cosine", "--min-psnr"])
def test_gates(compare, model, tmp_path, flag):
    values = report(compare(model, model, *FLOAT_AND_INT8))
    key = values["steps"][-1]["cosine"] if flag == "--min-cosine" else values["psnr_db"]
    within, beyond = key["mean"] - 1e-6, key["mean"] + 1e-6
    assert report(compare(model, model, flag, within, *FLOAT_AND_INT8))
    done = compare(model, model, flag, beyond, *FLOAT_AND_INT8)
    assert done.returncode == 1
    assert json.loads(done.stdout)["equal"] is False  # the result is shown all the same
    (sentence,) = done.stderr.splitlines()
    assert flag in sentence and "expected at least" in sentence
    # What is equal reaches every limit.
    assert compare(model, model, "--min-cosine", 1, "--min-psnr", 1000).returncode == 0
