"""What ran in INT8 in this process, what did not, and why.

Ops call `note_run()` and `note_fallback()`; `octet.report()` shows the counts, and within
`octet.require_int8()` a fallback is an error. Counts are kept without a lock: threads that run the
same kernel at the same moment may lose one, never more than that.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from octet.errors import OctetError

_runs: dict[tuple[str, int, int], Run] = {}
_fallbacks: dict[tuple[str, str], Fallback] = {}
_required = 0
_lock = threading.Lock()


@dataclass(slots=True)
class Run:
    """Linears of one size that ran on one kernel."""

    kernel: str
    n: int
    k: int
    m: int = 0  # of the last one
    count: int = 0


@dataclass(slots=True)
class Fallback:
    """What did not run in native INT8, and why."""

    what: str
    reason: str
    count: int = 0


@dataclass(slots=True)
class Row:
    """A linear of a model."""

    name: str
    n: int
    k: int
    path: str  # "int8" or "float"
    recipe: str = ""
    device: str = ""
    kernel: str = ""  # the one that ran last; empty before the first call
    m: int = 0  # rows of activations of that call
    note: str = ""  # why it is in floating point, or that it shares a product with others
    fallback: bool = False  # it should be INT8 but is not


def run_of(kernel: str, n: int, k: int) -> Run:
    """The counter of a kernel at a size; frequent callers keep it."""
    key = (kernel, n, k)
    run = _runs.get(key)
    if run is None:
        run = _runs.setdefault(key, Run(kernel, n, k))
    return run


def note_run(kernel: str, m: int, n: int, k: int) -> None:
    """A linear [m, k] x [n, k] ran in native INT8."""
    run = run_of(kernel, n, k)
    run.m = m
    run.count += 1


def note_fallback(what: str, reason: str) -> None:
    """`what` did not run in native INT8; raises within `require_int8()`."""
    fallback = _fallbacks.setdefault((what, reason), Fallback(what, reason))
    fallback.count += 1
    if _required:
        raise OctetError(
            f"{what} did not run in native INT8, which octet.require_int8() demands: {reason}"
        )


@contextmanager
def fallbacks_raise() -> Iterator[None]:
    """Within it, in all threads; see octet.require_int8()."""
    global _required
    with _lock:
        _required += 1
    try:
        yield
    finally:
        with _lock:
            _required -= 1


@dataclass(slots=True)
class Report:
    """The linears of a model, or what ran in this process; `str()` gives a table."""

    rows: list[Row] = field(default_factory=list)
    runs: list[Run] = field(default_factory=list)
    fallbacks: list[Fallback] = field(default_factory=list)

    @property
    def native(self) -> int:
        """Linears of the model in INT8; without a model, linears that ran so."""
        if self.rows:
            return sum(row.path == "int8" for row in self.rows)
        return sum(run.count for run in self.runs)

    @property
    def kept(self) -> int:
        """Linears of the model that are meant to be in floating point."""
        return sum(row.path == "float" and not row.fallback for row in self.rows)

    @property
    def fallback(self) -> int:
        """Linears of the model that should be INT8 and are not; without one, calls."""
        if self.rows:
            return sum(row.fallback for row in self.rows)
        return sum(fallback.count for fallback in self.fallbacks)

    def __str__(self) -> str:
        if self.rows:
            lines = table(
                ("linear", "n x k", "path", "recipe", "device", "m", "kernel", ""),
                [
                    (
                        *(row.name, f"{row.n} x {row.k}", row.path, row.recipe, row.device),
                        *(str(row.m) if row.m else "", row.kernel, row.note),
                    )
                    for row in self.rows
                ],
            )
            counts = f"{self.native} in INT8, {self.kept} kept in floating point"
            return "\n".join([*lines, f"{counts}, {self.fallback} fallbacks"])
        lines = table(
            ("kernel", "n x k", "last m", "calls"),
            [(run.kernel, f"{run.n} x {run.k}", str(run.m), str(run.count)) for run in self.runs],
        )
        lines += [f"fallback, {f.count} times: {f.what}: {f.reason}" for f in self.fallbacks]
        return "\n".join([*lines, f"{self.native} calls in INT8, {self.fallback} fallbacks"])


def table(
    head: tuple[str, ...], rows: list[tuple[str, ...]], right: tuple[int, ...] = ()
) -> list[str]:
    """Lines of columns as wide as their widest cell; those in `right` are right-aligned."""
    widths = [max(map(len, column)) for column in zip(head, *rows)]

    def line(row: tuple[str, ...]) -> str:
        cells = (
            text.rjust(width) if place in right else text.ljust(width)
            for place, (text, width) in enumerate(zip(row, widths))
        )
        return "  ".join(cells).rstrip()

    return [line(row) for row in (head, *rows)]


def report_of_process() -> Report:
    runs = sorted(_runs.values(), key=lambda run: (run.n * run.k, run.kernel), reverse=True)
    return Report(runs=runs, fallbacks=list(_fallbacks.values()))
