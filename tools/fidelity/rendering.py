"""Pictures by `octet compare`: of the master in bf16, and of a candidate from the same noise."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path

from PIL import Image


@dataclass(frozen=True)
class Rendering:
    octet: Path
    model: Path  # in bf16: the reference
    captions: Path  # a folder
    seeds: int
    size: str
    preset: str
    steps: int | None
    device: str

    def compare(self, candidate: Path, linears: str, folder: Path, references: Path) -> dict:
        """The report of `octet compare`. The candidate's pictures come to lie in `folder`, those of
        the reference in `references`. A folder that holds a report is taken as it is."""
        report = folder / "compare.json"
        if not report.exists():
            folder.mkdir(parents=True, exist_ok=True)
            command = [self.octet, "compare", self.model, candidate]
            command += ["--a-linears", "float", "--b-linears", linears]
            command += ["--caption", self.captions, "-n", self.seeds, "--size", self.size]
            command += ["--preset", self.preset, "--device", self.device]
            command += ["--steps", self.steps] if self.steps else []
            # Written last under its own name: an interrupted run is no result.
            unfinished = folder / "unfinished.json"
            command += ["--pictures", folder / "p", "--json", unfinished, "-q"]
            subprocess.run(list(map(str, command)), check=True, stdout=subprocess.DEVNULL)
            for picture in json.loads(unfinished.read_text(encoding="utf-8"))["images"]:
                _sort_pictures(folder, references, picture["caption"], picture["seed"])
            unfinished.rename(report)
        return json.loads(report.read_text(encoding="utf-8"))


def picture_of(folder: Path, caption: str, seed: int) -> Path:
    return folder / f"{caption}-{seed}.png"


def _sort_pictures(folder: Path, references: Path, caption: str, seed: int) -> None:
    """The reference paints the same for every candidate, which is checked: one picture is kept."""
    references.mkdir(exist_ok=True)
    prefix = f"p-{caption}-{seed}"
    (folder / f"{prefix}-difference.png").unlink()
    (folder / f"{prefix}-b.png").rename(picture_of(folder, caption, seed))
    again, kept = folder / f"{prefix}-a.png", picture_of(references, caption, seed)
    if not kept.exists():
        again.rename(kept)
        return
    with Image.open(again) as first, Image.open(kept) as second:
        if first.tobytes() != second.tobytes():
            raise SystemExit(f"{again} and {kept} differ: another model, size or device?")
    again.unlink()
