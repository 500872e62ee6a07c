#!/usr/bin/env python3
"""Ordinary requests beside a thousand connections that dribble, and as many streams as can be.

    lab/server/compare.py PROGRAM...

A PROGRAM prints its port, answers /hello at once, and sends one event of /events. For each one a
row of the table in README.md; in all about half a minute for each. Python's standard library alone.
"""

from __future__ import annotations

import asyncio
import os
import resource
import subprocess
import sys
import time
from pathlib import Path

DRIBBLING = 1000
CLIENTS = 8
PAUSE_S = 0.01  # of a client between two requests: 800 a second keep no processor busy
STREAMS = 1000
MEASURED_S = 5.0
PATIENCE_S = 5.0
HELLO = b"GET /hello HTTP/1.1\r\nHost: localhost\r\n\r\n"


def status_of(pid: int) -> tuple[int, float]:
    """Threads, and resident memory in MiB."""
    fields = dict(
        line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines()
    )
    return int(fields["Threads"]), int(fields["VmRSS"].split()[0]) / 1024


async def ask_again_and_again(port: int, until: float, times: list[float]) -> int:
    """One client; appends the milliseconds of each request, returns how many failed."""
    failed, reader, writer = 0, None, None
    while time.monotonic() < until:
        start = time.monotonic()
        try:
            async with asyncio.timeout(PATIENCE_S):
                if writer is None:
                    reader, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.write(HELLO)
                head = await reader.readuntil(b"\r\n\r\n")
                length = next(
                    int(line[15:])
                    for line in head.split(b"\r\n")
                    if line.lower().startswith(b"content-length:")
                )
                await reader.readexactly(length)
            times.append((time.monotonic() - start) * 1000)
            if b"connection: close" in head.lower():
                writer.close()
                writer = None
            await asyncio.sleep(PAUSE_S)
        except (OSError, TimeoutError, asyncio.IncompleteReadError):
            # One that a server has closed between two requests is no failure; a silent one is.
            failed += time.monotonic() - start >= PATIENCE_S
            if writer is not None:
                writer.close()
            writer = None
    if writer is not None:
        writer.close()
    return failed


async def ordinary(port: int) -> str:
    times: list[float] = []
    until = time.monotonic() + MEASURED_S
    failed = sum(
        await asyncio.gather(*(ask_again_and_again(port, until, times) for _ in range(CLIENTS)))
    )
    times.sort()
    if not times:
        return f"none of {failed} answered"
    p50, p95 = (times[int(len(times) * share)] for share in (0.5, 0.95))
    text = f"{p50:.2f} / {p95:.2f} ms, {len(times) / MEASURED_S:.0f}/s"
    return text + (f", {failed} unanswered" if failed else "")


async def dribble(port: int) -> None:
    """Runs until it is killed: a process of its own, so that it costs the clients nothing."""

    async def one() -> None:
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"GET /hello HTTP/1.1\r\nHost: localhost\r\nX-Slow: ")
            while True:
                await asyncio.sleep(1)
                writer.write(b"a")
        except OSError:
            return

    tasks = []
    for _ in range(DRIBBLING):
        tasks.append(asyncio.create_task(one()))
        await asyncio.sleep(0.0005)
    await asyncio.gather(*tasks)


async def first_event(port: int) -> asyncio.StreamWriter | None:
    try:
        async with asyncio.timeout(PATIENCE_S):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n")
            await reader.readuntil(b"data: first\n\n")
            return writer
    except (OSError, TimeoutError, asyncio.IncompleteReadError):
        return None


async def measure(program: str) -> None:
    server = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    port = int(server.stdout.readline())
    print(f"{Path(program).name}\n  alone: {await ordinary(port)}")
    print("  {} threads, {:.0f} MiB".format(*status_of(server.pid)))

    slow = subprocess.Popen([sys.executable, __file__, "--dribble", str(port)])
    await asyncio.sleep(3)
    print(f"  beside {DRIBBLING} that dribble: {await ordinary(port)}")
    print("  {} threads, {:.0f} MiB".format(*status_of(server.pid)))
    slow.kill()
    slow.wait()
    server.stdin.close()
    if wait_for(server) is None:
        server.kill()

    server = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    port = int(server.stdout.readline())
    streams = await asyncio.gather(*(first_event(port) for _ in range(STREAMS)))
    held = sum(stream is not None for stream in streams)
    print(f"  streams that had their first event: {held} of {STREAMS}")
    print("  {} threads, {:.0f} MiB".format(*status_of(server.pid)))
    print(f"  beside them: {await ordinary(port)}", flush=True)
    server.kill()
    server.wait()


def wait_for(process: subprocess.Popen) -> int | None:
    try:
        return process.wait(5)
    except subprocess.TimeoutExpired:
        return None


def main() -> int:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard if hard > 0 else soft, hard))
    if sys.argv[1:2] == ["--dribble"]:
        asyncio.run(dribble(int(sys.argv[2])))
        return 0
    if len(sys.argv) < 2:
        print(__doc__, file=sys.stderr)
        return 2
    print(f"{os.cpu_count()} processors")
    for program in sys.argv[1:]:
        asyncio.run(measure(program))
    return 0


if __name__ == "__main__":
    sys.exit(main())
