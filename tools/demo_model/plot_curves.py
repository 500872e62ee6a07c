"""The curves of the networks' stages as SVG.

python plot_curves.py OUT.svg curves/conditional.json curves/unconditional.json
"""

import json
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "fidelity"))
from plots import line_chart  # noqa: E402

PART = 30  # seconds
HIGHEST = 0.6  # the first steps, above it, would hide the rest
SPELLING = 4  # the column


def in_one_time(curve):
    """(seconds since the stage began, row), though every piece has a clock of its own."""
    before, last = 0.0, 0.0
    for row in curve["rows"]:
        if row[1] < last:
            before += last
        last = row[1]
        yield before + last, row


def by_parts(timed):
    """Means of all values that fall into each part; None where there is none."""
    parts = {}
    for seconds, value in timed:
        parts.setdefault(int(seconds / PART), []).append(value)
    means = [sum(parts[i]) / len(parts[i]) if i in parts else None for i in range(max(parts) + 1)]
    return [None if mean is None or mean > HIGHEST else mean for mean in means]


def main():
    out, *paths = map(Path, sys.argv[1:])
    lines = {}
    for path in paths:
        curve = json.loads(path.read_text())
        timed = list(in_one_time(curve))
        lines[f"{path.stem}: velocity"] = by_parts([(at, row[2]) for at, row in timed])
        spelling = [(at, row[SPELLING]) for at, row in timed if len(row) > SPELLING]
        if any(value for _, value in spelling):
            lines[f"{path.stem}: letters"] = by_parts(spelling)
    out.write_text(
        line_chart(
            "Training the small model on one H200",
            "squared error of the velocity; cross entropy of the letters that the side task names",
            f"parts of {PART} s",
            "error",
            lines,
        )
    )


if __name__ == "__main__":
    main()
