"""Octet under Ray Serve: each replica keeps one `octet serve` and passes requests on to it.

    pip install "ray[serve]" httpx
    cd deploy
    serve run ray_serve:app program=/usr/bin/octet arguments="--model M" max_workers=8

Ray starts and stops replicas by the jobs that wait and run, and starts one again whose worker does
not come back. It has no routing by path, and counts a job that was answered with 202 as done; so a
directory, one actor, knows each worker's address and jobs. New work goes to the worker with the
fewest, a repeated Idempotency-Key to the worker that has its job, and a question about job NAME-...
to the worker NAME, whichever replica it came to.
"""

import asyncio
import hashlib
import os
import re
import shlex
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import httpx
import ray
from job_lists import Ask, Refused, list_of_all
from local_fleet import DIE_WITH_PARENT, free_port
from pydantic import BaseModel
from ray import serve
from ray.serve.config import AutoscalingPolicy
from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse

NEW_WORK = ("/v1/jobs", "/v1/images/generations", "/sdapi/v1/txt2img")
# Of one connection, and what this proxy writes itself.
NOT_PASSED_ON = {"connection", "keep-alive", "transfer-encoding", "content-length", "te", "upgrade"}
MAX_BODY = 4 << 20
UNHEARD_S = 10  # after which a worker gets no new work
FORGOTTEN_S = 600
KEYS_KEPT = 100_000
COUNT = re.compile(r"^octet_(?:queue_depth|jobs_running) ([0-9]+)", re.MULTILINE)


class Settings(BaseModel):
    program: str = "octet"
    arguments: str = ""  # of octet serve
    min_workers: int = 1
    max_workers: int = 1
    jobs_per_worker: float = 4  # more that wait or run, and another worker is started
    gpus: float = 1  # of each worker
    cpus: float = 1
    host: str = "127.0.0.1"  # or "node": the node's address, for a cluster; needs --keys
    grace_s: float = 60
    idle_s: float = 600  # before a worker is given up: its results go with it


def error(status: int, message: str, code: str) -> JSONResponse:
    body = {"message": message, "type": "server_error", "param": None, "code": code}
    return JSONResponse({"error": body}, status, {"Retry-After": "5"} if status == 503 else None)


# What a worker says that paints nothing.
NOTHING_PAINTED = {
    "progress": 0.0, "eta_relative": 0.0, "current_image": None, "textinfo": None,
    "state": {"skipped": False, "interrupted": False, "job": "", "job_count": 0, "job_no": 0,
              "job_timestamp": "0", "sampling_step": 0, "sampling_steps": 0}}


def remember(names: dict[str, str], key: str, name: str) -> None:
    if not key:
        return
    names.pop(key, None)
    names[key] = name
    if len(names) > KEYS_KEPT:
        del names[next(iter(names))]


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def client_of(request: Request) -> str:
    """By the key, or else by the address."""
    address = request.client.host if request.client else ""
    return digest(request.headers.get("authorization") or address)


def headers_passed_on(request: Request) -> list[tuple[str, str]]:
    """Workers answer to addresses and localhost alone; here, the name is this proxy's."""
    host = request.headers.get("host", "").lower()
    page = re.sub("^https?://", "", request.headers.get("origin", "").lower())
    left_out = NOT_PASSED_ON | ({"origin"} if page == host else set())
    is_name = re.match(r"[a-z]", host)
    return [(name, "localhost" if name == "host" and is_name else value)
            for name, value in request.headers.items() if name not in left_out]


@ray.remote(num_cpus=0, max_restarts=-1)
class Directory:
    """Addresses and jobs of the workers; each tells its own every second."""

    def __init__(self) -> None:
        self.workers: dict[str, dict] = {}
        self.keys: dict[str, str] = {}  # which worker has the job of an Idempotency-Key
        self.painters: dict[str, str] = {}  # and which one makes the picture of an A1111 client

    def tell(self, name: str, url: str, jobs: int) -> None:
        self.workers[name] = {"url": url, "jobs": jobs, "heard": time.monotonic(), "there": True}

    def lost(self, url: str) -> None:
        """No new work for it until it tells again."""
        for worker in self.workers.values():
            worker["there"] = worker["there"] and worker["url"] != url

    def leave(self, name: str) -> None:
        self.workers.pop(name, None)

    def url_of(self, name: str) -> str | None:
        """Also of one that is just being started again: it will know what became of its jobs."""
        worker = self.workers.get(name)
        if worker and worker["heard"] < time.monotonic() - FORGOTTEN_S:
            del self.workers[name]
            return None
        return worker and worker["url"]

    def urls(self) -> dict[str, str]:
        since = time.monotonic() - UNHEARD_S
        return {name: worker["url"] for name, worker in self.workers.items()
                if worker["there"] and worker["heard"] > since}

    def place(self, key: str, painted_for: str) -> str | None:
        """The worker for new work."""
        there = self.urls()
        name = self.keys.get(key)
        if name not in there:
            name = min(there, key=lambda name: self.workers[name]["jobs"], default=None)
        if name is None:
            return None
        self.workers[name]["jobs"] += 1  # until it tells
        remember(self.keys, key, name)
        remember(self.painters, painted_for, name)
        return there[name]

    def painter_of(self, client: str) -> str | None:
        return self.url_of(self.painters.get(client, ""))


def directory():
    # It outlives what was deployed; another program needs one of its own.
    digest = hashlib.sha256(Path(__file__).read_bytes()).hexdigest()[:12]
    return Directory.options(name=f"octet_directory_{digest}", get_if_exists=True,
                             lifetime="detached").remote()


def by_jobs(context):
    """Ray's autoscaling policy: so many workers that each has its share of all jobs."""
    jobs = (context.aggregated_metrics or {}).get("jobs") or {}
    return sum(jobs.values()) / context.config.target_ongoing_requests, {}


@serve.deployment
class OctetWorker:
    async def __init__(self, settings: Settings):
        self.settings = settings
        self.name = f"r{os.urandom(4).hex()}"
        host = ray.util.get_node_ip_address() if settings.host == "node" else settings.host
        self.port = free_port()
        self.url = f"http://{host}:{self.port}"
        self.folder = tempfile.TemporaryDirectory(prefix="octet-")
        self.command = [
            *DIE_WITH_PARENT, settings.program, "serve", "--name", self.name, "--host", host,
            "--port", str(self.port), "--state", str(Path(self.folder.name) / "state"),
            "--grace", str(int(settings.grace_s)), *shlex.split(settings.arguments)]
        self.client = httpx.AsyncClient(timeout=httpx.Timeout(660, connect=5), trust_env=False,
                                        limits=httpx.Limits(max_connections=None))
        self.directory = directory()
        self.ready = asyncio.Event()
        self.down_since = time.monotonic()
        self.jobs = 0
        self.child: subprocess.Popen | None = None
        self.tasks = [asyncio.create_task(self.keep()), asyncio.create_task(self.tell())]
        await self.ready.wait()

    async def keep(self) -> None:
        """Starts the worker, again whenever it has ended: its journal says which jobs it had."""
        while True:
            self.child = subprocess.Popen(self.command)
            while self.child.poll() is None:
                if not self.ready.is_set() and await self.answers_ready():
                    self.ready.set()
                await asyncio.sleep(0.1)
            self.ready.clear()
            self.down_since = time.monotonic()
            await self.directory.lost.remote(self.url)
            await asyncio.sleep(0.5)

    async def answers_ready(self) -> bool:
        try:
            return (await self.client.get(f"{self.url}/ready", timeout=2)).status_code == 200
        except httpx.HTTPError:
            return False

    async def tell(self) -> None:
        key = os.environ.get("OCTET_CHECK_KEY")
        check = {"Authorization": f"Bearer {key}"} if key else {}
        while True:
            await asyncio.sleep(1)
            try:
                if self.ready.is_set():
                    page = await self.client.get(f"{self.url}/metrics", headers=check, timeout=2)
                    self.jobs = sum(map(int, COUNT.findall(page.text)))
                    await self.directory.tell.remote(self.name, self.url, self.jobs)
            except (httpx.HTTPError, ray.exceptions.RayError):
                pass  # whoever asks the directory sees that nothing was heard

    async def record_autoscaling_stats(self) -> dict[str, float]:
        return {"jobs": self.jobs}

    async def check_health(self) -> None:
        """Ray replaces a replica whose worker does not come back."""
        if not self.ready.is_set() and time.monotonic() - self.down_since > 300:
            raise RuntimeError(f"octet serve {self.name} has not been ready for 300 s")

    async def __del__(self) -> None:
        """Ray calls it when no request is under way here; others may still ask the worker."""
        for task in self.tasks:
            task.cancel()
        await self.directory.lost.remote(self.url)
        self.child.send_signal(signal.SIGTERM)
        while self.child.poll() is None:  # Ray ends the replica, and with it the worker, in time
            await asyncio.sleep(0.1)
        await self.directory.leave.remote(self.name)

    async def __call__(self, request: Request) -> Response:
        path = request.url.path
        if path == "/metrics":
            return error(404, "metrics are read from each worker, not through the proxy", "none")
        if int(request.headers.get("content-length") or 0) > MAX_BODY:
            return error(413, f"expected a body of at most {MAX_BODY} bytes", "too_large")
        body = await request.body()
        if request.method == "GET" and path == "/v1/jobs":
            return await self.list_jobs(request)
        url, may_repeat = self.url, True
        if path.startswith("/v1/jobs/"):
            name = path.split("/")[3].rpartition("-")[0]
            url = await self.directory.url_of.remote(name)
            if not url:
                return error(404, "no worker has this job; if it was there, its worker has ended",
                             "not_found")
        elif request.method == "POST" and path in NEW_WORK:
            # A new job that was sent twice without a key might be made twice.
            may_repeat = path != "/v1/jobs" or "idempotency-key" in request.headers
            url = await self.place(request)
        elif path in ("/sdapi/v1/progress", "/sdapi/v1/interrupt"):
            url = await self.directory.painter_of.remote(client_of(request))
            if not url:  # no other client's picture is meant
                return JSONResponse({} if request.method == "POST" else NOTHING_PAINTED)
        return await self.pass_on(request, body, url, may_repeat)

    async def place(self, request: Request) -> str:
        key, owner = (request.headers.get(name, "")
                      for name in ("idempotency-key", "authorization"))
        who = digest(f"{owner}\n{key}") if key else ""
        is_a1111 = request.url.path == "/sdapi/v1/txt2img"
        url = await self.directory.place.remote(who, client_of(request) if is_a1111 else "")
        if not url:  # none has been heard: this replica's own, once it is there
            await asyncio.wait_for(self.ready.wait(), 120)
        return url or self.url

    async def pass_on(self, request: Request, body: bytes, url: str, may_repeat: bool) -> Response:
        headers = headers_passed_on(request)
        query = f"?{request.url.query}" if request.url.query else ""
        for may_try_again in (True, False):
            try:
                answer = await self.client.send(
                    self.client.build_request(request.method, f"{url}{request.url.path}{query}",
                                              headers=headers, content=body), stream=True)
                break
            except httpx.HTTPError as lost:
                was_sent = not isinstance(lost, (httpx.ConnectError, httpx.ConnectTimeout))
                if not may_try_again or was_sent and not may_repeat:
                    return error(503, "the worker ended before it answered; ask again",
                                 "worker_lost")
                await self.directory.lost.remote(url)
                if request.method == "POST" and request.url.path in NEW_WORK:
                    url = await self.place(request)
        return StreamingResponse(
            answer.aiter_raw(), answer.status_code,
            {name: value for name, value in answer.headers.items() if name not in NOT_PASSED_ON},
            background=BackgroundTask(answer.aclose))

    async def list_jobs(self, request: Request) -> Response:
        headers = headers_passed_on(request)

        def asking(url: str) -> Ask:
            async def ask(path: str, parameters: dict) -> dict:
                try:
                    answer = await self.client.get(f"{url}{path}", params=parameters,
                                                   headers=headers, timeout=10)
                except httpx.ConnectError:  # its jobs have ended with it
                    await self.directory.lost.remote(url)
                    if path != "/v1/jobs":
                        raise
                    return {"data": [], "has_more": False}
                if answer.status_code != 200:
                    raise Refused(answer.status_code, answer.content, dict(answer.headers))
                return answer.json()
            return ask

        urls = await self.directory.urls.remote()
        after = request.query_params.get("after")
        owner = (after or "").rpartition("-")[0]
        if not urls or owner not in urls and await self.directory.url_of.remote(owner):
            return error(503, "no worker is ready that could answer; ask again", "worker_lost")
        try:
            return JSONResponse(await list_of_all(
                {name: asking(url) for name, url in urls.items()},
                request.query_params.get("limit"), after))
        except Refused as refused:
            return Response(refused.body, refused.status,
                            {name: value for name, value in refused.headers.items()
                             if name not in NOT_PASSED_ON})
        except httpx.HTTPError:
            return error(503, "a worker did not answer, and a part of the list would look like "
                         "all of it; ask again", "worker_lost")


# Ray makes the settings of the words of `serve run` by this annotation, so it is no string here.
def app(settings: Settings) -> serve.Application:
    return OctetWorker.options(
        ray_actor_options={"num_gpus": settings.gpus, "num_cpus": settings.cpus},
        max_ongoing_requests=1000,  # streams and questions; the workers bound the work itself
        graceful_shutdown_timeout_s=settings.grace_s + 10,
        autoscaling_config={
            "min_replicas": settings.min_workers, "max_replicas": settings.max_workers,
            "target_ongoing_requests": settings.jobs_per_worker,
            "upscale_delay_s": 10, "downscale_delay_s": settings.idle_s,
            "policy": AutoscalingPolicy(policy_function=by_jobs)},
    ).bind(settings)
