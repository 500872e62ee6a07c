#!/usr/bin/env python3
"""Writes held-out captions for evaluation, 000.json and so on: words that training never shows, and
pairs of thing and hue of which every second is one that it never shows.

    tools/fidelity/make_captions.py FOLDER [--count 128] [--first-seed N]
"""

from __future__ import annotations

import argparse
import json
import random
import re
from functools import lru_cache
from pathlib import Path

import neighbours  # noqa: F401

import captions
import scenes
import tokenizer
from asked import FONTS_FOLDER
from feed import BUCKETS

FIRST_SEED = 1 << 52  # training counts up from small seeds
CALIBRATION_SEED = 1 << 51  # of captions as in training, which calibration may see


@lru_cache(maxsize=2)
def _maker(held_out: bool) -> scenes.SceneMaker:
    return scenes.SceneMaker(FONTS_FOLDER, held_out=held_out)


@lru_cache(maxsize=1)
def _encoder():
    return tokenizer.Encoder(tokenizer.build())


def scene_of(seed: int, held_out: bool = True) -> scenes.Scene:
    return _maker(held_out).make(seed)


def caption_of(seed: int, held_out: bool = True) -> str:
    """As in training, a caption too long for the model is written anew in other words."""
    for attempt in range(64):
        writer = captions.CaptionWriter(random.Random(seed * 7 + attempt))
        caption = writer.write(scene_of(seed, held_out))
        if len(_encoder().encode(caption)) <= BUCKETS[-1]:
            return caption
    raise ValueError(f"no caption of scene {seed} is short enough")


def pretty(caption: str) -> str:
    """Indented, but with boxes and palettes on one line."""
    text = json.dumps(json.loads(caption), indent=2, ensure_ascii=False)
    return re.sub(r"\[\s+([^][{}]*?)\s+\]", lambda m: f"[{' '.join(m[1].split())}]", text) + "\n"


def write_captions(folder: Path, count: int, first_seed: int, held_out: bool = True) -> None:
    """Files that are there already with the same content are left alone."""
    folder.mkdir(parents=True, exist_ok=True)
    for i in range(count):
        path = folder / f"{i:03}.json"
        text = pretty(caption_of(first_seed + i, held_out))
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--count", type=int, default=128)
    parser.add_argument("--first-seed", type=int, default=FIRST_SEED)
    arguments = parser.parse_args()
    write_captions(arguments.folder, arguments.count, arguments.first_seed)


if __name__ == "__main__":
    main()
