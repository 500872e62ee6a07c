"""What the Python tests share: where the repository and the built programs are."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest

# A runner started in the background, or by nohup, hands on signals that are ignored, and the
# programs under test would rightly ignore them, too.
for which in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    if signal.getsignal(which) == signal.SIG_IGN:
        signal.signal(which, signal.SIG_DFL)

# No test reads the configuration of whoever runs it.
os.environ["OCTET_CONFIG"] = ""

REPOSITORY = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("OCTET_BUILD_DIR", REPOSITORY / "build"))
# The package `octet` of this build, and none that is installed.
sys.path.insert(0, str(BUILD / "python"))


@pytest.fixture(scope="session")
def repository() -> Path:
    return REPOSITORY


@pytest.fixture(scope="session")
def build_dir() -> Path:
    """The build folder whose programs are tested; OCTET_BUILD_DIR names another one."""
    return BUILD


@pytest.fixture(scope="session")
def built_program(build_dir: Path):
    """built_program("octet") is its path; a program that is not there is an error, not a skip."""

    def find(name: str) -> Path:
        path = build_dir / name
        assert path.is_file(), f"{path} is not there; run `make test`, or set OCTET_BUILD_DIR"
        return path

    return find
