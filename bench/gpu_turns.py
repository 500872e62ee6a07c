"""Timing on a GPU: interleaved, with cold caches, by the GPU's own clock."""

from __future__ import annotations

import statistics
import time


class Turns:
    """All work and all timing is on one stream, never torch's default one: Octet uses the same
    stream, and cannot use the default one."""

    # Rewritten before each timed call. Several times the L2 of any GPU so far; and writing it
    # that often takes longer than Python needs to launch the timed work, even a handful of
    # compiled passes, so that the launch is not part of the time.
    FLUSH_BYTES, FLUSHES = 512 << 20, 2

    def __init__(self, torch, stream):
        self._torch = torch
        self._stream = stream
        self._flush = torch.empty(self.FLUSH_BYTES // 4, dtype=torch.int32,
                                  device=stream.device)
        self._flush_us = None

    def _event(self):
        event = self._torch.cuda.Event(enable_timing=True)
        event.record(self._stream)
        return event

    def _flush_caches(self):
        for _ in range(self.FLUSHES):
            self._flush.zero_()

    def _time_round(self, names, works):
        """{name: (microseconds on the GPU, microseconds of the host to launch it)}"""
        spans = {}
        for name in names:
            self._flush_caches()
            begin = self._event()
            host = time.perf_counter()
            works[name]()
            host = (time.perf_counter() - host) * 1e6
            spans[name] = (begin, self._event(), host)
        self._stream.synchronize()
        return {name: (begin.elapsed_time(end) * 1e3, host)
                for name, (begin, end, host) in spans.items()}

    def flush_us(self) -> float:
        if self._flush_us is None:
            self._flush_us = self.medians({"flush": self._flush_caches}, rounds=5)["flush"]
        return self._flush_us

    def medians(self, works: dict, rounds: int) -> dict:
        """{name: microseconds}: one round warms up, then `rounds` rounds, every other backwards."""
        return self.medians_and_launches(works, rounds)[0]

    def medians_and_launches(self, works: dict, rounds: int):
        names = list(works)
        self._time_round(names, works)
        times = {name: [] for name in names}
        launches = {name: [] for name in names}
        for number in range(rounds):
            order = names if number % 2 == 0 else names[::-1]
            for name, (us, host) in self._time_round(order, works).items():
                times[name].append(us)
                launches[name].append(host)
        return ({name: statistics.median(values) for name, values in times.items()},
                {name: statistics.median(values) for name, values in launches.items()})

    def sustained(self, works: dict, seconds: float) -> dict:
        """{name: microseconds}: each alone for this long, call after call and without a flush,
        timed in the second half: by then the GPU has lowered its clock to what its power limit
        allows. The mean of two passes, the second backwards: the first has the coolest GPU."""
        calls = {name: max(10, int(seconds * 1e6 / 2 / self.medians({name: work}, rounds=3)[name]))
                 for name, work in works.items()}
        means = {name: [] for name in works}
        names = list(works)
        for order in (names, names[::-1]):
            for name in order:
                means[name].append(self._mean_of_calls(works[name], calls[name]))
        return {name: statistics.mean(values) for name, values in means.items()}

    def _mean_of_calls(self, work, calls: int) -> float:
        for _ in range(calls):
            work()
        begin = self._event()
        for _ in range(calls):
            work()
        end = self._event()
        self._stream.synchronize()
        return begin.elapsed_time(end) * 1e3 / calls
