"""Files that appear whole or not at all: an interruption must not lose results of minutes on a GPU,
nor replace an older report with half of a new one."""

from __future__ import annotations

import os
from pathlib import Path


def _beside(path: Path) -> Path:
    return path.with_name(path.name + ".part")


def write_whole(path: Path, text: str) -> None:
    path = path.resolve()  # the file that a link leads to is replaced, not the link
    part = _beside(path)
    try:
        part.write_text(text, encoding="utf-8")
        os.replace(part, path)
    except OSError:
        part.unlink(missing_ok=True)
        raise


def check_writable(path: Path) -> None:
    """Raises an OSError if write_whole() could not write there; leaves everything as it was."""
    if path.exists() and not path.is_file():
        raise OSError(f"{path} exists and is not a plain file")
    part = _beside(path.resolve())
    part.write_text("", encoding="utf-8")
    part.unlink()


def check_folder(folder: Path) -> None:
    """Like check_writable(), for files in a folder, which is created if it is missing."""
    folder.mkdir(parents=True, exist_ok=True)
    check_writable(folder / "plot.svg")
