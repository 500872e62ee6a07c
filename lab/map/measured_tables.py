#!/usr/bin/env python3
"""Prints the tables of docs/deployment-map.md that were measured, as Markdown.

    octet map --device cuda --json map.json && lab/map/measured_tables.py map.json
"""

import json
import sys

NAMES = {"int8": "INT8", "bf16": "bf16", "fp8": "FP8", "nf4": "NF4", "fake": "fake INT8"}


def number(value: float) -> str:
    return f"{value:.1f}" if value < 100 else f"{value:.0f}"


def print_linears(rows: list) -> None:
    print("| linear, n x k | rows | " + " | ".join(NAMES.values()) + " | INT8 kernel |")
    print("|---|---:|" + "---:|" * len(NAMES) + "---|")
    for row in rows:
        cells = [f"{row['load_us'][way]:.0f} ({row['ratio'][way]:.2f}x)" for way in NAMES]
        shape = f"{row['layer'].split('.')[1]}, {row['n']} x {row['k']}"
        print(f"| {shape} | {row['m']} | {' | '.join(cells)} | `{row['kernel']}` |")


def print_steps(steps: list) -> None:
    print("| size | linears | attention | step, ms | | 20 steps, s | 48 steps, s | its linears, "
          "attention, rest, ms |")
    print("|---|---|---|---:|---|---:|---:|---:|")
    for step in steps:
        parts = "-"
        if step["measured"]:
            parts = ", ".join(number(step[f"{part}_ms"]) for part in ("linears", "attention",
                                                                      "rest"))
        print(f"| {step['pixels']} px | {NAMES[step['way']]} | {step['attention']} | "
              f"{number(step['ms'])} | {'measured' if step['measured'] else '*computed*'} | "
              f"{step['seconds']['20']:.2f} | {step['seconds']['48']:.2f} | {parts} |")


def print_memory(memory: list) -> None:
    print("| linears | networks | weights | with work, 768 / 1024 / 2048 px | smallest card |")
    print("|---|---|---:|---:|---|")
    for way, name in NAMES.items():
        for alone in (False, True):
            rows = [row for row in memory
                    if row["way"] == way and (row["networks"] != "all") == alone]
            needs = [f"{(row['weight_bytes'] + row['work_bytes']) / 1e9:.1f}" for row in rows]
            cards = [f"{row['fits_gb'][0]}" for row in rows]
            print(f"| {name} | {'one' if alone else 'both'} | "
                  f"{rows[0]['weight_bytes'] / 1e9:.1f} GB | {' / '.join(needs)} GB | "
                  f"{' / '.join(cards)} GB |")


with open(sys.argv[1], encoding="utf-8") as file:
    table = json.load(file)
print_linears(table["rows"])
print()
print_steps(table["steps"])
print()
print_memory(table["memory"])
