"""Running the program, for the tests of its commands."""

import os
import subprocess

import pytest


@pytest.fixture
def octet(built_program):
    program = built_program("octet")

    def run(*arguments, **environment):
        return subprocess.run(
            [program, *map(str, arguments)],
            capture_output=True,
            text=True,
            timeout=600,
            env={**os.environ, **environment},
        )

    return run


def only_sentence(done, code=1):
    """The one line of a failed run on standard error, with nothing on standard output."""
    assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
    assert done.stdout == ""
    lines = done.stderr.splitlines()
    assert len(lines) == 1, done.stderr
    assert lines[0].startswith("octet: ") and "unexpected failure" not in lines[0]
    return lines[0]
