"""`octet serve` with the small model on the CPU, and a client as plain as possible."""

from __future__ import annotations

import base64
import contextlib
import http.client
import json
import re
import signal
import struct
import subprocess
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from conftest import BUILD

PROMPT = "a red circle on a white page"
CAPTION = {
    "high_level_description": "A red circle.",
    "compositional_deconstruction": {
        "background": "A flat white background in #FFFFFF",
        "elements": [{"type": "obj", "bbox": [281, 281, 719, 719], "desc": "A red circle"}],
    },
}
LISTENS = re.compile(r"octet: (https?)://([\d.]+):(\d+) ")


@dataclass
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def error(self) -> dict:
        error = self.json["error"]
        assert set(error) == {"message", "type", "param", "code"}
        return error


@dataclass
class Event:
    name: str
    data: dict
    id: int | None = None


@dataclass
class Server:
    process: subprocess.Popen
    host: str
    port: int
    log: list[str] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://{self.host}:{self.port}"

    @contextlib.contextmanager
    def asked(self, method, path, body=None, headers=None, key=None, timeout=60):
        connection = http.client.HTTPConnection(self.host, self.port, timeout=timeout)
        headers = dict(headers or {})
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
            headers.setdefault("Content-Type", "application/json")
        if key is not None:
            headers["Authorization"] = f"Bearer {key}"
        try:
            connection.request(method, path, body, headers)
            yield connection.getresponse()
        finally:
            connection.close()

    def ask(self, method, path, body=None, headers=None, key=None) -> Answer:
        with self.asked(method, path, body, headers, key) as response:
            names = {name.lower(): value for name, value in response.getheaders()}
            return Answer(response.status, names, response.read())

    def get(self, path, **more) -> Answer:
        return self.ask("GET", path, **more)

    def post(self, path, body, **more) -> Answer:
        return self.ask("POST", path, body, **more)

    def submit(self, key=None, headers=None, **fields) -> dict:
        """The job object of a new job."""
        asked = fields if "json_prompt" in fields else {"prompt": PROMPT, **fields}
        answer = self.post("/v1/jobs", asked, key=key, headers=headers)
        assert answer.status == 202, answer.body
        return answer.json

    def finished(self, job: dict, key=None) -> dict:
        """The same when it has ended."""
        last = list(self.events(job["id"], key=key))[-1]
        assert last.name == last.data["state"]
        return last.data

    def events(self, job_id, headers=None, key=None) -> Iterator[Event]:
        with self.asked("GET", f"/v1/jobs/{job_id}/events", None, headers, key) as response:
            assert response.status == 200
            assert response.getheader("Content-Type") == "text/event-stream"
            yield from read_events(response)

    def wait_until(self, is_so, seconds=30):
        end = time.monotonic() + seconds
        while not is_so():
            assert time.monotonic() < end, "it did not come about"
            time.sleep(0.02)


def read_events(response) -> Iterator[Event]:
    fields: dict[str, str] = {}
    for raw in response:
        line = raw.decode().rstrip("\n")
        if line.startswith(":"):
            continue
        if line:
            name, _, value = line.partition(": ")
            fields[name] = value
        elif fields:
            number = int(fields["id"]) if "id" in fields else None
            yield Event(fields["event"], json.loads(fields["data"]), number)
            fields = {}


def png_size(file: bytes) -> tuple[int, int]:
    assert file.startswith(b"\x89PNG\r\n\x1a\n")
    return struct.unpack(">II", file[16:24])


def decoded(text: str) -> bytes:
    return base64.b64decode(text, validate=True)


@contextlib.contextmanager
def serving(*flags: object, program: Path = BUILD / "octet",
            warm_up: bool = False) -> Iterator[Server]:
    """A server with these flags, until the end of the block."""
    assert program.is_file(), f"{program} is not there; run `make test`, or set OCTET_BUILD_DIR"
    process = subprocess.Popen(
        [program, "serve", "--port", "0", "--device", "cpu", "--no-state", "--grace", "0",
         *([] if warm_up else ["--no-warm-up"]), *map(str, flags)],
        stderr=subprocess.PIPE, text=True)
    first = process.stderr.readline()
    if "this build has no server" in first:
        process.wait()
        pytest.skip("libmicrohttpd was not there when this was built: " + first.strip())
    listens = LISTENS.match(first)
    assert listens, first + process.stderr.read()
    server = Server(process, listens[2], int(listens[3]))
    reader = threading.Thread(target=lambda: server.log.extend(process.stderr), daemon=True)
    reader.start()
    try:
        if listens[1] == "http":
            server.wait_until(lambda: server.get("/ready").status == 200)
        yield server
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            assert process.wait(timeout=30) == 0, "".join(server.log)
        finally:
            process.kill()
            reader.join()


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    with serving() as running:
        yield running
