#!/usr/bin/env python3
"""One forward pass of full-size Ideogram 4 in diffusers: bf16, row-wise FP8, and INT8 by
`octet.torch.quantize_`, all compiled, with random weights and cuDNN's attention.

The model's mask, which hides nothing in a single picture, is left out for all contestants: with it
PyTorch uses an attention kernel that is four times as slow. Contestants run one after the other
without pause, then once more in the opposite order; medians of all passes count. Outputs are
compared with those of bf16.

    bench/diffusers_step.py [--json F] [--seconds S] [--text-tokens N] [--size S] [--layers N]
                            [--paths bf16,fp8_row,octet_rowwise,octet_convrot] [--eager]
                            [--whole] [--profile FOLDER] [--device D]

The block is compiled, once for all of them (diffusers' compile_repeated_blocks), or with --whole
the model, which takes minutes. --profile writes a trace of one pass of each contestant, for `octet
audit`, and prints where its time goes. Needs torch, diffusers and the package octet.
"""

from __future__ import annotations

import argparse
import copy
import datetime
import gc
import json
import statistics
import sys
import time
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel

PATHS = ("bf16", "fp8_row", "octet_rowwise", "octet_convrot")
# Classes of kernels by parts of their names; the first match counts.
CLASSES = {
    "INT8 GEMM": ("gemm_sm90", "gemm_sm80"),
    "quantize": ("quantize",),
    "attention": ("cudnn_generated", "flash", "sdpa", "fmha"),
    "GEMM": ("gemm", "nvjet", "cutlass", "cublas"),
}


class RowwiseFp8(nn.Module):
    """A linear in FP8 with a scale per token and per channel, by cuBLASLt."""

    LARGEST = 448.0

    def __init__(self, linear: nn.Linear):
        super().__init__()
        weight = linear.weight.float()
        scale = (weight.abs().amax(1, keepdim=True) / self.LARGEST).clamp_min(1e-12)
        self.register_buffer("codes", (weight / scale).to(torch.float8_e4m3fn))
        self.register_buffer("scale", scale.t().contiguous())
        self.bias = linear.bias

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows = x.reshape(-1, x.shape[-1])
        scale = (rows.abs().amax(1, keepdim=True).float() / self.LARGEST).clamp_min(1e-12)
        codes = (rows.float() / scale).to(torch.float8_e4m3fn)
        y = torch._scaled_mm(codes, self.codes.t(), scale_a=scale, scale_b=self.scale,
                             bias=self.bias, out_dtype=torch.bfloat16)
        return y.reshape(*x.shape[:-1], -1)


def plain_attention(query, key, value, attn_mask=None, **_ignored):
    """[batch, tokens, heads, channels], without a mask."""
    heads = (part.transpose(1, 2) for part in (query, key, value))
    return F.scaled_dot_product_attention(*heads).transpose(1, 2)


def make_model(device: str, layers: int | None) -> nn.Module:
    from diffusers.models.transformers import transformer_ideogram4

    transformer_ideogram4.dispatch_attention_fn = plain_attention
    given = {} if layers is None else {"num_layers": layers}
    torch.manual_seed(1)
    torch.set_default_dtype(torch.bfloat16)
    with torch.device(device):
        model = transformer_ideogram4.Ideogram4Transformer2DModel(**given)
    torch.set_default_dtype(torch.float32)
    return model.to(torch.bfloat16).eval().requires_grad_(False)


def inputs(model: nn.Module, text_tokens: int, size: int, device: str) -> dict:
    generator = torch.Generator(device).manual_seed(2)
    tokens = text_tokens + (size // 16) ** 2

    def random(columns: int) -> torch.Tensor:
        return torch.randn(1, tokens, columns, device=device, generator=generator).bfloat16()

    indicator = torch.full((1, tokens), 3, device=device)
    indicator[:, text_tokens:] = 2
    return {
        "hidden_states": random(model.config.in_channels),
        "encoder_hidden_states": random(model.config.llm_features_dim),
        "timestep": torch.tensor([0.5], device=device, dtype=torch.bfloat16),
        "position_ids": torch.zeros(1, tokens, 3, dtype=torch.long, device=device),
        "segment_ids": torch.ones(1, tokens, dtype=torch.long, device=device),
        "indicator": indicator,
        "return_dict": False,
    }


def contestant(path: str, model: nn.Module) -> nn.Module:
    """`model` itself for bf16, else a copy with other linears in its blocks."""
    if path == "bf16":
        return model
    changed = copy.deepcopy(model)
    if path.startswith("octet_"):
        import octet.torch

        return octet.torch.quantize_(changed, path.removeprefix("octet_"))
    for block in changed.layers:
        for parent in block.modules():
            for name, child in list(parent.named_children()):
                if isinstance(child, nn.Linear) and child.in_features >= 4096:
                    setattr(parent, name, RowwiseFp8(child))
    return changed


def cudnn():
    return sdpa_kernel([SDPBackend.CUDNN_ATTENTION, SDPBackend.FLASH_ATTENTION])


def milliseconds(run, seconds: float) -> list[float]:
    times, begun = [], time.monotonic()
    while time.monotonic() - begun < seconds or len(times) < 3:
        marks = [torch.cuda.Event(enable_timing=True) for _ in range(6)]
        marks[0].record()
        for mark in marks[1:]:
            run()
            mark.record()
        torch.cuda.synchronize()
        times += [a.elapsed_time(b) for a, b in zip(marks, marks[1:])]
    return times


def cosine(a: torch.Tensor, b: torch.Tensor) -> float:
    return F.cosine_similarity(a.flatten().float(), b.flatten().float(), dim=0).item()


def profile(run, file: Path) -> dict[str, float]:
    """Milliseconds of one pass by class of kernel."""
    from torch.profiler import ProfilerActivity
    from torch.profiler import profile as profiler

    with profiler(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA],
                  record_shapes=True) as recorded:
        run()
        torch.cuda.synchronize()
    recorded.export_chrome_trace(str(file))
    shares: dict[str, float] = dict.fromkeys((*CLASSES, "the rest"), 0.0)
    for event in json.loads(file.read_text())["traceEvents"]:
        if event.get("cat") not in ("kernel", "gpu_memcpy", "gpu_memset"):
            continue
        name = event["name"].lower()
        kind = next((kind for kind, parts in CLASSES.items()
                     if any(part in name for part in parts)), "the rest")
        shares[kind] += event["dur"] / 1e3
    return {kind: round(value, 2) for kind, value in shares.items() if value > 0}


def measure(options: argparse.Namespace) -> dict:
    model = make_model(options.device, options.layers)
    given = inputs(model, options.text_tokens, options.size, options.device)
    record: dict = {"date": datetime.datetime.now(datetime.timezone.utc).isoformat("T", "minutes"),
                    "device": torch.cuda.get_device_name(), "torch": torch.__version__,
                    "tokens": given["hidden_states"].shape[1],
                    "compiled": "no" if options.eager else "whole" if options.whole else "blocks",
                    "paths": {}}
    runs, outputs = {}, {}
    with torch.inference_mode(), cudnn():
        for path in options.paths.split(","):
            begun = time.monotonic()
            network = contestant(path, model)
            forward = network
            if options.whole:
                forward = torch.compile(network, fullgraph=True)
            elif not options.eager:
                network.compile_repeated_blocks(fullgraph=True)
            runs[path] = lambda forward=forward: forward(**given)[0]
            outputs[path] = runs[path]()
            torch.cuda.synchronize()
            print(f"{path}: ready after {time.monotonic() - begun:.0f} s", file=sys.stderr,
                  flush=True)
        times: dict[str, list[float]] = {path: [] for path in runs}
        for order in (list(runs), list(reversed(runs))):
            for path in order:
                milliseconds(runs[path], 0.5)  # the clock settles
                times[path] += milliseconds(runs[path], options.seconds / 2)
        for path in runs:
            record["paths"][path] = {"ms": round(statistics.median(times[path]), 2)}
            if "bf16" in outputs:
                similar = cosine(outputs[path], outputs["bf16"])
                record["paths"][path]["cosine_to_bf16"] = round(similar, 6)
            if options.profile:
                file = Path(options.profile) / f"{path}.json"
                record["paths"][path]["kernels_ms"] = profile(runs[path], file)
    gc.collect()
    return record


def print_table(record: dict) -> None:
    base = record["paths"].get("bf16", {}).get("ms")
    print(f"{record['device']}, torch {record['torch']}, {record['tokens']} tokens, "
          f"compiled: {record['compiled']}\n")
    print("| linears | ms | times bf16 | cosine to bf16 | kernels, ms |\n|---|---|---|---|---|")
    for path, found in record["paths"].items():
        faster = f"{base / found['ms']:.2f}" if base else ""
        kernels = ", ".join(f"{kind} {ms:.1f}" for kind, ms in found.get("kernels_ms", {}).items())
        similar = f"{found['cosine_to_bf16']:.5f}" if "cosine_to_bf16" in found else ""
        print(f"| {path} | {found['ms']:.1f} | {faster} | {similar} | {kernels} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--json", type=Path)
    parser.add_argument("--seconds", type=float, default=6)
    parser.add_argument("--text-tokens", type=int, default=0)
    parser.add_argument("--size", type=int, default=1024)
    parser.add_argument("--layers", type=int)
    parser.add_argument("--paths", default=",".join(PATHS))
    parser.add_argument("--eager", action="store_true")
    parser.add_argument("--whole", action="store_true")
    parser.add_argument("--profile")
    parser.add_argument("--device", default="cuda")
    options = parser.parse_args()
    record = measure(options)
    print_table(record)
    if options.json:
        options.json.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
