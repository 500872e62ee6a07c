"""The queues of HAProxy and of the workers: what deploy/capacity.py runs jobs through."""

from __future__ import annotations

import heapq
import math
import random
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field


@dataclass
class Limits:
    """Of HAProxy and the workers, as deploy/haproxy/haproxy.cfg and `octet serve` have them."""

    route: str = "blocking"  # or "jobs"
    queue: int = 32  # blocking: that wait per GPU in HAProxy; jobs: of one key, at one worker
    queue_s: float = 60  # blocking: that a request may wait
    check_s: float = 0.5  # jobs: between two looks of HAProxy at a worker
    failure_s: float = 0  # mean time between two failures of one worker; 0: none
    cold_start_s: float = 30  # from a failure until the worker is ready again


@dataclass
class Traffic:
    pictures_per_hour: float
    seconds: float  # a picture's, mean
    seconds_cv: float = 0  # standard deviation / mean; lognormal; 0: all alike
    burst: float = 1  # the same of the times between arrivals; 1: Poisson
    on_s: float = 0  # with off_s: arrivals come in periods of this mean length
    off_s: float = 0  # and none in periods of this one
    keys: int = 1  # clients, each with an equal share

    def load(self) -> float:
        """GPUs that would be busy all the time."""
        return self.pictures_per_hour / 3600 * self.seconds


@dataclass
class Job:
    arrival: float
    seconds: float
    key: int = 0
    tries: int = 0
    queued_at: float = 0
    started: float = -1
    ended: float = -1
    lost: str = ""  # "refused" at once (429, or no worker is up), "timeout" or "failed"


def arrivals(traffic: Traffic, count: int, rng: random.Random) -> list[Job]:
    on_share = traffic.on_s / (traffic.on_s + traffic.off_s) if traffic.off_s else 1
    gap = 3600 / traffic.pictures_per_hour * on_share
    shape = 1 / traffic.burst**2
    spread = math.log(1 + traffic.seconds_cv**2)
    jobs: list[Job] = []
    now = 0.0
    left = rng.expovariate(1 / traffic.on_s) if traffic.off_s else math.inf
    for _ in range(count):
        wait = rng.gammavariate(shape, gap / shape) if shape != 1 else rng.expovariate(1 / gap)
        while wait > left:
            now += left + rng.expovariate(1 / traffic.off_s)
            wait -= left
            left = rng.expovariate(1 / traffic.on_s)
        now, left = now + wait, left - wait
        seconds = traffic.seconds
        if spread:
            seconds *= math.exp(rng.gauss(-spread / 2, math.sqrt(spread)))
        jobs.append(Job(now, seconds, rng.randrange(traffic.keys)))
    return jobs


class FairQueue:
    """The worker's own: the next job is of the key that has had the least."""

    def __init__(self) -> None:
        self.waiting: dict[int, deque[Job]] = {}
        self.had: dict[int, float] = {}
        self.order: list[tuple[float, int]] = []
        self.now = 0.0
        self.size = 0

    def push(self, job: Job) -> None:
        own = self.waiting.setdefault(job.key, deque())
        if not own:
            self.had[job.key] = max(self.had.get(job.key, 0), self.now)
            heapq.heappush(self.order, (self.had[job.key], job.key))
        own.append(job)
        self.size += 1

    def pop(self) -> Job:
        self.now, key = heapq.heappop(self.order)
        job = self.waiting[key].popleft()
        self.had[key] = self.now + job.seconds
        if self.waiting[key]:
            heapq.heappush(self.order, (self.had[key], key))
        self.size -= 1
        return job

    def size_of(self, key: int) -> int:
        return len(self.waiting.get(key, ()))

    def clear(self) -> list[Job]:
        return [self.pop() for _ in range(self.size)]


@dataclass
class Worker:
    running: Job | None = None
    is_up: bool = True
    life: int = 0  # counts failures: what was to happen before one does not
    queue: FairQueue = field(default_factory=FairQueue)


class Place:
    """A backend of HAProxy that takes jobs: those of its workers that a check last found so."""

    def __init__(self, indices: Iterable[int], jobs_per_s: bool):
        self.indices = list(indices)
        self.jobs_per_s = jobs_per_s  # no more than it has workers: one was seen idle for one job
        self.sent: deque[float] = deque()
        self.turn = 0

    def takes_another(self, now: float) -> bool:
        while self.sent and self.sent[0] <= now - 1:
            self.sent.popleft()
        if not self.indices or self.jobs_per_s and len(self.sent) >= len(self.indices):
            return False
        self.sent.append(now)
        return True

    def next(self) -> int:
        self.turn += 1
        return self.indices[self.turn % len(self.indices)]


class Fleet:
    def __init__(self, limits: Limits, gpus: int, rng: random.Random):
        self.limits, self.rng = limits, rng
        self.workers = [Worker() for _ in range(gpus)]
        self.line: deque[Job] = deque()  # in HAProxy
        self.events: list[tuple[float, int, str, int, int]] = []
        self.events_so_far = 0
        self.idle, self.short = Place((), True), Place((), True)
        self.up = Place(range(gpus), False)
        self.free = set(range(gpus))  # blocking: up and without a picture
        self.down = 0
        self.busy_s = 0.0
        self.retried = 0

    def run(self, jobs: Iterable[Job]) -> None:
        if self.limits.failure_s:
            for index in range(len(self.workers)):
                self.fail_later(0, index)
        self.look(-self.rng.random() * self.limits.check_s)
        for job in jobs:
            while self.events and self.events[0][0] <= job.arrival:
                self.next_event()
            self.submit(job, job.arrival)
        while any(worker.running for worker in self.workers) or self.line:
            self.next_event()

    def at(self, time: float, what: str, index: int = 0) -> None:
        self.events_so_far += 1
        life = self.workers[index].life
        heapq.heappush(self.events, (time, self.events_so_far, what, index, life))

    def next_event(self) -> None:
        now, _, what, index, life = heapq.heappop(self.events)
        worker = self.workers[index]
        if what == "look":
            self.look(now)
        elif what == "up":
            worker.is_up = True
            self.down -= 1
            self.fail_later(now, index)
            self.next_job(now, index)
        elif life == worker.life:
            if what == "finish":
                self.finish(now, index)
            else:
                self.fail(now, index)

    def look(self, now: float) -> None:
        """HAProxy's checks; all at once here, spread over the interval there."""
        if self.limits.route != "jobs":
            return
        workers = self.workers
        up = self.up.indices = [i for i, worker in enumerate(workers) if worker.is_up]
        short = self.short.indices = [i for i in up if not workers[i].queue.size]
        self.idle.indices = [i for i in short if not workers[i].running]
        self.at(now + self.limits.check_s, "look")

    def submit(self, job: Job, now: float) -> None:
        job.tries += 1
        job.queued_at = now
        if self.limits.route == "jobs":
            return self.submit_to_worker(job, now)
        self.drop_late(now)
        up = len(self.workers) - self.down
        if self.free:
            self.start(job, now, self.free.pop())
        elif not up or len(self.line) > self.limits.queue * up:
            job.lost = "refused"
        else:
            self.line.append(job)
        return None

    def submit_to_worker(self, job: Job, now: float) -> None:
        for place in (self.idle, self.short, self.up):
            if not place.takes_another(now):
                continue
            worker = self.workers[index := place.next()]
            if not worker.is_up:  # since the last look: it refused, and HAProxy asks another
                continue
            if worker.queue.size_of(job.key) >= self.limits.queue:
                break
            worker.queue.push(job)
            if not worker.running:
                self.next_job(now, index)
            return
        job.lost = "refused"

    def drop_late(self, now: float) -> None:
        while self.line and self.line[0].queued_at + self.limits.queue_s < now:
            self.line.popleft().lost = "timeout"

    def start(self, job: Job, now: float, index: int) -> None:
        job.started = now
        self.workers[index].running = job
        self.at(now + job.seconds, "finish", index)

    def next_job(self, now: float, index: int) -> None:
        worker = self.workers[index]
        self.drop_late(now)
        if worker.queue.size:
            self.start(worker.queue.pop(), now, index)
        elif self.line:
            self.start(self.line.popleft(), now, index)
        else:
            self.free.add(index)

    def finish(self, now: float, index: int) -> None:
        worker = self.workers[index]
        worker.running.ended = now
        self.busy_s += worker.running.seconds
        worker.running = None
        self.next_job(now, index)

    def fail_later(self, now: float, index: int) -> None:
        if self.limits.failure_s:
            self.at(now + self.rng.expovariate(1 / self.limits.failure_s), "fail", index)

    def fail(self, now: float, index: int) -> None:
        """What it had is asked for once more: by HAProxy, or by the client, told of the loss."""
        worker = self.workers[index]
        running = [worker.running] if worker.running else []
        worker.running, worker.is_up = None, False
        worker.life += 1
        self.down += 1
        self.free.discard(index)
        self.at(now + self.limits.cold_start_s, "up", index)
        for job in running + worker.queue.clear():
            if job.tries == 1:
                self.retried += 1
                self.submit(job, now)
            else:
                job.lost = "failed"
