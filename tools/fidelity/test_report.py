"""Intervals, formats of weights, and the page: fast, without a model and without a judge."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

for package in ("torch", "skimage", "safetensors"):
    pytest.importorskip(package)

import metrics
import numpy as np
import plots
import report
import torch
import weight_formats
from PIL import Image


def results(shift: float = 0.0) -> dict:
    chance = np.random.default_rng(1)

    def rows(worse: float) -> list[dict]:
        return [
            {
                "caption": f"{i:03}",
                "seed": seed,
                **dict.fromkeys(("ocr", "template", "letters", "colour", "iou"), 0.75 - worse),
                "psnr_db": 30 + chance.normal() - 50 * worse,
                "ssim": 0.9,
                "lpips": 0.1,
                "velocity_snr_db": 25.0,
                "snr_db": [20.0, 19.0 - 50 * worse, None if worse == 0 else 18.5],
            }
            for i in range(8)
            for seed in (0, 1)
        ]

    recipe = {"linears": "int8", "bytes": 9_000_000, "linears_ran": {"int8": 32, "fake": 0}}
    return {
        **dict.fromkeys(("date", "version", "commit", "model", "device"), "x"),
        "size": "256x256",
        "preset": "default",
        "steps": 3,
        "captions": 8,
        "seeds": 2,
        "protected_linears": 4,
        "lpips": metrics.LPIPS_NETWORK,
        "resamples": metrics.RESAMPLES,
        "bf16": rows(0.0),
        "ground_truth": rows(-0.25),
        "recipes": [
            recipe | {"name": "rowwise", "label": "R", "protected": {}, "pictures": rows(0.0)},
            recipe | {"name": "convrot", "label": "C", "protected": {}, "pictures": rows(shift)},
        ],
    }


def test_an_interval_holds_its_value_and_does_not_change():
    values = {f"{i}": [float(i), float(i + 1)] for i in range(20)}
    middle, low, high = metrics.interval(values)
    assert middle == 10 and 6 < low < 9 and 11 < high < 14
    assert metrics.interval(values) == (middle, low, high)


def test_differences_are_paired():
    """Captions vary much more than the two recipes differ."""
    a = {f"{i}": [10.0 * i] for i in range(30)}
    b = {name: [value + 0.5] for name, (value,) in a.items()}
    assert metrics.difference(a, b) == pytest.approx((0.5, 0.5, 0.5))
    assert metrics.difference(a, {}) is None


def test_recipes_are_ranked_and_ties_are_named():
    tie = report.ranking_table(results())
    assert "| 1 | R |" in tie and "Not told apart by these pictures: R and C." in tie
    made = results(shift=0.1)
    for row in made["recipes"][0]["pictures"]:
        row["snr_db"][-1] = 17.5  # and the other 18.5
    sure = report.ranking_table(made)
    assert "--captions 8 --seeds 2 --recipes rowwise,convrot" in report.markdown(made)
    assert "| 1 | C | 18.5" in sure and "+1.00 (+1.00 to +1.00) | yes |" in sure
    assert "Each is surely ahead of the next." in sure
    assert report.markdown(made).split("\n\n")[1].startswith("**C is the nearest of native INT8**")


def test_psnr_and_ssim():
    picture = Image.effect_noise((64, 64), 50)
    other = picture.point(lambda level: min(255, level + 10))
    assert metrics.psnr(picture, picture) == float("inf")
    assert metrics.psnr(picture, other) == pytest.approx(28.13, abs=0.2)
    assert metrics.ssim(picture, picture) == 1 > metrics.ssim(picture, other)


def test_lpips_needs_no_network():
    pytest.importorskip("stlpips_pytorch")
    chance = np.random.default_rng(0)
    picture = Image.fromarray(chance.integers(0, 255, (64, 64, 3), np.uint8))
    assert metrics.lpips(picture, picture) == 0
    assert metrics.lpips(picture, Image.new("RGB", (64, 64))) > 0.1


def test_a_page_of_equal_recipes_says_so():
    text = report.markdown(results())
    assert "All 10 intervals hold zero" in text
    assert "| ground truth | 100.0 (100.0 to 100.0) |" in text
    assert "| bf16 | 75.0 (75.0 to 75.0) |" in text
    assert "**" not in text.split("### Each recipe less bf16")[1].split("###")[0]


def test_a_page_of_a_worse_recipe_marks_it():
    text = report.markdown(results(shift=0.25))
    part = text.split("### Each recipe less bf16")[1].split("###")[0]
    assert "**-25.0 (-25.0 to -25.0)**" in part and "5 of 10 intervals exclude zero" in part
    assert "C against R" in text


def test_files_of_a_report(tmp_path):
    written = report.write_report(json.loads(json.dumps(results())), tmp_path)
    assert {path.name for path in written} == {
        "fidelity.md",
        "fidelity_snr.svg",
        "fidelity_psnr.svg",
    }
    for path in written:
        assert "nan" not in path.read_text()
    links = re.findall(r"\]\((\w+\.svg)\)", (tmp_path / "fidelity.md").read_text())
    assert sorted(links) == ["fidelity_psnr.svg", "fidelity_snr.svg"]


def test_ticks_are_round_and_hold_everything():
    assert plots.ticks(13.2, 24.9) == [12, 14, 16, 18, 20, 22, 24, 26]
    assert plots.ticks(5, 5)[0] <= 5 <= plots.ticks(5, 5)[-1]


def test_fp8_and_nf4_stand_for_the_weight(tmp_path):
    weight = torch.randn(24, 96, generator=torch.Generator().manual_seed(1))
    fp8 = weight_formats.fp8_rowwise(weight)
    meant = fp8["weight"].float() * fp8["weight_scale"]
    assert (meant - weight).norm() / weight.norm() < 0.04
    nf4 = weight_formats.nf4(weight)
    codes = nf4["weight"].numpy().reshape(-1)
    pairs = np.stack([codes >> 4, codes & 15], axis=1).reshape(-1)
    values = weight_formats.NF4_VALUES[pairs].reshape(-1, weight_formats.NF4_BLOCK)
    meant = (values * nf4["weight.absmax"].numpy()[:, None]).reshape(24, 96)
    assert np.linalg.norm(meant - weight.numpy()) / weight.norm() < 0.12


def test_nf4_is_that_of_bitsandbytes():
    pytest.importorskip("bitsandbytes")
    from bitsandbytes import functional

    weight = torch.randn(16, 128, generator=torch.Generator().manual_seed(2))
    codes, state = functional.quantize_4bit(weight, blocksize=64, quant_type="nf4")
    ours = weight_formats.nf4(weight)
    assert torch.equal(codes.reshape(-1), ours["weight"].reshape(-1))
    assert torch.equal(state.absmax, ours["weight.absmax"])
    assert torch.equal(state.code, ours["weight.quant_map"])
