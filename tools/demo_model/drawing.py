"""Draws the things that scenes are made of, with smooth edges.

A thing is drawn as one mask per colour, in a square of UNIT x UNIT that is scaled to its box: four
times the size of the picture, then averaged down.
"""

import math
from functools import lru_cache
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont

OVERSAMPLING = 4


def _polygon(draw, w, h, points, level=255):
    draw.polygon([(x * (w - 1), y * (h - 1)) for x, y in points], fill=level)


def _ellipse(draw, w, h, x0, y0, x1, y1, level=255):
    draw.ellipse((x0 * (w - 1), y0 * (h - 1), x1 * (w - 1), y1 * (h - 1)), fill=level)


def _rectangle(draw, w, h, x0, y0, x1, y1, level=255):
    draw.rectangle((x0 * (w - 1), y0 * (h - 1), x1 * (w - 1), y1 * (h - 1)), fill=level)


def _fill_box(points):
    """Points scaled so that they touch all four sides of the unit square."""
    xs, ys = [p[0] for p in points], [p[1] for p in points]
    x0, x1, y0, y1 = min(xs), max(xs), min(ys), max(ys)
    return [((x - x0) / (x1 - x0), (y - y0) / (y1 - y0)) for x, y in points]


def _regular(corners, inner=None, turn=0.0):
    points = []
    count = corners if inner is None else 2 * corners
    for i in range(count):
        radius = 1 if inner is None or i % 2 == 0 else inner
        angle = 2 * math.pi * i / count + turn
        points.append((radius * math.sin(angle), -radius * math.cos(angle)))
    return _fill_box(points)


def _heart():
    points = []
    for i in range(60):
        t = 2 * math.pi * i / 60
        x = 16 * math.sin(t) ** 3
        y = 13 * math.cos(t) - 5 * math.cos(2 * t) - 2 * math.cos(3 * t) - math.cos(4 * t)
        points.append((x, -y))
    return _fill_box(points)


def _drop():
    points = [(0.5, 0.0)]
    for i in range(31):
        angle = -0.32 + (math.pi + 0.64) * i / 30
        points.append((0.5 + 0.36 * math.cos(angle), 0.64 + 0.36 * math.sin(angle)))
    return _fill_box(points)


POLYGONS = {
    "triangle": [(0.5, 0), (1, 1), (0, 1)],
    "diamond": [(0.5, 0), (1, 0.5), (0.5, 1), (0, 0.5)],
    "star": _regular(5, inner=0.42),
    "hexagon": _regular(6, turn=math.pi / 6),
    "heart": _heart(),
    "drop": _drop(),
    "arrow": [(0, 0.3), (0.55, 0.3), (0.55, 0), (1, 0.5), (0.55, 1), (0.55, 0.7), (0, 0.7)],
    "lightning bolt": [(0.6, 0), (0.05, 0.58), (0.42, 0.58), (0.3, 1), (0.95, 0.38), (0.55, 0.38)],
    "cross": [
        (0.33, 0),
        (0.67, 0),
        (0.67, 0.33),
        (1, 0.33),
        (1, 0.67),
        (0.67, 0.67),
        (0.67, 1),
        (0.33, 1),
        (0.33, 0.67),
        (0, 0.67),
        (0, 0.33),
        (0.33, 0.33),
    ],
}
POLYGONS["lightning bolt"] = _fill_box(POLYGONS["lightning bolt"])


def _circle(d, w, h):
    _ellipse(d[0], w, h, 0, 0, 1, 1)


def _square(d, w, h):
    _rectangle(d[0], w, h, 0, 0, 1, 1)


def _ring(d, w, h):
    _ellipse(d[0], w, h, 0, 0, 1, 1)
    _ellipse(d[0], w, h, 0.25, 0.25, 0.75, 0.75, 0)


def _moon(d, w, h):
    _ellipse(d[0], w, h, 0, 0, 1.25, 1)
    _ellipse(d[0], w, h, 0.4, 0.02, 1.6, 0.98, 0)


def _cloud(d, w, h):
    _ellipse(d[0], w, h, 0, 0.4, 0.45, 1)
    _ellipse(d[0], w, h, 0.2, 0, 0.7, 0.8)
    _ellipse(d[0], w, h, 0.55, 0.3, 1, 1)
    _rectangle(d[0], w, h, 0.22, 0.6, 0.78, 1)


def _sun(d, w, h):
    _polygon(d[0], w, h, _regular(12, inner=0.72))
    _ellipse(d[1], w, h, 0.24, 0.24, 0.76, 0.76)


def _house(d, w, h):
    _rectangle(d[0], w, h, 0.1, 0.42, 0.9, 1)
    _polygon(d[1], w, h, [(0.5, 0), (1, 0.45), (0, 0.45)])
    _rectangle(d[1], w, h, 0.4, 0.65, 0.6, 1)


def _tree(d, w, h):
    _rectangle(d[1], w, h, 0.4, 0.6, 0.6, 1)
    _ellipse(d[0], w, h, 0, 0, 1, 0.72)


def _pine(d, w, h):
    _rectangle(d[1], w, h, 0.4, 0.8, 0.6, 1)
    _polygon(d[0], w, h, [(0.5, 0), (0.9, 0.45), (0.1, 0.45)])
    _polygon(d[0], w, h, [(0.5, 0.25), (1, 0.85), (0, 0.85)])


def _flower(d, w, h):
    for i in range(6):
        x, y = 0.5 + 0.31 * math.cos(i * math.pi / 3), 0.5 + 0.31 * math.sin(i * math.pi / 3)
        _ellipse(d[0], w, h, x - 0.19, y - 0.19, x + 0.19, y + 0.19)
    _ellipse(d[1], w, h, 0.31, 0.31, 0.69, 0.69)


def _face(d, w, h):
    _ellipse(d[0], w, h, 0, 0, 1, 1)
    _ellipse(d[1], w, h, 0.27, 0.28, 0.41, 0.46)
    _ellipse(d[1], w, h, 0.59, 0.28, 0.73, 0.46)
    d[1].chord((0.25 * w, 0.4 * h, 0.75 * w, 0.82 * h), 10, 170, fill=255)


def _mushroom(d, w, h):
    _rectangle(d[1], w, h, 0.35, 0.5, 0.65, 1)
    d[0].pieslice((0, 0, w - 1, 1.2 * h), 180, 360, fill=255)


def _boat(d, w, h):
    _polygon(d[0], w, h, [(0, 0.68), (1, 0.68), (0.82, 1), (0.18, 1)])
    _polygon(d[1], w, h, [(0.5, 0), (0.9, 0.6), (0.5, 0.6)])
    _polygon(d[1], w, h, [(0.44, 0.12), (0.44, 0.6), (0.12, 0.6)])


def _car(d, w, h):
    _polygon(
        d[0],
        w,
        h,
        [(0, 0.42), (0.2, 0.4), (0.32, 0), (0.72, 0), (0.86, 0.4), (1, 0.45), (1, 0.8), (0, 0.8)],
    )
    _ellipse(d[1], w, h, 0.12, 0.58, 0.38, 1)
    _ellipse(d[1], w, h, 0.62, 0.58, 0.88, 1)


def _cup(d, w, h):
    _ellipse(d[1], w, h, 0.5, 0.15, 1, 0.7)
    _ellipse(d[1], w, h, 0.58, 0.27, 0.88, 0.58, 0)
    _polygon(d[0], w, h, [(0, 0), (0.76, 0), (0.66, 1), (0.1, 1)])


def _stripes(d, w, h):
    _rectangle(d[0], w, h, 0, 0, 1, 1)
    for i in range(1, 7, 2):
        d[1].rectangle((0, i * h / 7, w - 1, (i + 1) * h / 7), fill=255)


def _checks(d, w, h):
    _rectangle(d[0], w, h, 0, 0, 1, 1)
    for i in range(4):
        for j in range(4):
            if (i + j) % 2:
                d[1].rectangle((j * w / 4, i * h / 4, (j + 1) * w / 4, (i + 1) * h / 4), fill=255)


def _dots(d, w, h):
    _rectangle(d[0], w, h, 0, 0, 1, 1)
    for i in range(3):
        for j in range(3):
            x, y = (j + 0.5) / 3, (i + 0.5) / 3
            _ellipse(d[1], w, h, x - 0.1, y - 0.1, x + 0.1, y + 0.1)


ONE_COLOUR = {
    "circle": _circle,
    "square": _square,
    "ring": _ring,
    "moon": _moon,
    "cloud": _cloud,
    **{
        name: (lambda d, w, h, points=points: _polygon(d[0], w, h, points))
        for name, points in POLYGONS.items()
    },
}
TWO_COLOURS = {
    "sun": _sun,
    "house": _house,
    "tree": _tree,
    "pine": _pine,
    "flower": _flower,
    "face": _face,
    "mushroom": _mushroom,
    "boat": _boat,
    "car": _car,
    "cup": _cup,
    "stripes": _stripes,
    "checks": _checks,
    "dots": _dots,
}
KINDS = {**ONE_COLOUR, **TWO_COLOURS}


def paint_thing(picture, kind, box, colours):
    """Paints into `box` (x0, y0, x1, y1; whole pixels, the ends left out), which it fills."""
    x0, y0, x1, y1 = box
    w, h = (x1 - x0) * OVERSAMPLING, (y1 - y0) * OVERSAMPLING
    masks = [Image.new("L", (w, h)) for _ in colours]
    KINDS[kind]([ImageDraw.Draw(mask) for mask in masks], w, h)
    for mask, colour in zip(masks, colours):
        picture.paste(colour, (x0, y0, x1, y1), mask.reduce(OVERSAMPLING))


# --- words ---------------------------------------------------------------------------------------

FONT_FILES = {
    "sans": "DejaVuSans-Bold.ttf",
    "serif": "DejaVuSerif-Bold.ttf",
    "mono": "DejaVuSansMono-Bold.ttf",
    "thin": "DejaVuSans.ttf",
}


@lru_cache(maxsize=1024)
def _font(folder, font, size):
    return ImageFont.truetype(str(Path(folder) / FONT_FILES[font]), size)


def word_mask(folder, text, font, size):
    """The ink of a word, cut to its bounds; of mode L."""
    face = _font(folder, font, size)
    left, top, right, bottom = face.getbbox(text)
    mask = Image.new("L", (right - left + 4, bottom - top + 4))
    ImageDraw.Draw(mask).text((2 - left, 2 - top), text, fill=255, font=face)
    bounds = mask.point(lambda level: 255 if level > 96 else 0).getbbox()
    return mask.crop(bounds)


def letter_edges(folder, text, font, size):
    """Where each letter of a word begins, and where the last one ends, from the ink's left edge."""
    face = _font(folder, font, size)
    left = face.getbbox(text)[0]
    return [face.getlength(text[:i]) - left for i in range(len(text) + 1)]
