"""The program says its flags for the fields that the library's sentences name in backquotes."""

import json
import re

import pytest
from demo_folder import demo_folder  # noqa: F401
from field_table import flags_of_fields
from running import octet, only_sentence  # noqa: F401

# What stands in backquotes and is no field of a request.
OTHER_WORDS = {"allocate"}  # of the C interface
OTHER_WORDS |= {"level", "scale"}  # of PNG files in memory, which the program does not make
# Whose flags a sentence may name, since it names the whole command.
COMMANDS = ("octet ", "llama-gguf-split ", "nsys ", "ncu ", "rocprofv3 ", "trtexec ")


def literals(text):
    """The string literals of C++ source, neighbours joined, without comments."""
    text = re.sub(r'("(?:\\.|[^"\\\n])*")|//[^\n]*|/\*.*?\*/', r"\1", text, flags=re.S)
    text = re.sub(r'"\s*\n?\s*"(?=[^"])', "", text)
    return re.findall(r'"((?:\\.|[^"\\\n])*)"', text)


def fields_in(text):
    return {name for literal in literals(text) for name in re.findall(r"`([a-z_0-9]+)`", literal)}


def test_fields_are_found_in_literals_alone():
    source = 'fail("`a_1` is {}, expected "\n  "`b`"); // "`c`"\n /* "`d`" */'
    assert fields_in(source) == {"a_1", "b"}


def test_every_field_has_its_flag(repository):
    known = flags_of_fields(repository).keys()
    assert {"guidance", "require_int8", "unconditional_transformer"} <= known
    named = {}
    for path in sorted((repository / "src").rglob("*")):
        # Whose callers know its own names.
        is_interface = path.name.startswith("c_") or path.parent.name == "python"
        if is_interface or path.suffix not in (".h", ".cpp", ".cu", ".cuh"):
            continue
        for field in fields_in(path.read_text()):
            named.setdefault(field, path.relative_to(repository))
    unknown = {field: str(path) for field, path in named.items()
               if field not in known | OTHER_WORDS}
    assert not unknown, "rows for them are missing in apps/cli/field_names.cpp"


def test_every_flag_of_the_table_is_one(repository):
    sources = "".join(path.read_text() for path in (repository / "apps/cli").glob("*.cpp")
                      if path.name != "field_names.cpp")
    flags = [flag for flags in flags_of_fields(repository).values() for flag in flags]
    for flag in filter(lambda each: each.startswith("--"), flags):
        stem = re.sub("^--[ab]-", "", flag)
        assert f'"{flag}"' in sources or f',{flag}"' in sources or f'"{stem}"' in sources, flag


def test_no_sentence_of_the_library_names_a_flag(repository):
    """It does not know whose words they are. The texts of src/report are the program's."""
    named = []
    for path in sorted((repository / "src").rglob("*")):
        if path.suffix in (".h", ".cpp") and path.parent.name != "report":
            found = [each for each in literals(path.read_text())
                     if re.search(r"(?<![\w-])--[a-z]", each)
                     and not any(command in each for command in COMMANDS)]
            named += [f"{path.relative_to(repository)}: {each}" for each in found]
    assert not named


def test_sentences_say_flags(octet, demo_folder):  # noqa: F811
    words = ("demo", "--device", "cpu", "--keep", "attic=host")
    sentence = only_sentence(octet(*words, OCTET_DEMO_MODEL=str(demo_folder)), code=2)
    assert "--keep: " in sentence and "`" not in sentence
    done = octet("caption", "check", "/dev/null", "--json", "-")
    assert done.returncode == 1 and "`" not in done.stdout + done.stderr


def said_by_calls(text):
    """The fields in source that a sentence knows: those in calls that make one of a format."""
    calls = r"\b(?:check|check_value|fail|sentence|(?:log::)?(?:debug|info|warning|trace))\("
    return fields_in(" ".join(re.findall(calls + r'((?:"(?:\\.|[^"\\\n])*"|[^";])*)', text)))


def test_every_field_stands_in_the_format_of_a_sentence(repository):
    """In other texts it would be shown in backquotes, as users' data are."""
    assert said_by_calls('check(a, "`b` {}"); std::string c = "`d`";') == {"b"}
    assert said_by_calls('fail("a;b `c`", d); "`e`";') == {"c"}
    elsewhere = {}
    for path in sorted((repository / "src").rglob("*")):
        # Its sentences are Python's own.
        if path.suffix not in (".h", ".cpp", ".cu", ".cuh") or path.parent.name == "python":
            continue
        text = path.read_text()
        lost = fields_in(text) - said_by_calls(text) if "`" in text else set()
        if lost:
            elsewhere[str(path.relative_to(repository))] = lost
    assert not elsewhere


NAMES = ("a `device` b", "`size`", "`prompt", "\x01`device`\x02", "\x010\x02 `device` \x010\x02")


def as_shown(name):
    return re.sub(r"[\x01-\x1f]", lambda found: f"\\u{ord(found[0]):04x}", name)


@pytest.mark.parametrize("name", NAMES)
def test_names_of_files_stay_as_they_are(octet, tmp_path, name):
    done = octet("inspect", tmp_path / name)
    assert as_shown(name) in only_sentence(done)


@pytest.mark.parametrize("name", NAMES)
def test_flags_stand_beside_names_of_files(octet, demo_folder, tmp_path, name):  # noqa: F811
    (tmp_path / name).write_text("a `seed` in plain text")
    done = octet("generate", "--model", demo_folder, "--caption", tmp_path / name)
    sentence = only_sentence(done)
    assert as_shown(name) in sentence
    assert "with --prompt or --wrap-text" in sentence and "; --any-caption runs it" in sentence


def test_findings_of_a_caption_say_flags(octet, tmp_path):
    (tmp_path / "a `device` b").write_text("a `seed` in plain text")
    done = octet("caption", "check", tmp_path / "a `device` b", "--json", "-")
    assert "with --prompt or --wrap-text" in json.loads(done.stdout)["findings"][0]["rule"]
    assert "a `device` b: 1 error" in done.stderr
