"""What was asked for, what came back, and whether both fit: the judge of a soak."""

from __future__ import annotations

import json
import re
import struct
import time
from collections import Counter, defaultdict
from dataclasses import dataclass

from .schema import Schemas

ENDS = ("completed", "failed", "cancelled")
STATES = ("queued", "running", *ENDS)
ENGINE_SECONDS = ("text_s", "load_s", "denoise_s", "decode_s", "ahead_s")
MOST_SHOWN = 40

# In every prompt: whose it is, and the how-many-eth. The picture's own text has it again.
NONCE = re.compile(r"\b([a-z]+)x(\d+)x\b")


def texts_of_png(data: bytes) -> dict[str, str]:
    """The tEXt and iTXt chunks; raises ValueError for what is no whole PNG."""
    if data[:8] != b"\x89PNG\r\n\x1a\n":
        raise ValueError("no PNG signature")
    texts, at = {}, 8
    while at < len(data):
        length, kind = struct.unpack_from(">I4s", data, at)
        content = data[at + 8:at + 8 + length]
        if kind == b"tEXt":
            name, _, value = content.partition(b"\0")
            texts[name.decode()] = value.decode("latin-1")
        elif kind == b"iTXt":
            name, _, rest = content.partition(b"\0")
            texts[name.decode()] = rest[2:].split(b"\0", 2)[2].decode()
        elif kind == b"IEND":
            return texts
        at += 12 + length
    raise ValueError("no IEND")


@dataclass
class Noted:
    """A job that the server has taken."""
    id: str
    owner: str
    prompt: str
    seed: int
    life: int  # of the server: which of its processes took it
    noted_at: float
    end: str | None = None
    end_life: int = 0
    ended_at: float = 0  # when it was seen
    asked_to_stop: bool = False
    deleted: bool = False
    may_be_gone: bool = False  # the answer to a DELETE was lost


class Ledger:
    def __init__(self):
        self.schemas = Schemas({})
        self.jobs: dict[str, Noted] = {}
        self.violations: list[str] = []
        self.statuses: Counter = Counter()  # {(kind, status)}
        self.seconds: dict[str, list[float]] = defaultdict(list)
        self.first_event: list[float] = []
        self.beside_engine: list[float] = []  # seconds of a job's time that are not the engine's
        self.pictures = self.validated = self.serial = 0

    def fault(self, sentence: str) -> None:
        self.violations.append(sentence)
        if len(self.violations) <= MOST_SHOWN:
            print(f"  violation: {sentence}", flush=True)

    def new_prompt(self, owner: str) -> str:
        """A caption in JSON; of plain text, the small model keeps only words that it knows."""
        self.serial += 1
        return json.dumps({
            "high_level_description": f"a red square {owner}x{self.serial}x",
            "compositional_deconstruction": {"background": "white", "elements": [
                {"type": "obj", "bbox": [100, 100, 600, 600], "desc": "a red square"}]}})

    # --- answers ---

    def counted(self, kind: str, answer) -> None:
        self.statuses[kind, answer.status] += 1
        self.seconds[kind].append(answer.seconds)

    def answered(self, kind: str, method: str, path: str, answer) -> None:
        self.counted(kind, answer)
        if "x-request-id" not in answer.headers:
            self.fault(f"{method} {path}: {answer.status} without X-Request-Id")
        if answer.status >= 500 and answer.status not in (501, 503, 505):
            self.fault(f"{method} {path}: {answer.status} {answer.body[:200]!r}")
        if answer.status >= 400 and method != "HEAD" and path != "/ready":
            self.check_error(method, path, answer)
        if answer.status in (429, 503) and "retry-after" not in answer.headers and (
                path != "/ready"):
            self.fault(f"{method} {path}: {answer.status} without Retry-After")
        kind_of_body = answer.headers.get("content-type", "").split(";")[0]
        if answer.is_json or answer.status < 300:
            self.validated += 1
            body = method != "HEAD" and answer.status != 204
            for fault in self.schemas.answer_faults(method, path, answer.status,
                                                    kind_of_body if body else "", answer.json):
                self.fault(fault)

    def check_error(self, method: str, path: str, answer) -> None:
        error = answer.json.get("error") if isinstance(answer.json, dict) else None
        if not isinstance(error, dict) or set(error) != {"message", "type", "param", "code"}:
            self.fault(f"{method} {path}: {answer.status} is no error object: "
                       f"{answer.body[:200]!r}")

    # --- jobs ---

    def take(self, owner: str, job: dict, prompt: str, seed: int, life: int) -> Noted:
        noted = Noted(job["id"], owner, prompt, seed, life, time.monotonic())
        if job["id"] in self.jobs:
            self.fault(f"job {job['id']} was given out twice")
        self.jobs[job["id"]] = noted
        self.see(owner, job, life)
        return noted

    def see(self, owner: str, job: dict, life: int) -> None:
        """A job object, in whichever answer."""
        noted = self.jobs.get(job["id"])
        # A job from before a restart has no request any more.
        prompt = job["request"]["json_prompt"] or ""
        nonce = NONCE.search(prompt)
        if noted is None:
            # Of a client that left before it was told the id.
            if prompt and (nonce is None or nonce[1] != owner):
                self.fault(f"{owner} was shown a job of another: {prompt!r}")
            return
        if noted.owner != owner:
            self.fault(f"{owner} was shown the job {job['id']} of {noted.owner}")
        wanted = NONCE.search(noted.prompt)
        if prompt and (not nonce or nonce[0] != wanted[0] or job["request"]["seed"] != noted.seed):
            self.fault(f"job {job['id']} has the request {prompt!r}, expected {wanted[0]!r}")
        if job["state"] not in STATES:
            self.fault(f"job {job['id']} is {job['state']!r}")
        elif noted.end and job["state"] != noted.end:
            self.change_end(noted, job, life)
        elif noted.end:
            noted.end_life = max(noted.end_life, life)
        elif job["state"] in ENDS:
            self.note_end(noted, job, life)

    def note_end(self, noted: Noted, job: dict, life: int) -> None:
        noted.end, noted.end_life, noted.ended_at = job["state"], life, time.monotonic()
        if job["state"] == "failed":
            if (job["error"] or {}).get("code") != "restarted":
                self.fault(f"job {noted.id} failed: {job['error']}")
        if job["state"] == "cancelled" and not noted.asked_to_stop:
            self.fault(f"job {noted.id} is cancelled, which nobody asked for")
        if job["state"] == "completed":
            self.measure(job)

    def change_end(self, noted: Noted, job: dict, life: int) -> None:
        """An end stays, but for pictures that a restart has lost."""
        lost = noted.end == "completed" and job["state"] == "failed" and life > noted.end_life
        if not lost or job["error"]["code"] != "restarted":
            self.fault(f"job {noted.id} was {noted.end}, and is {job['state']} now")
        noted.end, noted.end_life = job["state"], life

    def measure(self, job: dict) -> None:
        engine = sum(job["report"][name] for name in ENGINE_SECONDS)
        self.beside_engine.append(job["ended_at"] - job["started_at"] - engine)

    # --- pictures ---

    def check_png(self, data: bytes, prompt: str, seed: int, where: str) -> None:
        self.pictures += 1
        try:
            texts = texts_of_png(data)
        except (ValueError, struct.error) as error:
            return self.fault(f"{where}: {error} in {len(data)} bytes")
        nonce = NONCE.search(prompt)[0]
        if nonce not in texts.get("caption", "") or texts.get("seed") != str(seed):
            self.fault(f"{where}: the picture of {texts.get('caption')!r:.120}, seed "
                       f"{texts.get('seed')}, expected {nonce} and {seed}")
        return None
