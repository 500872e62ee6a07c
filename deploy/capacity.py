#!/usr/bin/env python3
"""How many GPUs hold a waiting time: simulates the queues of deploy/haproxy and `octet serve`.

    deploy/capacity.py --pictures-per-hour 20000 --seconds 3.1 --p95 10 --loss 0.001

A request of a blocking route waits in HAProxy until a GPU is free; a job of POST /v1/jobs goes to
a worker that did nothing when it was last asked, or to one where nothing waited, or else to the
next in turn, and waits there in a queue that is fair by key. What is not simulated: the network,
uploads, clients that leave, priorities. Prints a table; --json prints the same as JSON.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass

from fleet_model import Fleet, Job, Limits, Traffic, arrivals

@dataclass
class Outcome:
    gpus: int
    jobs: int
    busy: float  # share of the GPUs' time
    wait_mean: float
    wait_p50: float
    wait_p95: float
    wait_p99: float
    answer_p50: float  # from arrival to the picture
    answer_p95: float
    lost: float  # share of the jobs
    refused: int
    timeout: int
    failed: int
    retried: int


def quantile(ordered: Sequence[float], share: float) -> float:
    if not ordered:
        return 0.0
    return ordered[min(len(ordered) - 1, math.ceil(share * len(ordered)) - 1)]


def simulate(limits: Limits, gpus: int, jobs: list[Job], seed: int = 0,
             skip: float = 0.1) -> Outcome:
    """Of these jobs, which it changes; the first `skip` of them are not counted in the waits."""
    fleet = Fleet(limits, gpus, random.Random(seed))
    fleet.run(jobs)
    counted = jobs[int(skip * len(jobs)):]
    done = [job for job in counted if not job.lost]
    waits = sorted(job.started - job.arrival for job in done)
    whole = sorted(job.ended - job.arrival for job in done)
    lost = {why: sum(job.lost == why for job in counted)
            for why in ("refused", "timeout", "failed")}
    span = max((job.ended for job in jobs), default=0) - (jobs[0].arrival if jobs else 0)
    return Outcome(
        gpus, len(counted), fleet.busy_s / (span * gpus) if span > 0 else 0,
        sum(waits) / len(waits) if waits else 0,
        quantile(waits, 0.5), quantile(waits, 0.95), quantile(waits, 0.99),
        quantile(whole, 0.5), quantile(whole, 0.95),
        1 - len(done) / len(counted) if counted else 0, **lost, retried=fleet.retried)


def gpus_needed(traffic: Traffic, limits: Limits, p95: float, loss: float, count: int, seed: int,
                busiest: float = 0.97) -> tuple[int, dict[int, Outcome]]:
    """The fewest that hold both, and what was tried on the way. None that would be busier than
    `busiest`: a little more traffic than was thought, and the queue would grow without end."""
    tried: dict[int, Outcome] = {}

    def holds(gpus: int) -> bool:
        if gpus not in tried:
            jobs = arrivals(traffic, count, random.Random(seed))
            tried[gpus] = simulate(limits, gpus, jobs, seed)
        return tried[gpus].wait_p95 <= p95 and tried[gpus].lost <= loss

    low = max(1, math.ceil(traffic.load() / busiest))
    step = 1
    while not holds(low + step - 1):
        if step > 16 * low + 64:
            raise SystemExit(
                f"capacity.py: {low + step - 1} GPUs lose {tried[low + step - 1].lost:.2%}; "
                "more would not help: failures alone are above --loss")
        step *= 2
    high, low = low + step - 1, low + step // 2 - 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    holds(max(1, high - 1)), holds(high + 1)
    return high, tried


def table(outcomes: Iterable[Outcome], best: int) -> str:
    rows = [" GPUs   busy  wait p50      p95      p99  picture p95      lost"]
    for o in outcomes:
        rows.append(f"{o.gpus:5d} {o.busy:6.1%} {o.wait_p50:7.1f} s {o.wait_p95:6.1f} s "
                    f"{o.wait_p99:6.1f} s {o.answer_p95:10.1f} s {o.lost:9.3%}"
                    + ("  <- the fewest that hold" if o.gpus == best else ""))
    return "\n".join(rows)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--pictures-per-hour", type=float, required=True)
    add("--seconds", type=float, required=True, help="of a GPU per picture, mean")
    add("--seconds-cv", type=float, default=0, help="standard deviation / mean; 0: all alike")
    add("--burst", type=float, default=1, help="the same of the gaps between arrivals; 1: Poisson")
    add("--on-off", type=float, nargs=2, default=(0, 0), metavar=("ON", "OFF"),
        help="mean seconds of periods with and without arrivals")
    add("--keys", type=int, default=1, help="clients")
    add("--route", choices=("blocking", "jobs"), default="blocking")
    add("--queue", type=int, default=32)
    add("--queue-seconds", type=float, default=60)
    add("--check-seconds", type=float, default=0.5)
    add("--hours-between-failures", type=float, default=0, help="of one worker; 0: none")
    add("--cold-start-seconds", type=float, default=30)
    add("--gpus", type=int, help="simulate these, and search for none")
    add("--p95", type=float, default=10, help="of the seconds before a picture starts")
    add("--loss", type=float, default=0.001, help="share of jobs that may be refused or lost")
    add("--busiest", type=float, default=0.97, help="share of the time, at most")
    add("--jobs", type=int, help="to simulate; default: 50000, or 200 for each GPU")
    add("--seed", type=int, default=1)
    add("--json", action="store_true")
    a = parser.parse_args()
    if min(a.pictures_per_hour, a.seconds, a.burst, a.keys) <= 0:
        parser.error("expected numbers above 0")
    traffic = Traffic(a.pictures_per_hour, a.seconds, a.seconds_cv, a.burst, *a.on_off, a.keys)
    limits = Limits(a.route, a.queue, a.queue_seconds, a.check_seconds,
                    a.hours_between_failures * 3600, a.cold_start_seconds)
    count = a.jobs or max(50_000, 200 * math.ceil(traffic.load()))
    if a.gpus:
        jobs = arrivals(traffic, count, random.Random(a.seed))
        best, tried = 0, {a.gpus: simulate(limits, a.gpus, jobs, a.seed)}
    else:
        best, tried = gpus_needed(traffic, limits, a.p95, a.loss, count, a.seed, a.busiest)
    outcomes = [tried[gpus] for gpus in sorted(tried) if not best or abs(gpus - best) <= 2]
    if a.json:
        print(json.dumps({"format": "octet.capacity.1", "traffic": asdict(traffic),
                          "limits": asdict(limits), "load": traffic.load(), "gpus": best or None,
                          "outcomes": [asdict(o) for o in outcomes]}, indent=1))
        return 0
    print(f"{traffic.pictures_per_hour:g} pictures an hour of {traffic.seconds:g} s keep "
          f"{traffic.load():.1f} GPUs busy; {a.route} route, {count} jobs, seed {a.seed}")
    print(table(outcomes, best))
    return 0


if __name__ == "__main__":
    sys.exit(main())
