"""The recipes that are compared, and their checkpoints: whole model folders next to the master."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from make_captions import CALIBRATION_SEED, write_captions
from weight_formats import WRITERS, rewrite_transformer

TRANSFORMERS = ("transformer", "unconditional_transformer")
LINEARS_PER_LAYER = 5  # qkv, o, w1, w2, w3
PROTECTED_SHARE = 0.1  # of the large linears, where a recipe protects some
CALIBRATION_CAPTIONS = 32


@dataclass(frozen=True)
class Recipe:
    name: str
    label: str
    quantize: str | None = None  # --recipe of octet quantize
    protect: bool = False
    weights: str | None = None  # of weight_formats.WRITERS
    linears: str = "int8"  # how the large linears run: int8, float or fake


def _int8(name: str, label: str) -> list[Recipe]:
    return [
        Recipe(name, f"INT8 {label}", quantize=name),
        Recipe(f"{name}-protected", f"INT8 {label}, protected", name, protect=True),
    ]


RECIPES = [
    *_int8("rowwise", "row-wise"),
    *_int8("smoothquant", "SmoothQuant"),
    *_int8("convrot", "ConvRot"),
    Recipe("fake", "fake INT8 ConvRot (bf16 products)", quantize="convrot", linears="fake"),
    Recipe("fp8", "FP8 weights, bf16 products", weights="fp8", linears="float"),
    Recipe("nf4", "NF4 weights, bf16 products", weights="nf4", linears="float"),
]


def by_name(names: list[str]) -> list[Recipe]:
    known = {recipe.name: recipe for recipe in RECIPES}
    unknown = [name for name in names if name not in known]
    if unknown:
        raise SystemExit(f"unknown recipe {unknown[0]!r}, expected one of {', '.join(known)}")
    return [known[name] for name in names]


def link_missing(folder: Path, source: Path) -> None:
    """What the folder of a model lacks, as links: text encoder, VAE, presets and so on."""
    for part in source.iterdir():
        link = folder / part.name
        if not link.exists():
            link.unlink(missing_ok=True)  # it may lead to where the model was before
            link.symlink_to(os.path.relpath(part.resolve(), folder.resolve()))


def linked_model(folder: Path, *sources: Path) -> Path:
    """One folder with the parts of several, those of the first before those of the next."""
    folder.mkdir(parents=True, exist_ok=True)
    for source in sources:
        link_missing(folder, source)
    return folder


@dataclass(frozen=True)
class Workshop:
    """Makes checkpoints of one model in one folder. Existing ones are kept."""

    octet: Path
    model: Path  # in bf16
    folder: Path
    device: str
    size: str
    calibration: Path | None = None  # a folder of captions; without one they are written
    calibration_steps: int | None = None  # without it those of the preset turbo

    def protected_count(self) -> int:
        config = json.loads((self.model / "transformer" / "config.json").read_text())
        return max(1, round(PROTECTED_SHARE * LINEARS_PER_LAYER * config["num_layers"]))

    def statistics(self) -> Path:
        """Activations of the model for captions like those of training, none of them evaluated."""
        path = self.folder / "activations.safetensors"
        if not path.exists():
            captions = self.calibration or self.folder / "calibration"
            if not self.calibration:
                write_captions(captions, CALIBRATION_CAPTIONS, CALIBRATION_SEED, held_out=False)
            steps = self.calibration_steps
            self._quantize(
                *("--captions", captions, "--calibration-size", self.size, "--measure"),
                *(("--calibration-steps", steps) if steps else ()),
            )
        return path

    def _quantize(self, *arguments) -> None:
        statistics = self.folder / "activations.safetensors"
        command = [self.octet, "quantize", self.model, *arguments, "--statistics", statistics]
        command += ["--device", self.device, "-q"]
        subprocess.run(list(map(str, command)), check=True, stdout=subprocess.DEVNULL)

    def checkpoint(self, recipe: Recipe) -> Path:
        """A folder with everything that a model needs."""
        protected = self.protected_count() if recipe.protect else 0
        folder = self.folder / "-".join(
            [recipe.quantize or recipe.weights, *(["protected"] if protected else [])]
        )
        if not folder.with_suffix(".json").exists():
            shutil.rmtree(folder, ignore_errors=True)
            self._write(recipe, protected, folder)
        link_missing(folder, self.model)
        return folder

    def _write(self, recipe: Recipe, protected: int, folder: Path) -> None:
        """The networks, and last a report next to the folder."""
        report = folder.with_suffix(".json")
        if recipe.weights:
            for part in filter(lambda part: (self.model / part).exists(), TRANSFORMERS):
                writer = WRITERS[recipe.weights]
                rewrite_transformer(self.model / part, folder / part, writer)
            report.write_text("{}\n")
        else:
            self.statistics()
            protect = ["--protect", f"auto:{protected}"] if protected else []
            self._quantize(folder, "--recipe", recipe.quantize, *protect, "--json", report)

    def facts(self, recipe: Recipe) -> dict:
        """What results say about a checkpoint."""
        folder = self.checkpoint(recipe)
        report = json.loads(folder.with_suffix(".json").read_text())
        files = [path for part in TRANSFORMERS for path in (folder / part).glob("*.safetensors")]
        return {
            "bytes": sum(path.stat().st_size for path in files),
            "protected": {
                branch["branch"]: branch["protected_modules"]
                for branch in report.get("branches", [])
            },
        }
