"""docs/environment.md names every variable that the sources read, and the manual those of users."""

import re
import subprocess

# How each kind of file reads a variable.
READS = {
    "env.cpp": r'read(?:_path)?\("([A-Za-z_]+)"\)',
    ".cpp": r'getenv\("([A-Za-z_]+)"\)',
    ".py": r'(?:environ(?:\.get\(|\[)|_seconds\()"([A-Z_]+)"',
    ".sh": r"\$\{?((?:OCTET|HF)_[A-Z_]+)",
}
FOLDERS = ["src", "apps", "python", "tools", "bench", "tests"]


def variables_read(repository):
    found = {}
    for folder in FOLDERS:
        for suffix, pattern in READS.items():
            for path in (repository / folder).rglob(f"*{suffix}"):
                for name in re.findall(pattern, path.read_text()):
                    found.setdefault(name, path)
    return found


def documented(page):
    """The names in the first column of all tables."""
    return {name for row in re.findall(r"^\|([^|]*)\|", page, re.M)
            for name in re.findall(r"`([A-Za-z_]+)`", row)}


def test_every_variable_that_is_read_is_documented(repository):
    read = variables_read(repository)
    assert {"OCTET_LOG", "OCTET_CACHE_DIR", "HF_TOKEN", "HOME", "OCTET_BUILD_DIR"} <= read.keys()
    page = (repository / "docs/environment.md").read_text()
    missing = {name: str(path) for name, path in read.items()
               if name not in documented(page) and name != "PATH"}
    assert missing == {}


def test_only_one_file_of_the_library_reads_the_environment(repository):
    readers = {path.relative_to(repository).as_posix()
               for folder in ("src", "apps") for path in (repository / folder).rglob("*.[ch]*")
               if "getenv(" in path.read_text()}
    assert readers == {"src/base/env.cpp", "apps/demo/demo.cpp", "apps/cli/serve.cpp"}


def test_documented_variables_of_octet_exist(repository):
    page = (repository / "docs/environment.md").read_text()
    read = variables_read(repository)
    stale = {name for name in documented(page) if name.startswith(("OCTET_", "HF_"))} - read.keys()
    assert stale == set()


def test_the_manual_has_those_of_users(built_program, repository):
    page = (repository / "docs/environment.md").read_text().split("## The system")[0]
    manual = subprocess.run([built_program("octet"), "man"], capture_output=True, text=True).stdout
    section = manual.split(".SH ENVIRONMENT")[1].replace("\\-", "-")
    for name in documented(page):
        assert name in section, name
