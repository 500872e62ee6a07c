"""Lists of captions with a seed, a size and a name for each row: .jsonl and .csv."""

import json
import os

import pytest
import tiny_ideogram4 as tiny
from generating import (
    generate,  # noqa: F401: a fixture
    model,  # noqa: F401: a fixture
)
from PIL import Image
from running import octet, only_sentence  # noqa: F401: a fixture

CAPTION = json.loads(tiny.CAPTION)


def dumps(value):
    return json.dumps(value, ensure_ascii=False)  # captions are literal UTF-8


def made(run):
    pictures = {}
    for path in sorted(run.out.iterdir()):
        with Image.open(path) as image:
            image.load()
            pictures[path.name] = image
    return pictures


def csv_text(rows):
    def cell(text):
        return '"' + str(text).replace('"', '""') + '"'

    return "".join(",".join(map(cell, row)) + "\r\n" for row in rows)


def test_rows_have_their_own_seed_size_and_name(generate, model, tmp_path):  # noqa: F811
    lines = [{"caption": CAPTION, "seed": 3, "size": "16x12", "name": "first"},
             {"prompt": "a fox", "width": 12, "height": 8},
             CAPTION,
             {"caption": tiny.CAPTION, "seed": str(2**64 - 1), "name": "a/b"}]
    (tmp_path / "list.jsonl").write_text("\n".join(map(dumps, lines)) + "\n")
    done = generate(model, "--caption", tmp_path / "list.jsonl", "--seed", 7,
                    "--out", generate.out / "{name}_{seed}.png", "--json", tmp_path / "report")
    assert done.returncode == 0, done.stderr
    pictures = made(generate)
    assert {name: image.size for name, image in pictures.items()} == {
        "first_3.png": (16, 12), "line-2_7.png": (12, 8), "line-3_7.png": (8, 6),
        f"a_b_{2**64 - 1}.png": (8, 6)}
    assert pictures["first_3.png"].text["seed"] == "3"
    assert "a fox" in pictures["line-2_7.png"].text["caption"]
    report = json.loads((tmp_path / "report").read_text())
    assert [each["size"] for each in report["captions"]] == ["16x12", "12x8", "8x6", "8x6"]
    assert report["seeds"] == [3, 7, 7, 2**64 - 1]


def test_csv(generate, model, tmp_path):  # noqa: F811
    rows = [("name", "prompt", "seed", "size"), ("one", 'a "red" fox,\nin snow', 1, ""),
            ("two", "a cat", "", "16x12")]
    (tmp_path / "list.csv").write_text("\ufeff" + csv_text(rows) + "\r\n")
    done = generate(model, "--caption", tmp_path / "list.csv", "--out", generate.out / "{name}.png")
    assert done.returncode == 0, done.stderr
    pictures = made(generate)
    assert {name: image.size for name, image in pictures.items()} == {
        "one.png": (8, 6), "two.png": (16, 12)}
    assert 'a \\"red\\" fox,' in pictures["one.png"].text["caption"]
    assert (pictures["one.png"].text["seed"], pictures["two.png"].text["seed"]) == ("1", "0")


@pytest.mark.parametrize(("row", "part"), [
    ({"prompt": "a", "seed": -1}, "seed is '-1'"),
    ({"prompt": "a", "size": "big"}, "big"),
    ({"prompt": "a", "width": 8}, "expected size, or width and height"),
    ({"prompt": "a", "caption": "b"}, "both caption and prompt"),
    ({"prompt": "a", "sede": 1}, "or name, did you mean seed?"),
    ({"prompt": "a", "size": "9x9"}, "9x9"),
    ({"prompt": "a", "seed": 1.5}, "seed is '1.5'"),
    ({"prompt": 5}, "prompt is 5, expected text in quotes"),
])
def test_what_is_wrong_with_a_row_names_it(generate, model, tmp_path, row, part):  # noqa: F811
    path = tmp_path / "list.jsonl"
    path.write_text(json.dumps({"prompt": "fine"}) + "\n\n" + json.dumps(row) + "\n")
    done = generate(model, "--caption", path)
    assert done.returncode == 1
    first, last = done.stderr.splitlines()
    assert part in first and f"{path}, line 3" in first and f"{path}, line 3" in last
    assert list(made(generate)) == ["out-line-1.png"]


@pytest.mark.parametrize("row", ['{"prompt": "a", "seed": 1, "seed": 2}',
                                 '{"seed": 1, "caption": {"x": [{"seed": 1, "seed": 2}]}}'])
def test_a_key_that_a_row_has_twice(generate, model, tmp_path, row):  # noqa: F811
    path = tmp_path / "list.jsonl"
    path.write_text(f"{row}\n")
    sentence = only_sentence(generate(model, "--caption", path))
    assert f"{path}, line 1: has the key 'seed' twice" in sentence


def test_errors_come_in_the_order_of_lines(generate, model, tmp_path):  # noqa: F811
    path = tmp_path / "list.jsonl"
    path.write_text('{"prompt": "a", "size": "9x9"}\n{"prompt": 5}\n{}\n{"prompt": "fine"}\n')
    done = generate(model, "--caption", path)
    *errors, last = done.stderr.splitlines()
    assert [line.count(f"{path}, line {i + 1}: ") for i, line in enumerate(errors)] == [1, 1, 1]
    assert "3 of 4 captions failed" in last


def test_what_is_wrong_with_a_table(generate, model, tmp_path):  # noqa: F811
    path = tmp_path / "list.csv"
    for text, part in (("prompt,colour\na,b\n", "the column 'colour'"), ("", "no captions"),
                       ("Prompt\na\n", "did you mean prompt?"),
                       ("prompt;seed\na;1\n", "with commas between them"),
                       ("prompt,seed\na,1\nb\n", "line 3: has 1 cells, expected 2"),
                       ("prompt,prompt\na,b\n", "the column 'prompt' twice"),
                       ('prompt\nb\n"a\nc\n', "line 3: has a quote that is not closed"),
                       ("seed\n1\n", "neither")):
        path.write_text(text)
        done = generate(model, "--caption", path)
        assert done.returncode == 1 and part in done.stderr, done.stderr


@pytest.mark.parametrize("name", ["pipe", "pipe.jsonl", "pipe.csv", "pipe.json"])
def test_a_pipe_is_refused_instead_of_waited_for(generate, model, tmp_path, name):  # noqa: F811
    os.mkfifo(tmp_path / name)
    sentence = only_sentence(generate(model, "--caption", tmp_path / name))
    assert str(tmp_path / name) in sentence and "standard input" in sentence


def test_an_open_descriptor_is_read(generate, model):  # noqa: F811
    done = generate(model, "--caption", "/dev/stdin")
    assert done.returncode == 0, done.stderr


def test_compare_does_not_ignore_them(octet, model, tmp_path):  # noqa: F811
    path = tmp_path / "list.jsonl"
    path.write_text(dumps({"caption": CAPTION, "seed": 4}))
    sentence = only_sentence(octet("compare", model, model, "--caption", path))
    assert "list.jsonl, line 1: has a seed or a size of its own" in sentence
