"""The forward passes of training against the classes that inference elsewhere uses: about 30 s."""

import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parent))

import networks  # noqa: E402
from diffusers.models.transformers.transformer_ideogram4 import (
    LLM_TOKEN_INDICATOR,
    OUTPUT_IMAGE_INDICATOR,
)


def randomised(model):
    torch.manual_seed(3)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn_like(parameter) * (0.05 if parameter.ndim > 1 else 0.3))
            if parameter.ndim == 1:
                parameter.add_(0.7)
    return model.float().eval()


def test_velocity_is_that_of_the_class():
    model = randomised(networks.make_transformer(2, text_features=26))
    texts, longest = (5, 9), 9
    z = torch.randn(2, networks.GRID**2, networks.TOKEN_CHANNELS)
    features = torch.randn(2, longest, 26)
    t = torch.tensor([0.25, 0.75])
    with torch.no_grad():
        ours = networks.velocity(model, z, t, features, torch.tensor(texts))
        for i, text in enumerate(texts):
            images = z.shape[1]
            x = torch.cat([torch.zeros(1, text, z.shape[2]), z[i : i + 1]], 1)
            f = torch.cat([features[i : i + 1, :text], torch.zeros(1, images, 26)], 1)
            roles = torch.tensor([[LLM_TOKEN_INDICATOR] * text + [OUTPUT_IMAGE_INDICATOR] * images])
            expected = model(
                x, t[i : i + 1], f, networks.positions(text, "cpu"), torch.ones_like(roles), roles
            ).sample[:, text:]
            torch.testing.assert_close(ours[i : i + 1], expected, rtol=1e-4, atol=1e-4)


def test_text_features_are_those_of_the_class():
    tower = randomised(networks.make_text_tower())
    ids = torch.randint(900, (1, 12))
    taps = []
    hooks = [
        tower.layers[i].register_forward_hook(
            lambda module, inputs, output: taps.append(
                output[0] if isinstance(output, tuple) else output
            )
        )
        for i in networks.TAPS
    ]
    with torch.no_grad():
        tower(input_ids=ids)
        ours = networks.text_features(tower, ids)
    for hook in hooks:
        hook.remove()
    expected = torch.stack(taps, -1).flatten(2)
    # Our rotary table is in bf16, as inference has it.
    torch.testing.assert_close(ours, expected, rtol=0.05, atol=0.05 * expected.std().item())


def test_tokens_become_latents_again():
    latents = torch.randn(2, networks.LATENT_CHANNELS, 32, 32)
    torch.testing.assert_close(networks.to_latents(networks.to_tokens(latents)), latents)


def test_angles_do_not_depend_on_the_precision_of_weights():
    model = networks.make_transformer(1)
    exact = [table.clone() for table in networks.rotation(model, 7, "cpu")]
    for rounded, table in zip(networks.rotation(model.bfloat16(), 7, "cpu"), exact):
        torch.testing.assert_close(rounded.float(), table, rtol=0, atol=0.005)
