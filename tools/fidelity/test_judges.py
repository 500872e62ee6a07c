"""Judges give full marks to pictures that are right by construction, and see each way to be wrong.

pytest tools/fidelity
"""

from __future__ import annotations

import random
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

for package in ("rapidocr", "scipy", "skimage", "torch"):
    pytest.importorskip(package)

import ceiling
import make_captions
import numpy as np
import wrong_pictures
from asked import FONTS_FOLDER, read_caption
from judges import judge

import scenes

pytestmark = pytest.mark.skipif(
    not Path(FONTS_FOLDER, "DejaVuSans.ttf").exists(), reason="the painter's fonts are missing"
)
COUNT = 12


@pytest.fixture(scope="module")
def right():
    return ceiling.means_of(ceiling.judged(None, COUNT))


def wrong(kind: str) -> dict[str, float]:
    return ceiling.means_of(ceiling.judged(kind, COUNT))


def test_a_caption_is_read_back_as_the_scene_that_it_was_written_for():
    for seed in range(1000, 1040):
        scene, side = make_captions.scene_of(seed), scenes.SIDE
        asked = read_caption(make_captions.caption_of(seed), side, side)
        for element, meant in zip(asked.elements, scene.elements, strict=True):
            assert element.box == tuple(meant.box)
            assert element.colours == [tuple(colour) for colour in meant.colours]
            assert element.kind == (meant.font if element.text else meant.kind)
            assert element.text == getattr(meant, "text", None)


def test_what_is_right_gets_full_marks(right):
    for score in ("ocr", "template", "template_case", "letters", "colour"):
        assert right[score] == 1, score
    assert right["iou"] > 0.99


def test_another_word_is_not_read():
    scores = wrong("another_word")
    assert scores["ocr"] == scores["template"] == 0
    assert scores["letters"] < 0.3 and scores["colour"] == 1


def test_one_wrong_letter_is_seen():
    scores = wrong("one_letter_wrong")
    assert scores["ocr"] == scores["template"] == 0
    assert 0.5 < scores["letters"] < 0.95


def test_other_colours_are_seen_and_words_in_them_are_read():
    scores = wrong("other_colours")
    assert scores["colour"] < 0.45  # the background is right
    assert scores["ocr"] > 0.9 and scores["template"] > 0.9


def test_two_colours_that_changed_places_are_seen(right):
    for seed in range(ceiling.FIRST_SEED, ceiling.FIRST_SEED + 200):
        scene = make_captions.scene_of(seed)
        if any(getattr(element, "kind", "") in ("house", "checks") for element in scene.elements):
            picture = wrong_pictures.swapped_pairs(scene, random.Random(seed))
            for element in judge(make_captions.caption_of(seed), picture)["elements"]:
                if element["kind"] in ("house", "checks"):
                    assert not all(element["colours"])
            return
    pytest.fail("no scene with a house or a checkerboard")


def test_a_moved_picture_has_its_boxes_elsewhere(right):
    assert wrong("moved")["iou"] < 0.6 * right["iou"]


@pytest.mark.parametrize("kind", ["blurred", "noisy"])
def test_what_is_unclear_loses(right, kind):
    scores = wrong(kind)
    for score in ("ocr", "template", "colour", "iou"):
        assert scores[score] < right[score] - 0.1, score


def test_nothing_painted_is_nothing_right():
    scores = wrong("empty")
    assert scores["ocr"] == scores["template"] == scores["letters"] == scores["iou"] == 0


def test_slight_noise_costs_nothing():
    for seed in range(ceiling.FIRST_SEED, ceiling.FIRST_SEED + 4):
        picture = wrong_pictures.noisy(make_captions.scene_of(seed), random.Random(seed), 4)
        scores = judge(make_captions.caption_of(seed), picture)
        assert scores["template"] == scores["colour"] == 1 and scores["iou"] > 0.97


def test_captions_are_the_same_each_time(tmp_path):
    make_captions.write_captions(tmp_path / "a", 3, make_captions.FIRST_SEED)
    make_captions.write_captions(tmp_path / "b", 3, make_captions.FIRST_SEED)
    texts = [(tmp_path / folder / "002.json").read_text() for folder in "ab"]
    assert texts[0] == texts[1] and '"bbox": [' in texts[0]
    held_out = {word.lower() for word in scenes.HELD_OUT_WORDS}
    for seed in range(make_captions.FIRST_SEED, make_captions.FIRST_SEED + 20):
        words = [e.text for e in make_captions.scene_of(seed).elements if hasattr(e, "text")]
        assert all(word.lower() in held_out for word in words)


def test_ceiling_means_leave_out_what_was_not_judged():
    verdicts = [dict.fromkeys(ceiling.SCORES, value) for value in (0.5, 1.0, None)]
    assert np.allclose(list(ceiling.means_of(verdicts).values()), 0.75)
