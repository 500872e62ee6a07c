"""octet pull against a hub on the loopback interface: fetching, resuming, sharing the cache."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time

import pytest
from hub_server import COMMIT, File, Hub, RunningHub, random_bytes
from pulling import (assert_pulled, blobs_of, clean_environment, home, pull, sentence_of,
                     snapshot_of, some_files, some_hub)

__all__ = ["home", "pull"]  # fixtures
TOKEN = "hf_secretSECRETsecret"


def test_a_repository_is_pulled_once(pull, home):
    hub = some_hub()
    with RunningHub(hub) as server:
        first = pull(server, "--json", "-")
        assert first.returncode == 0, first.stderr
        assert_pulled(home, hub.files)
        refs = home / "hub" / "models--owner--name" / "refs"
        assert (refs / "main").read_bytes() == COMMIT.encode()
        report = json.loads(first.stdout)
        assert report["folder"] == str(snapshot_of(home)) and report["commit"] == COMMIT
        assert report["total_bytes"] == sum(len(file.content) for file in hub.files.values())
        assert report["fetched_bytes"] == hub.body_bytes
        assert [file["path"] for file in report["files"]] == list(hub.files)
        assert all(file["digest"] == hub.files[file["path"]].etag for file in report["files"])
        assert "pull: " in first.stderr and "KB" in first.stderr

        fetched = hub.body_bytes
        again = pull(server)
        assert again.returncode == 0 and "cache" in again.stdout
        assert hub.body_bytes == fetched


def test_addresses_of_the_hub_name_the_repository(pull, home):
    hub = some_hub()
    with RunningHub(hub) as server:
        for address in (f"{server.url}/owner/name", f"{server.url}/owner/name/tree/main/",
                        "https://huggingface.co/owner/name"):
            report = json.loads(pull(server, "--json", "-", "-q", repo=address).stdout)
            assert (report["repo"], report["revision"]) == ("owner/name", "main")
        refused = pull(server, repo="https://example.com/owner/name")
        assert refused.returncode == 2 and "an address on example.com" in refused.stderr
        twice = pull(server, "--revision", "v2", repo=f"{server.url}/owner/name/tree/v1")
        assert twice.returncode == 2 and "names the revision v1" in twice.stderr


def test_a_large_file_comes_in_ranges(pull, home):
    hub = some_hub()
    with RunningHub(hub) as server:
        assert pull(server, "-q").returncode == 0
    ranges = [headers["Range"] for _, path, headers in hub.requests
              if "Range" in headers and "model%201" in path]
    assert sorted(ranges) == sorted(["bytes=0-8388607", "bytes=8388608-16777215",
                                     "bytes=16777216-19999999"])


@pytest.mark.parametrize(("flags", "names"), [
    (["--include", "*.json"], {"config.json", "transformer/config.json"}),
    (["--include", "vae/"], {"vae/model.safetensors"}),
    (["--include", "vae/*", "config.*"], {"vae/model.safetensors", "config.json"}),
    (["--exclude", "*.safetensors", "--exclude", "[ef]mpty*"],
     {"config.json", "transformer/config.json"}),
])
def test_patterns_choose_files(pull, home, flags, names):
    hub = some_hub()
    with RunningHub(hub) as server:
        assert pull(server, *flags).returncode == 0
    assert_pulled(home, {name: hub.files[name] for name in names})


def test_huggingface_hub_finds_what_was_pulled(pull, home):
    hub = some_hub()
    with RunningHub(hub) as server:
        assert pull(server).returncode == 0
    script = """
import huggingface_hub, json, sys
paths = [huggingface_hub.hf_hub_download("owner/name", name, local_files_only=True)
         for name in json.loads(sys.argv[1])]
cache = huggingface_hub.scan_cache_dir()
(repo,) = cache.repos
(revision,) = repo.revisions
print(json.dumps({"paths": paths, "warnings": [str(w) for w in cache.warnings],
                  "repo": repo.repo_id, "refs": sorted(revision.refs),
                  "commit": revision.commit_hash, "files": revision.nb_files,
                  "folder": huggingface_hub.snapshot_download("owner/name",
                                                              local_files_only=True)}))
"""
    done = subprocess.run([sys.executable, "-c", script, json.dumps(list(hub.files))],
                          env=clean_environment(HF_HOME=str(home)), capture_output=True,
                          text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["warnings"] == [] and found["repo"] == "owner/name"
    assert found["refs"] == ["main"] and found["commit"] == COMMIT
    assert found["files"] == len(hub.files) and found["folder"] == str(snapshot_of(home))
    assert found["paths"] == [str(snapshot_of(home) / name) for name in hub.files]


def test_what_huggingface_hub_fetched_is_not_fetched_again(pull, home):
    hub = some_hub()
    with RunningHub(hub) as server:
        script = ("import huggingface_hub, sys\n"
                  "for name in sys.argv[1:]: huggingface_hub.hf_hub_download('owner/name', name)")
        names = ["config.json", "transformer/model 1.safetensors"]
        settings = clean_environment(HF_HOME=str(home), HF_ENDPOINT=server.url,
                                     HF_HUB_DISABLE_XET="1")
        done = subprocess.run([sys.executable, "-c", script, *names], env=settings,
                              capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        hub.requests.clear()
        report = json.loads(pull(server, "--json", "-").stdout)
        assert {file["path"] for file in report["files"] if not file["fetched"]} == {
            *names, "transformer/config.json"}
        assert not any("model%201" in path for path in hub.paths())
    assert_pulled(home, hub.files)


def test_killed_at_any_moment_it_goes_on(pull, home):
    """What a killed run had written is not fetched again, but for the pieces on their way."""
    files = {"a.safetensors": File(random_bytes(24_000_000), lfs=True),
             "b.bin": File(random_bytes(3_000_000, 2), lfs=True)}
    # So slow that all the runs together, of half a second on the mean, do not come to the end.
    hub = Hub(files, seconds_per_piece=0.08)
    connections, kills = 3, 10
    chance = random.Random(5)
    killed = 0
    with RunningHub(hub) as server:
        for _ in range(kills):
            process = pull(server, "--connections", connections, wait=False)
            try:
                process.wait(timeout=chance.uniform(0.05, 1.0))
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)
                killed += 1
            process.communicate()
            for name in files:  # a file that has its name is whole
                path = snapshot_of(home) / name
                assert not path.exists() or path.read_bytes() == files[name].content
        hub.seconds_per_piece = 0
        done = pull(server)
        assert done.returncode == 0, done.stderr
    assert killed >= kills // 2
    assert_pulled(home, files)
    # On its way is what the server and the kernel's buffers hold of a connection: some megabytes.
    total = sum(len(file.content) for file in files.values())
    assert hub.body_bytes < total + killed * connections * 4_000_000


def test_ctrl_c_keeps_what_was_fetched(pull, home):
    hub = Hub({"a.bin": File(random_bytes(12_000_000), lfs=True)}, seconds_per_piece=0.02)
    with RunningHub(hub) as server:
        process = pull(server, wait=False)
        while hub.body_bytes < 2_000_000:
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        out, error = process.communicate(timeout=60)
        done = subprocess.CompletedProcess([], process.returncode, out, error)
        assert "stopped" in sentence_of(done, code=130) and "pull again" in done.stderr
        assert not (snapshot_of(home) / "a.bin").exists()
        hub.seconds_per_piece = 0
        report = json.loads(pull(server, "--json", "-").stdout)
    assert 0 < report["fetched_bytes"] < 12_000_000
    assert_pulled(home, hub.files)


def test_a_damaged_journal_begins_anew(pull, home):
    hub = Hub({"a.bin": File(random_bytes(10_000_000), lfs=True)}, drop_after=1_000_000, drops=99)
    (file,) = hub.files.values()
    with RunningHub(hub) as server:
        for damage in (b"", b"\xff" * 40, b"\0" * 1000, None):
            hub.drops = 99
            assert pull(server, "--retries", "0").returncode == 1
            journal = blobs_of(home) / f"{file.etag}.octet.ranges"
            good = journal.read_bytes()
            journal.write_bytes(good[:24] + b"\xff" * (len(good) - 24) if damage is None
                                else damage)
        hub.drops = 0
        assert pull(server).returncode == 0
    assert_pulled(home, hub.files)


def test_two_pulls_at_once(pull, home):
    hub = some_hub(seconds_per_piece=0.002)
    with RunningHub(hub) as server:
        both = [pull(server, wait=False) for _ in range(2)]
        for process in both:
            _, error = process.communicate(timeout=240)
            assert process.returncode == 0, error
    assert_pulled(home, hub.files)
    assert hub.body_bytes == sum(
        len(file.content) for file in {file.etag: file for file in hub.files.values()}.values())


@pytest.mark.parametrize("source", ["HF_TOKEN", "HF_TOKEN_PATH", "home"])
def test_the_token(pull, home, tmp_path, source):
    hub = some_hub(token=TOKEN)
    settings = {}
    if source == "HF_TOKEN":
        settings[source] = TOKEN
    elif source == "home":
        home.mkdir()
        (home / "token").write_text(TOKEN + "\n")
    else:
        (tmp_path / "elsewhere").write_text(f"  {TOKEN}\n")
        settings[source] = str(tmp_path / "elsewhere")
    with RunningHub(hub) as server:
        done = pull(server, "-v", **settings)
    assert done.returncode == 0, done.stderr
    assert TOKEN not in done.stdout + done.stderr


def test_the_token_goes_to_the_hub_alone(pull, home):
    """The files lie on another port, as they do on a CDN; its address is asked for once."""
    hub = some_hub(token=TOKEN)
    with RunningHub(some_hub()) as cdn, RunningHub(hub) as server:
        hub.redirect = lambda name: f"{cdn.url}/cdn/{name.replace(' ', '%20')}?signature=1"
        done = pull(server, "--connections", "1", HF_TOKEN=TOKEN)
        assert done.returncode == 0, done.stderr
        assert len(cdn.hub.requests) == 5  # three ranges of one file, two smaller ones
        assert all("Authorization" not in headers for _, _, headers in cdn.hub.requests)
        assert len([path for path in hub.paths() if "model%201" in path]) == 1
    assert_pulled(home, hub.files)


def test_an_address_that_became_too_old_is_asked_for_again(pull, home):
    hub = some_hub()
    with RunningHub(some_hub()) as cdn, RunningHub(hub) as server:
        hub.redirect = lambda name: f"{cdn.url}/cdn/{name.replace(' ', '%20')}"
        cdn.hub.statuses = [None, (403, {})]  # the second of three ranges
        done = pull(server, "--connections", "1", "--include", "*model 1*")
        assert done.returncode == 0, done.stderr
        assert len([path for path in hub.paths() if "model%201" in path]) == 2


def test_revisions(pull, home):
    hub = some_hub()
    with RunningHub(hub) as server:
        assert pull(server, "--revision", COMMIT, "--include", "*.json").returncode == 0
        assert not (home / "hub" / "models--owner--name" / "refs").exists()
        sentence = sentence_of(pull(server, "--revision", "nope"))
        assert "no revision" in sentence and "nope" in sentence


@pytest.mark.parametrize("variable", ["HF_HUB_CACHE", "HF_HOME", "XDG_CACHE_HOME", "HOME", "flag"])
def test_where_the_cache_is(pull, tmp_path, variable):
    place = tmp_path / "somewhere"
    below = {"HF_HUB_CACHE": "", "flag": "", "HF_HOME": "hub", "XDG_CACHE_HOME": "huggingface/hub",
             "HOME": ".cache/huggingface/hub"}[variable]
    settings = {"HF_HOME": "", "XDG_CACHE_HOME": ""}
    flags = ["--cache-dir", place] if variable == "flag" else []
    if not flags:
        settings[variable] = str(place)
    with RunningHub(some_hub()) as server:
        assert pull(server, "--include", "*.json", *flags, **settings).returncode == 0
    assert (place / below / "models--owner--name" / "refs" / "main").is_file()


def test_offline(pull, home):
    hub = some_hub()
    with RunningHub(hub) as server:
        sentence = sentence_of(pull(server, HF_HUB_OFFLINE="1"))
        assert "HF_HUB_OFFLINE" in sentence and hub.requests == []
        assert pull(server).returncode == 0
        hub.requests.clear()
        report = json.loads(pull(server, "--json", "-", HF_HUB_OFFLINE="1").stdout)
        assert hub.requests == []
    assert {file["path"] for file in report["files"]} == set(some_files())
    assert report["folder"] == str(snapshot_of(home))


def test_a_listing_without_digests(pull, home):
    """Mirrors may leave them out: each file is then asked about."""
    hub = some_hub()

    def without(listing):
        for entry in listing["siblings"]:
            for key in ("size", "blobId", "lfs"):
                entry.pop(key, None)

    hub.edit_listing = without
    with RunningHub(some_hub()) as cdn, RunningHub(hub) as server:
        hub.redirect = lambda name: (f"{cdn.url}/cdn/{name.replace(' ', '%20')}"
                                     if hub.files[name].lfs else None)
        assert pull(server).returncode == 0
        assert all(kind == "GET" for kind, _, _ in cdn.hub.requests)
    assert_pulled(home, hub.files)


def test_a_blob_that_is_cut_is_fetched_again(pull, home):
    hub = some_hub()
    with RunningHub(hub) as server:
        assert pull(server).returncode == 0
        blob = blobs_of(home) / hub.files["vae/model.safetensors"].etag
        os.truncate(blob, 100)
        shutil.rmtree(snapshot_of(home) / "transformer")
        fetched = hub.body_bytes
        assert pull(server).returncode == 0
    assert hub.body_bytes == fetched + 300_000
    assert_pulled(home, hub.files)
