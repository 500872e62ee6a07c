"""What ran through the backend and what it declined, counted in bounded memory."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, NamedTuple

from octet.report import note_fallback, table

if TYPE_CHECKING:
    import torch

# Different rows that are kept of each kind; a model has a few dozen. Any further ones are counted
# together.
MOST_ROWS = 1024


class Served(NamedTuple):
    """One kind of call: the linear's shape, its input, the kernel that ran."""

    function: str
    n: int
    k: int
    m: int
    dtype: torch.dtype
    rotation: int
    input_act: str | None
    kernel: str


class Declined(NamedTuple):
    """One kind of call that went to the next backend."""

    function: str
    parameter: str
    reason: str


class Tally:
    """Counts of hashable rows; threads may add at the same time."""

    def __init__(self, most: int = MOST_ROWS):
        self._counts: dict = {}
        self._most = most
        self._others = 0
        self._lock = threading.Lock()

    def add(self, row) -> None:
        with self._lock:
            count = self._counts.get(row)
            if count is not None:
                self._counts[row] = count + 1
            elif len(self._counts) < self._most:
                self._counts[row] = 1
            else:
                self._others += 1

    def take(self, clear: bool) -> tuple[list, int]:
        """([(row, count), most frequent first], calls beyond the rows that are kept)"""
        with self._lock:
            rows = sorted(self._counts.items(), key=lambda item: -item[1])
            others = self._others
            if clear:
                self._counts, self._others = {}, 0
        return rows, others


served = Tally()
declined = Tally()


def note_declined(function: str, parameter: str, reason: str) -> None:
    """Counts a declined call; within octet.require_int8() it is an error."""
    declined.add((function, parameter, reason))
    note_fallback(f"comfy_kitchen.{function}", f"{parameter}: {reason}")


class Report(NamedTuple):
    """What `octet.comfy.report()` returns; as text, two tables."""

    state: str
    served: list[tuple[Served, int]]
    declined: list[tuple[Declined, int]]
    served_others: int
    declined_others: int

    def __str__(self) -> str:
        parts = [self.state, _served_table(self.served, self.served_others),
                 _declined_table(self.declined, self.declined_others)]
        return "\n\n".join(parts)


def take_report(state: str, clear: bool) -> Report:
    ran, ran_others = served.take(clear)
    left, left_others = declined.take(clear)
    return Report(state, [(Served(*row), count) for row, count in ran],
                  [(Declined(*row), count) for row, count in left], ran_others, left_others)


def _served_table(rows: list[tuple[Served, int]], others: int) -> str:
    if not rows:
        return "No call has run here yet."
    head = ("n x k", "m", "input", "kernel", "calls")
    by_shape = sorted(rows, key=lambda item: (-item[0].n * item[0].k, item[0].m))
    cells = [(f"{row.n} x {row.k}", str(row.m), _input_of(row), row.kernel, str(count))
             for row, count in by_shape]
    calls = sum(count for _, count in rows) + others
    lines = [f"{_calls(calls)} ran here, in native INT8:", *table(head, cells, right=(1, 4))]
    return "\n".join(lines + ([f"and {others} of further shapes"] if others else []))


def _calls(count: int) -> str:
    return f"{count} call" if count == 1 else f"{count} calls"


def _input_of(row: Served) -> str:
    words = [str(row.dtype).removeprefix("torch.")]
    if row.rotation:
        words.append(f"ConvRot {row.rotation}")
    if row.input_act not in (None, "none"):
        words.append(row.input_act)
    if row.function != "int8_linear":
        words.append(row.function.removeprefix("int8_linear_"))
    return ", ".join(words)


def _declined_table(rows: list[tuple[Declined, int]], others: int) -> str:
    if not rows:
        return "No call was declined."
    head = ("function", "parameter", "reason", "calls")
    cells = [(row.function, row.parameter, row.reason, str(count)) for row, count in rows]
    calls = sum(count for _, count in rows) + others
    lines = [f"{_calls(calls)} went to the next backend, declined here:",
             *table(head, cells, right=(3,))]
    return "\n".join(lines + ([f"and {others} for further reasons"] if others else []))
