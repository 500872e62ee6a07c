#!/usr/bin/env python3
"""What the judges give pictures that are right by construction, and pictures that are not.

    tools/fidelity/ceiling.py [--scenes N] [--wrong N] [--json FILE]

Each score has a ceiling: a reader that misreads the painter's own words would count that against
every model.
"""

from __future__ import annotations

import argparse
import json
import random
from pathlib import Path

import neighbours  # noqa: F401
import numpy as np

import scenes
import wrong_pictures
from asked import FONTS_FOLDER
from judges import SCORES, judge
from make_captions import caption_of, scene_of

# Apart from the evaluation's captions, and from scenes that the judges were tuned on (+ 10,000).
FIRST_SEED = (1 << 52) + 1_000_000
WRONG = (
    "another_word",
    "one_letter_wrong",
    "other_colours",
    "swapped_pairs",
    "moved",
    "blurred",
    "noisy",
    "empty",
)


def means_of(verdicts: list[dict]) -> dict[str, float]:
    return {
        score: float(np.mean([v[score] for v in verdicts if v[score] is not None]))
        for score in SCORES
    }


def judge_scene(seed: int, kind: str | None = None) -> dict:
    """The verdict on the picture of that scene, wrong in one way or right."""
    scene = scene_of(seed)
    if kind is None:
        picture = scenes.paint(scene, FONTS_FOLDER)
    else:
        picture = getattr(wrong_pictures, kind)(scene, random.Random(seed))
    return judge(caption_of(seed), picture)


def judged(kind: str | None, count: int) -> list[dict]:
    return [judge_scene(seed, kind) for seed in range(FIRST_SEED, FIRST_SEED + count)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scenes", type=int, default=200)
    parser.add_argument("--wrong", type=int, default=40, help="pictures of each wrong kind")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    result = {"right": {"count": arguments.scenes, **means_of(judged(None, arguments.scenes))}}
    for kind in WRONG if arguments.wrong else ():
        verdicts = judged(kind, arguments.wrong)
        result[kind] = {"count": arguments.wrong, **means_of(verdicts)}
    print(f"{'':18}" + "".join(f"{score:>14}" for score in SCORES))
    for kind, means in result.items():
        print(f"{kind:18}" + "".join(f"{means[score]:14.3f}" for score in SCORES))
    if arguments.json:
        arguments.json.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
