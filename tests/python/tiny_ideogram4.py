"""Tiny Ideogram 4 models with random weights, in the folder layout of a Hugging Face repository.

Everything is made with diffusers and transformers from a seed and written by their own
save_pretrained, so that names, config keys and files are what the public repositories hold. The
weights are scaled so that every path matters: norm weights around 1, no bias and no modulation
zero, velocities and pixels of order 1, batch norm statistics far from (0, 1).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import torch
from diffusers import (
    AutoencoderKLFlux2,
    FlowMatchEulerDiscreteScheduler,
    Ideogram4Pipeline,
    Ideogram4Transformer2DModel,
)
from exact_functions import exactly_rounded
from safetensors.torch import load_file, save_file
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers
from tokenizers.trainers import BpeTrainer
from transformers import Qwen2Tokenizer, Qwen3VLConfig, Qwen3VLModel
from transformers.models.qwen2.tokenization_qwen2 import PRETOKENIZE_REGEX

TAPS = 13  # the pipeline keeps 13 layers of the text tower; the last one is layer 35
TEXT_LAYERS = 36

CAPTION = (
    '{"high_level_description":"A red cube on a grey table.","compositional_deconstruction":'
    '{"background":"A plain wall, café light.","elements":[{"type":"text",'
    '"bbox":[40,210,170,790],"text":"PÊCHE 入場","desc":"White letters."}]}}'
)

# What the byte pairs are learnt from.
CORPUS = [
    CAPTION,
    "a photograph of a red cube, I'll say it's the best; they've seen 2026 days and don't stop",
    "user\nassistant\nsystem\n  two spaces\n\nand lines\r\n",
    "La pêche du jour à la carte, 入場無料, überall größer, naïve façade",
    '"color_palette":["#2F4858","#F6C945"],"lighting":"flat overcast daylight"',
]

ADDED_TOKENS = {  # in the order of their ids; True: a special token, False: matched literally
    "<|endoftext|>": True,
    "<|im_start|>": True,
    "<|im_end|>": True,
    "<|vision_start|>": True,
    "<|vision_end|>": True,
    "<|image_pad|>": True,
    "<tool_call>": False,
    "</tool_call>": False,
    "<think>": False,
    "</think>": False,
}

# The content is a string, or a list of parts of which those with a text count.
CHAT_TEMPLATE = (
    "{%- for message in messages %}"
    "{{- '<|im_start|>' + message.role + '\\n' }}"
    "{%- if message.content is string %}{{- message.content }}"
    "{%- else %}{%- for part in message.content %}"
    "{%- if 'text' in part %}{{- part.text }}{%- endif %}"
    "{%- endfor %}{%- endif %}"
    "{{- '<|im_end|>\\n' }}"
    "{%- endfor %}"
    "{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}"
)


@dataclass(frozen=True)
class Shape:
    """The sizes of one tiny model; each network differs from the others in every size it can."""

    # The two transformers.
    layers: int = 2
    heads: int = 4
    head_dim: int = 8
    ffn: int = 48
    adaln: int = 16
    rope_theta: int = 10000
    mrope_section: tuple[int, int, int] = (2, 1, 1)
    # The text tower.
    text_hidden: int = 16
    text_heads: int = 4
    text_kv_heads: int = 2
    text_head_dim: int = 8
    text_ffn: int = 24
    text_rope_theta: float = 10000.0
    # The VAE; tokens have 4 * latent_channels channels.
    vae_channels: tuple[int, ...] = (8,)
    vae_decoder_channels: tuple[int, ...] | None = None
    vae_layers_per_block: int = 1
    vae_groups: int = 2
    vae_attention: bool = True
    vae_quant_convs: bool = True
    latent_channels: int = 4

    @property
    def hidden(self) -> int:
        return self.heads * self.head_dim

    @property
    def token_channels(self) -> int:
        return 4 * self.latent_channels

    @property
    def text_features(self) -> int:
        return TAPS * self.text_hidden

    @property
    def pixels_per_token(self) -> int:
        return 2 * 2 ** (len(self.vae_channels) - 1)


SHAPES = {
    # One VAE level without attention or 1x1 convolutions: the fewest parts.
    "plain": Shape(vae_attention=False, vae_quant_convs=False),
    # Three VAE levels of differing width, so with shortcut convolutions, and a narrower decoder.
    "deep": Shape(
        layers=3,
        heads=3,
        head_dim=16,
        ffn=80,
        mrope_section=(4, 2, 2),
        text_heads=6,
        text_kv_heads=3,
        vae_channels=(8, 16, 24),
        vae_decoder_channels=(8, 12, 16),
        vae_layers_per_block=2,
        vae_groups=4,
    ),
    # The real token channels, VAE levels, rotary bases and, where they are not what makes the
    # model big, head sizes; widths that the INT8 kernels take whole.
    "wide": Shape(
        heads=2,
        head_dim=64,
        ffn=192,
        adaln=32,
        rope_theta=5_000_000,
        mrope_section=(24, 5, 5),
        text_hidden=32,
        text_head_dim=16,
        text_ffn=64,
        text_rope_theta=5_000_000.0,
        vae_channels=(8, 16, 32, 32),
        vae_layers_per_block=2,
        vae_groups=4,
        latent_channels=32,
    ),
}


# --- random weights ------------------------------------------------------------------------------


def _randomise(module: torch.nn.Module, generator: torch.Generator) -> None:
    """Fills every parameter and running statistic, in the order of their names."""
    residual_writers = ("o_proj.weight", "down_proj.weight")
    state = module.state_dict(keep_vars=True)
    with torch.no_grad():
        for name in sorted(state):
            tensor = state[name]
            if name.endswith("num_batches_tracked"):
                continue
            value = torch.randn(tensor.shape, generator=generator)
            if name.endswith("running_mean"):
                value = 0.3 * value
            elif name.endswith("running_var"):
                value = 0.5 + value.abs()
            elif name.endswith(".bias"):
                value = 0.2 * value
            elif name.endswith(("norm_q.weight", "norm_k.weight")):
                # Sharp attention: under a flat one positions hardly change the velocity. The text
                # tower's (q_norm, k_norm) stays flat, or 36 layers would magnify any rounding.
                value = 2 * (1 + 0.2 * value)
            elif tensor.dim() == 1:  # the weight of a norm
                value = 1 + 0.2 * value
            elif name.endswith("embed_image_indicator.weight"):
                value = 0.5 * value
            elif "embed" not in name or tensor.dim() != 2 or "t_embedding" in name:
                fan_in = tensor[0].numel()
                value = value / fan_in**0.5
                if name.endswith(residual_writers):  # 72 of them add up in the text tower
                    value = 0.5 * value
            tensor.copy_(value)


@exactly_rounded()
def make_transformer(shape: Shape, seed: int) -> Ideogram4Transformer2DModel:
    model = Ideogram4Transformer2DModel(
        in_channels=shape.token_channels,
        num_layers=shape.layers,
        attention_head_dim=shape.head_dim,
        num_attention_heads=shape.heads,
        intermediate_size=shape.ffn,
        adaln_dim=shape.adaln,
        llm_features_dim=shape.text_features,
        rope_theta=shape.rope_theta,
        mrope_section=shape.mrope_section,
    )
    _randomise(model, torch.Generator().manual_seed(seed))
    return model.eval()


@exactly_rounded()
def make_text_encoder(shape: Shape, vocabulary: int, seed: int) -> Qwen3VLModel:
    rotary = {
        "rope_type": "default",
        "rope_theta": shape.text_rope_theta,
        "mrope_section": [2, 1, 1],
        "mrope_interleaved": True,
    }
    text = {
        "vocab_size": vocabulary,
        "hidden_size": shape.text_hidden,
        "intermediate_size": shape.text_ffn,
        "num_hidden_layers": TEXT_LAYERS,
        "num_attention_heads": shape.text_heads,
        "num_key_value_heads": shape.text_kv_heads,
        "head_dim": shape.text_head_dim,
        "max_position_embeddings": 4096,
        "rope_parameters": rotary,
    }
    vision = {
        "depth": 1,
        "hidden_size": 8,
        "intermediate_size": 8,
        "num_heads": 2,
        "out_hidden_size": shape.text_hidden,
        "num_position_embeddings": 4,
        "deepstack_visual_indexes": [0],
    }
    model = Qwen3VLModel(Qwen3VLConfig(text_config=text, vision_config=vision))
    _randomise(model, torch.Generator().manual_seed(seed))
    return model.eval()


def make_vae(shape: Shape, seed: int) -> AutoencoderKLFlux2:
    levels = len(shape.vae_channels)
    model = AutoencoderKLFlux2(
        down_block_types=("DownEncoderBlock2D",) * levels,
        up_block_types=("UpDecoderBlock2D",) * levels,
        block_out_channels=shape.vae_channels,
        decoder_block_out_channels=shape.vae_decoder_channels,
        layers_per_block=shape.vae_layers_per_block,
        latent_channels=shape.latent_channels,
        norm_num_groups=shape.vae_groups,
        sample_size=64,
        use_quant_conv=shape.vae_quant_convs,
        use_post_quant_conv=shape.vae_quant_convs,
        mid_block_add_attention=shape.vae_attention,
    )
    _randomise(model, torch.Generator().manual_seed(seed))
    return model.eval()


def make_tokenizer() -> Qwen2Tokenizer:
    """Byte pairs learnt from CORPUS under Qwen's pre-tokenizer, with its kinds of added tokens."""
    learner = Tokenizer(models.BPE())
    learner.normalizer = normalizers.NFC()
    learner.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(PRETOKENIZE_REGEX), behavior="isolated", invert=False),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    learner.decoder = decoders.ByteLevel()
    learner.train_from_iterator(
        CORPUS,
        BpeTrainer(
            vocab_size=420,
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        ),
    )
    model = json.loads(learner.to_str())["model"]
    tokenizer = Qwen2Tokenizer(
        vocab=model["vocab"],
        merges=[tuple(pair) for pair in model["merges"]],
        unk_token=None,
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        chat_template=CHAT_TEMPLATE,
    )
    tokenizer.add_tokens(
        [
            AddedToken(text, special=special, normalized=False)
            for text, special in ADDED_TOKENS.items()
        ]
    )
    return tokenizer


def make_pipeline(shape: Shape, seed: int = 0) -> Ideogram4Pipeline:
    tokenizer = make_tokenizer()
    vocabulary = (len(tokenizer) + 63) // 64 * 64  # as in Qwen, some rows belong to no token
    return Ideogram4Pipeline(
        scheduler=FlowMatchEulerDiscreteScheduler(),
        vae=make_vae(shape, seed + 1),
        text_encoder=make_text_encoder(shape, vocabulary, seed + 2),
        tokenizer=tokenizer,
        transformer=make_transformer(shape, seed + 3),
        unconditional_transformer=make_transformer(shape, seed + 4),
    )


# --- folders -------------------------------------------------------------------------------------


def save_pipeline(
    folder: Path, shape: Shape, seed: int = 0, dtype: torch.dtype = torch.float32
) -> Path:
    """Writes the model as a repository; in bfloat16 every network is stored so."""
    pipeline = make_pipeline(shape, seed)
    if dtype != torch.float32:
        pipeline = pipeline.to(dtype)
    pipeline.save_pretrained(folder)
    return folder


def fuse_attention(tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """The names of the original layout: q, k and v are one tensor of their rows."""
    fused = {}
    for name, tensor in tensors.items():
        if name.endswith("attention.to_q.weight"):
            stem = name.removesuffix("to_q.weight")
            rows = [tensors[f"{stem}to_{part}.weight"] for part in "qkv"]
            fused[f"{stem}qkv.weight"] = torch.cat(rows).contiguous()
        elif name.endswith(("attention.to_k.weight", "attention.to_v.weight")):
            continue
        else:
            fused[name.replace("attention.to_out.0.", "attention.o.")] = tensor
    return fused


def rewrite_transformers(
    folder: Path,
    *,
    fused: bool = False,
    dtype: torch.dtype | None = None,
    max_shard_size: str | int | None = None,
) -> None:
    """Rewrites both transformers of a saved pipeline: fused names, another dtype, or shards."""
    for part in ("transformer", "unconditional_transformer"):
        if max_shard_size is not None:
            stored = dtype or torch.float32
            model = Ideogram4Transformer2DModel.from_pretrained(folder / part, dtype=stored)
            for old in (folder / part).glob("*.safetensors*"):
                old.unlink()
            model.save_pretrained(folder / part, max_shard_size=max_shard_size)
        for path in (folder / part).glob("*.safetensors"):
            tensors = load_file(path)
            if dtype is not None:
                tensors = {name: tensor.to(dtype) for name, tensor in tensors.items()}
            if fused:
                assert max_shard_size is None, "a shard may hold q without its k and v"
                tensors = fuse_attention(tensors)
            save_file(tensors, path, metadata={"format": "pt"})
