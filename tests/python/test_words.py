"""Each public enum has one list of words, beside it, and nothing spells its values again."""

import re

import pytest

ENUM = re.compile(r"\benum class (\w+)[^{;]*\{([^}]*)\}")
LIST = re.compile(r"Word<([\w:]+)> list\[\] = \{(.*?)\};", re.S)
ROW = re.compile(r'\{(?:\w+::)*(\w+), "([^"]*)"')
# A value beside a text, in either order: a row of a table, or a branch that ends in the word.
VALUE_AND_WORD = re.compile(r'\b(\w+)::(\w+)(?:,|:\s*return|\s*\?)\s*"([^"\n]*)"')
WORD_AND_VALUE = re.compile(r'"([^"\n]*)"\s*(?:,|\)\s*return)\s*(?:\w+::)*(\w+)::(\w+)\b')


def without_comments(text):
    return re.sub(r"//[^\n]*", "", text)


def enums_in(text):
    """{enum: its values} of a header."""
    return {name: re.findall(r"\w+", values)
            for name, values in ENUM.findall(without_comments(text))}


def words_in(text):
    """{enum: [(value, word)]} of a header's lists."""
    return {name.rsplit("::", 1)[-1]: ROW.findall(rows) for name, rows in LIST.findall(text)}


def faults_of(text):
    """What a header lacks."""
    faults = []
    lists = words_in(text)
    for enum, values in enums_in(text).items():
        rows = lists.get(enum, [])
        named = [value for value, _ in rows]
        words = [word for _, word in rows]
        faults += [f"{enum}::{value} has no word" for value in values if value not in named]
        faults += [f"{enum} has '{word}' twice" for word in set(words) if words.count(word) > 1]
        faults += [f"{enum}::{value} has two words" for value in values if named.count(value) > 1]
    return faults


def second_words(text, lists):
    """Where source beside the lists spells a value again."""
    text = without_comments(text)
    spelled = VALUE_AND_WORD.findall(text)
    spelled += [(enum, value, word) for word, enum, value in WORD_AND_VALUE.findall(text)]
    return [f"{enum}::{value}" for enum, value, word in spelled
            if (value, word) in lists.get(enum, [])]


def headers(repository):
    found = sorted((repository / "include/octet").rglob("*.h"))
    assert len(found) > 10
    return [path for path in found if path.name not in ("octet.h", "words.h")]


def test_every_value_of_a_public_enum_has_a_word_of_its_own(repository):
    enums = {}
    for path in headers(repository):
        text = path.read_text()
        assert not faults_of(text), path.name
        enums.update(enums_in(text))
    assert {"Linears", "AttentionMode", "AuditVerdict", "Kind", "Level", "Stage"} <= set(enums)


def test_no_other_file_spells_them(repository):
    lists = {}
    for path in headers(repository):
        lists.update(words_in(path.read_text()))
    spelled = {}
    for root in ("src", "apps"):
        for path in sorted((repository / root).rglob("*")):
            if path.suffix in (".h", ".cpp", ".cu", ".cuh"):
                again = second_words(path.read_text(), lists)
                if again:
                    spelled[str(path.relative_to(repository))] = again
    assert not spelled


HEADER = """enum class Place : uint8_t { near, far };  // or elsewhere
template <>
struct Words<Place> {
  static constexpr Word<Place> list[] = {{Place::near, "here"}, %s};
};"""


@pytest.mark.parametrize(("row", "fault"), [
    ('{Place::far, "there"}', []),
    ('{Place::far, "here"}', ["Place has 'here' twice"]),
    ('{Place::near, "at hand"}', ["Place::far has no word", "Place::near has two words"]),
])
def test_a_fault_is_found(row, fault):
    assert faults_of(HEADER % row) == fault


def test_an_enum_without_words_is_found():
    assert faults_of("enum class Place { near };") == ["Place::near has no word"]


@pytest.mark.parametrize("line", [
    'case Place::near: return "here";',
    '{{"here", Place::near}}',
    '{Place::near, "here"}',
    'place == Place::near ? "here" : "there"',
    'if (text == "here") return octet::Place::near;',
])
def test_a_second_table_is_found(line):
    lists = words_in(HEADER % '{Place::far, "there"}')
    assert second_words(line, lists) == ["Place::near"]
    assert not second_words("// " + line, lists)
