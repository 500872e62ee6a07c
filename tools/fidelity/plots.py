"""Lines and boxes as SVG, in the look of bench/bars.py."""

from __future__ import annotations

import math
from html import escape

import neighbours  # noqa: F401
from bars import BAR, LABEL, NUMBER, ROW, STYLE

WIDTH = LABEL + BAR + NUMBER
LEFT, RIGHT, TOP, HEIGHT = 60, 640, 88, 320  # of the field that lines are drawn in
# Readable on white and on black.
COLOURS = (
    "#d9480f",
    "#1c7ed6",
    "#2f9e44",
    "#9c36b5",
    "#e8a200",
    "#0c8599",
    "#e64980",
    "#868e96",
    "#74b816",
    "#7048e8",
)
GRID = "<style>.grid { stroke: #8c959f; stroke-opacity: 0.35; }</style>"


def _page(title: str, about: str, height: float, lines: list[str]) -> str:
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height:.0f}" '
            f'viewBox="0 0 {WIDTH} {height:.0f}">',
            STYLE,
            GRID,
            f'<rect class="page" width="{WIDTH}" height="{height:.0f}" rx="6"/>',
            f'<text class="title" x="10" y="24">{escape(title)}</text>',
            f'<text class="note" x="10" y="45">{escape(about)}</text>',
            *lines,
            "</svg>",
            "",
        ]
    )


def ticks(low: float, high: float, most: int = 7) -> list[float]:
    """Round numbers from below `low` to above `high`."""
    rough = max(high - low, 1e-9) / most
    power = 10 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough)
    first, last = math.floor(low / step), math.ceil(high / step)
    return [round(i * step, 10) for i in range(first, max(last, first + 1) + 1)]


def line_chart(title: str, about: str, x_label: str, y_label: str, lines: dict) -> str:
    """lines: {label: values at 1, 2, ...}; a None is a gap."""
    known = [value for values in lines.values() for value in values if value is not None]
    levels = ticks(min(known), max(known))
    count = max(len(values) for values in lines.values())

    def x(step: int) -> float:
        return LEFT + (RIGHT - LEFT) * (step - 1) / max(1, count - 1)

    def y(value: float) -> float:
        return TOP + HEIGHT * (levels[-1] - value) / (levels[-1] - levels[0])

    parts = []
    for level in levels:
        parts.append(
            f'<line class="grid" x1="{LEFT}" x2="{RIGHT}" y1="{y(level):.1f}" y2="{y(level):.1f}"/>'
            f'<text x="{LEFT - 8}" y="{y(level) + 4:.1f}" text-anchor="end">{level:g}</text>'
        )
    for step in sorted({1, count, *range(5, count, 5)}):
        parts.append(
            f'<text x="{x(step):.1f}" y="{TOP + HEIGHT + 20}" text-anchor="middle">{step}</text>'
        )
    parts.append(f'<text class="note" x="10" y="{TOP - 16}">{escape(y_label)}</text>')
    parts.append(
        f'<text class="note" x="{(LEFT + RIGHT) / 2}" y="{TOP + HEIGHT + 40}" '
        f'text-anchor="middle">{escape(x_label)}</text>'
    )
    for i, (label, values) in enumerate(lines.items()):
        colour, key = COLOURS[i % len(COLOURS)], TOP + 14 + i * ROW
        points = [(x(step), y(v)) for step, v in enumerate(values, 1) if v is not None]
        path = " ".join(f"{px:.1f},{py:.1f}" for px, py in points)
        parts.append(
            f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>'
            f'<line x1="{RIGHT + 20}" x2="{RIGHT + 44}" y1="{key}" y2="{key}" stroke="{colour}" '
            f'stroke-width="3"/><text x="{RIGHT + 52}" y="{key + 4}">{escape(label)}</text>'
        )
    return _page(title, about, TOP + HEIGHT + 54, parts)


def box_chart(title: str, about: str, rows: dict, unit: str) -> str:
    """rows: {label: (5th, 25th, 50th, 75th, 95th percentile)}"""
    levels = ticks(min(row[0] for row in rows.values()), max(row[4] for row in rows.values()))
    top, bottom = 62, 62 + ROW * len(rows)

    def x(value: float) -> float:
        return LABEL + BAR * (value - levels[0]) / (levels[-1] - levels[0])

    parts = []
    for level in levels:
        parts.append(
            f'<line class="grid" x1="{x(level):.1f}" x2="{x(level):.1f}" y1="{top}" y2="{bottom}"/>'
            f'<text x="{x(level):.1f}" y="{bottom + 18}" text-anchor="middle">{level:g}</text>'
        )
    for i, (label, (low, first, middle, third, high)) in enumerate(rows.items()):
        y, colour = top + ROW * i, COLOURS[i % len(COLOURS)]
        parts.append(
            f'<text x="{LABEL - 8}" y="{y + 15}" text-anchor="end">{escape(label)}</text>'
            f'<line x1="{x(low):.1f}" x2="{x(high):.1f}" y1="{y + 11}" y2="{y + 11}" '
            f'stroke="{colour}" stroke-width="2"/>'
            f'<rect x="{x(first):.1f}" y="{y + 4}" width="{max(1, x(third) - x(first)):.1f}" '
            f'height="{ROW - 8}" fill="{colour}" rx="2"/>'
            f'<rect class="page" x="{x(middle) - 1:.1f}" y="{y + 4}" width="2" '
            f'height="{ROW - 8}"/>'
            f'<text x="{LABEL + BAR + 10}" y="{y + 15}">{middle:.1f} {escape(unit)}</text>'
        )
    return _page(title, about, bottom + 30, parts)
