"""What well-behaved clients do: each function is one visit."""

from __future__ import annotations

import asyncio
import base64
import json
import time

from .client import Client, Interrupted
from .ledger import ENDS, Noted
from .wire import LONGEST_S, Event, Lost, head_of

LONG_STEPS = 60  # long enough to be cancelled while it runs
BURST = 40  # more than the queue of one key takes


async def job_by_polling(client: Client) -> None:
    formats = [{"output_format": name} for name in client.world.formats]
    more = client.random.choice([{}, {}, *formats, {"n": 2}, {"priority": "low"},
                                 {"priority": "high"}])
    noted = await client.submit(client.picture_request(**more))
    if noted is None:
        return
    job = await client.wait(noted)
    if job is None or noted.end != "completed":
        return
    for picture in job["pictures"]:
        await client.fetch(noted, picture)
    if len(job["pictures"]) != job["request"]["n"]:
        client.ledger.fault(f"job {noted.id} has {len(job['pictures'])} pictures")
    if client.random.random() < 0.3:
        await client.delete(noted)
        await client.show(noted)


async def follow(client: Client, noted: Noted, last: int, stop_after: int = 0) -> list[Event]:
    """The events of a job, from a connection of its own; first `stop_after` of them if given."""
    wire = await client.fresh_wire()
    headers = client.headers() | ({"Last-Event-ID": str(last)} if last else {})
    client.count()
    begin = time.perf_counter()
    asked_at = time.monotonic()
    events: list[Event] = []
    path = f"/v1/jobs/{noted.id}/events"
    try:
        await wire.send(head_of("GET", path, headers))
        answer = await wire.read_head()
        if answer.status != 200:
            await wire.read_body(answer, "GET")
        else:
            async with asyncio.timeout(LONGEST_S):
                async for event in wire.events(answer):
                    if not events and not last:
                        client.ledger.first_event.append(time.perf_counter() - begin)
                    events.append(event)
                    if len(events) == stop_after:
                        wire.reset()
                        break
        answer.seconds = time.perf_counter() - begin
    except (Lost, TimeoutError) as error:
        client.lost(asked_at, f"events of {noted.id}: {error or 'no end in time'}")
    finally:
        wire.close()
    client.judge("job: events", "GET", path, answer, asked_at, (200, 204, 404))
    if answer.status == 404:
        client.explain_missing(noted, "the stream", answer)
        raise Interrupted
    check_events(client, noted, events, last, answer.life)
    return events


def check_events(client: Client, noted: Noted, events: list[Event], last: int, life: int) -> None:
    for event in events:
        if event.id is None or event.id <= last:
            client.ledger.fault(f"events of {noted.id}: {event.id} after {last}")
        last = event.id or last
        if event.name in ENDS:
            client.ledger.see(client.name, event.data, life)
            for fault in client.ledger.schemas.component_faults("Job", event.data):
                client.ledger.fault(f"event {event.name}: {fault}")
        if event.name == "preview" and not base64.b64decode(
                event.data["b64_json"]).startswith(b"\x89PNG"):
            client.ledger.fault(f"events of {noted.id}: a preview that is no PNG")


async def job_by_events(client: Client) -> None:
    request = client.picture_request(steps=client.random.choice([1, 3]), preview_every=1)
    noted = await client.submit(request)
    if noted is None:
        return
    leaves = client.random.random() < 0.4
    events = await follow(client, noted, 0, stop_after=3 if leaves else 0)
    if not events or events[-1].name not in ENDS:
        if not leaves:
            client.ledger.fault(f"events of {noted.id} end without an end")
        events += await follow(client, noted, events[-1].id if events else 0)
    names = [event.name for event in events]
    if noted.end == "completed" and (names.count("picture") != 1 or names.count("report") != 1):
        client.ledger.fault(f"events of {noted.id}: {names}")
    if noted.end == "completed" and events[-1].name == "completed":
        if client.random.random() < 0.3:
            await follow(client, noted, events[-1].id)  # 204
        await client.fetch(noted, events[-1].data["pictures"][0])


def check_b64(client: Client, text: str, request: dict, seed: int, where: str) -> None:
    client.ledger.check_png(base64.b64decode(text), request["json_prompt"], seed, where)


async def images(client: Client) -> None:
    form = client.random.choice(["b64_json", "url"])
    request = client.picture_request(response_format=form, user="somebody", model="demo",
                                     n=client.random.choice([1, 1, 2]))
    answer = await client.ask(f"images: {form}", "POST", "/v1/images/generations", request,
                              expect=(200, 429))
    if answer.status != 200:
        return
    for entry in answer.json["data"]:
        if form == "b64_json":
            check_b64(client, entry["b64_json"], request, entry["seed"], "images")
            continue
        path = "/" + entry["url"].split("/", 3)[3]
        picture = await client.ask("picture", "GET", path, expect=(200, 404))
        if picture.status == 200:
            client.ledger.check_png(picture.body, request["json_prompt"], entry["seed"], path)
        elif picture.life == answer.life:
            client.ledger.fault(f"{path} is missing")


async def images_streamed(client: Client) -> None:
    request = client.picture_request(steps=3, stream=True, partial_images=2)
    client.count()
    asked_at, begin = time.monotonic(), time.perf_counter()
    wire = await client.connected()
    path, events = "/v1/images/generations", []
    body = json.dumps(request).encode()
    try:
        await wire.send(head_of("POST", path, client.headers() | {
            "Content-Length": str(len(body))}) + body)
        answer = await wire.read_head()
        if answer.status != 200:
            await wire.read_body(answer, "POST")
        else:
            async with asyncio.timeout(LONGEST_S):
                events = [event async for event in wire.events(answer)]
        answer.seconds = time.perf_counter() - begin
    except (Lost, TimeoutError) as error:
        wire.close()
        client.lost(asked_at, f"a stream of images: {error or 'no end in time'}")
    client.judge("images: stream", "POST", path, answer, asked_at, (200, 429))
    if answer.status != 200:
        return
    last = events[-1] if events else None
    if last is None or last.name not in ("image_generation.completed", "error"):
        client.ledger.fault(f"a stream of images ends with {last and last.name}")
    elif last.name == "error":
        if not client.server.is_down_since(asked_at):
            client.ledger.fault(f"a stream of images: {last.data}")
    else:
        check_b64(client, last.data["b64_json"], request, request["seed"], "a stream of images")


async def sdapi(client: Client) -> None:
    if client.random.random() < 0.5:
        path = client.random.choice(["samplers", "schedulers", "sd-models", "loras", "upscalers",
                                     "options", "progress"])
        await client.ask("sdapi: lists", "GET", f"/sdapi/v1/{path}")
        return
    prompt = client.ledger.new_prompt(client.name)
    seed = client.random.getrandbits(31)
    answer = await client.ask(
        "sdapi: txt2img", "POST", "/sdapi/v1/txt2img",
        {"prompt": prompt, "seed": seed, "steps": 1, "width": 16, "height": 16,
         "sampler_name": "Euler", "save_images": False}, expect=(200, 429))
    if answer.status == 200:
        check_b64(client, answer.json["images"][0], {"json_prompt": prompt}, seed, "txt2img")


async def caption(client: Client) -> None:
    good = {"high_level_description": "a square", "compositional_deconstruction": {
        "background": "white", "elements": [
            {"type": "obj", "bbox": [0, 0, 500, 500], "desc": "a red square"}]}}
    value = client.random.choice([good, json.dumps(good), "no JSON", {"elements": 7}])
    answer = await client.ask("captions: check", "POST", "/v1/captions/check", {"caption": value})
    if answer.json["valid"] != (value in (good, json.dumps(good))):
        client.ledger.fault(f"captions/check says {answer.json['valid']} of {value!r:.80}")


async def looking(client: Client) -> None:
    path = client.random.choice(["/v1/models", "/health", "/metrics", "/openapi.json", "/ready",
                                 "/v1/jobs", "/v1/jobs"])
    if path != "/v1/jobs":
        await client.ask("models, health, metrics", "GET", path)
        return
    answer = await client.ask("job: list", "GET", f"/v1/jobs?limit={client.random.choice((5, 50))}")
    for job in answer.json["data"]:
        client.ledger.see(client.name, job, answer.life)


async def cancelling(client: Client) -> None:
    noted = await client.submit(client.picture_request(steps=LONG_STEPS))
    if noted is None:
        return
    await asyncio.sleep(client.random.choice([0, 0.05, 0.3]))
    await client.delete(noted)
    if noted.deleted or await client.wait(noted) is None:
        return
    if client.random.random() < 0.5:
        await client.delete(noted)
        await client.show(noted)


async def repeating(client: Client) -> None:
    """The same Idempotency-Key: the same job, but for another request or another client."""
    headers = {"Idempotency-Key": f"{client.name}-{client.random.getrandbits(64)}"}
    request = client.picture_request()
    noted = await client.submit(request, headers)
    if noted is None:
        return
    answer = await client.ask("job: repeat", "POST", "/v1/jobs", request, headers=headers,
                              expect=(202, 429))
    is_same_life = answer.life == noted.life
    if answer.status == 202 and answer.json["id"] != noted.id:
        if is_same_life:
            client.ledger.fault(f"a repeated request became {answer.json['id']}")
        client.ledger.take(client.name, answer.json, request["json_prompt"], request["seed"],
                           answer.life)
    if is_same_life and answer.status == 202:
        await client.ask("job: repeat", "POST", "/v1/jobs", client.picture_request(),
                         headers=headers, expect=(409,) if client.world.life == noted.life
                         else (202, 409, 429))


async def burst(client: Client) -> None:
    """More than the queue takes, all withdrawn."""
    taken = []
    for _ in range(BURST):
        if noted := await client.submit(client.picture_request(steps=LONG_STEPS)):
            taken.append(noted)
        else:
            break
    for noted in taken:
        await client.delete(noted)


VISITS = {job_by_polling: 26, job_by_events: 12, images: 10, images_streamed: 6, sdapi: 8,
          caption: 8, looking: 12, cancelling: 6, repeating: 5, burst: 0.3}
