"""The simulation of deploy/capacity.py against what queueing theory knows exactly."""

from __future__ import annotations

import json
import math
import random
import subprocess
import sys
from pathlib import Path

import pytest

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
sys.path.insert(0, str(DEPLOY))

from capacity import gpus_needed, simulate  # noqa: E402
from fleet_model import FairQueue, Fleet, Job, Limits, Traffic, arrivals  # noqa: E402
from measure_capacity import Sample, furthest, simulated, waits_of  # noqa: E402

ENDLESS = Limits(queue=10**9, queue_s=10**9)
JOBS = 200_000


def run(traffic: Traffic, gpus: int, limits: Limits = ENDLESS, jobs: int = JOBS, seed: int = 3):
    return simulate(limits, gpus, arrivals(traffic, jobs, random.Random(seed)), seed)


def exponential(traffic: Traffic, jobs: int, seed: int = 3) -> list[Job]:
    rng = random.Random(seed)
    return [Job(job.arrival, rng.expovariate(1 / traffic.seconds))
            for job in arrivals(traffic, jobs, rng)]


@pytest.mark.parametrize("load", [0.5, 0.8])
def test_m_m_1_waits_as_the_formula_says(load: float) -> None:
    traffic = Traffic(3600 * load, 1)
    got = simulate(ENDLESS, 1, exponential(traffic, JOBS))
    assert got.wait_mean == pytest.approx(load / (1 - load), rel=0.05)
    # P(wait > t) = load e^-(1 - load)t
    assert got.wait_p95 == pytest.approx(math.log(load / 0.05) / (1 - load), rel=0.05)
    assert got.busy == pytest.approx(load, rel=0.02)
    assert got.lost == 0


def test_m_m_c_waits_as_erlang_c_says() -> None:
    gpus, load = 8, 0.85
    offered = gpus * load
    term = offered**gpus / math.factorial(gpus) / (1 - load)
    waits = term / (sum(offered**k / math.factorial(k) for k in range(gpus)) + term)
    got = simulate(ENDLESS, gpus, exponential(Traffic(3600 * offered, 1), JOBS))
    assert got.wait_mean == pytest.approx(waits / (gpus * (1 - load)), rel=0.06)


def mean_wait_m_d_c(gpus: int, load: float) -> float:
    """Exact, in service times: of the jobs there, those served are gone one service time later, and
    as many as a Poisson number have come (Crommelin 1932). The chain is run until it stands."""
    rate, size = gpus * load, 60 * gpus
    comes = [math.exp(n * math.log(rate) - rate - math.lgamma(n + 1)) for n in range(8 * gpus)]
    there = [1.0] + [0.0] * (size - 1)
    for _ in range(300):
        after = [0.0] * size
        for n, share in enumerate(there):
            if share > 1e-15:
                left = max(0, n - gpus)
                for came, chance in enumerate(comes[: size - left]):
                    after[left + came] += share * chance
        there = after
    return sum(max(0, n - gpus) * share for n, share in enumerate(there)) / rate


@pytest.mark.parametrize(("gpus", "load"), [(1, 0.8), (4, 0.8), (16, 0.85)])
def test_m_d_c_waits_as_crommelin_says(gpus: int, load: float) -> None:
    expected = mean_wait_m_d_c(gpus, load)
    if gpus == 1:  # Pollaczek and Khinchine
        assert expected == pytest.approx(load / (2 * (1 - load)), rel=0.001)
    got = run(Traffic(3600 * gpus * load, 1), gpus)
    assert got.wait_mean == pytest.approx(expected, rel=0.05)


def test_bursts_wait_longer_and_keep_the_rate() -> None:
    smooth, poisson, bursty = (run(Traffic(3600 * 3.2, 1, burst=burst), 4)
                               for burst in (0.3, 1, 3))
    assert smooth.wait_p95 < poisson.wait_p95 < bursty.wait_p95
    assert bursty.busy == pytest.approx(0.8, rel=0.03)
    jobs = arrivals(Traffic(3600, 1, on_s=6, off_s=18), JOBS, random.Random(1))
    assert jobs[-1].arrival == pytest.approx(JOBS, rel=0.05)


def test_a_full_line_refuses_and_a_late_request_is_told() -> None:
    over = Traffic(3600 * 2, 1)
    refused = run(over, 1, Limits(queue=4, queue_s=10**9), jobs=5000)
    assert refused.refused > 2000 and refused.timeout == 0
    assert refused.wait_p99 <= 5  # those that wait, by one second each
    late = run(over, 1, Limits(queue=10**9, queue_s=5), jobs=5000)
    assert late.timeout > 2000 and late.refused == 0
    assert late.wait_p99 <= 5


@pytest.mark.parametrize("route", ["blocking", "jobs"])
def test_failures_lose_nothing_silently(route: str) -> None:
    limits = Limits(route, 10**9, 10**9, failure_s=100, cold_start_s=10)
    jobs = arrivals(Traffic(3600 * 2, 1, keys=3), 20_000, random.Random(5))
    fleet = Fleet(limits, 4, random.Random(5))
    fleet.run(jobs)
    assert fleet.retried > 100
    assert {job.lost for job in jobs} <= {"", "failed", "refused"}
    for job in jobs:
        assert job.tries in (1, 2)
        assert (job.ended > job.started >= job.arrival) == (not job.lost)
    assert sum(bool(job.lost) for job in jobs) < 0.01 * len(jobs)


def test_jobs_spread_over_workers_nearly_as_well_as_one_line() -> None:
    traffic = Traffic(3600 * 40, 1)
    line = run(traffic, 46, Limits("blocking"), jobs=30_000)
    spread = run(traffic, 46, Limits("jobs", check_s=0.1), jobs=30_000)
    assert line.wait_p95 < spread.wait_p95 < line.wait_p95 + 1.2  # one picture more
    assert spread.lost == 0


def test_a_key_with_many_jobs_does_not_hold_up_another() -> None:
    queue = FairQueue()
    for index in range(100):
        queue.push(Job(0, 1, key=1, queued_at=index))
    queue.push(Job(0, 1, key=2))
    assert 2 in [queue.pop().key for _ in range(2)]
    assert [job.queued_at for job in queue.clear()] == sorted(range(100))[-99:]


def test_the_fewest_gpus_hold_and_one_fewer_does_not() -> None:
    best, tried = gpus_needed(Traffic(20_000, 3.1), Limits(), p95=3, loss=0.001, count=20_000,
                              seed=1)
    assert tried[best].wait_p95 <= 3 and tried[best].lost <= 0.001
    assert tried[best - 1].wait_p95 > 3 or tried[best - 1].lost > 0.001


def test_a_measured_run_is_compared_with_the_same_arrivals() -> None:
    jobs = arrivals(Traffic(3600 * 1.6, 1), 500, random.Random(2))
    simulate(Limits(), 2, jobs)
    seen = [Sample(job.arrival, job.started, job.ended) for job in jobs]
    model = simulated(Limits(), 2, seen, [1.0] * 500, seed=0)
    assert furthest(waits_of(seen), model) < 1e-9
    late = [Sample(s.sent, s.started + 1, s.answered + 1) for s in seen]
    assert furthest(waits_of(late), model) > 0.2


def test_the_program_says_the_same_twice_in_both_forms() -> None:
    def capacity(*arguments: str) -> str:
        command = [sys.executable, DEPLOY / "capacity.py", "--pictures-per-hour", "5000",
                   "--seconds", "7.6", "--jobs", "5000", *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    found = json.loads(capacity("--json"))
    assert found["format"] == "octet.capacity.1" and found["gpus"] >= found["load"]
    text = capacity()
    assert text == capacity()
    assert f"\n{found['gpus']:5d} " in text and "<- the fewest that hold" in text
    one = json.loads(capacity("--gpus", "12", "--json"))
    assert [outcome["gpus"] for outcome in one["outcomes"]] == [12] and one["gpus"] is None
