"""octet list and octet rm."""

import fcntl
import json
import os
import pty
import subprocess

import pytest
from generating import model  # noqa: F401: a fixture
from json_docs import check_against, documented_fields
from running import octet, only_sentence  # noqa: F401: a fixture

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture
def cache(model, tmp_path):  # noqa: F811
    """The Hub's cache with a model, something else and a pull that did not get far."""
    hub = tmp_path / "hub"
    folder = hub / "models--owner--model"
    (folder / "blobs").mkdir(parents=True)
    (folder / "refs").mkdir()
    (folder / "refs/main").write_text(COMMIT)
    snapshot = folder / "snapshots" / COMMIT
    for number, path in enumerate(sorted(model.rglob("*"))):
        if not path.is_file():
            continue
        (folder / f"blobs/{number}").write_bytes(path.read_bytes())
        link = snapshot / path.relative_to(model)
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(folder / f"blobs/{number}")
    other = hub / "models--owner--other/snapshots" / COMMIT
    other.mkdir(parents=True)
    (other / "readme.md").write_text("no model")
    (hub / "models--owner--begun/blobs").mkdir(parents=True)
    (hub / "datasets--owner--data").mkdir()
    (hub / ".locks/models--owner--model").mkdir(parents=True)
    (hub / ".locks/models--owner--model/0.lock").touch()
    return hub


@pytest.mark.parametrize("odd", ["a pipe", "a folder"])
def test_a_damaged_repository_is_a_row(octet, cache, monkeypatch, odd):  # noqa: F811
    monkeypatch.setenv("HF_HUB_CACHE", str(cache))
    ref = cache / "models--owner--model/refs/main"
    ref.unlink()
    os.mkfifo(ref) if odd == "a pipe" else ref.mkdir()
    done = octet("list", "--json", "-")
    by_name = {each["name"]: each for each in json.loads(done.stdout)["models"]}
    assert f"refs/main: is {odd}" in by_name["owner/model"]["problem"]
    assert "octet pull owner/begun" in by_name["owner/begun"]["problem"]
    assert f"refs/main: is {odd}" in octet("list", "-v").stdout


def test_models_are_listed(octet, cache, model, repository, monkeypatch):  # noqa: F811
    monkeypatch.setenv("HF_HUB_CACHE", str(cache))
    result = json.loads(octet("list", model.parent, "--json", "-").stdout)
    check_against(documented_fields(repository), "list", result)
    by_name = {each["name"]: each for each in result["models"]}
    assert result["cache_dir"] == str(cache)
    pulled = by_name["owner/model"]
    size = sum(path.stat().st_size for path in (cache / "models--owner--model/blobs").iterdir())
    assert (pulled["kind"], pulled["problem"]) == ("pulled", None)
    assert pulled["runs"] == "INT8, quantized while loading"
    assert size <= pulled["bytes"] <= size + 100  # and the ref
    assert by_name["owner/other"]["runs"] is None and by_name["owner/other"]["problem"]
    assert "octet pull owner/begun" in by_name["owner/begun"]["problem"]
    assert by_name[str(model)]["kind"] == "folder"
    assert any(each["kind"] == "small" for each in result["models"])
    text = octet("list").stdout
    assert "owner/model" in text and "quantized while loading" in text and str(cache) in text
    assert "octet pull owner/begun" in octet("list", "-v").stdout
    assert octet("list", "-q").stdout.splitlines()[:3] == [
        "owner/begun", "owner/model", "owner/other"]
    empty = octet("list", "--cache-dir", cache / "none")
    assert "octet pull ideogram-ai/ideogram-4-fp8" in empty.stdout


def test_what_a_folder_lacks_is_said(octet, cache, model, tmp_path):  # noqa: F811
    networks, nothing = tmp_path / "networks", tmp_path / "my dir"
    for part in ("transformer", "unconditional_transformer"):
        (networks / part).mkdir(parents=True)
        for file in (model / part).iterdir():
            (networks / part / file.name).symlink_to(file)
    nothing.mkdir()
    words = ("list", model, networks, nothing, "--cache-dir", cache / "none")
    text = octet(*words).stdout
    (row,) = [line for line in text.splitlines() if line.startswith(str(networks))]
    assert ", needs --base" in row and text.count("needs --base") == 1
    assert f"{nothing}: there are no models in it" in text
    assert str(nothing) not in octet(*words, "-q").stdout
    models = json.loads(octet(*words, "--json", "-").stdout)["models"]
    assert [each["needs_base"] for each in models[:2]] == [False, True]


def test_a_folder_that_is_not_there(octet, cache, tmp_path):  # noqa: F811
    sentence = only_sentence(octet("list", tmp_path / "none", "--cache-dir", cache))
    assert str(tmp_path / "none") in sentence


def test_removal(octet, cache, model, tmp_path):  # noqa: F811
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "file").write_text("mine")
    folder = cache / "models--owner--model"
    (folder / "snapshots/link").symlink_to(precious)
    where = ("--cache-dir", cache)
    # Without a terminal it asks nobody, and removes nothing.
    assert "give --yes" in only_sentence(octet("rm", "owner/model", *where), code=2)
    assert folder.is_dir()
    done = octet("rm", "owner/model", "--yes", *where)
    assert done.returncode == 0 and done.stdout.startswith("removed owner/model: "), done.stderr
    assert not folder.exists() and not (cache / ".locks/models--owner--model").exists()
    assert (precious / "file").read_text() == "mine"
    assert "is not in" in only_sentence(octet("rm", "owner/model", "-y", *where))


@pytest.mark.parametrize("name", ["../precious", "/tmp", ".", "owner", "owner/../x", "a/b/c"])
def test_only_names_of_repositories_are_removed(octet, cache, name):  # noqa: F811
    before = sorted(cache.rglob("*"))
    done = octet("rm", name, "--yes", "--cache-dir", cache)
    assert "owner/name" in only_sentence(done, code=2)
    assert sorted(cache.rglob("*")) == before


def test_a_link_in_the_place_of_a_repository_is_refused(octet, cache, tmp_path):  # noqa: F811
    precious = tmp_path / "precious"
    precious.mkdir()
    (cache / "models--owner--link").symlink_to(precious)
    done = octet("rm", "owner/link", "--yes", "--cache-dir", cache)
    assert "is a link or a file" in only_sentence(done)
    assert precious.is_dir()


def test_what_is_being_fetched_stays(octet, cache):  # noqa: F811
    with open(cache / ".locks/models--owner--model/0.lock") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = octet("rm", "owner/model", "--yes", "--cache-dir", cache)
    assert "another program is fetching it" in only_sentence(done)
    assert (cache / "models--owner--model").is_dir()


@pytest.mark.parametrize(("answer", "code"), [(b"n\n", 1), (b"\n", 1), (b"y\n", 0)])
def test_it_asks_on_a_terminal(built_program, cache, answer, code):
    master, slave = pty.openpty()
    words = [built_program("octet"), "rm", "owner/model", "--cache-dir", cache]
    run = subprocess.Popen(words, stdin=slave, stdout=subprocess.PIPE, stderr=slave)
    os.close(slave)
    asked = b""
    while b"[y/N]" not in asked:
        asked += os.read(master, 1000)
    os.write(master, answer)
    assert run.wait(timeout=60) == code
    assert (cache / "models--owner--model").is_dir() == (code == 1)
    os.close(master)
