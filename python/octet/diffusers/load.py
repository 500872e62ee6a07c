"""load_int8: a checkpoint in any dialect, loaded into the networks of diffusers' Ideogram 4.

First everything is looked up, then all of it is read, then modules are replaced: whatever is wrong
with a file, the model stays what it was.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TypeVar, Union

import torch
from diffusers import Ideogram4Pipeline, Ideogram4Transformer2DModel

from octet._calls import path_text
from octet._octet import Checkpoint
from octet.diffusers import names
from octet.diffusers.config import OctetConfig
from octet.diffusers.quantizer import OctetQuantizer, check_accelerate
from octet.diffusers.staged import StagedTransformer
from octet.errors import OctetError, refuse, refuse_type
from octet.torch.model import fuse_
from octet.torch.readers import adapt

AnyPath = Union[str, "os.PathLike[str]"]
Target = TypeVar("Target", Ideogram4Pipeline, Ideogram4Transformer2DModel)

_FOLDERS = {names.CONDITIONAL: "transformer", names.UNCONDITIONAL: "unconditional_transformer"}


def load_int8(
    target: Target,
    checkpoint: AnyPath,
    *,
    unconditional: AnyPath | None = None,
    branch: str = names.CONDITIONAL,
    recipe: str = "convrot",
    keep_missing: bool = False,
) -> Target:
    """Loads INT8 weights into an Ideogram 4 pipeline, or into one of its networks.

    checkpoint: a safetensors or GGUF file, an index of shards, or a folder with one of them or with
        both networks, in any dialect of docs/checkpoints.md. INT8 codes are taken unchanged,
        linears that an INT8 file protects stay in floating point, and the large linears of all
        other files are quantized by `recipe`.
    unconditional: the second network, if `checkpoint` contains only the first.
    branch: which network is meant, if `target` is one network and the file contains both.
    keep_missing: weights that the file lacks stay as they are in the model, instead of being an
        error: Transformer Lab's files have no norms.
    """
    config = OctetConfig(recipe=recipe)
    staged = [
        StagedTransformer(model, _opened(path, which), which, keep_missing=keep_missing)
        for model, path, which in _wanted(target, checkpoint, unconditional, branch)
    ]
    for one in staged:
        one.read(recipe)
    for one in staged:
        one.commit()
        _note_quantized(one.model, config)
        adapt(one.model)
        fuse_(one.model)
    return target


def load_pipeline(
    model: AnyPath,
    checkpoint: AnyPath,
    *,
    unconditional: AnyPath | None = None,
    recipe: str = "convrot",
    dtype: torch.dtype = torch.bfloat16,
) -> Ideogram4Pipeline:
    """An Ideogram 4 pipeline whose networks come from `checkpoint`, see load_int8().

    model: a folder or repository for everything else; of its own networks, only the
        configurations are read.
    """
    _check_files(checkpoint, unconditional)
    folder = path_text("model", model)
    parts = {part: _empty_transformer(folder, part, dtype) for part in _FOLDERS.values()}
    pipe = Ideogram4Pipeline.from_pretrained(folder, dtype=dtype, **parts)
    return load_int8(pipe, checkpoint, unconditional=unconditional, recipe=recipe)


def _check_files(checkpoint: AnyPath, unconditional: AnyPath | None) -> None:
    """Before minutes are spent on everything else."""
    Checkpoint(_part(path_text("checkpoint", checkpoint), names.CONDITIONAL))
    if unconditional is not None:
        Checkpoint(_part(path_text("unconditional", unconditional), names.UNCONDITIONAL))


def _empty_transformer(
    model: str, part: str, dtype: torch.dtype
) -> Ideogram4Transformer2DModel:
    """Without memory for parameters, but with what a model computes for itself."""
    check_accelerate()
    from accelerate import init_empty_weights

    config = Ideogram4Transformer2DModel.load_config(model, subfolder=part)
    with init_empty_weights():
        made = Ideogram4Transformer2DModel.from_config(config)
    for parameter in made.parameters():  # not to(), which would round rotary frequencies as well
        parameter.data = parameter.data.to(dtype)
    return made.eval()


def _wanted(
    target: Target,
    checkpoint: AnyPath,
    unconditional: AnyPath | None,
    branch: str,
) -> list[tuple[Ideogram4Transformer2DModel, str, str]]:
    """Which model takes which network of which file."""
    if branch not in _FOLDERS:
        refuse("branch", f"`branch` is {branch!r}; expected {' or '.join(map(repr, _FOLDERS))}")
    path = path_text("checkpoint", checkpoint)
    if isinstance(target, Ideogram4Transformer2DModel):
        if unconditional is not None:
            words = "unconditional is for a pipeline, and the target is a single network"
            refuse_type("unconditional", words)
        return [(target, _part(path, branch), branch)]
    models = {which: getattr(target, part, None) for which, part in _FOLDERS.items()}
    for which, model in models.items():
        if not isinstance(model, Ideogram4Transformer2DModel):
            refuse_type(
                "target",
                f"load_int8 takes an Ideogram4Pipeline or an Ideogram4Transformer2DModel, and the "
                f"{_FOLDERS[which]} of this {type(target).__name__} is {type(model).__name__}",
            )
    if unconditional is None and not _holds_both(path):
        raise OctetError(
            f"{path}: contains one network, and the pipeline has two; name the other as "
            "`unconditional`, or load this one into `pipe.transformer`"
        )
    other = path if unconditional is None else path_text("unconditional", unconditional)
    return [
        (models[names.CONDITIONAL], _part(path, names.CONDITIONAL), names.CONDITIONAL),
        (models[names.UNCONDITIONAL], _part(other, names.UNCONDITIONAL), names.UNCONDITIONAL),
    ]


def _part(path: str, branch: str) -> str:
    """The folder of a network in that of a pipeline; otherwise the path itself."""
    inside = Path(path, _FOLDERS[branch])
    return str(inside) if inside.is_dir() else path


def _holds_both(path: str) -> bool:
    if Path(path, _FOLDERS[names.UNCONDITIONAL]).is_dir():
        return True
    tensors = Checkpoint(_part(path, names.CONDITIONAL)).tensors
    return names.has_branch(tensors, names.UNCONDITIONAL)


def _opened(path: str, branch: str) -> Checkpoint:
    checkpoint = Checkpoint(path)
    noted = _noted_branch(checkpoint)
    if noted not in (None, branch):
        raise OctetError(
            f"{checkpoint.path}: was taken for the {branch} network, but is the {noted} one"
        )
    return checkpoint


def _noted_branch(checkpoint: Checkpoint) -> str | None:
    """Which network a file contains, if `octet quantize` noted it."""
    try:
        noted = json.loads(checkpoint.metadata["octet.quantization"])["protected"]
    except (KeyError, TypeError, ValueError):
        return None
    branches = [branch for branch in _FOLDERS if branch in noted]
    return branches[0] if len(branches) == 1 else None


def _note_quantized(model: Ideogram4Transformer2DModel, config: OctetConfig) -> None:
    """Marks a model as from_pretrained() does, so that save_pretrained() works."""
    config = OctetConfig(config.recipe, dtype=str(model.dtype).removeprefix("torch."))
    model.register_to_config(quantization_config=config)
    model.hf_quantizer = OctetQuantizer(config, pre_quantized=True)
    model.is_quantized = True
    model.quantization_method = config.quant_method
