"""Real workers behind the real HAProxy, on 127.0.0.1: ids, one job per GPU, kill -9, restarts."""

from __future__ import annotations

import base64
import http.client
import json
import re
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
sys.path[:0] = [str(DEPLOY), str(DEPLOY / "haproxy")]

from local_fleet import CONFIGURE, Fleet, Proxy, ask, find_haproxy, wait_until  # noqa: E402
from rolling_restart import metrics, roll  # noqa: E402

pytestmark = pytest.mark.skipif(not find_haproxy(), reason="haproxy is not installed")
GENERATIONS = "/v1/images/generations"


def picture(seed: int, steps: int = 2) -> dict:
    return {"prompt": "a red circle", "size": "256x256", "steps": steps, "seed": seed}


@pytest.fixture(scope="module")
def fleet(built_program, tmp_path_factory):
    program = built_program("octet")
    if "no server" in subprocess.run([program, "serve", "--port", "0", "--keys", "/nonexistent"],
                                     capture_output=True, text=True).stderr:
        pytest.skip("this build has no server")
    folder = tmp_path_factory.mktemp("fleet")
    with Fleet(program, 3, folder, ["--threads", "1", "--no-warm-up", "--quiet"]) as running:
        yield running


def make_job(port: int, seed: int, steps: int = 2, key: str = "") -> tuple[int, dict]:
    headers = {"Idempotency-Key": key} if key else None
    status, _, body = ask(port, "POST", "/v1/jobs", picture(seed, steps), headers)
    return status, json.loads(body)


def job_of(port: int, job: str) -> tuple[int, dict]:
    status, _, body = ask(port, "GET", f"/v1/jobs/{job}")
    return status, json.loads(body)


def wait_for(port: int, job: str) -> dict:
    ended = {}

    def has_ended() -> bool:
        status, now = job_of(port, job)
        ended.update(now)
        return status == 200 and now["state"] not in ("queued", "running")

    wait_until(has_ended, 60, f"{job} to end")
    return ended


def all_jobs(fleet: Fleet) -> list[dict]:
    return [job for worker in fleet.workers
            for job in json.loads(ask(worker.port, "GET", "/v1/jobs?limit=1000")[2])["data"]]


@pytest.mark.parametrize("names", [[], ["w0"], ["a", "b7", "c"]])
def test_haproxy_accepts_the_configuration(tmp_path: Path, names: list[str]) -> None:
    config = DEPLOY / "haproxy/haproxy.cfg"
    if names:
        workers = [f"{name}=127.0.0.1:{port}" for port, name in enumerate(names, 1)]
        text = subprocess.run([sys.executable, CONFIGURE, *workers], check=True, text=True,
                              capture_output=True).stdout
        servers = [line.split()[1:3] for line in text.splitlines()
                   if line.strip().startswith("server ") and "unix@" not in line]
        assert f" maxconn {len(names)}\n" in text
        each = len(servers) // len(names)  # backends
        assert each > 5 and sorted(servers) == sorted([*worker.split("=")] for worker in workers
                                                      for _ in range(each))
        config = tmp_path / "haproxy.cfg"
        config.write_text(text)
    done = subprocess.run([find_haproxy(), "-c", "-f", config], capture_output=True, text=True,
                          env={"OCTET_PROXY_SOCKET": str(tmp_path / "socket")})
    assert done.returncode == 0 and "WARNING" not in done.stderr, done.stderr


def test_a_wrong_worker_is_told(tmp_path: Path) -> None:
    for wrong in (["w0"], ["w0=:1"], ["w0=h:1", "w0=h:2"], ["w-0=h:1"]):
        done = subprocess.run([sys.executable, CONFIGURE, *wrong], capture_output=True, text=True)
        assert done.returncode == 2 and "expected workers as NAME=HOST:PORT" in done.stderr


def test_questions_find_the_worker_that_has_the_job(fleet: Fleet) -> None:
    made = [make_job(fleet.port, seed) for seed in range(6)]
    assert [status for status, _ in made] == [202] * 6
    names = {job["id"].partition("-")[0] for _, job in made}
    assert names == {"w0", "w1", "w2"}
    for seed, (_, job) in enumerate(made):
        ended = wait_for(fleet.port, job["id"])
        assert ended["state"] == "completed" and ended["request"]["seed"] == seed
        status, headers, body = ask(fleet.port, "GET", ended["pictures"][0]["url"])
        assert (status, headers["content-type"]) == (200, "image/png")
        assert body.startswith(b"\x89PNG")
    assert ask(fleet.port, "DELETE", f"/v1/jobs/{job['id']}")[0] == 200
    for nobody in (job["id"], "w0-nothing", "w9-nothing", "nothing"):
        status, answer = job_of(fleet.port, nobody)
        assert status == 404 and answer["error"]["message"]


def test_what_no_worker_can_answer_is_said(fleet: Fleet) -> None:
    assert ask(fleet.port, "GET", "/v1/jobs")[0] == 501
    assert ask(fleet.port, "GET", "/metrics")[0] == 404
    assert json.loads(ask(fleet.port, "GET", "/ready")[2]) == {"status": "ready"}
    by_name = {"Host": "pictures.example.org", "Origin": "https://pictures.example.org"}
    assert ask(fleet.port, "GET", "/v1/models", headers=by_name)[0] == 200
    foreign = {**by_name, "Origin": "https://elsewhere.example.org"}
    assert ask(fleet.port, "POST", "/v1/jobs", picture(1), foreign)[0] == 403


def test_what_scales_the_workers_is_told_by_them_and_the_proxy(fleet: Fleet) -> None:
    scaling = (DEPLOY / "kubernetes/autoscale.yaml").read_text()
    workers = ask(fleet.workers[0].port, "GET", "/metrics")[2].decode()
    proxy = ask(fleet.proxy.metrics_port, "GET", "/metrics")[2].decode()
    names = re.search(r'__name__=~"([a-z_|]+)"', scaling)[1].split("|")
    assert names and all(re.search(rf"^{name} \d", workers, re.MULTILINE) for name in names)
    name, backend = re.search(r'(haproxy_\w+)\{.*proxy="(\w+)"', scaling).groups()
    assert re.search(rf'^{name}{{proxy="{backend}"}} \d', proxy, re.MULTILINE)


def test_events_come_as_they_happen(fleet: Fleet) -> None:
    job = make_job(fleet.port, 1, steps=20)[1]["id"]
    connection = http.client.HTTPConnection("127.0.0.1", fleet.port, timeout=60)
    connection.request("GET", f"/v1/jobs/{job}/events")
    answer = connection.getresponse()
    assert answer.status == 200 and answer.getheader("content-type") == "text/event-stream"
    seen = [(line.decode().split()[1], time.monotonic()) for line in answer
            if line.startswith(b"event: ")]
    names = [name for name, _ in seen]
    assert names[-1] == "completed" and "progress" in names and "picture" in names
    assert seen[-1][1] - seen[0][1] > 0.2, "the proxy has kept the events back"


def test_the_same_key_is_the_same_job(fleet: Fleet) -> None:
    first = [make_job(fleet.port, seed, key=f"same-{seed}")[1]["id"] for seed in range(6)]
    again = [make_job(fleet.port, seed, key=f"same-{seed}")[1]["id"] for seed in range(6)]
    assert first == again and len(set(first)) == 6
    for job in first:
        wait_for(fleet.port, job)


def generate(port: int, seed: int, steps: int = 2) -> tuple[int, dict, int]:
    status, headers, body = ask(port, "POST", GENERATIONS, picture(seed, steps))
    answer = json.loads(body)
    if status == 200:
        assert base64.b64decode(answer["data"][0]["b64_json"]).startswith(b"\x89PNG")
        assert answer["data"][0]["seed"] == seed
    return status, headers, answer


def test_a_gpu_has_one_blocking_request_and_the_others_wait_in_the_proxy(fleet: Fleet) -> None:
    deepest = 0.0
    with ThreadPoolExecutor(9) as clients:
        asked = [clients.submit(generate, fleet.port, seed, 3) for seed in range(9)]
        while not all(each.done() for each in asked):
            waiting = [metrics(f"127.0.0.1:{worker.port}") for worker in fleet.workers]
            deepest = max(deepest, *(now["octet_queue_depth"] + now["octet_jobs_running"]
                                     for now in waiting))
    assert [each.result()[0] for each in asked] == [200] * 9
    assert deepest == 1


def test_who_waits_too_long_is_told_in_time(fleet: Fleet) -> None:
    proxy = Proxy(fleet.workers, fleet.folder, queue="500ms")
    try:
        proxy.start()
        wait_until(lambda: all(proxy.sees(w.name) for w in fleet.workers), 10, "all workers")
        with ThreadPoolExecutor(6) as clients:
            begin = time.monotonic()
            long = [clients.submit(generate, proxy.port, seed, 60) for seed in range(3)]
            time.sleep(0.2)
            status, headers, answer = generate(proxy.port, 9)
            took = time.monotonic() - begin
            assert (status, answer["error"]["code"]) == (503, "overloaded")
            assert int(headers["retry-after"]) > 0
            assert 0.5 < took < 5 and not any(each.done() for each in long)
            assert [each.result()[0] for each in long] == [200] * 3
    finally:
        proxy.end()


def test_a_killed_worker_loses_and_doubles_nothing(fleet: Fleet) -> None:
    port, victim = fleet.port, fleet.workers[1]
    seeds = range(1000, 1012)
    with ThreadPoolExecutor(12) as clients:
        asked = {seed: clients.submit(generate, port, seed, 4) for seed in seeds}
        jobs = {seed: make_job(port, seed, 8, key=f"key-{seed}")[1]["id"]
                for seed in range(2000, 2006)}
        hit = {seed: job for seed, job in jobs.items() if job.startswith("w1-")}
        assert hit
        victim.send(signal.SIGKILL)
        victim.process.wait()
        # Reported at once, and not as a job that never was.
        status, answer = job_of(port, next(iter(hit.values())))
        assert (status, answer["error"]["code"]) == (503, "worker_lost")
        # Every blocking request is answered once, with the picture that it asked for.
        assert [each.result()[0] for each in asked.values()] == [200] * len(seeds)
    victim.start()
    victim.wait_ready()
    wait_until(lambda: fleet.proxy.sees("w1"), 10, "HAProxy to see w1 again")
    for seed, job in jobs.items():
        ended = wait_for(port, job)
        if seed in hit and ended["state"] == "failed":
            assert ended["error"]["code"] == "restarted"
            status, again = make_job(port, seed, 8, key=f"key-{seed}")
            assert status == 202 and again["id"] != job
            ended = wait_for(port, again["id"])
        assert ended["state"] == "completed"
    made = [job["request"]["seed"] for job in all_jobs(fleet)
            if job["state"] == "completed" and job["request"]]
    for seed in [*seeds, *jobs]:
        assert made.count(seed) <= 1, f"seed {seed} was made twice"


class Clients:
    """Blocking ones, and some that make a job, follow it and fetch the picture, until stopped."""

    def __init__(self, port: int):
        self.port = port
        self.stopped = threading.Event()
        self.good, self.bad = 0, []
        self.threads = [threading.Thread(target=self.run, args=(what,))
                        for what in (self.blocking, self.blocking, self.following)]

    def __enter__(self) -> Clients:
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_) -> None:
        self.stopped.set()
        for thread in self.threads:
            thread.join()

    def run(self, what) -> None:
        seed = 0
        while not self.stopped.is_set():
            seed += 1
            try:
                what(seed)
                self.good += 1
            except Exception as why:  # whatever it is, the test shows it
                self.bad.append(repr(why))

    def blocking(self, seed: int) -> None:
        status, _, answer = generate(self.port, seed)
        assert status == 200, answer

    def following(self, seed: int) -> None:
        status, job = make_job(self.port, seed)
        assert status == 202, job
        while job["state"] in ("queued", "running"):
            time.sleep(0.05)
            status, job = job_of(self.port, job["id"])
            assert status == 200, job
        status, _, body = ask(self.port, "GET", job["pictures"][0]["url"])
        assert status == 200 and body.startswith(b"\x89PNG")


def test_a_rolling_restart_fails_no_request(fleet: Fleet) -> None:
    def restart(worker) -> None:
        worker.send(signal.SIGTERM)
        assert worker.process.wait(30) == 0
        worker.start()

    pids = [worker.process.pid for worker in fleet.workers]
    with Clients(fleet.port) as clients:
        for worker in fleet.workers:
            roll(fleet.proxy.socket, worker.name, f"127.0.0.1:{worker.port}",
                 lambda worker=worker: restart(worker), linger=2, seconds=60)
    assert clients.bad == [] and clients.good > 10
    assert all(worker.process.pid not in pids for worker in fleet.workers)


def test_sigterm_alone_fails_no_blocking_request(fleet: Fleet) -> None:
    """Before a check has seen that a worker ends, its 503 takes it out, and another one is asked,
    even if at that moment no other has room."""
    worker = fleet.workers[2]
    # It has a job that the proxy does not count, so that it refuses for a while before it is gone.
    own = make_job(worker.port, 1, steps=20)[1]["id"]
    wait_until(lambda: job_of(worker.port, own)[1]["state"] == "running", 30, "a job to run")
    worker.send(signal.SIGTERM)
    wait_until(lambda: ask(worker.port, "GET", "/ready")[0] == 503, 5, "the worker to refuse")
    with ThreadPoolExecutor(6) as clients:
        asked = [clients.submit(generate, fleet.port, seed) for seed in range(6)]
        assert [each.result()[0] for each in asked] == [200] * 6
    assert worker.process.wait(30) == 0
    worker.start()
    worker.wait_ready()
