"""The tables and plots of bench/peers.py: made of its JSON, on any machine."""

from __future__ import annotations

import json
import subprocess
import sys
import xml.etree.ElementTree
from pathlib import Path

import pytest


@pytest.fixture
def bench(repository: Path, monkeypatch) -> Path:
    folder = repository / "bench"
    monkeypatch.syspath_prepend(str(folder))
    return folder


def case(section, m, us, **more):
    return {"section": section, "name": "o 4608x4608", "m": m, "n": 4608, "k": 4608,
            "kernel": "a_kernel", "us": us, "left_out": {}, "notes": {}, **more}


@pytest.fixture
def report() -> dict:
    return {
        "device": "A GPU, 132 multiprocessors", "driver": "1.2", "date": "2025-01-31T12:00:00Z",
        "commit": "abc", "torch": "2", "triton": "3", "cuda": "13", "rounds": 3, "bias": False,
        "command": "bench/peers.py --rounds 3",
        "cases": [
            case("linear", 4096, {"octet": 100.0, "bf16": 200.0, "triton": 110.0, "quantize": 25.0,
                                  "quantize_rotated": 50.0, "quantize_fp8": 40.0, "fp8_row": 110.0,
                                  "kitchen_convrot": 300.0},
                 notes={"kitchen": "0.2.40, its backend cuda"}, left_out={"kitchen": "no kernel"}),
            case("linear", 2304, {"octet": 50.0, "bf16": 400.0, "quantize": 10.0},
                 left_out={"triton": "no config runs", "kitchen": "no kernel"}),
            case("skinny", 8, {"octet": 4.125, "bf16": 3.5},
                 left_out={"int_mm": "self.size(0) needs to be greater than 16"}),
            case("swiglu", 4096, {"octet": 90.0, "octet_plain": 88.0, "octet_separate": 120.0}),
        ],
    }


def table_rows(text: str, title: str) -> list:
    """The cells of the table under a heading, its header included."""
    lines = text.split(f"### {title}\n\n", 1)[1].split("\n\n", 1)[0].splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return [cells[0], *cells[2:]]


def test_tables(bench, report):
    import peers_report

    text = peers_report.markdown(report)
    assert "A GPU, 132 multiprocessors, driver 1.2" in text and "commit abc" in text
    header, first, second = table_rows(text, "Linears, TOPS")
    assert header == ["m", "n x k", "Octet", "bf16 cuBLAS", "Triton, fused", "FP8 row-wise",
                      "Octet's kernel"]
    # 2 * 4096 * 4608 * 4608 operations in 100 us
    assert first == ["4096", "o 4608x4608", "**1739**", "870", "1581", "1581", "`a_kernel`"]
    assert second == ["2304", "o 4608x4608", "**1957**", "245", "-", "-", "`a_kernel`"]

    ratios = table_rows(text, "How many times as long as Octet's GEMM")[1:]
    assert ratios == [["bf16 cuBLAS", "4.00x", "2.00x", "8.00x", "2"],
                      ["Triton, fused", "1.10x", "1.10x", "1.10x", "1"],
                      ["FP8 row-wise", "1.10x", "1.10x", "1.10x", "1"]]

    title = "The whole linear, quantization of the activations included, us"
    header, *linears = table_rows(text, title)
    assert header[3:] == ["Octet", "Octet with ConvRot", "comfy-kitchen INT8 with ConvRot",
                          "FP8 row-wise, compiled quantization", "bf16"]
    assert linears == [["4096", "o 4608x4608", "25.0", "125", "150", "300", "150", "200"],
                       ["2304", "o 4608x4608", "10.0", "60", "-", "-", "-", "400"]]
    # Rotated ones against Octet's with a rotation, of the shapes that both have.
    assert "| comfy-kitchen INT8 with ConvRot | 2.00x | 2.00x | 2.00x | 1 |" in text
    assert "| FP8 row-wise, compiled quantization | 1.20x | 1.20x | 1.20x | 1 |" in text
    assert "| bf16 | 3.27x | 1.60x | 6.67x | 2 |" in text
    assert "; comfy-kitchen 0.2.40, its backend cuda." in text
    assert "- comfy-kitchen INT8, everywhere: no kernel" in text

    assert table_rows(text, "A handful of rows, us")[1][2:4] == ["4.12", "**3.50**"]
    assert "Octet + compiled SwiGLU" in text and "+2.3% at m = 4096." in text
    assert "torch._int_mm, int32 out, m=8 o 4608x4608: self.size(0) needs to be greater" in text
    assert "Rows that fill no tile" not in text  # there are none


def test_plots_are_svg_with_the_same_figures(bench, report, tmp_path):
    import peers_report

    report["step"] = STEP
    paths = peers_report.write_plots(report, tmp_path)
    assert [path.name for path in paths] == ["gpu_tops.svg", "gpu_ratios.svg", "gpu_step.svg"]
    texts = ["".join(xml.etree.ElementTree.parse(path).getroot().itertext()) for path in paths]
    assert "1739 TOPS" in texts[0] and "m=4096" in texts[0] and "m=2304" not in texts[0]
    assert "1.00 x" in texts[1] and "4.00 x" in texts[1]
    assert "Octet, INT8" in texts[2] and "70.0 ms" in texts[2] and "95.0 ms" in texts[2]
    assert ["is better" in text for text in texts] == [True] * 3
    assert ["higher is better" in text for text in texts] == [True, False, False]


STEP = {"size": 1024, "text_tokens": 512, "layers": 34, "steps": 6, "attention": "cudnn_attention",
        "passes": 2,
        "ms": {"octet": {"conditional": 40.0, "unconditional": 30.0},
               "octet_int8": {"conditional": 38.0, "unconditional": 28.5},
               "fp8_row": {"conditional": 50.0, "unconditional": 45.0}},
        "power": {"octet": {"mean_w": 690.0, "mean_mhz": 1500.0}},
        "off": {"fp8_row": 0.05}, "left_out": {"kitchen": "comfy-kitchen is not installed"}}


def test_the_step(bench, report):
    import peers_report

    text = peers_report.markdown({**report, "step": STEP})
    header, ours, scores, fp8 = table_rows(text, "One denoising step")
    assert header[5:8] == ["W", "MHz", "J per step"]
    assert ours == ["Octet, INT8", "40.0", "30.0", "70.0", "1.00x", "690", "1500", "48.3", "-"]
    assert scores[3:6] == ["66.5", "0.95x", "-"]
    assert fp8 == ["FP8 row-wise linears", "50.0", "45.0", "95.0", "1.36x", "-", "-", "-", "0.050"]
    assert "the means of 2 such runs" in text
    assert "attention cudnn_attention" in text and "34 layers" in text
    assert "- comfy-kitchen INT8 linears, the step: comfy-kitchen is not installed" in text
    assert "One denoising step" not in peers_report.markdown(report)
    assert "PyTorch" not in peers_report.step_table({**STEP, "attention": None})


def test_a_report_of_skinny_shapes_alone_has_no_plots(bench, report, tmp_path):
    import peers_report

    report["cases"] = [case("skinny", 8, {"octet": 4.0, "bf16": 3.5})]
    assert peers_report.write_plots(report, tmp_path) == []
    assert "A handful of rows" in peers_report.markdown(report)


def test_from_json_renders_without_a_gpu(bench, report, tmp_path):
    source = tmp_path / "peers.json"
    source.write_text(json.dumps(report))
    done = subprocess.run(
        [sys.executable, bench / "peers.py", "--from-json", source, "--markdown",
         tmp_path / "peers.md", "--plots", tmp_path],
        capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "### Linears, TOPS" in done.stdout
    assert (tmp_path / "peers.md").read_text() == done.stdout[:-1]
    assert (tmp_path / "gpu_tops.svg").exists() and (tmp_path / "gpu_ratios.svg").exists()


def test_bars_scale_to_the_group_or_to_all(bench):
    from bars import bar_chart

    groups = [("a", [("x", 1.0, True)]), ("b", [("y <z>", 2.0, False)])]
    assert bar_chart("t", "a", groups, "ms", "lower").count('width="420.0"') == 2
    one = bar_chart("t", "a", groups, "ms", "lower", digits=3, one_scale=True)
    assert one.count('width="420.0"') == 1 and one.count('width="210.0"') == 1
    assert "2.000 ms" in one and "y &lt;z&gt;" in one and "lower is better" in one
    # A page of its own colour, and text to read on it, for light and for dark readers.
    assert one.count(".page { fill:") == 2 and one.count("text { fill:") == 2


@pytest.mark.parametrize("text", [None, "{", "{}", "[]", "3", '{"cases": 1}', "null"])
def test_what_is_no_report_is_one_sentence(bench, tmp_path, text):
    source = tmp_path / "peers.json"
    if text is not None:
        source.write_text(text)
    done = subprocess.run([sys.executable, bench / "peers.py", "--from-json", source],
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and done.stdout == ""
    assert done.stderr.startswith(f"peers: {source} is not a report of bench/peers.py: ")
    assert done.stderr.count("\n") == 1


def test_targets_are_checked_first_and_written_whole(bench, report, tmp_path):
    source = tmp_path / "peers.json"
    source.write_text(json.dumps(report))
    command = [sys.executable, bench / "peers.py", "--from-json", source]
    done = subprocess.run([*command, "--markdown", tmp_path / "no" / "peers.md"],
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and done.stdout == ""
    assert done.stderr.startswith("peers: the results could not be written: ")
    done = subprocess.run([*command, "--plots", tmp_path / "new" / "plots"],
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert sorted(path.name for path in (tmp_path / "new" / "plots").iterdir()) == [
        "gpu_ratios.svg", "gpu_tops.svg"]


def test_failures_notes_and_choices_are_told(bench, report):
    import peers_report

    report["cases"].append(case("sustained", 4096, {"octet": 100.0}))
    report["cases"][0]["notes"] |= {"triton": "a config", "triton_configs": 12}
    report["notes"] = ["the host is slow"]
    report["failed"] = [{"section": "linear", "m": 9, "name": "o", "reason": "out of memory"}]
    text = peers_report.markdown(report)
    assert "search over 12 configs" in text and "`--tune missing`" in text
    assert "Notes: the host is slow." in text
    assert "- linear, m=9 o: out of memory" in text
    assert "mean, each alone call after call, operands warm in L2 where they fit, no flush" in text


def test_a_ratio_of_fewer_shapes_says_so(bench, report, tmp_path):
    import peers_report

    path = peers_report.write_plots(report, tmp_path)[1]
    text = "".join(xml.etree.ElementTree.parse(path).getroot().itertext())
    assert "2 shapes where not said otherwise" in text and "Triton, fused, 1 of them" in text
