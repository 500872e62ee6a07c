"""The server under test: a process that is started, watched, ended and killed."""

from __future__ import annotations

import asyncio
import re
import secrets
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from .wire import Lost, Wire

SAMPLE_S = 0.25
START_S = 120  # a build with sanitizers takes its time


@dataclass
class Sample:
    at: float
    rss: int  # bytes
    threads: int
    files: int


class Server:
    """`octet serve` with keys, on one port and one folder over all its lives."""

    def __init__(self, program: Path, folder: Path, names: list[str], arguments: list[str]):
        self.program, self.folder, self.arguments = program, folder, arguments
        self.keys = {name: f"k-{secrets.token_hex(12)}" for name in names}
        self.port = 0
        self.process: subprocess.Popen | None = None
        self.lives: list[list[Sample]] = []  # the samples of each process
        self.exits: list[int] = []
        self.is_up = asyncio.Event()
        self.went_down = -1e9  # when the last end was asked for

    async def start(self) -> None:
        keys = self.folder / "keys"
        keys.write_text("".join(f"{name} {key}\n" for name, key in self.keys.items()))
        keys.chmod(0o600)
        log = self.folder / "server.log"
        begin = log.stat().st_size if log.exists() else 0
        with log.open("ab") as out:
            self.process = subprocess.Popen(
                [self.program, "serve", "--device", "cpu", "--port", str(self.port), "--keys",
                 keys, "--state", self.folder / "state", *self.arguments],
                stdin=subprocess.DEVNULL, stdout=out, stderr=out)
        self.lives.append([])
        end = time.monotonic() + START_S
        while time.monotonic() < end:
            if self.process.poll() is not None:
                raise RuntimeError(f"the server ended with {self.process.returncode}; {log} has "
                                   f"the reason")
            await asyncio.sleep(0.05)
            # The port is in the line that says where it listens.
            if not self.port:
                found = re.search(rb"http://127\.0\.0\.1:(\d+)", log.read_bytes()[begin:])
                self.port = int(found[1]) if found else 0
            elif await self.is_ready():
                break
        else:
            raise RuntimeError(f"the server was not ready within {START_S} s; see {log}")
        self.lives[-1].append(self.sample())
        self.is_up.set()

    async def is_ready(self) -> bool:
        wire = Wire(self.port)
        try:
            await wire.connect()
            answer = await wire.ask("GET", "/ready", {"Host": "localhost"})
            return answer.status == 200
        except (OSError, Lost):
            return False
        finally:
            wire.close()

    async def stop(self, which: signal.Signals) -> float:
        """Seconds that it took to end."""
        self.is_up.clear()
        begin = self.went_down = time.monotonic()
        self.process.send_signal(which)
        while self.process.poll() is None:
            await asyncio.sleep(0.02)
        self.exits.append(self.process.returncode)
        return time.monotonic() - begin

    def kill(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def is_down_since(self, moment: float) -> bool:
        """Whether an end was asked for after this moment, or is under way."""
        return self.went_down >= moment or not self.is_up.is_set()

    def sample(self) -> Sample:
        place = Path("/proc") / str(self.process.pid)
        status = dict(line.split(":", 1) for line in (place / "status").read_text().splitlines()
                      if ":" in line)
        return Sample(time.monotonic(), int(status["VmRSS"].split()[0]) << 10,
                      int(status["Threads"]), len(list((place / "fd").iterdir())))

    async def watch(self) -> None:
        while True:
            if self.is_up.is_set():
                try:
                    self.lives[-1].append(self.sample())
                except (OSError, KeyError):
                    if self.is_up.is_set() and self.process.poll() is not None:
                        self.is_up.clear()
                        raise RuntimeError(
                            f"the server ended by itself with {self.process.returncode}") from None
            await asyncio.sleep(SAMPLE_S)
