"""The curves of all stages as SVG.  python plot_curves.py OUT.svg vae_curve.json curve.json ..."""

import json
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "fidelity"))
from plots import line_chart  # noqa: E402

POINTS = 50


def thinned(values):
    """Means of equal parts of the curve."""
    if len(values) <= POINTS:
        return values
    edges = [round(i * len(values) / POINTS) for i in range(POINTS + 1)]
    return [sum(values[a:b]) / (b - a) for a, b in zip(edges, edges[1:])]


def main():
    out, *paths = map(Path, sys.argv[1:])
    lines = {}
    for path in paths:
        curve = json.loads(path.read_text())
        column = curve["columns"].index("error" if "error" in curve["columns"] else "loss")
        values = [row[column] for row in curve["rows"]]
        seconds = sum(piece["seconds"] for piece in curve.get("pieces", [])) or curve["rows"][-1][1]
        steps = sum(piece["steps"] for piece in curve.get("pieces", [])) or curve["rows"][-1][0]
        name = path.parent.name if path.parent.name else path.stem
        lines[f"{name}: {steps} steps, {seconds:.0f} s"] = thinned(values)
    out.write_text(
        line_chart(
            "Training the small model",
            "each stage from its beginning to its end",
            f"time, in {POINTS} parts",
            "mean squared error of the velocity; for the VAE its loss",
            lines,
        )
    )


if __name__ == "__main__":
    main()
