#!/usr/bin/env python3
"""Fails on a source file over 400 lines and on a line over 100 columns.

    tools/check_size.py [ROOT]

Columns are characters, not bytes. Markdown is exempt: tables and links do not fold.
"""

from __future__ import annotations

import sys
from pathlib import Path

from source_files import source_files

MAX_LINES = 400
MAX_COLUMNS = 100
EXCUSED: tuple[str, ...] = ()  # paths from the root, each with its reason


def offences_of(path: Path, name: str) -> list[str]:
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    found = [
        f"{name}:{number}: {len(line)} columns, at most {MAX_COLUMNS} are allowed"
        for number, line in enumerate(lines, 1)
        if len(line) > MAX_COLUMNS
    ]
    if len(lines) > MAX_LINES:
        found.append(
            f"{name}:{MAX_LINES + 1}: the file has {len(lines)} lines, at most {MAX_LINES} are "
            "allowed; split it by reason to change"
        )
    return found


def main() -> int:
    root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent.parent)
    checked = 0
    offences: list[str] = []
    for path in source_files(root):
        name = path.relative_to(root).as_posix()
        if name not in EXCUSED:
            checked += 1
            offences += offences_of(path, name)
    for offence in offences:
        print(offence)
    print(f"check_size: {checked} files checked, {len(offences)} offences")
    return 1 if offences else 0


if __name__ == "__main__":
    sys.exit(main())
