"""What the judges see in a picture: its background, and which pixels have an element's colours."""

from __future__ import annotations

from functools import lru_cache

import neighbours  # noqa: F401
import numpy as np
from scipy import ndimage
from skimage.color import rgb2lab

from asked import Asked, Box
from palette import Colour

NEAR = 15.0  # CIE 1976 colour difference (Lab) below which two colours count as one
COVERED = 0.35  # of a pixel's colour: from here on it belongs to the element
OFF_LINE = 48.0  # RGB levels beside the line from the background to the colour
LEAST_PIXELS = 6  # smaller specks are noise


def grown(box: Box, dx: int, dy: int, width: int, height: int) -> Box:
    x0, y0, x1, y1 = box
    return max(0, x0 - dx), max(0, y0 - dy), min(width, x1 + dx), min(height, y1 + dy)


def inside(box: Box, width: int, height: int) -> np.ndarray:
    mask = np.zeros((height, width), bool)
    mask[box[1] : box[3], box[0] : box[2]] = True
    return mask


def outside_elements(asked: Asked, width: int, height: int, margin: int = 2) -> np.ndarray:
    mask = np.ones((height, width), bool)
    for element in asked.elements:
        mask &= ~inside(grown(element.box, margin, margin, width, height), width, height)
    return mask


def found_background(picture: np.ndarray, asked: Asked) -> np.ndarray:
    """The background that the picture has, not the one that was asked for: per row the median of
    what lies outside all elements. Float [height, width, 3]."""
    height, width, _ = picture.shape
    free = outside_elements(asked, width, height)
    rows = np.full((height, 3), np.nan)
    for y in np.flatnonzero(free.sum(axis=1) >= 4):
        rows[y] = np.median(picture[y, free[y]], axis=0)
    known = np.flatnonzero(~np.isnan(rows[:, 0]))
    if not known.size:
        rows[:] = np.median(picture.reshape(-1, 3), axis=0)
    else:
        for channel in range(3):
            rows[:, channel] = np.interp(np.arange(height), known, rows[known, channel])
    return np.repeat(rows[:, None, :], width, axis=1)


@lru_cache(maxsize=256)
def _lab(colour: Colour) -> np.ndarray:
    return rgb2lab(np.array(colour, np.float64) / 255)


def near(picture_lab: np.ndarray, colour: Colour) -> np.ndarray:
    return np.linalg.norm(picture_lab - _lab(colour), axis=-1) < NEAR


def coverage(picture: np.ndarray, background: np.ndarray, colour: Colour) -> np.ndarray:
    """How much of each pixel is that colour, if the rest is background: smooth edges mix the two.
    Zero where the pixel is no mixture of them."""
    line = np.array(colour, np.float64) - background
    length = np.maximum((line**2).sum(axis=-1), 1.0)
    offset = picture - background
    share = (offset * line).sum(axis=-1) / length
    rest = np.linalg.norm(offset - share[..., None] * line, axis=-1)
    return np.where(rest < OFF_LINE, np.clip(share, 0, 1), 0)


def bounds(mask: np.ndarray) -> Box | None:
    ys, xs = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
    return (int(xs[0]), int(ys[0]), int(xs[-1]) + 1, int(ys[-1]) + 1) if ys.size else None


def pieces_touching(mask: np.ndarray, box: Box) -> np.ndarray:
    """The connected pieces that reach into the box, without specks."""
    height, width = mask.shape
    labels, _ = ndimage.label(mask, np.ones((3, 3)))
    sizes = np.bincount(labels.ravel())
    touching = np.unique(labels[inside(box, width, height) & mask])
    kept = [label for label in touching if sizes[label] >= LEAST_PIXELS]
    return np.isin(labels, kept) & mask


def overlap(a: Box | None, b: Box | None) -> float:
    """Intersection over union."""
    if a is None or b is None:
        return 0.0
    width = min(a[2], b[2]) - max(a[0], b[0])
    height = min(a[3], b[3]) - max(a[1], b[1])
    common = max(0, width) * max(0, height)
    areas = [(box[2] - box[0]) * (box[3] - box[1]) for box in (a, b)]
    return common / (sum(areas) - common)
