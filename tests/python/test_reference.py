"""What the comparisons with torch rest on: exactly rounded angles, and the counting of codes."""

from __future__ import annotations

import math

import pytest

pytest.importorskip("diffusers")
pytest.importorskip("transformers")

import numpy as np
import reference
import tiny_ideogram4 as tiny
import torch
from code_flips import count_flips
from diffusers.models.transformers import transformer_ideogram4
from exact_functions import exactly_rounded

f32 = np.float32


def rotary_frequencies(theta, head_dim):
    """With the C library's pow() in double."""
    exponents = [f32(i) / f32(head_dim) for i in range(0, head_dim, 2)]
    return torch.tensor([f32(1) / f32(math.pow(theta, exponent)) for exponent in exponents])


def time_waves(time, width):
    """Sines, then cosines, of 1e4 * time times each frequency."""
    half = width // 2
    step = f32(math.log(1e4) / (half - 1))
    frequencies = [f32(math.exp(f32(i) * -step)) for i in range(half)]
    angles = [f32(1e4) * f32(time) * frequency for frequency in frequencies]
    return torch.tensor([f32(wave(angle)) for wave in (math.sin, math.cos) for angle in angles])


def test_angles_are_exactly_rounded():
    """At the published sizes: torch's own differ in the last place there on x86-64, too."""
    with exactly_rounded():
        rotary = transformer_ideogram4.Ideogram4MRoPE(256, 5_000_000, (24, 20, 20))
        waves = transformer_ideogram4._sinusoidal_embedding(1e4 * torch.tensor([0.3]), 4608)
        cosines, sines = rotary(torch.full((1, 1, 3), 65599))
    expected = rotary_frequencies(5_000_000, 256)
    assert torch.equal(rotary.inv_freq, expected)
    assert torch.equal(waves[0], time_waves(0.3, 4608))
    angles = (expected * 65599).tolist()
    assert cosines[0, 0, :128].tolist() == [f32(math.cos(angle)) for angle in angles]
    assert sines[0, 0, :128].tolist() == [f32(math.sin(angle)) for angle in angles]


def test_the_reference_uses_them(tmp_path):
    shape = tiny.Shape(heads=1, head_dim=64, mrope_section=(12, 10, 10), rope_theta=5_000_000)
    pipeline = reference.load(tiny.save_pipeline(tmp_path, shape))
    made = tiny.make_transformer(shape, seed=3)
    for network in (pipeline.transformer, made):
        expected = rotary_frequencies(shape.rope_theta, shape.head_dim)
        assert torch.equal(network.rotary_emb.inv_freq, expected)
    text = pipeline.text_encoder.language_model.rotary_emb.inv_freq
    assert torch.equal(text, rotary_frequencies(shape.text_rope_theta, shape.text_head_dim))
    seen = []
    made.t_embedding.mlp_in.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    reference.velocity(made, torch.zeros(2, shape.token_channels), 0.3, (1, 2))
    assert torch.equal(seen[0].flatten(), time_waves(0.3, shape.hidden))


# --- codes ---------------------------------------------------------------------------------------

VALUES = torch.tensor([3.2, -7.50004, 0.9, 12.50001, -4.6, 1.1])
WEIGHTS = torch.randn(32, 6, generator=torch.Generator().manual_seed(1))


def computed(values=VALUES):
    return WEIGHTS @ torch.round(values)


def test_no_code_is_flipped():
    assert count_flips(computed(), computed, 1e-6, most=0) == 0


def test_codes_next_to_a_half_are_counted():
    moved = VALUES.clone()
    moved[3] = 12.49999
    assert count_flips(computed(moved), computed, 1e-6, most=2) == 1
    moved[1] = -7.49996
    assert count_flips(computed(moved), computed, 1e-6, most=2) == 2
    with pytest.raises(AssertionError):
        count_flips(computed(moved), computed, 1e-6, most=1)


@pytest.mark.parametrize(("index", "value"), [(0, 4.0), (3, 14.0)])
def test_no_other_code_is_excused(index, value):
    """One code off, but not next to a half; next to a half, but two codes off."""
    other = VALUES.clone()
    other[index] = value
    with pytest.raises(AssertionError):
        count_flips(computed(other), computed, 1e-6, most=3)
