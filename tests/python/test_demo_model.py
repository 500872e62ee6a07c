"""The demo model is a repository that diffusers loads, and gives it the picture it gives us."""

from __future__ import annotations

import subprocess

import pytest

pytest.importorskip("diffusers")
pytest.importorskip("transformers")

import numpy as np
import reference
import torch
from diffusers import AutoencoderKLFlux2, DiffusionPipeline, Ideogram4Transformer2DModel
from PIL import Image
from safetensors.torch import load_file, save_file
from transformers import Qwen3VLModel

CAPTIONS = [
    '{"high_level_description":"A calm sea at dusk.",'
    '"compositional_deconstruction":{"background":"A calm sea at dusk.","elements":[]}}',
    '{"high_level_description":"A yellow bird on a wall.",'
    '"compositional_deconstruction":{"background":"A green wall.","elements":[]}}',
]


@pytest.fixture(scope="module")
def demo(built_program, tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo") / "model"
    subprocess.run([built_program("write_demo_model"), folder], check=True)
    return folder


def test_every_weight_is_there_for_its_class(demo):
    for part in ("transformer", "unconditional_transformer"):
        _, info = Ideogram4Transformer2DModel.from_pretrained(
            demo / part, output_loading_info=True
        )
        assert not any(info.values()), (part, info)
    _, info = AutoencoderKLFlux2.from_pretrained(demo / "vae", output_loading_info=True)
    assert set(info.pop("missing_keys")) <= {"bn.num_batches_tracked"} and not any(info.values())
    _, info = Qwen3VLModel.from_pretrained(demo / "text_encoder", output_loading_info=True)
    assert all(name.startswith("visual.") for name in info.pop("missing_keys"))
    assert not any(info.values()), info


def test_diffusers_loads_the_folder(demo):
    pipeline = DiffusionPipeline.from_pretrained(demo, local_files_only=True)
    assert type(pipeline).__name__ == "Ideogram4Pipeline"
    config = pipeline.transformer.config
    assert config == pipeline.unconditional_transformer.config | {
        "_name_or_path": config["_name_or_path"]
    }
    assert config.in_channels == 4 * pipeline.vae.config.latent_channels == 128
    assert config.llm_features_dim == 13 * pipeline.text_encoder.config.text_config.hidden_size
    assert pipeline.vae_scale_factor * pipeline.patch_size == 16
    assert len(pipeline.tokenizer) <= pipeline.text_encoder.config.text_config.vocab_size
    # Two transformers of one kind with different weights.
    first, second = (
        part.layers[0].attention.to_q.weight
        for part in (pipeline.transformer, pipeline.unconditional_transformer)
    )
    assert not torch.equal(first, second)


def test_the_same_picture_as_diffusers(demo, built_program, tmp_path):
    """Float32 and unquantized, from one noise, with all steps of the turbo preset."""
    pipeline = reference.load(demo)
    _, guidance, mu, std = reference.PRESETS["turbo"]
    grid = (16, 16)
    noise = torch.randn(256, 128, generator=torch.Generator().manual_seed(3))
    expected = reference.sample(pipeline, CAPTIONS[0], noise, grid, guidance, mu, std)
    tensors = {
        "caption": torch.tensor(list(CAPTIONS[0].encode()), dtype=torch.uint8),
        "noise": noise,
        "grid": torch.tensor(grid, dtype=torch.int32),
        "guidance": torch.tensor(guidance),
        "mu_std": torch.tensor([mu, std]),
    }
    save_file(tensors, tmp_path / "in.safetensors")
    command = [built_program("run_model"), "image", "--model", demo, "--device", "cpu"]
    command += ["--dtype", "f32", "--linears", "float", "--convention", "diffusers"]
    command += ["--in", tmp_path / "in.safetensors", "--out", tmp_path / "out.safetensors"]
    subprocess.run(command, check=True)
    got = load_file(tmp_path / "out.safetensors")
    latent = expected.latents[-1]
    error = ((got["latent"] - latent).norm() / latent.norm()).item()
    print(f"relative error {error:.2e}")
    assert error < 1e-4  # SAMPLED_F32 of test_parity.py
    assert (got["image"].int() - expected.pixels.int()).abs().max() <= 1  # a value next to a half


def generate(built_program, demo, folder, caption, *arguments):
    (folder / "caption.json").write_text(caption)
    out = folder / "out.png"
    command = [built_program("octet"), "generate", "--model", demo, "--size", "256x256", "--quiet"]
    command += ["--caption", folder / "caption.json", "--preset", "turbo", "--device", "cpu"]
    subprocess.run([*command, "--require-int8", "-o", out, *arguments], check=True)
    return np.asarray(Image.open(out).convert("RGB")).astype(float)


def test_pictures_are_soft_colourful_and_by_caption_and_seed(built_program, demo, tmp_path):
    """Native INT8. Grey static would have neighbours as different as any two pixels."""
    picture = generate(built_program, demo, tmp_path, CAPTIONS[0])
    assert picture.shape == (256, 256, 3)
    for channel in range(3):
        plane = picture[:, :, channel]
        assert plane.std() > 25
        assert np.abs(np.diff(plane, axis=0)).mean() < 0.15 * plane.std()
        assert np.abs(np.diff(plane, axis=1)).mean() < 0.15 * plane.std()
    colour = picture - picture.mean(axis=2, keepdims=True)
    assert colour.std() > 15
    for other in (
        generate(built_program, demo, tmp_path, CAPTIONS[1]),
        generate(built_program, demo, tmp_path, CAPTIONS[0], "--seed", "1"),
    ):
        assert np.abs(picture - other).mean() > 3
    again = generate(built_program, demo, tmp_path, CAPTIONS[0], "--threads", "1")
    assert np.array_equal(picture, again), "the number of threads shows"
