"""The public headers in a program that is compiled with all warnings as errors."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest
from conftest import REPOSITORY

HEADERS = REPOSITORY / "include" / "octet"
C_HEADERS = {"octet.h", "operations.h", "status.h", "export.h"}
FLAGS = ["-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Werror"]


def structs(text):
    """Plain structs and their first member."""
    found = re.finditer(r"^struct (\w+) \{\n(.*?)^\};", text, re.MULTILINE | re.DOTALL)
    for name, body in ((each[1], each[2]) for each in found):
        body = re.sub(r"//[^\n]*|^  enum .*?\};", "", body, flags=re.MULTILINE | re.DOTALL)
        member = re.search(
            r"^  (?!static|using|friend)[\w:<>, *]+ (\w+)(;|,| = )", body, re.MULTILINE
        )
        if member:
            yield name, member[1]


def program():
    lines, made = [], 0
    for header in sorted(HEADERS.glob("*.h")):
        lines.append(f'#include "octet/{header.name}"')
        if header.name in C_HEADERS or header.name == "words.h":
            continue
        for name, member in structs(header.read_text()):
            lines.append(f"octet::{name} a_{name} = {{.{member} = {{}}}};")
            made += 1
    assert made > 25
    lines.append("octet::Lora lora(const char* file) { return octet::Lora{file, 0.5f}; }")
    lines.append("octet::KeepRule rule{\"vae\"};")
    return "\n".join(sorted(lines, key=lambda line: line[0] != "#"))


@pytest.mark.parametrize("compiler", ["g++", "clang++"])
def test_structs_may_be_filled_in_part(compiler, tmp_path):
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    source = tmp_path / "program.cpp"
    source.write_text(program() + "\n")
    done = subprocess.run(
        [compiler, *FLAGS, f"-I{REPOSITORY / 'include'}", source], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
