"""bench/serve_soak.py, and the server under it: many clients, faults and two restarts."""

import os
import struct
import subprocess
import sys
import zlib

import pytest

REQUESTS, CLIENTS = 350, 16


@pytest.fixture(scope="session")
def soak(repository):
    sys.path.insert(0, str(repository / "bench"))
    try:
        from soak import ledger, report, schema, server
    finally:
        sys.path.remove(str(repository / "bench"))
    return {"ledger": ledger, "report": report, "schema": schema, "server": server}


def test_soak(repository, built_program, tmp_path):
    done = subprocess.run(
        [sys.executable, repository / "bench/serve_soak.py", built_program("octet"),
         "--requests", str(REQUESTS), "--clients", str(CLIENTS), "--folder", tmp_path],
        capture_output=True, text=True, timeout=300, env=os.environ)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    assert "verdict: passed" in done.stdout
    for which in ("SIGTERM after", "SIGKILL after", "failed (restarted)"):
        assert which in done.stdout, done.stdout


# --- that the judge can find something ---

def png_of(**texts):
    def chunk(kind, content):
        return struct.pack(">I", len(content)) + kind + content + struct.pack(
            ">I", zlib.crc32(kind + content))

    chunks = [chunk(b"tEXt", f"{name}\0{value}".encode()) for name, value in texts.items()]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks) + chunk(b"IEND", b"")


def job_of(noted, state="completed", **more):
    report = {"text_s": 0.1, "load_s": 0, "denoise_s": 0.2, "decode_s": 0.1,
              "ahead_s": 0}
    return {"id": noted.id, "state": state, "created_at": 1, "started_at": 2, "ended_at": 2.5,
            "request": {"json_prompt": noted.prompt, "seed": noted.seed}, "error": None,
            "report": report} | more


@pytest.fixture
def judge(soak):
    """A ledger with one job of anna's."""
    ledger = soak["ledger"].Ledger()
    noted = soak["ledger"].Noted("octet-1", "anna", ledger.new_prompt("anna"), 7, 1, 0.0)
    ledger.jobs[noted.id] = noted
    return ledger, noted


def test_judge_accepts_what_is_right(judge):
    ledger, noted = judge
    ledger.see("anna", job_of(noted), 1)
    ledger.check_png(png_of(caption=noted.prompt, seed=7), noted.prompt, 7, "picture")
    lost = job_of(noted, "failed", error={"code": "restarted"})
    ledger.see("anna", lost, 2)  # pictures do not survive a restart
    assert ledger.violations == []
    assert ledger.beside_engine == [pytest.approx(0.1)]


@pytest.mark.parametrize(
    ("who", "change", "expected"),
    [
        ("bert", {}, "bert was shown the job octet-1 of anna"),
        ("anna", {"request": {"json_prompt": "of annax99x", "seed": 7}}, "has the request"),
        ("anna", {"state": "cancelled"}, "which nobody asked for"),
        ("anna", {"state": "failed", "error": {"code": "other"}}, "failed: {'code': 'other'}"),
        ("anna", {"state": "done"}, "is 'done'"),
    ],
)
def test_judge_finds_wrong_jobs(judge, who, change, expected):
    ledger, noted = judge
    ledger.see(who, job_of(noted) | change, 1)
    assert len(ledger.violations) == 1 and expected in ledger.violations[0]


def test_judge_finds_a_second_end(judge):
    ledger, noted = judge
    ledger.see("anna", job_of(noted), 1)
    ledger.see("anna", job_of(noted, "failed", error={"code": "restarted"}), 1)
    assert "was completed, and is failed now" in ledger.violations[0]


@pytest.mark.parametrize("data", [
    b"GIF89a", png_of(caption="annax2x", seed=7),
    png_of(caption="annax1x", seed=8), png_of(caption="annax1x", seed=7)[:-12]])
def test_judge_finds_wrong_pictures(judge, data):
    ledger, noted = judge
    ledger.check_png(data, noted.prompt, 7, "picture")
    assert len(ledger.violations) == 1, ledger.violations


DOCUMENT = {
    "paths": {"/jobs/{id}": {"get": {"responses": {"200": {"content": {"application/json": {
        "schema": {"$ref": "#/components/schemas/Job"}}}}}}}},
    "components": {"schemas": {"Job": {
        "type": "object", "required": ["id"], "additionalProperties": False,
        "properties": {"id": {"type": "string", "pattern": "^j"},
                       "left": {"type": ["integer", "null"], "minimum": 0},
                       "tags": {"type": "array", "items": {"enum": ["a", "b"]}, "maxItems": 2}}}}},
}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"id": "j1", "left": None, "tags": ["a"]}, None),
        ({"id": "j1", "left": 2.0}, None),
        ({}, "has no id"),
        ({"id": "k"}, "outside of ^j"),
        ({"id": "j1", "left": -1}, "outside of 0"),
        ({"id": "j1", "left": True}, "expected integer or null"),
        ({"id": "j1", "tags": ["c"]}, "$.tags[0] is 'c'"),
        ({"id": "j1", "tags": ["a", "a", "a"]}, "outside of 2"),
        ({"id": "j1", "more": 1}, "$.more must not be there"),
        ([], "expected object"),
    ],
)
def test_schema(soak, value, expected):
    schemas = soak["schema"].Schemas(DOCUMENT)
    faults = schemas.answer_faults("GET", "/jobs/1", 200, "application/json", value)
    if expected is None:
        assert faults == []
    else:
        assert len(faults) == 1 and expected in faults[0], faults


@pytest.mark.parametrize(("method", "path", "status", "kind", "expected"), [
    ("GET", "/other", 200, "application/json", "not in the file"),
    ("GET", "/jobs/1", 418, "application/json", "status 418 is not in the file"),
    ("GET", "/jobs/1", 200, "text/html", "type text/html is not in the file"),
    ("POST", "/jobs/1", 200, "application/json", "not in the file"),
])
def test_answers_outside_of_the_file(soak, method, path, status, kind, expected):
    faults = soak["schema"].Schemas(DOCUMENT).answer_faults(method, path, status, kind, {})
    assert len(faults) == 1 and expected in faults[0], faults


@pytest.mark.parametrize(("rss", "kept", "is_flat"), [
    ([100, 100, 100], [0, 0], True), ([50, 100, 109], [0, 0], True),
    ([100, 100, 130], [0, 0], False), ([100, 100, 130], [0, 20, 40], True),
    ([130, 100, 100], [0, 0], True)])
def test_memory_is_flat(soak, rss, kept, is_flat):
    mib = 1 << 20
    samples = [soak["server"].Sample(at, each * mib, 9, 9) for at, each in enumerate(rss)]
    faults = list(soak["report"].memory_faults(samples, [each * mib for each in kept]))
    assert (faults == []) == is_flat, faults


def test_threads_that_grow_are_found(soak):
    samples = [soak["server"].Sample(at, 1, threads, 9) for at, threads in enumerate([9, 9, 10])]
    assert list(soak["report"].memory_faults(samples, [])) == ["threads grew from 9 to 10"]
