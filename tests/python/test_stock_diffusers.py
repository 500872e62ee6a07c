"""The small model in diffusers' own pipeline, which its model_index.json names, without Octet: the
picture is the one that Octet paints in floating point."""

from __future__ import annotations

import json

import numpy as np
import pytest
from conftest import REPOSITORY

pytest.importorskip("diffusers")
pytest.importorskip("transformers")

import torch
from diffusers import DiffusionPipeline, Ideogram4Transformer2DModel
from PIL import Image
from running import octet  # noqa: F401: a fixture
from safetensors.torch import save_file
from transformers import Qwen3VLModel

MODEL = REPOSITORY / "models" / "demo-bf16"
GUIDANCE = [2.0, 2.0, 1.5]


def test_codes_are_not_taken_for_weights():
    """It painted noise, after warnings of names that it did not know."""
    shipped = REPOSITORY / "models" / "demo"
    for part in ("transformer", "unconditional_transformer"):
        with pytest.raises(ValueError, match=r"octet.diffusers.load_int8\(\)"):
            Ideogram4Transformer2DModel.from_pretrained(shipped / part)
    with pytest.raises(ValueError, match="quantization config"):
        Qwen3VLModel.from_pretrained(shipped / "text_encoder")


def test_the_pipeline_that_the_model_names_runs_it(octet, tmp_path):  # noqa: F811
    pipeline = DiffusionPipeline.from_pretrained(MODEL, dtype=torch.float32)
    assert type(pipeline).__name__ == "Ideogram4Pipeline"
    pipeline.set_progress_bar_config(disable=True)
    preset = json.loads((MODEL / "octet_presets.json").read_text())["presets"][0]
    caption = json.loads((REPOSITORY / "models" / "demo" / "demo.json").read_text())
    text = json.dumps(caption, separators=(",", ":"), ensure_ascii=False)
    noise = torch.randn(1, 256, 128, generator=torch.Generator().manual_seed(3))
    theirs = pipeline(
        text,
        height=256,
        width=256,
        num_inference_steps=len(GUIDANCE),
        guidance_schedule=GUIDANCE,
        mu=preset["mu"],
        std=preset["std"],
        latents=noise,
        max_sequence_length=256,
    ).images[0]

    save_file({"noise": noise[0].contiguous()}, tmp_path / "noise.safetensors")
    (tmp_path / "caption.json").write_text(text)
    done = octet("generate", "--model", MODEL, "--caption", tmp_path / "caption.json",
                 "--noise", tmp_path / "noise.safetensors", "--steps", len(GUIDANCE),
                 "--guidance", ",".join(map(str, GUIDANCE)), "--convention", "diffusers",
                 "--linears", "float", "--dtype", "f32", "--device", "cpu", "-q",
                 "-o", tmp_path / "ours.png")  # fmt: skip
    assert done.returncode == 0, done.stderr
    ours = np.asarray(Image.open(tmp_path / "ours.png").convert("RGB")).astype(int)
    difference = np.abs(ours - np.asarray(theirs.convert("RGB")).astype(int))
    assert ours.std() > 20  # a picture
    assert difference.max() <= 2 and difference.mean() < 0.05
