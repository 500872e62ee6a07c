#!/usr/bin/env python3
"""The page and the plots about fidelity, made only from results.json: no figure is ever typed in.

tools/fidelity/report.py RESULTS.json [--docs docs]
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import neighbours
import numpy as np
from peers_report import table
from whole_files import write_whole

import metrics
import plots

# (field, heading, digits, factor, the statistic of it)
DISTANCES = (
    ("velocity_snr_db", "first velocity, SNR dB", 1, 1, np.mean),
    ("final_snr_db", "final latent, SNR dB", 1, 1, np.mean),
    ("psnr_db", "PSNR dB, median", 1, 1, np.median),
    ("ssim", "SSIM", 4, 1, np.mean),
    ("lpips", "LPIPS", 4, 1, np.mean),
)
JUDGED = (
    ("ocr", "word read by OCR, %", 1, 100, np.mean),
    ("template", "word read by templates, %", 1, 100, np.mean),
    ("letters", "letters right, %", 1, 100, np.mean),
    ("colour", "colours right, %", 1, 100, np.mean),
    ("iou", "box IoU, %", 1, 100, np.mean),
)
BY_FIELD = {column[0]: column for column in DISTANCES + JUDGED}
# Questions that a reader has: the second against the first.
PAIRS = (
    ("rowwise", "smoothquant"),
    ("rowwise", "convrot"),
    ("smoothquant", "convrot"),
    ("rowwise", "rowwise-protected"),
    ("smoothquant", "smoothquant-protected"),
    ("convrot", "convrot-protected"),
    ("fake", "convrot"),
    ("fp8", "convrot"),
    ("nf4", "convrot"),
)
PAIR_FIELDS = ("final_snr_db", "psnr_db", "lpips", "ocr", "letters", "colour", "iou")
EQUAL_DB = 99.0  # stands for equal pictures or latents, which have no finite ratio


def scores(rows: list[dict], field: str) -> dict[str, list[float]]:
    """By caption, in the order of seeds; pictures without this score are left out."""
    by_caption: dict[str, list[float]] = {}
    for row in rows:
        value = row["snr_db"][-1] if field == "final_snr_db" else row[field]
        if value is None and field.endswith("_db"):
            value = EQUAL_DB
        if value is not None:
            by_caption.setdefault(row["caption"], []).append(value)
    return by_caption


def written(value: tuple[float, float, float], digits: int, factor: float, sign: str = "") -> str:
    """With the 95 % interval."""
    middle, low, high = (factor * part for part in value)
    text = f"{middle:{sign}.{digits}f}"
    return f"{text} ({low:{sign}.{digits}f} to {high:{sign}.{digits}f})"


def score_table(results: dict, columns: tuple, more: list) -> str:
    """more: (label, pictures) of rows before the recipes."""
    sources = more + [(recipe["label"], recipe["pictures"]) for recipe in results["recipes"]]
    rows = []
    for label, pictures in sources:
        cells = []
        for field, _, digits, factor, statistic in columns:
            values = scores(pictures, field)
            interval = metrics.interval(values, statistic) if values else None
            cells.append(written(interval, digits, factor) if interval else "-")
        rows.append([label, *cells])
    return table(["", *(column[1] for column in columns)], rows, 1)


def difference_rows(pairs: list, fields: tuple) -> tuple[list, int, int]:
    """Rows of (label, cells), how many cells there are, and how many exclude zero, in bold."""
    rows, cells, sure = [], 0, 0
    for label, first, second in pairs:
        row = [label]
        for field in fields:
            _, _, digits, factor, _ = BY_FIELD[field]
            # Equal pictures count as EQUAL_DB, which a mean would take at its word.
            statistic = np.median if field.endswith("_db") else np.mean
            value = metrics.difference(scores(first, field), scores(second, field), statistic)
            if value is None:
                row.append("-")
                continue
            text = written(value, digits, factor, "+")
            excludes_zero = value[1] > 0 or value[2] < 0
            row.append(f"**{text}**" if excludes_zero else text)
            cells, sure = cells + 1, sure + excludes_zero
        rows.append(row)
    return rows, cells, sure


def difference_table(pairs: list, fields: tuple) -> str:
    rows, cells, sure = difference_rows(pairs, fields)
    header = ["", *(BY_FIELD[field][1].replace(", median", "") for field in fields)]
    if not sure:
        verdict = f"All {cells} intervals hold zero: no difference is shown."
    else:
        verdict = (
            f"{sure} of {cells} intervals exclude zero, in bold; one in twenty does by chance."
        )
    medians = any(field.endswith("_db") for field in fields)
    note = " Decibels: the median of the pictures' differences." if medians else ""
    return f"{table(header, rows, 1)}\n\n{verdict}{note}"


def recipe_table(results: dict) -> str:
    rows = []
    for recipe in results["recipes"]:
        ran = ", ".join(f"{count} {way}" for way, count in recipe["linears_ran"].items() if count)
        protected = sum(len(modules) for modules in recipe["protected"].values())
        rows.append([recipe["label"], f"{recipe['bytes'] / 1e6:.1f}", protected, ran])
    return table(["", "both networks, MB", "protected linears", "linears ran as"], rows, 1)


def ranked(results: dict) -> list[dict]:
    """Recipes by the final latent's SNR, the nearest to bf16 first."""

    def middle(recipe: dict) -> float:
        return metrics.interval(scores(recipe["pictures"], "final_snr_db"), np.median)[0]

    return sorted(results["recipes"], key=middle, reverse=True)


def ranking_table(results: dict) -> str:
    """Each recipe against the one below it."""
    order = ranked(results)
    rows, tied = [], []
    for i, recipe in enumerate(order):
        own = scores(recipe["pictures"], "final_snr_db")
        row = [str(i + 1), recipe["label"], written(metrics.interval(own, np.median), 1, 1)]
        if i + 1 < len(order):
            below = scores(order[i + 1]["pictures"], "final_snr_db")
            ahead = metrics.difference(below, own, np.median)
            row += [written(ahead, 2, 1, "+"), "yes" if ahead[1] > 0 else "no"]
            if ahead[1] <= 0:
                tied.append(f"{recipe['label']} and {order[i + 1]['label']}")
        else:
            row += ["", ""]
        rows.append(row)
    header = ["", "", "final latent, SNR dB, median", "ahead of the next by, dB", "surely"]
    if tied:
        verdict = f"Not told apart by these pictures: {'; '.join(tied)}."
    else:
        verdict = "Each is surely ahead of the next."
    return f"{table(header, rows, 2)}\n\n{verdict}"


def lead(results: dict) -> str:
    """The answer, before all tables."""
    native = [recipe for recipe in ranked(results) if recipe["linears"] == "int8"]
    if not native:
        return "No recipe of native INT8 was measured."
    best = native[0]

    def share(rows: list[dict], field: str) -> str:
        return written(metrics.interval(scores(rows, field), np.mean), 1, 100)

    psnr = metrics.interval(scores(best["pictures"], "psnr_db"), np.median)
    lpips = metrics.interval(scores(best["pictures"], "lpips"), np.median)
    return (
        f"**{best['label']} is the nearest of native INT8**: median PSNR {written(psnr, 1, 1)} dB "
        f"and LPIPS {written(lpips, 4, 1)} to bf16. OCR reads the word on "
        f"{share(best['pictures'], 'ocr')} % of its pictures and on "
        f"{share(results['bf16'], 'ocr')} % of bf16's; {share(best['pictures'], 'colour')} % and "
        f"{share(results['bf16'], 'colour')} % of the colours are right. All of it is about one "
        "small model and its simple pictures."
    )


def counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def command_of(results: dict) -> str:
    names = ",".join(recipe["name"] for recipe in results["recipes"])
    numbers = f"--captions {results['captions']} --seeds {results['seeds']}"
    return f'make fidelity FIDELITY_ARGS="{numbers} --recipes {names}"'


def markdown(results: dict) -> str:
    recipes = {recipe["name"]: recipe for recipe in results["recipes"]}
    against_bf16 = [
        (recipe["label"], results["bf16"], recipe["pictures"]) for recipe in results["recipes"]
    ]
    pairs = [
        (
            f"{recipes[second]['label']} against {recipes[first]['label']}",
            recipes[first]["pictures"],
            recipes[second]["pictures"],
        )
        for first, second in PAIRS
        if first in recipes and second in recipes
    ]
    pictures = len(results["bf16"])
    equal = sum(
        row["psnr_db"] is None for recipe in results["recipes"] for row in recipe["pictures"]
    )
    parts = [
        "# What quantizing costs pictures",
        lead(results),
        f"Model `{results['model']}`, {results['size']}, preset `{results['preset']}` "
        f"({results['steps']} steps), {results['captions']} held-out captions with "
        f"{counted(results['seeds'], 'seed')} each: {pictures} pictures of each recipe. "
        f"{results['device']}; {results['date']}; version {results['version']}, commit "
        f"{results['commit']}. Every figure comes from the results of this command, none is typed "
        "in:",
        f"```\n{command_of(results)}\n```",
        "In parentheses: 95 % intervals by bootstrap over captions "
        f"({results['resamples']} resamples, paired).",
        "## Ranking",
        ranking_table(results),
        "## The recipes",
        recipe_table(results),
        "Large linears run in INT8, except FP8 and NF4, whose weights meet activations in bf16: "
        "these two show what the stored weights lose, not a speed. *Protected*: in each "
        f"network, the {results['protected_linears']} linears with the largest error stay in "
        "bf16. Calibration saw other captions, with words and colours as in training.",
        "## Distance from bf16",
        score_table(results, DISTANCES, []),
        f"LPIPS is {results['lpips']}: lower is nearer. Steps amplify or absorb a difference; "
        "the first velocity shows the network alone."
        + (f" {equal} pictures equal bf16's and count as {EQUAL_DB:g} dB." if equal else ""),
        "![SNR of the latents after each step](fidelity_snr.svg)",
        "![Distribution of the pictures' PSNR](fidelity_psnr.svg)",
        "## What the pictures show",
        "Judged by code, each picture by its own caption. The difference between a recipe and "
        "bf16 is what quantizing costs; the rest is the model's. The first row is what the judges "
        f"give {len(results['ground_truth'])} pictures by the painter that training learns from.",
        score_table(
            results,
            JUDGED,
            [("ground truth", results["ground_truth"]), ("bf16", results["bf16"])],
        ),
        HOW_JUDGED,
        "### Each recipe less bf16",
        difference_table(against_bf16, tuple(column[0] for column in JUDGED)),
    ]
    if pairs:
        parts += ["### Recipes against each other", difference_table(pairs, PAIR_FIELDS)]
    return "\n\n".join(parts) + "\n"


HOW_JUDGED = """\
* **Word read by OCR**: PP-OCR (rapidocr) reads exactly the asked word, case aside, in its box or on
  the whole picture. **By templates**: at each letter's place the asked letter fits better than all
  other letters and digits, in the font that fits the word best; I, l and 1, and O and 0, count as
  alike.
* **Colours right**: of each colour of each element, at least a third of the pixels that the
  ground-truth painter gives it are there, within 2 pixels of their place and a CIE 1976 difference
  of 15; of the background, at least half.
* **Box IoU**: the box around the element's colours, looked for in the caption's box and a quarter
  of its size around it, against the box of what the painter paints. It is seldom 0, since something
  of that colour is nearly always there."""


# --- plots ---------------------------------------------------------------------------------------


def step_means(recipe: dict) -> list[float | None]:
    """Mean SNR after each step; pictures whose latents are equal have none."""
    means = []
    for values in zip(*(row["snr_db"] for row in recipe["pictures"])):
        known = [value for value in values if value is not None]
        means.append(float(np.mean(known)) if known else None)
    return means


def write_report(results: dict, docs: Path) -> list[Path]:
    seeds = counted(results["seeds"], "seed")
    about = f"{results['model']}, {results['captions']} captions, {seeds} each"
    steps = {recipe["label"]: step_means(recipe) for recipe in results["recipes"]}
    psnr = {
        recipe["label"]: np.percentile(
            sum(scores(recipe["pictures"], "psnr_db").values(), []), [5, 25, 50, 75, 95]
        )
        for recipe in results["recipes"]
    }
    files = {
        "fidelity.md": markdown(results),
        "fidelity_psnr.svg": plots.box_chart(
            "PSNR against bf16",
            f"Median, quartiles, 5th and 95th percentile of the pictures. {about}",
            psnr,
            "dB",
        ),
    }
    shown = {label: means for label, means in steps.items() if any(m is not None for m in means)}
    if shown:
        files["fidelity_snr.svg"] = plots.line_chart(
            "How far latents are from those of bf16",
            f"Mean SNR after each step; higher is nearer. {about}",
            "step",
            "SNR dB",
            shown,
        )
    docs.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        write_whole(docs / name, text)
    return [docs / name for name in files]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", type=Path)
    parser.add_argument("--docs", type=Path, default=neighbours.ROOT / "docs")
    arguments = parser.parse_args()
    results = json.loads(arguments.results.read_text(encoding="utf-8"))
    for path in write_report(results, arguments.docs):
        print(path)


if __name__ == "__main__":
    main()
