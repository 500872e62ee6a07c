"""Horizontal bars as SVG, without a plotting library: light and dark pages alike."""

from __future__ import annotations

from html import escape

ROW, LABEL, BAR, NUMBER = 22, 430, 420, 110


def bar_chart(title: str, groups: list, unit: str) -> str:
    """groups: (heading, [(label, value, ours)]); each group is scaled to its largest value."""
    lines, y = [], 34
    for heading, bars in groups:
        lines.append(f'<text x="10" y="{y + 15}" font-weight="bold">{escape(heading)}</text>')
        y += ROW
        longest = max(value for _, value, _ in bars)
        for label, value, ours in bars:
            width = max(2.0, value / longest * BAR)
            colour = "#d9480f" if ours else "#868e96"
            lines.append(f'<text x="{LABEL - 8}" y="{y + 15}" text-anchor="end">'
                         f'{escape(label)}</text>')
            lines.append(f'<rect x="{LABEL}" y="{y + 3}" width="{width:.1f}" height="{ROW - 6}" '
                         f'rx="2" fill="{colour}"/>')
            lines.append(f'<text x="{LABEL + width + 6:.1f}" y="{y + 15}">'
                         f'{value:.1f} {unit}</text>')
            y += ROW
        y += 10
    width = LABEL + BAR + NUMBER
    return "\n".join(
        [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{y}" '
         f'viewBox="0 0 {width} {y}" font-family="sans-serif" font-size="13" fill="#5c677d">',
         f'<text x="10" y="20" font-size="15" font-weight="bold">{escape(title)}</text>',
         *lines, "</svg>", ""])
