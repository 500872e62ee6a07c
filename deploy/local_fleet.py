#!/usr/bin/env python3
"""Several workers behind HAProxy on this machine, to try things and for the tests.

    deploy/local_fleet.py build/octet --workers 2 -- --threads 1

runs until Ctrl-C. Everything listens on 127.0.0.1; what follows -- goes to each `octet serve`.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

# Before a command: it is killed when who started it has ended, however that was.
DIE_WITH_PARENT = ("setpriv", "--pdeathsig", "KILL")
CONFIGURE = Path(__file__).parent / "haproxy" / "configure.py"


def split_arguments() -> tuple[list[str], list[str]]:
    """Those of this program, and what follows --."""
    words = sys.argv[1:]
    at = words.index("--") if "--" in words else len(words)
    return words[:at], words[at + 1:]


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def ask(port: int, method: str, path: str, body: object = None, headers: dict | None = None,
        timeout: float = 120, host: str = "127.0.0.1") -> tuple[int, dict, bytes]:
    """Status, headers (names in small letters) and body."""
    connection = http.client.HTTPConnection(host, port, timeout=timeout)
    try:
        text = None if body is None else json.dumps(body)
        kind = {} if body is None else {"Content-Type": "application/json"}
        connection.request(method, path, text, {**kind, **(headers or {})})
        answer = connection.getresponse()
        return (answer.status, {name.lower(): value for name, value in answer.getheaders()},
                answer.read())
    finally:
        connection.close()


def tell(proxy_socket: Path, command: str) -> str:
    """What HAProxy answers to a command on its admin socket."""
    with socket.socket(socket.AF_UNIX) as admin:
        admin.settimeout(5)
        admin.connect(str(proxy_socket))
        admin.sendall(command.encode() + b"\n")
        return b"".join(iter(lambda: admin.recv(65536), b"")).decode()


def wait_until(is_true, seconds: float, what: str) -> None:
    end = time.monotonic() + seconds
    while not is_true():
        if time.monotonic() > end:
            raise TimeoutError(f"expected {what} within {seconds:g} s")
        time.sleep(0.05)


def answers(port: int, path: str = "/ready") -> bool:
    try:
        return ask(port, "GET", path, timeout=2)[0] == 200
    except (OSError, http.client.HTTPException):
        return False


class Worker:
    """An `octet serve` that keeps its name, port and folder over restarts."""

    def __init__(self, program: Path, name: str, folder: Path, arguments: list[str]):
        self.name, self.port = name, free_port()
        self.log = folder / f"{name}.log"
        self.command = [*DIE_WITH_PARENT, str(program), "serve", "--name", name,
                        "--port", str(self.port), "--state", str(folder / f"{name}.state"),
                        *arguments]
        self.process: subprocess.Popen | None = None

    def start(self) -> None:
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(self.command, stdout=log, stderr=log)

    def wait_ready(self, seconds: float = 60) -> None:
        def is_ready() -> bool:
            if self.process.poll() is not None:
                raise RuntimeError(f"{self.name} ended: {self.log.read_text()[-500:]}")
            return answers(self.port)

        wait_until(is_ready, seconds, f"{self.name} to be ready")

    def send(self, which: signal.Signals) -> None:
        self.process.send_signal(which)

    def end(self) -> None:
        if self.process and self.process.poll() is None:
            self.process.kill()
        if self.process:
            self.process.wait()


class Proxy:
    """HAProxy before these workers, with deploy/haproxy's configuration."""

    def __init__(self, workers: list[Worker], folder: Path, queue: str = "60s"):
        self.workers, self.queue = workers, queue
        self.port, self.metrics_port = free_port(), free_port()
        self.socket = folder / f"haproxy-{self.port}.sock"
        self.config, self.log = self.socket.with_suffix(".cfg"), self.socket.with_suffix(".log")
        self.process: subprocess.Popen | None = None

    def start(self) -> None:
        names = [f"{worker.name}=127.0.0.1:{worker.port}" for worker in self.workers]
        self.config.write_bytes(subprocess.run(
            [sys.executable, CONFIGURE, "--queue", self.queue, *names],
            check=True, capture_output=True).stdout)
        environment = {**os.environ, "OCTET_LISTEN": f"127.0.0.1:{self.port}",
                       "OCTET_METRICS_LISTEN": f"127.0.0.1:{self.metrics_port}",
                       "OCTET_PROXY_SOCKET": str(self.socket)}
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [*DIE_WITH_PARENT, find_haproxy(), "-db", "-f", self.config], stdout=log,
                stderr=log, env=environment)
        wait_until(lambda: answers(self.port, "/health"), 10, "HAProxy to answer")

    def end(self) -> None:
        if self.process:
            self.process.kill()
            self.process.wait()

    def sees(self, name: str, backend: str = "gpus") -> bool:
        """True if it counts this worker as ready (for `idle`: as doing nothing)."""
        for line in tell(self.socket, "show stat -1 4 -1").splitlines():
            fields = line.split(",")
            if fields[:2] == [backend, name]:
                return fields[17].startswith("UP")
        return False


class Fleet:
    """Workers w0, w1, ... and HAProxy before them, ready within `with`."""

    def __init__(self, program: Path, count: int, folder: Path,
                 arguments: list[str] | None = None):
        self.folder = folder
        self.workers = [Worker(program, f"w{index}", folder, arguments or [])
                        for index in range(count)]
        self.proxy = Proxy(self.workers, folder)
        self.port = self.proxy.port

    def __enter__(self) -> Fleet:
        try:
            for worker in self.workers:
                worker.start()
            self.proxy.start()
            for worker in self.workers:
                worker.wait_ready()
            for worker in self.workers:
                wait_until(lambda name=worker.name: self.proxy.sees(name), 10,
                           f"HAProxy to see {worker.name}")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_) -> None:
        self.proxy.end()
        for worker in self.workers:
            worker.end()


def find_haproxy() -> str | None:
    return shutil.which("haproxy") or shutil.which("haproxy", path="/usr/sbin:/usr/local/sbin")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program", type=Path, help="octet")
    parser.add_argument("--workers", type=int, default=2)
    own, of_octet = split_arguments()
    arguments = parser.parse_args(own)
    if not find_haproxy():
        parser.error("haproxy is not installed; to install it: apt-get install haproxy")
    with tempfile.TemporaryDirectory(prefix="octet-fleet-") as folder:
        fleet = Fleet(arguments.program, arguments.workers, Path(folder), of_octet)
        try:
            with fleet:
                print(f"http://127.0.0.1:{fleet.port} with {arguments.workers} workers; "
                      "Ctrl-C ends it", flush=True)
                signal.pause()
        except KeyboardInterrupt:
            return 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
