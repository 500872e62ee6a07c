"""Tables and plots of bench/peers.py, made only from its JSON: no figure is ever typed in."""

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
    "quantize_rotated": "quantization with ConvRot",
    "quantize_torch": "compiled torch quantization",
    "quantize_fp8": "compiled torch quantization to FP8",
    "kitchen": "comfy-kitchen INT8",
    "kitchen_convrot": "comfy-kitchen INT8 with ConvRot",
    "octet_plain": "Octet without the SwiGLU",
    "octet_separate": "Octet + compiled SwiGLU",
    "triton_separate": "Triton + compiled SwiGLU",
    "bf16_separate": "bf16 cuBLAS + compiled SwiGLU",
}
GEMMS = ("octet", "bf16", "int_mm", "int_mm_dequant", "fake_int8", "triton", "fp8_row",
         "fp8_tensor")
SUSTAINED = ("octet", "bf16", "int_mm_dequant", "triton", "fp8_row", "fp8_tensor")
SWIGLUS = ("octet", "octet_separate", "triton_separate", "bf16_separate")
# Octet's own: these must not be left out.
OWN = ("octet", "octet_plain", "octet_separate", "quantize", "quantize_rotated")
# Whole linears, activations in bf16: (label, the times that add up to it).
LINEARS = (
    ("Octet", ("quantize", "octet")),
    ("Octet with ConvRot", ("quantize_rotated", "octet")),
    ("comfy-kitchen INT8", ("kitchen",)),
    ("comfy-kitchen INT8 with ConvRot", ("kitchen_convrot",)),
    ("FP8 row-wise, compiled quantization", ("quantize_fp8", "fp8_row")),
    ("bf16", ("bf16",)),
)
STEPS = {
    "octet": "Octet, INT8",
    "octet_int8": "Octet, INT8, attention's scores too",
    "kitchen": "comfy-kitchen INT8 linears",
    "kitchen_convrot": "comfy-kitchen INT8 linears with ConvRot",
    "fp8_row": "FP8 row-wise linears",
    "fp8_tensor": "FP8 tensor-wise linears",
    "bf16": "bf16 linears",
}
PLOTTED_M = 4096


def tops(case: dict, name: str) -> float:
    return 2 * case["m"] * case["n"] * case["k"] / case["us"][name] * 1e-6


def cases_of(report: dict, section: str) -> list:
    return [case for case in report["cases"] if case["section"] == section]


def ratios(pairs) -> tuple:
    """(geometric mean, least, most, count) of theirs / ours."""
    values = [theirs / ours for theirs, ours in pairs]
    return (math.exp(sum(map(math.log, values)) / len(values)), min(values), max(values),
            len(values))


def geometric_means(cases: list) -> dict:
    """{peer: ratios() of its time to that of Octet's GEMM}"""
    return {name: ratios((case["us"][name], case["us"][OURS])
                         for case in cases if name in case["us"])
            for name in GEMMS if name != OURS and any(name in case["us"] for case in cases)}


def linear_us(case: dict, parts) -> float | None:
    """Of a whole linear; None if a part of it did not run."""
    return sum(case["us"][part] for part in parts) if all(
        part in case["us"] for part in parts) else None


def linear_means(cases: list) -> dict:
    """Like geometric_means(), for whole linears: with ConvRot against Octet's with ConvRot."""
    means = {}
    for label, parts in LINEARS[2:]:
        ours = LINEARS[1 if label.endswith("ConvRot") else 0][1]
        pairs = [(linear_us(case, parts), linear_us(case, ours)) for case in cases]
        pairs = [pair for pair in pairs if None not in pair]
        if pairs:
            means[label] = ratios(pairs)
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


def ratio_table(means: dict) -> str:
    return table(["peer", "takes, geometric mean", "least", "most", "shapes"],
                 [[name, f"{mean:.2f}x", f"{least:.2f}x", f"{most:.2f}x", count]
                  for name, (mean, least, most, count) in means.items()], 1)


def linear_table(cases: list) -> str:
    shown = [(label, parts) for label, parts in LINEARS
             if any(linear_us(case, parts) for case in cases)]
    rows = []
    for case in cases:
        times = [linear_us(case, parts) for _, parts in shown]
        rows.append([case["m"], case["name"], in_us(case, "quantize"),
                     *("-" if us is None else f"{us:.0f}" for us in times)])
    means = linear_means(cases)
    text = table(["m", "n x k", "Octet's quantization", *(label for label, _ in shown)], rows, 2)
    return text + ("\n\nTheir time divided by that of Octet's linear (of the one with ConvRot, for "
                   "theirs with ConvRot):\n\n" + ratio_table(means) if means else "")


def swiglu_table(cases: list) -> str:
    text = by_contestant(cases, SWIGLUS, in_us)
    costs = [f"{case['us'][OURS] / case['us']['octet_plain'] - 1:+.1%} at m = {case['m']}"
             for case in cases if "octet_plain" in case["us"]]
    if costs:
        text += ("\n\nOctet's kernel with the SwiGLU against the same product without it, "
                 f"interleaved: {', '.join(costs)}.")
    return text


def step_table(step: dict) -> str:
    ours = sum(step["ms"].get(OURS, {}).values())
    drawn = step.get("power", {})
    rows = []
    for path in (path for path in STEPS if path in step["ms"]):
        ms = step["ms"][path]
        total = sum(ms.values())
        watts, mhz = (drawn.get(path, {}).get(name) for name in ("mean_w", "mean_mhz"))
        off = step["off"].get(path)
        rows.append([STEPS[path], f"{ms['conditional']:.1f}", f"{ms['unconditional']:.1f}",
                     f"{total:.1f}", f"{total / ours:.2f}x" if ours else "-",
                     f"{watts:.0f}" if watts else "-", f"{mhz:.0f}" if mhz else "-",
                     f"{watts * total * 1e-3:.1f}" if watts else "-",
                     "-" if off is None else f"{off:.3f}"])
    text = table(["path", "conditional ms", "unconditional ms", "step ms", "takes", "W", "MHz",
                  "J per step", "from bf16's velocity"], rows, 1)
    passes = step.get("passes", 1)
    twice = (f"; the means of {passes} such runs, every other in the opposite order of paths"
             if passes > 1 else "")
    text += (f"\n\n{step['size']} x {step['size']} pixels, {step['text_tokens']} text tokens, "
             f"{step['layers']} layers, medians of {step['steps']} steps without pause, each path "
             f"alone on the GPU{twice}. Octet: row-wise INT8, no rotation.")
    if not step.get("attention"):
        return text
    return text + (" All others: plain PyTorch, q, k and v in one product, no mask, attention "
                   f"{step['attention']}, blocks compiled (bench/torch_dit.py). The last column: "
                   "how far the quantized model is from the one in bf16, of the same random "
                   "weights.")


def how_chosen(report: dict) -> str:
    """Says how much each contestant was tuned."""
    counts = {case.get("notes", {}).get("triton_configs") for case in report["cases"]} - {None}
    searched = f" over {min(counts)}" if counts else ""
    searched += f" to {max(counts)}" if len(counts) > 1 else ""
    tune = report.get("tune", "missing")
    ours = "by its rules, nothing measured" if tune == "off" else "by its tuner"
    kitchens = {case.get("notes", {}).get("kitchen") for case in report["cases"]} - {None}
    return (f"How each kernel was chosen. Octet: {ours} (`--tune {tune}`); Triton: by a "
            f"search{searched} configs for each shape; cuBLAS and FP8: by the library's own "
            "heuristic" + "".join(f"; comfy-kitchen {kitchen}" for kitchen in kitchens) + ".")


def failed(report: dict) -> list:
    return [f"- {case['section']}, m={case['m']} {case['name']}: {case['reason']}"
            for case in report.get("failed", [])]


def left_out(report: dict) -> list:
    """One line per contestant and reason, however many shapes it was left out of."""
    shapes, ran = {}, set()
    for case in report["cases"]:
        ran |= set(case["us"])
        for name, reason in case["left_out"].items():
            shapes.setdefault((name, reason), []).append(f"m={case['m']} {case['name']}")
    lines = []
    for (name, reason), where in shapes.items():
        everywhere = name not in ran and len(where) > 1
        lines.append(f"- {LABELS.get(name, name)}, "
                     f"{'everywhere' if everywhere else ', '.join(where)}: {reason}")
    return lines + [f"- {STEPS.get(path, path)}, the step: {reason}"
                    for path, reason in report.get("step", {}).get("left_out", {}).items()]


UNDER_LOAD = ("Two passes over the contestants, the second backwards, averaged; in each, every one "
              "runs alone for a while before being timed, at the clock that the power limit "
              "leaves.")


def markdown(report: dict) -> str:
    parts = [
        f"# INT8 linears on an {report['device'].split(',')[0]}",
        f"{report['device']}, driver {report['driver']}; {report['date']}; commit "
        f"{report['commit']}; torch {report['torch']}, Triton {report['triton']}, CUDA "
        f"{report['cuda']}; `{report['command']}`.",
        f"Medians of {report['rounds']} rounds, interleaved in one process, on the same "
        "operands (normal, quantized by the row's maximum), caches flushed before each call, "
        "except where a heading says otherwise. GEMM alone, operands quantized already (fake INT8 "
        "quantizes the activations within its time); bold is the fastest, int32 outputs and FP8 "
        "counted in.",
    ]
    if report.get("step", {}).get("ms"):
        parts += ["### One denoising step", step_table(report["step"])]
    sections = (
        ("linear", "Linears, TOPS",
         lambda cases: by_contestant(cases, GEMMS, in_tops) + "\n\n" + how_chosen(report)),
        ("linear", "How many times as long as Octet's GEMM",
         lambda cases: ratio_table({LABELS[name]: ratio
                                    for name, ratio in geometric_means(cases).items()})),
        ("linear", "The whole linear, quantization of the activations included, us", linear_table),
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
    for title, lines in (("Failed", failed(report)), ("Left out", left_out(report))):
        if lines:
            parts += [f"{title}:", "\n".join(lines)]
    return "\n\n".join(parts) + "\n"


# --- plots ---------------------------------------------------------------------------------------


def write_plots(report: dict, folder: Path) -> list:
    """The paths of the plots that could be made of this report."""
    written = []
    about = f"{report['device'].split(',')[0]}, {report['date'][:10]}, commit {report['commit']}"

    def write(name, *arguments, **options):
        write_whole(folder / name, bar_chart(*arguments, **options))
        written.append(folder / name)

    linears = cases_of(report, "linear")
    plotted = [case for case in linears if case["m"] == PLOTTED_M]
    if plotted:
        groups = [(f"m={case['m']} {case['name']}",
                   [(LABELS[name], tops(case, name), name == OURS)
                    for name in GEMMS if name in case["us"]]) for case in plotted]
        write("gpu_tops.svg", "Speed of one linear's GEMM",
              f"Tera-operations per second; operands quantized already. {about}", groups, "TOPS",
              "higher", digits=0, one_scale=True)
    means = geometric_means(linears)
    if means:
        bars = [(LABELS[OURS], 1.0, True)]
        # A peer that lacks shapes has another mean than the heading's, and says so.
        bars += [(LABELS[name] + ("" if count == len(linears) else f", {count} of them"), mean,
                  False) for name, (mean, _, _, count) in means.items()]
        all_ran = all(count == len(linears) for *_, count in means.values())
        shapes = f"{len(linears)} shapes" + ("" if all_ran else " where not said otherwise")
        write("gpu_ratios.svg", "Time of one linear's GEMM, Octet = 1",
              f"Operands quantized already. {about}", [(f"Geometric mean over {shapes}", bars)],
              "x", "lower", digits=2)
    step = report.get("step", {})
    if OURS in step.get("ms", {}):
        bars = [(STEPS[path], sum(step["ms"][path].values()), path.startswith(OURS))
                for path in STEPS if path in step["ms"]]
        write("gpu_step.svg", "Time of one denoising step",
              f"Both networks, random weights; all but Octet: compiled PyTorch. {about}",
              [(f"{step['size']} x {step['size']} pixels, {step['text_tokens']} text tokens",
                bars)], "ms", "lower")
    return written
