#!/usr/bin/env python3
"""Ideogram 4 in diffusers, its networks in INT8.

Weights in BF16 are quantized while they are loaded:

    python examples/diffusers_ideogram4.py --model FOLDER_OR_REPOSITORY --device cuda -o picture.png

A checkpoint in any dialect that Octet reads replaces them, and of MODEL only the text encoder and
the VAE are loaded:

    python examples/diffusers_ideogram4.py --model FOLDER_OR_REPOSITORY --device cuda \\
        --checkpoint int8.safetensors --unconditional int8_uncond.safetensors

`--tiny` needs no download and no GPU: a small model with random weights.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import torch
from diffusers import Ideogram4Pipeline
from diffusers.quantizers import PipelineQuantizationConfig

import octet
from octet.diffusers import OctetConfig, load_pipeline

HERE = Path(__file__).parent


def load(args: argparse.Namespace) -> Ideogram4Pipeline:
    if args.checkpoint:
        return load_pipeline(args.model, args.checkpoint, unconditional=args.unconditional)
    int8 = OctetConfig(recipe=args.recipe)
    parts = {"transformer": int8, "unconditional_transformer": int8}
    return Ideogram4Pipeline.from_pretrained(
        args.model,
        dtype=torch.bfloat16,
        quantization_config=PipelineQuantizationConfig(quant_mapping=parts),
    )


def render(pipe: Ideogram4Pipeline, args: argparse.Namespace) -> None:
    started = time.perf_counter()
    guidance = [7.0] * (args.steps - args.steps // 16) + [3.0] * (args.steps // 16)
    with octet.require_int8():  # an error if a linear that should be INT8 is not
        image = pipe(
            args.prompt.read_text(),
            height=args.size,
            width=args.size,
            num_inference_steps=args.steps,
            guidance_schedule=guidance,
            max_sequence_length=args.tokens,
            generator=torch.Generator(args.device).manual_seed(args.seed),
        ).images[0]
    image.save(args.out)
    print(f"{args.out}: {args.size} x {args.size}, {time.perf_counter() - started:.1f} s")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", help="a folder in Hugging Face's layout, or a repository")
    parser.add_argument("--checkpoint", help="networks for it: a file, or a folder with both")
    parser.add_argument("--unconditional", help="the second network, if it is a file of its own")
    parser.add_argument("--recipe", default="convrot", help="for BF16 weights: convrot or rowwise")
    parser.add_argument("--prompt", type=Path, default=HERE / "poster.json", help="a caption")
    parser.add_argument("--size", type=int, default=1024)
    parser.add_argument("--steps", type=int, default=48)
    parser.add_argument("--tokens", type=int, default=2048, help="to which text is padded")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--compile", action="store_true", help="the blocks, with torch.compile")
    parser.add_argument("--save", help="a folder to save the pipeline to, in INT8")
    parser.add_argument("--tiny", action="store_true", help="random weights; for a first look")
    parser.add_argument("-o", "--out", default="picture.png")
    args = parser.parse_args()
    if not (args.model or args.tiny):
        parser.error("name a model, or use --tiny")
    with tempfile.TemporaryDirectory() as folder:
        if args.tiny:
            args.model, args.size, args.steps = tiny_model(folder), 64, 2
        pipe = load(args)
        if args.device != "cpu":
            pipe.to(args.device)
        if args.compile:
            pipe.transformer.compile_repeated_blocks(fullgraph=True)
            pipe.unconditional_transformer.compile_repeated_blocks(fullgraph=True)
        render(pipe, args)
        print(octet.report(pipe.transformer))
        if args.save:
            pipe.save_pretrained(args.save)


def tiny_model(folder: str) -> str:
    """A pipeline of Ideogram 4's parts, at most a few hundred channels wide."""
    from diffusers import (
        AutoencoderKLFlux2,
        FlowMatchEulerDiscreteScheduler,
        Ideogram4Transformer2DModel,
    )
    from transformers import AutoTokenizer, Qwen3VLConfig, Qwen3VLModel

    torch.manual_seed(0)
    tokenizer = AutoTokenizer.from_pretrained(HERE.parent / "models" / "demo" / "tokenizer")
    text = {
        "vocab_size": len(tokenizer),
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 36,  # the pipeline taps thirteen of them
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 8,
        "rope_parameters": {
            "rope_type": "default",
            "rope_theta": 10000.0,
            "mrope_section": [2, 1, 1],
            "mrope_interleaved": True,
        },
    }
    vision = {
        "depth": 1,
        "hidden_size": 8,
        "intermediate_size": 8,
        "num_heads": 2,
        "out_hidden_size": 32,
        "num_position_embeddings": 4,
        "deepstack_visual_indexes": [0],
    }

    def transformer() -> Ideogram4Transformer2DModel:
        return Ideogram4Transformer2DModel(
            in_channels=128,
            num_layers=2,
            attention_head_dim=64,
            num_attention_heads=4,
            intermediate_size=512,
            adaln_dim=32,
            llm_features_dim=13 * 32,
            mrope_section=(24, 4, 4),
        )

    pipe = Ideogram4Pipeline(
        scheduler=FlowMatchEulerDiscreteScheduler(),
        vae=AutoencoderKLFlux2(
            down_block_types=("DownEncoderBlock2D",) * 4,
            up_block_types=("UpDecoderBlock2D",) * 4,
            block_out_channels=(8, 8, 16, 16),
            layers_per_block=1,
            norm_num_groups=4,
        ),
        text_encoder=Qwen3VLModel(Qwen3VLConfig(text_config=text, vision_config=vision)),
        tokenizer=tokenizer,
        transformer=transformer(),
        unconditional_transformer=transformer(),
    )
    pipe.save_pretrained(folder)
    return folder


if __name__ == "__main__":
    main()
