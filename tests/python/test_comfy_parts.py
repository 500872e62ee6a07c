"""Single files for every part, as users of ComfyUI have them: no folders and, where shapes tell
enough, no config.json. They give the picture of the folder that they were made from."""

from __future__ import annotations

import dataclasses
import json
import re
import shutil
import subprocess

import pytest

pytest.importorskip("diffusers")
pytest.importorskip("transformers")

import dialect_files
import numpy as np
import reference
import tiny_ideogram4 as tiny
import torch
from generating import (
    generate,  # noqa: F401: a fixture
    picture,
    refusal,
    weights_of,
)
from safetensors.torch import load_file, save_file
from test_parity import TEXT_F32, relative_error, run_model  # noqa: F401: a fixture

# Three levels of differing width, attention, 1x1 convolutions; a token is 8 x 8 pixels.
DEEP = tiny.SHAPES["deep"]
# The published VAE's structure and groups with fewer channels, so that shapes tell the rest.
PUBLISHED_VAE = dataclasses.replace(
    tiny.SHAPES["wide"],
    vae_channels=(32, 32, 64, 64),
    vae_decoder_channels=(32, 64, 64, 96),
    vae_groups=32,
)
SIZE = ("--size", "32x16")


def author_name(name: str, levels: int) -> str:
    """The name that FLUX.2's authors give to a tensor of diffusers' VAE."""
    if name.startswith("post_quant_conv."):
        return "decoder." + name
    if name.startswith("quant_conv."):
        return "encoder." + name
    if not name.startswith("decoder."):
        return name
    at = name.removeprefix("decoder.")
    if found := re.fullmatch(r"mid_block\.resnets\.(\d)\.(.+)", at):
        at = f"mid.block_{int(found[1]) + 1}.{found[2]}"
    elif found := re.fullmatch(r"mid_block\.attentions\.0\.(.+)\.(\w+)", at):
        parts = {"group_norm": "norm", "to_q": "q", "to_k": "k", "to_v": "v"}
        at = f"mid.attn_1.{parts.get(found[1], 'proj_out')}.{found[2]}"
    elif found := re.fullmatch(r"up_blocks\.(\d)\.resnets\.(\d)\.(.+)", at):
        rest = found[3].replace("conv_shortcut", "nin_shortcut")
        at = f"up.{levels - 1 - int(found[1])}.block.{found[2]}.{rest}"
    elif found := re.fullmatch(r"up_blocks\.(\d)\.upsamplers\.0\.(.+)", at):
        at = f"up.{levels - 1 - int(found[1])}.upsample.{found[2]}"
    elif at.startswith("conv_norm_out."):
        at = at.removeprefix("conv_")
    return "decoder." + at


def in_names_of_authors(tensors):
    levels = len({name.split(".")[2] for name in tensors if name.startswith("decoder.up_blocks.")})
    renamed = {}
    for name, tensor in tensors.items():
        theirs = author_name(name, levels)
        is_projection = ".attn_1." in theirs and tensor.dim() == 2
        renamed[theirs] = tensor[:, :, None, None].contiguous() if is_projection else tensor
    return renamed


def in_names_of_comfy(tensors):
    """Of a text encoder: that of a model with a head."""
    renamed = {"lm_head.weight": torch.zeros(4, 4)}
    for name, tensor in tensors.items():
        renamed["model." + name.removeprefix("language_model.")] = tensor
    return renamed


def write(path, tensors, **metadata):
    path.parent.mkdir(exist_ok=True, parents=True)
    save_file(tensors, path, metadata={"format": "pt", **metadata})
    return path


class Files:
    """The parts of a model as files; their flags."""

    def __init__(self, model, folder, configured=("text", "vae")):
        self.model = model
        for part in ("transformer", "unconditional_transformer"):
            # The tiny networks' rotary bases are not the published ones: said in the metadata.
            config = (model / part / "config.json").read_text()
            tensors = tiny.fuse_attention(load_file(weights_of(model / part)))
            write(folder / "dit" / f"{part}.safetensors", tensors, **{"octet.config": config})
        text = load_file(weights_of(model / "text_encoder"))
        vae = load_file(weights_of(model / "vae"))
        self.transformer = folder / "dit" / "transformer.safetensors"
        self.unconditional = folder / "dit" / "unconditional_transformer.safetensors"
        self.text = write(folder / "text" / "qwen3vl.safetensors", in_names_of_comfy(text))
        self.vae = write(folder / "vae" / "flux2-vae.safetensors", in_names_of_authors(vae))
        self.tokenizer = folder / "tokenizer.json"
        shutil.copy(model / "tokenizer" / "tokenizer.json", self.tokenizer)
        for name, part in (("text", "text_encoder"), ("vae", "vae")):
            if name in configured:
                shutil.copy(model / part / "config.json", folder / name)

    def flags(self):
        chosen = {
            "--uncond": self.unconditional,
            "--text-encoder": self.text,
            "--vae": self.vae,
            "--tokenizer": self.tokenizer,
        }
        return [word for pair in chosen.items() for word in pair] + list(SIZE)


@pytest.fixture(scope="module")
def deep(tmp_path_factory):
    return tiny.save_pipeline(tmp_path_factory.mktemp("deep"), DEEP)


@pytest.fixture(scope="module")
def published_vae(tmp_path_factory):
    return tiny.save_pipeline(tmp_path_factory.mktemp("published"), PUBLISHED_VAE)


@pytest.fixture
def files(deep, tmp_path):
    return Files(deep, tmp_path / "files")


def edit(path, change):
    tensors = load_file(path)
    change(tensors)
    write(path, tensors)


def same(first, second):
    return np.array_equal(np.asarray(first), np.asarray(second))


def test_the_picture_of_the_folder(generate, deep, files):  # noqa: F811
    whole = picture(generate(deep, *SIZE), generate)
    assert len(np.unique(np.asarray(whole))) > 20
    assert same(picture(generate(files.transformer, *files.flags()), generate), whole)


@pytest.mark.parametrize("names", ["authors", "authors, root", "diffusers"])
def test_a_vae_without_configuration(generate, published_vae, tmp_path, names):  # noqa: F811
    files = Files(published_vae, tmp_path / "files", configured=("text",))
    if names == "diffusers":
        write(files.vae, load_file(weights_of(published_vae / "vae")))
    elif names == "authors, root":  # as ComfyUI's own code also takes it

        def to_root(tensors):
            for kind in ("weight", "bias"):
                stored = tensors.pop(f"decoder.post_quant_conv.{kind}")
                tensors[f"post_quant_conv.{kind}"] = stored

        edit(files.vae, to_root)
    whole = picture(generate(published_vae, *SIZE), generate)
    assert same(picture(generate(files.transformer, *files.flags()), generate), whole)


def test_where_a_tokenizer_is_found(generate, deep, files, tmp_path):  # noqa: F811
    whole = picture(generate(deep, *SIZE), generate)
    flags = files.flags()
    at = flags.index("--tokenizer")

    def made(*words):
        return picture(generate(files.transformer, *flags[:at], *flags[at + 2 :], *words), generate)

    sentence = refusal(generate(files.transformer, *flags[:at], *flags[at + 2 :]), generate)
    assert "tokenizer.json" in sentence and "--tokenizer" in sentence
    for given in (deep, deep / "tokenizer"):
        assert same(made("--tokenizer", given), whole)
    assert same(made("--base", deep), whole)
    shutil.copy(files.tokenizer, files.text.parent)
    assert same(made(), whole)
    for given in (tmp_path / "nowhere", files.vae.parent):
        words = (*flags[: at + 1], given, *flags[at + 2 :])
        assert str(given) in refusal(generate(files.transformer, *words), generate)


@pytest.mark.parametrize("flag", ["--uncond", "--text-encoder", "--vae"])
def test_a_part_that_nobody_gave(generate, files, flag):  # noqa: F811
    flags = files.flags()
    at = flags.index(flag)
    sentence = refusal(generate(files.transformer, *flags[:at], *flags[at + 2 :]), generate)
    assert flag in sentence and str(files.transformer) in sentence


@pytest.mark.parametrize("part", ["text", "vae"])
def test_shapes_that_do_not_tell_enough(generate, files, part):  # noqa: F811
    path = getattr(files, part)
    (path.parent / "config.json").unlink()
    sentence = refusal(generate(files.transformer, *files.flags()), generate)
    assert str(path) in sentence and "config.json" in sentence


@pytest.mark.parametrize(
    "name",
    [
        "decoder.up.2.block.0.conv1.weight",
        "decoder.up.0.block.0.nin_shortcut.bias",
        "decoder.mid.attn_1.q.weight",
        "decoder.mid.attn_1.norm.bias",
        "decoder.norm_out.weight",
        "decoder.post_quant_conv.bias",
        "bn.running_var",  # of the convention that reads it
    ],
)
def test_a_tensor_that_a_vae_lacks(generate, files, name):  # noqa: F811
    edit(files.vae, lambda tensors: tensors.pop(name))
    sentence = refusal(generate(files.transformer, *files.flags()), generate)
    assert name in sentence and str(files.vae) in sentence


def test_tensors_without_a_place(generate, files):  # noqa: F811
    edit(files.vae, lambda tensors: tensors.update({"decoder.up.2.attn.0.q": torch.zeros(2)}))
    sentence = refusal(generate(files.transformer, *files.flags()), generate)
    assert "decoder.up.2.attn.0.q" in sentence and "no place" in sentence


def test_files_of_other_parts(generate, files):  # noqa: F811
    flags = files.flags()
    for flag, other in (
        ("--vae", files.text),
        ("--vae", files.transformer),
        ("--text-encoder", files.vae),
        ("--text-encoder", files.transformer),
        ("--tokenizer", files.vae),
    ):
        words = list(flags)
        words[words.index(flag) + 1] = other
        assert str(other.parent) in refusal(generate(files.transformer, *words), generate)


def older(weight):
    """ComfyUI's FP8 before its files described themselves."""
    tensors, meant = dialect_files.comfy_fp8(weight)
    return {"weight": tensors["weight"], "scale_weight": tensors["weight_scale"]}, meant


@pytest.mark.parametrize("writer", [dialect_files.comfy_fp8, older])
def test_fp8_of_a_text_encoder(run_model, deep, tmp_path, writer):  # noqa: F811
    """Linears of the language tower; embedding, head and vision tower stay as they were."""
    pytest.importorskip("comfy_kitchen", reason="comfy_kitchen has no wheel for this machine")
    plain = load_file(weights_of(deep / "text_encoder"))
    stored, meant = {}, {}
    for name, tensor in in_names_of_comfy(plain).items():
        if name.startswith("model.layers.") and name.endswith("_proj.weight"):
            tensors, meant[name] = writer(tensor)
            module = name.removesuffix("weight")
            stored |= {module + suffix: value.contiguous() for suffix, value in tensors.items()}
        else:
            stored[name] = meant[name] = tensor
    if writer is older:
        stored["scaled_fp8"] = torch.zeros(2, dtype=torch.float8_e4m3fn)
    features = {}
    ids = torch.arange(3, 40, 4, dtype=torch.int32)
    for kind, tensors in (("fp8", stored), ("meant", meant), ("plain", plain)):
        path = write(tmp_path / kind / "text_encoder" / "qwen3vl.safetensors", tensors)
        shutil.copy(deep / "text_encoder" / "config.json", path.parent)
        features[kind] = run_model("text", tmp_path / kind, {"ids": ids})["features"]
    assert relative_error(features["fp8"], features["meant"]) < TEXT_F32
    assert relative_error(features["fp8"], features["plain"]) > 100 * TEXT_F32
    theirs = reference.load(deep, torch.float32)
    state = {
        name.replace("model.visual.", "visual.").replace("model.", "language_model."): tensor
        for name, tensor in meant.items()
        if name != "lm_head.weight"
    }
    theirs.text_encoder.load_state_dict(state)
    assert relative_error(features["fp8"], reference.text_features(theirs, ids)) < TEXT_F32


def inspected(built_program, path):
    command = [built_program("octet"), "inspect", path, "--json", "-"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def test_inspecting_a_part(built_program, files):
    for path, part in ((files.text, "text_encoder"), (files.vae, "vae")):
        shown = inspected(built_program, path)
        assert [each["part"] for each in shown["parts"]] == [part]
        assert shown["parts"][0]["memory_bytes"] > 0
        assert len(shown["tensors"]) == len(load_file(path))
        # Of a part that cannot be told, there are still tensors to list.
        (path.parent / "config.json").unlink()
        shown = inspected(built_program, path)
        assert "parts" not in shown and len(shown["tensors"]) == len(load_file(path))
