"""Writes the caption of a scene, in Ideogram 4's schema, and every word that such captions use.

A caption says everything that is on the picture, so that one caption means one picture: boxes,
palettes, the font of a word. What people leave out or add (a summary, a style, adjectives that mean
nothing here) comes and goes at random, so that the model learns what it may rely on.
"""

import json
import random

from palette import NAMED, hexadecimal, nearest_name
from scenes import SIDE, Scene, Word

NOUNS = {
    "circle": ["circle", "disc", "ball", "dot"],
    "square": ["square", "rectangle", "block", "panel"],
    "triangle": ["triangle"],
    "diamond": ["diamond"],
    "star": ["star", "five-pointed star"],
    "ring": ["ring", "hoop"],
    "cross": ["cross", "plus sign"],
    "heart": ["heart"],
    "hexagon": ["hexagon"],
    "arrow": ["arrow", "arrow pointing right"],
    "moon": ["moon", "crescent moon", "crescent"],
    "cloud": ["cloud"],
    "lightning bolt": ["lightning bolt", "bolt"],
    "drop": ["drop", "water drop"],
    "sun": ["sun", "sun with rays"],
    "house": ["house", "small house", "house with a roof"],
    "tree": ["tree", "round tree"],
    "pine": ["pine", "pine tree"],
    "flower": ["flower", "flower with six petals"],
    "face": ["face", "smiling face", "smiley"],
    "mushroom": ["mushroom"],
    "boat": ["boat", "sailing boat"],
    "car": ["car"],
    "cup": ["cup", "coffee cup", "mug"],
    "stripes": ["striped panel", "panel of stripes"],
    "checks": ["checkerboard", "checkered panel"],
    "dots": ["dotted panel", "panel of dots"],
}
FONTS = {
    "sans": ["bold sans-serif", "heavy sans-serif", "bold"],
    "serif": ["bold serif", "serif"],
    "mono": ["monospace", "bold monospace", "typewriter"],
    "thin": ["thin sans-serif", "light sans-serif", "regular sans-serif"],
}
DEFAULT_FONT = "sans"  # of captions that name none
LETTERS = ["letters", "text", "lettering", "type", "word"]
CASES = {"upper": ["uppercase", "capital"], "lower": ["lowercase"]}
PLACES = [["upper left", "top", "upper right"], ["left", "middle", "right"],
          ["lower left", "bottom", "lower right"]]  # fmt: skip
ADJECTIVES = ["solid", "flat", "simple", "plain", "bright", "clean", "bold", "geometric"]
BACKGROUNDS = ["background", "field", "wall", "surface", "backdrop"]
SUMMARIES = ["poster", "picture", "sign", "card", "flat illustration", "graphic"]
STYLES = {
    "aesthetics": ["flat, bold", "minimal, geometric", "simple and clean", "bold, high contrast"],
    "lighting": ["flat lighting", "uniform flat colour", "no shadows", "even light"],
    "medium": ["graphic_design", "illustration"],
    "art_style": ["flat vector poster", "flat shapes", "simple vector illustration"],
}
OTHER_WORDS = """
a an the A An The and with of in on at to from into is as by word words says reading sign top
bottom left right middle centre center upper lower corner side above below near large small big
tiny wide tall round colour color colours colors gradient fading vertical transparent pattern
shape shapes icon letters set filled evenly uppercase lowercase capital capitals digits number
written showing pale deep light dark vivid soft warm cool olive gold golden silver maroon
turquoise indigo gray
""".split()

# Words that people add and that mean nothing here. They are not tokens of their own, like most
# words that a stranger uses, and a caption is read the same with them.
FREE_WORDS = """
centred across painted printed drawn crisp clear modern elegant playful thick heavy rounded standing
floating sitting resting against under over behind beside occupying filling spanning glossy matte
smooth sharp edges outline no border single one two three matching contrasting friendly cheerful
calm strong weight spaced tightly loosely high quality vector style minimalist composition balanced
layout design print shop advert banner label logo graphic crayon ink paint paper surface texture
uniform colouring tone hue shade saturated muted pastel neon primary secondary element headline
title caption slogan hand lettered display typeface font aligned horizontally
vertically along edge half third quarter area region part space whole picture frame canvas image
photo studio daylight soft shadowless diffuse ambient neutral natural digital art screen poster
retro classic contemporary abstract symbol emblem figure object form silhouette cartoon childlike
""".split()


def vocabulary() -> list[str]:
    """Words that follow a space somewhere: each is one token there."""
    phrases = [
        *sum(NOUNS.values(), []),
        *sum(FONTS.values(), []),
        *LETTERS,
        *ADJECTIVES,
        *BACKGROUNDS,
        *SUMMARIES,
        *sum(STYLES.values(), []),
        *NAMED,
        *OTHER_WORDS,
    ]
    words = set()
    for phrase in phrases:
        for piece in phrase.replace("-", " ").replace(",", " ").replace("_", " ").split():
            words.add(piece)
    return sorted(words)


def _bbox(box) -> list[int]:
    x0, y0, x1, y1 = (round(1000 * side / SIDE) for side in box)
    return [y0, x0, y1, x1]


def _article(phrase: str, capital: bool) -> str:
    if phrase[0] in "aeiou":
        article = "An" if capital else "an"
    else:
        article = "A" if capital else "a"
    return f"{article} {phrase}"


def _place(box, chance: random.Random) -> str:
    """Where the middle of a box is, in words."""
    row, column = (min(2, (box[i] + box[i + 2]) * 3 // (2 * SIDE)) for i in (1, 0))
    where = PLACES[row][column]
    if len(where.split()) == 2 and chance.random() < 0.5:
        where += " corner"
    return (" in the " if where not in ("top", "bottom") else " at the ") + where


def _size(box, chance: random.Random) -> str:
    share = (box[2] - box[0]) * (box[3] - box[1]) / SIDE**2
    if share > 0.12:
        return chance.choice(["large ", "big "])
    return "small " if share < 0.05 else ""


def _nonsense(chance: random.Random) -> str:
    return "".join(chance.choice("aeioubcdfglmnprst") for _ in range(chance.randint(3, 8)))


def _free_words(chance: random.Random, most: int) -> str:
    count = chance.randint(1, most)
    words = [
        _nonsense(chance) if chance.random() < 0.2 else chance.choice(FREE_WORDS)
        for _ in range(count)
    ]
    return " ".join(words)


class CaptionWriter:
    def __init__(self, chance: random.Random):
        self.chance = chance

    def write(self, scene: Scene) -> str:
        chance = self.chance
        caption = {}
        if chance.random() < 0.6:
            caption["high_level_description"] = self._summary(scene)
        if chance.random() < 0.25:
            caption["style_description"] = self._style(scene)
        caption["compositional_deconstruction"] = {
            "background": self._background(scene),
            "elements": [self._element(element) for element in scene.elements],
        }
        return json.dumps(caption, separators=(",", ":"), ensure_ascii=False)

    def _named_colour(self, colour, always=False) -> str:
        return nearest_name(colour) + " " if always or self.chance.random() < 0.4 else ""

    def _summary(self, scene: Scene) -> str:
        chance = self.chance
        kind = chance.random()
        poster = _article(self._named_colour(scene.background) + chance.choice(SUMMARIES), True)
        if kind < 0.3:
            return poster + chance.choice(["", "."])
        if kind < 0.4:
            return f"{poster} with {_free_words(chance, 5)}"
        parts = []
        for element in scene.elements:
            if isinstance(element, Word):
                parts.append(f'the word "{element.text}"' if chance.random() < 0.5 else "a word")
            else:
                noun = chance.choice(NOUNS[element.kind])
                parts.append(_article(self._named_colour(element.colours[0]) + noun, False))
        if not parts:
            return poster
        return poster + " with " + " and ".join(parts) + chance.choice(["", "."])

    def _style(self, scene: Scene) -> dict:
        chance = self.chance
        style = {
            key: chance.choice(values)
            if key == "medium" or chance.random() < 0.6
            else _free_words(chance, 4)
            for key, values in STYLES.items()
        }
        if chance.random() < 0.3:
            colours = [scene.background] + [element.colours[0] for element in scene.elements]
            style["color_palette"] = ["#" + hexadecimal(colour) for colour in colours]
        return style

    def _background(self, scene: Scene) -> str:
        chance = self.chance
        surface = chance.choice(BACKGROUNDS)
        start = "#" + hexadecimal(scene.background)
        if scene.background_end:
            end = "#" + hexadecimal(scene.background_end)
            return f"A vertical gradient from {start} to {end}"
        if scene.background == (255, 255, 255) and chance.random() < 0.5:
            return "transparent background"
        if scene.background in NAMED.values() and chance.random() < 0.5:
            name = nearest_name(scene.background)
            return _article(f"{chance.choice(['plain', 'solid'])} {name} {surface}", True)
        adjective = chance.choice(["plain ", "solid ", "flat ", ""])
        colour = self._named_colour(scene.background)
        if chance.random() < 0.5:
            return f"A {adjective}{colour}{surface} in {start}"
        return f"A {adjective}{start} {colour}{surface}"

    def _element(self, element) -> dict:
        chance = self.chance
        is_word = isinstance(element, Word)
        named = (
            all(colour in NAMED.values() for colour in element.colours)
            and len(element.colours) == 1
        )
        without_palette = named and chance.random() < 0.5
        colour = self._named_colour(element.colours[0], always=without_palette)
        if is_word:
            font = chance.choice(FONTS[element.font]) + " "
            if element.font == DEFAULT_FONT and chance.random() < 0.3:
                font = ""
            case = ""
            if chance.random() < 0.15:
                case = "upper" if element.text.isupper() else "lower"
                named_case = element.text.isupper() or element.text.islower()
                case = chance.choice(CASES[case]) + " " if named_case else ""
            size = _size(element.box, chance) if chance.random() < 0.15 else ""
            letters = chance.choice(LETTERS)
            phrase = f"{size}{colour}{font}{case}{letters}"
            if chance.random() < 0.3:
                phrase = f"{size}{font}{case}{letters}" + (
                    f" in {colour.strip()}" if colour else ""
                )
        else:
            adjective = chance.choice(ADJECTIVES) + " " if chance.random() < 0.3 else ""
            if chance.random() < 0.06:
                adjective = _free_words(chance, 1) + " "
            size = _size(element.box, chance) if chance.random() < 0.15 else ""
            phrase = size + adjective + colour + chance.choice(NOUNS[element.kind])
        if chance.random() < 0.12:
            phrase += _place(element.box, chance)
        if chance.random() < 0.15:
            phrase += chance.choice([", ", " "]) + _free_words(chance, 5)
        start = chance.random()
        if start < 0.8:
            desc = "The " + phrase if is_word else _article(phrase, True)
        else:
            desc = phrase if start < 0.9 else phrase.capitalize()
        written = {"type": "text" if is_word else "obj", "bbox": _bbox(element.box)}
        if is_word:
            written["text"] = element.text
        written["desc"] = desc + ("." if chance.random() < 0.1 else "")
        if not without_palette:
            written["color_palette"] = ["#" + hexadecimal(colour) for colour in element.colours]
        return written
