"""HTTP/1.1 by hand, so that requests can be broken on purpose: one connection of a client."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import struct
import time
from dataclasses import dataclass, field

HOST = "127.0.0.1"
LONGEST_S = 300  # for any one answer: the test itself must never hang
BUFFER = 64 << 20  # of a line of events, which contain pictures


class Lost(Exception):
    """The connection ended before the answer did."""


class WrongAnswer(Exception):
    """Bytes that are no HTTP answer."""


@dataclass
class Answer:
    status: int
    headers: dict[str, str]  # names in small letters
    body: bytes = b""
    seconds: float = 0
    json: object = field(default=None, repr=False)
    life: int = 0  # of the server, by the connection

    @property
    def is_json(self) -> bool:
        return self.headers.get("content-type", "").startswith("application/json")


@dataclass
class Event:
    name: str
    data: object
    id: int | None


def head_of(method: str, path: str, headers: dict[str, str]) -> bytes:
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items())]
    return "\r\n".join([*lines, "", ""]).encode("utf-8", "surrogateescape")


class Wire:
    def __init__(self, port: int, life: int = 0):
        self.port, self.life = port, life
        self.reader: asyncio.StreamReader | None = None
        self.writer: asyncio.StreamWriter | None = None

    async def connect(self, receive_buffer: int = 0) -> Wire:
        link = socket.socket()
        link.setblocking(False)
        link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if receive_buffer:
            link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        try:
            await asyncio.get_running_loop().sock_connect(link, (HOST, self.port))
        except BaseException:
            link.close()
            raise
        limit = receive_buffer or BUFFER
        self.reader, self.writer = await asyncio.open_connection(sock=link, limit=limit)
        return self

    @property
    def is_open(self) -> bool:
        return self.writer is not None and not self.reader.at_eof()

    def close(self) -> None:
        if self.writer is not None:
            self.writer.close()
        self.reader = self.writer = None

    def reset(self) -> None:
        """Like a client whose machine has gone: the server sees an error, not an end."""
        if self.writer is not None:
            link = self.writer.get_extra_info("socket")
            with contextlib.suppress(OSError):
                link.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.writer.transport.abort()
        self.reader = self.writer = None

    async def send(self, data: bytes) -> None:
        try:
            self.writer.write(data)
            await self.writer.drain()
        except OSError as error:
            raise Lost(str(error)) from error

    async def read_head(self, seconds: float = LONGEST_S) -> Answer:
        try:
            async with asyncio.timeout(seconds):
                text = await self.reader.readuntil(b"\r\n\r\n")
        except TimeoutError:
            raise
        except (asyncio.IncompleteReadError, OSError) as error:
            raise Lost("no answer") from error
        first, *lines = text.decode("latin-1").split("\r\n")[:-2]
        parts = first.split(" ", 2)
        if len(parts) < 2 or not parts[0].startswith("HTTP/1.") or not parts[1].isdigit():
            raise WrongAnswer(f"status line {first!r}")
        headers = {}
        for line in lines:
            name, colon, value = line.partition(":")
            if not colon:
                raise WrongAnswer(f"header {line!r}")
            headers[name.lower()] = value.strip()
        if int(parts[1]) == 100:
            return await self.read_head(seconds)
        return Answer(int(parts[1]), headers, life=self.life)

    async def pieces(self, answer: Answer):
        """The body, as it comes."""
        if answer.headers.get("transfer-encoding") == "chunked":
            while size := int(await self._line(), 16):
                yield await self.reader.readexactly(size)
                await self._line()
            await self._line()
        elif "content-length" in answer.headers:
            left = int(answer.headers["content-length"])
            while left:
                piece = await self.reader.read(min(left, 1 << 16))
                if not piece:
                    raise Lost("the body is cut short")
                left -= len(piece)
                yield piece
        else:
            while piece := await self.reader.read(1 << 16):
                yield piece

    async def _line(self) -> bytes:
        line = await self.reader.readline()
        if not line.endswith(b"\r\n"):
            raise Lost("the body is cut short")
        return line

    async def read_body(self, answer: Answer, method: str, seconds: float = LONGEST_S) -> Answer:
        if method == "HEAD" or answer.status in (204, 304):
            return answer
        try:
            async with asyncio.timeout(seconds):
                answer.body = b"".join([piece async for piece in self.pieces(answer)])
        except (asyncio.IncompleteReadError, ConnectionError) as error:
            raise Lost("the body is cut short") from error
        if answer.is_json:
            try:
                answer.json = json.loads(answer.body)
            except ValueError as error:
                raise WrongAnswer(f"no JSON: {answer.body[:200]!r}") from error
        if answer.headers.get("connection", "").lower() == "close":
            self.close()
        return answer

    async def ask(self, method: str, path: str, headers: dict[str, str],
                  body: bytes | None = None) -> Answer:
        begin = time.perf_counter()
        if body is not None:
            headers = {**headers, "Content-Length": str(len(body))}
        await self.send(head_of(method, path, headers) + (body or b""))
        answer = await self.read_body(await self.read_head(), method)
        answer.seconds = time.perf_counter() - begin
        return answer

    async def events(self, answer: Answer):
        """Server-sent events; comments are left out."""
        text = b""
        try:
            async for piece in self.pieces(answer):
                text += piece
                *blocks, text = text.split(b"\n\n")
                for block in blocks:
                    if event := event_of(block.decode()):
                        yield event
        except (asyncio.IncompleteReadError, ConnectionError) as error:
            raise Lost("the stream is cut short") from error
        if text:
            raise Lost("the stream ends within an event")


def event_of(block: str) -> Event | None:
    fields = dict(line.split(": ", 1) for line in block.split("\n") if not line.startswith(":"))
    if not fields:
        return None
    if "event" not in fields or "data" not in fields:
        raise WrongAnswer(f"event {block[:200]!r}")
    number = fields.get("id")
    return Event(fields["event"], json.loads(fields["data"]), int(number) if number else None)
