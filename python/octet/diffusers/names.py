"""What the tensors of Ideogram 4's networks are called in files, and in diffusers.

The same lists as the engine's (src/models/ideogram4/dit_source.cpp): the program that wrote a file
decides on the prefix of its names, and whether q, k and v are one linear or three.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

CONDITIONAL, UNCONDITIONAL = "conditional", "unconditional"

_OF_BRANCH = {
    CONDITIONAL: ("conditional.", "cond.", "conditional_transformer."),
    UNCONDITIONAL: ("unconditional.", "uncond.", "unconditional_transformer."),
}
_OF_EITHER = ("", "model.diffusion_model.", "diffusion_model.", "transformer.")
# Other parts of a model that ComfyUI saves in one file with its network.
_OTHER_PARTS = ("first_stage_model.", "cond_stage_model.", "text_encoders.", "vae.")
# Every file of a network has tensors with one of these names, even one without norms.
_MARKS = ("embed_image_indicator.", "layers.0.", "input_proj.")
_UNREAD = ("rotary_emb.inv_freq", "scaled_fp8")

_QKV = ("attention.to_q", "attention.to_k", "attention.to_v")
_OUT, _OUT_IN_FILES = "attention.to_out.0", "attention.o"


def has_branch(tensors: Iterable[str], branch: str) -> bool:
    """Whether the names in a file say that it contains this one of two networks."""
    return any(_has(tensors, prefix) for prefix in _OF_BRANCH[branch])


def find_prefix(tensors: Iterable[str], branch: str) -> str | None:
    """The prefix of this network's names; None if the file does not contain it."""
    for prefix in _OF_BRANCH[branch] + _OF_EITHER:
        if _has(tensors, prefix):
            return prefix
    return None


def _has(tensors: Iterable[str], prefix: str) -> bool:
    begins = tuple(prefix + mark for mark in _MARKS)
    return any(name.startswith(begins) for name in tensors)


def is_unread(name: str, branch: str) -> bool:
    """Whether a tensor, named without its prefix, is of no use to this network."""
    other = UNCONDITIONAL if branch == CONDITIONAL else CONDITIONAL
    unread = name in _UNREAD or name.startswith(_OF_BRANCH[other] + _OTHER_PARTS)
    return unread or is_of_no_effect(name, branch)


def is_of_no_effect(name: str, branch: str) -> bool:
    """The unconditional network has weights for the text, which it never sees."""
    return branch == UNCONDITIONAL and name.startswith("llm_cond_")


def is_large(module: str) -> bool:
    """Whether a linear is one of those that run in INT8 unless its file protects it."""
    return ".attention." in module or ".feed_forward." in module


def places_of(module: str, rows: int) -> Iterator[tuple[str, int, int]]:
    """Where a linear may be in a file: a module, its first row there, and the module's rows."""
    yield module, 0, rows
    for index, part in enumerate(_QKV):
        if module.endswith(part):
            yield module.removesuffix(part) + "attention.qkv", index * rows, len(_QKV) * rows
    if module.endswith(_OUT):
        yield module.removesuffix(_OUT) + _OUT_IN_FILES, 0, rows


def listed(tensors: Sequence[str], shown: int = 8) -> str:
    """Names for a sentence: the first few, if there are many."""
    rest = len(tensors) - shown
    return ", ".join(map(repr, tensors[:shown])) + (f" and {rest} more" if rest > 0 else "")
