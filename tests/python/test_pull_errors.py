"""octet pull against a hub with faults: what is overcome, and the sentence for what is not."""


import json
import pytest
import re
import socket
from hub_server import COMMIT, File, Hub, RunningHub, random_bytes
from pulling import assert_pulled, blobs_of, home, pull, sentence_of, snapshot_of, some_hub

__all__ = ["home", "pull"]  # fixtures
TOKEN = "hf_secretSECRETsecret"
ONE_TRY = ("--retries", "0")


def one_file(size=10_000_000, **settings) -> Hub:
    return Hub({"a.bin": File(random_bytes(size), lfs=True)}, **settings)


def left_of(home) -> list[str]:
    return [path.name for path in blobs_of(home).iterdir()] if blobs_of(home).is_dir() else []


# --- overcome -----------------------------------------------------------------------------------

@pytest.mark.parametrize("size", [50_000, 10_000_000])
def test_dropped_connections(pull, home, size):
    hub = one_file(size, drop_after=size // 20, drops=4)
    with RunningHub(hub) as server:
        done = pull(server)
    assert done.returncode == 0, done.stderr
    assert_pulled(home, hub.files)
    assert hub.drops == 0


@pytest.mark.parametrize("status", [(500, {}), (503, {}), (429, {"Retry-After": "1"}), (408, {})])
def test_a_busy_server(pull, home, status):
    hub = one_file(statuses=[status], listing_statuses=[status])
    with RunningHub(hub) as server:
        done = pull(server)
    assert done.returncode == 0, done.stderr
    assert_pulled(home, hub.files)


def test_a_server_without_ranges(pull, home):
    hub = one_file(20_000_000, ranges=False)
    with RunningHub(hub) as server:
        done = pull(server)
    assert done.returncode == 0, done.stderr
    assert "as one" in done.stderr
    assert_pulled(home, hub.files)


def test_a_server_without_ranges_that_drops(pull, home):
    hub = one_file(20_000_000, ranges=False, drop_after=15_000_000, drops=2)
    with RunningHub(hub) as server:
        assert pull(server).returncode == 0
    assert_pulled(home, hub.files)


def test_ranges_that_are_gone_after_an_interruption(pull, home):
    hub = one_file(drop_after=2_000_000, drops=99)
    with RunningHub(hub) as server:
        sentence_of(pull(server, *ONE_TRY))
        hub.drops, hub.ranges = 0, False
        assert pull(server).returncode == 0
    assert_pulled(home, hub.files)


def test_a_relative_redirect(pull, home):
    hub = one_file(redirect=lambda name: f"/cdn/{name}")
    with RunningHub(hub) as server:
        assert pull(server).returncode == 0
    assert_pulled(home, hub.files)


# --- refused ------------------------------------------------------------------------------------

@pytest.mark.parametrize("code", [401, 403])
@pytest.mark.parametrize("of_listing", [True, False])
def test_gated(pull, home, code, of_listing):
    hub = one_file(**({"listing_statuses": [(code, {})]} if of_listing else
                      {"always": (code, {"X-Error-Code": "GatedRepo"})}))
    with RunningHub(hub) as server:
        sentence = sentence_of(pull(server))
        assert str(code) in sentence and "HF_TOKEN" in sentence and "licence" in sentence
        assert f"{server.url}/owner/name" in sentence
    assert not (snapshot_of(home) / "a.bin").exists()


def test_a_wrong_token(pull):
    with RunningHub(one_file(token=TOKEN)) as server:
        sentence = sentence_of(pull(server, HF_TOKEN="hf_wrong"))
    assert "does not accept the token" in sentence and "hf_wrong" not in sentence


def test_a_token_that_would_be_two_headers(pull):
    hub = one_file()
    with RunningHub(hub) as server:
        sentence = sentence_of(pull(server, HF_TOKEN="hf_x\r\nEvil: 1"))
    assert "token" in sentence and "hf_x" not in sentence and hub.requests == []


def test_not_there(pull, home):
    hub = one_file()
    with RunningHub(hub) as server:
        sentence = sentence_of(pull(server, repo="owner/other"))
        assert "owner/other" in sentence and "no such repository" in sentence
        hub.always = (404, {"X-Error-Code": "EntryNotFound"})
        sentence = sentence_of(pull(server))
        assert "a.bin" in sentence and "404" in sentence


@pytest.mark.parametrize(("status", "part"), [
    ((429, {}), "fewer requests"), ((429, {"Retry-After": "86400"}), "in 86400 s"),
    ((500, {}), "500"), ((418, {}), "418")])
def test_a_server_that_stays_so(pull, status, part):
    retries = [] if "Retry-After" in status[1] else ["--retries", "1"]
    with RunningHub(one_file(always=status)) as server:
        assert part in sentence_of(pull(server, *retries))


@pytest.mark.parametrize("repo", ["name", "a/b/c", "../x", "a/..", "/etc", "a/b\n", "a--b/c",
                                  "a/.b", "x" * 200 + "/y"])
def test_names_that_are_none(pull, repo):
    sentence = sentence_of(pull("http://127.0.0.1:1", repo=repo), code=2)
    assert "owner/name" in sentence


@pytest.mark.parametrize("revision", ["../x", "/x", "a//b", "a\x1b"])
def test_revisions_that_are_none(pull, revision):
    done = pull("http://127.0.0.1:1", f"--revision={revision}")
    assert "revision" in sentence_of(done, code=2)


@pytest.mark.parametrize("endpoint", ["file:///etc", "ftp://127.0.0.1/", "nonsense", "http://"])
def test_endpoints_that_are_none(pull, endpoint):
    assert "HF_ENDPOINT" in sentence_of(pull(endpoint))


def test_no_network(pull, home):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    sentence = sentence_of(pull(f"http://127.0.0.1:{port}", "--retries", "1"))
    assert "network" in sentence
    assert not home.exists()


@pytest.mark.parametrize("host", ["127.0.0.1:1", "x" * 64 + ".invalid"])
def test_without_a_network_it_ends_soon_and_says_so_once(pull, host):
    done = pull(f"http://{host}", "--retries", "9")
    (line,) = done.stderr.splitlines()
    assert "is there a network?" in line and done.returncode == 1
    told = pull(f"http://{host}", "--retries", "9", "-v")
    attempts = re.findall(r"attempt (\d+) of 10 in (\S+) s", told.stderr)
    assert 0 < len(attempts) <= 2  # further ones were not made
    assert sum(float(seconds) for _, seconds in attempts) < 2


def test_a_host_that_is_not_found_is_asked_for_again(pull):
    """The second attempt is on a connection that never came about."""
    host = "x" * 64 + ".invalid"  # longer than a name server takes: no network is asked
    done = pull(f"http://{host}", "--retries", "1", "-v")
    assert "attempt 2 of 2" in done.stderr
    assert f"resolve host: {host}" in sentence_of(done)


@pytest.mark.parametrize(("fault", "part"), [
    ({"say_length": -100}, "bytes, expected"), ({"say_length": 100}, "bytes, expected"),
    ({"body_change": -100}, ""), ({"body_change": 100}, None)])
@pytest.mark.parametrize("size", [50_000, 10_000_000])
def test_wrong_lengths(pull, home, fault, part, size):
    """Bytes behind the announced end are never read; everything else is refused or retried."""
    hub = one_file(size, **fault)
    with RunningHub(hub) as server:
        done = pull(server, *ONE_TRY)
        if part is None:
            assert done.returncode == 0, done.stderr
            return assert_pulled(home, hub.files)
        sentence = sentence_of(done)
        assert size > 50_000 or part in sentence
        assert not (snapshot_of(home) / "a.bin").exists()
        hub.say_length = hub.body_change = 0
        assert pull(server).returncode == 0
    assert_pulled(home, hub.files)


def test_a_file_of_another_size_than_listed(pull, home):
    def longer(listing):
        listing["siblings"][0]["lfs"]["size"] += 1

    with RunningHub(one_file(edit_listing=longer)) as server:
        sentence = sentence_of(pull(server, *ONE_TRY))
    assert "a.bin" in sentence and "expected" in sentence


@pytest.mark.parametrize("lfs", [True, False])
def test_a_corrupt_file(pull, home, lfs):
    hub = Hub({"a.bin": File(random_bytes(100_000), lfs=lfs)}, corrupt=True)
    with RunningHub(hub) as server:
        sentence = sentence_of(pull(server))
        assert "a.bin" in sentence and hub.files["a.bin"].etag in sentence
        assert "pull again" in sentence
        assert left_of(home) == [] and not (snapshot_of(home) / "a.bin").exists()
        hub.corrupt = False
        assert pull(server).returncode == 0
    assert_pulled(home, hub.files)


@pytest.mark.parametrize(("where", "part"), [
    ("file:///etc/passwd", "expected http"), ("ftp://127.0.0.1/x", "expected http"),
    (f"/owner/name/resolve/{COMMIT}/loop", "redirects"), ("http://", "")])
def test_bad_redirects(pull, home, where, part):
    hub = one_file()
    with RunningHub(hub) as server:
        hub.files["loop"] = hub.files["a.bin"]
        hub.redirect = lambda name: where
        sentence = sentence_of(pull(server, "--include", "a.bin", *ONE_TRY))
    assert part in sentence
    assert not (snapshot_of(home) / "a.bin").exists()


HOSTILE_NAMES = ["../x", "a/../../x", "/etc/passwd", "a\0b", "a//b", "", ".", "a/./b", "a/",
                 "a\x1b[2J", "a\nb", "a\\..\\b", "..", "x" * 300, "a/" * 2000 + "b"]


@pytest.mark.parametrize("name", HOSTILE_NAMES)
def test_hostile_names(pull, home, name):
    def edit(listing):
        listing["siblings"].append({**listing["siblings"][0], "rfilename": name})

    hub = one_file(edit_listing=edit)
    with RunningHub(hub) as server:
        sentence = sentence_of(pull(server))
    assert "the file name" in sentence and "\x1b" not in sentence
    assert not home.exists() and len(hub.requests) == 1


def broken_listings():
    good = one_file(100).true_listing()
    file = good["siblings"][0]

    def changed(**entries):
        return json.dumps({**good, "siblings": [{**file, **entries}]}).encode()

    return {
        "not JSON": b"<html>", "empty": b"", "cut": json.dumps(good).encode()[:-5],
        "array": b"[]", "no files": json.dumps({**good, "siblings": []}).encode(),
        "siblings": json.dumps({**good, "siblings": 3}).encode(),
        "entry": json.dumps({**good, "siblings": [3]}).encode(),
        "commit": json.dumps({**good, "sha": "../../x"}).encode(),
        "short commit": json.dumps({**good, "sha": "abc"}).encode(),
        "no commit": json.dumps({"siblings": [file]}).encode(),
        "twice": json.dumps({**good, "siblings": [file, file]}).encode(),
        "file and folder": json.dumps(
            {**good, "siblings": [file, {**file, "rfilename": "a.bin/x"}]}).encode(),
        "negative size": changed(lfs={**file["lfs"], "size": -1}),
        "huge size": changed(lfs={**file["lfs"], "size": 2**64}),
        "size as text": changed(lfs={**file["lfs"], "size": "9"}),
        "float size": changed(lfs=None, size=1.5),
        "sha256": changed(lfs={**file["lfs"], "sha256": "../../../x"}),
        "sha256 of another length": changed(lfs={**file["lfs"], "sha256": "ab"}),
        "blobId": changed(lfs=None, blobId="../x"),
        "lfs": changed(lfs=7),
        "deep": b"[" * 100_000,
        "sizes that overflow": json.dumps({**good, "siblings": [
            {**file, "rfilename": str(i), "lfs": {"sha256": f"{i:064x}", "size": 2**63 - 1}}
            for i in range(4)]}).encode(),
    }


@pytest.mark.parametrize("case", broken_listings())
def test_broken_listings(pull, home, case):
    hub = one_file(100, listing=broken_listings()[case])
    with RunningHub(hub) as server:
        sentence = sentence_of(pull(server))
    assert "owner/name" in sentence
    assert not home.exists() and len(hub.requests) == 1


def test_more_than_the_disk_holds(pull, home):
    def huge(listing):
        listing["siblings"][0]["lfs"]["size"] = 2**62

    hub = one_file(100, edit_listing=huge)
    with RunningHub(hub) as server:
        sentence = sentence_of(pull(server))
    assert "are free" in sentence and str(2**62) in sentence and "--cache-dir" in sentence
    assert left_of(home) == [] and len(hub.requests) == 1


def test_patterns_that_want_nothing(pull):
    with RunningHub(some_hub()) as server:
        sentence = sentence_of(pull(server, "--include", "*.gguf"))
    assert "config.json" in sentence and "5 files" in sentence


def test_a_folder_that_is_a_link_is_not_followed(pull, home, tmp_path):
    hub = some_hub()
    outside = tmp_path / "outside"
    outside.mkdir()
    snapshot_of(home).mkdir(parents=True)
    (snapshot_of(home) / "vae").symlink_to(outside)
    with RunningHub(hub) as server:
        sentence = sentence_of(pull(server))
    assert "is not a folder" in sentence
    assert list(outside.iterdir()) == []


def test_a_cache_that_cannot_be_written(pull, home):
    home.write_text("a file")
    with RunningHub(one_file(100)) as server:
        assert str(home) in sentence_of(pull(server))


def test_a_silent_server(pull):
    """Takes connections and never says a word."""
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        sentence = sentence_of(pull(url, *ONE_TRY, HF_HUB_DOWNLOAD_TIMEOUT="1"))
    assert "network" in sentence
    for seconds in ("0", "x", "-1", "1e9"):
        assert "HF_HUB_DOWNLOAD_TIMEOUT" in sentence_of(
            pull(url, HF_HUB_DOWNLOAD_TIMEOUT=seconds))


def test_an_unwritable_json_fails_before_the_work(pull, tmp_path):
    hub = one_file(100)
    (tmp_path / "no").write_text("")  # not a folder
    with RunningHub(hub) as server:
        assert "such.json" in sentence_of(pull(server, "--json", tmp_path / "no" / "such.json"))
    assert hub.requests == []
