"""The pages: their links lead somewhere, and the messages they explain are the program's own.

Reads text files alone, no program: a fifth of a second.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from field_table import flags_of_fields

SOURCES = ("src/**/*.cpp", "apps/**/*.cpp", "tools/*.sh", "cmake/*.cmake")
ELLIPSIS = "…"  # stands for names and numbers in a message
LINK = re.compile(r"\]\(([^)#]+)(?:#[^)]*)?\)")


def without_line_breaks(text: str) -> str:
    """Source text whose string literals are whole: "a " and "b" on two lines become "a b"."""
    return re.sub(r'"\s*\n\s*"', "", text).replace('\\"', '"')


def sources_of(repository: Path) -> str:
    paths = [path for pattern in SOURCES for path in sorted(repository.glob(pattern))]
    assert len(paths) > 200
    text = "\n".join(without_line_breaks(path.read_text(encoding="utf-8")) for path in paths)
    return with_flags(text, repository)


def with_flags(text: str, repository: Path) -> str:
    """The fields that the library names in backquotes as the program says them."""
    flags = {field: flag for field, words in flags_of_fields(repository).items()
             for flag in reversed(words) if flag.startswith("--")}
    return re.sub(r"`(\w+)`", lambda field: flags.get(field[1], field[0]), text)


def explained_messages(page: str) -> list[str]:
    """What stands as code in the first column of the tables of messages."""
    messages = []
    of_messages = False
    for line in page.splitlines():
        first = line.split("|")[1] if line.startswith("|") else ""
        if line.startswith("#"):
            of_messages = False
        elif "message" in first:
            of_messages = True
        elif of_messages:
            messages += re.findall(r"`([^`]+)`", first)
    return messages


def unknown_messages(page: str, sources: str) -> list[str]:
    return [
        message
        for message in explained_messages(page)
        if any(part.strip() not in sources for part in message.split(ELLIPSIS))
    ]


def test_the_messages_of_the_troubleshooting_page_exist(repository: Path) -> None:
    page = (repository / "docs/troubleshooting.md").read_text(encoding="utf-8")
    assert len(explained_messages(page)) > 80
    assert unknown_messages(page, sources_of(repository)) == []


def test_a_message_that_is_gone_is_found() -> None:
    page = "| message | cause |\n|---|---|\n| `a tile is …` `here` | |\n| `a tile was …` | |\n"
    assert unknown_messages(page, without_line_breaks('"a tile "\n    "is {} here"')) == [
        "a tile was …"
    ]


def pages_of(repository: Path) -> list[Path]:
    return [*repository.glob("*.md"), *repository.glob("docs/**/*.md")]


def links_of(page: Path) -> list[str]:
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    return LINK.findall(text)


def test_links_between_pages_lead_somewhere(repository: Path) -> None:
    broken = [
        f"{page.relative_to(repository)}: {target}"
        for page in pages_of(repository)
        for target in links_of(page)
        if "://" not in target and not (page.parent / target).exists()
    ]
    assert broken == []


@pytest.mark.parametrize("folder", ["docs", "docs/kernels"])
def test_the_index_names_every_page(repository: Path, folder: str) -> None:
    index = repository / "docs/README.md"
    named = {(index.parent / target).resolve() for target in links_of(index)}
    pages = {path.resolve() for path in (repository / folder).glob("*.md")}
    assert pages - named - {index.resolve()} == set()
