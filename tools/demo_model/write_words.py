"""Writes words.json of a model's folder: what plain words mean to `octet demo --prompt`; and
octet_trained_for.json: what the model was trained for, of which `octet generate` warns.

  python write_words.py models/demo

The things, fonts and colours are those that the model was trained on. Beside their own names stand
other words that people use for them, and the colours that a thing has when nobody names any.
"""

import json
import string
import sys
from pathlib import Path

from captions import BACKGROUNDS, FONTS, FREE_WORDS, NOUNS, vocabulary
from drawing import TWO_COLOURS
from palette import NAMED, hexadecimal
from scenes import MOST_LETTERS, SIDE

CHARACTERS = string.ascii_letters + string.digits + "!?&%-+"
MOST_ELEMENTS = 4  # of the scenes of training
MORE_NOUNS = {
    "circle": ["sphere", "button"],
    "square": ["box"],
    "diamond": ["rhombus"],
    "cross": ["plus"],
    "lightning bolt": ["lightning", "thunderbolt"],
    "drop": ["droplet", "raindrop"],
    "house": ["home", "cottage", "hut"],
    "pine": ["fir", "fir tree", "christmas tree"],
    "flower": ["daisy", "blossom"],
    "face": ["smile"],
    "mushroom": ["toadstool"],
    "boat": ["ship", "sailboat", "sailing ship"],
    "cup": ["coffee mug", "teacup", "cup of coffee", "cup of tea"],
    "stripes": ["stripes"],
    "checks": ["chessboard", "chess board"],
}
# Of a thing that nobody gave a colour. Shapes have none of their own.
USUAL_COLOURS = {
    "star": ["#F5B301"],
    "heart": ["#DC2828"],
    "moon": ["#F2D06B"],
    "cloud": ["#FFFFFF"],
    "lightning bolt": ["#FFC21A"],
    "drop": ["#285AD7"],
    "sun": ["#FFC21A", "#F28C1B"],
    "house": ["#F6B26B", "#B3261E"],
    "tree": ["#2E7D32", "#6D4C41"],
    "pine": ["#1F6B3A", "#6D4C41"],
    "flower": ["#D7289F", "#FFC21A"],
    "face": ["#FFD23F", "#3B2A1A"],
    "mushroom": ["#DC2828", "#C8A078"],
    "boat": ["#7D502D", "#D64550"],
    "car": ["#DC2828", "#1F1F1F"],
    "cup": ["#148C8C", "#0B5757"],
    "stripes": ["#DC2828", "#FFFFFF"],
    "checks": ["#1F1F1F", "#FFFFFF"],
    "dots": ["#285AD7", "#FFFFFF"],
}
# Width by height, where the square that the rest has looks odd.
SHAPES = {
    "arrow": 1.5,
    "boat": 1.1,
    "car": 1.7,
    "cloud": 1.5,
    "drop": 0.75,
    "lightning bolt": 0.75,
    "moon": 0.75,
    "pine": 0.8,
    "tree": 0.85,
}
MORE_FONTS = {
    "sans": ["sans-serif", "sans", "heavy"],
    "mono": ["mono", "monospaced"],
    "thin": ["thin", "slim"],
}
MORE_COLOURS = {
    "gray": "grey",
    "light gray": "light grey",
    "dark gray": "dark grey",
    "golden": "gold",
    "light yellow": "pale yellow",
    "pale blue": "light blue",
    "pale pink": "light pink",
    "navy blue": "navy",
    "royal blue": "blue",
    "lime green": "lime",
    "mint": "pale green",
    "aqua": "cyan",
    "scarlet": "red",
    "crimson": "dark red",
    "lavender": "violet",
    "lilac": "violet",
    "fuchsia": "magenta",
    "ivory": "cream",
    "tan": "beige",
}
# Words for what is behind everything, with a colour where the word alone means one.
MORE_BACKGROUNDS = {
    "sky": NAMED["sky blue"],
    "night": NAMED["navy"],
    "night sky": NAMED["navy"],
    "paper": NAMED["cream"],
    "canvas": None,
    "page": None,
    "ground": None,
}


def _written(colour):
    return None if colour is None else "#" + hexadecimal(colour)


def _thing(kind):
    # "small" says something of any thing here.
    own = [noun for noun in NOUNS[kind] if not noun.startswith("small ")]
    usual = USUAL_COLOURS.get(kind, [])
    assert kind not in TWO_COLOURS or len(usual) == 2, kind
    return {
        "noun": own[0],
        "words": own + MORE_NOUNS.get(kind, []),
        "colours": usual,
        "shape": SHAPES.get(kind, 1.0),
    }


def words():
    backgrounds = {**dict.fromkeys(BACKGROUNDS), **MORE_BACKGROUNDS}
    return {
        "things": [_thing(kind) for kind in NOUNS],
        "fonts": [
            {"phrase": phrases[0], "words": phrases + MORE_FONTS.get(font, [])}
            for font, phrases in FONTS.items()
        ],
        "colours": {name: _written(colour) for name, colour in NAMED.items()},
        "more_colours": {word: _written(NAMED[name]) for word, name in MORE_COLOURS.items()},
        "backgrounds": {word: _written(colour) for word, colour in backgrounds.items()},
        "characters": CHARACTERS,
        "most_letters": MOST_LETTERS,
    }


def trained_for():
    return {
        "summary": "flat pictures of some shapes, icons and short words",
        "objects": [noun for nouns in NOUNS.values() for noun in nouns],
        "characters": CHARACTERS,
        "most_letters": MOST_LETTERS,
        "most_elements": MOST_ELEMENTS,
        "line_breaks": False,
        "boxes": True,
        "sizes": [[SIDE, SIDE]],
        "plain_text": "octet demo --prompt",
        "words": sorted({word.lower() for word in [*vocabulary(), *FREE_WORDS]}),
    }


def write_words(folder: Path):
    for name, value in {"words": words(), "octet_trained_for": trained_for()}.items():
        text = json.dumps(value, indent=1, ensure_ascii=False) + "\n"
        (folder / f"{name}.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write_words(Path(sys.argv[1]))
