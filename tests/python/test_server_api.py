"""`octet serve`: jobs, their events and pictures, and what describes the server."""

from __future__ import annotations

import json
import re

import pytest
from conftest import BUILD
from serving import CAPTION, PROMPT, decoded, png_size, server  # noqa: F401

SIZE = (256, 256)


@pytest.fixture(scope="module")
def done(server):
    """A job that has ended, with all of its events."""
    job = server.submit(steps=3, seed=5, n=2, preview_every=1)
    return job, list(server.events(job["id"]))


# --- jobs ---


def test_a_job_is_answered_at_once_with_what_it_will_be(server) -> None:
    answer = server.post("/v1/jobs", {"prompt": PROMPT, "steps": 1, "seed": 3})
    job = answer.json
    assert answer.status == 202
    assert answer.headers["location"] == f"/v1/jobs/{job['id']}"
    assert answer.headers["x-request-id"].startswith("req-")
    assert job["object"] == "job" and job["state"] in ("queued", "running")
    assert job["id"].startswith("octet-")
    asked = job["request"]
    assert asked["prompt"] == PROMPT and asked["seed"] == 3 and asked["steps"] == 1
    assert json.loads(asked["json_prompt"])["compositional_deconstruction"]["elements"]
    assert asked["size"] == "256x256" and asked["preset"] == "default"
    assert server.finished(job)["state"] == "completed"


def test_a_finished_job_has_pictures_and_what_ran(server, done) -> None:
    job, _ = done
    ended = server.get(f"/v1/jobs/{job['id']}").json
    assert ended["state"] == "completed" and ended["error"] is None
    assert ended["created_at"] <= ended["started_at"] <= ended["ended_at"]
    assert ended["position"] is None and ended["progress"] is None
    assert [(each["index"], each["seed"]) for each in ended["pictures"]] == [(0, 5), (1, 6)]
    report = ended["report"]
    assert report["steps"] == 3 and report["seed"] == 5
    assert report["linears_ran"]["int8"] > 0 and report["linears_ran"]["fake"] == 0
    assert not {"model", "pictures", "captions", "schema"} & set(report)


def test_pictures_are_files_that_never_change(server, done) -> None:
    job, events = done
    for told in (event.data for event in events if event.name == "picture"):
        file = server.get(told["url"])
        assert file.status == 200 and file.headers["content-type"] == "image/png"
        assert png_size(file.body) == SIZE and len(file.body) == told["bytes"]
        assert f'{job["id"]}-{told["index"]}.png' in file.headers["content-disposition"]
        again = server.get(told["url"], headers={"If-None-Match": file.headers["etag"]})
        assert (again.status, again.body) == (304, b"")
    assert server.get(f"/v1/jobs/{job['id']}/pictures/2").status == 404
    assert server.get(f"/v1/jobs/{job['id']}/pictures/x").status == 404


@pytest.mark.parametrize("name, begins", [("jpeg", b"\xff\xd8"), ("webp", b"RIFF")])
def test_pictures_in_other_formats(server, name, begins) -> None:
    if name not in server.get("/v1/models").json["data"][0]["octet"]["formats"]:
        pytest.skip(f"this build has no library for {name}")
    job = server.finished(server.submit(steps=1, output_format=name, output_compression=0))
    file = server.get(job["pictures"][0]["url"])
    assert file.headers["content-type"] == f"image/{name}" and file.body.startswith(begins)


def test_a_caption_makes_the_picture_that_its_seed_says(server) -> None:
    files = []
    for form in (CAPTION, json.dumps(CAPTION)):
        job = server.finished(server.submit(json_prompt=form, steps=1, seed=11))
        assert job["request"]["prompt"] is None
        files.append(server.get(job["pictures"][0]["url"]).body)
    assert files[0] == files[1]


def test_jobs_are_listed_newest_first(server, done) -> None:
    server.finished(server.submit(steps=1))
    newer = server.submit(steps=1)
    listed = server.get("/v1/jobs?limit=2").json
    assert listed["object"] == "list"
    assert [job["id"] for job in listed["data"]][0] == newer["id"]
    assert len(listed["data"]) == 2
    assert listed["has_more"]
    older = server.get(f"/v1/jobs?limit=1&after={newer['id']}").json
    assert older["data"] == listed["data"][1:]
    everything = server.get("/v1/jobs?limit=1000").json
    assert not everything["has_more"]
    last = everything["data"][-1]["id"]
    assert server.get(f"/v1/jobs?after={last}").json == {**everything, "data": []}
    assert server.get("/v1/jobs?limit=0").error["param"] == "limit"
    assert server.get("/v1/jobs?after=nobody").error["param"] == "after"
    server.finished(newer)


def test_what_runs_is_cancelled_and_what_has_ended_is_forgotten(server) -> None:
    job = server.submit(steps=100)
    path = f"/v1/jobs/{job['id']}"
    server.wait_until(lambda: server.get(path).json["state"] == "running")
    waiting = server.submit(steps=100)
    assert waiting["position"] == 1
    at_once = server.ask("DELETE", f"/v1/jobs/{waiting['id']}").json
    assert at_once["state"] == "cancelled" and at_once["started_at"] is None
    assert server.ask("DELETE", path).json["cancelling"]
    assert server.finished(job)["state"] == "cancelled"
    assert server.ask("DELETE", path).json["state"] == "cancelled"
    assert server.get(path).status == 404
    assert server.get(path + "/events").error["code"] == "job_not_found"
    assert server.ask("DELETE", path).status == 404


def test_an_idempotency_key_gives_the_same_job(server) -> None:
    header = {"Idempotency-Key": "order-17"}
    first = server.submit(steps=1, headers=header)
    assert server.submit(steps=1, headers=header)["id"] == first["id"]
    other = server.post("/v1/jobs", {"prompt": PROMPT, "steps": 2}, headers=header)
    assert other.status == 409 and other.error["code"] == "idempotency_key_reused"
    server.finished(first)
    assert server.submit(steps=1, headers=header)["id"] == first["id"]
    long = server.post("/v1/jobs", {"prompt": PROMPT}, headers={"Idempotency-Key": "k" * 300})
    assert long.error["param"] == "Idempotency-Key"


WRONG = [
    ({}, "prompt"),
    ({"prompt": PROMPT, "json_prompt": CAPTION}, "json_prompt"),
    ({"prompt": ""}, "prompt"),
    ({"prompt": 3}, "prompt"),
    ({"prompt": "x" * 70000}, "prompt"),
    ({"prompt": "nothing to be painted"}, "prompt"),
    ({"json_prompt": "{"}, "json_prompt"),
    ({"json_prompt": {"high_level_description": 3}}, "json_prompt"),
    ({"json_prompt": [1]}, "json_prompt"),
    ({"prompt": PROMPT, "size": "big"}, "size"),
    ({"prompt": PROMPT, "size": "100x100"}, "size"),
    ({"prompt": PROMPT, "size": "65536x65536"}, "size"),
    ({"prompt": PROMPT, "steps": 0}, "steps"),
    ({"prompt": PROMPT, "steps": 101}, "steps"),
    ({"prompt": PROMPT, "steps": True}, "steps"),
    ({"prompt": PROMPT, "n": 5}, "n"),
    ({"prompt": PROMPT, "seed": -1}, "seed"),
    ({"prompt": PROMPT, "guidance": "high"}, "guidance"),
    ({"prompt": PROMPT, "guidance": [1, 2], "steps": 3}, "guidance"),
    ({"prompt": PROMPT, "preset": "best"}, "preset"),
    ({"prompt": PROMPT, "negative_prompt": "rain"}, "negative_prompt"),
    ({"prompt": PROMPT, "output_format": "gif"}, "output_format"),
    ({"prompt": PROMPT, "output_compression": 101}, "output_compression"),
    ({"prompt": PROMPT, "preview_every": -1}, "preview_every"),
    ({"prompt": PROMPT, "priority": "urgent"}, "priority"),
    ({"prompt": PROMPT, "lora": [{"name": "../../etc/passwd"}]}, "lora"),
    ({"prompt": PROMPT, "lora": [{"file": "x"}]}, "lora[0].file"),
    ({"prompt": PROMPT, "quality": "hd"}, "quality"),
]


@pytest.mark.parametrize("body, param", WRONG, ids=[f"{param}-{i}" for i, (_, param)
                                                    in enumerate(WRONG)])
def test_a_wrong_field_is_named(server, body, param) -> None:
    answer = server.post("/v1/jobs", body)
    assert answer.status == 400, answer.body
    error = answer.error
    assert error["type"] == "invalid_request_error" and error["param"] == param
    assert len(error["message"]) < 600
    assert str(BUILD.parent) not in error["message"] and ".safetensors" not in error["message"]


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"null", b'{"a":1e999}', b"\xff\xfe{}",
                                  b"[" * 100000, b'{"prompt": "a\x00b"}'])
def test_a_body_that_is_no_object_is_refused(server, body) -> None:
    answer = server.post("/v1/jobs", body, headers={"Content-Type": "application/json"})
    assert answer.status == 400 and answer.error["message"].startswith("the body ")


# --- events ---


def test_events_tell_a_job_from_its_beginning_to_its_end(done) -> None:
    job, events = done
    names = [event.name for event in events]
    assert names[0] == "queued" and names[-2:] == ["report", "completed"]
    assert [name for name in names if name == "picture"] == ["picture"] * 2
    ids = [event.id for event in events]
    assert ids == sorted(set(ids))
    assert events[-1].data["id"] == job["id"]
    previews = [event.data for event in events if event.name == "preview"]
    assert previews
    for preview in previews:
        assert png_size(decoded(preview["b64_json"])) == (preview["width"], preview["height"])
        assert 1 <= preview["step"] <= preview["steps"] == 3
    for progress in (event.data for event in events if event.name == "progress"):
        assert progress["stage"] in ("text", "load", "denoise", "decode")
        assert 0 <= progress["done"] <= progress["total"]


def test_events_resume_after_the_last_one_seen(server, done) -> None:
    job, events = done
    picture = next(event for event in events if event.name == "picture")
    resumed = list(server.events(job["id"], {"Last-Event-ID": str(picture.id)}))
    assert all(event.id > picture.id for event in resumed)
    assert [event.name for event in resumed if event.name != "progress"] == [
        "picture", "report", "completed"]
    seen_all = server.get(f"/v1/jobs/{job['id']}/events",
                          headers={"Last-Event-ID": str(events[-1].id)})
    assert (seen_all.status, seen_all.body) == (204, b"")
    wrong = server.get(f"/v1/jobs/{job['id']}/events", headers={"Last-Event-ID": "seven"})
    assert wrong.error["param"] == "Last-Event-ID"


def test_events_of_a_running_job_come_while_it_runs(server) -> None:
    job = server.submit(steps=100)
    for event in server.events(job["id"]):
        if event.name == "progress" and event.data["stage"] == "denoise":
            assert server.get(f"/v1/jobs/{job['id']}").json["state"] == "running"
            break  # whoever stops listening leaves the job alone
    assert server.get(f"/v1/jobs/{job['id']}").json["state"] == "running"
    server.ask("DELETE", f"/v1/jobs/{job['id']}")
    last = list(server.events(job["id"]))[-1]
    assert last.name == "cancelled" and last.data["error"] is None


# --- what describes the server ---


def test_the_model_and_its_limits(server) -> None:
    listed = server.get("/v1/models").json
    model = listed["data"][0]
    assert listed["object"] == "list" and model["object"] == "model" and model["id"] == "demo"
    about = model["octet"]
    assert about["default_size"] == "256x256" and about["prompt"] == "words"
    assert {preset["name"] for preset in about["presets"]} >= {"default", "turbo"}
    assert "png" in about["formats"] and about["limits"]["images"] == 4
    assert server.get("/v1/models/demo").json == model
    assert server.get("/v1/models/gpt-image-1").status == 404


def test_captions_are_checked(server) -> None:
    right = server.post("/v1/captions/check", {"caption": CAPTION}).json
    assert right["valid"] and json.loads(right["canonical"]) == CAPTION
    wrong = server.post("/v1/captions/check", {"caption": '{"high_level_description": 3}'}).json
    assert not wrong["valid"]
    finding = wrong["findings"][0]
    assert set(finding) == {"path", "rule", "severity", "fixable"}
    assert any(each["severity"] == "error" for each in wrong["findings"])
    assert server.post("/v1/captions/check", {}).error["param"] == "caption"
    assert server.post("/v1/captions/check", {"caption": 1, "b": 2}).error["param"] == "b"


def test_health_and_readiness(server) -> None:
    assert server.get("/health").json == {"status": "ok"}
    assert server.get("/ready").json == {"status": "ready"}
    head = server.ask("HEAD", "/health")
    assert (head.status, head.body) == (200, b"")


def test_unknown_paths_and_methods(server) -> None:
    assert server.get("/v1/nothing").error["code"] == "not_found"
    assert server.get("/page/../../etc/passwd").status in (400, 404)
    answer = server.ask("PATCH", "/v1/jobs", {})
    assert answer.status == 405 and answer.headers["allow"] == "POST, GET, HEAD"


SAMPLE = re.compile(r'^([a-z_0-9]+)(\{[a-z]+="[^"]*"(,[a-z]+="[^"]*")*\})? (\S+)$')


def test_metrics_are_prometheus_text(server, done) -> None:
    answer = server.get("/metrics")
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    values, known = {}, set()
    for line in answer.body.decode().splitlines():
        if line.startswith("# TYPE "):
            known.add(line.split()[2])
        elif not line.startswith("# HELP "):
            sample = SAMPLE.match(line)
            assert sample, line
            assert re.sub(r"_(sum|count|bucket)$", "", sample[1]) in known | {sample[1]}
            values[sample[1] + (sample[2] or "")] = float(sample[4])
    assert values["octet_ready"] == 1
    assert values['octet_jobs_total{state="completed"}'] >= 1
    assert values["octet_step_seconds_count"] >= 3 and values["octet_seconds_per_step"] > 0
    assert values["octet_int8_linears_ratio"] == 1
    for name in ("octet_job_wait_seconds", "octet_job_render_seconds"):
        buckets = [values[each] for each in values if each.startswith(name + "_bucket")]
        assert buckets == sorted(buckets) and buckets[-1] == values[name + "_count"] >= 1
    assert values['octet_device_memory_used_bytes{worker="0",device="cpu"}'] > 0
    assert values['octet_http_requests_total{route="/v1/jobs",status="202"}'] >= 1


def test_the_page_is_served_with_a_policy(server) -> None:
    page = server.get("/")
    assert page.status == 200 and page.headers["content-type"].startswith("text/html")
    assert "script-src" not in page.headers["content-security-policy"]
    assert "default-src 'self'" in page.headers["content-security-policy"]
    names = re.findall(r'(?:src|href)="(/page/[^"]+)"', page.body.decode())
    assert names
    for name in names:
        assert server.get(name).status == 200, name
