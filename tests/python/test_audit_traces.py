"""octet audit on traces of real programs: tests/traces and what it is held against."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from running import octet  # noqa: F401: a fixture

TRACES = Path(__file__).parents[1] / "traces"
ENTRIES = [entry for name in ("expected.json", "held_out.json", "examined.json", "named.json",
                             "libraries.json")
           for entry in json.loads((TRACES / name).read_text())]
# Names that say that a kernel multiplies.
MULTIPLIES = re.compile(r"gemm|nvjet|_mm_|matmul|cutlass_\d+_", re.I)


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry["file"])
def test_verdict(octet, entry):
    done = octet("audit", TRACES / entry["file"], "--json", "-")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    allowed = [entry["verdict"], *entry.get("may_be", [])]
    assert report["verdict"] in allowed, report["headline"]
    # Without shapes some linears of a mix are unclear.
    told = ".plain." not in entry["file"] or entry["verdict"] != "fallback"
    if report["verdict"] == entry["verdict"] and told:
        for count, key in (("linears", "calls"), ("native", "native"), ("fake", "fake")):
            if count in entry:
                assert report["linears"][key] == entry[count], count
    # All time of products has a class that says so, with a type.
    untyped = [row["name"] for row in report["kernels"]
               if MULTIPLIES.search(row["name"]) and row["class"] in ("gemm", "unknown")]
    assert untyped == entry.get("untyped", [])
    assert sum(row["us"] for row in report["classes"]) == pytest.approx(report["total_us"])


def test_every_recording_is_expected():
    for folders, name in ((("cpu", "cuda"), "expected.json"), (("examined",), "examined.json"),
                          (("named",), "named.json"), (("libraries",), "libraries.json")):
        files = {str(path.relative_to(TRACES)) for folder in folders
                 for path in (TRACES / folder).iterdir()}
        assert files == {entry["file"] for entry in json.loads((TRACES / name).read_text())}
