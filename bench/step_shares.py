#!/usr/bin/env python3
"""Draws where the time of a denoising step goes, from the JSON that `octet bench step` writes.

    octet bench step --size 1024 --json step_1024.json
    octet bench step --size 1024 --attention int8 --json step_1024_int8.json
    octet bench step --size 2048 --steps 5 --json step_2048.json
    bench/step_shares.py step_1024.json step_1024_int8.json step_2048.json [--svg F] [--markdown F]

One bar for each file, in their order; a table of the same figures, with speeds and their share of
the ceilings, on standard output.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from bars import stacked_chart
from peers_report import table
from whole_files import write_whole

ROOT = Path(__file__).resolve().parents[1]
SCHEMA = "octet.bench.step/1"
# In this order, from the left; the rest is one part.
NAMES = {"gemm": "INT8 GEMMs", "attention": "attention", "residual": "residual, norm, quantize",
         "rotary": "norm and rotation of heads", "quantize": "quantize", "norm": "norm",
         "matmul": "unquantized linears"}
REST = "other"


def ops_of(bench: dict) -> dict:
    """{op: the sum of its entries in both passes} of a step."""
    sums = {}
    for branch in bench["branches"]:
        for op in branch["ops"]:
            entry = sums.setdefault(op["op"], {"ms": 0.0, "operations": 0.0, "bytes": 0.0,
                                               "ideal_ms": 0.0, "has_ceiling": True})
            entry["ms"] += op["ms"]
            entry["operations"] += op["operations"] or 0
            entry["bytes"] += op["bytes"] or 0
            entry["ideal_ms"] += (op["ceiling_share"] or 0) * op["ms"]
            entry["has_ceiling"] &= op["ceiling_share"] is not None
    return sums


def shares(bench: dict) -> list:
    """[(part, share)] of a step, in the order of NAMES."""
    ops = ops_of(bench)
    whole = sum(op["ms"] for op in ops.values())
    parts = [(name, ops[op]["ms"] / whole) for op, name in NAMES.items() if op in ops]
    rest = sum(op["ms"] for name, op in ops.items() if name not in NAMES) / whole
    return parts + ([(REST, rest)] if rest > 0 else [])


def label(bench: dict) -> str:
    ways = {"int8": "INT8 scores", "int8-full": "INT8 attention"}
    scores = ways.get(bench["attention"], f"{bench['dtype']} attention")
    return f"{bench['width']} x {bench['height']}, {scores}"


def about(benches: list) -> str:
    first = benches[0]
    commits = ", ".join(dict.fromkeys(bench["commit"] for bench in benches))
    return (f"Both networks, {first['text_tokens']} text tokens, random weights. "
            f"{first['device'].split(',')[0]}, {first['date'][:10]}, commit {commits}")


def chart(benches: list) -> str:
    return stacked_chart("Where the time of a denoising step goes", about(benches),
                         [(label(bench), bench["step_ms"], shares(bench)) for bench in benches],
                         "ms")


def markdown(bench: dict) -> str:
    ceilings, power = bench["ceilings"], bench["power"] or {}

    def number(value, digits=0):
        return f"{value:.{digits}f}" if value else "-"

    rows = []
    whole = sum(op["ms"] for op in ops_of(bench).values())
    for name, op in sorted(ops_of(bench).items(), key=lambda item: -item[1]["ms"]):
        seconds = op["ms"] * 1e-3
        share = op["ideal_ms"] / op["ms"] if op["ms"] and op["has_ceiling"] else 0
        rows.append([name, f"{op['ms'] / whole:.1%}", number(op["ms"], 2),
                     number(op["operations"] / seconds * 1e-12) if seconds else "-",
                     number(op["bytes"] / seconds * 1e-9) if seconds else "-",
                     f"{share:.0%}" if share else "-"])
    text = [f"**{label(bench)}**: {bench['step_ms']:.1f} ms, "
            f"{bench['launches'] or 'no'} recorded launches in a step",
            table(["op", "share", "ms", "TOPS", "GB/s", "of ceiling"], rows, 1),
            f"Ceilings: INT8 {number(ceilings['int8_tops'])} TOPS, bf16 "
            f"{number(ceilings['bf16_tops'])} TOPS, copying {number(ceilings['copy_gb_per_s'])} "
            "GB/s."]
    if power:
        text[-1] += (f" {number(power['mean_w'])} W of {number(power['limit_w'])}, "
                     f"{number(power['mean_mhz'])} MHz, up to {number(power['max_celsius'])} C; "
                     f"at the power limit {power['power_capped']:.0%} of the time.")
    return "\n\n".join(text) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], allow_abbrev=False)
    parser.add_argument("files", type=Path, nargs="+", metavar="JSON")
    parser.add_argument("--svg", type=Path, nargs="?", const=ROOT / "docs" / "gpu_step_ops.svg",
                        help="draw there (default: docs/gpu_step_ops.svg)")
    parser.add_argument("--markdown", type=Path, help="write the tables there too")
    arguments = parser.parse_args()
    try:
        benches = []
        for path in arguments.files:
            benches.append(json.loads(path.read_text(encoding="utf-8")))
            if benches[-1].get("schema") != SCHEMA:
                raise ValueError(f"{path}: is not a result of octet bench step, expected {SCHEMA}")
        text = "\n".join(markdown(bench) for bench in benches)
        if arguments.markdown:
            write_whole(arguments.markdown, text)
        if arguments.svg:
            write_whole(arguments.svg, chart(benches))
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        print(f"step_shares: {error}", file=sys.stderr)
        return 1
    print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
