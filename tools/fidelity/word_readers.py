"""Two independent readers of a painted word: an OCR network, and templates of the painter's fonts.

The template reader does not spell freely. It lays the asked word over the ink that it finds, and
asks for each letter which of all letters and digits fits that place best. It needs no training, but
it believes that the word stands in one of the painter's fonts.
"""

from __future__ import annotations

import string
from functools import lru_cache
from pathlib import Path

import neighbours  # noqa: F401
import numpy as np
from PIL import Image, ImageDraw, ImageFont
from scipy import ndimage

import drawing
from asked import FONTS_FOLDER, Asked, Box, Element, fitted_word
from pixels import bounds, grown, inside, pieces_touching

LETTERS = string.ascii_uppercase + string.ascii_lowercase + string.digits
# Hardly different in these fonts, so that none of them is held against another.
LOOKALIKES = ("Il1", "O0", "o0")
TEMPLATE_SIZE = 64  # of the font, in pixels
MARGIN = 12  # pixels that a word may reach beyond its box
LEAST_FIT = 0.55  # correlation below which a letter's place holds no letter at all
ROOM = 16  # around a letter on its canvas
CANVAS_HEIGHT = TEMPLATE_SIZE + TEMPLATE_SIZE // 2 + 2 * ROOM
REACH = 16  # beyond a letter's own width: a wider one sticks out there
SHIFTS = [(dy, dx) for dy in range(-4, 5, 2) for dx in range(-8, 9, 2)]  # in the template's pixels


def _other_boxes(asked: Asked, element: Element, width: int, height: int) -> np.ndarray:
    mask = np.zeros((height, width), bool)
    for other in asked.elements:
        if other is not element:
            mask |= inside(grown(other.box, 1, 1, width, height), width, height)
    return mask & ~inside(element.box, width, height)


# --- OCR -----------------------------------------------------------------------------------------


@lru_cache(maxsize=1)
def _engine():
    from rapidocr import RapidOCR

    return RapidOCR(
        params={
            "Global.log_level": "error",
            "EngineConfig.onnxruntime.intra_op_num_threads": 1,
        }
    )


def _texts(image: Image.Image, **options) -> list[str]:
    found = _engine()(np.asarray(image)[:, :, ::-1], **options).txts
    return [text.replace(" ", "") for text in found or ()]


def ocr_readings(picture: np.ndarray, background: np.ndarray, asked: Asked, element: Element):
    """What the network reads in the word's box, and on the whole picture, three times as large."""
    height, width, _ = picture.shape
    clean = np.where(_other_boxes(asked, element, width, height)[..., None], background, picture)
    margin = max(4, round(0.15 * (element.box[3] - element.box[1])))
    x0, y0, x1, y1 = grown(element.box, margin, margin, width, height)
    readings = []
    for source, options in (
        (clean[y0:y1, x0:x1], {"use_det": False, "use_cls": False}),
        (picture, {"use_cls": False}),
    ):
        image = Image.fromarray(source.round().astype(np.uint8))
        large = image.resize((3 * image.width, 3 * image.height), Image.BICUBIC)
        readings += _texts(large, **options)
    return readings


# --- templates -----------------------------------------------------------------------------------


def _panel_behind(picture: np.ndarray, asked: Asked, element: Element):
    """The box and the colour of the thing that a word is written on; None for the background."""
    height, width, _ = picture.shape
    x0, y0, x1, y1 = element.box
    for other in asked.elements:
        a, b, c, d = other.box
        if other is element or not (a <= x0 and b <= y0 and c >= x1 and d >= y1):
            continue
        box = (a + 2, b + 2, c - 2, d - 2)  # its edge is neither
        around = inside(box, width, height) & ~inside(element.box, width, height)
        if around.any():
            return box, np.median(picture[around], axis=0)
    return None


def found_ink(picture: np.ndarray, background: np.ndarray, asked: Asked, element: Element):
    """How much ink each pixel holds, whatever its colour, and the box around it; None without."""
    height, width, _ = picture.shape
    region = inside(grown(element.box, MARGIN, MARGIN, width, height), width, height)
    region &= ~_other_boxes(asked, element, width, height)
    if panel := _panel_behind(picture, asked, element):
        region &= inside(panel[0], width, height)
        background = panel[1]
    distance = np.linalg.norm(picture - background, axis=-1) * region
    most = np.percentile(distance[inside(element.box, width, height)], 99)
    if most < 24:  # of 441: nothing stands out
        return None
    ink = np.clip(distance / np.median(distance[distance > 0.7 * most]), 0, 1)
    box = bounds(pieces_touching(ink > 0.5, element.box))
    return (ink, box) if box else None


@lru_cache(maxsize=8)
def _face(font: str) -> ImageFont.FreeTypeFont:
    return ImageFont.truetype(str(Path(FONTS_FOLDER) / drawing.FONT_FILES[font]), TEMPLATE_SIZE)


@lru_cache(maxsize=512)
def _glyph(letter: str, font: str) -> np.ndarray:
    """Its ink, with ROOM on all sides of where the pen starts and ends."""
    face = _face(font)
    width = round(face.getlength(letter)) + 2 * ROOM
    canvas = Image.new("L", (width, CANVAS_HEIGHT))
    ImageDraw.Draw(canvas).text((ROOM, ROOM), letter, fill=255, font=face)
    return np.asarray(canvas, np.float32) / 255


def _starts(text: str, font: str) -> list[int]:
    """Where the pen is for each letter, pairs kerned."""
    length = _face(font).getlength
    return [round(length(text[: i + 1]) - length(letter)) for i, letter in enumerate(text)]


def _layer(letters: list[tuple[str, int]], font: str, width: int) -> np.ndarray:
    """Letters at their places on one canvas."""
    layer = np.zeros((CANVAS_HEIGHT, width), np.float32)
    for letter, start in letters:
        glyph = _glyph(letter, font)[:, : width - start]
        part = layer[:, start : start + glyph.shape[1]]
        np.maximum(part, glyph, out=part)
    return layer


def _laid_over(ink: np.ndarray, box: Box, target: Box, shape: tuple[int, int]) -> np.ndarray:
    """The picture's ink, stretched so that `box` comes to lie on `target`, a box of the canvas."""
    axes = []
    for size, begin, end, low, high in (
        (shape[0], box[1], box[3], target[1], target[3]),
        (shape[1], box[0], box[2], target[0], target[2]),
    ):
        scale = (end - begin) / (high - low)
        axes.append(begin + (np.arange(size) + 0.5 - low) * scale - 0.5)
    grid = np.meshgrid(*axes, indexing="ij")
    return ndimage.map_coordinates(ink, grid, order=1).astype(np.float32)


def _correlation(a: np.ndarray, b: np.ndarray) -> float:
    a, b = a - a.mean(), b - b.mean()
    return float((a * b).sum() / max(1e-6, np.sqrt((a * a).sum() * (b * b).sum())))


def _best_letter(seen: np.ndarray, text: str, starts: list[int], i: int, font: str):
    """The letter that fits the place of letter i best, its neighbours being as asked."""
    width = seen.shape[1]
    others = [(text[j], start) for j, start in enumerate(starts) if j != i]
    around = _layer(others, font, width)
    left = max(0, starts[i] + ROOM - REACH)
    right = min(width, starts[i] + _glyph(text[i], font).shape[1] - ROOM + REACH)
    templates = np.stack(
        [np.maximum(around, _layer([(c, starts[i])], font, width))[:, left:right] for c in LETTERS]
    )
    views = np.stack([np.roll(seen, shift, (0, 1))[:, left:right] for shift in SHIFTS])
    flat, flat_views = templates.reshape(len(LETTERS), -1), views.reshape(len(views), -1)
    errors = (flat**2).sum(axis=1)[:, None] + (flat_views**2).sum(axis=1) - 2 * flat @ flat_views.T
    letter, view = np.unravel_index(errors.argmin(), errors.shape)
    return LETTERS[letter], _correlation(templates[letter], views[view])


def template_reading(picture: np.ndarray, background: np.ndarray, asked: Asked, element: Element):
    """As many letters as were asked for; `?` where there is none."""
    text = element.text
    found = found_ink(picture, background, asked, element)
    if found is None:
        return "?" * len(text)
    ink, found_box = found
    best = None
    for font in drawing.FONT_FILES:
        starts = _starts(text, font)
        width = starts[-1] + _glyph(text[-1], font).shape[1]
        word = _layer(list(zip(text, starts)), font, width)
        target = bounds(word > 96 / 255)  # as drawing.word_mask() cuts it
        for box in (found_box, fitted_word(text, font, element.box)[1]):
            seen = _laid_over(ink, box, target, word.shape)
            fit = _correlation(seen, word)
            if best is None or fit > best[0]:
                best = (fit, font, starts, seen)
    _, font, starts, seen = best
    letters = [_best_letter(seen, text, starts, i, font) for i in range(len(text))]
    return "".join(letter if fit >= LEAST_FIT else "?" for letter, fit in letters)


def alike(read: str, letter: str) -> bool:
    return read == letter or any(read in group and letter in group for group in LOOKALIKES)
