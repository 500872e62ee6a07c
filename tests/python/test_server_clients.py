"""`octet serve` with clients that others wrote, as they are."""

from __future__ import annotations

import base64
import importlib.util
import json
import os
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
from serving import CAPTION, PROMPT, png_size, server  # noqa: F401

SIZE = (256, 256)


# --- the official client of OpenAI ---


@pytest.fixture(scope="module")
def openai_client(server):
    openai = pytest.importorskip("openai", reason="the package openai is not installed")
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0) as client:
        yield client


def test_openai_gets_pictures(openai_client) -> None:
    made = openai_client.images.generate(prompt=PROMPT, model="gpt-image-1", n=2, size="256x256",
                                         quality="low", extra_body={"steps": 2, "seed": 3})
    assert len(made.data) == 2
    for image in made.data:
        assert png_size(base64.b64decode(image.b64_json)) == SIZE
        assert image.revised_prompt
    assert made.usage.total_tokens == made.usage.input_tokens + made.usage.output_tokens
    assert made.size == "256x256" and made.background == "opaque" and made.output_format == "png"


def test_openai_gets_links(openai_client) -> None:
    made = openai_client.images.generate(prompt=json.dumps(CAPTION), response_format="url",
                                         extra_body={"steps": 1})
    with urllib.request.urlopen(made.data[0].url, timeout=30) as file:
        assert png_size(file.read()) == SIZE


def test_openai_gets_previews_while_it_waits(openai_client) -> None:
    events = list(openai_client.images.generate(prompt=PROMPT, stream=True, partial_images=2,
                                                extra_body={"steps": 6}))
    types = [event.type for event in events]
    assert types[-1] == "image_generation.completed"
    partial = events[:-1]
    assert [event.partial_image_index for event in partial] == list(range(len(partial)))
    assert 1 <= len(partial) <= 2
    for event in events:
        assert png_size(base64.b64decode(event.b64_json)) == SIZE
    assert events[-1].usage.total_tokens > 0


def test_openai_raises_what_was_wrong(openai_client) -> None:
    import openai

    with pytest.raises(openai.BadRequestError) as wrong:
        openai_client.images.generate(prompt=PROMPT, size="10x10")
    assert wrong.value.param == "size" and wrong.value.type == "invalid_request_error"
    assert wrong.value.request_id.startswith("req-")
    with pytest.raises(openai.NotFoundError):
        openai_client.models.retrieve("gpt-image-1")


def test_openai_lists_the_model(openai_client) -> None:
    assert [model.id for model in openai_client.models.list()] == ["demo"]
    assert openai_client.models.retrieve("demo").owned_by == "octet"


# --- a front end for AUTOMATIC1111's server: the calls that one makes, in their order ---


def call(server, method, path, body=None):
    request = urllib.request.Request(
        f"{server.url}{path}", method=method,
        data=None if body is None else json.dumps(body).encode(),
        headers={"Content-Type": "application/json", "Accept": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)


def test_a_front_end_of_automatic1111(server) -> None:
    options = call(server, "GET", "/sdapi/v1/options")
    models = call(server, "GET", "/sdapi/v1/sd-models")
    assert options["sd_model_checkpoint"] in [model["title"] for model in models]
    sampler = call(server, "GET", "/sdapi/v1/samplers")[0]["name"]
    scheduler = call(server, "GET", "/sdapi/v1/schedulers")[0]["name"]
    call(server, "POST", "/sdapi/v1/options", {"sd_model_checkpoint": models[0]["title"]})
    made = call(server, "POST", "/sdapi/v1/txt2img", {
        "prompt": PROMPT, "negative_prompt": "", "sampler_name": sampler, "scheduler": scheduler,
        "steps": 2, "cfg_scale": 2, "width": 256, "height": 256, "seed": -1, "subseed": -1,
        "subseed_strength": 0, "enable_hr": False, "denoising_strength": 0, "styles": [],
        "batch_size": 1, "n_iter": 1, "eta": None, "s_churn": 0, "script_args": [],
        "alwayson_scripts": {}, "override_settings": {"CLIP_stop_at_last_layers": 1},
        "override_settings_restore_afterwards": True})
    assert png_size(base64.b64decode(made["images"][0])) == SIZE
    assert json.loads(made["info"])["seed"] >= 0
    assert call(server, "GET", "/sdapi/v1/progress")["progress"] == 0


# --- whatever fits the description of the API, and what does not ---

# Whether a caption can be painted is the model's to say, not the schema's; and a job that was
# deleted while it ran is still there.
LEFT_OUT = "positive_data_acceptance,use_after_free,ensure_resource_availability"


def test_answers_are_as_described(server, tmp_path) -> None:
    if importlib.util.find_spec("schemathesis") is None:
        pytest.skip("the package schemathesis is not installed")
    done = subprocess.run(
        [Path(sys.executable).with_name("schemathesis"), "run", f"{server.url}/openapi.json",
         "--checks", "all", "--exclude-checks", LEFT_OUT, "--max-examples", "5",
         "--phases", "examples,coverage,fuzzing", "--seed", "7", "--request-timeout", "30",
         "--max-response-time", "120", "--generation-database", "none", "--no-color"],
        cwd=tmp_path, capture_output=True, text=True, timeout=300,
        env={**os.environ, "PYTHONIOENCODING": "utf-8"})
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
