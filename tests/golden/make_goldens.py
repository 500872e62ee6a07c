#!/usr/bin/env python3
"""Writes the recorded results that the C++ tests compare with, so that they need no torch.

    tests/golden/make_goldens.py [FOLDER]

FOLDER (default: the one of this file) gets
    model/                  a tiny Ideogram 4, stored in bfloat16; only what Octet reads
    expected.safetensors    inputs, and what diffusers and transformers compute from them in float32

The same versions of the libraries on the same machine write the same bytes. test_goldens.py makes
them anew and compares.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "python"))

import reference  # noqa: E402
import tiny_ideogram4 as tiny  # noqa: E402
import torch  # noqa: E402
from safetensors.torch import load_file, save_file  # noqa: E402

# Small, and still with every kind of part: shared key-value heads, two VAE levels of differing
# width (so a shortcut convolution and an upsampler), attention and 1x1 convolutions in the VAE.
SHAPE = tiny.Shape(
    heads=2,
    head_dim=16,
    ffn=48,
    adaln=8,
    mrope_section=(4, 2, 2),
    text_hidden=8,
    text_heads=2,
    text_kv_heads=1,
    text_head_dim=8,
    text_ffn=12,
    vae_channels=(4, 8),
    vae_groups=2,
    latent_channels=4,
)
SEED = 100
GRID = (3, 4)
INT8_INPUTS = 5

# What of each part's weights Octet reads; the vision tower and the VAE's encoder are left out.
READ = {
    "transformer": ("",),
    "unconditional_transformer": ("",),
    "text_encoder": ("language_model.",),
    "vae": ("decoder.", "post_quant_conv.", "bn."),
}


def random(*shape: int, seed: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def write_model(whole: Path, folder: Path) -> None:
    """A copy of a saved pipeline with no more than Octet reads."""
    for part, prefixes in READ.items():
        (folder / part).mkdir(parents=True, exist_ok=True)
        config = json.loads((whole / part / "config.json").read_text())
        config.pop("_name_or_path", None)
        text = json.dumps(config, indent=2, sort_keys=True) + "\n"
        (folder / part / "config.json").write_text(text)
        (weights,) = (whole / part).glob("*.safetensors")
        tensors = {
            name: tensor
            for name, tensor in sorted(load_file(weights).items())
            if name.startswith(prefixes) and not name.endswith("num_batches_tracked")
        }
        save_file(tensors, folder / part / weights.name, metadata={"format": "pt"})
    (folder / "tokenizer").mkdir(exist_ok=True)
    tokenizer = json.loads((whole / "tokenizer" / "tokenizer.json").read_text())
    text = json.dumps(tokenizer, ensure_ascii=False, separators=(",", ":")) + "\n"
    (folder / "tokenizer" / "tokenizer.json").write_text(text)
    index = json.loads((whole / "model_index.json").read_text())
    index = {name: index[name] for name in ("_class_name", *sorted(READ), "tokenizer")}
    (folder / "model_index.json").write_text(json.dumps(index, indent=2) + "\n")


def parts(wide, narrow) -> dict[str, torch.Tensor]:
    """Each network alone, and how far bfloat16 takes it in torch."""
    ids = reference.token_ids(wide, tiny.CAPTION)
    latent = random(GRID[0] * GRID[1], SHAPE.token_channels, seed=SEED + 10)
    features = 2 * random(7, SHAPE.text_features, seed=SEED + 11)
    time = torch.tensor([0.5])  # a number of bfloat16: see test_bfloat16_rounds_the_time
    computed = {
        "text.features": lambda p: reference.text_features(p, ids),
        "dit.velocity": lambda p: reference.velocity(p.transformer, latent, time, GRID, features),
        "uncond.velocity": lambda p: reference.velocity(
            p.unconditional_transformer, latent, time, GRID
        ),
        "vae.image": lambda p: reference.decode(p.vae, latent, GRID),
    }
    tensors = {"ids": ids, "latent": latent, "features": features, "time": time}
    for name, compute in computed.items():
        tensors[name] = compute(wide)
        error = (compute(narrow) - tensors[name]).norm() / tensors[name].norm()
        tensors[f"{name}.bf16_error"] = error.reshape(1)
    return tensors


def int8(quantized) -> dict[str, torch.Tensor]:
    """Velocities with INT8 linears, of several latents: see test_int8_linears."""
    features = 2 * random(7, SHAPE.text_features, seed=SEED + 12)
    time = torch.tensor([0.3])
    latents = random(INT8_INPUTS, GRID[0] * GRID[1], SHAPE.token_channels, seed=SEED + 13)
    velocities = [reference.velocity(quantized, z, time, GRID, features) for z in latents]
    return {
        "int8.features": features,
        "int8.time": time,
        "int8.latents": latents,
        "int8.velocities": torch.stack(velocities),
    }


def schedules() -> dict[str, torch.Tensor]:
    tensors = {}
    for convention in ("official", "diffusers"):
        definition = getattr(reference, f"{convention}_schedule")
        for preset, (count, guidance, mu, std) in reference.PRESETS.items():
            made = definition(1088, 1920, count, mu, std)
            tensors[f"schedule.{convention}.{preset}.times"] = made.model_times
            tensors[f"schedule.{convention}.{preset}.steps"] = made.steps
            tensors[f"schedule.{preset}.guidance"] = torch.tensor(guidance)
    return tensors


def image(pipeline) -> dict[str, torch.Tensor]:
    """From caption and noise to bytes; the last step is not guided."""
    guidance, mu, std = [7.0, 7.0, 3.0, 1.0], 0.5, 1.75
    noise = random(GRID[0] * GRID[1], SHAPE.token_channels, seed=SEED + 14)
    sampled = reference.sample(pipeline, tiny.CAPTION, noise, GRID, guidance, mu, std)
    return {
        "image.caption": torch.tensor(list(tiny.CAPTION.encode()), dtype=torch.uint8),
        "image.noise": noise,
        "image.guidance": torch.tensor(guidance),
        "image.mu_std": torch.tensor([mu, std]),
        "image.latent": sampled.latents[-1],
        "image.pixels": sampled.pixels,
    }


def make(folder: Path) -> None:
    torch.set_num_threads(1)  # the order of sums depends on it
    torch.use_deterministic_algorithms(True)
    with tempfile.TemporaryDirectory() as temporary:
        whole = tiny.save_pipeline(Path(temporary), SHAPE, SEED, torch.bfloat16)
        write_model(whole, folder / "model")
        wide = reference.load(whole)
        tensors = {
            "grid": torch.tensor(GRID, dtype=torch.int32),
            **parts(wide, reference.load(whole, torch.bfloat16)),
            **schedules(),
            **image(wide),
            **int8(reference.quantize_transformer(wide.transformer)),  # the last: changes `wide`
        }
    tensors = {name: tensors[name].contiguous() for name in sorted(tensors)}
    save_file(tensors, folder / "expected.safetensors")


if __name__ == "__main__":
    make(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE)
