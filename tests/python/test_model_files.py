"""`octet generate` with transformers as single files: names, prefixes, branches, bases; and what it
says of files that are not what they should be."""

from __future__ import annotations

import os
from dataclasses import replace

import dialect_files
import pytest

pytest.importorskip("diffusers")
pytest.importorskip("transformers")

import tiny_ideogram4 as tiny
import torch
from generating import (
    generate,  # noqa: F401: a fixture
    model,  # noqa: F401: a fixture
    picture,
    refusal,
    weights_of,
)
from model_files import (
    PARTS,
    SHAPE,
    apart,
    metadata_config,
    modules_of,
    prefixed,
    quantized,
    same,
    save,
    tensors_of,
    whole,  # noqa: F401: a fixture
    write_gguf,
)

# Of pixels, whose range is 255: both weights and activations in 8 bits over two guided steps.
INT8_PIXELS = 10


@pytest.fixture
def plain(generate, whole):  # noqa: F811
    return picture(generate(whole), generate)


def both(folder, make):
    """Files of both branches; make(tensors) gives the tensors of each."""
    files = []
    for branch in PARTS:
        files.append(save(folder / f"{branch}.safetensors", make(branch)))
    return files


@pytest.mark.parametrize(
    "prefix", ["", "model.diffusion_model.", "diffusion_model.", "transformer."]
)
@pytest.mark.parametrize("fused", [False, True], ids=["split", "fused"])
def test_single_files(generate, whole, plain, tmp_path, prefix, fused):  # noqa: F811
    """Without a config.json but that of the base, which then is the published one by the shapes."""

    def make(branch):
        tensors = tensors_of(whole, branch)
        return prefixed(prefix, tiny.fuse_attention(tensors) if fused else tensors)

    conditional, unconditional = both(tmp_path, make)
    made = picture(generate(conditional, "--uncond", unconditional, "--base", whole), generate)
    assert same(made, plain)
    bare = ("--text-encoder", whole, "--vae", whole)
    made = picture(generate(conditional, "--uncond", unconditional, *bare), generate)
    assert same(made, plain)


def test_the_weights_are_those_of_the_file(generate, whole, plain, tmp_path):  # noqa: F811
    """Not those of the base, in each of the branches."""
    for branch, flag in (("conditional", None), ("unconditional", "--uncond")):
        tensors = tensors_of(whole, branch)
        tensors["layers.1.attention.to_v.weight"] *= -1
        path = save(tmp_path / f"{branch}.safetensors", tensors)
        flags = ("--base", whole) if flag is None else (flag, path)
        made = picture(generate(path if flag is None else whole, *flags), generate)
        assert not same(made, plain)


def test_settings_in_the_metadata(generate, model, tmp_path):  # noqa: F811
    """A model whose rotary settings no shape shows: its files say them, or the run is refused."""
    plain = picture(generate(model), generate)
    tensors = {branch: tensors_of(model, branch) for branch in PARTS}
    paths = {branch: tmp_path / f"{branch}.safetensors" for branch in PARTS}
    for branch in PARTS:
        save(paths[branch], tensors[branch], metadata_config(model))
    flags = ("--uncond", paths["unconditional"], "--text-encoder", model, "--vae", model)
    assert same(picture(generate(paths["conditional"], *flags), generate), plain)
    save(paths["conditional"], tensors["conditional"])
    sentence = refusal(generate(paths["conditional"], *flags), generate)
    assert "conditional.safetensors" in sentence and "mrope_section" in sentence
    for broken in ("{", "[]", '{"num_layers": -1}', "\x1b[2J"):
        save(paths["conditional"], tensors["conditional"], {"octet.config": broken})
        sentence = refusal(generate(paths["conditional"], *flags), generate)
        assert "octet.config" in sentence and "\x1b" not in sentence


def transformer_lab(tensors, protected):
    """Quantized linears and the protected ones; neither norms nor the rest."""
    fused = tiny.fuse_attention(tensors)
    modules = modules_of(fused)
    chosen = [module for module in modules if module not in protected]
    stored = quantized(fused, dialect_files.transformer_lab, chosen)
    return {
        name: tensor
        for name, tensor in stored.items()
        if any(name.startswith(module + ".") for module in modules)
    }


def test_a_file_of_transformer_lab_over_its_base(generate, whole, plain, tmp_path):  # noqa: F811
    """Both branches in one file, without norms. The base has other weights for what the file has,
    so that those cannot be the ones that are used."""
    other = tiny.save_pipeline(tmp_path / "other", SHAPE, dtype=torch.bfloat16)
    for branch, part in PARTS.items():
        tensors = tensors_of(whole, branch)
        for module in modules_of(tensors):
            tensors[module + ".weight"] *= 0.5
        save(weights_of(other / part), tensors)
    protected = ["layers.0.feed_forward.w2"]
    tensors = {}
    for branch in PARTS:
        stored = transformer_lab(tensors_of(whole, branch), protected)
        tensors |= prefixed(f"{branch}.", stored)
    path = save(tmp_path / "both.safetensors", tensors)
    made = picture(generate(path, "--base", other), generate)
    assert 0 < apart(made, plain) < INT8_PIXELS
    # Not joined by anything of the base's that the file has.
    assert not same(made, picture(generate(other), generate))
    sentence = refusal(generate(path, "--text-encoder", whole, "--vae", whole), generate)
    assert "both.safetensors" in sentence and "--base" in sentence
    # A base that is one transformer cannot give what the other lacks.
    single = weights_of(whole / "transformer")
    flags = ("--base", single, "--text-encoder", whole, "--vae", whole)
    assert "both.safetensors" in refusal(generate(path, *flags), generate)


def test_a_gguf_with_both_branches(generate, whole, plain, tmp_path):  # noqa: F811
    pytest.importorskip("gguf")
    tensors = {}
    for branch, prefix in (("conditional", "cond."), ("unconditional", "uncond.")):
        tensors |= prefixed(prefix, tiny.fuse_attention(tensors_of(whole, branch)))
    path = write_gguf(tmp_path / "both.gguf", tensors)
    made = picture(generate(path, "--base", whole), generate)
    assert 0 < apart(made, plain) < INT8_PIXELS
    for name in [name for name in tensors if name.startswith("uncond.")]:
        del tensors[name]
    path = write_gguf(tmp_path / "one.gguf", tensors)
    again = picture(generate(path, "--base", whole), generate)
    assert not same(again, made) and apart(again, plain) < INT8_PIXELS
    flags = ("--text-encoder", whole, "--vae", whole)
    assert "--uncond" in refusal(generate(path, *flags), generate)


@pytest.mark.parametrize("fused_file", [False, True], ids=["split over fused", "fused over split"])
def test_a_layout_over_the_other(generate, whole, plain, tmp_path, fused_file):  # noqa: F811
    """The file has attention alone, in its layout; the base has it too, v negated, in the other."""
    base = tiny.save_pipeline(tmp_path / "base", SHAPE, dtype=torch.bfloat16)
    files = []
    for branch, part in PARTS.items():
        tensors = tensors_of(whole, branch)
        in_base = {
            name: -tensor if ".attention.to_v" in name else tensor
            for name, tensor in tensors.items()
        }
        save(weights_of(base / part), in_base if fused_file else tiny.fuse_attention(in_base))
        in_file = tiny.fuse_attention(tensors) if fused_file else tensors
        attention = {name: t for name, t in in_file.items() if ".attention." in name}
        files.append(save(tmp_path / f"{branch}.safetensors", attention))
    assert not same(picture(generate(base), generate), plain)
    made = picture(generate(files[0], "--uncond", files[1], "--base", base), generate)
    assert same(made, plain)


def test_a_plain_file_over_an_int8_base(generate, whole, plain, tmp_path):  # noqa: F811
    """The base protects nothing of the file: its linears are converted as without that base."""
    base = tiny.save_pipeline(tmp_path / "base", SHAPE, dtype=torch.bfloat16)
    for branch, part in PARTS.items():
        stored = quantized(tensors_of(whole, branch), dialect_files.transformer_lab)
        save(weights_of(base / part), stored)
    conditional, unconditional = (weights_of(whole / part) for part in PARTS.values())
    made = picture(generate(conditional, "--uncond", unconditional, "--base", base), generate)
    assert same(made, plain)
    assert "attention.qkv int8" in made.text["kernels"]


# --- what is refused -----------------------------------------------------------------------------


@pytest.fixture
def run_file(generate, whole, tmp_path):  # noqa: F811
    """run_file(edit) on the conditional transformer as a file; the sentence of the refusal."""

    def run(edit, **metadata):
        tensors = tensors_of(whole)
        edit(tensors)
        path = save(tmp_path / "one.safetensors", tensors, metadata or None)
        flags = ("--uncond", whole, "--text-encoder", whole, "--vae", whole)
        sentence = refusal(generate(path, *flags), generate)
        assert "one.safetensors" in sentence
        return sentence

    return run


@pytest.mark.parametrize(
    ("names", "hint"),
    [
        (["layers.0.attention.to_q.lora_A.weight"], "--lora"),
        (["layers.0.attention.to_q.qweight", "layers.0.attention.to_q.qzeros"], "GPTQ"),
        (["layers.0.attention.to_q.weight_packed"], "packed"),
        (["layers.0.attention.to_z.weight", "extra"], "octet inspect"),
        (["layers.2.attention_norm1.weight"], "octet inspect"),  # of a layer that is not there
        (["vision.layers.0.weight"], "octet inspect"),
    ],
)
def test_tensors_of_no_use(run_file, names, hint):
    sentence = run_file(lambda tensors: tensors.update({n: torch.ones(2, 2) for n in names}))
    assert hint in sentence
    assert all(f'"{name}"' in sentence for name in names)
    assert f"{len(names)} tensor" in sentence


def test_tensors_outside_of_the_prefix(run_file):
    """They belong to nothing, unless they are of other parts of a model, as ComfyUI keeps them."""

    def edit(tensors):
        for name in list(tensors):
            tensors[f"diffusion_model.{name}"] = tensors.pop(name)
        tensors["vae.decoder.conv_in.weight"] = torch.ones(1)
        tensors["layer.7"] = torch.ones(1)

    sentence = run_file(edit)
    assert '"layer.7"' in sentence and "vae.decoder" not in sentence


def test_many_tensors_of_no_use_are_cut(run_file):
    many = {f"junk.{i}\x1b": torch.ones(1) for i in range(30)}
    sentence = run_file(lambda tensors: tensors.update(many))
    assert "22 more" in sentence and "\x1b" not in sentence and len(sentence) < 1000


@pytest.mark.parametrize(
    "name",
    [
        "layers.1.attention.to_k.weight",
        "layers.0.ffn_norm2.weight",
        "llm_cond_proj.weight",
        "llm_cond_norm.weight",
        "input_proj.bias",
        "final_layer.linear.weight",
        "embed_image_indicator.weight",
    ],
)
def test_missing_tensors(run_file, name):
    assert name.removesuffix(".weight") in run_file(lambda tensors: tensors.pop(name))


def test_half_of_a_layout(run_file):
    """q and k without v: the base's fused weight is no reason to pass over them."""
    sentence = run_file(lambda tensors: tensors.pop("layers.0.attention.to_v.weight"))
    assert "to_v" in sentence


def test_text_weights_in_the_unconditional_file(generate, whole, plain, tmp_path):  # noqa: F811
    tensors = tensors_of(whole, "unconditional")
    assert "llm_cond_proj.weight" in tensors
    for edited in (tensors, {n: t for n, t in tensors.items() if not n.startswith("llm_cond_")}):
        path = save(tmp_path / "unconditional.safetensors", edited)
        assert same(picture(generate(whole, "--uncond", path), generate), plain)


def test_the_wrong_branch(generate, whole, tmp_path):  # noqa: F811
    tensors = tensors_of(whole)
    for prefix in ("unconditional.", "uncond.", "unconditional_transformer."):
        path = save(tmp_path / "one.safetensors", prefixed(prefix, tensors))
        sentence = refusal(generate(path, "--base", whole), generate)
        assert "one.safetensors" in sentence and "the conditional network" in sentence
    path = save(tmp_path / "one.safetensors", prefixed("conditional.", tensors))
    sentence = refusal(generate(whole, "--uncond", path), generate)
    assert "one.safetensors" in sentence and "the unconditional network" in sentence


def test_one_file_for_both(generate, whole, tmp_path, monkeypatch):  # noqa: F811
    path = save(tmp_path / "one.safetensors", tensors_of(whole))
    os.symlink(path, tmp_path / "link.safetensors")
    monkeypatch.chdir(tmp_path)
    for other in (path, tmp_path / "link.safetensors", "one.safetensors", "./one.safetensors"):
        sentence = refusal(generate(path, "--uncond", other, "--base", whole), generate)
        assert "was taken for both networks" in sentence and "--uncond" in sentence
    flags = ("--text-encoder", whole, "--vae", whole)
    for base in ((), ("--base", path)):
        assert "--uncond" in refusal(generate(path, *flags, *base), generate)


def test_a_file_alone_names_what_it_lacks(generate, whole):  # noqa: F811
    path = weights_of(whole / "transformer")
    sentence = refusal(generate(path, "--uncond", whole), generate)
    assert "--base" in sentence and "text_encoder" in sentence


def test_transformers_of_two_sizes(generate, whole, tmp_path):  # noqa: F811
    """A smaller one guides as well. Of a latent that is another it can say nothing."""
    wider = replace(SHAPE, latent_channels=2 * SHAPE.latent_channels)
    tiny.make_transformer(wider, 1).save_pretrained(tmp_path / "wider")
    sentence = refusal(generate(whole, "--uncond", tmp_path / "wider"), generate)
    channels = SHAPE.token_channels
    assert f"latents of {channels} and {2 * channels} channels" in sentence
    smaller = replace(SHAPE, layers=1, heads=2, head_dim=64, ffn=48, mrope_section=(8, 8, 8))
    tiny.make_transformer(smaller, 1).save_pretrained(tmp_path / "smaller")
    guided = picture(generate(whole, "--uncond", tmp_path / "smaller"), generate)
    assert not same(guided, picture(generate(whole, "--guidance", 1), generate))


def test_a_base_that_is_not_there(generate, whole, tmp_path):  # noqa: F811
    path = weights_of(whole / "transformer")
    sentence = refusal(generate(path, "--base", tmp_path / "nowhere"), generate)
    assert "nowhere" in sentence
