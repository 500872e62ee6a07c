"""Octet's Ideogram 4 against diffusers and transformers, part by part and whole, on tiny models.

`run_model COMPONENT --model FOLDER ... --in FILE --out FILE` computes one part; the files are
safetensors. Tolerances are relative errors ||ours - theirs|| / ||theirs||.
"""

from __future__ import annotations

import os
import subprocess

import pytest

pytest.importorskip("diffusers")
pytest.importorskip("transformers")

import reference
import tiny_ideogram4 as tiny
import torch
from code_flips import count_flips
from safetensors.torch import load_file, save_file

DEVICES = os.environ.get("OCTET_PARITY_DEVICES", "cpu,ref").split(",")
GRIDS = [(3, 4), (5, 2)]

# Float32 on both sides, frequencies and angles exactly rounded, sums in another order: some 1e-7
# per operation. What magnifies it: 36 layers in the text tower; guidance of 7 over the steps.
TEXT_F32 = 1e-5
VELOCITY_F32 = 1e-5
IMAGE_F32 = 1e-5
SAMPLED_F32 = 1e-4

# In bfloat16 two right implementations round in different places. Ours may be as far from the
# float32 result as theirs is, and this much more.
BF16_SLACK = 1.5


def relative_error(got, expected):
    assert got.shape == expected.shape and got.dtype == expected.dtype
    error = ((got.double() - expected.double()).norm() / expected.double().norm()).item()
    print(f"relative error {error:.2e}")
    return error


@pytest.fixture(scope="session")
def models(tmp_path_factory):
    """models(name) is the folder of a tiny model; variants change how its transformers lie."""
    made = {}

    def get(name, **variant):
        key = (name, *sorted(variant.items()))
        if key not in made:
            made[key] = tmp_path_factory.mktemp(name)
            tiny.save_pipeline(made[key], tiny.SHAPES[name])
            if variant:
                tiny.rewrite_transformers(made[key], **variant)
        return made[key]

    return get


@pytest.fixture(scope="session")
def theirs(models):
    """theirs(name, dtype) is the loaded pipeline of diffusers."""
    loaded = {}

    def get(name, dtype=torch.float32):
        if (name, dtype) not in loaded:
            loaded[name, dtype] = reference.load(models(name), dtype)
        return loaded[name, dtype]

    return get


@pytest.fixture
def run_model(build_dir, tmp_path):
    tool = build_dir / "run_model"
    if not tool.is_file():
        pytest.fail(f"{tool} is not built")

    def run(component, folder, tensors, **options):
        save_file(
            {name: tensor.contiguous() for name, tensor in tensors.items()},
            tmp_path / "in.safetensors",
        )
        settings = {"device": "cpu", "dtype": "f32", "linears": "float", "convention": "diffusers"}
        settings |= options
        command = [str(tool), component, "--model", str(folder)]
        for name, value in settings.items():
            command += [f"--{name}", value]
        command += ["--in", str(tmp_path / "in.safetensors")]
        command += ["--out", str(tmp_path / "out.safetensors")]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return load_file(tmp_path / "out.safetensors")

    return run


def random(*shape, seed=11):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def latent_for(name, grid, seed=11):
    return random(grid[0] * grid[1], tiny.SHAPES[name].token_channels, seed=seed)


def features_for(name, count, seed=12):
    return 2 * random(count, tiny.SHAPES[name].text_features, seed=seed)


def dit_inputs(name, grid, time, count=None, seed=11):
    tensors = {
        "latent": latent_for(name, grid, seed),
        "time": torch.tensor([time]),
        "grid": torch.tensor(grid, dtype=torch.int32),
    }
    if count is not None:
        tensors["features"] = features_for(name, count)
    return tensors


def check_codes(got, quantized, tensors):
    """The velocity is that of a quantized network of torch, but for codes of values that lie next
    to a half."""
    return count_flips(got, lambda: their_velocity(quantized, tensors), VELOCITY_F32, most=3)


def their_velocity(transformer, tensors):
    grid = tuple(tensors["grid"].tolist())
    return reference.velocity(
        transformer, tensors["latent"], tensors["time"], grid, tensors.get("features")
    )


# --- each part in float32 ------------------------------------------------------------------------


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", sorted(tiny.SHAPES))
def test_text_features(run_model, models, theirs, name, device):
    for caption in (tiny.CAPTION, "a cube"):
        ids = reference.token_ids(theirs(name), caption)
        got = run_model("text", models(name), {"ids": ids}, device=device)["features"]
        assert relative_error(got, reference.text_features(theirs(name), ids)) < TEXT_F32


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", sorted(tiny.SHAPES))
def test_velocity_with_text(run_model, models, theirs, name, device):
    for grid, time, count in ((GRIDS[0], 0.5, 7), (GRIDS[1], 0.00012339458, 1)):
        tensors = dit_inputs(name, grid, time, count)
        got = run_model("dit", models(name), tensors, device=device)["velocity"]
        expected = their_velocity(theirs(name).transformer, tensors)
        assert relative_error(got, expected) < VELOCITY_F32, (grid, time)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", sorted(tiny.SHAPES))
def test_velocity_without_text(run_model, models, theirs, name, device):
    for grid, time in ((GRIDS[0], 0.5), (GRIDS[1], 0.7733093)):
        tensors = dit_inputs(name, grid, time)
        got = run_model("uncond", models(name), tensors, device=device)["velocity"]
        expected = their_velocity(theirs(name).unconditional_transformer, tensors)
        assert relative_error(got, expected) < VELOCITY_F32, (grid, time)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", sorted(tiny.SHAPES))
def test_decoded_image(run_model, models, theirs, name, device):
    for grid in GRIDS:
        tensors = {"latent": latent_for(name, grid), "grid": torch.tensor(grid, dtype=torch.int32)}
        got = run_model("vae", models(name), tensors, device=device)["image"]
        expected = reference.decode(theirs(name).vae, tensors["latent"], grid)
        assert relative_error(got, expected) < IMAGE_F32, grid


@pytest.mark.parametrize("convention", ["official", "diffusers"])
def test_schedule(run_model, models, convention):
    definition = getattr(reference, f"{convention}_schedule")
    for height, width in ((1024, 1024), (512, 512), (1088, 1920)):
        for count, _, mu, std in reference.PRESETS.values():
            tensors = {
                "size": torch.tensor([height, width], dtype=torch.int32),
                "count": torch.tensor([count], dtype=torch.int32),
                "mu_std": torch.tensor([mu, std]),
            }
            got = run_model("schedule", models("plain"), tensors, convention=convention)
            expected = definition(height, width, count, mu, std)
            # One rounding of sigma near 1, from another quantile function.
            assert (got["times"] - expected.model_times).abs().max() <= 2**-23
            assert (got["steps"] - expected.steps).abs().max() <= 2**-23


# --- the whole -----------------------------------------------------------------------------------


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", sorted(tiny.SHAPES))
def test_image_from_caption_and_noise(run_model, models, theirs, name, device):
    grid, guidance, mu, std = GRIDS[0], [7.0, 7.0, 3.0, 1.0], 0.5, 1.75
    noise = latent_for(name, grid)
    tensors = {
        "caption": torch.tensor(list(tiny.CAPTION.encode()), dtype=torch.uint8),
        "noise": noise,
        "grid": torch.tensor(grid, dtype=torch.int32),
        "guidance": torch.tensor(guidance),
        "mu_std": torch.tensor([mu, std]),
    }
    got = run_model("image", models(name), tensors, device=device)
    expected = reference.sample(theirs(name), tiny.CAPTION, noise, grid, guidance, mu, std)
    assert relative_error(got["latent"], expected.latents[-1]) < SAMPLED_F32
    apart = (got["image"].int() - expected.pixels.int()).abs()
    assert apart.max() <= 1 and (apart > 0).float().mean() < 0.02  # a value next to a half


# --- other precisions ----------------------------------------------------------------------------


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", sorted(tiny.SHAPES))
def test_bfloat16(run_model, models, theirs, name, device):
    """Each part: no further from float32 than torch's bfloat16 is, with some slack."""
    wide, narrow = theirs(name), theirs(name, torch.bfloat16)
    ids, grid = reference.token_ids(wide, tiny.CAPTION), GRIDS[0]
    tensors = dit_inputs(name, grid, 0.5, 7)
    alone = {key: tensors[key] for key in ("latent", "time", "grid")}
    latent = {key: tensors[key] for key in ("latent", "grid")}
    parts = {
        ("text", "features"): ({"ids": ids}, lambda p: reference.text_features(p, ids)),
        ("dit", "velocity"): (tensors, lambda p: their_velocity(p.transformer, tensors)),
        ("uncond", "velocity"): (
            alone,
            lambda p: their_velocity(p.unconditional_transformer, alone),
        ),
        ("vae", "image"): (latent, lambda p: reference.decode(p.vae, latent["latent"], grid)),
    }
    for (component, output), (inputs, compute) in parts.items():
        got = run_model(component, models(name), inputs, device=device, dtype="bf16")[output]
        exact = compute(wide)
        allowed = BF16_SLACK * relative_error(compute(narrow), exact)
        assert relative_error(got, exact) < allowed, component


@pytest.mark.parametrize("device", DEVICES)
def test_bfloat16_rounds_the_time(run_model, models, theirs, device):
    """0.4968025 and its bfloat16 neighbour 0.49609375 are 7 rad apart in the time embedding."""
    tensors = dit_inputs("wide", GRIDS[0], 0.4968025)
    got = run_model("uncond", models("wide"), tensors, device=device, dtype="bf16")["velocity"]
    network = theirs("wide").unconditional_transformer
    unrounded = their_velocity(network, tensors)
    tensors["time"] = tensors["time"].bfloat16().float()
    rounded = their_velocity(network, tensors)
    assert relative_error(got, rounded) < 0.05
    assert relative_error(got, unrounded) > 0.15


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", sorted(tiny.SHAPES))
def test_int8_linears(run_model, models, theirs, name, device):
    """Against the same codes and scales in torch."""
    quantized = reference.quantize_transformer(reference.load(models(name)).transformer)
    for seed in range(5):
        tensors = dit_inputs(name, GRIDS[0], 0.3, 7, seed=seed)
        got = run_model("dit", models(name), tensors, device=device, linears="int8")["velocity"]
        check_codes(got, quantized, tensors)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", sorted(tiny.SHAPES))
def test_int8_error_is_that_of_torch(run_model, models, name, device):
    """The error that quantizing activations makes, against the same codes dequantized in float32:
    no larger than torch's own W8A8 makes. One code that falls to the other side of a half moves
    the error itself by about a tenth of it, hence the slack."""
    emulated = reference.quantize_transformer(reference.load(models(name)).transformer)
    exact = reference.quantize_transformer(reference.load(models(name)).transformer, False)
    ours = theirs = 0.0
    for seed in range(5):
        tensors = dit_inputs(name, GRIDS[0], 0.3, 7, seed=seed)
        expected = their_velocity(exact, tensors)
        got = run_model("dit", models(name), tensors, device=device, linears="int8")["velocity"]
        ours += relative_error(got, expected)
        theirs += relative_error(their_velocity(emulated, tensors), expected)
    assert theirs / 5 > 1e-3  # quantizing is seen at all
    assert ours <= 1.1 * theirs


# --- other layouts on disk -----------------------------------------------------------------------


@pytest.mark.parametrize("variant", [{"fused": True}, {"max_shard_size": "20KB"}])
def test_layouts_give_the_same_velocity(run_model, models, variant):
    tensors = dit_inputs("deep", GRIDS[0], 0.5, 7)
    expected = run_model("dit", models("deep"), tensors)["velocity"]
    got = run_model("dit", models("deep", **variant), tensors)["velocity"]
    assert torch.equal(got, expected)


def test_fused_bfloat16_file(run_model, models):
    """Weights stored in bfloat16, computed in float32, in either layout."""
    tensors = dit_inputs("deep", GRIDS[0], 0.5, 7)
    split = models("deep", dtype=torch.bfloat16)
    expected = their_velocity(reference.load(split).transformer, tensors)
    for folder in (split, models("deep", dtype=torch.bfloat16, fused=True)):
        got = run_model("dit", folder, tensors)["velocity"]
        assert relative_error(got, expected) < VELOCITY_F32
