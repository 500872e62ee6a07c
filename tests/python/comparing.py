"""Running `octet compare`: for the tests of it."""

from __future__ import annotations

import json
import os
import subprocess

import pytest
import tiny_ideogram4 as tiny
from generating import SETTINGS

FLAGS_ALONE = ("--wrap-text", "--require-int8")


def command(program, a, b, flags) -> list[str]:
    settings, alone, flags = dict(SETTINGS), [], list(flags)
    while flags:
        flag = flags.pop(0)
        if flag in FLAGS_ALONE:
            alone.append(flag)
        else:
            settings[flag] = flags.pop(0)
    words = [str(word) for pair in settings.items() if pair[1] is not None for word in pair]
    return [str(program), "compare", *words, *alone, str(a), str(b)]


@pytest.fixture
def compare(built_program):
    """compare(a, b, "--flag", value, ...) runs the program with SETTINGS of generating.py."""

    def run(a, b, *flags, caption=tiny.CAPTION, environment=None, **options):
        return subprocess.run(
            [*command(built_program("octet"), a, b, flags), "-q"],
            input=caption,
            capture_output=True,
            text=True,
            timeout=60,
            env={**os.environ, **(environment or {})},
            **options,
        )

    return run


def no_constant(name):
    raise AssertionError(f"{name} is not JSON")


def report(done) -> dict:
    assert done.returncode == 0 and done.stderr == "", done.stderr
    return json.loads(done.stdout, parse_constant=no_constant)
