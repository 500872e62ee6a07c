"""What bench/step_peers.py runs in which order, what it makes of failures, and the plot of
bench/step_shares.py: on any machine, of figures that were made up."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import xml.etree.ElementTree
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def bench(repository: Path, monkeypatch) -> Path:
    monkeypatch.syspath_prepend(str(repository / "bench"))
    return repository / "bench"


def op(name, ms, operations=None, moved=None, ceiling_share=None):
    return {"op": name, "calls": 1, "ms": ms, "share": 0.5, "operations": operations,
            "bytes": moved, "tops": None, "gb_per_s": None, "ceiling_share": ceiling_share}


STEP = {
    "schema": "octet.bench.step/1", "device": "A GPU, 132 multiprocessors",
    "date": "2025-01-31T12:00:00Z", "commit": "abc", "dtype": "bf16", "attention": "auto",
    "width": 1024, "height": 1024, "text_tokens": 512, "step_ms": 41.0, "launches": 900,
    "ceilings": {"int8_tops": 1900.0, "bf16_tops": None, "copy_gb_per_s": 4000.0},
    "power": {"samples": 9, "mean_w": 650.0, "max_w": 700.0, "limit_w": 700.0, "joules": 90.0,
              "mean_mhz": 1500.0, "max_celsius": 60.0, "power_capped": 0.5, "too_hot": 0.0},
    "branches": [
        {"name": "conditional",
         "ops": [op("gemm", 12.0, 18e12, 6e9, 0.8), op("attention", 6.0, 3e12),
                 op("embed", 0.5, None, 1e6, 0.1), op("other", 1.5)]},
        {"name": "unconditional",
         "ops": [op("gemm", 8.0, 12e12, 4e9, 0.7), op("attention", 10.0, 5e12), op("other", 2.0)]},
    ],
}


def test_shares_are_drawn_of_the_json(bench, tmp_path):
    paths = [tmp_path / "a.json", tmp_path / "b.json"]
    paths[0].write_text(json.dumps(STEP))
    paths[1].write_text(json.dumps({**STEP, "attention": "int8", "power": None, "width": 2048}))
    done = subprocess.run([sys.executable, bench / "step_shares.py", *paths, "--svg",
                           tmp_path / "a.svg", "--markdown", tmp_path / "a.md"],
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    root = xml.etree.ElementTree.parse(tmp_path / "a.svg").getroot()
    text = "".join(root.itertext())
    assert "1024 x 1024, bf16 attention" in text and "2048 x 1024, INT8 scores" in text
    assert "A GPU, 2025-01-31, commit abc" in text and "41 ms" in text
    # Of 40 ms: 20 in GEMMs, 16 in attention, 4 in the rest.
    assert "INT8 GEMMs 50.0%" in text and "attention 40.0%" in text and "other 10.0%" in text
    bars = [float(box.get("width")) for box in root.iter("{http://www.w3.org/2000/svg}rect")
            if box.get("height") == "22"]
    assert len(bars) == 6 and sum(bars[:3]) == pytest.approx(600, abs=0.2)
    # 30 TOP in 20 ms; the mean of the shares over the time.
    assert "| gemm | 50.0% | 20.00 | 1500 | 500 | 76% |" in done.stdout
    assert "| attention | 40.0% | 16.00 | 500 | - | - |" in done.stdout
    assert "650 W of 700, 1500 MHz, up to 60 C; at the power limit 50% of the time." in done.stdout
    assert (tmp_path / "a.md").read_text() == done.stdout[:-1]


@pytest.mark.parametrize("text", ["{", "{}", '{"schema": "octet.bench.step/1"}'])
def test_what_is_no_step_is_one_sentence(bench, tmp_path, text):
    (tmp_path / "a.json").write_text(text)
    done = subprocess.run([sys.executable, bench / "step_shares.py", tmp_path / "a.json", "--svg",
                           tmp_path / "a.svg"], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (1, "") and done.stderr.startswith("step_shares: ")
    assert done.stderr.count("\n") == 1 and not (tmp_path / "a.svg").exists()


def test_every_other_pass_is_backwards_and_failures_are_told():
    import step_peers

    order, said = [], []

    def runs(path, fails_at=None):
        def run():
            order.append(path)
            if order.count(path) == fails_at:
                raise RuntimeError(f"{path} has no memory\nand a trace")
            return step_peers.Run({"conditional": 2.0, "unconditional": 1.0}, {},
                                  about={"device": "A GPU", "commit": "abc"})
        return run

    result = step_peers.measure(
        {"octet": runs("octet"), "bf16": runs("bf16", fails_at=2), "fp8_row": runs("fp8_row", 1)},
        step_peers.StepCase(), 34, said.append, passes=3)
    assert order == ["octet", "bf16", "fp8_row", "bf16", "octet", "octet", "bf16"]
    assert result["left_out"] == {"fp8_row": "fp8_row has no memory"}
    assert result["ms"]["bf16"] == {"conditional": 2.0, "unconditional": 1.0}
    assert (len(result["runs"]["octet"]), len(result["runs"]["bf16"])) == (3, 2)
    assert result["about"] == {"device": "A GPU", "commit": "abc"}
    result = step_peers.measure({"octet": runs("octet")}, step_peers.StepCase(), 34, said.append,
                                seconds=-1)
    assert len(result["runs"]["octet"]) == 1 and "no time for another run" in said[-1]


def test_the_command_renders_without_a_gpu(bench, tmp_path):
    step = {"size": 1024, "text_tokens": 512, "layers": 34, "steps": 50, "passes": 2,
            "attention": "cudnn_attention", "ms": {"octet": {"conditional": 4.0,
                                                             "unconditional": 3.0}},
            "power": {}, "off": {}, "left_out": {"bf16": "no module named torch"}}
    report = {"device": "A GPU, 132 multiprocessors", "date": "2025-01-31T12:00:00Z",
              "commit": "abc", "torch": None, "cuda": None, "command": "c", "cases": [],
              "step": step}
    (tmp_path / "step.json").write_text(json.dumps(report))
    done = subprocess.run([sys.executable, bench / "step_peers.py", "--from-json",
                           tmp_path / "step.json", "--plots", tmp_path, "--markdown",
                           tmp_path / "step.md"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "| Octet, INT8 | 4.0 | 3.0 | 7.0 | 1.00x |" in done.stdout
    assert "bf16 linears, the step: no module named torch" in done.stdout
    assert (tmp_path / "gpu_step.svg").exists()


def test_power_is_sampled_around_the_work():
    import power

    class Gauge:
        reads, twice = 0, threading.Event()

        def read(self):
            self.reads += 1
            if self.reads == 2:
                self.twice.set()
            return {"w": 300.0, "mhz": 1500, "capped": self.reads > 1}

        def joules(self):
            raise OSError("not counted")

    gauge = Gauge()
    with power.sampled(gauge) as use:
        assert gauge.twice.wait(60)
    assert use["samples"] == gauge.reads >= 2
    assert use["mean_w"] == use["max_w"] == 300 and use["mean_mhz"] == 1500
    assert use["power_capped"] == pytest.approx((gauge.reads - 1) / gauge.reads)
    with power.sampled(None) as use:
        pass
    assert use == {}
