"""`octet serve`: the routes of OpenAI's clients and of AUTOMATIC1111's front ends."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

import pytest
from serving import CAPTION, PROMPT, decoded, png_size, read_events, server  # noqa: F401

IMAGES, TEXT_TO_IMAGE = "/v1/images/generations", "/sdapi/v1/txt2img"
SIZE = (256, 256)


def leave_early(server, path, body, headers=None) -> str:
    """Asks, leaves while the job runs, and returns its id."""
    known = {job["id"] for job in server.get("/v1/jobs").json["data"]}
    try:
        with server.asked("POST", path, body, headers, timeout=0.3):
            pass
    except TimeoutError:
        pass
    new = [job["id"] for job in server.get("/v1/jobs").json["data"] if job["id"] not in known]
    assert len(new) == 1
    return new[0]


# --- OpenAI ---


def test_images_come_with_the_answer(server) -> None:
    answer = server.post(IMAGES, {"prompt": PROMPT, "model": "gpt-image-1", "n": 2, "steps": 2,
                                  "size": "256x256", "seed": 7, "user": "me", "style": "vivid"})
    assert answer.status == 200, answer.body
    body = answer.json
    assert [each["seed"] for each in body["data"]] == [7, 8]
    for each in body["data"]:
        assert png_size(decoded(each["b64_json"])) == SIZE
        assert "elements" in each["revised_prompt"] and "url" not in each
    assert body["size"] == "256x256" and body["background"] == "opaque"
    usage = body["usage"]
    assert usage["output_tokens"] == 2 * 16 * 16
    assert usage["total_tokens"] == usage["input_tokens"] + usage["output_tokens"]
    assert usage["input_tokens"] > 0
    assert answer.headers["x-octet-ignored"] == "model, style, user"
    assert server.get(f"/v1/jobs/{body['octet']['job']}").json["state"] == "completed"


def test_images_may_be_links(server) -> None:
    body = server.post(IMAGES, {"prompt": PROMPT, "steps": 1, "response_format": "url"}).json
    url = body["data"][0]["url"]
    assert url.startswith(server.url + "/v1/jobs/")
    assert png_size(server.get(url.removeprefix(server.url)).body) == SIZE


def test_a_prompt_that_is_a_caption_is_taken_for_one(server) -> None:
    body = server.post(IMAGES, {"prompt": json.dumps(CAPTION), "steps": 1}).json
    job = server.get(f"/v1/jobs/{body['octet']['job']}").json
    assert job["request"]["prompt"] is None
    assert json.loads(job["request"]["json_prompt"]) == CAPTION
    assert "revised_prompt" not in body["data"][0]


@pytest.mark.parametrize("quality, preset", [("auto", "default"), ("standard", "default"),
                                             ("low", "turbo"), ("hd", "quality"),
                                             ("turbo", "turbo")])
def test_quality_chooses_a_preset(server, quality, preset) -> None:
    body = server.post(IMAGES, {"prompt": PROMPT, "steps": 1, "quality": quality}).json
    assert body["quality"] == quality
    job = server.get(f"/v1/jobs/{body['octet']['job']}").json
    assert job["request"]["preset"] == preset


@pytest.mark.parametrize("field, value", [("quality", "best"), ("n", 0), ("size", "10x10"),
                                          ("response_format", "file"), ("partial_images", 4),
                                          ("background", "transparent"), ("stream", "yes"),
                                          ("output_format", "svg"), ("prompt", "")])
def test_images_name_the_wrong_field(server, field, value) -> None:
    answer = server.post(IMAGES, {"prompt": PROMPT, "steps": 1, field: value})
    assert answer.status == 400 and answer.error["param"] == field


def test_a_stream_has_previews_before_its_pictures(server) -> None:
    asked = {"prompt": PROMPT, "steps": 8, "stream": True, "partial_images": 3, "n": 2, "seed": 4,
             "moderation": "low"}
    with server.asked("POST", IMAGES, asked) as response:
        assert response.status == 200
        assert response.getheader("Content-Type") == "text/event-stream"
        assert response.getheader("X-Octet-Ignored") == "moderation"
        events = list(read_events(response))
    partial = [event.data for event in events if event.name == "image_generation.partial_image"]
    complete = [event.data for event in events if event.name == "image_generation.completed"]
    assert [each["seed"] for each in complete] == [4, 5]
    assert partial and all(each["partial_image_index"] < 3 for each in partial)
    for each in (event.data for event in events):
        assert png_size(decoded(each["b64_json"])) == SIZE
        assert each["size"] == "256x256" and each["output_format"] == "png"
    assert [each["usage"]["output_tokens"] for each in complete] == [16 * 16] * 2
    assert events[-1].data == complete[-1]


def test_a_stream_that_cannot_begin_is_an_error_of_http(server) -> None:
    answer = server.post(IMAGES, {"prompt": PROMPT, "stream": True, "size": "1x1"})
    assert answer.status == 400 and answer.error["param"] == "size"
    links = server.post(IMAGES, {"prompt": PROMPT, "stream": True, "response_format": "url"})
    assert links.error["param"] == "response_format"


@pytest.mark.parametrize("more", [{}, {"stream": True}])
def test_a_client_that_leaves_cancels_its_job(server, more) -> None:
    job_id = leave_early(server, IMAGES, {"prompt": PROMPT, "steps": 100, **more})
    server.wait_until(lambda: server.get(f"/v1/jobs/{job_id}").json["state"] == "cancelled", 5)


def test_a_client_that_means_to_ask_again_does_not(server) -> None:
    header = {"Idempotency-Key": "again"}
    asked = {"prompt": PROMPT, "steps": 20}
    job_id = leave_early(server, IMAGES, asked, header)
    answer = server.post(IMAGES, asked, headers=header)
    assert answer.status == 200 and answer.json["octet"]["job"] == job_id


def test_a_cancelled_job_is_an_error_for_who_waits(server) -> None:
    with server.asked("POST", IMAGES, {"prompt": PROMPT, "steps": 100, "stream": True}) as waits:
        job = server.get("/v1/jobs?limit=1").json["data"][0]
        server.ask("DELETE", f"/v1/jobs/{job['id']}")
        last = list(read_events(waits))[-1]
    assert last.name == "error" and last.data["error"]["code"] == "cancelled"


# --- AUTOMATIC1111 ---


def test_text_to_image_as_front_ends_send_it(server) -> None:
    asked = {"prompt": PROMPT, "negative_prompt": "ugly, blurry", "seed": 9, "steps": 2,
             "width": 256, "height": 256, "cfg_scale": 7, "sampler_name": "Euler a",
             "batch_size": 2, "n_iter": 1, "restore_faces": False, "tiling": False,
             "override_settings": {}, "send_images": True, "save_images": False}
    answer = server.post(TEXT_TO_IMAGE, asked)
    assert answer.status == 200, answer.body
    body = answer.json
    assert [png_size(decoded(image)) for image in body["images"]] == [SIZE] * 2
    assert body["parameters"] == asked
    info = json.loads(body["info"])
    assert info["all_seeds"] == [9, 10] and info["steps"] == 2 and info["width"] == 256
    assert "Steps: 2" in info["infotexts"][0]
    assert "negative_prompt" in answer.headers["x-octet-ignored"]
    random = json.loads(server.post(TEXT_TO_IMAGE, {"prompt": PROMPT, "seed": -1, "steps": 1})
                        .json["info"])
    assert random["seed"] >= 0


def test_text_to_image_names_the_wrong_field(server) -> None:
    for asked, param in [({}, "prompt"), ({"prompt": PROMPT, "width": 512}, "height"),
                         ({"prompt": PROMPT, "steps": 500}, "steps"),
                         ({"prompt": PROMPT, "width": 8192, "height": 8192}, "width"),
                         ({"prompt": PROMPT + " <lora:style:0.5>"}, "prompt")]:
        answer = server.post(TEXT_TO_IMAGE, asked)
        assert answer.status == 400 and answer.error["param"] == param, asked
        assert f"`{param}`" in answer.error["message"]


def test_progress_and_interruption(server) -> None:
    idle = server.get("/sdapi/v1/progress").json
    assert idle["progress"] == 0 and idle["current_image"] is None
    with ThreadPoolExecutor(1) as elsewhere:
        waits = elsewhere.submit(server.post, TEXT_TO_IMAGE, {"prompt": PROMPT, "steps": 100})
        server.wait_until(lambda: server.get("/sdapi/v1/progress").json["current_image"])
        now = server.get("/sdapi/v1/progress").json
        assert 0 < now["progress"] < 1 and now["state"]["sampling_steps"] == 100
        assert png_size(decoded(now["current_image"]))
        brief = server.get("/sdapi/v1/progress?skip_current_image=true").json
        assert brief["current_image"] is None
        assert server.ask("POST", "/sdapi/v1/interrupt").status == 200
        answer = waits.result()
    assert answer.status == 409 and answer.error["code"] == "cancelled"


def test_lists_of_front_ends(server) -> None:
    for name in ("samplers", "schedulers", "sd-models", "loras", "upscalers"):
        assert isinstance(server.get(f"/sdapi/v1/{name}").json, list), name
    assert server.get("/sdapi/v1/sd-models").json[0]["title"] == "demo"
    assert server.get("/sdapi/v1/samplers").json[0]["name"] == "Euler"


def test_options_name_the_model_there_is(server) -> None:
    options = server.get("/sdapi/v1/options").json
    assert options["sd_model_checkpoint"] == "demo"
    same = server.post("/sdapi/v1/options", {"sd_model_checkpoint": "demo", "eta": 1})
    assert same.status == 200 and same.headers["x-octet-ignored"] == "eta"
    other = server.post("/sdapi/v1/options", {"sd_model_checkpoint": "sdxl"})
    assert other.status == 400 and other.error["param"] == "sd_model_checkpoint"
