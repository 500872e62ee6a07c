"""Which files of a tree are ours to check: all but build outputs and other people's code."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

CPP_SUFFIXES = (".h", ".hpp", ".c", ".cpp", ".cc", ".cu", ".cuh", ".cu.in")
SCRIPT_SUFFIXES = (".py", ".sh", ".cmake", ".js", ".css", ".html")
SCRIPT_NAMES = ("CMakeLists.txt", "Makefile")


def _is_foreign_folder(name: str) -> bool:
    hidden = name.startswith(".") and name != ".ci"
    return hidden or name in ("build", "shared", "__pycache__") or name.startswith("build-")


def _is_script_without_suffix(path: Path) -> bool:
    if path.suffix or not os.access(path, os.X_OK):
        return False
    with path.open("rb") as file:
        return file.read(2) == b"#!"


def cpp_files(root: Path) -> Iterator[Path]:
    return (path for path in _files(root) if path.name.endswith(CPP_SUFFIXES))


def source_files(root: Path) -> Iterator[Path]:
    for path in _files(root):
        if (
            path.name.endswith(CPP_SUFFIXES + SCRIPT_SUFFIXES)
            or path.name in SCRIPT_NAMES
            or _is_script_without_suffix(path)
        ):
            yield path


def _folders_ignored_by_git(root: Path) -> set[Path]:
    """Somebody's scratch folders. None outside a git checkout."""
    command = "ls-files --others --ignored --exclude-standard --directory -z".split()
    try:
        found = subprocess.run(["git", "-C", root, *command], capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return set()
    return {root / name for name in found.stdout.decode().split("\0") if name.endswith("/")}


def _files(root: Path) -> Iterator[Path]:
    ignored = _folders_ignored_by_git(root)
    for folder, subfolders, names in os.walk(root):
        subfolders[:] = sorted(
            name
            for name in subfolders
            if not _is_foreign_folder(name) and Path(folder, name) not in ignored
        )
        for name in sorted(names):
            path = Path(folder, name)
            if path.is_file():
                yield path
