"""octet caption check: exit codes, findings, and the same text as Python's json.dumps."""

import json
import os
import pty
import random
import subprocess
import tty

import pytest

CAPTION = {
    "high_level_description": "A poster, \"seen\" at dawn: 入場無料 · 😀 \\ / \u007f\u2028",
    "style_description": {"aesthetics": "calm", "lighting": "soft", "photo": "35mm\tlens",
                          "medium": "photograph", "color_palette": ["#0A1B2C"]},
    "compositional_deconstruction": {
        "background": "transparent background",
        "elements": [
            {"type": "obj", "bbox": [0, 1, 999, 1000], "desc": "line\nbreak \b\f\r\u0000\u001f"},
            {"type": "text", "text": "PÊCHE", "desc": "letters", "color_palette": []},
        ],
    },
}


def dumps(value):
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


@pytest.fixture
def check(built_program, tmp_path):
    """check(text, *flags) runs `octet caption check` on a file of that text."""

    def run(text, *flags):
        path = tmp_path / "caption.json"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return subprocess.run([built_program("octet"), "caption", "check", path, *flags],
                              capture_output=True, text=True, timeout=60)

    return run


def test_valid_captions(check):
    done = check(dumps(CAPTION))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith("caption.json: a valid caption\n")
    assert len(done.stdout.splitlines()) == 1
    assert check(dumps(CAPTION), "-q").stdout == ""


@pytest.fixture
def check_word(built_program, tmp_path):
    """The same with the argument as it is."""

    def run(*words):
        return subprocess.run([built_program("octet"), "caption", "check", *words], cwd=tmp_path,
                              capture_output=True, text=True, timeout=60)

    return run


def test_what_people_give_instead_of_a_file(check_word, tmp_path):
    done = check_word(dumps(CAPTION))  # the JSON itself, as generate takes it
    assert (done.returncode, done.stdout) == (0, "the caption: a valid caption\n")
    done = check_word('{"a": 1}')
    assert done.returncode == 1 and "the caption: " in done.stderr
    assert done.stderr.endswith("docs/captions.md describes captions\n")
    (line,) = check_word("a lovely cat").stderr.splitlines()
    assert "'a lovely cat': there is no such file" in line and "--wrap-text" in line
    assert "--prompt" in line
    done = check_word("--wrap-text", "a lovely cat")
    assert done.returncode == 0 and "a lovely cat" in json.loads(done.stdout).values()
    (line,) = check_word(tmp_path).stderr.splitlines()
    assert "is a folder" in line and f"for f in {tmp_path}/*.json" in line
    (tmp_path / "my dir").mkdir()
    assert "for f in 'my dir'/*.json; do" in check_word("my dir").stderr
    assert check_word("nope.json").stderr.endswith("'nope.json': there is no such file\n")


def test_fix_is_json_dumps(check):
    for text in (dumps(CAPTION), json.dumps(CAPTION, indent=2), json.dumps(CAPTION)):
        done = check(text, "--fix")
        assert done.returncode == 0, done.stderr
        assert done.stdout == dumps(CAPTION) + "\n"


def test_what_is_fixed_cannot_drive_a_terminal(built_program):
    """Where it is shown, and not kept, escapes say the same."""
    caption = CAPTION | {"high_level_description": "A poster\x9b31m \u202e\u2028雪"}
    master, slave = pty.openpty()
    tty.setraw(slave)
    done = subprocess.run([built_program("octet"), "caption", "check", "--fix", "-"],
                          input=dumps(caption).encode(), stdout=slave, timeout=60)
    os.close(slave)
    shown = os.read(master, 1 << 16).decode()
    os.close(master)
    assert done.returncode == 0 and json.loads(shown) == caption
    assert "\\u009b31m \\u202e\\u2028雪" in shown and not {"\x9b", "\u202e"} & set(shown)


def shuffled(value, rng):
    if isinstance(value, dict):
        items = [(key, shuffled(item, rng)) for key, item in value.items()]
        rng.shuffle(items)
        return dict(items)
    return [shuffled(item, rng) for item in value] if isinstance(value, list) else value


def test_fix_sorts_any_order_of_keys(check):
    rng = random.Random(1)
    for _ in range(10):
        assert check(dumps(shuffled(CAPTION, rng)), "--fix").stdout == dumps(CAPTION) + "\n"


def test_strings_of_any_characters_are_written_as_python_writes_them(check):
    rng = random.Random(2)
    ranges = [(0, 0x20), (0x20, 0x7f), (0x7f, 0x100), (0x2020, 0x2030), (0xe000, 0x10000),
              (0x1f600, 0x1f650), (0, 0xd800)]
    for _ in range(20):
        text = "".join(chr(rng.randrange(*rng.choice(ranges))) for _ in range(300))
        caption = {"high_level_description": text,
                   "compositional_deconstruction": {"background": text, "elements": []}}
        for written in (dumps(caption), json.dumps(caption)):
            assert check(written, "--fix").stdout == dumps(caption) + "\n"


def test_errors_are_listed_and_end_in_a_sentence(check):
    broken = json.loads(dumps(CAPTION))
    broken["compositional_deconstruction"]["elements"][0]["bbox"] = [0, 0, 1001, 1.5]
    broken["style_description"]["color_palette"] = ["#abcdef", "\u001b[2J"]
    done = check(dumps(broken))
    assert done.returncode == 1
    lines = done.stdout.splitlines()
    assert len(lines) == 3 and all(line.startswith("error: $.") for line in lines)
    assert lines[0].startswith("error: $.style_description.color_palette[0]: expected a color")
    assert '"\\u001b[2J"' in lines[1]
    assert "$.compositional_deconstruction.elements[0].bbox[3]: expected an integer" in lines[2]
    (sentence,) = done.stderr.splitlines()
    assert sentence.endswith("caption.json: 3 errors in the caption; --fix can repair 1 of them; "
                             "generate --any-caption runs it anyway; docs/captions.md describes "
                             "captions")

    failed = check(dumps(broken), "--fix")
    assert failed.returncode == 1 and failed.stdout == ""
    assert len(failed.stderr.splitlines()) == 4


def test_what_can_be_mended_is_an_error_until_it_is(check):
    lower = json.loads(dumps(CAPTION))
    lower["style_description"]["color_palette"] = ["#0a1b2c"]
    done = check(dumps(lower))
    assert done.returncode == 1
    assert "$.style_description.color_palette[0]" in done.stdout
    assert "1 error in the caption; --fix prints the repaired caption" in done.stderr
    assert check(dumps(lower), "--fix").stdout == dumps(CAPTION) + "\n"
    assert "color_palette[0]" in check(dumps(lower), "--fix").stderr
    assert check(dumps(lower), "--fix", "-q").stderr == ""


def test_what_prompt_expanders_add_is_left_out(check):
    expanded = dumps({"aspect_ratio": "16:9", **CAPTION})
    done = check(expanded)
    assert done.returncode == 0 and done.stdout.startswith("warning: $.aspect_ratio: ")
    assert check(expanded, "--fix").stdout == dumps(CAPTION) + "\n"


def test_misspelt_keys_and_types_are_named(check):
    text = dumps(CAPTION).replace('"color_palette":[]', '"colour_palette":[]')
    done = check(text)
    assert done.returncode == 0
    assert 'unknown key "colour_palette" (did you mean color_palette?)' in done.stdout
    done = check(text.replace('"background"', '"backgorund"').replace('"obj"', '"object"'))
    assert done.returncode == 1
    assert ('.background: is missing, expected a string; "backgorund" seems to stand for '
            'background' in done.stdout)
    assert 'got "object"; did you mean "obj"?' in done.stdout
    assert "2 errors in the caption" in done.stderr


def test_control_tokens_are_warned_of(check):
    done = check(dumps(CAPTION).replace("PÊCHE", "PÊCHE<|im_end|>"))
    assert done.returncode == 0
    assert ("elements[1].text: the tokenizer reads <|im_end|> as a control token" in
            done.stdout)


def test_any_caption(check):
    """Errors are warnings then, and the text is what the model would get."""
    text = '{ "scene": "fox",\n "scene 2": "\\u00e9" }'
    assert check(text).returncode == 1
    done = check(text, "--any-caption")
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert all(line.startswith("warning: $") for line in lines[:-1]) and len(lines) > 2
    assert lines[-1].endswith("caption.json: can be run with --any-caption")
    fixed = check(text, "--any-caption", "--fix", "-q")
    assert (fixed.returncode, fixed.stdout) == (0, '{"scene":"fox","scene 2":"é"}\n')
    report = json.loads(check(text, "--any-caption", "--json", "-").stdout)
    assert report["valid"] is True and report["caption"] == fixed.stdout.strip()
    assert check("a red fox\n", "--any-caption", "--fix", "-q").stdout == "a red fox\n"
    for hostile in (b"", b"\xff", b"{\0}"):
        assert check(hostile, "--any-caption").returncode == 1


def test_warnings_do_not_fail(check):
    odd = json.loads(dumps(CAPTION))
    odd["style_description"]["lighting"] = 3
    done = check(dumps(odd))
    assert done.returncode == 0
    warning = "warning: $.style_description.lighting: expected a string, got 3\n"
    assert done.stdout.startswith(warning)
    assert check(dumps(odd), "-q").stdout == ""


def test_json_report(check, tmp_path):
    report = json.loads(check(dumps(CAPTION), "--json", "-").stdout)
    assert report.pop("schema") == "octet.caption.check/1"
    assert report == {"valid": True, "findings": [], "caption": dumps(CAPTION)}
    path = tmp_path / "report.json"
    done = check('{"x":1}', "--json", path)
    assert done.returncode == 1 and done.stdout
    report = json.loads(path.read_text())
    assert report["valid"] is False and report["caption"] is None
    first = report["findings"][0]
    assert '"x"' in first.pop("rule")
    assert first == {"path": "$", "severity": "warning", "fixable": False}


def test_plain_text(check):
    done = check("a red fox\n")
    assert done.returncode == 1 and "--wrap-text" in done.stdout
    wrapped = check("a red \"fox\"\n", "--wrap-text")
    assert wrapped.returncode == 0 and wrapped.stderr == ""
    assert json.loads(wrapped.stdout) == {
        "high_level_description": 'a red "fox"',
        "compositional_deconstruction": {"background": 'a red "fox"', "elements": []},
    }
    lines = check("a fox\n\n  a cat", "--wrap-text")
    assert lines.returncode == 0 and "its 2 lines become one caption" in lines.stderr
    refused = check(dumps(CAPTION), "--wrap-text")
    assert refused.returncode == 1 and "begins with '{'" in refused.stderr


@pytest.mark.parametrize("text", [b"", b"\xff\xfe", b"{\0}", b'{"a":1,"a":1}', b"[" * 60_000,
                                  b'{"a":' * 10_000, b"1e999", b"\xef\xbb\xbf"])
def test_hostile_bytes_are_findings(check, text):
    done = check(text)
    assert done.returncode == 1
    assert done.stdout.startswith("error: $: ")
    assert len(done.stderr.splitlines()) == 1


def test_files_that_cannot_be_read(built_program, tmp_path):
    def sentence(*arguments, code=1, **options):
        done = subprocess.run([built_program("octet"), "caption", *arguments], capture_output=True,
                              text=True, timeout=60, **options)
        assert done.returncode == code and done.stdout == ""
        (line,) = done.stderr.splitlines()
        return line

    assert "no such file" in sentence("check", "/no/such/caption.json")
    assert "is a folder" in sentence("check", tmp_path)
    assert "is a pipe or a device" in sentence("check", "/dev/zero")
    assert "65536 bytes" in sentence("check", "-", input="x" * 70_000)
    assert "caption: a command is missing, expected check" in sentence(code=2)
    assert "FILE is missing" in sentence("check", code=2)
    assert "path is empty" in sentence("check", "", code=2)


def test_standard_input(built_program):
    done = subprocess.run([built_program("octet"), "caption", "check", "-"], capture_output=True,
                          input=dumps(CAPTION), text=True)
    assert (done.returncode, done.stdout) == (0, "standard input: a valid caption\n")
