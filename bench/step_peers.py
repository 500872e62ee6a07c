"""One denoising step: Octet's beside the strongest PyTorch that can be put together (torch_dit.py).

Each contestant has the GPU for itself and builds its own model of random numbers, so that only one
is in memory. Forward passes follow one another without pause, conditional and unconditional ones
alternating, at the clock that the power limit leaves; medians.
"""

from __future__ import annotations

import functools
import gc
import json
import statistics
import subprocess
import time
from pathlib import Path
from typing import NamedTuple

PATHS = ("bf16", "fp8_row", "fp8_tensor", "kitchen", "kitchen_convrot")
QUICK_PATHS = ("bf16", "fp8_row", "kitchen_convrot")
TIME = 0.5  # of the schedule
FAR = 0.5  # of bf16's velocity: a wrong result is uncorrelated, and 1.4 away


class StepCase(NamedTuple):
    size: int = 1024  # pixels, of a square
    text_tokens: int = 512
    steps: int = 12

    @property
    def grid(self) -> tuple:
        return (self.size // 16, self.size // 16)


def octet_step(program: Path, case: StepCase, layers: int, device: str) -> dict:
    """{branch: ms} by `octet bench step`, in a process of its own."""
    done = subprocess.run(
        [program, "bench", "step", "--device", device, "--size",
         f"{case.size}x{case.size}", "--text-tokens", str(case.text_tokens), "--layers",
         str(layers), "--steps", str(case.steps), "-q", "--json", "-"],
        capture_output=True, text=True, timeout=300)
    if done.returncode != 0:
        raise RuntimeError((done.stderr.strip() or "octet bench step failed").splitlines()[-1])
    return {branch["name"]: branch["ms"] for branch in json.loads(done.stdout)["branches"]}


def attention_backend(torch, device):
    """cuDNN's where it takes heads of 256, else FlashAttention's."""
    from torch.nn.attention import SDPBackend, sdpa_kernel

    q = torch.randn(1, 2, 128, 256, device=device, dtype=torch.bfloat16)
    for backend in (SDPBackend.CUDNN_ATTENTION, SDPBackend.FLASH_ATTENTION):
        try:
            with sdpa_kernel(backend):
                torch.nn.functional.scaled_dot_product_attention(q, q, q)
            return backend
        except RuntimeError:
            continue
    return SDPBackend.MATH


def torch_step(torch, sizes, kind, case: StepCase, device, compiled: bool = True):
    """({branch: ms}, the conditional velocity on the host) of one kind of linears."""
    import torch_dit

    random = torch.Generator(device).manual_seed(0)

    def tensor(name, shape):
        # Norms near 1, outputs of linears of the size of their inputs.
        values = torch.randn(shape, generator=random, device=device, dtype=torch.bfloat16)
        if len(shape) == 1:
            return 1 + 0.1 * values if "norm" in name else 0.02 * values
        return values * shape[1] ** -0.5

    model = torch_dit.make_model(sizes, kind, tensor)
    run = torch_dit.block_runner(kind, sizes, compiled)
    z = torch.randn(case.grid[0] * case.grid[1], sizes.channels, generator=random, device=device,
                    dtype=torch.bfloat16)
    works = {}
    for branch, tokens in (("conditional", case.text_tokens), ("unconditional", 0)):
        text = torch.randn(tokens, sizes.hidden, generator=random, device=device,
                           dtype=torch.bfloat16)
        tables = torch_dit.rotary_tables(sizes, tokens, case.grid, device)
        works[branch] = functools.partial(torch_dit.forward, run, sizes, model, text, z, TIME,
                                          tables)
    velocity = works["conditional"]().float().cpu()
    works["unconditional"]()
    return {branch: statistics.median(times)
            for branch, times in timed(torch, works, case.steps, device).items()}, velocity


def timed(torch, works: dict, steps: int, device) -> dict:
    """{name: [ms]}: two steps warm up. By the GPU's clock, or the host's where there is none."""
    spans = {name: [] for name in works}
    on_gpu = torch.device(device).type == "cuda"

    def now():
        if not on_gpu:
            return time.perf_counter()
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    for _ in range(steps + 2):
        for name, work in works.items():
            begin = now()
            work()
            spans[name].append((begin, now()))
    if on_gpu:
        torch.cuda.synchronize()
    return {name: [begin.elapsed_time(end) if on_gpu else (end - begin) * 1e3
                   for begin, end in of_name[2:]] for name, of_name in spans.items()}


def measure(torch, paths, case: StepCase, octet, say, device="cuda", sizes=None,
            compiled: bool = True) -> dict:
    """{"size", "text_tokens", "layers", "attention", "ms": {path: {branch: ms}},
    "off": {path: distance to bf16's velocity}, "left_out": {path: why}}. octet: a function that
    returns its {branch: ms}; it runs first and last, and the mean counts."""
    import torch_dit
    from torch.nn.attention import sdpa_kernel

    sizes = sizes or torch_dit.Sizes()
    result = {"size": case.size, "text_tokens": case.text_tokens, "layers": sizes.layers,
              "steps": case.steps, "ms": {}, "off": {}, "left_out": {}}

    def attempt(path, work):
        gc.collect()
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
        try:
            return work()
        except Exception as error:  # no memory, no such package, a kernel that is not there
            reason = (str(error).strip() or type(error).__name__).splitlines()[0]
            result["left_out"][path] = reason
            say(f"step, {path} is left out: {reason}")
            return None

    def note(path, ms):
        result["ms"][path] = ms
        say(f"step, {path}: {sum(ms.values()):.1f} ms")

    ours = [attempt("octet", octet)]
    backend = attention_backend(torch, device)
    result["attention"] = backend.name.lower()
    expected = None
    for path in paths:
        torch._dynamo.reset()
        with sdpa_kernel(backend):
            made = attempt(path, lambda: torch_step(torch, sizes, torch_dit.KINDS[path], case,
                                                    device, compiled))
        if made is None:
            continue
        ms, velocity = made
        expected = velocity if path == "bf16" else expected
        if expected is not None:
            off = ((velocity - expected).norm() / expected.norm()).item()
            if not off <= FAR:
                result["left_out"][path] = f"its velocity is {off:.3g} away from that of bf16"
                say(f"step, {path} is left out: {result['left_out'][path]}")
                continue
            result["off"][path] = off
        note(path, ms)
    ours.append(attempt("octet", octet))
    ours = [ms for ms in ours if ms is not None]
    if ours:
        note("octet", {branch: statistics.mean(ms[branch] for ms in ours) for branch in ours[0]})
    return result
