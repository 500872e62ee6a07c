#!/usr/bin/env python3
"""A sheet of pictures side by side: what the caption asks for, bf16, and a recipe.

    tools/fidelity/gallery.py WORK [--recipe convrot] [--rows 6] [-o docs/fidelity_gallery.png]

WORK is the folder of run.py. The captions are spread evenly over all of them, none picked by hand.
Prints the Markdown that shows the sheet.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import neighbours
from PIL import Image, ImageDraw, ImageFont

import captions
import metrics
from asked import FONTS_FOLDER, Asked, read_caption
from rendering import picture_of

TEXT_WIDTH, GAP, LINE, SWATCH = 300, 12, 24, 16


def lines_of(asked: Asked) -> list[tuple[str, list]]:
    """(words, colours), from the background on."""
    behind = asked.background or []
    lines = [("gradient" if len(behind) > 1 else "background", behind)]
    for element in asked.elements:
        if element.text is None:
            words = element.kind
        else:
            words = f"“{element.text}”, {captions.FONTS[element.kind][0]}"
        lines.append((words, element.colours))
    return lines


def sheet(
    rows: list[tuple[Asked, Image.Image, Image.Image]], label: str, across: int = 1
) -> Image.Image:
    """`across`: captions beside each other."""
    width, height = rows[0][1].size
    face = ImageFont.truetype(f"{FONTS_FOLDER}/DejaVuSans.ttf", 14)
    bold = ImageFont.truetype(f"{FONTS_FOLDER}/DejaVuSans-Bold.ttf", 14)
    columns = (GAP, TEXT_WIDTH, TEXT_WIDTH + width + GAP)
    one_wide, one_high = columns[2] + width + GAP, height + GAP
    size = (across * one_wide, 2 * LINE + -(-len(rows) // across) * one_high)
    page = Image.new("RGB", size, "white")
    draw = ImageDraw.Draw(page)
    for i in range(across):
        for x, heading in zip(columns, ("the caption asks for", "bf16", label)):
            draw.text((i * one_wide + x, GAP), heading, "black", bold)
    for i, (asked, reference, candidate) in enumerate(rows):
        left, top = i % across * one_wide, 2 * LINE + i // across * one_high
        page.paste(reference, (left + columns[1], top))
        page.paste(candidate, (left + columns[2], top))
        for j, (words, colours) in enumerate(lines_of(asked)):
            y = top + GAP + j * LINE
            for k, colour in enumerate(colours):
                x = left + GAP + k * (SWATCH + 4)
                draw.rectangle((x, y, x + SWATCH, y + SWATCH), fill=colour, outline="#8c959f")
            draw.text((left + GAP + 2 * (SWATCH + 4) + 4, y), words, "black", face)
        psnr = metrics.psnr(reference, candidate)
        place = (left + GAP, top + height - LINE)
        draw.text(place, f"PSNR {psnr:.1f} dB", "#59636e", face)
    return page


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("work", type=Path)
    parser.add_argument("--recipe", default="convrot")
    parser.add_argument("--rows", type=int, default=6)
    parser.add_argument(
        "-o", "--out", type=Path, default=neighbours.ROOT / "docs" / "fidelity_gallery.png"
    )
    arguments = parser.parse_args()
    results = json.loads((arguments.work / "results.json").read_text(encoding="utf-8"))
    recipe = next(one for one in results["recipes"] if one["name"] == arguments.recipe)
    names = sorted({row["caption"] for row in results["bf16"]})
    count = min(arguments.rows, len(names))
    seed = results["bf16"][0]["seed"]
    rows = []
    for name in (names[i * len(names) // count] for i in range(count)):
        pictures = [
            Image.open(picture_of(arguments.work / "pictures" / folder, name, seed)).convert("RGB")
            for folder in ("bf16", recipe["name"])
        ]
        caption = (arguments.work / "captions" / f"{name}.json").read_text(encoding="utf-8")
        rows.append((read_caption(caption, *pictures[0].size), *pictures))
    sheet(rows, recipe["label"]).save(arguments.out, optimize=True)
    print(f"![Captions, and their pictures in bf16 and {recipe['label']}]({arguments.out})")


if __name__ == "__main__":
    main()
