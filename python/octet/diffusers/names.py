"""What the tensors of Ideogram 4's transformers are called in files, and in diffusers.

The same lists as the engine's (src/models/ideogram4/dit_source.cpp): who wrote a file decides what
stands before its names, and whether q, k and v are one linear or three.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

CONDITIONAL, UNCONDITIONAL = "conditional", "unconditional"

_OF_BRANCH = {
    CONDITIONAL: ("conditional.", "cond.", "conditional_transformer."),
    UNCONDITIONAL: ("unconditional.", "uncond.", "unconditional_transformer."),
}
_OF_EITHER = ("", "model.diffusion_model.", "diffusion_model.", "transformer.")
# Other parts of a model that ComfyUI saves in one file with its transformer.
_OTHER_PARTS = ("first_stage_model.", "cond_stage_model.", "text_encoders.", "vae.")
# Every file of a transformer has tensors with one of these names, also one without norms.
_MARKS = ("embed_image_indicator.", "layers.0.", "input_proj.")
_UNREAD = ("rotary_emb.inv_freq", "scaled_fp8")

_QKV = ("attention.to_q", "attention.to_k", "attention.to_v")
_OUT, _OUT_IN_FILES = "attention.to_out.0", "attention.o"


def has_branch(tensors: Iterable[str], branch: str) -> bool:
    """Whether the file says in its names that it holds this one of two transformers."""
    return any(_has(tensors, prefix) for prefix in _OF_BRANCH[branch])


def find_prefix(tensors: Iterable[str], branch: str) -> str | None:
    """What stands before this transformer's names; None when the file does not have it."""
    for prefix in _OF_BRANCH[branch] + _OF_EITHER:
        if _has(tensors, prefix):
            return prefix
    return None


def _has(tensors: Iterable[str], prefix: str) -> bool:
    begins = tuple(prefix + mark for mark in _MARKS)
    return any(name.startswith(begins) for name in tensors)


def is_unread(name: str, branch: str) -> bool:
    """Whether a tensor, without its prefix if it has one, is of no use to this transformer."""
    other = UNCONDITIONAL if branch == CONDITIONAL else CONDITIONAL
    unread = name in _UNREAD or name.startswith(_OF_BRANCH[other] + _OTHER_PARTS)
    return unread or is_of_no_effect(name, branch)


def is_of_no_effect(name: str, branch: str) -> bool:
    """The unconditional transformer has a place for weights of the text, of which it sees none."""
    return branch == UNCONDITIONAL and name.startswith("llm_cond_")


def is_large(module: str) -> bool:
    """Whether a linear is one of those that run in INT8 unless its file protects it."""
    return ".attention." in module or ".feed_forward." in module


def places_of(module: str, rows: int) -> Iterator[tuple[str, int, int]]:
    """Where a linear may be in a file: a module there, its first row in it, and the rows of all."""
    yield module, 0, rows
    for index, part in enumerate(_QKV):
        if module.endswith(part):
            yield module.removesuffix(part) + "attention.qkv", index * rows, len(_QKV) * rows
    if module.endswith(_OUT):
        yield module.removesuffix(_OUT) + _OUT_IN_FILES, 0, rows


def listed(tensors: Sequence[str], shown: int = 8) -> str:
    """Names for a sentence, the first of many."""
    rest = len(tensors) - shown
    return ", ".join(map(repr, tensors[:shown])) + (f" and {rest} more" if rest > 0 else "")
