"""What diffusers and transformers compute for the parts of Ideogram 4, as plain tensors.

Every function takes networks as from_pretrained loads them and returns float32 (or the type it
names) without a batch dimension, whatever the networks compute in: that is the contract of the
files that run_model reads and writes. A grid is (rows, columns) of image tokens; token
k = y * columns + x; the channels of a token are ordered (ph, pw, c).

Frequencies and angles are exactly rounded, when a network is made and when it runs; see
exact_functions.py.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import diffusers
import numpy as np
import torch
import transformers
from diffusers import Ideogram4Pipeline
from diffusers.models.transformers.transformer_ideogram4 import (
    IMAGE_POSITION_OFFSET,
    LLM_TOKEN_INDICATOR,
    OUTPUT_IMAGE_INDICATOR,
)
from diffusers.pipelines.ideogram4 import pipeline_ideogram4
from exact_functions import exactly_rounded

Grid = tuple[int, int]

# Presets: steps, guidance per step (noisiest first), mu, std.
PRESETS = {
    "quality": (48, [7.0] * 45 + [3.0] * 3, 0.0, 1.5),
    "default": (20, [7.0] * 18 + [3.0] * 2, 0.0, 1.75),
    "turbo": (12, [7.0] * 11 + [3.0], 0.5, 1.75),
}

T_MIN = 1 / (1 + math.exp(9.0))
T_MAX = 1 / (1 + math.exp(-7.5))


@exactly_rounded()
def load(folder: Path, dtype: torch.dtype = torch.float32) -> Ideogram4Pipeline:
    """The pipeline as users load it. Not `.to(dtype)`: that would round the rotary frequencies
    and leave image positions indistinguishable, which from_pretrained does not."""
    diffusers.utils.logging.set_verbosity_error()
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    pipeline = Ideogram4Pipeline.from_pretrained(
        folder, dtype=dtype, low_cpu_mem_usage=False, local_files_only=True
    )
    pipeline.set_progress_bar_config(disable=True)
    return pipeline


# --- text ----------------------------------------------------------------------------------------


def token_ids(pipeline: Ideogram4Pipeline, caption: str) -> torch.Tensor:
    """I32 [n]: the caption as one user message with the generation prompt after it."""
    messages = [{"role": "user", "content": [{"type": "text", "text": caption}]}]
    text = pipeline.tokenizer.apply_chat_template(
        messages, add_generation_prompt=True, tokenize=False
    )
    ids = pipeline.tokenizer(text, add_special_tokens=False)["input_ids"]
    return torch.tensor(ids, dtype=torch.int32)


@exactly_rounded()
@torch.no_grad()
def text_features(pipeline: Ideogram4Pipeline, ids: torch.Tensor) -> torch.Tensor:
    """F32 [n, taps * hidden] of the ids alone, unpadded; entry c * taps + k: channel c of tap k."""
    ids = ids.long()[None]
    taps = pipeline._get_text_encoder_hidden_states(
        pipeline.text_encoder, ids, torch.ones_like(ids), torch.arange(ids.shape[1])[None]
    )
    return torch.stack(taps, dim=-1)[0].flatten(1).float()


@exactly_rounded()
@torch.no_grad()
def text_features_as_padded(
    pipeline: Ideogram4Pipeline, caption: str, max_sequence_length: int
) -> torch.Tensor:
    """The same through the pipeline's own encode_prompt, which pads on the left."""
    features, _, _, indicator = pipeline.encode_prompt(
        caption, 1, 1, max_sequence_length, torch.device("cpu")
    )
    return features[0][indicator[0] == LLM_TOKEN_INDICATOR]


# --- the transformers ----------------------------------------------------------------------------


def image_positions(grid: Grid) -> torch.Tensor:
    """I64 [N, 3] of (t, h, w)."""
    rows, columns = grid
    y = torch.arange(rows).repeat_interleave(columns)
    x = torch.arange(columns).repeat(rows)
    return torch.stack([torch.zeros_like(y), y, x], dim=1) + IMAGE_POSITION_OFFSET


@exactly_rounded()
@torch.no_grad()
def velocity(
    transformer: torch.nn.Module,
    latent: torch.Tensor,
    time: float | torch.Tensor,
    grid: Grid,
    features: torch.Tensor | None = None,
) -> torch.Tensor:
    """F32 [N, C] of one forward over [n text tokens][N image tokens]; without features over the
    image tokens alone. Latent, features and time are rounded to the compute type on the way in,
    as the pipeline does."""
    dtype = transformer.dtype
    count = 0 if features is None else features.shape[0]
    total = count + latent.shape[0]
    hidden = torch.zeros(1, total, latent.shape[1], dtype=dtype)
    hidden[0, count:] = latent.to(dtype)
    text = torch.zeros(1, total, transformer.config.llm_features_dim, dtype=dtype)
    positions = torch.zeros(1, total, 3, dtype=torch.long)
    positions[0, count:] = image_positions(grid)
    indicator = torch.full((1, total), OUTPUT_IMAGE_INDICATOR)
    if features is not None:
        text[0, :count] = features.to(dtype)
        positions[0, :count] = torch.arange(count)[:, None]
        indicator[0, :count] = LLM_TOKEN_INDICATOR
    out = transformer(
        hidden_states=hidden,
        timestep=torch.as_tensor(time, dtype=torch.float32).reshape(1).to(dtype),
        encoder_hidden_states=text,
        position_ids=positions,
        segment_ids=torch.ones(1, total, dtype=torch.long),
        indicator=indicator,
        return_dict=False,
    )[0]
    return out[0, count:].float()


class Int8Linear(torch.nn.Module):
    """W8A8 as Octet defines it, in float32: a scale per output row of the weight and per row of
    the input, codes rounded to even, an exact sum, two multiplications."""

    def __init__(self, linear: torch.nn.Linear, quantizes_input: bool = True) -> None:
        super().__init__()
        assert linear.bias is None and linear.weight.dtype == torch.float32
        self.codes, self.scale = quantize_rows(linear.weight.detach())
        self.quantizes_input = quantizes_input

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if not self.quantizes_input:
            return x @ (self.codes.float() * self.scale[:, None]).T
        codes, scale = quantize_rows(x)
        # A sum of products of codes is below 2^53, so a float64 matmul is exact.
        total = codes.double() @ self.codes.double().T
        return (total.float() * scale[..., None]) * self.scale


def quantize_rows(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """I8 codes and F32 scales of the rows: scale = amax / 127, code = rint(x * (127 / amax))."""
    amax = x.abs().amax(dim=-1)
    # Not 127 / amax: with a scalar on the left torch takes the reciprocal first, another rounding.
    inverse = torch.full_like(amax, 127) / amax
    inverse = torch.where(torch.isfinite(inverse), inverse, torch.zeros_like(inverse))
    scale = torch.where(inverse > 0, amax / 127, torch.zeros_like(amax))
    return torch.round(x * inverse[..., None]).to(torch.int8), scale


def quantize_transformer(
    transformer: torch.nn.Module, quantizes_input: bool = True
) -> torch.nn.Module:
    """Replaces the linears of the blocks' attention and feed-forward parts, in place. One fused
    qkv gives the same codes as q, k and v apart, for the scales are per row. Without quantizing
    inputs it multiplies the same codes, dequantized, in float32."""
    for block in transformer.layers:
        attention, feed_forward = block.attention, block.feed_forward
        for name in ("to_q", "to_k", "to_v"):
            setattr(attention, name, Int8Linear(getattr(attention, name), quantizes_input))
        attention.to_out[0] = Int8Linear(attention.to_out[0], quantizes_input)
        for name in ("w1", "w2", "w3"):
            setattr(feed_forward, name, Int8Linear(getattr(feed_forward, name), quantizes_input))
    return transformer


# --- schedule ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Schedule:
    model_times: torch.Tensor  # F32 [S]: what the transformers are given, before their own rounding
    steps: torch.Tensor  # F32 [S]: what the velocity of each step is multiplied by


def diffusers_schedule(height: int, width: int, count: int, mu: float, std: float) -> Schedule:
    """Taken from the pipeline's scheduler: float32 sigmas, and times that went through a
    multiplication and a division by 1000. The last step ends at exactly 1."""
    mean = pipeline_ideogram4._resolution_aware_mu(height, width, mu)
    sigmas = pipeline_ideogram4._logit_normal_sigmas(count, mean, std=std)
    scheduler = diffusers.FlowMatchEulerDiscreteScheduler()
    scheduler.set_timesteps(sigmas=sigmas.tolist())
    times = 1.0 - scheduler.timesteps.float() / scheduler.config.num_train_timesteps
    return Schedule(times, -(scheduler.sigmas[1:] - scheduler.sigmas[:-1]))


def official_schedule(height: int, width: int, count: int, mu: float, std: float) -> Schedule:
    """The definition in double precision, rounded at the end. The last step ends at T_MAX."""
    mean = mu + 0.5 * math.log(height * width / 512**2)
    u = 1 - torch.linspace(0, 1, count + 1, dtype=torch.float64)
    times = 1 - torch.special.expit(mean + std * torch.special.ndtri(u))
    times = times.clamp(T_MIN, T_MAX).float()
    return Schedule(times[:-1], times[1:] - times[:-1])


# --- VAE and image -------------------------------------------------------------------------------


@torch.no_grad()
def decode(vae: torch.nn.Module, latent: torch.Tensor, grid: Grid) -> torch.Tensor:
    """F32 [H, W, 3] around [-1, 1], not clamped, of a sampled (still normalised) latent F32 [N, C].
    The statistics are those of the VAE's batch norm, in the type it was loaded in."""
    rows, columns = grid
    mean = vae.bn.running_mean.float()
    deviation = torch.sqrt(vae.bn.running_var + vae.config.batch_norm_eps).float()
    z = latent * deviation + mean
    z = z.view(rows, columns, 2, 2, -1).permute(4, 0, 2, 1, 3)
    z = z.reshape(1, -1, 2 * rows, 2 * columns)
    return vae.decode(z.to(vae.dtype), return_dict=False)[0][0].permute(1, 2, 0).float()


def to_bytes(image: torch.Tensor) -> torch.Tensor:
    """U8 [H, W, 3] of an image in [-1, 1], with the roundings of diffusers' image processor."""
    unit = (image * 0.5 + 0.5).clamp(0, 1).numpy()
    return torch.from_numpy((unit * 255).round().astype("uint8"))


@dataclass(frozen=True)
class Sampled:
    latents: torch.Tensor  # F32 [S, N, C]: after each step
    image: torch.Tensor  # F32 [H, W, 3] in [0, 1]
    pixels: torch.Tensor  # U8 [H, W, 3]


@exactly_rounded()
def sample(
    pipeline: Ideogram4Pipeline,
    caption: str,
    noise: torch.Tensor,
    grid: Grid,
    guidance: list[float],
    mu: float = 0.0,
    std: float = 1.5,
    max_sequence_length: int = 256,
) -> Sampled:
    """The whole pipeline from the given noise, F32 [N, C]; one step per guidance weight."""
    latents = []

    def keep(_pipeline, _step, _time, values):
        latents.append(values["latents"][0].clone())
        return values

    pixels_per_token = pipeline.vae_scale_factor * pipeline.patch_size
    image = pipeline(
        caption,
        height=grid[0] * pixels_per_token,
        width=grid[1] * pixels_per_token,
        num_inference_steps=len(guidance),
        guidance_schedule=guidance,
        mu=mu,
        std=std,
        max_sequence_length=max_sequence_length,
        latents=noise[None],
        output_type="np",
        callback_on_step_end=keep,
    ).images[0]
    pixels = np.asarray(pipeline.image_processor.numpy_to_pil(image)[0])
    return Sampled(torch.stack(latents), torch.from_numpy(image), torch.from_numpy(pixels.copy()))
