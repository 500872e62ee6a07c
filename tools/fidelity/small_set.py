#!/usr/bin/env python3
"""What the demo's model and every recipe do to a few pictures: recorded once, checked by a test.

    tools/fidelity/small_set.py [--octet build/octet] [--work build/small_set]

Writes tests/demo: bf16.png, the demo's picture by the model in bf16, and recorded.json with the
figures of each recipe, `octet compare`'s intervals over captions around them, and a digest of each
file of weights. tests/python/test_demo_fidelity.py makes all of it again and compares.
Few captions, few steps and a short calibration: it is for finding changes, not for choosing a
recipe; run.py is for that. Record after the weights, a recipe or the arithmetic changed on purpose.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
import subprocess
from pathlib import Path

from neighbours import ROOT
from PIL import Image

import metrics
import numpy as np
import pixels
from asked import read_caption
from recipes import RECIPES, Workshop, linked_model
from rendering import Rendering
from whole_files import write_whole
from word_readers import alike, template_reading

RECORDED = ROOT / "tests" / "demo"
DEMO, BF16 = ROOT / "models" / "demo", ROOT / "models" / "demo-bf16"
DEMO_SEED = 7  # of `octet demo`
CAPTIONS = ("000", "001", "002", "003", "004", "005")
CALIBRATION = ("006", "007")  # none of those above
SIZE, PRESET, STEPS = "256x256", "default", 2  # so few make pictures, only less clean ones

# INT8 products are the same on every CPU, but the floating-point sums between them are not, and
# where one flips a code the pictures part a little. The demo's picture is 46.2 dB from the recorded
# one on AMX, where that was made, 41.1 dB by AVX-512, 41.0 dB by AVX2 and 42.1 dB by scalar code;
# with a twentieth of one linear's weights changed it is 30 dB from it.
LEAST_PSNR = 36.0
# For the same reason figures may leave their intervals by this much. Means by AVX-512 and AVX2
# differ from those on AMX by 0.2 dB of SNR and 0.4 dB of PSNR in the median, 1.3 and 2.2 at most.
ROUNDING_DB = 2.0


# --- the demo's picture ---------------------------------------------------------------------------


def paint_reference(octet: Path, out: Path) -> None:
    """The picture of `octet demo`, with the networks in bf16."""
    command = [octet, "generate", "--model", BF16, "--base", DEMO, "--linears", "float"]
    command += ["--caption", DEMO / "demo.json", "--preset", PRESET, "--seed", DEMO_SEED]
    command += ["--size", SIZE, "--device", "cpu", "-o", out, "-q"]
    subprocess.run(list(map(str, command)), check=True, stdout=subprocess.DEVNULL)


def misread_words(caption: str, picture: Image.Image) -> list[str]:
    values = np.asarray(picture.convert("RGB"), np.float64)
    height, width, _ = values.shape
    asked = read_caption(caption, width, height)
    background = pixels.found_background(values, asked)
    wrong = []
    for element in filter(lambda element: element.text is not None, asked.elements):
        read = template_reading(values, background, asked, element)
        if not all(map(alike, read, element.text)):
            wrong.append(f"{element.text} reads {read}")
    return wrong


def faults_of_demo(picture: Image.Image) -> list[str]:
    """Whatever is wrong with a picture of the demo's caption, a sentence each."""
    with Image.open(RECORDED / "bf16.png") as reference:
        likeness = metrics.psnr(reference, picture)
    faults = misread_words((DEMO / "demo.json").read_text(encoding="utf-8"), picture)
    if likeness < LEAST_PSNR:
        faults.append(f"PSNR {likeness:.2f} dB to bf16, expected {LEAST_PSNR} at least")
    return faults


# --- the recipes ----------------------------------------------------------------------------------


def _copied(names: tuple[str, ...], folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        shutil.copy(DEMO / "captions" / f"{name}.json", folder)
    return folder


class SmallSet:
    """The pictures of the set by each recipe, made on demand and kept in `work`."""

    def __init__(self, octet: Path, work: Path, device: str = "cpu") -> None:
        self.octet, self.work = octet, work
        model = linked_model(work / "models" / "bf16", BF16, DEMO)
        calibration = _copied(CALIBRATION, work / "calibration")
        captions = _copied(CAPTIONS, work / "captions")
        self.workshop = Workshop(octet, model, work / "models", device, SIZE, calibration, STEPS)
        self.rendering = Rendering(octet, model, captions, 1, SIZE, PRESET, STEPS, device)

    def compare(self, recipe) -> dict:
        """What `octet compare` reports of bf16 and the recipe."""
        pictures = self.work / "pictures"
        candidate = self.workshop.checkpoint(recipe)
        return self.rendering.compare(
            candidate, recipe.linears, pictures / recipe.name, pictures / "bf16"
        )


def figures_of(compared: dict) -> dict[str, dict]:
    """By name of the figure, its mean and 95 % interval over captions."""
    both = {"latent_snr_db": compared["steps"][-1]["snr_db"], "psnr_db": compared["psnr_db"]}
    return {
        name: {
            "mean": round(figure["mean"], 3),
            "interval": [round(end, 3) for end in figure["interval"]],
        }
        for name, figure in both.items()
    }


def strayed(compared: dict, recorded: dict) -> list[str]:
    """The figures that left their recorded intervals by more than rounding explains."""
    faults = []
    for name, figure in figures_of(compared).items():
        low, high = recorded[name]["interval"]
        if not low - ROUNDING_DB <= figure["mean"] <= high + ROUNDING_DB:
            faults.append(f"{name} {figure['mean']:.2f}, recorded {low:.2f} to {high:.2f}")
    return faults


# --- the weights ----------------------------------------------------------------------------------


def digests(root: Path = ROOT) -> dict[str, str]:
    """SHA-256 of each file of weights, by its path from the root of the source tree."""
    files = [
        path
        for model in (DEMO, BF16)
        for path in (root / model.relative_to(ROOT)).rglob("*.safetensors")
    ]
    return {
        path.relative_to(root).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(files)
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--octet", type=Path, default=ROOT / "build" / "octet")
    parser.add_argument("--work", type=Path, default=ROOT / "build" / "small_set")
    arguments = parser.parse_args()
    shutil.rmtree(arguments.work, ignore_errors=True)
    RECORDED.mkdir(exist_ok=True)
    paint_reference(arguments.octet, RECORDED / "bf16.png")
    small_set = SmallSet(arguments.octet.resolve(), arguments.work.resolve())
    recipes = {}
    for recipe in RECIPES:
        compared = small_set.compare(recipe)
        recipes[recipe.name] = figures_of(compared)
        print(f"{recipe.name}: {recipes[recipe.name]}", flush=True)
    recorded = {
        "version": compared["version"],
        "device": compared["a"]["device"],
        "recipes": recipes,
        "weights": digests(),
    }
    write_whole(RECORDED / "recorded.json", json.dumps(recorded, indent=1) + "\n")


if __name__ == "__main__":
    main()
