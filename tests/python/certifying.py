"""What the tests of `octet certify` share: the program, and what to make of its result."""

from __future__ import annotations

import json
import subprocess

import pytest
from generating import SETTINGS

NETWORKS = ("transformer", "unconditional_transformer")


@pytest.fixture
def octet(built_program, tmp_path):
    def run(*words, **options):
        return subprocess.run([built_program("octet"), *map(str, words)], capture_output=True,
                              text=True, timeout=120, cwd=tmp_path, **options)

    return run


@pytest.fixture
def certify(octet):
    """certify(model, "--flag", value, ...): small pictures of two captions, two seeds of each."""

    def run(folder, *flags, **options):
        settings = {**SETTINGS, "--size": "16x12"}
        del settings["--caption"]
        for flag in flags:
            settings.pop(flag, None)
        words = [word for pair in settings.items() for word in pair]
        captions = () if "--caption" in flags or "-p" in flags else ("-p", "a fox", "-p", "a pear")
        return octet("certify", folder, *words, *captions, "-q", *flags, **options)

    return run


def passed(done) -> dict:
    assert done.returncode == 0 and done.stderr == "", done.stderr
    return json.loads(done.stdout)


def files_in(folder) -> dict:
    return {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}
