"""What a caption asks for, read back from its JSON, and how the ground-truth painter paints it.

Only captions as tools/demo_model/captions.py writes them are understood: each element has a box and
names a known thing or perhaps a font, and its colours are a palette or one known name.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

import neighbours  # noqa: F401
import numpy as np
from PIL import Image

import captions
import drawing
from palette import NAMED, Colour

FONTS_FOLDER = "/usr/share/fonts/truetype/dejavu"
Box = tuple[int, int, int, int]  # x0, y0, x1, y1 in pixels, the ends left out


@dataclass
class Element:
    kind: str  # of drawing.KINDS, or the font of a word
    text: str | None
    box: Box
    colours: list[Colour]


@dataclass
class Asked:
    background: list[Colour] | None  # two of a gradient; None where the caption gives no colour
    elements: list[Element]


def _phrases(table: dict[str, list[str]]) -> list[tuple[str, str]]:
    """(phrase, key), the longest first: "bold serif" is not "bold"."""
    pairs = [(phrase, key) for key, phrases in table.items() for phrase in phrases]
    return sorted(pairs, key=lambda pair: -len(pair[0]))


_FONT_PHRASES = _phrases(captions.FONTS)
_NOUN_PHRASES = _phrases(captions.NOUNS)
_COLOUR_PHRASES = _phrases({name: [name] for name in NAMED})


def _find(phrases: list[tuple[str, str]], text: str) -> str | None:
    for phrase, key in phrases:
        if re.search(rf"(?<![\w-]){re.escape(phrase)}(?![\w-])", text.lower()):
            return key
    return None


def _hex_colours(text: str) -> list[Colour]:
    return [tuple(bytes.fromhex(digits)) for digits in re.findall(r"#([0-9A-Fa-f]{6})", text)]


def _colours(text: str) -> list[Colour] | None:
    """Those written as #RRGGBB, else the one that is named."""
    name = _find(_COLOUR_PHRASES, text)
    return _hex_colours(text) or ([NAMED[name]] if name else None)


def _element(entry: dict, width: int, height: int) -> Element:
    y0, x0, y1, x1 = entry["bbox"]
    box = (
        round(x0 * width / 1000),
        round(y0 * height / 1000),
        round(x1 * width / 1000),
        round(y1 * height / 1000),
    )
    is_word = entry["type"] == "text"
    if is_word:
        kind = _find(_FONT_PHRASES, entry["desc"]) or captions.DEFAULT_FONT
    else:
        kind = _find(_NOUN_PHRASES, entry["desc"])
    colours = _colours(" ".join(entry.get("color_palette", [])) or entry["desc"])
    if kind is None or colours is None:
        raise ValueError(f"cannot tell what is painted, or in which colour: {entry['desc']!r}")
    return Element(kind, entry["text"] if is_word else None, box, colours)


def read_caption(caption: str, width: int, height: int) -> Asked:
    parts = json.loads(caption)["compositional_deconstruction"]
    elements = [_element(entry, width, height) for entry in parts["elements"]]
    return Asked(_colours(parts["background"]), elements)


# --- painting ------------------------------------------------------------------------------------


def background_pixels(colours: list[Colour], width: int, height: int) -> np.ndarray:
    """Float [height, width, 3]."""
    part = np.linspace(0, 1, height)[:, None]
    rows = np.array(colours[0]) * (1 - part) + np.array(colours[-1]) * part
    return np.repeat(rows[:, None, :], width, axis=1)


def fitted_word(text: str, font: str, box: Box) -> tuple[Image.Image, Box]:
    """The ink of the word as large as the box allows, and where it lies: in the middle."""
    width, height = box[2] - box[0], box[3] - box[1]
    trial = drawing.word_mask(FONTS_FOLDER, text, font, 64)
    size = max(4, int(64 * min(width / trial.width, height / trial.height)) + 3)
    mask = drawing.word_mask(FONTS_FOLDER, text, font, size)
    while size > 4 and (mask.width > width or mask.height > height):
        size -= 1
        mask = drawing.word_mask(FONTS_FOLDER, text, font, size)
    left, top = box[0] + (width - mask.width) // 2, box[1] + (height - mask.height) // 2
    return mask, (left, top, left + mask.width, top + mask.height)


def coverages(element: Element, width: int, height: int) -> list[np.ndarray]:
    """How much of each pixel each colour of the element covers, what is painted later on top."""
    covered = []
    if element.text is not None:
        mask, ink = fitted_word(element.text, element.kind, element.box)
        layer = Image.new("L", (width, height))
        layer.paste(mask, ink)
        return [np.asarray(layer) / 255.0]
    for index in range(len(element.colours)):
        levels = [(255,) * 3 if i == index else (0,) * 3 for i in range(len(element.colours))]
        layer = Image.new("RGB", (width, height))
        drawing.paint_thing(layer, element.kind, element.box, levels)
        covered.append(np.asarray(layer)[:, :, 0] / 255.0)
    return covered
