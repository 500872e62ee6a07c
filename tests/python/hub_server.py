"""A small Hugging Face Hub on the loopback interface, with every fault that a network can have."""

from __future__ import annotations

import hashlib
import json
import random
import threading
import time
import urllib.parse
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

COMMIT = "0123456789abcdef0123456789abcdef01234567"
PIECE = 64 * 1024


def random_bytes(count: int, seed: int = 0) -> bytes:
    return random.Random(seed).randbytes(count)


def git_blob_id(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


@dataclass
class File:
    content: bytes
    lfs: bool = False

    @property
    def etag(self) -> str:
        return hashlib.sha256(self.content).hexdigest() if self.lfs else git_blob_id(self.content)


@dataclass
class Hub:
    """What the server holds and does; a test changes it while the server runs."""

    files: dict[str, File] = field(default_factory=dict)
    repo: str = "owner/name"
    commit: str = COMMIT
    token: str | None = None  # needed for everything, when set
    listing: bytes | None = None  # in place of the true one
    edit_listing: object = None  # a function of the true one, as a dict
    # Of the next requests of files; None is a good one.
    statuses: list[tuple[int, dict] | None] = field(default_factory=list)
    listing_statuses: list[tuple[int, dict]] = field(default_factory=list)
    always: tuple[int, dict] | None = None  # of every request of a file
    redirect: object = None  # a function of the path: where to, or None
    ranges: bool = True
    drop_after: int | None = None  # bytes of a body after which the connection is closed
    drops: int = 0  # how many bodies are dropped
    say_length: int = 0  # added to Content-Length
    body_change: int = 0  # bytes more (or fewer) in the body than its header says
    # Bodies in chunks, without a length, and so many bytes longer than they should be.
    chunked_overrun: int | None = None
    range_says: int = 0  # added to the end in Content-Range, and not to the body
    corrupt: bool = False
    seconds_per_piece: float = 0
    drips: bool = False  # four bytes at a time, some hundred a second
    # What was seen:
    requests: list[tuple[str, str, dict]] = field(default_factory=list)
    body_bytes: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def true_listing(self) -> dict:
        siblings = []
        for path, file in self.files.items():
            entry = {"rfilename": path, "size": len(file.content),
                     "blobId": git_blob_id(file.content)}
            if file.lfs:
                entry["lfs"] = {"sha256": file.etag, "size": len(file.content),
                                "pointerSize": 135}
            siblings.append(entry)
        return {"id": self.repo, "sha": self.commit, "siblings": siblings}

    def paths(self) -> list[str]:
        return [path for _, path, _ in self.requests]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    hub: Hub

    def log_message(self, *_):
        pass

    def answer(self, status: int, headers: dict | None = None, body: bytes = b"") -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def do_HEAD(self):
        self.do_GET()

    def do_GET(self):
        hub = self.hub
        with hub.lock:
            hub.requests.append((self.command, self.path, dict(self.headers)))
        if hub.token and self.headers.get("Authorization") != f"Bearer {hub.token}":
            return self.answer(401, {"X-Error-Code": "GatedRepo"})
        path = urllib.parse.unquote(self.path.split("?")[0])
        if path.startswith("/api/"):
            return self.send_listing(path)
        is_cdn = path.startswith("/cdn/")
        name = path.removeprefix("/cdn/")
        for revision in (hub.commit, "main"):
            name = name.removeprefix(f"/{hub.repo}/resolve/{revision}/")
        with hub.lock:
            status = hub.statuses.pop(0) if hub.statuses else hub.always
        if status:
            return self.answer(*status, b"an error page\n")
        where = None if is_cdn or not hub.redirect else hub.redirect(name)
        if where:
            file = hub.files[name]
            return self.answer(302, {"Location": where, "X-Repo-Commit": hub.commit,
                                     "X-Linked-Etag": f'"{file.etag}"',
                                     "X-Linked-Size": str(len(file.content))}, b"Found\n")
        if name not in hub.files:
            return self.answer(404, {"X-Error-Code": "EntryNotFound"})
        return self.send_file(hub.files[name])

    def send_listing(self, path: str) -> None:
        hub = self.hub
        with hub.lock:
            status = hub.listing_statuses.pop(0) if hub.listing_statuses else None
        if status:
            return self.answer(*status)
        if not path.startswith(f"/api/models/{hub.repo}/revision/"):
            return self.answer(404, {"X-Error-Code": "RepoNotFound"})
        if path.rsplit("/", 1)[1] not in ("main", hub.commit):
            return self.answer(404, {"X-Error-Code": "RevisionNotFound"})
        if hub.listing is not None:
            return self.answer(200, {}, hub.listing)
        listing = hub.true_listing()
        if hub.edit_listing:
            listing = hub.edit_listing(listing) or listing
        return self.answer(200, {}, json.dumps(listing).encode())

    def send_file(self, file: File) -> None:
        hub = self.hub
        content = file.content
        begin, end = 0, len(content)
        wanted = self.headers.get("Range")
        is_part = wanted is not None and hub.ranges
        if is_part:
            first, last = wanted.removeprefix("bytes=").split("-")
            begin, end = int(first), min(int(last) + 1, len(content))
        body = content[begin:end]
        if hub.corrupt and body:
            body = bytes([body[0] ^ 1]) + body[1:]
        self.send_response(206 if is_part else 200)
        self.send_header("ETag", f'"{file.etag}"')
        self.send_header("X-Repo-Commit", hub.commit)
        is_chunked = hub.chunked_overrun is not None
        if is_chunked:
            self.send_header("Transfer-Encoding", "chunked")
        else:
            self.send_header("Content-Length", str(len(body) + hub.say_length))
        if is_part:
            last = end - 1 + hub.range_says
            self.send_header("Content-Range", f"bytes {begin}-{last}/{len(content)}")
        self.end_headers()
        if self.command == "HEAD":
            return
        if hub.drips:
            return self.drip(body)
        if is_chunked:
            return self.send_chunks(body + b"x" * hub.chunked_overrun)
        if hub.body_change < 0:
            body = body[:hub.body_change]
        body += b"x" * hub.body_change
        with hub.lock:
            drops = hub.drops > 0 and hub.drop_after is not None and len(body) > hub.drop_after
            hub.drops -= drops
        if drops:
            body = body[:hub.drop_after]
        for at in range(0, len(body), PIECE):
            piece = body[at:at + PIECE]
            self.wfile.write(piece)
            with hub.lock:
                hub.body_bytes += len(piece)
            if hub.seconds_per_piece:
                time.sleep(hub.seconds_per_piece)
        if drops or hub.say_length or hub.body_change:
            self.close_connection = True


    def send_chunks(self, body: bytes) -> None:
        for at in range(0, len(body), PIECE):
            piece = body[at:at + PIECE]
            self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
        self.wfile.write(b"0\r\n\r\n")

    def drip(self, body: bytes) -> None:
        self.close_connection = True
        for at in range(0, len(body), 4):
            self.wfile.write(body[at:at + 4])
            time.sleep(0.02)


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_):  # a client that was killed is no news
        pass


class RunningHub:
    """`with RunningHub(hub) as server:` serves it at server.url."""

    def __init__(self, hub: Hub, address: str = "127.0.0.1"):
        self.hub = hub
        self.server = Server((address, 0), type("Bound", (Handler,), {"hub": hub}))
        self.url = f"http://{address}:{self.server.server_address[1]}"
        self.thread = threading.Thread(
            target=self.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)

    def __enter__(self) -> RunningHub:
        self.thread.start()
        return self

    def __exit__(self, *_) -> None:
        self.server.shutdown()
        self.server.server_close()
