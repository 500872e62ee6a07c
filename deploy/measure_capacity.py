#!/usr/bin/env python3
"""Measures waits of real workers behind HAProxy, and holds deploy/capacity.py's against them.

    deploy/measure_capacity.py build/octet --workers 2 --load 0.8 --count 400 -- --threads 1

Requests for the small model's pictures come at random (Poisson). Three columns: what was measured;
the simulation of the same arrivals with each picture's own seconds, which tests the queues alone;
and that of the same arrivals with the mean and spread of a calibration before, as one would plan.
Fails if one of the simulated p50 (of the answer) or p95 is off by more than --within.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from capacity import quantile, simulate
from fleet_model import Job, Limits, Traffic, arrivals
from local_fleet import Fleet, ask, split_arguments, wait_until


FIGURES = ("wait_mean", "wait_p95", "answer_p50", "answer_p95", "lost")
SEEDS = 21


@dataclass
class Sample:
    sent: float  # seconds since the first
    started: float
    answered: float  # the GPU is free for the next
    lost: bool = False  # it waited too long, or too many did


def body(seed: int, steps: int) -> dict:
    return {"prompt": "a red circle", "size": "256x256", "steps": steps, "seed": seed}


def blocking(fleet: Fleet, seed: int, steps: int) -> Sample:
    sent = time.time()
    status, _, answer = ask(fleet.port, "POST", "/v1/images/generations", body(seed, steps))
    answered = time.time()
    if status in (429, 503):
        return Sample(sent, answered, answered, lost=True)
    assert status == 200, answer
    job = json.loads(answer)["octet"]["job"]
    status, _, view = ask(fleet.port, "GET", f"/v1/jobs/{job}")
    assert status == 200, view
    return Sample(sent, json.loads(view)["started_at"], answered)


def queued(fleet: Fleet, seed: int, steps: int) -> Sample:
    sent = time.time()
    status, _, answer = ask(fleet.port, "POST", "/v1/jobs", body(seed, steps))
    if status in (429, 503):
        return Sample(sent, sent, sent, lost=True)
    assert status == 202, answer
    job = json.loads(answer)["id"]
    stream = ask(fleet.port, "GET", f"/v1/jobs/{job}/events")[2].decode()
    view = json.loads(stream.rstrip().rpartition("data: ")[2])
    assert view["state"] == "completed", view
    return Sample(sent, view["started_at"], view["ended_at"])


def poisson(per_second: float, count: int, seed: int) -> list[float]:
    jobs = arrivals(Traffic(3600 * per_second, 1), count, random.Random(seed))
    return [job.arrival for job in jobs]


def run(fleet: Fleet, one: Callable, times: list[float], steps: int) -> list[Sample]:
    """All requests at their times, each from a thread of its own."""
    samples: list[Sample | BaseException] = [RuntimeError("not answered")] * len(times)

    def send(index: int) -> None:
        try:
            samples[index] = one(fleet, index, steps)
        except BaseException as why:
            samples[index] = why

    begin = time.time()
    threads = []
    for index, when in enumerate(times):
        time.sleep(max(0.0, begin + when - time.time()))
        threads.append(threading.Thread(target=send, args=(index,)))
        threads[-1].start()
    for thread in threads:
        thread.join()
    for sample in samples:
        if isinstance(sample, BaseException):
            raise sample
    first = samples[0].sent
    return [Sample(s.sent - first, s.started - first, s.answered - first, s.lost)
            for s in samples]


def waits_of(samples: list[Sample]) -> dict[str, float]:
    counted = [s for s in samples[len(samples) // 10:] if not s.lost]
    waits = sorted(s.started - s.sent for s in counted)
    whole = sorted(s.answered - s.sent for s in counted)
    return {"wait_mean": statistics.mean(waits), "wait_p95": quantile(waits, 0.95),
            "answer_p50": quantile(whole, 0.5), "answer_p95": quantile(whole, 0.95),
            "lost": 1 - len(counted) / (len(samples) - len(samples) // 10)}


def simulated(limits: Limits, workers: int, samples: list[Sample], seconds: list[float],
              seed: int) -> dict[str, float]:
    jobs = [Job(sample.sent, each) for sample, each in zip(samples, seconds, strict=True)]
    outcome = asdict(simulate(limits, workers, jobs, seed))
    return {name: outcome[name] for name in FIGURES}


def drawn(calibration: list[float], count: int, seed: int) -> list[float]:
    return random.Random(seed).choices(calibration, k=count)


def medians(runs: Iterable[dict[str, float]]) -> dict[str, float]:
    """Over seeds: when HAProxy looked, and which pictures were drawn, is left to chance."""
    runs = list(runs)
    return {name: statistics.median(each[name] for each in runs) for name in runs[0]}


def furthest(measured: dict[str, float], model: dict[str, float]) -> float:
    """Of the quantiles, as a share of the measured one."""
    return max(abs(model[name] / measured[name] - 1)
               for name in ("wait_p95", "answer_p50", "answer_p95"))


def machine() -> str:
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        names = [line.partition(":")[2].strip() for line in file if line.startswith("model name")]
    return f"{names[0] if names else platform.machine()}, {os.cpu_count()} cores"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=Path)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--load", type=float, default=0.8, help="of all workers")
    parser.add_argument("--count", type=int, default=400, help="requests for each route")
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--routes", nargs="+", default=["blocking", "jobs"])
    parser.add_argument("--within", type=float, default=0.15)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path, help="write everything to this file")
    own, of_octet = split_arguments()
    a = parser.parse_args(own)
    commit = subprocess.run([a.program, "--version"], capture_output=True, text=True).stdout.strip()
    print(f"{machine()}; {commit}; {time.strftime('%Y-%m-%d')}\n{' '.join(sys.argv)}\n")
    found, is_good = {}, True
    with tempfile.TemporaryDirectory(prefix="octet-measure-") as folder:
        fleet = Fleet(a.program, a.workers, Path(folder), ["--quiet", *of_octet])
        with fleet:
            for route in a.routes:
                one = blocking if route == "blocking" else queued
                run(fleet, one, [0.0] * 2 * a.workers, a.steps)  # warm
                burst = run(fleet, one, [0.0] * 20 * a.workers, a.steps)
                rate = a.workers * a.load / statistics.mean(s.answered - s.started for s in burst)
                # With the same mix of idle and busy workers as in the run.
                before = run(fleet, one, poisson(rate, a.count // 2, a.seed + 1), a.steps)
                calibration = [s.answered - s.started for s in before if not s.lost]
                wait_until(lambda: all(fleet.proxy.sees(w.name, "idle") for w in fleet.workers),
                           10, "idle workers")
                samples = run(fleet, one, poisson(rate, a.count, a.seed), a.steps)
                limits = Limits(route)
                measured = waits_of(samples)
                mean = statistics.mean(s.answered - s.started for s in samples if not s.lost)
                own = [mean if s.lost else s.answered - s.started for s in samples]
                columns = {
                    "measured": measured,
                    "same seconds": medians(simulated(limits, a.workers, samples, own, seed)
                                            for seed in range(SEEDS)),
                    "as planned": medians(simulated(limits, a.workers, samples, drawn(
                        calibration, a.count, seed), seed) for seed in range(SEEDS))}
                off = {name: furthest(measured, model) for name, model in columns.items()}
                is_good = is_good and max(off.values()) <= a.within
                found[route] = {"columns": columns, "off": off, "calibration": calibration,
                                "samples": [asdict(sample) for sample in samples]}
                print(f"{route}: {a.count} requests, {3600 * rate:.0f} an hour, {a.workers} "
                      f"workers, {statistics.mean(calibration):.3f} s a picture when calibrated,"
                      f" {mean:.3f} s in the run")
                print(f"{'':14}" + "".join(f"{name:>12}" for name in measured) + "    off by")
                for name, column in columns.items():
                    print(f"{name:14}" + "".join(f"{value:12.3f}" for value in column.values())
                          + f"{off[name]:10.1%}")
                print(flush=True)
    if a.json:
        a.json.write_text(json.dumps({"machine": machine(), "commit": commit, "command": sys.argv,
                                      "routes": found}))
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
