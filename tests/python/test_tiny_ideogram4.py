"""The tiny models are what they claim to be, and the references agree with the whole pipeline."""

from __future__ import annotations

import json
import math

import pytest

pytest.importorskip("diffusers")
pytest.importorskip("transformers")

import reference
import tiny_ideogram4 as tiny
import torch
from diffusers import DiffusionPipeline
from safetensors.torch import load_file

GRID = (3, 4)


@pytest.fixture(scope="module", params=sorted(tiny.SHAPES))
def saved(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param)
    tiny.save_pipeline(folder, tiny.SHAPES[request.param])
    return tiny.SHAPES[request.param], folder, reference.load(folder)


def noise_for(shape, grid=GRID, seed=7):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(grid[0] * grid[1], shape.token_channels, generator=generator)


def relative_error(got, expected):
    return ((got - expected).norm() / expected.norm()).item()


def test_folder_is_a_pipeline_of_the_right_parts(saved):
    _, folder, _ = saved
    index = json.loads((folder / "model_index.json").read_text())
    assert index["_class_name"] == "Ideogram4Pipeline"
    pipeline = DiffusionPipeline.from_pretrained(folder, low_cpu_mem_usage=False)
    for name in ("transformer", "unconditional_transformer", "text_encoder", "vae"):
        assert index[name][1] == type(getattr(pipeline, name)).__name__


def test_the_same_seed_gives_the_same_weights():
    shape = tiny.SHAPES["plain"]
    first, again = (tiny.make_transformer(shape, 3).state_dict() for _ in range(2))
    other = tiny.make_transformer(shape, 4).state_dict()
    assert all(torch.equal(first[name], again[name]) for name in first)
    assert not any(torch.equal(first[name], other[name]) for name in first)


def test_template_and_special_tokens(saved):
    _, _, pipeline = saved
    ids = reference.token_ids(pipeline, tiny.CAPTION).tolist()
    text = pipeline.tokenizer.decode(ids)
    head, tail = "<|im_start|>user\n", "<|im_end|>\n<|im_start|>assistant\n"
    assert text == head + tiny.CAPTION + tail
    start = pipeline.tokenizer.convert_tokens_to_ids("<|im_start|>")
    assert ids.count(start) == 2 and ids[0] == start
    assert len(ids) < len(text.encode()), "no byte pair was merged"


def test_unpadded_text_equals_the_padded_encoder(saved):
    shape, _, pipeline = saved
    ids = reference.token_ids(pipeline, tiny.CAPTION)
    alone = reference.text_features(pipeline, ids)
    padded = reference.text_features_as_padded(pipeline, tiny.CAPTION, len(ids) + 9)
    assert alone.shape == padded.shape == (len(ids), shape.text_features)
    # The same sums of float32 in another order, over 36 layers.
    assert relative_error(alone, padded) < 1e-5
    assert 0.5 < alone.std() < 20


def test_every_tap_and_channel_has_its_own_place(saved):
    shape, _, pipeline = saved
    ids = reference.token_ids(pipeline, "a cube")
    features = reference.text_features(pipeline, ids).view(len(ids), shape.text_hidden, tiny.TAPS)
    tower = pipeline.text_encoder.language_model
    with torch.no_grad():
        hidden = tower(input_ids=ids.long()[None], output_hidden_states=True).hidden_states
        # hidden[0] is the embedding, and to the last one the final norm was applied.
        for tap, layer in enumerate(range(0, 34, 3)):
            assert relative_error(features[:, :, tap], hidden[layer + 1][0]) < 1e-5
        assert relative_error(tower.norm(features[:, :, -1]), hidden[-1][0]) < 1e-5


def test_positions_time_and_text_matter(saved):
    """What a wrong implementation would change must show above any tolerance."""
    shape, _, pipeline = saved
    noise = noise_for(shape)
    features = reference.text_features(pipeline, reference.token_ids(pipeline, tiny.CAPTION))
    expected = reference.velocity(pipeline.transformer, noise, 0.5, GRID, features)
    for time, grid, text in (
        (0.502, GRID, features),
        (0.5, GRID[::-1], features),
        (0.5, GRID, features.flip(0)),
        (0.5, GRID, features.flip(1)),
    ):
        other = reference.velocity(pipeline.transformer, noise, time, grid, text)
        assert relative_error(other, expected) > 0.01


def test_parts_put_together_equal_the_pipeline(saved):
    """Text, velocity, schedule and VAE of the reference, unpadded, against the padded pipeline."""
    shape, _, pipeline = saved
    guidance, mu, std = [7.0, 3.0, 1.0], 0.5, 1.75
    noise = noise_for(shape)
    whole = reference.sample(pipeline, tiny.CAPTION, noise, GRID, guidance, mu, std)

    features = reference.text_features(pipeline, reference.token_ids(pipeline, tiny.CAPTION))
    side = shape.pixels_per_token
    plan = reference.diffusers_schedule(GRID[0] * side, GRID[1] * side, len(guidance), mu, std)
    z = noise
    for k, weight in enumerate(guidance):
        time = plan.model_times[k]
        with_text = reference.velocity(pipeline.transformer, z, time, GRID, features)
        without = reference.velocity(pipeline.unconditional_transformer, z, time, GRID)
        z = z + plan.steps[k] * (weight * with_text + (1 - weight) * without)
        assert 0.2 < with_text.std() < 5
        assert relative_error(without, with_text) > 0.1
        assert relative_error(z, whole.latents[k]) < 1e-4  # guidance 7 magnifies float32 rounding
    image = reference.decode(pipeline.vae, whole.latents[-1], GRID)
    assert image.shape == (GRID[0] * side, GRID[1] * side, 3)
    assert torch.allclose((image * 0.5 + 0.5).clamp(0, 1), whole.image, atol=1e-6)
    assert torch.equal(reference.to_bytes(image), whole.pixels)
    assert 0.2 < image.std() < 3


def test_bfloat16_networks_stay_near_float32(saved):
    shape, folder, pipeline = saved
    half = reference.load(folder, torch.bfloat16)
    assert half.transformer.rotary_emb.inv_freq.dtype == torch.float32
    assert half.text_encoder.language_model.rotary_emb.inv_freq.dtype == torch.float32
    noise, ids = noise_for(shape), reference.token_ids(pipeline, "a cube")
    features = reference.text_features(pipeline, ids)
    time = 0.5  # exact in bfloat16, or the time embedding would be another one
    for part in ("transformer", "unconditional_transformer"):
        given = features if part == "transformer" else None
        wide = reference.velocity(getattr(pipeline, part), noise, time, GRID, given)
        narrow = reference.velocity(getattr(half, part), noise, time, GRID, given)
        assert 1e-4 < relative_error(narrow, wide) < 0.05
    assert relative_error(reference.text_features(half, ids), features) < 0.05
    expected = reference.decode(pipeline.vae, noise, GRID)
    assert relative_error(reference.decode(half.vae, noise, GRID), expected) < 0.05


def test_int8_emulation_quantizes_and_stays_near_float32(saved):
    shape, folder, pipeline = saved
    noise, ids = noise_for(shape), reference.token_ids(pipeline, "a cube")
    features = reference.text_features(pipeline, ids)
    expected = reference.velocity(pipeline.transformer, noise, 0.3, GRID, features)
    quantized = reference.quantize_transformer(reference.load(folder).transformer)
    got = reference.velocity(quantized, noise, 0.3, GRID, features)
    assert 1e-3 < relative_error(got, expected) < 0.1


def test_int8_linear_is_within_half_a_step_of_each_factor():
    torch.manual_seed(0)
    linear = torch.nn.Linear(64, 48, bias=False)
    x = torch.randn(5, 64)
    x[2] = 0
    codes, scale = reference.quantize_rows(x)
    assert codes.abs().amax(dim=1).tolist() == [127, 127, 0, 127, 127]
    assert ((codes * scale[:, None] - x).abs() <= 0.5001 * scale[:, None]).all()
    got = reference.Int8Linear(linear)(x)
    assert torch.equal(got[2], torch.zeros(48))
    assert relative_error(got, linear(x).detach()) < 0.02


def test_schedules_differ_only_at_the_end_and_in_rounding():
    for count, guidance, mu, std in reference.PRESETS.values():
        assert len(guidance) == count
        theirs = reference.diffusers_schedule(1024, 1024, count, mu, std)
        ours = reference.official_schedule(1024, 1024, count, mu, std)
        # sigma = 1 - t is near 1 at the start, so t is known to some 2^-24 only.
        assert (theirs.model_times - ours.model_times).abs().max() < 2e-7
        assert (theirs.steps - ours.steps)[:-1].abs().max() < 2e-7
        assert math.isclose(theirs.steps[-1] - ours.steps[-1], 1 - reference.T_MAX, abs_tol=1e-6)
        assert ours.model_times[0] == torch.tensor(reference.T_MIN)


@pytest.mark.parametrize("dtype", [None, torch.bfloat16])
def test_fused_names_hold_the_same_rows(tmp_path, dtype):
    shape = tiny.SHAPES["deep"]
    tiny.save_pipeline(tmp_path, shape)
    path = tmp_path / "transformer" / "diffusion_pytorch_model.safetensors"
    split = load_file(path)
    tiny.rewrite_transformers(tmp_path, fused=True, dtype=dtype)
    fused = load_file(path)
    assert len(fused) == len(split) - 2 * shape.layers
    assert {tensor.dtype for tensor in fused.values()} == {dtype or torch.float32}
    d = shape.hidden
    for i in range(shape.layers):
        qkv = fused[f"layers.{i}.attention.qkv.weight"]
        assert qkv.shape == (3 * d, d)
        for place, part in enumerate("qkv"):
            rows = split[f"layers.{i}.attention.to_{part}.weight"]
            assert torch.equal(qkv[place * d : (place + 1) * d], rows.to(qkv.dtype))
        assert f"layers.{i}.attention.o.weight" in fused


def test_shards_hold_every_tensor(tmp_path):
    tiny.save_pipeline(tmp_path, tiny.SHAPES["plain"])
    before = load_file(tmp_path / "transformer" / "diffusion_pytorch_model.safetensors")
    tiny.rewrite_transformers(tmp_path, max_shard_size="20KB")
    folder = tmp_path / "transformer"
    index = json.loads((folder / "diffusion_pytorch_model.safetensors.index.json").read_text())
    assert index["weight_map"].keys() == before.keys()
    assert len(set(index["weight_map"].values())) > 1
    assert not (folder / "diffusion_pytorch_model.safetensors").exists()
    for name, file in index["weight_map"].items():
        assert torch.equal(load_file(folder / file)[name], before[name])
