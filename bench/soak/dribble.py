"""What connections that send a byte per second cost those who do not."""

from __future__ import annotations

import asyncio
import json
import os
import random
import statistics
import subprocess
import sys
import time
from pathlib import Path

from . import report
from .server import Server
from .wire import HOST, Lost, Wire

LIGHT_PER_S = 60  # ordinary requests; with even gaps, whether or not the last one is answered
WORST = 1.10  # of the p95 without dribblers
PORTION = 50  # connections that are opened at once


def light_request(number: int) -> tuple[str, str, bytes | None]:
    path = ("/v1/models", "/v1/jobs?limit=5", "/v1/captions/check")[number % 3]
    if path.endswith("check"):
        return "POST", path, b'{"caption": {"high_level_description": "a square"}}'
    return "GET", path, None


async def light_traffic(server: Server, seconds: float, taken: list[float]) -> None:
    headers = {"Host": "localhost", "Authorization": f"Bearer {server.keys['anna']}",
               "Content-Type": "application/json"}
    wires: list[Wire] = []

    async def one(number: int) -> None:
        wire = wires.pop() if wires else await Wire(server.port).connect()
        answer = await wire.ask(*light_request(number)[:2], headers, light_request(number)[2])
        assert answer.status == 200, answer
        taken.append(answer.seconds)
        wires.append(wire)

    begin = time.perf_counter()
    async with asyncio.TaskGroup() as tasks:
        for number in range(int(seconds * LIGHT_PER_S)):
            await asyncio.sleep(max(begin + number / LIGHT_PER_S - time.perf_counter(), 0))
            tasks.create_task(one(number))
    for wire in wires:
        wire.close()


async def pictures(server: Server, seconds: float, taken: list[float]) -> None:
    headers = {"Host": "localhost", "Authorization": f"Bearer {server.keys['anna']}",
               "Content-Type": "application/json"}
    wire = await Wire(server.port).connect()
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        body = json.dumps({"prompt": "a red square", "size": "16x16", "steps": 1}).encode()
        answer = await wire.ask("POST", "/v1/images/generations", headers, body)
        assert answer.status == 200, answer
        taken.append(answer.seconds)
        await asyncio.sleep(0.05)
    wire.close()


async def one_dribbler(port: int, key: str) -> None:
    """Half of a head or of a body; connects again when the server has had enough of it."""
    head = (f"POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {key}\r\n"
            f"Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n")
    while True:
        text = b"POST /v1/jobs HTTP/1.1\r\nX-Slow: " + b"a" * 200
        wire = Wire(port)
        try:
            await wire.connect()
            if random.random() < 0.5:
                await wire.send(head.encode())
                text = b'{"prompt": "' + b"a" * 200
            for at in range(len(text)):
                await wire.send(text[at:at + 1])
                await asyncio.sleep(1)
                if wire.reader.at_eof():
                    break
        except (OSError, Lost):
            await asyncio.sleep(1)
        finally:
            wire.close()


async def dribblers(port: int, key: str, count: int) -> None:
    """A process of its own that others go before: what it costs to be a thousand clients is not to
    be measured."""
    os.nice(19)
    tasks = []
    for number in range(count):
        tasks.append(asyncio.create_task(one_dribbler(port, key)))
        if number % PORTION == 0:
            await asyncio.sleep(PORTION / count)  # all within a second, and then evenly
    print("ready", flush=True)
    await asyncio.gather(*tasks)


async def measured(server: Server, seconds: float) -> dict[str, list[float]]:
    taken = {"ordinary requests": [], "pictures": []}
    await asyncio.gather(light_traffic(server, seconds, taken["ordinary requests"]),
                         pictures(server, seconds, taken["pictures"]))
    return taken


async def measured_beside(server: Server, count: int, seconds: float) -> dict[str, list[float]]:
    command = [sys.executable, "-m", "soak.dribble", str(server.port), server.keys["bert"],
               str(count)]
    with subprocess.Popen(command, cwd=Path(__file__).parents[1], stdout=subprocess.PIPE) as other:
        try:
            await asyncio.to_thread(other.stdout.readline)
            await asyncio.sleep(1)
            taken = await measured(server, seconds)
            files = server.sample().files
            print(f"  {files} files are open in the server", flush=True)
            if files < count * 0.9:
                raise RuntimeError(f"the server holds {files} connections, expected {count}")
        finally:
            other.kill()
    await asyncio.sleep(1)
    return taken


async def run(arguments, folder: Path) -> bool:
    server = Server(arguments.program, folder, ["anna", "bert"],
                    ["--quiet", "--max-connections", str(arguments.dribble + 500)])
    await server.start()
    rounds: list[tuple[dict, dict]] = []
    try:
        await measured(server, 2)  # caches and pages
        for number in range(arguments.rounds):
            # Turn about, so that what else changes on the machine meets both.
            if number % 2 == 0:
                without = await measured(server, arguments.seconds)
                beside = await measured_beside(server, arguments.dribble, arguments.seconds)
            else:
                beside = await measured_beside(server, arguments.dribble, arguments.seconds)
                without = await measured(server, arguments.seconds)
            rounds.append((without, beside))
    finally:
        server.kill()
    return verdict(rounds, arguments.dribble)


def verdict(rounds: list[tuple[dict, dict]], count: int) -> bool:
    print(f"{'p95 in ms, without / beside ' + str(count) + ' that dribble':<58}{'medians':>16}")
    is_good = True
    for kind in rounds[0][0]:
        pairs = [tuple(1e3 * report.share(side[kind], 0.95) for side in pair) for pair in rounds]
        before, after = (statistics.median(each) for each in zip(*pairs, strict=True))
        shown = " ".join(f"{a:.1f}/{b:.1f}" for a, b in pairs)
        print(f"{kind:<20}{shown:<38}{before:>7.2f}/{after:.2f}"
              f"  {100 * (after / before - 1):+.1f} %")
        is_good &= after <= before * WORST
    print(f"verdict: {'passed' if is_good else 'failed'}: at most {100 * (WORST - 1):.0f} % more")
    return is_good


if __name__ == "__main__":
    assert HOST == "127.0.0.1"
    asyncio.run(dribblers(int(sys.argv[1]), sys.argv[2], int(sys.argv[3])))
