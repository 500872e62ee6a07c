"""`octet serve`: who may ask for what."""

from __future__ import annotations

import os
import socket
import time

import pytest
from serving import PROMPT, server, serving  # noqa: F401

ANNA, BEN = "key-of-anna-00000001", "key-of-ben-000000002"
LISTED = "https://editor.example"


@pytest.fixture(scope="module")
def key_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("keys") / "keys.txt"
    path.write_text(f"# who may ask\nanna {ANNA}\nben {BEN} weight=2\n")
    path.chmod(0o600)
    return path


@pytest.fixture(scope="module")
def guarded(key_file):
    with serving("--keys", key_file, "--allow-origin", LISTED, "--queue", 2) as running:
        yield running


def test_nothing_of_value_is_answered_without_a_key(guarded) -> None:
    for method, path in [("GET", "/v1/jobs"), ("POST", "/v1/jobs"), ("GET", "/v1/models"),
                         ("POST", "/v1/images/generations"), ("POST", "/v1/captions/check"),
                         ("GET", "/sdapi/v1/options"), ("POST", "/sdapi/v1/txt2img"),
                         ("GET", "/v1/jobs/octet-1/events"), ("DELETE", "/v1/jobs/octet-1")]:
        body = {} if method == "POST" else None
        answer = guarded.ask(method, path, body)
        assert answer.status == 401, path
        assert answer.error["code"] == "missing_api_key"
        assert answer.headers["www-authenticate"] == "Bearer"
        wrong = guarded.ask(method, path, body, key=ANNA[:-1] + "2")
        assert wrong.status == 401 and wrong.error["code"] == "invalid_api_key"
        assert ANNA not in wrong.body.decode()


def test_the_page_and_what_watches_the_server_need_none(guarded) -> None:
    for path in ("/", "/health", "/ready", "/openapi.json", "/metrics"):
        assert guarded.get(path).status == 200, path


def test_two_keys_do_not_see_each_others_jobs(guarded) -> None:
    job = guarded.submit(key=ANNA, steps=1, headers={"Idempotency-Key": "one"})
    ended = guarded.finished(job, key=ANNA)
    path = f"/v1/jobs/{job['id']}"
    assert guarded.get(path, key=ANNA).status == 200
    for each in (path, path + "/events", ended["pictures"][0]["url"]):
        assert guarded.get(each, key=BEN).status == 404, each
    assert guarded.ask("DELETE", path, key=BEN).status == 404
    assert guarded.get("/v1/jobs", key=BEN).json["data"] == []
    assert guarded.submit(key=BEN, steps=1, headers={"Idempotency-Key": "one"})["id"] != job["id"]


def test_a_link_shows_its_pictures_without_a_key(guarded) -> None:
    asked = {"prompt": PROMPT, "steps": 1, "n": 2, "response_format": "url"}
    answer = guarded.post("/v1/images/generations", asked, key=ANNA).json
    path, second = (each["url"].removeprefix(guarded.url) for each in answer["data"])
    assert guarded.get(path).body.startswith(b"\x89PNG") and guarded.get(second).status == 200
    plain, ticket = path.split("?ticket=")
    assert guarded.get(plain).status == 401
    assert guarded.get(plain + "?ticket=" + ticket[:-1]).status == 401
    assert guarded.get(path, key=BEN).status == 404, "who says who they are is judged by that"
    job, of_ben = plain.rsplit("/", 2)[0], guarded.submit(key=BEN, steps=1)
    assert guarded.get(f"{job}?ticket={ticket}").status == 401
    assert guarded.get(f"/v1/jobs/{of_ben['id']}/pictures/0?ticket={ticket}").status == 401
    guarded.finished(of_ben, key=BEN)
    assert ticket not in "".join(guarded.log)


def test_a_full_queue_says_when_to_come_back(guarded) -> None:
    jobs = [guarded.submit(key=ANNA, steps=100)]
    guarded.wait_until(
        lambda: guarded.get(f"/v1/jobs/{jobs[0]['id']}", key=ANNA).json["state"] == "running")
    jobs += [guarded.submit(key=ANNA, steps=100) for _ in range(2)]
    assert [job["position"] for job in jobs[1:]] == [1, 2]
    full = guarded.post("/v1/jobs", {"prompt": PROMPT}, key=ANNA)
    assert full.status == 429 and full.error["code"] == "queue_full"
    assert int(full.headers["retry-after"]) >= 1
    others = guarded.submit(key=BEN, steps=1)  # a queue for each key
    for job in reversed(jobs):
        guarded.ask("DELETE", f"/v1/jobs/{job['id']}", key=ANNA)
    assert guarded.finished(others, key=BEN)["state"] == "completed"


def test_keys_may_come_as_a_password(guarded) -> None:
    import base64

    pair = base64.b64encode(f"anyone:{ANNA}".encode()).decode()
    answer = guarded.get("/sdapi/v1/options", headers={"Authorization": f"Basic {pair}"})
    assert answer.status == 200


def test_a_changed_file_of_keys_counts_at_once(guarded, key_file) -> None:
    former, carol = key_file.read_text(), "key-of-carol-0000003"
    assert guarded.get("/v1/jobs", key=carol).status == 401
    key_file.write_text(former + f"carol {carol}\n")
    guarded.wait_until(lambda: guarded.get("/v1/jobs", key=carol).status == 200, seconds=5)
    key_file.write_text("nonsense\n")
    time.sleep(1.1)
    assert guarded.get("/v1/jobs", key=carol).status == 200
    assert guarded.get("/v1/jobs", key=ANNA).status == 200
    assert any("stay in use" in line for line in guarded.log)
    assert not any(key in line for line in guarded.log for key in (ANNA, BEN, carol))
    key_file.write_text(former)


def test_the_host_has_to_be_this_server(server) -> None:
    for host in ("evil.example", f"evil.example:{server.port}", "127.0.0.1.evil.example"):
        answer = server.get("/v1/jobs", headers={"Host": host})
        assert answer.status == 421 and answer.error["code"] == "wrong_host"
    for host in ("localhost", f"127.0.0.1:{server.port}", "[::1]:80"):
        assert server.get("/v1/jobs", headers={"Host": host}).status == 200, host


def test_pages_of_other_servers_may_not_ask(server) -> None:
    for origin in ("https://evil.example", "null", "http://127.0.0.1:1"):
        answer = server.post("/v1/jobs", {"prompt": PROMPT}, headers={"Origin": origin})
        assert answer.status == 403 and answer.error["code"] == "wrong_origin"
        assert "access-control-allow-origin" not in answer.headers
    assert server.get("/v1/jobs", headers={"Origin": server.url}).status == 200


def test_listed_pages_may(guarded) -> None:
    asked = {"Origin": LISTED, "Access-Control-Request-Method": "POST"}
    before = guarded.ask("OPTIONS", "/v1/jobs", headers=asked)
    assert before.status == 204
    assert before.headers["access-control-allow-origin"] == LISTED
    assert "Authorization" in before.headers["access-control-allow-headers"]
    answer = guarded.get("/v1/jobs", headers={"Origin": LISTED}, key=ANNA)
    assert answer.status == 200 and answer.headers["access-control-allow-origin"] == LISTED


@pytest.mark.parametrize("kind", [None, "text/plain", "application/x-www-form-urlencoded",
                                  "multipart/form-data; boundary=x", "application/jsonp"])
def test_bodies_are_json_and_say_so(server, kind) -> None:
    headers = {"Content-Type": kind} if kind else {}
    answer = server.post("/v1/jobs", b'{"prompt": "a red circle"}', headers=headers)
    assert answer.status == 415 and answer.error["code"] == "wrong_content_type"
    right = {"Content-Type": "Application/JSON; charset=utf-8"}
    assert server.post("/v1/captions/check", b'{"caption": {}}', headers=right).status == 200


def test_a_large_body_is_refused_before_it_is_read(server) -> None:
    with socket.create_connection((server.host, server.port), timeout=10) as connection:
        connection.sendall(b"POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
                           b"application/json\r\nContent-Length: 9000000000\r\n\r\n")
        answer = connection.recv(65536)
    assert answer.startswith(b"HTTP/1.1 413 ") and b'"error"' in answer


def test_a_public_address_needs_keys(built_program) -> None:
    import subprocess

    done = subprocess.run([built_program("octet"), "serve", "--host", "0.0.0.0", "--port", "0"],
                          capture_output=True, text=True, timeout=60, env=os.environ)
    assert done.returncode == 2 and "--keys" in done.stderr and "--insecure" in done.stderr
