#!/usr/bin/env python3
"""Captions written by hand, their pictures in bf16 and as they are shipped, side by side: the
README's pictures.

    tools/fidelity/showcase.py [--octet build/octet] [--docs docs]

Writes DOCS/demo.png, the picture of `octet demo`, DOCS/demo_gallery.png, and DOCS/demo_strip.png,
the INT8 pictures of the gallery in one row.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
from pathlib import Path

from neighbours import ROOT
from PIL import Image

from asked import read_caption
from gallery import sheet
from recipes import linked_model
from rendering import Rendering, picture_of


def strip(pictures: list[Image.Image], side: int = 200, gap: int = 8) -> Image.Image:
    row = Image.new("RGB", (len(pictures) * (side + gap) - gap, side), "white")
    for index, picture in enumerate(pictures):
        row.paste(picture.resize((side, side), Image.Resampling.LANCZOS), (index * (side + gap), 0))
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--octet", type=Path, default=ROOT / "build" / "octet")
    parser.add_argument("--docs", type=Path, default=ROOT / "docs")
    arguments = parser.parse_args()
    shipped, captions = ROOT / "models" / "demo", ROOT / "examples" / "demo"
    command = [arguments.octet, "demo", "-q", "-o", arguments.docs / "demo.png"]
    subprocess.run(command, check=True)
    with tempfile.TemporaryDirectory() as temporary:
        work = Path(temporary)
        references = work / "references"
        master = linked_model(work / "bf16", ROOT / "models" / "demo-bf16", shipped)
        size = "x".join(map(str, json.loads((shipped / "octet_presets.json").read_text())["size"]))
        rendering = Rendering(arguments.octet, master, captions, 1, size, "default", None, "auto")
        images = rendering.compare(shipped, "int8", work / "int8", references)["images"]
        rows = []
        for image in images:
            caption = (captions / f"{image['caption']}.json").read_text(encoding="utf-8")
            pictures = [
                Image.open(picture_of(folder, image["caption"], image["seed"])).convert("RGB")
                for folder in (references, work / "int8")
            ]
            rows.append((read_caption(caption, *pictures[0].size), *pictures))
        path = arguments.docs / "demo_gallery.png"
        sheet(rows, "INT8", across=2).save(path, optimize=True)
        print(path)
        path = arguments.docs / "demo_strip.png"
        strip([row[2] for row in rows]).save(path, optimize=True)
        print(path)


if __name__ == "__main__":
    main()
