"""tools/setup.sh on machines that lack a package: who may install it, and what is said."""

from __future__ import annotations

import os
import pty
import re
import shutil
import subprocess
from pathlib import Path

import pytest

TOOLS = "basename bash cat dirname env grep head ln printf sed sort tail true uname".split()
INSTALL = "apt-get install -y --no-install-recommends python3"

# What it is asked for is written down. `apt-get install` brings the missing python3.
LOGGED = '#!/bin/sh\necho "$(basename "$0") $*" >>"$LOG"\n'
APT_GET = LOGGED + 'case " $* " in *" install "*) ln -s /bin/true "$BIN/python3" ;; esac\n'
ASKING_SUDO = LOGGED + 'case "$1" in -n) exit 1 ;; -v) exit 0 ;; *) exec "$@" ;; esac\n'
WILLING_SUDO = LOGGED + '[ "$1" != -n ] || shift\nexec "$@"\n'


class Machine:
    """A user, not root, whose PATH holds a few plain tools and the given fakes, but no python3."""

    def __init__(self, folder: Path, fakes: dict[str, str]) -> None:
        self.bin = folder / "bin"
        self.log = folder / "log"
        self.bin.mkdir()
        self.log.touch()
        for tool in TOOLS:
            found = shutil.which(tool)
            assert found is not None
            (self.bin / tool).symlink_to(found)
        for name, text in {"id": "#!/bin/sh\necho 1000\n", **fakes}.items():
            (self.bin / name).write_text(text)
            (self.bin / name).chmod(0o755)

    def setup(self, repository: Path, stdin: int) -> subprocess.CompletedProcess[str]:
        environment = {"PATH": str(self.bin), "BIN": str(self.bin), "LOG": str(self.log)}
        return subprocess.run(
            [repository / "tools/setup.sh", "house"], env=environment, stdin=stdin,
            capture_output=True, text=True, check=False, timeout=30,
        )  # fmt: skip

    def calls(self) -> list[str]:
        return self.log.read_text().splitlines()


@pytest.fixture
def terminal():
    """The end of a terminal that a program reads from."""
    ours, theirs = pty.openpty()
    yield theirs
    os.close(ours)
    os.close(theirs)


def test_without_a_terminal_the_line_to_run_is_printed(repository: Path, tmp_path: Path) -> None:
    machine = Machine(tmp_path, {"apt-get": APT_GET, "sudo": ASKING_SUDO})
    done = machine.setup(repository, subprocess.DEVNULL)
    assert done.returncode == 1
    assert done.stderr == (
        f"octet: missing: python3; installing them needs root's rights; "
        f"to install them: sudo {INSTALL}\n"
    )
    assert machine.calls() == ["sudo -n true"]


def test_on_a_terminal_sudo_asks_once(repository: Path, tmp_path: Path, terminal: int) -> None:
    machine = Machine(tmp_path, {"apt-get": APT_GET, "sudo": ASKING_SUDO})
    done = machine.setup(repository, terminal)
    assert (done.returncode, done.stderr) == (0, "")
    assert "octet: missing: python3; sudo needs your password" in done.stdout
    asked = [call for call in machine.calls() if call.startswith("sudo")]
    assert asked[:2] == ["sudo -n true", "sudo -v"]
    assert [call.split()[1] for call in asked[2:]] == ["env", "env"]  # update, install
    assert machine.calls()[-1].endswith("install -y -qq --no-install-recommends python3")


def test_a_wrong_password_installs_nothing(
    repository: Path, tmp_path: Path, terminal: int
) -> None:
    machine = Machine(tmp_path, {"apt-get": APT_GET, "sudo": LOGGED + "exit 1\n"})
    done = machine.setup(repository, terminal)
    assert done.returncode == 1
    assert done.stderr.endswith(f"to install them: sudo {INSTALL}\n")
    assert machine.calls() == ["sudo -n true", "sudo -v"]


def test_a_sudo_that_asks_nothing_is_just_used(repository: Path, tmp_path: Path) -> None:
    machine = Machine(tmp_path, {"apt-get": APT_GET, "sudo": WILLING_SUDO})
    done = machine.setup(repository, subprocess.DEVNULL)
    assert (done.returncode, done.stderr) == (0, "")
    assert all(call.startswith(("sudo -n", "apt-get")) for call in machine.calls())


def test_without_sudo_the_line_names_none(
    repository: Path, tmp_path: Path, terminal: int
) -> None:
    machine = Machine(tmp_path, {"apt-get": APT_GET})
    done = machine.setup(repository, terminal)
    assert done.returncode == 1
    assert done.stderr.endswith(f"to install them: {INSTALL}\n")
    assert machine.calls() == []


def test_without_apt_the_packages_are_named(repository: Path, tmp_path: Path) -> None:
    done = Machine(tmp_path, {"sudo": WILLING_SUDO}).setup(repository, subprocess.DEVNULL)
    assert done.returncode == 1
    assert done.stderr == (
        "octet: missing: python3; there is no apt-get on this machine; "
        "these are Debian's names of them\n"
    )


def test_every_need_of_a_part_is_a_group(repository):
    tools = repository / "tools"
    parts = (tools / "run_tests.sh").read_text().split("needs_of() {")[1].split("esac")[0]
    needs = {word for words in re.findall(r"\) echo ([a-z ]+) ;;", parts) for word in words.split()}
    assert {"build", "python", "package"} <= needs
    groups = (tools / "setup.sh").read_text().split('case "$group" in')[1].split("*)")[0]
    assert needs <= set(re.findall(r"[a-z]+", groups))
