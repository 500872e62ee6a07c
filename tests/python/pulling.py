"""Running octet pull, for the tests of it."""

from __future__ import annotations

import os
import struct
import subprocess
from pathlib import Path

import pytest
from hub_server import COMMIT, File, Hub, random_bytes


def clean_environment(**settings: str) -> dict[str, str]:
    """This process's without what says where the Hub is, who asks, and through which proxy."""
    kept = {name: value for name, value in os.environ.items()
            if not name.startswith("HF_") and not name.lower().endswith("_proxy")}
    return kept | settings


@pytest.fixture
def home(tmp_path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def pull(built_program, home):
    """pull(server) runs the command against it, with a cache of the test's own."""
    program = built_program("octet")

    def run(server, *arguments, wait=True, repo="owner/name", options=None, **environment):
        settings = clean_environment(HF_ENDPOINT=getattr(server, "url", server),
                                     HF_HOME=str(home)) | environment
        process = subprocess.Popen([program, "pull", repo, *map(str, arguments)], env=settings,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   **(options or {}))
        if not wait:
            return process
        out, error = process.communicate(timeout=240)
        if "has no libcurl" in error:
            pytest.skip(error.strip())
        return subprocess.CompletedProcess(process.args, process.returncode, out, error)

    return run


def snapshot_of(home: Path, commit: str = COMMIT) -> Path:
    return home / "hub" / "models--owner--name" / "snapshots" / commit


def blobs_of(home: Path) -> Path:
    return home / "hub" / "models--owner--name" / "blobs"


def bytes_kept(home: Path) -> int:
    """Of unfinished files: what their journals count."""
    kept = 0
    for journal in blobs_of(home).glob("*.octet.ranges"):
        _, _, _, *counts = (number for number, in struct.iter_unpack("=Q", journal.read_bytes()))
        kept += sum(counts)
    return kept


def assert_pulled(home: Path, files: dict[str, File]) -> None:
    """The files are there as links into blobs/, where nothing else is."""
    for path, file in files.items():
        link = snapshot_of(home) / path
        assert link.is_symlink() and not os.path.isabs(os.readlink(link))
        assert link.resolve() == (blobs_of(home) / file.etag).resolve()
        assert link.read_bytes() == file.content
    assert {path.name for path in blobs_of(home).iterdir()} == {f.etag for f in files.values()}


def sentence_of(done, code=1) -> str:
    """The one sentence of a run that failed; lines of progress may stand before it."""
    assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
    assert done.stdout == ""
    last = done.stderr.splitlines()[-1]
    assert last.startswith("octet: ")
    return last


def some_files() -> dict[str, File]:
    return {
        "config.json": File(b'{"a": 1}\n'),
        "empty.txt": File(b""),
        "transformer/config.json": File(b'{"a": 1}\n'),  # the same content twice
        "transformer/model 1.safetensors": File(random_bytes(20_000_000), lfs=True),
        "vae/model.safetensors": File(random_bytes(300_000, 1), lfs=True),
    }


def some_hub(**settings) -> Hub:
    return Hub(some_files(), **settings)
