"""Pictures from held-out captions on one sheet, with the captions beside it as JSON."""

import json

import torch
from PIL import Image

import networks
import scenes
import tokenizer
from feed import DEVICE, make_sample

FIRST_SEED = 1 << 50
ACROSS = 8


def held_out(count, fonts):
    maker = scenes.SceneMaker(fonts, held_out=True)
    encoder = tokenizer.Encoder(tokenizer.build())
    return [make_sample(maker, encoder, FIRST_SEED + i) for i in range(count)]


@torch.no_grad()
def paint_sheet(path, parts, fonts, count=32, guidance=1.0, steps=20):
    """parts: vae, transformer, text_encoder and, if there is one, unconditional."""
    samples = held_out(count, fonts)
    longest = max(len(ids) for _, ids, *_ in samples)
    ids = torch.zeros(count, longest, dtype=torch.int, device=DEVICE)
    for row, (_, numbers, *_) in zip(ids, samples):
        row[: len(numbers)] = torch.tensor(numbers)
    lengths = torch.tensor([len(numbers) for _, numbers, *_ in samples], device=DEVICE)
    shape = (count, networks.GRID**2, networks.TOKEN_CHANNELS)
    noise = torch.randn(shape, generator=torch.Generator().manual_seed(0)).to(DEVICE)
    features = networks.text_features(parts["text_encoder"], ids)
    guide = parts.get("unconditional")
    z = networks.sample(parts["transformer"], guide, features, lengths, noise, steps, guidance)
    vae = parts["vae"]
    pictures = vae.decoder(vae.post_quant_conv(networks.to_latents(z).to(vae.dtype))).float()
    pictures = ((pictures.clamp(-1, 1) + 1) * 127.5).round().byte().permute(0, 2, 3, 1).cpu()
    rows = [torch.cat(list(pictures[i : i + ACROSS]), 1) for i in range(0, count, ACROSS)]
    Image.fromarray(torch.cat(rows).numpy()).save(path)
    path.with_suffix(".json").write_text(json.dumps([caption for *_, caption in samples]))
