"""Horizontal bars as SVG, without a plotting library. The background has its own colour, so that
the text is readable on any page, and follows the reader's choice of light or dark."""

from __future__ import annotations

from html import escape

ROW, LABEL, BAR, NUMBER = 22, 430, 420, 110

STYLE = """<style>
text { fill: #1f2328; font: 13px sans-serif; }
.title { font-size: 16px; font-weight: bold; }
.group { font-weight: bold; }
.note { fill: #59636e; }
.page { fill: #ffffff; }
.ours { fill: #d9480f; }
.peer { fill: #8c959f; }
@media (prefers-color-scheme: dark) {
  text { fill: #f0f6fc; }
  .note { fill: #9198a1; }
  .page { fill: #0d1117; }
  .ours { fill: #fd7e14; }
  .peer { fill: #6e7681; }
}
</style>"""


def bar_chart(title: str, about: str, groups: list, unit: str, better: str, digits: int = 1,
              one_scale: bool = False) -> str:
    """about: what a bar shows, and where and when it was measured. better: "higher" or "lower".
    groups: (heading, [(label, value, ours)]). The longest bar is the largest value of its group,
    or of all groups with one_scale."""
    largest = max(value for _, bars in groups for _, value, _ in bars)
    lines, y = [], 58
    for heading, bars in groups:
        lines.append(f'<text class="group" x="10" y="{y + 15}">{escape(heading)}</text>')
        y += ROW
        longest = largest if one_scale else max(value for _, value, _ in bars)
        for label, value, ours in bars:
            width = max(2.0, value / longest * BAR)
            lines.append(f'<text x="{LABEL - 8}" y="{y + 15}" text-anchor="end">'
                         f'{escape(label)}</text>')
            lines.append(f'<rect class="{"ours" if ours else "peer"}" x="{LABEL}" y="{y + 3}" '
                         f'width="{width:.1f}" height="{ROW - 6}" rx="2"/>')
            lines.append(f'<text x="{LABEL + width + 6:.1f}" y="{y + 15}">'
                         f'{value:.{digits}f} {unit}</text>')
            y += ROW
        y += 10
    arrow = {"higher": "higher is better \N{RIGHTWARDS ARROW}",
             "lower": "\N{LEFTWARDS ARROW} lower is better"}[better]
    return page(title, about, arrow, lines, y)


def page(title: str, about: str, corner: str, lines: list, height: float) -> str:
    width = LABEL + BAR + NUMBER
    return "\n".join(
        [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
         f'viewBox="0 0 {width} {height}">', STYLE,
         f'<rect class="page" width="{width}" height="{height}" rx="6"/>',
         f'<text class="title" x="10" y="24">{escape(title)}</text>',
         f'<text class="group" x="{width - 10}" y="24" text-anchor="end">{escape(corner)}</text>',
         f'<text class="note" x="10" y="45">{escape(about)}</text>',
         *lines, "</svg>", ""])


# Easy to tell apart for most eyes, on white and on black.
PART_COLOURS = ("#d9480f", "#1971c2", "#f08c00", "#2f9e44", "#9c36b5", "#0c8599", "#868e96",
                "#c2255c", "#846358")


def stacked_chart(title: str, about: str, bars: list, unit: str) -> str:
    """Shares of a whole. bars: (label, its whole, [(part, its share)]), all equally long; a part
    has the same colour in all of them, and shows its percentage if there is room."""
    names = list(dict.fromkeys(name for *_, parts in bars for name, _ in parts))
    colours = {name: PART_COLOURS[i % len(PART_COLOURS)] for i, name in enumerate(names)}
    left, length = 250, LABEL + BAR - 250
    lines, y = [], 58
    for label, whole, parts in bars:
        lines.append(f'<text x="{left - 8}" y="{y + 17}" text-anchor="end">{escape(label)}</text>')
        x = float(left)
        for name, share in parts:
            width = share * length
            lines.append(f'<rect fill="{colours[name]}" x="{x:.1f}" y="{y + 3}" '
                         f'width="{width:.1f}" height="{ROW}"><title>{escape(name)} '
                         f'{share:.1%}</title></rect>')
            if width >= 36:
                lines.append(f'<text style="fill: #ffffff" x="{x + width / 2:.1f}" y="{y + 18}" '
                             f'text-anchor="middle">{share:.0%}</text>')
            x += width
        lines.append(f'<text x="{left + length + 6}" y="{y + 17}">{whole:.0f} {unit}</text>')
        y += ROW + 10
    y += 6
    x = 10
    for name in names:
        width = 30 + 8 * len(name)
        if x + width > LABEL + BAR + NUMBER:
            x, y = 10, y + ROW
        lines.append(f'<rect fill="{colours[name]}" x="{x}" y="{y + 3}" width="12" height="12"/>')
        lines.append(f'<text x="{x + 18}" y="{y + 14}">{escape(name)}</text>')
        x += width
    return page(title, about, "", lines, y + ROW + 4)
