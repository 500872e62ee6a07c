"""Pictures that are wrong in one way, or only worse: what the judges must tell apart."""

from __future__ import annotations

import copy
import random

import neighbours  # noqa: F401
import numpy as np
from PIL import Image, ImageFilter

import drawing
import scenes
from asked import FONTS_FOLDER


def _words(scene: scenes.Scene) -> list[scenes.Word]:
    return [element for element in scene.elements if isinstance(element, scenes.Word)]


def another_word(scene: scenes.Scene, chance: random.Random) -> Image.Image:
    """As many letters, in the same place and font."""
    scene = copy.deepcopy(scene)
    for word in _words(scene):
        same_length = [text for text in scenes.HELD_OUT_WORDS if len(text) == len(word.text)]
        word.text = chance.choice([t for t in same_length if t != word.text.upper()])
        _fit_word(word)
    return scenes.paint(scene, FONTS_FOLDER)


def one_letter_wrong(scene: scenes.Scene, chance: random.Random) -> Image.Image:
    """A letter becomes another one of its case. Not a lookalike: I and O stay out of it."""
    scene = copy.deepcopy(scene)
    for word in _words(scene):
        place = chance.randrange(len(word.text))
        old = word.text[place]
        letters = [c for c in "ABCDEFGHKLMNPRSTUVWXYZ" if c != old.upper()]
        new = chance.choice(letters)
        new = new if old.isupper() else new.lower()
        word.text = word.text[:place] + new + word.text[place + 1 :]
        _fit_word(word)
    return scenes.paint(scene, FONTS_FOLDER)


def _fit_word(word: scenes.Word) -> None:
    """Into the middle of the old ink."""
    x0, y0, x1, y1 = word.ink
    mask = drawing.word_mask(FONTS_FOLDER, word.text, word.font, word.size)
    while mask.width > scenes.SIDE - 8:
        word.size -= 2
        mask = drawing.word_mask(FONTS_FOLDER, word.text, word.font, word.size)
    left = min(max(0, (x0 + x1 - mask.width) // 2), scenes.SIDE - mask.width)
    top = min(max(0, (y0 + y1 - mask.height) // 2), scenes.SIDE - mask.height)
    word.ink = (left, top, left + mask.width, top + mask.height)


def other_colours(scene: scenes.Scene, chance: random.Random) -> Image.Image:
    """Every element in the opposite hue, or grey become red; two colours are swapped as well."""
    scene = copy.deepcopy(scene)
    for element in scene.elements:
        changed = [_turned(colour) for colour in element.colours][::-1]
        if isinstance(element, scenes.Word):
            element.colour = changed[0]
        else:
            element.colours = changed
    return scenes.paint(scene, FONTS_FOLDER)


def swapped_pairs(scene: scenes.Scene, chance: random.Random) -> Image.Image:
    """The two colours of each thing that has two, the other way round."""
    scene = copy.deepcopy(scene)
    for element in scene.elements:
        if isinstance(element, scenes.Thing):
            element.colours = element.colours[::-1]
    return scenes.paint(scene, FONTS_FOLDER)


def _turned(colour):
    red, green, blue = colour
    if max(colour) - min(colour) < 60:
        return (200, 30, 30)
    return (blue, red, green)


def moved(scene: scenes.Scene, chance: random.Random, pixels: int = 16) -> Image.Image:
    """Everything lies elsewhere: the picture is moved, its rows and columns wrapped around."""
    picture = np.asarray(scenes.paint(scene, FONTS_FOLDER))
    dx, dy = (chance.choice((-pixels, pixels)) for _ in range(2))
    return Image.fromarray(np.roll(picture, (dy, dx), (0, 1)))


def blurred(scene: scenes.Scene, chance: random.Random, radius: float = 8) -> Image.Image:
    return scenes.paint(scene, FONTS_FOLDER).filter(ImageFilter.GaussianBlur(radius))


def noisy(scene: scenes.Scene, chance: random.Random, sigma: float = 120) -> Image.Image:
    picture = np.asarray(scenes.paint(scene, FONTS_FOLDER), np.float64)
    noise = np.random.default_rng(chance.randrange(1 << 32)).normal(0, sigma, picture.shape)
    return Image.fromarray(np.clip(picture + noise, 0, 255).astype(np.uint8))


def empty(scene: scenes.Scene, chance: random.Random) -> Image.Image:
    return Image.new("RGB", (scenes.SIDE, scenes.SIDE), scene.background)
