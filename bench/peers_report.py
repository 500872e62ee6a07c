"""Tables and plots of bench/peers.py, made of its JSON alone: no figure is ever typed in."""

from __future__ import annotations

import math
from pathlib import Path

from bars import bar_chart
from whole_files import write_whole

OURS = "octet"
LABELS = {
    "octet": "Octet",
    "bf16": "bf16 cuBLAS",
    "int_mm": "torch._int_mm, int32 out",
    "int_mm_dequant": "torch._int_mm + compiled dequant",
    "fake_int8": "fake INT8: quantize, dequantize both, bf16 matmul",
    "triton": "Triton, fused",
    "fp8_row": "FP8 row-wise",
    "fp8_tensor": "FP8 tensor-wise",
    "quantize": "quantization",
    "quantize_torch": "compiled torch quantization",
    "octet_plain": "Octet without the SwiGLU",
    "octet_separate": "Octet + compiled SwiGLU",
    "triton_separate": "Triton + compiled SwiGLU",
    "bf16_separate": "bf16 cuBLAS + compiled SwiGLU",
}
GEMMS = ("octet", "bf16", "int_mm", "int_mm_dequant", "fake_int8", "triton", "fp8_row",
         "fp8_tensor")
SUSTAINED = ("octet", "bf16", "int_mm_dequant", "triton", "fp8_row")
SWIGLUS = ("octet", "octet_separate", "triton_separate", "bf16_separate")
# Octet's work: these may not be left out.
OWN = ("octet", "octet_plain", "octet_separate", "quantize")
PLOTTED_M = 4096
HEAD = ("device", "driver", "date", "commit", "torch", "triton", "cuda", "command", "rounds")


def problem_with(report) -> str:
    """Why this is no report of bench/peers.py, as the end of a sentence; empty when it is one."""
    if not isinstance(report, dict):
        return "it holds no object"
    missing = [key for key in (*HEAD, "cases") if key not in report]
    if missing:
        return f"it has no {', '.join(missing)}"
    if not isinstance(report["cases"], list):
        return "its cases are no list"
    for number, case in enumerate(report["cases"]):
        if not isinstance(case, dict):
            return f"case {number} is no object"
        missing = [key for key in ("section", "name", "m", "n", "k", "kernel", "us", "left_out")
                   if key not in case]
        if missing:
            return f"case {number} has no {', '.join(missing)}"
        times = case["us"]
        if not isinstance(times, dict) or OURS not in times or not all(
                isinstance(us, (int, float)) and us > 0 for us in times.values()):
            return f"case {number} has no times of Octet, or some that are no positive numbers"
    return ""


def tops(case: dict, name: str) -> float:
    return 2 * case["m"] * case["n"] * case["k"] / case["us"][name] * 1e-6


def cases_of(report: dict, section: str) -> list:
    return [case for case in report["cases"] if case["section"] == section]


def geometric_means(cases: list) -> dict:
    """{peer: (mean, least, most, count)} of how many times as long as Octet's GEMM it takes."""
    means = {}
    for name in GEMMS:
        ratios = [case["us"][name] / case["us"][OURS] for case in cases if name in case["us"]]
        if name != OURS and ratios:
            mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
            means[name] = (mean, min(ratios), max(ratios), len(ratios))
    return means


# --- tables --------------------------------------------------------------------------------------


def table(header: list, rows: list, left: int) -> str:
    rule = ["---"] * left + ["---:"] * (len(header) - left)
    return "\n".join("| " + " | ".join(map(str, row)) + " |" for row in [header, rule, *rows])


def by_contestant(cases: list, names, cell) -> str:
    """A row per case, a column per contestant that ran at least once; the best is bold."""
    shown = [name for name in names if any(name in case["us"] for case in cases)]
    rows = []
    for case in cases:
        fastest = min((name for name in shown if name in case["us"]), key=case["us"].get)
        values = [cell(case, name) if name in case["us"] else "-" for name in shown]
        values = [f"**{value}**" if name == fastest else value
                  for name, value in zip(shown, values)]
        rows.append([case["m"], case["name"], *values, f"`{case['kernel']}`"])
    return table(["m", "n x k", *(LABELS[name] for name in shown), "Octet's kernel"], rows, 2)


def in_tops(case, name):
    return f"{tops(case, name):.0f}"


def in_us(case, name):
    us = case["us"][name]
    return f"{us:.{2 if us < 10 else 1 if us < 100 else 0}f}"


def ratio_table(cases: list) -> str:
    rows = [[LABELS[name], f"{mean:.2f}x", f"{least:.2f}x", f"{most:.2f}x", count]
            for name, (mean, least, most, count) in geometric_means(cases).items()]
    return table(["peer", "takes, geometric mean", "least", "most", "shapes"], rows, 1)


def linear_table(cases: list) -> str:
    rows = []
    for case in cases:
        us = case["us"]
        if "quantize" not in us or "bf16" not in us:
            continue
        linear = us["quantize"] + us[OURS]
        theirs = in_us(case, "quantize_torch") if "quantize_torch" in us else "-"
        rows.append([case["m"], case["name"], in_us(case, "quantize"), theirs, f"{linear:.0f}",
                     in_us(case, "bf16"), f"{us['bf16'] / linear:.2f}x"])
    return table(["m", "n x k", "quantize us", "compiled torch quantize us", "Octet's linear us",
                  "bf16 us", "bf16 takes"], rows, 2)


def swiglu_table(cases: list) -> str:
    text = by_contestant(cases, SWIGLUS, in_us)
    costs = [f"{case['us'][OURS] / case['us']['octet_plain'] - 1:+.1%} at m = {case['m']}"
             for case in cases if "octet_plain" in case["us"]]
    if costs:
        text += ("\n\nOctet's kernel with the SwiGLU against the same product without it, in the "
                 f"same turns: {', '.join(costs)}.")
    return text


def how_chosen(report: dict) -> str:
    """Nobody should have to guess who was given how much of a search."""
    counts = {case.get("notes", {}).get("triton_configs") for case in report["cases"]} - {None}
    searched = f" over {min(counts)}" if counts else ""
    searched += f" to {max(counts)}" if len(counts) > 1 else ""
    tune = report.get("tune", "missing")
    ours = "by its rules, nothing measured" if tune == "off" else "by its tuner"
    return (f"How each kernel was chosen. Octet: {ours} (`--tune {tune}`); Triton: by a "
            f"search{searched} configs for each shape; cuBLAS and FP8: by the library's own "
            "heuristic.")


def failed(report: dict) -> list:
    return [f"- {case['section']}, m={case['m']} {case['name']}: {case['reason']}"
            for case in report.get("failed", [])]


def left_out(report: dict) -> list:
    """One line per contestant and reason, however many shapes it was left out of."""
    shapes = {}
    for case in report["cases"]:
        for name, reason in case["left_out"].items():
            shapes.setdefault((name, reason), []).append(f"m={case['m']} {case['name']}")
    return [f"- {LABELS.get(name, name)}, {', '.join(where)}: {reason}"
            for (name, reason), where in shapes.items()]


UNDER_LOAD = ("Two passes over the contestants, the second backwards, averaged; in each, everybody "
              "runs alone for a while before being timed, at the clock that the power limit "
              "leaves.")


def markdown(report: dict) -> str:
    parts = [
        f"{report['device']}, driver {report['driver']}; {report['date']}; commit "
        f"{report['commit']}; torch {report['torch']}, Triton {report['triton']}, CUDA "
        f"{report['cuda']}; `{report['command']}`.",
        f"Medians of {report['rounds']} rounds, everybody in turns in one process, on the same "
        "operands (normal, quantized by the row's maximum), caches flushed before each call, "
        "except where a heading says otherwise. GEMM alone, operands quantized already (fake INT8 "
        "quantizes the activations within its time); bold is the fastest, int32 outputs and FP8 "
        "counted in.",
    ]
    sections = (
        ("linear", "Linears, TOPS",
         lambda cases: by_contestant(cases, GEMMS, in_tops) + "\n\n" + how_chosen(report)),
        ("linear", "How many times as long as Octet's GEMM", ratio_table),
        ("linear", "The whole linear, quantization of the activations included", linear_table),
        ("sustained", "Under load, TOPS: mean, each alone call after call, operands warm in L2 "
         "where they fit, no flush",
         lambda cases: by_contestant(cases, SUSTAINED, in_tops) + "\n\n" + UNDER_LOAD),
        ("unaligned", "Rows that fill no tile, TOPS",
         lambda cases: by_contestant(cases, GEMMS, in_tops)),
        ("skinny", "A handful of rows, us", lambda cases: by_contestant(cases, GEMMS, in_us)),
        ("swiglu", "w1 and w3 with their SwiGLU, us; Octet's is one kernel", swiglu_table),
    )
    for section, title, render in sections:
        cases = cases_of(report, section)
        if cases:
            parts += [f"### {title}", render(cases)]
    if report.get("notes"):
        parts.append("Notes: " + "; ".join(report["notes"]) + ".")
    cases_failed = failed(report)
    if cases_failed:
        parts += ["Failed:", "\n".join(cases_failed)]
    reasons = left_out(report)
    if reasons:
        parts += ["Left out:", "\n".join(reasons)]
    return "\n\n".join(parts) + "\n"


# --- plots ---------------------------------------------------------------------------------------


def write_plots(report: dict, folder: Path) -> list:
    """The paths of the plots that could be made of this report."""
    written = []
    linears = cases_of(report, "linear")
    about = f"{report['device'].split(',')[0]}, {report['date'][:10]}"
    plotted = [case for case in linears if case["m"] == PLOTTED_M]
    if plotted:
        groups = [(f"m={case['m']} {case['name']}",
                   [(LABELS[name], tops(case, name), name == OURS)
                    for name in GEMMS if name in case["us"]]) for case in plotted]
        path = folder / "gpu_tops.svg"
        write_whole(path, bar_chart(f"One linear's GEMM, TOPS; {about}", groups, "TOPS", digits=0,
                                    one_scale=True))
        written.append(path)
    means = geometric_means(linears)
    if means:
        bars = [(LABELS[OURS], 1.0, True)]
        # A peer that lacks shapes has another mean than the heading's, and says so.
        bars += [(LABELS[name] + ("" if count == len(linears) else f", {count} of them"), mean,
                  False) for name, (mean, _, _, count) in means.items()]
        all_ran = all(count == len(linears) for *_, count in means.values())
        shapes = f"{len(linears)} shapes" + ("" if all_ran else " where not said otherwise")
        heading = f"geometric mean over {shapes}, GEMM alone, less is better"
        path = folder / "gpu_ratios.svg"
        write_whole(path, bar_chart(f"Time in units of Octet's; {about}", [(heading, bars)], "x",
                                    digits=2))
        written.append(path)
    return written
