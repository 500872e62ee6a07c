#!/usr/bin/env python3
"""What each way to quantize a model costs its pictures: one command from the bf16 model to a page.

    tools/fidelity/run.py MODEL [--octet build/octet] [--work build/fidelity] [--docs docs]

Makes a checkpoint for each recipe, renders held-out captions with it and with the model in bf16
from the same noise, judges all pictures by code, writes WORK/results.json, and from that alone the
page and the plots in DOCS. What an earlier run left in WORK is used again, so that an interrupted
run goes on; delete WORK to begin anew. Pictures can be rendered on one machine (--render-only) and, WORK
copied, judged on another.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
from datetime import datetime, timezone
from pathlib import Path

from neighbours import ROOT
from PIL import Image

import ceiling
import metrics
import report
from judges import SCORES, judge
from make_captions import FIRST_SEED, write_captions
from recipes import RECIPES, Recipe, Workshop, by_name
from rendering import Rendering, picture_of
from whole_files import write_whole

GROUND_TRUTH_SCENES = 200


def _rounded(value: float | None) -> float | None:
    """Infinite for equal pictures or latents, which JSON cannot say: null."""
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


def ground_truth(pool, work: Path) -> list[dict]:
    """Scores of pictures that are right by construction: what a perfect model would get."""
    path = work / "ground_truth.json"
    if path.exists():
        return json.loads(path.read_text(encoding="utf-8"))
    seeds = range(ceiling.FIRST_SEED, ceiling.FIRST_SEED + GROUND_TRUTH_SCENES)
    rows = [
        {"caption": str(seed), **{score: _rounded(verdict[score]) for score in SCORES}}
        for seed, verdict in zip(seeds, pool.map(ceiling.judge_scene, seeds, chunksize=4))
    ]
    write_whole(path, json.dumps(rows))
    return rows


def judged(
    pool, folder: Path, references: Path | None, captions: Path, pictures: list[dict]
) -> list:
    """A row of scores for each picture, in the order of `pictures`; kept in the folder."""
    path = folder / "judged.json"
    if path.exists():
        return json.loads(path.read_text(encoding="utf-8"))
    tasks = [
        (
            (captions / f"{one['caption']}.json").read_text(encoding="utf-8"),
            picture_of(folder, one["caption"], one["seed"]),
            references and picture_of(references, one["caption"], one["seed"]),
        )
        for one in pictures
    ]
    rows = [
        {"caption": one["caption"], "seed": one["seed"], **row}
        for one, row in zip(pictures, pool.map(_judge_picture, tasks, chunksize=4))
    ]
    write_whole(path, json.dumps(rows))
    return rows


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
    parser.add_argument("model", type=Path, help="a model's folder, transformers in bf16")
    parser.add_argument("--octet", type=Path, default=ROOT / "build" / "octet")
    parser.add_argument("--work", type=Path, default=ROOT / "build" / "fidelity")
    parser.add_argument("--docs", type=Path, default=ROOT / "docs")
    parser.add_argument("--recipes", default=",".join(recipe.name for recipe in RECIPES))
    parser.add_argument("--captions", type=int, default=128, help="how many")
    parser.add_argument("--seeds", type=int, default=2, help="pictures of each caption")
    parser.add_argument("--size", default="256x256")
    parser.add_argument("--preset", default="default")
    parser.add_argument("--steps", type=int, help="in place of the preset's")
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
    write_captions(captions, arguments.captions, FIRST_SEED)
    workshop = Workshop(
        arguments.octet, arguments.model, work / "models", arguments.device, arguments.size
    )
    chosen = by_name(arguments.recipes.split(","))
    compared = render(arguments, workshop, chosen, work)
    if arguments.render_only:
        return
    first = next(iter(compared.values()))
    results = {
        "schema": "octet.fidelity/1",
        "date": datetime.now(timezone.utc).strftime("%Y-%m-%d"),
        "version": first["version"],
        "commit": first["commit"],
        "model": arguments.model.name,
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
        results["ground_truth"] = ground_truth(pool, work)
        print("bf16: judging", flush=True)
        results["bf16"] = judged(pool, pictures / "bf16", None, captions, first["images"])
        for recipe in chosen:
            print(f"{recipe.label}: judging", flush=True)
            images = compared[recipe.name]["images"]
            rows = judged(pool, pictures / recipe.name, pictures / "bf16", captions, images)
            facts = workshop.facts(recipe)
            results["recipes"].append(recipe_results(recipe, facts, compared[recipe.name], rows))
    write_whole(work / "results.json", json.dumps(results, indent=1) + "\n")
    for path in report.write_report(results, arguments.docs):
        print(path)


if __name__ == "__main__":
    main()
