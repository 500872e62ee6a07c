"""Colours: random ones, their names, and how far two are apart."""

import colorsys
import random
from functools import lru_cache

Colour = tuple[int, int, int]

# A caption without a palette can only name a colour; these are the names, with what they mean.
NAMED: dict[str, Colour] = {
    "red": (220, 40, 40),
    "dark red": (139, 20, 20),
    "orange": (245, 140, 30),
    "yellow": (250, 210, 40),
    "green": (40, 160, 70),
    "dark green": (15, 80, 40),
    "lime": (150, 220, 50),
    "teal": (20, 140, 140),
    "cyan": (60, 200, 230),
    "sky blue": (135, 200, 240),
    "blue": (40, 90, 215),
    "navy": (20, 30, 90),
    "purple": (125, 60, 170),
    "violet": (160, 110, 230),
    "magenta": (215, 40, 160),
    "pink": (245, 150, 185),
    "brown": (125, 80, 45),
    "beige": (235, 220, 190),
    "cream": (250, 243, 220),
    "white": (255, 255, 255),
    "light grey": (210, 210, 210),
    "grey": (135, 135, 135),
    "dark grey": (70, 70, 70),
    "black": (15, 15, 15),
    "dark blue": (25, 45, 115),
    "light blue": (160, 205, 245),
    "light green": (165, 225, 165),
    "pale yellow": (252, 243, 180),
    "pale green": (205, 240, 205),
    "light pink": (252, 205, 220),
    "dark purple": (70, 30, 105),
    "dark brown": (75, 45, 25),
    "dark orange": (210, 100, 10),
    "gold": (215, 170, 40),
    "silver": (190, 192, 196),
    "maroon": (110, 25, 45),
    "turquoise": (60, 205, 190),
    "indigo": (65, 45, 150),
    "olive": (120, 120, 40),
}


def hexadecimal(colour: Colour) -> str:
    return "%02X%02X%02X" % colour


def distance(a: Colour, b: Colour) -> float:
    """Between 0 and 1; red, green and blue weighted roughly as the eye does."""
    weights = (0.30, 0.49, 0.21)
    return sum(w * ((x - y) / 255) ** 2 for w, x, y in zip(weights, a, b)) ** 0.5


@lru_cache(maxsize=100_000)
def nearest_name(colour: Colour) -> str:
    return min(NAMED, key=lambda name: distance(NAMED[name], colour))


def random_colour(chance: random.Random) -> Colour:
    if chance.random() < 0.15:  # greys, black and white
        level = chance.choice([0, 20, 60, 128, 200, 235, 255])
        return (level, level, level)
    saturation = chance.uniform(0.35, 1.0)
    value = chance.uniform(0.25, 1.0)
    red, green, blue = colorsys.hsv_to_rgb(chance.random(), saturation, value)
    return (round(255 * red), round(255 * green), round(255 * blue))


def random_background(chance: random.Random) -> Colour:
    if chance.random() < 0.3:
        return chance.choice(list(NAMED.values()))
    kind = chance.random()
    if kind < 0.45:  # pale
        colour = colorsys.hsv_to_rgb(
            chance.random(), chance.uniform(0, 0.35), chance.uniform(0.85, 1)
        )
    elif kind < 0.7:  # dark
        colour = colorsys.hsv_to_rgb(
            chance.random(), chance.uniform(0.2, 1), chance.uniform(0.05, 0.4)
        )
    else:
        return random_colour(chance)
    return tuple(round(255 * part) for part in colour)


def far_from(others: list[Colour], chance: random.Random, least: float) -> Colour:
    """A random colour that stands out from all of `others`."""
    best, best_distance = None, -1.0
    for _ in range(12):
        colour = random_colour(chance)
        nearest = min(distance(colour, other) for other in others)
        if nearest >= least:
            return colour
        if nearest > best_distance:
            best, best_distance = colour, nearest
    return best
