"""`octet generate` with everything wrong: one sentence that names the culprit, and no file."""

from __future__ import annotations


import pytest

pytest.importorskip("diffusers")
pytest.importorskip("transformers")

import tiny_ideogram4 as tiny
import torch
from generating import (
    copy,  # noqa: F401: a fixture
    edit_json,
    edit_tensors,
    generate,  # noqa: F401: a fixture
    model,  # noqa: F401: a fixture
    refusal,
    rewrite,
    shard,
    weights_of,
)

# A tensor of each kind, and the part it is in.
LINEAR = ("transformer", "layers.1.feed_forward.w2.weight")
KEPT_LINEAR = ("unconditional_transformer", "adaln_proj.weight")
BIAS = ("transformer", "final_layer.linear.bias")
NORM = ("transformer", "layers.0.attention.norm_k.weight")
TEXT_NORM = ("text_encoder", "language_model.layers.35.input_layernorm.weight")
TEXT_LINEAR = ("text_encoder", "language_model.layers.7.mlp.up_proj.weight")
EMBEDDING = ("text_encoder", "language_model.embed_tokens.weight")
ROLES = ("transformer", "embed_image_indicator.weight")
CONV = ("vae", "decoder.conv_in.weight")
GROUP_NORM = ("vae", "decoder.conv_norm_out.bias")
STATISTICS = ("vae", "bn.running_var")
TENSORS = [LINEAR, KEPT_LINEAR, BIAS, NORM, TEXT_NORM, TEXT_LINEAR, EMBEDDING, ROLES, CONV,
           GROUP_NORM, STATISTICS]


# --- tensors -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("part", "name"), TENSORS)
def test_missing_tensor(generate, copy, part, name):
    edit_tensors(copy / part, lambda tensors: tensors.pop(name))
    sentence = refusal(generate(copy), generate)
    assert name in sentence and str(weights_of(copy / part)) in sentence


@pytest.mark.parametrize(("part", "name"), TENSORS)
def test_tensor_of_another_shape(generate, copy, part, name):
    def edit(tensors):
        tensors[name] = torch.cat([tensors[name]] * 2)

    edit_tensors(copy / part, edit)
    sentence = refusal(generate(copy), generate)
    assert name in sentence and str(weights_of(copy / part)) in sentence and "expected" in sentence


@pytest.mark.parametrize(("part", "name"), TENSORS)
def test_tensor_of_another_type(generate, copy, part, name):
    def edit(tensors):
        tensors[name] = tensors[name].to(torch.int32)

    edit_tensors(copy / part, edit)
    sentence = refusal(generate(copy), generate)
    assert name in sentence and "I32" in sentence


@pytest.mark.parametrize("value", ["nan", "inf", "-inf"])
@pytest.mark.parametrize(("part", "name"), TENSORS)
def test_tensor_with_what_is_no_number(generate, copy, part, name, value):
    def edit(tensors):
        tensors[name].view(-1)[-1] = float(value)

    edit_tensors(copy / part, edit)
    sentence = refusal(generate(copy), generate)
    assert name in sentence and "NaN or an infinity" in sentence


def test_negative_variance(generate, copy):
    def edit(tensors):
        tensors["bn.running_var"][3] = -1

    edit_tensors(copy / "vae", edit)
    assert "bn.running_var" in refusal(generate(copy), generate)


@pytest.mark.parametrize("part", ["transformer", "vae"])
def test_numbers_too_large_for_arithmetic(generate, copy, part):
    """Finite weights, and a result that is not."""

    def edit(tensors):
        for name, tensor in tensors.items():
            if tensor.dim() > 1:
                tensor *= 1e37

    edit_tensors(copy / part, edit)
    sentence = refusal(generate(copy, "--dtype", "f32", "--linears", "float"), generate)
    assert "nan" in sentence.lower() or "inf" in sentence


# --- files of weights ----------------------------------------------------------------------------


def test_truncated_shard(generate, copy):
    index = shard(copy)
    victim = sorted(index.parent.glob("*.safetensors"))[1]
    rewrite(victim, victim.read_bytes()[:-7])
    assert str(victim) in refusal(generate(copy), generate)


def test_missing_shard(generate, copy):
    index = shard(copy)
    victim = sorted(index.parent.glob("*.safetensors"))[1]
    victim.unlink()
    sentence = refusal(generate(copy), generate)
    assert str(index) in sentence and victim.name in sentence


@pytest.mark.parametrize("name", ["other.safetensors", "../vae/x.safetensors", 3])
def test_index_that_names_a_wrong_file(generate, copy, name):
    index = shard(copy)

    def edit(value):
        value["weight_map"]["adaln_proj.bias"] = name

    edit_json(index, edit)
    assert str(index) in refusal(generate(copy), generate)


def test_index_that_swaps_tensors(generate, copy):
    index = shard(copy)

    def edit(value):
        shards = sorted(set(value["weight_map"].values()))
        at = shards.index(value["weight_map"]["adaln_proj.bias"])
        value["weight_map"]["adaln_proj.bias"] = shards[at - 1]

    edit_json(index, edit)
    sentence = refusal(generate(copy), generate)
    assert "adaln_proj.bias" in sentence and str(index) in sentence


@pytest.mark.parametrize("part", ["transformer", "text_encoder", "vae"])
@pytest.mark.parametrize("content", [b"", b"not a safetensors file", None])
def test_weights_that_are_none(generate, copy, part, content):
    path = weights_of(copy / part)
    if content is None:
        path.unlink()
    else:
        rewrite(path, content)
    assert str(copy / part) in refusal(generate(copy), generate)


# --- configurations ------------------------------------------------------------------------------

KEYS = [
    ("transformer", "num_layers"),
    ("transformer", "attention_head_dim"),
    ("unconditional_transformer", "intermediate_size"),
    ("text_encoder", "hidden_size"),
    ("text_encoder", "num_hidden_layers"),
    ("vae", "latent_channels"),
    ("vae", "layers_per_block"),
]


@pytest.mark.parametrize("value", [-1, 10**30, "8", 2.5, None, [], {}])
@pytest.mark.parametrize(("part", "key"), KEYS)
def test_wrong_number_in_a_configuration(generate, copy, part, key, value):
    def edit(config):
        config.get("text_config", config)[key] = value

    edit_json(copy / part / "config.json", edit)
    done = generate(copy)
    if value is None and key == "num_hidden_layers":
        assert done.returncode == 0  # the same as the published number
        return
    sentence = refusal(done, generate)
    assert str(copy / part) in sentence
    assert value is None or key in sentence


@pytest.mark.parametrize("part", ["transformer", "unconditional_transformer", "text_encoder",
                                  "vae"])
@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe", b"[]", b'{"a": 1, "a": 2}'])
def test_configuration_that_is_no_json_object(generate, copy, part, content):
    path = copy / part / "config.json"
    rewrite(path, content)
    assert str(path) in refusal(generate(copy), generate)


@pytest.mark.parametrize("part", ["transformer", "unconditional_transformer", "text_encoder",
                                  "vae"])
def test_missing_part(generate, copy, part):
    (copy / part).rename(copy / "elsewhere")
    sentence = refusal(generate(copy), generate)
    assert str(copy) in sentence and part in sentence


@pytest.mark.parametrize("content", [b'{"_class_name": "FluxPipeline"}', b'{"_class_name": 3}',
                                     b"{}", b"no", b"[1]"])
def test_index_of_another_pipeline(generate, copy, content):
    rewrite(copy / "model_index.json", content)
    assert str(copy / "model_index.json") in refusal(generate(copy), generate)


@pytest.mark.parametrize("flag", ["--model", "--uncond", "--text-encoder", "--vae"])
def test_folder_that_is_not_there(generate, model, tmp_path, flag):
    assert "nowhere" in refusal(generate(model, flag, tmp_path / "nowhere"), generate)


def test_one_transformer_for_both(generate, model):
    sentence = refusal(generate(model, "--uncond", model / "transformer"), generate)
    assert f"{model / 'transformer'}: was taken for both networks" in sentence
    assert "--uncond" in sentence


# --- tokenizer, and parts that do not fit --------------------------------------------------------


def test_tokenizer_that_is_not_there_or_no_tokenizer(generate, copy):
    path = copy / "tokenizer" / "tokenizer.json"
    path.unlink()
    assert "tokenizer.json" in refusal(generate(copy), generate)
    for content in (b"", b"{}", b'{"model": {"type": "Unigram"}}', b"\xff"):
        rewrite(path, content)
        assert str(path) in refusal(generate(copy), generate)


def test_tokenizer_of_another_vocabulary(generate, copy):
    def shrink(tensors):
        tensors[EMBEDDING[1]] = tensors[EMBEDDING[1]][:256]

    def say_so(config):
        config["text_config"]["vocab_size"] = 256

    edit_tensors(copy / "text_encoder", shrink)
    edit_json(copy / "text_encoder" / "config.json", say_so)
    sentence = refusal(generate(copy), generate)
    assert "tokenizer.json" in sentence and "256" in sentence


@pytest.fixture(scope="module")
def other(tmp_path_factory):
    """Of another size in every part."""
    shape = tiny.Shape(layers=1, text_hidden=24, latent_channels=8, vae_attention=False)
    return tiny.save_pipeline(tmp_path_factory.mktemp("other"), shape)


@pytest.mark.parametrize(
    ("flag", "numbers"),
    [("--text-encoder", ("312", "208")), ("--vae", ("8", "16")), ("--uncond", ())],
)
def test_parts_of_different_models(generate, model, other, flag, numbers):
    sentence = refusal(generate(model, flag, other), generate)
    assert str(other) in sentence and str(model) in sentence
    assert all(number in sentence for number in numbers)


def test_official_statistics_are_for_128_channels(generate, model):
    sentence = refusal(generate(model, "--convention", "official"), generate)
    assert "128" in sentence and "--convention of diffusers" in sentence
