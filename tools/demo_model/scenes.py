"""Random scenes: what is on a picture, where, and in which colours. A seed gives one scene.

Training never sees the pairs of thing and hue nor the words that are held out; evaluation takes its
words from them, and prefers those pairs.
"""

import colorsys
import random
import zlib
from dataclasses import dataclass, field

from PIL import Image

import drawing
from palette import NAMED, Colour, distance, far_from, random_background

SIDE = 256
MOST_LETTERS = 8

HELD_OUT_WORDS = """
OCTET HELLO WORLD COFFEE MUSIC SUMMER OPEN CLOSED SALE PIZZA JAZZ TIGER MOON LIGHT BREAD QUIET
PARIS TOKYO RADIO CINEMA GARDEN BAKERY WINTER FOREST ORANGE PUZZLE ROBOT ROCKET SCHOOL STUDIO
TRAVEL VELVET YELLOW ZEBRA MARKET PLANET DRAGON FLOWER ISLAND JUNGLE KITTEN LEMON MAGIC NIGHT
OCEAN PEACE QUEEN RIVER SUGAR TRAIN UNCLE VOICE WATER YACHT APPLE BEACH CHESS DANCE EAGLE FRUIT
GLASS HOTEL INDEX JUICE KNIFE LUNCH MOTOR NORTH OLIVE PHOTO QUICK ROYAL SPACE TABLE UNION VIDEO
WHALE XENON YOUNG ZERO LIBRARY WELCOME EXIT CAFE MENU FRESH POSTER CONCERT FESTIVAL BIRTHDAY
DISCOUNT FISH JUMP BOLD WAVY GRID HYPE PIXEL QUARTZ VIVID WIZARD FJORD KAYAK
""".split()


@dataclass
class Thing:
    kind: str  # of drawing.KINDS
    box: tuple[int, int, int, int]  # x0, y0, x1, y1 in pixels
    colours: list[Colour]


@dataclass
class Word:
    text: str
    font: str  # of drawing.FONT_FILES
    size: int  # of the font, in pixels
    ink: tuple[int, int, int, int]  # what it covers
    box: tuple[int, int, int, int]  # what the caption says: the ink, or wider or higher
    colour: Colour
    on_panel: bool = False  # then it comes after the panel that it is on

    @property
    def colours(self):
        return [self.colour]


@dataclass
class Scene:
    background: Colour
    background_end: Colour | None = None  # of a gradient, at the bottom
    elements: list = field(default_factory=list)  # in the order of the caption and of painting


def hue_bin(colour: Colour) -> int:
    hue, saturation, _ = colorsys.rgb_to_hsv(*(part / 255 for part in colour))
    return 12 if saturation < 0.15 else int(hue * 12) % 12


def is_held_out(kind: str, colour: Colour) -> bool:
    return zlib.crc32(f"{kind}/{hue_bin(colour)}".encode()) % 16 == 0


_CONSONANTS, _VOWELS = "BCDFGHJKLMNPRSTVWZ", "AEIOU"


def random_word(chance: random.Random, most: int) -> str:
    length = chance.choices(range(1, most + 1), [1, 2, 4, 5, 6, 6, 5, 4][:most])[0]
    kind = chance.random()
    if kind < 0.45:
        word = "".join(chance.choice("ABCDEFGHIJKLMNOPQRSTUVWXYZ") for _ in range(length))
    elif kind < 0.9:  # can be spoken
        word, vowel = "", chance.random() < 0.4
        while len(word) < length:
            word += chance.choice(_VOWELS if vowel else _CONSONANTS)
            vowel = not vowel if chance.random() < 0.85 else vowel
    else:
        digits = "0123456789" if chance.random() < 0.6 else "0123456789ABCDEFGHKMNPRSTUVXY"
        word = "".join(chance.choice(digits) for _ in range(length))
    if length < most and chance.random() < 0.05:
        word += chance.choice("!!!!??&%-+")
    case = chance.random()
    return word if case < 0.6 else word.capitalize() if case < 0.8 else word.lower()


class SceneMaker:
    """`held_out`: scenes for evaluation."""

    def __init__(self, fonts: str, held_out: bool = False, short_words: float = 0.0):
        self.fonts, self.held_out, self.short_words = fonts, held_out, short_words
        self.hidden = {word.lower() for word in HELD_OUT_WORDS}

    def make(self, seed: int) -> Scene:
        chance = random.Random(seed)
        scene = Scene(random_background(chance))
        if chance.random() < 0.12:
            end = random_background(chance)
            if distance(end, scene.background) < 0.45:
                scene.background_end = end
        words = 1 if self.held_out else chance.choices([0, 1, 2], [0.12, 0.66, 0.22])[0]
        things = (
            chance.choices([0, 1, 2, 3], [0.15, 0.35, 0.3, 0.2])[0]
            if words
            else chance.choice([1, 2, 3])
        )
        taken: list[tuple[int, int, int, int]] = []
        for i in range(words):
            if i == 0 and chance.random() < 0.12:
                self._panel_with_word(scene, taken, chance)
            else:
                self._place(scene, self._word(scene, chance), taken, chance)
        for _ in range(things):
            self._place(scene, self._thing(scene, chance), taken, chance)
        chance.shuffle(scene.elements)
        scene.elements.sort(key=lambda element: isinstance(element, Word) and element.on_panel)
        return scene

    def _seen(self, scene) -> list[Colour]:
        return [scene.background] + ([scene.background_end] if scene.background_end else [])

    def _place(self, scene, element, taken, chance):
        """At a free place, if there is one."""
        w, h = element.box[2] - element.box[0], element.box[3] - element.box[1]
        for _ in range(30):
            x, y = chance.randint(4, SIDE - 4 - w), chance.randint(4, SIDE - 4 - h)
            box = (x, y, x + w, y + h)
            if all(
                box[2] + 3 <= t[0] or t[2] + 3 <= box[0] or box[3] + 3 <= t[1] or t[3] + 3 <= box[1]
                for t in taken
            ):
                dx, dy = x - element.box[0], y - element.box[1]
                element.box = box
                if isinstance(element, Word):
                    a, b, c, d = element.ink
                    element.ink = (a + dx, b + dy, c + dx, d + dy)
                taken.append(box)
                scene.elements.append(element)
                return

    def _thing(self, scene, chance) -> Thing:
        kind = chance.choice(list(drawing.KINDS))
        w = chance.randint(40, 130)
        h = w if chance.random() < 0.5 else chance.randint(40, 130)
        seen = self._seen(scene)
        for _ in range(20):
            colours = [far_from(seen, chance, 0.25)]
            if is_held_out(kind, colours[0]) == (self.held_out and chance.random() < 0.5):
                break
        if chance.random() < 0.2:  # one that has a name
            named = chance.choice(list(NAMED.values()))
            if min(distance(named, other) for other in seen) > 0.25 and not is_held_out(
                kind, named
            ):
                colours = [named]
        if kind in drawing.TWO_COLOURS:
            colours.append(far_from(seen + colours, chance, 0.25))
        return Thing(kind, (0, 0, w, h), colours)

    def _panel_with_word(self, scene, taken, chance):
        """A word on a plain shape, as on a sign."""
        panel_colour = far_from(self._seen(scene), chance, 0.25)
        word = self._word(scene, chance, on=[panel_colour])
        word.on_panel = True
        w, h = word.box[2] - word.box[0], word.box[3] - word.box[1]
        wide = min(SIDE - 10, w + chance.randint(12, 40))
        high = min(SIDE - 10, h + chance.randint(12, 60))
        panel = Thing("square", (0, 0, wide, high), [panel_colour])
        self._place(scene, panel, taken, chance)
        x = panel.box[0] + (wide - w) // 2
        y = panel.box[1] + (high - h) // 2
        word.ink = tuple(a + b for a, b in zip(word.ink, (x, y, x, y)))
        word.box = (x, y, x + w, y + h)
        scene.elements.append(word)

    def _text(self, chance) -> str:
        if self.held_out:
            word = chance.choice(HELD_OUT_WORDS)
            case = chance.random()
            return word if case < 0.6 else word.capitalize() if case < 0.8 else word.lower()
        most = 3 if chance.random() < self.short_words else MOST_LETTERS
        while True:
            word = random_word(chance, most)
            if word.lower() not in self.hidden:
                return word

    def _word(self, scene, chance, on=None) -> Word:
        seen = on or self._seen(scene)
        text = self._text(chance)
        font = chance.choices(["sans", "serif", "mono", "thin"], [0.4, 0.2, 0.2, 0.2])[0]
        # Wide words cannot be high; a word fills at most 240 pixels.
        largest = min(88, int(330 / len(text)))
        size = chance.randint(min(24, largest - 2), largest)
        mask = drawing.word_mask(self.fonts, text, font, size)
        while mask.width > SIDE - 12:
            size -= 2
            mask = drawing.word_mask(self.fonts, text, font, size)
        w, h = mask.size
        box_w, box_h = w, h
        if chance.random() < 0.5:  # a box is seldom tight; the word stays in its middle
            if chance.random() < 0.5:
                box_w = min(SIDE - 8, round(w * (1 + 1.2 * chance.random() ** 2)))
            else:
                box_h = min(SIDE - 8, round(h * (1 + 1.2 * chance.random() ** 2)))
        left, top = (box_w - w) // 2, (box_h - h) // 2
        colour = far_from(seen, chance, 0.35)
        if chance.random() < 0.2:
            named = chance.choice(list(NAMED.values()))
            if min(distance(named, other) for other in seen) > 0.35:
                colour = named
        return Word(text, font, size, (left, top, left + w, top + h), (0, 0, box_w, box_h), colour)


def paint(scene: Scene, fonts: str) -> Image.Image:
    picture = Image.new("RGB", (SIDE, SIDE), scene.background)
    if scene.background_end:
        column = Image.new("RGB", (1, SIDE))
        for y in range(SIDE):
            part = y / (SIDE - 1)
            column.putpixel(
                (0, y),
                tuple(
                    round(a + part * (b - a))
                    for a, b in zip(scene.background, scene.background_end)
                ),
            )
        picture = column.resize((SIDE, SIDE))
    for element in scene.elements:
        if isinstance(element, Word):
            mask = drawing.word_mask(fonts, element.text, element.font, element.size)
            picture.paste(element.colour, element.ink, mask)
        else:
            drawing.paint_thing(picture, element.kind, element.box, element.colours)
    return picture
