"""What goes wrong on the way: clients that leave, dribble, read slowly, or send nonsense."""

from __future__ import annotations

import asyncio
import json
import time

from .client import Client, Interrupted
from .traffic import check_b64, check_events, follow
from .wire import LONGEST_S, Lost, WrongAnswer, event_of, head_of

LIMIT = 1 << 20  # bytes of a body
TOO_LONG_HEAD = "x" * 40000

NO_OBJECTS = [
    b"", b"{", b"[]", b"7", b"null", b'"text"', b"{}", b'{"prompt": "\xff\xfe"}',
    b'{"prompt": "\\ud800"}', b"[" * 5000, b'{"prompt":' * 2000, b'{"prompt": "a",}',
    b'{"prompt": "a"} {}', b"\x00" * 100,
]
WRONG_JOBS = [
    b'{"prompt": ""}', b'{"prompt": 7}', b'{"prompt": "a", "prompt2": "b"}',
    b'{"prompt": "a", "size": "big"}', b'{"prompt": "a", "size": "64x-64"}',
    b'{"prompt": "a", "size": "999999x999999"}', b'{"prompt": "a", "steps": 0}',
    b'{"prompt": "a", "steps": 1e99}', b'{"prompt": "a", "seed": -1}',
    b'{"prompt": "a", "n": 1000}', b'{"prompt": "a", "guidance": [1, "x"]}',
    b'{"prompt": "a", "lora": [{"name": "/etc/passwd"}]}',
    b'{"prompt": "a", "preset": "none such"}', b'{"prompt": "a", "json_prompt": {}}',
    b'{"json_prompt": "no JSON"}', b'{"prompt": "a", "output_format": "gif"}',
]
BAD_HEADS = [
    b"GET\r\n\r\n", b"GET /v1/jobs HTTP/9.9\r\nHost: localhost\r\n\r\n",
    b"\r\n\r\nnonsense\r\n\r\n",
    b"GET /v1/jobs HTTP/1.1\r\n\r\n", b"GET /%zz HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET /v1/jobs%00 HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET /v1/jobs HTTP/1.1\r\nHost: localhost\r\nHost: other\r\n\r\n",
    b"POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Length: -5\r\n\r\n",
    b"POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
    b"POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n",
    b"POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: gzip\r\n\r\n",
    b"POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999999999999\r\n\r\n",
    b"GET /v1/jobs HTTP/1.1\r\nHost: localhost\r\nBad Name: x\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x00" * 100 + b"\r\n\r\n",
    b"GET /../../etc/passwd HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"BREW / HTTP/1.1\r\nHost: localhost\r\n\r\n",
]


async def raw(client: Client, kind: str, data: bytes, expect: tuple[int, ...],
              is_http: bool = True, pieces: int = 1, pause: float = 0) -> object:
    """Sends bytes on a connection of its own, in some pieces, and judges what comes back. What is
    no HTTP may be answered in whatever way, or not at all."""
    wire = await client.fresh_wire()
    client.count()
    begin, started = time.monotonic(), time.perf_counter()
    size = -(-len(data) // pieces)
    try:
        for at in range(0, len(data), size):
            await wire.send(data[at:at + size])
            await asyncio.sleep(pause)
    except Lost:
        pass  # refused before its end; the answer may still be there
    try:
        answer = await wire.read_body(await wire.read_head(), "POST")
        answer.seconds = time.perf_counter() - started
    except (Lost, WrongAnswer, TimeoutError) as error:
        if is_http or isinstance(error, TimeoutError):
            client.lost(begin, f"{kind}: {data[:80]!r}: {error or 'no answer in time'}")
        client.ledger.statuses[kind, "closed"] += 1
        return None
    finally:
        wire.reset()
    if is_http:
        method, path = data.decode("latin-1").split(" ", 2)[:2]
        return client.judge(kind, method, path, answer, begin, expect)
    client.ledger.counted(kind, answer)
    if answer.status not in expect:
        client.ledger.fault(f"{answer.status} for the head {data[:80]!r}")
    return answer


def post_of(client: Client, path: str, body: bytes, length: int | None = None) -> bytes:
    headers = client.headers() | {"Content-Length": str(len(body) if length is None else length)}
    return head_of("POST", path, headers) + body


async def leave_within_request(client: Client) -> None:
    body = json.dumps(client.picture_request()).encode()
    data = post_of(client, "/v1/jobs", body)
    wire = await client.fresh_wire()
    client.count()
    try:
        await wire.send(data[:client.random.randrange(1, len(data))])
        await asyncio.sleep(client.random.choice([0, 0.01, 0.1]))
    except Lost:
        raise Interrupted from None
    finally:
        client.ledger.statuses["fault: leaves within a request", "left"] += 1
        wire.close() if client.random.random() < 0.5 else wire.reset()


async def leave_within_answer(client: Client) -> None:
    """Its job must end, and must not be in the way of others."""
    more = client.random.choice([{}, {"stream": True, "partial_images": 2}, {"n": 3}])
    body = json.dumps(client.picture_request(steps=20, **more)).encode()
    wire = await client.fresh_wire()
    client.count()
    try:
        await wire.send(post_of(client, "/v1/images/generations", body))
        await asyncio.sleep(client.random.uniform(0, 0.4))
    except Lost:
        raise Interrupted from None
    finally:
        client.ledger.statuses["fault: leaves within an answer", "left"] += 1
        wire.close() if client.random.random() < 0.5 else wire.reset()


async def read_slowly(client: Client) -> None:
    """A job's events, some bytes at a time: the end must come all the same."""
    noted = await client.submit(client.picture_request(steps=12, preview_every=1))
    if noted is None:
        return
    wire = await client.fresh_wire(receive_buffer=2048)
    client.count()
    begin, started, text = time.monotonic(), time.perf_counter(), b""
    path = f"/v1/jobs/{noted.id}/events"
    try:
        await wire.send(head_of("GET", path, client.headers()))
        answer = await wire.read_head()
        async for piece in slow_pieces(wire, answer):
            text += piece
        answer.seconds = time.perf_counter() - started
    except (Lost, asyncio.IncompleteReadError, TimeoutError, ConnectionError) as error:
        client.lost(begin, f"a slow reader of {noted.id}: {error or 'no end in time'}")
    finally:
        wire.close()
    client.judge("fault: reads slowly", "GET", path, answer, begin, (200, 404))
    if answer.status == 200:
        events = [event_of(block) for block in text.decode().split("\n\n") if block]
        check_events(client, noted, [event for event in events if event], 0, answer.life)
        if not noted.end:
            client.ledger.fault(f"a slow reader of {noted.id} was not told the end")


async def slow_pieces(wire, answer):
    async with asyncio.timeout(LONGEST_S):
        async for piece in wire.pieces(answer):
            yield piece
            await asyncio.sleep(0.005 if len(piece) < 4096 else 0.05)


async def dribble(client: Client) -> None:
    request = client.picture_request()
    data = post_of(client, "/v1/images/generations", json.dumps(request).encode())
    answer = await raw(client, "fault: dribbles", data, (200, 429), pieces=60, pause=0.01)
    if answer is not None and answer.status == 200:
        check_b64(client, answer.json["data"][0]["b64_json"], request, request["seed"], "dribble")


async def oversize(client: Client) -> None:
    kind = "fault: too large"
    which = client.random.randrange(3)
    if which == 0:
        await raw(client, kind, post_of(client, "/v1/jobs", b"x" * 70000, 2 * LIMIT), (413,))
    elif which == 1:
        head = head_of("POST", "/v1/jobs", client.headers() | {"Transfer-Encoding": "chunked"})
        chunk = b"10000\r\n" + b"x" * 65536 + b"\r\n"
        await raw(client, kind, head + chunk * 20, (413,), pieces=20)
    else:
        head = head_of("GET", "/v1/jobs", client.headers() | {"X-Long": TOO_LONG_HEAD})
        await raw(client, kind, head, (400, 413, 431))


async def nonsense_body(client: Client) -> None:
    path = client.random.choice(["/v1/jobs", "/v1/jobs", "/v1/images/generations",
                                 "/sdapi/v1/txt2img", "/v1/captions/check"])
    body = client.random.choice(NO_OBJECTS + (WRONG_JOBS if path == "/v1/jobs" else []))
    await client.ask("fault: malformed body", "POST", path, body, expect=(400,))


async def nonsense_head(client: Client) -> None:
    data = client.random.choice(BAD_HEADS)
    await raw(client, "fault: malformed head", data, (*range(400, 432), 501, 505),
              is_http=False)


async def wrong_key(client: Client) -> None:
    path = client.random.choice(["/v1/jobs", "/v1/models", "/v1/jobs/octet-1/pictures/0"])
    for key in ("k-wrong-key-0000000000", client.key[:-1], client.key + "0"):
        await client.ask("fault: wrong key", "GET", path, expect=(401,), key=key)
    await client.ask("fault: wrong key", "POST", "/v1/jobs", client.picture_request(),
                     expect=(401,), headers={"Authorization": "Bearer"})


async def job_of_another(client: Client) -> None:
    others = [noted for noted in client.ledger.jobs.values() if noted.owner != client.name]
    if not others:
        return
    noted = client.random.choice(others[-200:])
    tail = client.random.choice(["", "/events", "/pictures/0"])
    await client.ask("fault: another's job", "GET", f"/v1/jobs/{noted.id}{tail}", expect=(404,))
    await client.ask("fault: another's job", "DELETE", f"/v1/jobs/{noted.id}", expect=(404,))


async def wrong_request(client: Client) -> None:
    method, path, headers, status = client.random.choice([
        ("POST", "/v1/jobs", {"Content-Type": "text/plain"}, 415),
        ("GET", "/v1/jobs", {"Origin": "https://evil.example"}, 403),
        ("PUT", "/v1/jobs", {}, 405), ("GET", "/v1/nothing", {}, 404),
        ("GET", "/v1/jobs?limit=x", {}, 400),
        ("POST", "/v1/jobs", {"Idempotency-Key": "x" * 300}, 400)])
    body = client.picture_request() if method == "POST" else None
    await client.ask("fault: wrong request", method, path, body, headers=headers,
                     expect=(status,))


async def late_follower(client: Client) -> None:
    """Events of a job that may have ended long ago, or with a strange Last-Event-ID."""
    own = [noted for noted in client.ledger.jobs.values() if noted.owner == client.name]
    noted = client.random.choice(own[-20:]) if own else None
    if noted is None or noted.deleted or noted.may_be_gone:
        return
    if client.random.random() < 0.5:
        await client.ask("fault: strange event id", "GET", f"/v1/jobs/{noted.id}/events",
                         headers={"Last-Event-ID": "x"}, expect=(400,))
    elif client.world.keep_s > time.monotonic() - noted.noted_at + 10:
        await follow(client, noted, 0)


FAULTS = {leave_within_request: 4, leave_within_answer: 3, read_slowly: 2, dribble: 1.5,
          oversize: 1.5, nonsense_body: 6, nonsense_head: 4, wrong_key: 2, job_of_another: 3,
          wrong_request: 3, late_follower: 2}
