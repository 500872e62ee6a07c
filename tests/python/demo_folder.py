"""Folders for `octet demo`: a tiny model in place of the trained one, and that one itself."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from conftest import REPOSITORY

# Published latents, tokens of 16 pixels: what the demo's model has in common with Ideogram 4.
SIZE = (256, 256)
STEPS = {"default": 3, "turbo": 2}
DESCRIPTION = "A red circle on white."
CAPTION = {
    "high_level_description": DESCRIPTION,
    "compositional_deconstruction": {"background": "A white page.", "elements": []},
}


@pytest.fixture(scope="session")
def demo_folder(tmp_path_factory) -> Path:
    """Random weights with a small guide, presets and a caption of their own; not to be changed."""
    pytest.importorskip("diffusers")
    pytest.importorskip("transformers")
    import tiny_ideogram4 as tiny

    folder = tmp_path_factory.mktemp("demo")
    shape = tiny.SHAPES["wide"]
    tiny.save_pipeline(folder, shape)
    guide = replace(shape, layers=1, text_hidden=1)
    tiny.make_transformer(guide, 1).save_pretrained(folder / "unconditional_transformer")
    presets = [
        {"name": name, "steps": steps, "guidance": 3.0, "mu": 0.5, "std": 1.2}
        for name, steps in STEPS.items()
    ]
    (folder / "octet_presets.json").write_text(json.dumps({"presets": presets, "size": SIZE}))
    (folder / "demo.json").write_text(json.dumps(CAPTION))
    return folder


@pytest.fixture(scope="session")
def trained_folder() -> Path:
    return REPOSITORY / "models" / "demo"
