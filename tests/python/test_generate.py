"""`octet generate` from the outside: what it makes of a tiny model."""

from __future__ import annotations

import itertools
import json
import os
import re
import shutil
import subprocess

import pytest

pytest.importorskip("diffusers")
pytest.importorskip("transformers")

import numpy as np
import tiny_ideogram4 as tiny
import torch
from generating import (
    SHAPE,
    command,
    copy,  # noqa: F401: a fixture
    edit_tensors,
    generate,  # noqa: F401: a fixture
    model,  # noqa: F401: a fixture
    picture,
    pictures,
    refusal,
    rewrite,
    shard,
    weights_of,
)
from safetensors.torch import save_file


def pixels(image):
    return np.asarray(image).astype(int)


def same(first, second):
    return np.array_equal(pixels(first), pixels(second))


@pytest.fixture
def plain(generate, model):
    return picture(generate(model), generate)


def test_a_picture_and_what_it_says_of_itself(generate, model):
    done = generate(model, "--seed", 7, "--preset", "turbo")
    image = picture(done, generate)
    assert done.stdout == f"{generate.out / 'out.png'}\n"
    assert image.size == (8, 6) and image.mode == "RGB"
    assert len(np.unique(pixels(image))) > 20
    assert image.text["caption"].encode() == tiny.CAPTION.encode()
    assert image.text["seed"] == "7" and image.text["preset"] == "turbo"
    assert image.text["steps"] == "2"
    assert len(image.text["checkpoint"]) == 16
    kernels = image.text["kernels"].split("; ")
    assert any(use.startswith("attention.qkv int8 ") and " x " not in use for use in kernels)
    assert any(use.startswith("adaln_proj bf16") for use in kernels)


def test_threads_do_not_change_a_picture(generate, model, plain):
    assert same(picture(generate(model, "--threads", 2), generate), plain)


def test_two_devices_make_the_picture_of_one(generate, model, plain):
    on_two = picture(generate(model, "--device", "cpu,cpu"), generate)
    assert same(on_two, plain)
    assert on_two.text["kernels"] == plain.text["kernels"]
    assert on_two.text["checkpoint"] == plain.text["checkpoint"]
    assert on_two.text["device"] == f"{plain.text['device']} and {plain.text['device']}"
    for devices, why in (("cpu,cpu,cpu", "a list of 3"), ("cpu,ref", "two of a kind"),
                         ("auto,cpu", "cuda:<number>"), ("cpu,", "is not a device")):
        assert why in refusal(generate(model, "--device", devices), generate, code=2)
    unguided = refusal(generate(model, "--device", "cpu,cpu", "--guidance", "1"), generate, code=2)
    assert "no step is guided" in unguided and "--guidance" in unguided


def test_seeds(generate, model, plain):
    assert same(picture(generate(model, "--seed", 0), generate), plain)
    assert not same(picture(generate(model, "--seed", 1), generate), plain)


def test_several_pictures(generate, model, plain):
    done = generate(model, "--images", 2)
    assert sorted(path.name for path in generate.out.iterdir()) == ["out-1.png", "out-2.png"]
    first, second = pictures(done, generate)
    assert same(first, plain) and not same(second, plain)


@pytest.mark.parametrize("seed", [5, 2**64 - 2])
def test_each_picture_has_a_seed_that_renders_it_alone(generate, model, seed):
    """Picture i has the seed + i, beyond the largest seed from 0 on."""
    done = generate(model, "--images", 3, "--seed", seed, "--json", "-")
    report = json.loads(done.stdout)
    seeds = [(seed + i) % 2**64 for i in range(3)]
    assert report["seed"] == seed and report["seeds"] == seeds
    files = [path.read_bytes() for path in sorted(generate.out.iterdir())]
    together = pictures(done, generate)
    assert [image.text["seed"] for image in together] == [str(each) for each in seeds]
    for image, file in zip(together, files):
        done = generate(model, "--seed", image.text["seed"])
        assert done.returncode == 0, done.stderr
        assert (generate.out / "out.png").read_bytes() == file


def test_a_random_seed_is_told_and_repeats_the_picture(built_program, generate, model, tmp_path):
    drawn = []
    for _ in range(2):
        done = generate(model, "--seed", "random", "--json", "-")
        image = picture(done, generate)
        seed = json.loads(done.stdout)["seed"]
        assert image.text["seed"] == str(seed)
        assert same(picture(generate(model, "--seed", seed), generate), image)
        drawn.append(seed)
    assert drawn[0] != drawn[1]  # one time in four billion they are equal
    words = command(built_program("octet"), model, generate.out, ["--seed", "random"])
    words.remove("-q")
    done = subprocess.run(words, input=tiny.CAPTION, capture_output=True, text=True)
    seed = re.search(r"^octet: seed (\d+)$", done.stderr, re.MULTILINE).group(1)
    assert done.stdout.splitlines()[0] == f"{generate.out / 'out.png'} (seed {seed})"


def test_a_picture_replaces_the_one_before(generate, model, plain):
    rewrite(generate.out / "out.png", "old")
    assert same(picture(generate(model), generate), plain)


def test_json_report(built_program, generate, model):
    done = generate(model, "--json", "-", "--seed", 3)
    report = json.loads(done.stdout)
    assert report["pictures"] == [str(generate.out / "out.png")]
    assert report["seed"] == 3 and report["seeds"] == [3] and report["steps"] == 2
    assert report["size"] == "8x6" and report["caption"] == tiny.CAPTION
    assert report["model"] == str(model) and report["preset"] == "quality"
    assert report["guidance"] is None and report["noise"] is None and report["loras"] == []
    version = subprocess.check_output([built_program("octet"), "--version"], text=True)
    assert version == f"octet {report['version']} ({report['commit']})\n"
    assert report["checkpoint"] == picture(done, generate).text["checkpoint"]
    by_layer = {use["layer"]: use for use in report["kernels"]}
    assert by_layer["attention.qkv"]["path"] == "int8" and by_layer["attention.qkv"]["kernel"]
    assert by_layer["input_proj"]["path"] == "bf16" and by_layer["input_proj"]["kernel"] is None
    assert {"gemm", "attention", "convolution"} <= {op["op"] for op in report["ops"]}


@pytest.mark.parametrize("layout", ["fused", "sharded"])
def test_other_layouts_on_disk(generate, copy, plain, layout):
    if layout == "sharded":
        index = shard(copy)
        assert len(list(index.parent.glob("*.safetensors"))) > 1
    else:
        for part in ("transformer", "unconditional_transformer"):
            path = weights_of(copy / part)
            rewrite(path, path.read_bytes())
        tiny.rewrite_transformers(copy, fused=True)
    assert same(picture(generate(copy), generate), plain)


@pytest.mark.parametrize(
    ("flag", "part"),
    [
        ("--uncond", "unconditional_transformer"),
        ("--text-encoder", "text_encoder"),
        ("--vae", "vae"),
    ],
)
def test_a_part_from_elsewhere(generate, model, plain, tmp_path, flag, part):
    other = tiny.save_pipeline(tmp_path / "other", SHAPE, seed=50)
    named = picture(generate(model, flag, other / part), generate)
    assert same(picture(generate(model, flag, other), generate), named)
    assert not same(named, plain)
    assert named.text["checkpoint"] != plain.text["checkpoint"]
    again = picture(generate(model, flag, model / part), generate)
    assert same(again, plain) and again.text["checkpoint"] == plain.text["checkpoint"]


def test_one_changed_number_is_another_checkpoint(generate, copy, plain):
    def edit(tensors):
        tensors["layers.0.attention.to_q.weight"][0, 0] += 0.001

    edit_tensors(copy / "transformer", edit)
    assert picture(generate(copy), generate).text["checkpoint"] != plain.text["checkpoint"]


def test_linears_in_floating_point(generate, model, plain):
    done = generate(model, "--linears", "float", "--json", "-")
    assert all(use["path"] == "bf16" for use in json.loads(done.stdout)["kernels"])
    unquantized = picture(done, generate)
    apart = np.abs(pixels(unquantized) - pixels(plain))
    assert 0 < apart.mean() < 10  # INT8 of 32 channels and two steps that guidance magnifies


def test_attention_in_int8(generate, model, plain):
    images = [picture(generate(model, "--attention", way), generate)
              for way in ("bf16", "int8", "int8-full")]
    assert same(images[0], plain)
    assert not same(images[1], plain) and not same(images[2], images[1])


def test_activations_in_f32(generate, model, plain):
    wide = picture(generate(model, "--dtype", "f32"), generate)
    assert 0 < np.abs(pixels(wide) - pixels(plain)).mean() < 10


def test_the_official_convention_has_statistics_of_its_own(generate, tmp_path):
    """They are for 128 channels, as the real model has, whose pictures have 256 pixels at least."""
    folder = tiny.save_pipeline(tmp_path / "wide", tiny.SHAPES["wide"])
    made = {}
    for convention in ("official", "diffusers"):
        flags = ("--convention", convention, "--size", "256x256", "--steps", 1, "--threads", 2)
        made[convention] = picture(generate(folder, *flags), generate)
    assert made["official"].size == (256, 256)
    assert not same(made["official"], made["diffusers"])


def test_caption_from_a_file(generate, model, plain, tmp_path):
    path = tmp_path / "caption.json"
    path.write_text(json.dumps(json.loads(tiny.CAPTION), indent=2, ensure_ascii=False))
    image = picture(generate(model, "--caption", path), generate)
    assert image.text["caption"] == tiny.CAPTION  # in the form that the model knows
    assert same(image, plain)


def test_wrapped_text(generate, model, plain):
    image = picture(generate(model, "--wrap-text", caption="a red cube"), generate)
    assert json.loads(image.text["caption"])["high_level_description"] == "a red cube"
    assert not same(image, plain)


def test_a_prompt_is_wrapped_text(generate, model, tmp_path):
    wrapped = picture(generate(model, "--wrap-text", caption="a red cube"), generate)
    for flag in ("--prompt", "-p"):
        image = picture(generate(model, "--caption", None, flag, "a red cube"), generate)
        assert image.text == wrapped.text and same(image, wrapped)


def test_a_caption_in_the_place_of_a_file_or_prompt(generate, model, plain):
    for flag, before in itertools.product(("--caption", "--prompt"), ("", " \n", "\ufeff")):
        done = generate(model, "--caption", None, flag, before + tiny.CAPTION)
        image = picture(done, generate)
        assert same(image, plain) and image.text["caption"] == tiny.CAPTION


def test_any_caption(generate, model, plain):
    other = json.dumps({"scene": "a red cube", "parts": [1, {"type": "cube"}]}, indent=1)
    refused = generate(model, caption=other)
    (sentence,) = refused.stderr.splitlines()
    assert refused.returncode == 1 and "--any-caption" in sentence
    assert "warnings: $: unknown keys" in sentence  # also seen before the errors are mended
    done = generate(model, "--any-caption", caption=other)
    assert "standard input: $: unknown keys" in done.stderr
    assert "$.compositional_deconstruction: is missing" in done.stderr
    done.stderr = ""  # the warning
    image = picture(done, generate)
    assert image.text["caption"] == '{"scene":"a red cube","parts":[1,{"type":"cube"}]}'
    done = generate(model, "--any-caption", caption="a red cube\n")
    assert "--prompt" in done.stderr
    done.stderr = ""
    assert picture(done, generate).text["caption"] == "a red cube"
    # It changes nothing of a valid one.
    assert same(picture(generate(model, "--any-caption"), generate), plain)


def test_an_unknown_key_is_a_warning(generate, model):
    caption = json.loads(tiny.CAPTION)
    caption["compositional_deconstruction"]["canvas"] = "square"
    done = generate(model, caption=json.dumps(caption, ensure_ascii=False))
    assert len(done.stderr.splitlines()) == 1 and '"canvas"' in done.stderr
    done.stderr = ""
    assert json.loads(picture(done, generate).text["caption"]) == caption


def test_sizes_outside_of_the_documented_range_are_warned_of(generate, tmp_path):
    folder = tiny.save_pipeline(tmp_path / "wide", tiny.SHAPES["wide"])
    flags = ("--convention", "official", "--steps", 1, "--guidance", 1)
    for size in ("16x32", "16x2064"):
        done = generate(folder, *flags, "--size", size)
        assert len(done.stderr.splitlines()) == 1
        assert f"image size: {size} is" in done.stderr and "256 to 2048" in done.stderr
        done.stderr = ""
        assert "x".join(map(str, picture(done, generate).size)) == size


def test_guidance(generate, model, plain):
    """Of two steps, the preset guides the first by 7 and polishes the second with 3."""
    assert same(picture(generate(model, "--guidance", "7,3"), generate), plain)
    assert not same(picture(generate(model, "--guidance", "7"), generate), plain)
    unguided = generate(model, "--guidance", "1", "--json", "-")
    by_layer = {use["layer"]: use for use in json.loads(unguided.stdout)["kernels"]}
    assert by_layer["attention.qkv"]["launches"] == 4  # of one transformer
    assert not same(picture(unguided, generate), plain)


def test_without_guidance_the_other_transformer_need_not_be_there(generate, copy, plain):
    unguided = picture(generate(copy, "--guidance", "1,1"), generate)
    shutil.rmtree(copy / "unconditional_transformer")
    assert "--uncond" in refusal(generate(copy), generate)
    alone = picture(generate(copy, "--guidance", "1"), generate)
    assert same(alone, unguided) and not same(alone, plain)
    assert alone.text["checkpoint"] == unguided.text["checkpoint"] != plain.text["checkpoint"]
    # One guided step is enough to need it, and what is never run is not looked at.
    assert "--uncond" in refusal(generate(copy, "--guidance", "1,2"), generate)
    for unused in (copy / "nowhere", "owner/not-pulled"):
        nowhere = generate(copy, "--guidance", "1", "--uncond", unused)
        assert same(picture(nowhere, generate), alone)


def test_required_int8(generate, model):
    sentence = refusal(generate(model, "--require-int8", "--device", "ref"), generate)
    assert "--require-int8" in sentence
    environment = {"OCTET_FORCE_KERNEL": "scalar_4x16"}
    done = generate(model, "--require-int8", environment=environment)
    assert "scalar_4x16" in refusal(done, generate)
    assert picture(generate(model, environment=environment), generate).size == (8, 6)
    done = generate(model, "--require-int8", "--linears", "float")
    assert "--linears" in refusal(done, generate, code=2)


def test_other_kernels_give_the_same_picture(generate, model):
    """Their integer sums are exact; the norms that go with them sum floats in another order, which
    may move a value next to a half to the neighbouring code or byte."""
    flags = ("--dtype", "f32")
    best = picture(generate(model, *flags), generate)
    scalar = generate(model, *flags, environment={"OCTET_FORCE_KERNEL": "scalar_4x16"})
    assert np.abs(pixels(picture(scalar, generate)) - pixels(best)).max() <= 1


@pytest.mark.parametrize("prefix", ["model.language_model.", "model.", ""])
def test_text_encoders_of_other_writers(generate, copy, plain, prefix):
    def rename(tensors):
        for name in [name for name in tensors if name.startswith("language_model.")]:
            tensors[prefix + name.removeprefix("language_model.")] = tensors.pop(name)

    edit_tensors(copy / "text_encoder", rename)
    assert same(picture(generate(copy), generate), plain)


def test_one_number_is_a_square(generate, model):
    assert picture(generate(model, "--size", 8), generate).size == (8, 8)


def test_given_noise(generate, model, plain, tmp_path):
    """As diffusers takes it; the same noise gives the same picture, whatever the seed."""
    channels = SHAPE.token_channels
    noise = torch.randn(1, 3 * 4, channels, generator=torch.Generator().manual_seed(3))
    save_file({"noise": noise}, tmp_path / "noise.safetensors")
    given = ("--noise", tmp_path / "noise.safetensors")
    first = picture(generate(model, *given), generate)
    assert first.text["noise"].endswith("noise.safetensors") and "seed" not in first.text
    assert same(first, picture(generate(model, *given, "--seed", 9), generate))
    assert not same(first, plain)
    done = generate(model, *given, "-n", 2)
    assert done.returncode == 2 and "makes one picture, got 2" in done.stderr
    odd = os.fsdecode(os.fsencode(tmp_path) + b"/odd\xff.safetensors")  # PNG takes UTF-8 alone
    shutil.copy(tmp_path / "noise.safetensors", odd)
    text = picture(generate(model, "--noise", odd), generate).text
    assert text["noise"].endswith(r"odd\xff.safetensors")
    for tensors in (
        {"noise": noise[:, 1:].contiguous()},
        {"noise": noise.bfloat16()},
        {"noise": noise * float("nan")},
        {"noise": torch.zeros(0, 0)},
        {"a": noise[0], "b": noise[0].clone()},
    ):
        save_file(tensors, tmp_path / "noise.safetensors")
        assert "noise" in refusal(generate(model, *given), generate)
    assert "noise" in refusal(generate(model, *given, "-n", 2), generate)
