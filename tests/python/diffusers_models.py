"""Tiny transformers of diffusers and their inputs, for the tests of octet.diffusers."""

from __future__ import annotations

from typing import Any

import tiny_ideogram4 as tiny
import torch
from diffusers import FluxTransformer2DModel, Ideogram4Transformer2DModel, SD3Transformer2DModel
from torch import Tensor, nn

SHAPE = tiny.SHAPES["wide"]
TEXT, IMAGE = 4, 12  # tokens
INT8_LINEARS = 7 * SHAPE.layers  # q, k, v, out, w1, w2, w3


def random(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def ideogram4_inputs(model: Ideogram4Transformer2DModel) -> dict[str, Any]:
    length, config = TEXT + IMAGE, model.config
    indicator = torch.full((1, length), 2)
    indicator[:, :TEXT] = 3
    positions = torch.arange(length)[None, :, None].expand(1, length, 3).contiguous()
    return {
        "hidden_states": random(1, length, config.in_channels, seed=1).to(model.dtype),
        "encoder_hidden_states": random(1, length, config.llm_features_dim, seed=2).to(model.dtype),
        "timestep": torch.tensor([0.5], dtype=model.dtype),
        "position_ids": positions,
        "segment_ids": torch.ones(1, length, dtype=torch.long),
        "indicator": indicator,
    }


def velocity(model: Ideogram4Transformer2DModel) -> Tensor:
    """Of the image's tokens."""
    with torch.inference_mode():
        return model(**ideogram4_inputs(model)).sample[:, TEXT:].clone()


def flux() -> tuple[nn.Module, dict[str, Tensor]]:
    model = FluxTransformer2DModel(
        in_channels=16,
        num_layers=1,
        num_single_layers=1,
        attention_head_dim=32,
        num_attention_heads=2,
        joint_attention_dim=48,
        pooled_projection_dim=24,
        axes_dims_rope=(8, 12, 12),
    )
    inputs = {
        "hidden_states": random(1, 16, 16, seed=1),
        "encoder_hidden_states": random(1, 8, 48, seed=2),
        "pooled_projections": random(1, 24, seed=3),
        "timestep": torch.tensor([0.5]),
        "img_ids": torch.cartesian_prod(*map(torch.arange, (1, 4, 4))).float(),
        "txt_ids": torch.zeros(8, 3),
    }
    return model, inputs


def sd3() -> tuple[nn.Module, dict[str, Tensor]]:
    model = SD3Transformer2DModel(
        sample_size=8,
        patch_size=2,
        in_channels=4,
        num_layers=2,
        attention_head_dim=16,
        num_attention_heads=4,
        joint_attention_dim=32,
        caption_projection_dim=64,
        pooled_projection_dim=48,
        out_channels=4,
        pos_embed_max_size=8,
    )
    inputs = {
        "hidden_states": random(2, 4, 8, 8, seed=1),
        "encoder_hidden_states": random(2, 6, 32, seed=2),
        "pooled_projections": random(2, 48, seed=3),
        "timestep": torch.tensor([500, 500]),
    }
    return model, inputs


def in_bf16(values: dict[str, Tensor]) -> dict[str, Tensor]:
    return {
        name: tensor.bfloat16() if tensor.is_floating_point() else tensor
        for name, tensor in values.items()
    }


def cosine(a: Tensor, b: Tensor) -> float:
    return torch.cosine_similarity(a.double().flatten(), b.double().flatten(), 0).item()
