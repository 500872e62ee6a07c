#!/usr/bin/env python3
"""What each recipe costs a model's pictures: one command from the bf16 model to a page.

    tools/fidelity/run.py MODEL [--octet build/octet] [--work build/fidelity] [--docs docs]

Makes a checkpoint for each recipe, renders held-out captions with it and with the model in bf16
from the same noise, judges all pictures by code, writes WORK/results.json, and from that alone the
page and the plots in DOCS. What an earlier run left in WORK is used again, so that an interrupted
run goes on; a WORK of other settings is refused. Pictures can be rendered on one machine
(--render-only) and, WORK copied, judged on another.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import multiprocessing
import os
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path

from neighbours import ROOT
from PIL import Image

import ceiling
import drawing
import metrics
import report
from asked import FONTS_FOLDER
from judges import SCORES, judge
from make_captions import FIRST_SEED, write_captions
from recipes import RECIPES, Recipe, Workshop, by_name, linked_model
from rendering import Rendering, picture_of
from whole_files import write_whole

GROUND_TRUTH_SCENES = 200


def _rounded(value: float | None) -> float | None:
    """Infinite for equal pictures or latents, which JSON cannot represent: null."""
    return None if value is None or value in (float("inf"), float("-inf")) else round(value, 5)


def _judge_picture(task: tuple[str, Path, Path | None]) -> dict:
    caption, path, reference = task
    with Image.open(path) as picture:
        scores = judge(caption, picture)
        row = {score: _rounded(scores[score]) for score in SCORES}
        row["readings"] = [
            [element["word"]["asked"], element["word"]["template"], *element["word"]["ocr"]]
            for element in scores["elements"]
            if "word" in element
        ]
        if reference:
            with Image.open(reference) as original:
                row["psnr_db"] = _rounded(metrics.psnr(original, picture))
                row["ssim"] = _rounded(metrics.ssim(original, picture))
                row["lpips"] = _rounded(metrics.lpips(original, picture))
    return row


def check_sources(arguments) -> None:
    """Nothing is made, and nothing in WORK is touched, before all of it is there."""
    if not list((arguments.model / "transformer").glob("*.safetensors")):
        raise SystemExit(
            f"{arguments.model}: no transformer/*.safetensors there; expected a model's folder in "
            "bf16 (tools/demo_model makes one)"
        )
    missing = [
        name for name in drawing.FONT_FILES.values() if not (Path(FONTS_FOLDER) / name).exists()
    ]
    if missing:
        raise SystemExit(
            f"{FONTS_FOLDER}: {', '.join(missing)} is not there, and words are judged by it; "
            "install Debian's fonts-dejavu-core"
        )


def digest_of(paths: list[Path]) -> str:
    digest = hashlib.sha256()
    for path in sorted(paths):
        digest.update(path.name.encode())
        with path.open("rb") as file:
            while chunk := file.read(1 << 20):
                digest.update(chunk)
    return digest.hexdigest()


def keep_settings(arguments, work: Path, captions: Path) -> None:
    """Results of one model and one set of pictures stay together."""
    sources = [arguments.model, *filter(None, [arguments.base])]
    files = [path for source in sources for path in source.rglob("*") if path.is_file()]
    settings = {"model": digest_of(files), "written": digest_of(list(captions.glob("*.json")))} | {
        name: getattr(arguments, name) for name in ("captions", "seeds", "size", "preset", "steps")
    }
    path = work / "settings.json"
    if path.exists() and json.loads(path.read_text(encoding="utf-8")) != settings:
        raise SystemExit(f"{work} holds results of another model or other settings: delete it")
    path.write_text(json.dumps(settings, indent=1) + "\n", encoding="utf-8")


def judges_digest() -> str:
    """Of the code that judges and paints: scores from before a change are not kept."""
    here, painter = Path(__file__).parent, Path(drawing.__file__).parent
    names = ("asked.py", "ceiling.py", "judges.py", "metrics.py", "pixels.py", "word_readers.py")
    painters = ("captions.py", "drawing.py", "palette.py", "scenes.py")
    return digest_of([here / name for name in names] + [painter / name for name in painters])


def kept(path: Path, judge_all: Callable[[], list[dict]]) -> list[dict]:
    """Rows of scores from that file, or new ones that are kept there."""
    digest = judges_digest()
    if path.exists():
        old = json.loads(path.read_text(encoding="utf-8"))
        if old["judges"] == digest:
            return old["rows"]
    rows = judge_all()
    write_whole(path, json.dumps({"judges": digest, "rows": rows}))
    return rows


def ground_truth(pool) -> list[dict]:
    """Scores of pictures that are right by construction: what a perfect model would get."""
    seeds = range(ceiling.FIRST_SEED, ceiling.FIRST_SEED + GROUND_TRUTH_SCENES)
    return [
        {"caption": str(seed), **{score: _rounded(verdict[score]) for score in SCORES}}
        for seed, verdict in zip(seeds, pool.map(ceiling.judge_scene, seeds, chunksize=4))
    ]


def judged(
    pool, folder: Path, references: Path | None, captions: Path, pictures: list[dict]
) -> list:
    """A row of scores for each picture, in the order of `pictures`."""
    tasks = [
        (
            (captions / f"{one['caption']}.json").read_text(encoding="utf-8"),
            picture_of(folder, one["caption"], one["seed"]),
            references and picture_of(references, one["caption"], one["seed"]),
        )
        for one in pictures
    ]
    return [
        {"caption": one["caption"], "seed": one["seed"], **row}
        for one, row in zip(pictures, pool.map(_judge_picture, tasks, chunksize=4))
    ]


def recipe_results(recipe: Recipe, facts: dict, compared: dict, rows: list[dict]) -> dict:
    for row, image in zip(rows, compared["images"], strict=True):
        assert (row["caption"], row["seed"]) == (image["caption"], image["seed"])
        row["velocity_snr_db"] = _rounded(image["first_velocity"]["snr_db"])
        row["snr_db"] = [_rounded(step["snr_db"]) for step in image["steps"]]
    return {
        "name": recipe.name,
        "label": recipe.label,
        "linears": recipe.linears,
        **facts,
        "linears_ran": compared["b"]["linears_ran"],
        "pictures": rows,
    }


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=Path, help="a model's folder, networks in bf16")
    parser.add_argument("--base", type=Path, help="a model with the parts that MODEL lacks")
    parser.add_argument("--octet", type=Path, default=ROOT / "build" / "octet")
    parser.add_argument("--work", type=Path, default=ROOT / "build" / "fidelity")
    parser.add_argument("--docs", type=Path, default=ROOT / "docs")
    parser.add_argument("--recipes", default=",".join(recipe.name for recipe in RECIPES))
    parser.add_argument("--captions", type=int, default=128, help="how many")
    parser.add_argument("--seeds", type=int, default=2, help="pictures of each caption")
    parser.add_argument("--size", default="256x256")
    parser.add_argument("--preset", default="default")
    parser.add_argument("--steps", type=int, help="instead of the preset's")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--render-only", action="store_true", help="judge later, by another run")
    return parser.parse_args()


def render(arguments, workshop: Workshop, chosen: list[Recipe], work: Path) -> dict[str, dict]:
    """Checkpoints and pictures; by recipe what `octet compare` reports."""
    rendering = Rendering(
        arguments.octet,
        arguments.model,
        work / "captions",
        arguments.seeds,
        arguments.size,
        arguments.preset,
        arguments.steps,
        arguments.device,
    )
    compared = {}
    for recipe in chosen:
        print(f"{recipe.label}: pictures", flush=True)
        compared[recipe.name] = rendering.compare(
            workshop.checkpoint(recipe),
            recipe.linears,
            work / "pictures" / recipe.name,
            work / "pictures" / "bf16",
        )
    return compared


def main() -> None:
    arguments = parse_arguments()
    work = arguments.work.resolve()
    captions, pictures = work / "captions", work / "pictures"
    check_sources(arguments)
    write_captions(captions, arguments.captions, FIRST_SEED)
    keep_settings(arguments, work, captions)
    name, sources = arguments.model.name, filter(None, (arguments.model, arguments.base))
    arguments.model = linked_model(work / "models" / "bf16", *sources)
    workshop = Workshop(
        arguments.octet, arguments.model, work / "models", arguments.device, arguments.size
    )
    chosen = by_name(arguments.recipes.split(","))
    compared = render(arguments, workshop, chosen, work)
    if arguments.render_only:
        return
    first = next(iter(compared.values()))
    if len({(one["version"], one["commit"], one["a"]["device"]) for one in compared.values()}) > 1:
        raise SystemExit(f"{pictures} holds pictures of several programs or devices: delete it")
    results = {
        "schema": "octet.fidelity/1",
        "date": datetime.now(timezone.utc).strftime("%Y-%m-%d"),
        "version": first["version"],
        "commit": first["commit"],
        "model": name,
        "device": first["a"]["device"],
        "size": first["size"],
        "preset": first["preset"],
        "steps": first["a"]["steps"],
        "captions": arguments.captions,
        "seeds": arguments.seeds,
        "protected_linears": workshop.protected_count(),
        "lpips": metrics.LPIPS_NETWORK,
        "resamples": metrics.RESAMPLES,
        "recipes": [],
    }
    # Not forked: torch and onnxruntime have threads.
    with multiprocessing.get_context("spawn").Pool(os.cpu_count()) as pool:
        print("ground truth: judging", flush=True)
        results["ground_truth"] = kept(work / "ground_truth.json", lambda: ground_truth(pool))
        print("bf16: judging", flush=True)
        bf16 = pictures / "bf16"
        results["bf16"] = kept(
            bf16 / "judged.json", lambda: judged(pool, bf16, None, captions, first["images"])
        )
        for recipe in chosen:
            print(f"{recipe.label}: judging", flush=True)
            folder, images = pictures / recipe.name, compared[recipe.name]["images"]
            rows = kept(
                folder / "judged.json",
                lambda: judged(pool, folder, bf16, captions, images),  # noqa: B023 - called at once
            )
            facts = workshop.facts(recipe)
            results["recipes"].append(recipe_results(recipe, facts, compared[recipe.name], rows))
    write_whole(work / "results.json", json.dumps(results, indent=1) + "\n")
    for path in report.write_report(results, arguments.docs):
        print(path)


if __name__ == "__main__":
    main()
