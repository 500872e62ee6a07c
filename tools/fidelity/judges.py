#!/usr/bin/env python3
"""Scores a picture against its caption, by code: are the words right, the colours, the places?

    tools/fidelity/judges.py CAPTION.json PICTURE.png

Captions are those of tools/demo_model; what it asks for is painted once more by the ground-truth
painter, element by element, and the picture is held against that.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import neighbours  # noqa: F401
import numpy as np
from PIL import Image
from scipy import ndimage
from skimage.color import rgb2lab

import pixels
import word_readers
from asked import Asked, Element, background_pixels, coverages, read_caption

SCORES = ("ocr", "ocr_case", "template", "template_case", "letters", "colour", "iou", "caption_iou")
SLACK = 2  # pixels that a colour may be beside where the painter puts it
LEAST_SHARE = 1 / 3  # of the painter's pixels of a colour
LEAST_BACKGROUND = 1 / 2  # of what lies outside all elements


def judge_word(picture, background, asked: Asked, element: Element) -> dict:
    text = element.text
    readings = word_readers.ocr_readings(picture, background, asked, element)
    template = word_readers.template_reading(picture, background, asked, element)
    folded = [word_readers.alike(a, b) or a.lower() == b.lower() for a, b in zip(template, text)]
    return {
        "asked": text,
        "ocr": readings,
        "ocr_read": text.lower() in (reading.lower() for reading in readings),
        "ocr_read_case": text in readings,
        "template": template,
        "template_read": all(folded),
        "template_read_case": all(word_readers.alike(a, b) for a, b in zip(template, text)),
        "letters": sum(folded) / len(text),
    }


def colours_right(picture_lab: np.ndarray, element: Element) -> list[bool]:
    """For each colour: whether enough of it is where the painter puts it."""
    height, width, _ = picture_lab.shape
    right = []
    for colour, covered in zip(element.colours, coverages(element, width, height)):
        place = ndimage.binary_dilation(covered > 0.5, iterations=SLACK)
        pixels_there = (pixels.near(picture_lab, colour) & place).sum()
        right.append(bool(pixels_there >= LEAST_SHARE * (covered > 0.9).sum()))
    return right


def background_right(picture_lab: np.ndarray, asked: Asked) -> bool | None:
    if asked.background is None:
        return None
    height, width, _ = picture_lab.shape
    wanted = rgb2lab(background_pixels(asked.background, width, height) / 255)
    near = np.linalg.norm(picture_lab - wanted, axis=-1) < pixels.NEAR
    return bool(near[pixels.outside_elements(asked, width, height)].mean() >= LEAST_BACKGROUND)


def box_scores(picture, background, element: Element) -> dict:
    """Intersection over union of the box around the element's colours, with the box that the
    painter's picture of it has, and with the caption's: a word seldom fills that."""
    height, width, _ = picture.shape
    x0, y0, x1, y1 = element.box
    region = pixels.grown(element.box, (x1 - x0) // 4, (y1 - y0) // 4, width, height)
    covered = np.max(
        [pixels.coverage(picture, background, colour) for colour in element.colours], axis=0
    )
    mask = (covered >= pixels.COVERED) & pixels.inside(region, width, height)
    found = pixels.bounds(pixels.pieces_touching(mask, element.box))
    painted = np.sum(coverages(element, width, height), axis=0) >= pixels.COVERED
    return {
        "found": found,
        "iou": pixels.overlap(found, pixels.bounds(painted)),
        "caption_iou": pixels.overlap(found, element.box),
    }


def judge(caption: str, picture: Image.Image) -> dict:
    """Scores of the picture between 0 and 1 (None: nothing to judge), and of each element."""
    values = np.asarray(picture.convert("RGB"), np.float64)
    height, width, _ = values.shape
    asked = read_caption(caption, width, height)
    background = pixels.found_background(values, asked)
    lab = rgb2lab(values / 255)
    elements = []
    for element in asked.elements:
        scores = {"kind": element.kind, "colours": colours_right(lab, element)}
        scores |= box_scores(values, background, element)
        if element.text is not None:
            scores["word"] = judge_word(values, background, asked, element)
        elements.append(scores)
    behind = background_right(lab, asked)
    words = [scores["word"] for scores in elements if "word" in scores]
    colours = [right for scores in elements for right in scores["colours"]]

    def mean(scores: list) -> float | None:
        return float(np.mean(scores)) if scores else None

    return {
        "ocr": mean([word["ocr_read"] for word in words]),
        "ocr_case": mean([word["ocr_read_case"] for word in words]),
        "template": mean([word["template_read"] for word in words]),
        "template_case": mean([word["template_read_case"] for word in words]),
        "letters": mean([word["letters"] for word in words]),
        "colour": mean(colours + ([] if behind is None else [behind])),
        "iou": mean([scores["iou"] for scores in elements]),
        "caption_iou": mean([scores["caption_iou"] for scores in elements]),
        "background": behind,
        "elements": elements,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("caption", type=Path)
    parser.add_argument("picture", type=Path)
    arguments = parser.parse_args()
    caption = arguments.caption.read_text(encoding="utf-8")
    print(json.dumps(judge(caption, Image.open(arguments.picture)), indent=1, ensure_ascii=False))


if __name__ == "__main__":
    main()
