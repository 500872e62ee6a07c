#!/usr/bin/env python3
"""Any transformer in INT8: how close it is to BF16, how long it takes, what runs how.

The denoiser of any pipeline of diffusers, on the inputs of its first step:

    python examples/any_transformer.py --pipeline black-forest-labs/FLUX.1-schnell --device cuda

or any model of transformers, on the tokens of a text:

    python examples/any_transformer.py --model Qwen/Qwen3-4B --device cuda

`--tiny` needs no download and no GPU: a small Flux with random weights.
"""

from __future__ import annotations

import argparse
import inspect
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

import octet
from octet.torch import quantize_

Call = tuple[nn.Module, dict[str, Any]]  # a model, and what it is called with


class _Seen(Exception):
    """Ends a pipeline at the call that it waits for."""


def of_pipeline(args: argparse.Namespace) -> Call:
    """Runs the pipeline up to the model's first call."""
    from diffusers import DiffusionPipeline

    pipe = DiffusionPipeline.from_pretrained(args.pipeline, dtype=torch.bfloat16).to(args.device)
    model, seen = getattr(pipe, args.part), {}

    def look(module: nn.Module, words: tuple[Any, ...], options: dict[str, Any]) -> None:
        seen.update(inspect.signature(module.forward).bind(*words, **options).arguments)
        raise _Seen

    hook = model.register_forward_pre_hook(look, with_kwargs=True)
    try:
        pipe(args.prompt, **({"height": args.size, "width": args.size} if args.size else {}))
    except _Seen:
        pass
    hook.remove()
    return model, seen


def of_language_model(args: argparse.Namespace) -> Call:
    from transformers import AutoModel, AutoTokenizer

    model = AutoModel.from_pretrained(args.model, dtype=torch.bfloat16).to(args.device).eval()
    tokens = AutoTokenizer.from_pretrained(args.model)(args.prompt, return_tensors="pt")
    return model, dict(tokens.to(args.device))


def of_tiny_flux(args: argparse.Namespace) -> Call:
    from diffusers import FluxTransformer2DModel

    torch.manual_seed(0)
    model = FluxTransformer2DModel(
        in_channels=64,
        num_layers=2,
        num_single_layers=2,
        attention_head_dim=64,
        num_attention_heads=4,
        joint_attention_dim=128,
        pooled_projection_dim=64,
        axes_dims_rope=(16, 24, 24),
    )
    model = model.to(args.device, torch.bfloat16).eval()
    inputs = {
        "hidden_states": torch.randn(1, 64, 64, dtype=torch.bfloat16),
        "encoder_hidden_states": torch.randn(1, 16, 128, dtype=torch.bfloat16),
        "pooled_projections": torch.randn(1, 64, dtype=torch.bfloat16),
        "timestep": torch.tensor([0.5], dtype=torch.bfloat16),
        "img_ids": torch.cartesian_prod(*map(torch.arange, (1, 8, 8))).bfloat16(),
        "txt_ids": torch.zeros(16, 3, dtype=torch.bfloat16),
    }
    return model, {name: tensor.to(args.device) for name, tensor in inputs.items()}


def first_tensor(output: Any) -> Tensor:
    while not isinstance(output, Tensor):
        output = next(iter(output.values() if isinstance(output, dict) else output))
    return output


def timed(run: Callable[[], Tensor], repeats: int) -> tuple[Tensor, float]:
    """The output, and milliseconds of the fastest run except the first."""
    output, best = run(), float("inf")
    for _ in range(repeats):
        if output.is_cuda:
            torch.cuda.synchronize()
        started = time.perf_counter()
        output = run()
        if output.is_cuda:
            torch.cuda.synchronize()
        best = min(best, time.perf_counter() - started)
    return output, 1000 * best


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pipeline", help="a pipeline of diffusers")
    parser.add_argument("--part", default="transformer", help="the pipeline's part to look at")
    parser.add_argument("--model", help="a model of transformers")
    parser.add_argument("--tiny", action="store_true", help="a small Flux; for a first look")
    parser.add_argument("--prompt", default="A lighthouse on a cliff, at dusk.")
    parser.add_argument("--size", type=int, help="of a pipeline's picture, instead of its default")
    parser.add_argument("--recipe", default="convrot", help="convrot, convrot:64 or rowwise")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--compile", action="store_true", help="with torch.compile, too")
    parser.add_argument("--repeats", type=int, default=3)
    args = parser.parse_args()
    if args.pipeline:
        model, inputs = of_pipeline(args)
    elif args.model:
        model, inputs = of_language_model(args)
    elif args.tiny:
        model, inputs = of_tiny_flux(args)
    else:
        parser.error("name a pipeline or a model, or use --tiny")

    def run(called: Callable[..., Any]) -> tuple[Tensor, float]:
        with torch.inference_mode():
            return timed(lambda: first_tensor(called(**inputs)), args.repeats)

    reference, before = run(model)
    quantize_(model, args.recipe)
    rows = [("bf16", reference, before), ("int8", *run(model))]
    if args.compile:
        rows.append(("int8, compiled", *run(torch.compile(model, fullgraph=True))))

    print(octet.report(model))
    print(f"\n{'':16}{'ms':>10}{'cosine':>10}")
    for name, output, milliseconds in rows:
        cosine = torch.cosine_similarity(output.double().flatten(), reference.double().flatten(), 0)
        print(f"{name:16}{milliseconds:10.2f}{cosine.item():10.6f}")


if __name__ == "__main__":
    main()
