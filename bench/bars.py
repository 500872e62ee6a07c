"""Horizontal bars as SVG, without a plotting library: light and dark pages alike."""

from __future__ import annotations

from html import escape

ROW, LABEL, BAR, NUMBER = 22, 430, 420, 110


def bar_chart(title: str, groups: list, unit: str, digits: int = 1,
              one_scale: bool = False) -> str:
    """groups: (heading, [(label, value, ours)]). The longest bar is the largest value of its group,
    or of all groups with one_scale."""
    largest = max(value for _, bars in groups for _, value, _ in bars)
    lines, y = [], 34
    for heading, bars in groups:
        lines.append(f'<text x="10" y="{y + 15}" font-weight="bold">{escape(heading)}</text>')
        y += ROW
        longest = largest if one_scale else max(value for _, value, _ in bars)
        for label, value, ours in bars:
            width = max(2.0, value / longest * BAR)
            colour = "#d9480f" if ours else "#868e96"
            lines.append(f'<text x="{LABEL - 8}" y="{y + 15}" text-anchor="end">'
                         f'{escape(label)}</text>')
            lines.append(f'<rect x="{LABEL}" y="{y + 3}" width="{width:.1f}" height="{ROW - 6}" '
                         f'rx="2" fill="{colour}"/>')
            lines.append(f'<text x="{LABEL + width + 6:.1f}" y="{y + 15}">'
                         f'{value:.{digits}f} {unit}</text>')
            y += ROW
        y += 10
    width = LABEL + BAR + NUMBER
    return "\n".join(
        [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{y}" '
         f'viewBox="0 0 {width} {y}" font-family="sans-serif" font-size="13" fill="#5c677d">',
         f'<text x="10" y="20" font-size="15" font-weight="bold">{escape(title)}</text>',
         *lines, "</svg>", ""])
