"""Checkpoints and devices."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from octet import _octet
from octet._calls import Path, call, path_text
from octet._octet import (
    CheckpointSummary,
    DeviceInfo,
    ModelPart,
    QuantizeReport,
    QuantizeStep,
)
from octet.errors import refuse_type


def devices() -> list[DeviceInfo]:
    """The devices of this machine; `unavailable` says why one cannot run INT8."""
    return _octet.devices()


@dataclass(frozen=True)
class Inspection:
    """What is at a path."""

    parts: list[ModelPart]  # of a model, with how each linear would run here
    checkpoint: CheckpointSummary | None  # the tensors, if it is a single checkpoint
    problem: str  # why a checkpoint with a network's weights is incomplete


def inspect(path: Path, base: Path = "") -> Inspection:
    """What is in a checkpoint or a model's folder, without loading it.

    `path`: a safetensors or GGUF file, an index, a folder, or owner/name of a pulled one.
    `base`: supplies what a file lacks.
    """
    name = path_text("path", path)
    model = call(_octet.inspect_model, name, path_text("base", base))
    is_checkpoint = model.is_checkpoint or not model.parts
    checkpoint = _octet.inspect_checkpoint(name) if is_checkpoint else None
    return Inspection(model.parts, checkpoint, model.problem)


def quantize(
    source: Path,
    out: Path = "",
    *,
    recipe: str = "convrot",
    protect: str = "none",
    clip: bool = True,
    dialect: str = "comfyui",
    base: Path = "",
    network: str = "",
    statistics: Path = "",
    captions: Iterable[Path] = (),
    any_caption: bool = False,
    calibration_steps: int = 0,
    calibration_size: tuple[int, int] = (0, 0),
    seed: int = 0,
    max_memory: int = 0,
    measure: bool = False,
    verify: bool = False,
    device: str = "auto",
    threads: int = 0,
    progress: Callable[[QuantizeStep], object] | None = None,
) -> QuantizeReport:
    """Makes an INT8 checkpoint from one in any dialect, like `octet quantize`.

    `recipe`: "convrot", "convrot:64", "rowwise", "smoothquant:0.6" (which needs `captions` or
    `statistics`). `protect`: "none", "auto:17", or names of linears, separated by commas. Without
    `out`, errors are only measured. `progress` is called at each step; False ends the work.
    """
    return call(
        _octet.quantize,
        path_text("source", source),
        path_text("out", out),
        recipe=recipe,
        protect=protect,
        clip=clip,
        dialect=dialect,
        base=path_text("base", base),
        network=network,
        statistics=path_text("statistics", statistics),
        captions=[path_text("captions", caption) for caption in _several(captions)],
        any_caption=any_caption,
        calibration_steps=calibration_steps,
        calibration_size=calibration_size,
        seed=seed,
        max_memory=max_memory,
        measure=measure,
        verify=verify,
        device=device,
        threads=threads,
        progress=progress,
    )


def _several(captions: Iterable[Path]) -> Iterable[Path]:
    if isinstance(captions, (str, bytes, os.PathLike)) or not isinstance(captions, Iterable):
        refuse_type("captions", f"`captions` is {captions!r}; expected a list of files")
    return captions
