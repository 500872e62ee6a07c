"""octet pull against servers that mean harm, and on machines with something odd in its way."""

import os
import re
import resource
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path

import pytest
from hub_server import COMMIT, File, Hub, RunningHub, random_bytes
from pulling import (assert_pulled, blobs_of, bytes_kept, home, pull, sentence_of, snapshot_of,
                     some_hub)

__all__ = ["home", "pull"]  # fixtures
ONE_TRY = ("--retries", "0")
ALONE = (*ONE_TRY, "--connections", "1")  # so that nothing else is on its way
SECRET = "sEcReT"


def one_file(size=10_000_000, **settings) -> Hub:
    return Hub({"a.bin": File(random_bytes(size), lfs=True)}, **settings)


def test_a_header_that_is_too_long(pull):
    """Which is neither a lack of memory nor of a network."""
    with RunningHub(Hub(listing_statuses=[(200, {"X-Long": "a" * 400_000})])) as server:
        sentence = sentence_of(pull(server, *ONE_TRY))
    assert "header" in sentence.lower() and "memory" not in sentence.lower()


# --- more than was asked for --------------------------------------------------------------------

@pytest.mark.parametrize("ranges", [True, False])
@pytest.mark.parametrize("overrun", [1, 1_000_000])
def test_bytes_beyond_the_promised_end(pull, home, overrun, ranges):
    """Without a length in the answer only its end says how long it is."""
    hub = one_file(chunked_overrun=overrun, ranges=ranges)
    with RunningHub(hub) as server:
        sentence = sentence_of(pull(server, *ALONE))
        assert "a.bin" in sentence and "more bytes than it says" in sentence
        assert bytes_kept(home) == 0, "what came with them was believed"
        for path in blobs_of(home).glob("*.incomplete"):
            assert path.stat().st_size == 10_000_000
        assert not (snapshot_of(home) / "a.bin").exists()
        hub.chunked_overrun = 0
        done = pull(server)
        assert done.returncode == 0, done.stderr
    assert_pulled(home, hub.files)


def test_more_than_the_range_that_is_promised(pull, home):
    """A server may send less than was asked for, and then not more than it says."""
    hub = one_file(chunked_overrun=0, range_says=-100)
    with RunningHub(hub) as server:
        assert "more bytes than it says" in sentence_of(pull(server, *ALONE))
        assert bytes_kept(home) == 0
        hub.range_says = 0
        assert pull(server).returncode == 0
    assert_pulled(home, hub.files)


# --- less ---------------------------------------------------------------------------------------

def test_a_dripping_server(pull, home):
    """A few bytes at a time, for ever."""
    hub = one_file(drips=True)
    with RunningHub(hub) as server:
        done = pull(server, "--retries", "1", HF_HUB_DOWNLOAD_TIMEOUT="1")
        # libcurl's own words where the server got no time for a single drop.
        assert re.search("bytes a second|bytes/sec", sentence_of(done))
        hub.drips = False
        assert pull(server).returncode == 0
    assert_pulled(home, hub.files)


def test_few_bytes_between_dropped_connections(pull):
    """No bad network that gets on, however often it is asked."""
    hub = one_file(50_000, drop_after=40, drops=10_000, seconds_per_piece=0.1)
    with RunningHub(hub) as server:
        sentence_of(pull(server, "--retries", "2"))
    assert len([path for path in hub.paths() if "resolve" in path]) == 3


def test_two_hundred_bytes_between_dropped_connections(pull):
    """Fast while they come, and too slow with the pauses between."""
    hub = one_file(50_000, drop_after=200, drops=10_000)
    with RunningHub(hub) as server:
        sentence_of(pull(server, "--retries", "1"))
    assert len([path for path in hub.paths() if "resolve" in path]) <= 3


# --- names and passwords ------------------------------------------------------------------------

def test_a_password_in_the_endpoint_is_sent_and_never_shown(pull, home, tmp_path):
    hub = one_file(100_000, statuses=[(503, {}), None])
    with RunningHub(hub) as server:
        endpoint = server.url.replace("//", f"//user:{SECRET}@")
        report = tmp_path / "report.json"
        runs = [pull(endpoint, "-v", "--json", report), pull(endpoint, "-v", repo="owner/other")]
        hub.always = (403, {})
        runs.append(pull(endpoint, "-v", "--cache-dir", tmp_path / "other"))
        hub.always = (302, {"Location": "ftp://elsewhere/x"})
        runs.append(pull(endpoint, "-v", "--cache-dir", tmp_path / "other"))
    runs.append(pull(endpoint, "-v", *ONE_TRY))  # nobody is there any more
    runs.append(pull(f"http://user:{SECRET}@", "-v"))
    assert [run.returncode for run in runs] == [0, 1, 1, 1, 1, 1]
    assert_pulled(home, hub.files)
    assert all(headers["Authorization"].startswith("Basic ") for _, _, headers in hub.requests)
    for run in runs:
        for text in (run.stdout, run.stderr, report.read_text()):
            assert SECRET not in text and "user" not in text


@pytest.mark.parametrize("endpoint", [
    "http://127.0.0.1:1/?token={}", "http://127.0.0.1:1/#{}", "http://user:{}",
    "http://user:{}%40127.0.0.1", "user:{}"])
def test_a_secret_in_an_endpoint_that_is_none(pull, endpoint):
    done = pull(endpoint.format(SECRET), "-v", *ONE_TRY)
    assert "HF_ENDPOINT" in sentence_of(done)
    assert SECRET not in done.stderr


@pytest.mark.parametrize("repo", [
    "https://other.example/o/n?token={}", "https://huggingface.co/o?token={}",
    "https://huggingface.co/o/n/blob/main/x?token={}", "https://huggingface.co/o/n/blob/main#{}"])
def test_a_secret_behind_the_address_of_a_repository(pull, repo):
    done = pull("http://127.0.0.1:1", repo=repo.format(SECRET))
    sentence_of(done, code=2)
    assert SECRET not in done.stderr


@pytest.mark.parametrize("proxy", [
    "foo://user:{}@127.0.0.1:1", "http://user:{}@127.0.0.1:x", "user:a {}@127.0.0.1:1",
    "http://user:a/{}@127.0.0.1:1", "http://{}" + "x" * 64 + ".invalid/@127.0.0.1:1"])
def test_a_password_of_a_proxy_is_never_shown(pull, proxy):
    done = pull("http://127.0.0.1:1", "-v", *ONE_TRY, http_proxy=proxy.format(SECRET))
    assert "http_proxy" in sentence_of(done)
    assert SECRET.lower() not in done.stderr.lower()


@pytest.mark.parametrize("password", [SECRET, f"a/{SECRET}"])
def test_a_password_in_the_address_of_a_repository(pull, password):
    done = pull("http://127.0.0.1:1", repo=f"https://user:{password}@huggingface.co/o/n")
    assert "password" in sentence_of(done, code=2)
    assert SECRET not in done.stderr and done.stderr.count("\n") == 1


# --- what stands where a file should be ---------------------------------------------------------

def test_a_token_file_that_is_a_pipe(pull, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    hub = one_file(100)
    with RunningHub(hub) as server:
        sentence = sentence_of(pull(server, HF_TOKEN_PATH=str(pipe)))
    assert str(pipe) in sentence and "is a pipe" in sentence
    assert hub.requests == []


def test_a_ref_that_is_a_pipe(pull, home, built_program):
    ref = home / "hub" / "models--owner--name" / "refs" / "main"
    ref.parent.mkdir(parents=True)
    os.mkfifo(ref)
    hub = one_file(100)
    with RunningHub(hub) as server:
        sentence = sentence_of(pull(server))
        assert str(ref) in sentence and "is a pipe" in sentence
        # Said before anything is fetched.
        assert not any("/resolve/" in path for path in hub.paths())
        assert str(ref) in sentence_of(pull(server, HF_HUB_OFFLINE="1"))
    done = subprocess.run([built_program("octet"), "inspect", "owner/name"], text=True,
                          capture_output=True, timeout=60, env={**os.environ, "HF_HOME": str(home)})
    assert done.returncode == 1 and str(ref) in done.stderr


def test_what_a_kill_behind_the_renaming_leaves_is_removed(pull, home):
    hub = some_hub()
    with RunningHub(hub) as server:
        assert pull(server).returncode == 0
        for file in hub.files.values():
            (blobs_of(home) / f"{file.etag}.octet.ranges").write_bytes(b"journal")
        assert pull(server).returncode == 0
    assert_pulled(home, hub.files)


# --- no threads ---------------------------------------------------------------------------------

class Unprivileged:
    """Programs of a user who may start so many threads. Root may start any number, so a user that
    nobody has stands in for it."""

    USER = 54321

    def __init__(self, threads: int):
        self.threads = threads

    def __call__(self) -> None:
        resource.setrlimit(resource.RLIMIT_NPROC, (self.threads, self.threads))
        if os.geteuid() == 0:
            os.setgid(self.USER)
            os.setuid(self.USER)

    def is_held(self) -> bool:
        shell = ["/bin/sh", "-c", "true & wait"]
        return subprocess.run(shell, preexec_fn=self, capture_output=True).returncode != 0


@pytest.fixture
def open_folder():
    """A folder that every user may use, and get to, unlike those that pytest makes."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o777)
        yield Path(folder)


def name_on_loopback() -> tuple[str, str]:
    """A name of this machine that has to be looked up, which libcurl does in a thread, and its
    address. (It needs no thread for localhost.)"""
    for name in (socket.gethostname(), "localhost.localdomain"):
        try:
            address = socket.gethostbyname(name)
        except OSError:
            continue
        if address.startswith("127."):
            return name, address
    pytest.skip("no name but localhost leads to this machine alone")


@pytest.mark.parametrize("by_name", [False, True])
@pytest.mark.parametrize("threads", [1, 3])
def test_threads_that_cannot_be_started(built_program, open_folder, threads, by_name):
    limit = Unprivileged(threads)
    if not Unprivileged(1).is_held():
        pytest.skip("this system does not hold to a limit of threads")
    name, address = name_on_loopback() if by_name else ("127.0.0.1", "127.0.0.1")
    program = shutil.copy(built_program("octet"), open_folder)
    hub = some_hub()
    with RunningHub(hub, address) as server:
        done = subprocess.run(
            [program, "pull", "owner/name", "--connections", "64"], preexec_fn=limit, text=True,
            capture_output=True, timeout=120,
            env={"HF_ENDPOINT": server.url.replace(address, name),
                 "HF_HOME": str(open_folder / "home")})
    if "has no libcurl" in done.stderr:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, (done.returncode, done.stderr)
    assert f"{max(threads - 1, 1)} of 64 connections" in done.stderr or os.geteuid() != 0
    assert "pull: " in done.stderr and "KB" in done.stderr
    assert_pulled(open_folder / "home", hub.files)
    assert (open_folder / "home/hub/models--owner--name/refs/main").read_text() == COMMIT
