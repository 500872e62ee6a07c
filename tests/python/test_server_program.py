"""`octet serve` as a program: what its flags change."""

from __future__ import annotations

import array
import http.client
import json
import random
import shutil
import ssl
import struct
import subprocess
import time

import pytest
from serving import PROMPT, serving

STYLE = [{"name": "style", "strength": 0.8}]
PUBLIC = "https://pictures.example.org"


def write_lora(path, rank=4, width=512) -> None:
    """For three layers of the small model."""
    values = random.Random(3)
    head, data = {}, b""
    for layer in range(3):
        for side, shape in (("A", [rank, width]), ("B", [width, rank])):
            scale = width**-0.5 if side == "A" else 1
            numbers = array.array("f", (values.gauss(0, scale) for _ in range(rank * width)))
            begin = len(data)
            data += numbers.tobytes()
            head[f"transformer.layers.{layer}.attention.o.lora_{side}.weight"] = {
                "dtype": "F32", "shape": shape, "data_offsets": [begin, len(data)]}
    text = json.dumps(head).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    lora = tmp_path_factory.mktemp("loras") / "a private name.safetensors"
    write_lora(lora)
    with serving("--lora", f"style={lora}", "--log-format", "json", "--public-url", PUBLIC,
                 "--max-seconds", 3, warm_up=True) as server:
        yield server


def test_a_wait_is_known_before_any_job_has_ended(running) -> None:
    first = running.submit(steps=20)
    brief, long = (running.submit(steps=steps) for steps in (2, 80))
    assert 0 < brief["eta_s"] < long["eta_s"]
    for job in (long, brief, first):
        running.ask("DELETE", f"/v1/jobs/{job['id']}")
    running.finished(first)


def test_a_lora_of_the_list_changes_the_picture(running) -> None:
    jobs = [running.finished(running.submit(steps=1, seed=5, lora=lora))
            for lora in ([], STYLE, [])]
    plain, styled, again = (running.get(job["pictures"][0]["url"]).body for job in jobs)
    assert styled != plain == again
    assert jobs[1]["request"]["lora"] == STYLE
    assert jobs[1]["report"]["loras"] == ["style:0.8"]
    model = running.get("/v1/models").json["data"][0]
    assert "style" in json.dumps(model) and "private" not in json.dumps([model, jobs])
    wrong = running.post("/v1/jobs", {"prompt": PROMPT, "lora": [{"name": "other"}]})
    assert wrong.status == 400 and "style" in wrong.error["message"]


def test_links_begin_with_the_public_address(running) -> None:
    asked = {"prompt": PROMPT, "steps": 1, "response_format": "url"}
    answer = running.post("/v1/images/generations", asked).json
    link = answer["data"][0]["url"]
    assert link.startswith(PUBLIC + "/v1/jobs/")
    assert running.get(link.removeprefix(PUBLIC)).status == 200
    assert running.get("/v1/models", headers={"Host": "pictures.example.org"}).status == 200


def test_a_job_that_takes_too_long_fails(running) -> None:
    job = running.finished(running.submit(steps=100, size="1024x1024"))
    assert job["state"] == "failed" and job["error"]["code"] == "timeout"


def test_lines_of_the_log_are_json(running) -> None:
    answer = running.post("/v1/jobs", {"prompt": PROMPT, "steps": 1})
    job, request = answer.json["id"], answer.headers["x-request-id"]
    running.finished(answer.json)

    def about_it():
        lines = [json.loads(line) for line in running.log]
        return [line for line in lines if line.get("request") == request]

    running.wait_until(lambda: len(about_it()) == 2)
    asked, ended = sorted(about_it(), key=lambda line: "job" in line)
    assert (asked["method"], asked["path"], asked["status"]) == ("POST", "/v1/jobs", "202")
    assert (ended["job"], ended["state"], ended["pictures"]) == (job, "completed", "1")
    assert float(ended["took_s"]) > 0 and ended["level"] == "info"


def test_the_whole_server_speaks_tls(tmp_path) -> None:
    if shutil.which("openssl") is None:
        pytest.skip("no openssl here, which makes the certificate")
    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                    "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", "/CN=localhost",
                    "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", certificate],
                   check=True, capture_output=True)
    trust = ssl.create_default_context(cafile=certificate)
    with serving("--tls-cert", certificate, "--tls-key", key) as server:

        def ask(method, path, body=None):
            connection = http.client.HTTPSConnection(server.host, server.port, context=trust)
            connection.request(method, path, body and json.dumps(body),
                               {"Content-Type": "application/json"} if body else {})
            response = connection.getresponse()
            return response.status, response.read()

        end = time.monotonic() + 30
        while ask("GET", "/ready")[0] != 200 and time.monotonic() < end:
            time.sleep(0.05)
        assert ask("GET", "/")[0] == 200
        status, body = ask("POST", "/v1/images/generations",
                           {"prompt": PROMPT, "steps": 1, "response_format": "url"})
        link = json.loads(body)["data"][0]["url"]
        own = f"https://{server.host}:{server.port}"
        assert status == 200 and link.startswith(own)
        assert ask("GET", link.removeprefix(own))[1].startswith(b"\x89PNG")
        with pytest.raises((http.client.HTTPException, OSError)):
            server.get("/health")
