#!/usr/bin/env python3
"""Restarts workers behind HAProxy one after the other, so that no request fails.

    deploy/haproxy/rolling_restart.py w0=127.0.0.1:8700 w1=127.0.0.1:8701 \\
        -- systemctl restart 'octet@{number}'

Each gets no new work, finishes what it has, stays for --linger seconds so that clients fetch their
pictures (a worker that ends takes them with it), is restarted and, once ready, gets work again.
{name} and {number} in the command are w0 and 0. Stops at the first worker that does not come back.
"""

from __future__ import annotations

import argparse
import http.client
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from local_fleet import ask, split_arguments, tell, wait_until  # noqa: E402

CHECKED = ("gpus", "idle", "short")  # the other backends follow these
METRIC = re.compile(r"^(octet_\w+) ([0-9.e+-]+)$", re.MULTILINE)


def metrics(address: str) -> dict[str, float]:
    """Those without labels; none while nobody answers."""
    host, _, port = address.rpartition(":")
    key = os.environ.get("OCTET_CHECK_KEY")
    try:
        status, _, body = ask(int(port), "GET", "/metrics", timeout=5, host=host,
                              headers={"Authorization": f"Bearer {key}"} if key else None)
    except (OSError, http.client.HTTPException):
        return {}
    found = METRIC.findall(body.decode()) if status == 200 else []
    return {name: float(value) for name, value in found}


def has_no_jobs(address: str) -> bool:
    now = metrics(address)
    return now.get("octet_queue_depth") == 0 and now.get("octet_jobs_running") == 0


def roll(socket: Path, name: str, address: str, restart: Callable[[], None], linger: float = 5,
         seconds: float = 900) -> None:
    """One worker; `seconds` for its jobs to end, and again for it to come back."""
    for backend in CHECKED:
        answer = tell(socket, f"set server {backend}/{name} state drain").strip()
        if answer:
            raise RuntimeError(f"HAProxy does not let go of {name}: {answer}")
    # What HAProxy had just sent shows in the worker's metrics within a second.
    time.sleep(1)
    wait_until(lambda: has_no_jobs(address), seconds, f"{name} to have no jobs")
    time.sleep(linger)
    wait_until(lambda: has_no_jobs(address), seconds, f"{name} to have no jobs")
    before = metrics(address).get("octet_start_time_seconds")
    restart()

    def is_back() -> bool:
        now = metrics(address)
        return now.get("octet_ready") == 1 and now["octet_start_time_seconds"] != before

    wait_until(is_back, seconds, f"{name} to be ready again")
    for backend in CHECKED:
        tell(socket, f"set server {backend}/{name} state ready")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("workers", nargs="+", metavar="NAME=HOST:PORT")
    parser.add_argument("--socket", type=Path, default=Path("/run/haproxy/octet.sock"))
    parser.add_argument("--linger", type=float, default=5)
    own, command = split_arguments()
    arguments = parser.parse_args(own)
    if not command:
        parser.error("expected the command that restarts a worker, after --")
    for worker in arguments.workers:
        name, _, address = worker.partition("=")
        number = re.sub(r"[^0-9]", "", name)
        words = [word.format(name=name, number=number) for word in command]
        print(f"{name}: no new work", flush=True)
        try:
            roll(arguments.socket, name, address,
                 lambda words=words: subprocess.run(words, check=True), arguments.linger)
        except (OSError, RuntimeError, subprocess.CalledProcessError) as why:
            print(f"rolling_restart.py: {name}: {why}; it gets no work until `set server ... state "
                  "ready`", file=sys.stderr)
            return 1
        print(f"{name}: restarted", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
