"""Help, man page and completions: all are made from the commands' own definitions."""

import os
import re
import shutil
import subprocess

import pytest

SHELLS = ["bash", "zsh", "fish"]


@pytest.fixture(scope="module")
def octet(built_program):
    def run(*arguments):
        done = subprocess.run([built_program("octet"), *arguments], capture_output=True, text=True,
                              timeout=60)
        assert done.returncode == 0 and done.stderr == "", done.stderr
        return done.stdout

    return run


def words_of_help(page):
    """The commands and the flags that a help page lists: the first word of an entry, and what
    begins with a dash before the text."""
    commands, flags = [], []
    for line in page.splitlines():
        entry = re.match(r"  (\S.*?)(?:  |$)", line)
        if not entry:
            continue
        found = re.findall(r"(?:^|, )(--?[a-zA-Z][\w-]*)", entry[1])
        flags += found
        if not found and re.match(r"  [a-z0-9]+  ", line):
            commands.append(entry[1])
    return commands, flags


@pytest.fixture(scope="module")
def pages(octet):
    """{"octet bench gemm": its help} for every command, found by walking the help pages."""
    found = {}

    def walk(path):
        page = found[" ".join(path)] = octet(*path[1:], "--help")
        for command in words_of_help(page)[0]:
            walk([*path, command])

    walk(["octet"])
    return found


def test_help_pages_are_all_found(pages):
    assert {"octet generate", "octet caption check", "octet bench step", "octet man"} < pages.keys()
    assert {"--seed", "-o", "--out"} <= set(words_of_help(pages["octet demo"])[1])


def test_help_fits_a_terminal_and_has_no_clutter(pages):
    for name, page in pages.items():
        assert f"Usage: {name}" in page
        clutter = r"Excludes:|Needs:|REQUIRED|(?<!--prompt )(?<!--negative )TEXT\b"
        assert not re.search(clutter, page), name
        for line in page.splitlines():
            assert len(line) <= 88 or line.startswith("  octet "), (name, line)


def test_every_command_has_examples_of_flags_that_exist(pages):
    for name, page in pages.items():
        if name in ("octet", "octet bench", "octet caption", "octet man"):
            continue
        examples = re.split(r"^Examples?:$", page, flags=re.M)[1].strip().splitlines()
        for line in examples:
            assert line.strip().startswith(name), (name, line)
            for flag in re.findall(r" (--?[a-zA-Z][\w-]*)", line):
                assert flag in words_of_help(page)[1], (name, flag)


def test_main_help_lists_exit_codes_and_the_environment(pages):
    main = pages["octet"]
    assert "Exit codes: 0 done, 1 failed, 2 wrong usage" in main
    assert "environment.md" in main
    order = words_of_help(main)[0]
    assert order[0] == "generate" and order[-3:] == ["completion", "man", "help"]


def test_man_page_holds_every_command_and_flag(octet, pages):
    page = octet("man")
    assert page.isascii()
    for name, help_page in pages.items():
        if name == "octet":
            section = page
        else:
            section = re.search(rf"^\.SS {re.escape(name)}(?= |$).*?(?=^\.S|\Z)", page,
                                re.M | re.S)[0]
        for flag in words_of_help(help_page)[1]:
            assert "\\fB" + flag.replace("-", "\\-") + "\\fR" in section, (name, flag)
    for section in ("NAME", "SYNOPSIS", "COMMANDS", "EXIT STATUS", "ENVIRONMENT"):
        assert f"\n.SH {section}\n" in page


@pytest.mark.skipif(shutil.which("groff") is None, reason="groff is not installed")
def test_man_page_gives_no_warning(octet):
    done = subprocess.run(["groff", "-man", "-Tutf8", "-ww", "-rLL=78n"], input=octet("man"),
                          capture_output=True, text=True)
    assert done.returncode == 0 and done.stderr == ""
    text = re.sub(r"\x1b\[[0-9;]*m|.\x08", "", done.stdout)
    assert "octet - Ideogram 4" in text
    assert "octet bench gemm --shapes '4096,5120,5120;1,5120,5120'" in text  # hyphens and quotes


@pytest.mark.parametrize("shell", SHELLS)
def test_completion_holds_every_command_and_flag(octet, pages, shell):
    script = octet("completion", shell)
    for name, page in pages.items():
        commands, flags = words_of_help(page)
        for word in commands:
            assert f"{name} {word}" in script
        for flag in flags:
            in_fish = f" -l {flag[2:]} " if flag.startswith("--") else f" -s {flag[1:]} "
            assert (in_fish if shell == "fish" else flag) in script, (name, flag)


@pytest.mark.parametrize("shell", SHELLS)
def test_completion_is_valid_for_its_shell(octet, shell):
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    done = subprocess.run([shell, "-n"], input=octet("completion", shell), capture_output=True,
                          text=True)
    assert done.returncode == 0 and done.stderr == ""


@pytest.mark.parametrize(("line", "offered", "kept_back"), [
    ("octet ", {"generate", "bench", "completion"}, {"gemm", "--device"}),
    ("octet ge", {"generate"}, {"bench"}),
    ("octet bench ", {"gemm", "linear", "quantize", "step", "e2e"}, {"generate"}),
    ("octet bench gemm --", {"--shapes", "--device", "--peers", "--json"}, {"--rows", "gemm"}),
    ("octet bench gemm --sh", {"--shapes"}, {"--device"}),
    ("octet bench gemm --device ", {"auto", "ref", "cpu", "cuda"}, {"cuda:N", "--shapes"}),
    ("octet bench gemm --device = c", {"cpu", "cuda"}, {"auto"}),
    ("octet bench gemm --device = ", {"auto", "cpu"}, {"--shapes"}),
    ("octet bench gemm --threads ", set(), {"1", "--shapes"}),
    ("octet bench gemm --peers ", {"--shapes"}, set()),
    ("octet completion ", {"bash", "zsh", "fish"}, set()),
    ("octet caption check ", {"FILES"}, {"--fix"}),
    ("octet caption check -", {"--fix"}, {"FILES"}),
    ("octet demo --out ", {"FILES"}, {"--seed"}),
    ("octet demo --caption ", {"FILES"}, {"--seed"}),
    ("octet devices --json ", {"FILES"}, set()),
    ("octet compare --a-linears ", {"int8", "float"}, {"FILES", "--size"}),
    ("octet inspect a --json ", {"FILES"}, set()),
    ("octet quantize a b --seed ", set(), {"FILES"}),
    ("octet generate --keep ", {"device", "host", "stream"}, {"FILES", "--size"}),
    ("octet generate --caption ", {"FILES"}, {"--size"}),
    ("octet generate --preset ", {"quality", "default", "turbo"}, {"FILES", "--size"}),
])
def test_bash_completes(octet, tmp_path, line, offered, kept_back):
    """As readline calls it, but for compopt, which works within readline alone."""
    script = tmp_path / "octet.bash"
    script.write_text(octet("completion", "bash"))
    words = [*line.split(), ""] if line.endswith(" ") else line.split()
    done = subprocess.run(
        ["bash", "-euc", 'source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))\n'
         'compopt() { echo FILES; }\n'
         '[[ $(complete -p octet) == "complete -F _octet octet" ]]\n'
         '_octet; printf "%s\\n" "${COMPREPLY[@]}"', "bash", script, *words],
        capture_output=True, text=True)
    assert done.returncode == 0 and done.stderr == "", done.stderr
    answer = set(done.stdout.split())
    assert offered <= answer and not kept_back & answer, answer
    if not offered:
        assert answer == set()


@pytest.mark.skipif(shutil.which("fish") is None, reason="fish is not installed")
@pytest.mark.parametrize(("line", "offered", "kept_back"), [
    ("octet ", {"generate", "bench"}, {"gemm"}),
    ("octet bench ", {"gemm", "linear", "quantize", "step", "e2e"}, {"generate"}),
    ("octet bench gemm --", {"--shapes", "--device"}, {"--rows"}),
    ("octet bench gemm --device ", {"auto", "cpu"}, {"here.json"}),
    ("octet caption check ", {"here.json"}, {"--fix"}),
])
def test_fish_completes(octet, tmp_path, line, offered, kept_back):
    (tmp_path / "octet.fish").write_text(octet("completion", "fish"))
    (tmp_path / "here.json").write_text("{}")
    done = subprocess.run(
        ["fish", "--no-config", "-c", f"source octet.fish; complete -C '{line}'"], cwd=tmp_path,
        env={**os.environ, "HOME": str(tmp_path)}, capture_output=True, text=True)
    answer = {entry.split("\t")[0] for entry in done.stdout.splitlines()}
    assert offered <= answer and not kept_back & answer, (answer, done.stderr)
