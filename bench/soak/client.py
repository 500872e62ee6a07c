"""One of the many clients: a key, a connection that it keeps, and what it does with answers."""

from __future__ import annotations

import asyncio
import json
import random
import time
from dataclasses import dataclass, field

from .ledger import Ledger, Noted
from .server import Server
from .wire import Answer, Lost, Wire, WrongAnswer

SMALLEST = "16x16"
POLL_S = (0.5, 2.0)
JOB_S = 300  # until a job of this traffic has ended
RESTART_S = 1.0  # an answer that is lost this long before an end is asked for is lost by it


class Interrupted(Exception):
    """The server is being restarted: whatever was under way is over."""


@dataclass
class World:
    server: Server
    ledger: Ledger
    requests: int
    spent: int = 0
    keep_s: float = 3600
    formats: list[str] = field(default_factory=list)  # that the server writes

    @property
    def life(self) -> int:
        return len(self.server.lives)

    @property
    def is_over(self) -> bool:
        return self.spent >= self.requests


class Client:
    def __init__(self, world: World, index: int):
        names = list(world.server.keys)
        self.world, self.ledger, self.server = world, world.ledger, world.server
        self.name = names[index % len(names)]
        self.key = world.server.keys[self.name]
        self.random = random.Random(index)
        self.wire = Wire(0)

    def headers(self, key: str | None = None) -> dict[str, str]:
        return {"Host": "localhost", "Authorization": f"Bearer {key or self.key}",
                "Content-Type": "application/json"}

    async def fresh_wire(self, receive_buffer: int = 0) -> Wire:
        begin = time.monotonic()
        try:
            return await Wire(self.server.port, self.world.life).connect(receive_buffer)
        except OSError as error:
            self.lost(begin, f"connecting: {error}")
            raise

    async def connected(self) -> Wire:
        if not self.wire.is_open:
            self.wire.close()
            self.wire = await self.fresh_wire()
        return self.wire

    def lost(self, begin: float, what: str) -> None:
        """Raises Interrupted if a restart explains it."""
        if self.server.is_down_since(begin - RESTART_S):
            raise Interrupted
        self.ledger.fault(f"{what}, without a restart")
        raise Interrupted

    def count(self) -> None:
        self.world.spent += 1

    async def ask(self, kind: str, method: str, path: str, body: object = None, *,
                  expect: tuple[int, ...] = (200,), headers: dict | None = None,
                  key: str | None = None) -> Answer:
        """One request on the kept connection, judged by what every answer must be."""
        data = None if body is None else body if isinstance(body, bytes) else json.dumps(
            body).encode()
        self.count()
        begin = time.monotonic()
        wire = await self.connected()
        try:
            answer = await wire.ask(method, path, {**self.headers(key), **(headers or {})}, data)
        except (Lost, TimeoutError, WrongAnswer) as error:
            self.wire.close()
            self.lost(begin, f"{method} {path}: {error or 'no answer in time'}")
        return self.judge(kind, method, path, answer, begin, expect)

    def judge(self, kind: str, method: str, path: str, answer: Answer, begin: float,
              expect: tuple[int, ...]) -> Answer:
        self.ledger.answered(kind, method, path, answer)
        if answer.status == 503 and self.server.is_down_since(begin - RESTART_S):
            raise Interrupted
        if answer.status not in expect:
            self.ledger.fault(f"{method} {path}: {answer.status}, expected "
                              f"{' or '.join(map(str, expect))}: {answer.body[:200]!r}")
        return answer

    # --- jobs ---

    def picture_request(self, **more) -> dict:
        return {"json_prompt": self.ledger.new_prompt(self.name), "size": SMALLEST, "steps": 1,
                "seed": self.random.getrandbits(48), **more}

    async def submit(self, request: dict, headers: dict | None = None) -> Noted | None:
        """Nothing when the queue is full."""
        answer = await self.ask("job: submit", "POST", "/v1/jobs", request, headers=headers,
                                expect=(202, 429))
        if answer.status != 202:
            await asyncio.sleep(self.random.uniform(0.1, 0.5))
            return None
        job = answer.json
        if answer.headers.get("location") != f"/v1/jobs/{job['id']}":
            self.ledger.fault(f"202 with the location {answer.headers.get('location')!r}")
        return self.ledger.take(self.name, job, request["json_prompt"], request["seed"],
                                answer.life)

    async def show(self, noted: Noted) -> dict | None:
        """Nothing once it is deleted or its time is over."""
        answer = await self.ask("job: show", "GET", f"/v1/jobs/{noted.id}", expect=(200, 404))
        if answer.status == 404:
            kept_until = (noted.ended_at or time.monotonic()) + self.world.keep_s
            is_gone = noted.deleted or noted.may_be_gone
            if not is_gone and time.monotonic() < kept_until:
                self.ledger.fault(f"job {noted.id} ({noted.end or 'under way'}) is lost: 404")
            return None
        if noted.deleted:
            self.ledger.fault(f"job {noted.id} was deleted, and is there again")
        self.ledger.see(self.name, answer.json, answer.life)
        return answer.json

    async def wait(self, noted: Noted) -> dict | None:
        end = time.monotonic() + JOB_S
        while time.monotonic() < end:
            job = await self.show(noted)
            if job is None or noted.end:
                return job
            await asyncio.sleep(self.random.uniform(*POLL_S))
        self.ledger.fault(f"job {noted.id} has not ended within {JOB_S} s")
        return None

    async def fetch(self, noted: Noted, picture: dict) -> None:
        headers = {"If-None-Match": '"nothing"'} if self.random.random() < 0.2 else None
        answer = await self.ask("picture", "GET", picture["url"], headers=headers,
                                expect=(200, 404))
        if answer.status == 404:
            return self.explain_missing(noted, "picture", answer)
        if len(answer.body) != picture["bytes"]:
            self.ledger.fault(f"{picture['url']} has {len(answer.body)} bytes, expected "
                              f"{picture['bytes']}")
        if picture["format"] == "png":
            self.ledger.check_png(answer.body, noted.prompt, picture["seed"], picture["url"])
        if self.random.random() < 0.2:
            await self.ask("picture: known", "GET", picture["url"],
                           headers={"If-None-Match": answer.headers["etag"]}, expect=(304,))
        return None

    def explain_missing(self, noted: Noted, what: str, answer: Answer) -> None:
        """A restart between two answers loses pictures; nothing else does."""
        if noted.end_life == answer.life and not noted.deleted:
            self.ledger.fault(f"{what} of job {noted.id} is missing")

    async def delete(self, noted: Noted) -> None:
        """Cancels, or forgets what has ended."""
        had_ended = bool(noted.end)
        noted.asked_to_stop = noted.may_be_gone = True
        answer = await self.ask("job: delete", "DELETE", f"/v1/jobs/{noted.id}",
                                expect=(200, 404))
        if answer.status == 404:
            return self.explain_missing(noted, "the record", answer)
        noted.may_be_gone = False
        noted.deleted = had_ended
        self.ledger.see(self.name, answer.json, answer.life)
        # It may have ended between the last look and now; then it is forgotten.
        noted.deleted |= answer.json["state"] in ("completed", "failed")
        return None
