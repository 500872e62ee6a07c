"""Real workers under the real Ray Serve, here: ids, kill -9 of a worker and of a replica.

Skipped where ray is not installed (pip install "ray[serve]" httpx); takes a minute.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

ray = pytest.importorskip("ray", reason="ray is not installed")
pytest.importorskip("httpx", reason="httpx is not installed")

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
sys.path.insert(0, str(DEPLOY))

from local_fleet import ask, free_port, wait_until  # noqa: E402

# Ray's own.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")
WORKERS = 2


@pytest.fixture(scope="module")
def port(built_program):
    program = built_program("octet")
    if "no server" in subprocess.run([program, "serve", "--port", "0", "--keys", "/nonexistent"],
                                     capture_output=True, text=True).stderr:
        pytest.skip("this build has no server")
    os.environ.update(PYTHONPATH=str(DEPLOY), RAY_USAGE_STATS_ENABLED="0")
    from ray import serve

    import ray_serve

    ray.init(num_cpus=4, include_dashboard=False, namespace="serve", log_to_driver=False,
             logging_level="WARNING", _node_ip_address="127.0.0.1")
    try:
        listening = free_port()
        serve.start(http_options={"host": "127.0.0.1", "port": listening})
        serve.run(ray_serve.app(ray_serve.Settings(
            program=str(program), arguments="--threads 1 --no-warm-up --quiet", gpus=0, cpus=0.1,
            min_workers=WORKERS, max_workers=WORKERS, grace_s=5)), name="octet")
        wait_until(lambda: len(names()) == WORKERS, 60, "workers to tell the directory")
        yield listening
        serve.shutdown()
    finally:
        ray.shutdown()


def names() -> set[str]:
    import ray_serve

    return set(ray.get(ray_serve.directory().urls.remote()))


def process_of(name: str) -> int:
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if words[1:4] == [b"serve", b"--name", name.encode()]:
            return int(folder.name)
    return 0


def parent_of(process: int) -> int:
    return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])


def picture(seed: int, steps: int = 2) -> dict:
    return {"prompt": "a red circle", "size": "256x256", "steps": steps, "seed": seed}


def make_job(port: int, seed: int, steps: int = 2) -> tuple[int, dict]:
    status, _, body = ask(port, "POST", "/v1/jobs", picture(seed, steps),
                          {"Idempotency-Key": f"key-{seed}"})
    return status, json.loads(body)


def job_of(port: int, job: str) -> tuple[int, dict]:
    status, _, body = ask(port, "GET", f"/v1/jobs/{job}")
    return status, json.loads(body)


def wait_for(port: int, job: str) -> dict:
    def has_ended() -> bool:
        status, now = job_of(port, job)
        return status == 200 and now["state"] not in ("queued", "running")

    wait_until(has_ended, 90, f"{job} to end")
    return job_of(port, job)[1]


def generate(port: int, seed: int) -> tuple[int, dict]:
    status, _, body = ask(port, "POST", "/v1/images/generations", picture(seed, 4))
    return status, json.loads(body) if body.startswith(b"{") else {"text": body.decode()}


def test_questions_find_the_worker_that_has_the_job(port: int) -> None:
    made = [make_job(port, seed) for seed in range(6)]
    assert [status for status, _ in made] == [202] * 6
    assert {job["id"].partition("-")[0] for _, job in made} == names()
    for seed, (_, job) in enumerate(made):
        # Whichever replica is asked, and more than once.
        ended = [wait_for(port, job["id"]) for _ in range(3)][-1]
        assert ended["state"] == "completed" and ended["request"]["seed"] == seed
        status, headers, body = ask(port, "GET", ended["pictures"][0]["url"])
        assert (status, headers["content-type"]) == (200, "image/png")
        assert body.startswith(b"\x89PNG")
    listed = json.loads(ask(port, "GET", "/v1/jobs")[2])["data"]
    assert {job["id"] for _, job in made} <= {job["id"] for job in listed}
    assert [make_job(port, seed)[1]["id"] for seed in range(6)] == [job["id"] for _, job in made]
    assert job_of(port, "nobody-nothing")[0] == 404
    assert ask(port, "GET", "/metrics")[0] == 404


def test_the_list_of_all_workers_has_pages(port: int) -> None:
    made = [make_job(port, seed)[1]["id"] for seed in range(200, 206)]
    for job in made:
        wait_for(port, job)
    seen: list[str] = []
    while True:
        after = f"&after={seen[-1]}" if seen else ""
        found = json.loads(ask(port, "GET", f"/v1/jobs?limit=4{after}")[2])
        assert 0 < len(found["data"]) <= 4
        seen += [job["id"] for job in found["data"]]
        if not found["has_more"]:
            break
    assert seen[:6] == made[::-1] and len(seen) == len(set(seen))
    status, _, body = ask(port, "GET", "/v1/jobs?limit=0")
    assert status == 400 and json.loads(body)["error"]["param"] == "limit"
    assert ask(port, "GET", "/v1/jobs?after=nobody-nothing")[0] == 404


def test_it_may_be_called_by_a_name(port: int) -> None:
    by_name = {"Host": "pictures.example.org", "Origin": "https://pictures.example.org"}
    for path in ("/v1/models", "/v1/jobs"):
        assert ask(port, "GET", path, headers=by_name)[0] == 200
    assert ask(port, "POST", "/v1/jobs", picture(1), by_name)[0] == 202
    foreign = {**by_name, "Origin": "https://elsewhere.example.org"}
    assert ask(port, "POST", "/v1/jobs", picture(1), foreign)[0] == 403


def test_a1111_clients_see_the_progress_of_their_own_picture(port: int) -> None:
    def progress_of(key: str) -> str:
        headers = {"Authorization": f"Bearer {key}"}
        return json.loads(ask(port, "GET", "/sdapi/v1/progress", None, headers)[2])["state"]["job"]

    def paint(key: str) -> int:
        fields = {"prompt": "a red circle", "width": 256, "height": 256, "steps": 100}
        return ask(port, "POST", "/sdapi/v1/txt2img", fields, {"Authorization": f"Bearer {key}"})[0]

    def nothing_runs() -> bool:
        jobs = json.loads(ask(port, "GET", "/v1/jobs?limit=1000")[2])["data"]
        return not {job["state"] for job in jobs} & {"queued", "running"}

    # Without keys, a worker takes what is left of another test for a picture of these clients.
    wait_until(nothing_runs, 60, "the jobs of other tests to end")
    with ThreadPoolExecutor(2) as clients:
        running = []
        for key in ("anna", "bert"):
            running.append(clients.submit(paint, key))
            wait_until(lambda key=key: progress_of(key), 30, "it to be painted")
            time.sleep(1.5)  # the directory is told of it, and places the next one elsewhere
        seen = {key: {progress_of(key) for _ in range(4)} for key in ("anna", "bert")}
        assert all(len(ids) == 1 for ids in seen.values()) and seen["anna"] != seen["bert"]
        for key in ("anna", "bert"):
            stop = {"Authorization": f"Bearer {key}"}
            assert ask(port, "POST", "/sdapi/v1/interrupt", headers=stop)[0] == 200
        assert [each.result() for each in running] == [409, 409]


def test_events_come_through(port: int) -> None:
    job = make_job(port, 100, steps=8)[1]["id"]
    status, headers, body = ask(port, "GET", f"/v1/jobs/{job}/events")
    assert (status, headers["content-type"]) == (200, "text/event-stream")
    events = [line.split()[1] for line in body.decode().splitlines() if line.startswith("event:")]
    assert events[-1] == "completed" and "picture" in events


def test_a_killed_worker_loses_nothing(port: int) -> None:
    with ThreadPoolExecutor(8) as clients:
        asked = [clients.submit(generate, port, seed) for seed in range(1000, 1008)]
        jobs = {seed: make_job(port, seed, 8)[1]["id"] for seed in range(2000, 2006)}
        victim = next(iter(jobs.values())).partition("-")[0]
        hit = {seed: job for seed, job in jobs.items() if job.startswith(victim)}
        killed = process_of(victim)
        os.kill(killed, signal.SIGKILL)
        answers = [each.result() for each in asked]
    assert [status for status, _ in answers] == [200] * 8
    assert [answer["data"][0]["seed"] for _, answer in answers] == list(range(1000, 1008))
    wait_until(lambda: process_of(victim) not in (0, killed), 60, "the worker to be started again")
    wait_until(lambda: victim in names(), 60, "the worker to tell the directory")
    for seed, job in jobs.items():
        ended = wait_for(port, job)
        if seed in hit and ended["state"] == "failed":
            assert ended["error"]["code"] == "restarted"
            status, again = make_job(port, seed, 8)
            assert status == 202 and again["id"] != job
            ended = wait_for(port, again["id"])
        assert ended["state"] == "completed"


def test_a_killed_replica_is_replaced_and_its_worker_ends_with_it(port: int) -> None:
    before = names()
    victim = sorted(before)[0]
    worker = process_of(victim)
    assert worker
    with ThreadPoolExecutor(4) as clients:
        asked = [clients.submit(generate, port, seed) for seed in range(3000, 3004)]
        os.kill(parent_of(worker), signal.SIGKILL)
        answers = [each.result() for each in asked]
    # Ray does not send again what the replica had: told, not lost.
    assert {status for status, _ in answers} <= {200, 500, 503}
    wait_until(lambda: not process_of(victim), 10, "the worker of the replica to end")
    wait_until(lambda: len(names() - {victim}) == WORKERS, 120, "another replica")
    assert len(names() - before) == 1
    assert [generate(port, seed)[0] for seed in range(4)] == [200] * 4
