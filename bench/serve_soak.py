#!/usr/bin/env python3
"""`octet serve` under many clients with faults and two restarts: is anything lost, mixed up or
leaked?

    bench/serve_soak.py [build/octet] [--requests 10000] [--clients 64] [--folder F]
    bench/serve_soak.py --dribble 1000      what connections that dribble bytes cost the others

Starts the server itself, on 127.0.0.1 with the small model on the CPU. Ends with 1 on any
violation: a job that is not found within its keep time or ends in two ways, a picture of another
request or for another key, an answer that is not as /openapi.json says or does not come, memory,
threads or files that grow. Goals of time are reported, not judged: what else runs on the machine
decides them, too.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import re
import signal
import sys
import tempfile
import time
from pathlib import Path

from soak import dribble, report
from soak.client import Client, Interrupted, World
from soak.faults import FAULTS
from soak.ledger import Ledger, Noted
from soak.schema import Schemas
from soak.server import Server
from soak.traffic import VISITS

ROOT = Path(__file__).resolve().parents[1]
NAMES = ["anna", "bert", "clara", "dora", "emil", "frida", "gustav", "hilde"]
TERM_AT, KILL_AT = 0.2, 0.4  # of the requests
GRACE_S = 1
AUDIT_S = 2.0
FAULT_SHARE = 0.3
QUIET_S = 60  # until the last job has ended


async def one_client(client: Client) -> None:
    visits, faults = list(VISITS), list(FAULTS)
    weights = list(VISITS.values()), list(FAULTS.values())
    while not client.world.is_over:
        is_fault = client.random.random() < FAULT_SHARE
        visit, = client.random.choices(faults if is_fault else visits, weights[is_fault])
        try:
            await visit(client)
        except (Interrupted, OSError):
            await client.server.is_up.wait()
    client.wire.close()


async def restarts(world: World) -> None:
    """One that is announced, and one that is not."""
    for at, which in ((TERM_AT, signal.SIGTERM), (KILL_AT, signal.SIGKILL)):
        while world.spent < at * world.requests:
            await asyncio.sleep(0.02)
        seconds = await world.server.stop(which)
        if which == signal.SIGTERM and (world.server.exits[-1] != 0 or seconds > GRACE_S + 10):
            world.ledger.fault(f"SIGTERM: {world.server.exits[-1]} after {seconds:.1f} s")
        await world.server.start()
        print(f"  {which.name} after {world.spent} requests: ended within {seconds:.2f} s, "
              f"started again", flush=True)


class Auditor:
    """Asks after every job until its end is known, and again after each restart."""

    def __init__(self, world: World):
        self.world, self.kept_bytes = world, []
        self.clients = {name: Client(world, index) for index, name in
                        enumerate(world.server.keys)}

    async def run(self) -> None:
        while True:
            await asyncio.sleep(AUDIT_S)
            with contextlib.suppress(Interrupted, OSError):
                await self.round(AUDIT_S)

    async def round(self, older_than: float) -> None:
        for noted in list(self.world.ledger.jobs.values()):
            now = time.monotonic()
            is_due = not noted.end or (noted.end_life < self.world.life and not noted.deleted
                                       and now < noted.ended_at + self.world.keep_s - AUDIT_S)
            if is_due and now - noted.noted_at > older_than and not noted.may_be_gone:
                await self.clients[noted.owner].show(noted)
        self.kept_bytes.append(await self.number("octet_results_bytes"))

    async def number(self, name: str) -> int:
        client = next(iter(self.clients.values()))
        answer = await client.ask("models, health, metrics", "GET", "/metrics")
        return int(float(re.search(rf"^{name} (\S+)$", answer.body.decode(), re.MULTILINE)[1]))

    async def last_round(self) -> None:
        """All jobs have ended, and every client can still list its own."""
        ledger = self.world.ledger
        end = time.monotonic() + QUIET_S
        while await self.number("octet_queue_depth") + await self.number("octet_jobs_running"):
            if time.monotonic() > end:
                ledger.fault(f"jobs still wait or run {QUIET_S} s after the last client has left")
                break
            await asyncio.sleep(0.2)
        await self.round(0)
        for name, client in self.clients.items():
            answer = await client.ask("job: list", "GET", "/v1/jobs?limit=1000")
            for job in answer.json["data"]:
                ledger.see(name, job, answer.life)
                if job["state"] in ("queued", "running"):
                    ledger.fault(f"job {job['id']} is {job['state']} after the end")
            client.wire.close()
        for noted in ledger.jobs.values():
            if not noted.end and not noted.may_be_gone:
                ledger.fault(f"job {noted.id} has no end")


async def soak(world: World, clients: int) -> float:
    server, ledger = world.server, world.ledger
    await server.start()
    first = Client(world, 0)
    wire = await first.fresh_wire()
    document = await wire.ask("GET", "/openapi.json", first.headers())
    ledger.schemas = Schemas(document.json)
    models = await wire.ask("GET", "/v1/models", first.headers())
    world.formats = models.json["data"][0]["octet"]["formats"]
    wire.close()
    auditor = Auditor(world)
    begin = time.monotonic()
    async with asyncio.TaskGroup() as tasks:
        helpers = [tasks.create_task(server.watch()), tasks.create_task(auditor.run())]
        visitors = [tasks.create_task(one_client(Client(world, index)))
                    for index in range(clients)]
        await asyncio.gather(tasks.create_task(restarts(world)), *visitors)
        seconds = time.monotonic() - begin
        helpers[1].cancel()
        for client in auditor.clients.values():
            client.wire.close()
        await auditor.last_round()
        await asyncio.sleep(1)
        helpers[0].cancel()
    check_process(world, auditor)
    return seconds


def check_process(world: World, auditor: Auditor) -> None:
    server = world.server
    last = server.sample()
    server.lives[-1].append(last)
    for fault in report.memory_faults(server.lives[-1], auditor.kept_bytes):
        world.ledger.fault(fault)
    before = server.lives[-1][0].files
    if last.files > before + report.SPARE_FILES:
        world.ledger.fault(f"{last.files} files are open after the last client has left, "
                           f"{before} at the start")


async def run_soak(arguments, folder: Path) -> bool:
    server = Server(arguments.program, folder, NAMES,
                    ["--grace", str(GRACE_S), "--keep-for", str(arguments.keep), "--threads", "2",
                     *arguments.server])
    world = World(server, Ledger(), arguments.requests, keep_s=arguments.keep)
    try:
        seconds = await soak(world, arguments.clients)
        took = await server.stop(signal.SIGTERM)
        if server.exits[-1] != 0 or took > GRACE_S + 10:
            world.ledger.fault(f"the last end: {server.exits[-1]} after {took:.1f} s")
    finally:
        server.kill()
    return report.show(world.ledger, server, seconds, world.spent)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0],
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", nargs="?", type=Path, default=ROOT / "build/octet")
    parser.add_argument("--requests", type=int, default=10000)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--keep", type=float, default=45, help="seconds that results are kept")
    parser.add_argument("--dribble", type=int, default=0, metavar="CONNECTIONS")
    parser.add_argument("--rounds", type=int, default=5, help="of --dribble")
    parser.add_argument("--seconds", type=float, default=8, help="of a round of --dribble")
    parser.add_argument("--folder", type=Path, help="for state and log (default: a temporary one)")
    parser.add_argument("--server", nargs=argparse.REMAINDER, default=[],
                        help="flags for octet serve")
    return parser.parse_args()


def main() -> int:
    arguments = parse()
    with contextlib.ExitStack() as stack:
        folder = arguments.folder or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        folder.mkdir(parents=True, exist_ok=True)
        run = dribble.run(arguments, folder) if arguments.dribble else run_soak(arguments, folder)
        return 0 if asyncio.run(run) else 1


if __name__ == "__main__":
    sys.exit(main())
