"""`octet generate` with several captions: one model, names by a pattern, and captions that fail
alone."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess

import pytest

pytest.importorskip("diffusers")
pytest.importorskip("transformers")

import tiny_ideogram4 as tiny
from generating import (
    command,
    generate,  # noqa: F401: a fixture
    model,  # noqa: F401: a fixture
    refusal,
)
from PIL import Image

NO_CAPTION = ("--caption", None)


def saying(words) -> str:
    caption = json.loads(tiny.CAPTION)
    caption["high_level_description"] = words
    return json.dumps(caption, ensure_ascii=False)


@pytest.fixture
def texts(tmp_path):
    """A file, a folder of two and what is none, and lines."""
    folder = tmp_path / "texts"
    (folder / "many").mkdir(parents=True)
    (folder / "one.json").write_text(saying("one"))
    (folder / "many/b.json").write_text(saying("b"))
    (folder / "many/a.json").write_text(saying("a"))
    (folder / "many/notes.txt").write_text("no caption")
    lines = [saying("first"), "", " \t", saying("fourth") + "\r"]
    (folder / "lines.jsonl").write_text("\n".join(lines) + "\n")
    return folder


def files(run) -> dict[str, bytes]:
    """What was written, by name; taken away."""
    found = {}
    for path in sorted(run.out.iterdir()):
        found[path.name] = path.read_bytes()
        path.unlink()
    return found


def test_every_kind_of_caption_in_the_order_given(generate, model, texts):
    more = ["-p", "a red cube", "--caption", texts / "lines.jsonl", "--caption", texts / "many",
            "--caption", "-", "--prompt", saying("json"), "--caption", saying("itself"),
            "--caption", texts / "one.json"]
    done = generate(model, *NO_CAPTION, "--json", generate.out / "report", more=more)
    assert done.returncode == 0 and done.stderr == "", done.stderr
    names = ["prompt-1", "line-1", "line-4", "a", "b", "stdin", "prompt-2", "caption-1", "one"]
    paths = [str(generate.out / f"out-{name}.png") for name in names]
    assert done.stdout.splitlines() == paths
    report = json.loads((generate.out / "report").read_text())
    assert report["pictures"] == paths and report["seeds"] == [0] * 9
    assert report["caption"] is None and report["size"] == "8x6"
    assert [each["name"] for each in report["captions"]] == names
    said = [json.loads(each["caption"])["high_level_description"] for each in report["captions"]]
    first = json.loads(tiny.CAPTION)["high_level_description"]
    assert said == ["a red cube", "first", "fourth", "a", "b", first, "json", "itself", "one"]
    for each, path in zip(report["captions"], paths):
        assert each["pictures"] == [path] and each["seeds"] == [0] and each["error"] is None
        assert each["denoise_s"] > 0 and each["text_tokens"] > 0
    assert report["text_tokens"] == sum(each["text_tokens"] for each in report["captions"])
    launches = {use["layer"]: use["launches"] for use in report["kernels"]}
    assert launches["attention.qkv"] % 9 == 0


def test_each_picture_is_that_of_its_caption_alone(generate, model, texts):
    done = generate(model, *NO_CAPTION, "--images", 2, "--seed", 5,
                    more=["--caption", texts / "many", "-p", "a red cube"])
    assert done.returncode == 0, done.stderr
    together = files(generate)
    assert sorted(together) == [f"out-{name}-{i}.png" for name in ("a", "b", "prompt-1")
                                for i in (1, 2)]
    for name, flags in (("a", ("--caption", texts / "many/a.json")),
                        ("b", ("--caption", texts / "many/b.json")),
                        ("prompt-1", (*NO_CAPTION, "-p", "a red cube"))):
        assert generate(model, *flags, "--images", 2, "--seed", 5).returncode == 0
        alone = files(generate)
        for i in (1, 2):
            assert together[f"out-{name}-{i}.png"] == alone[f"out-{i}.png"]
    assert len(set(together.values())) == 6


@pytest.mark.parametrize(("pattern", "names"), [
    ("{index}.png", ["1.png", "2.png", "3.png", "4.png"]),
    ("{name}-{seed}.png", ["a-7.png", "a-8.png", "b-7.png", "b-8.png"]),
    ("{name}_{image}.png", ["a_1.png", "a_2.png", "b_1.png", "b_2.png"]),
    ("x{name}.png", ["xa-1.png", "xa-2.png", "xb-1.png", "xb-2.png"]),
    ("{image}.png", ["1-a.png", "1-b.png", "2-a.png", "2-b.png"]),
    ("{}{ A}.png", ["{}{ A}-a-1.png", "{}{ A}-a-2.png", "{}{ A}-b-1.png", "{}{ A}-b-2.png"]),
])
def test_patterns(generate, model, texts, pattern, names):
    done = generate(model, "--caption", texts / "many", "--out", generate.out / pattern,
                    "--images", 2, "--seed", 7)
    assert done.returncode == 0, done.stderr
    assert sorted(files(generate)) == names


def test_patterns_for_one_caption(generate, model, texts):
    for pattern, caption, name in (("{name}.{seed}.png", texts / "one.json", "one.3.png"),
                                   ("{name}.png", "-", "stdin.png")):
        out = generate.out / pattern
        assert generate(model, "--caption", caption, "--out", out, "--seed", 3).returncode == 0
        assert list(files(generate)) == [name]


def test_a_folder_of_one_names_its_picture(generate, model, texts):
    """So that the names do not depend on how many there are."""
    (texts / "many/b.json").unlink()
    assert generate(model, "--caption", texts / "many").returncode == 0
    assert list(files(generate)) == ["out-a.png"]


def test_names_stay_in_their_folder(generate, model, texts):
    for name in ("...json", "a\nb.json", ".hidden.json"):
        (texts / "many" / name).write_text(tiny.CAPTION)
    done = generate(model, "--caption", texts / "many", "--out", generate.out / "{name}")
    assert done.returncode == 0, done.stderr
    expected = ["_...png", "_.hidden.png", "a.png", "a_b.png", "b.png"]
    assert sorted(files(generate)) == expected


@pytest.mark.parametrize(("flags", "parts"), [
    (["--out", "OUT/same-{image}.png", "--caption", "many/a.json", "--caption", "other/a.json"],
     ["two pictures would be", "same-1-a.png", "{index}"]),
    (["--out", "OUT/{name}.png", "--caption", "lines.jsonl", "--caption", "lines.jsonl"],
     ["two pictures would be", "line-1.png"]),
    (["--out", "OUT/{name}-{number}.png", "--caption", "many"],
     ["--out has {number}, expected {name}, {index}, {image} or {seed}"]),
    (["--size", "huge", "--caption", "many"], ['"huge" is not a size']),
    (["--caption", "many", "--lora", "x.safetensors:1:nobody"], ["nobody"]),
])
def test_wrong_usage_is_known_before_the_model_is_looked_at(generate, texts, flags, parts):
    (texts / "other").mkdir()
    (texts / "other/a.json").write_text(tiny.CAPTION)
    more = [word.replace("OUT", str(generate.out)) for word in flags]
    settings = [word for flag in ("--caption", "--out", "--size") if flag in flags
                for word in (flag, None)]
    sentence = refusal(generate("nowhere", *settings, more=more, cwd=texts), generate, code=2)
    for part in parts:
        assert part in sentence


def test_bad_captions_leave_the_others_alone(generate, model, texts):
    many = texts / "many"
    (many / "c-broken.json").write_text("{broken")
    (many / "d-wrong.json").write_text('{"scene": 1}')
    (many / "e-bytes.json").write_bytes(b'{"high_level_description": "\xff"}')
    (many / "f-long.json").write_text(saying("word " * 50000))
    (many / "g-empty.json").write_text("")
    (many / "h-gone.json").symlink_to("nowhere")
    done = generate(model, *NO_CAPTION, "--json", generate.out / "report",
                    more=["--caption", many, "--caption", texts / "none.json", "-p", "a cube"])
    assert done.returncode == 1
    made = [str(generate.out / f"out-{name}.png") for name in ("a", "b", "prompt-1")]
    assert done.stdout.splitlines() == made
    report = json.loads((generate.out / "report").read_text())
    assert report["pictures"] == made
    failed = [each for each in report["captions"] if each["error"]]
    bad = ["c-broken", "d-wrong", "e-bytes", "f-long", "g-empty", "h-gone", "none"]
    assert [each["name"] for each in failed] == bad
    lines = done.stderr.splitlines()
    assert len(lines) == 8, done.stderr
    for each in failed:
        assert each["pictures"] == [] and each["caption"] is None and each["denoise_s"] is None
        (line,) = [line for line in lines[:-1] if f"{each['name']}.json" in line]
        assert line == "octet: " + each["error"] and "`" not in line
    assert "--any-caption" in next(line for line in lines if "d-wrong" in line)
    assert lines[-1].startswith("octet: 7 of 10 captions failed: ")
    assert lines[-1].endswith(str(texts / "none.json"))


def test_lines_are_named_by_their_numbers(generate, model, texts):
    (texts / "lines.jsonl").write_text("\n\n{broken\n" + tiny.CAPTION)
    done = generate(model, "--caption", texts / "lines.jsonl")
    assert done.returncode == 1
    first, last = done.stderr.splitlines()
    assert f"{texts / 'lines.jsonl'}, line 3" in first
    assert last == f"octet: 1 of 2 captions failed: {texts / 'lines.jsonl'}, line 3"
    assert list(files(generate)) == ["out-line-4.png"]


def test_lists_without_captions(generate, texts):
    (texts / "empty").mkdir()
    (texts / "empty.jsonl").write_text("\n \n")
    for path in (texts / "empty", texts / "empty.jsonl"):
        sentence = refusal(generate("nowhere", "--caption", path), generate)
        assert str(path) in sentence and "expected" in sentence
        none = texts / "none.json"
        done = generate("nowhere", *NO_CAPTION, more=["--caption", path, "--caption", none])
        assert done.returncode == 1 and done.stdout == ""
        first, second, last = done.stderr.splitlines()
        assert first == sentence and str(none) in second
        assert last == f"octet: 2 of 2 captions failed: {path}; {none}"
    locked = texts / "locked.jsonl"
    locked.write_text(tiny.CAPTION)
    locked.chmod(0)
    if not os.access(locked, os.R_OK):
        assert "cannot be read" in generate("nowhere", "--caption", locked).stderr


def test_plain_text_in_lines(generate, model, texts):
    (texts / "words.jsonl").write_text("a red cube\r\n\n\ufeffa blue ball\n")
    done = generate(model, "--wrap-text", "--caption", texts / "words.jsonl", "--json", "-")
    said = [json.loads(each["caption"])["high_level_description"]
            for each in json.loads(done.stdout)["captions"]]
    assert said[0] == "a red cube" and said[1].endswith("a blue ball")


def test_errors_of_the_model_end_the_work(generate, model, texts):
    assert "nowhere" in refusal(generate("nowhere", "--caption", texts / "many"), generate)
    odd = generate(model, "--caption", texts / "many", "--size", "9x9")
    assert "9x9" in refusal(odd, generate, code=2)
    plain = generate(model, "--require-int8", "--caption", texts / "many", "--device", "ref")
    assert plain.returncode == 1 and "--require-int8" in plain.stderr


def test_the_plan_and_the_pictures_are_told(built_program, generate, model, texts):
    flags = ["--caption", texts / "many", "--seed", 4]
    words = command(built_program("octet"), model, generate.out, flags)
    words.remove("-q")
    done = subprocess.run([*words, "--keep", "stream,vae=device", "--max-memory", "4GB"],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    plan, first = done.stderr.split("1/2 a: ", 1)
    assert {"text_encoder", "transformer", "vae"} <= set(re.findall(r"\w+", plan))
    assert "2/2 b: denoising: 0/2 steps\n" in first
    paths = [f"{generate.out / name} (seed 4)" for name in ("out-a.png", "out-b.png")]
    assert done.stdout.splitlines()[:2] == paths
    assert re.fullmatch(r"[0-9.]+ s on .*: all \d+ large linears in native INT8, 2 steps per "
                        r"picture; -v shows the kernels", done.stdout.splitlines()[2])
    assert len(done.stdout.splitlines()) == 3
    # What no plan keeps is refused with the least that works; all that stays on the device is
    # nothing to tell.
    done = subprocess.run([*words, "--max-memory", "1"], capture_output=True, text=True)
    assert done.returncode == 2
    assert "--max-memory: 0.00 GB are too few for pictures of this size, which take" in done.stderr
    done = subprocess.run(words, capture_output=True, text=True)
    assert "at hand" not in done.stderr and "not kept" not in done.stderr
    done = subprocess.run([*words, "-v"], capture_output=True, text=True)
    assert "at hand" in done.stderr
    assert done.stdout.splitlines()[:2] == paths and "attention.qkv" in done.stdout
    assert re.search(r"^Linears: \d+ INT8, 0 protected, \d+ kept in floating point$", done.stdout,
                     re.M)


def test_a_long_path_does_not_bury_what_is_said_of_a_caption(generate, model, tmp_path):
    folder = tmp_path / ("folder" * 30)
    folder.mkdir()
    path = folder / "caption.json"
    path.write_text("{}")
    done = generate(model, "--caption", path, "--any-caption")
    assert "octet: .../caption.json: $" in done.stderr and "folderfolder" not in done.stderr


def test_a_log_has_a_line_for_each_stage_and_the_result_comes_first(built_program, generate,
                                                                    model):
    words = command(built_program("octet"), model, generate.out, ["--steps", 40])
    words.remove("-q")
    done = subprocess.run(words, input=tiny.CAPTION, capture_output=True, text=True)
    assert done.returncode == 0
    lines = done.stderr.splitlines()
    assert len(lines) <= 7 and len([line for line in lines if "denoising" in line]) == 1, lines
    assert done.stdout.splitlines()[0] == f"{generate.out / 'out.png'} (seed 0)"
    assert len(done.stdout.splitlines()) == 2


def test_where_weights_wait_does_not_change_a_picture(generate, model, texts):
    made = []
    for keep in ("device", "host", "stream", "device,text_encoder=stream,vae=host"):
        done = generate(model, "--caption", texts / "many", more=["--keep", keep])
        assert done.returncode == 0, done.stderr
        made.append(files(generate))
    assert all(each == made[0] for each in made)
    done = generate(model, more=["--keep", "text-encoder=host"])
    assert done.returncode == 0, done.stderr
    files(generate)
    sentence = refusal(generate(model, more=["--keep", "attic=host"]), generate, code=2)
    assert "attic" in sentence and "--keep" in sentence


def test_a_signal_keeps_the_pictures_before_it(built_program, generate, model, texts):
    flags = ["--caption", texts / "many", "--steps", 300]
    words = command(built_program("octet"), model, generate.out, flags)
    words.remove("-q")
    run = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert any(line.startswith("2/2 b: denoising") for line in run.stderr)
    run.send_signal(signal.SIGINT)
    out, err = run.communicate(timeout=60)
    assert run.returncode == 130
    assert err.splitlines()[-1] == "octet: stopped on request; 1 of 2 pictures are complete"
    assert out == f"{generate.out / 'out-a.png'} (seed 0)\n"
    assert list(files(generate)) == ["out-a.png"]


def test_a_preview_is_a_small_picture(generate, model, tmp_path):
    path = tmp_path / "preview.png"
    done = generate(model, more=["--preview", path])
    assert done.returncode == 0, done.stderr
    with Image.open(path) as image:
        image.load()
        assert image.mode == "RGB"
        assert 0 < image.width <= 8 and 0 < image.height <= 6


def test_linears_that_ran(generate, model):
    by_flag = {}
    for linears in ("int8", "float"):
        done = generate(model, "--linears", linears, "--json", "-")
        by_flag[linears] = json.loads(done.stdout)["linears_ran"]
    ran, floating = by_flag["int8"], by_flag["float"]
    assert ran["int8"] > 0 and ran["kept"] > 0
    assert ran["protected"] == 0 and ran["floating"] == 0
    assert floating == {**ran, "int8": 0, "floating": ran["int8"]}
    assert generate(model, "--require-int8").returncode == 0


def test_text_encoder_in_int8(generate, model):
    by_flag = {}
    for linears in ("float", "int8"):
        done = generate(model, "--text-encoder-linears", linears, "--json", "-")
        by_flag[linears] = json.loads(done.stdout)
    ran = by_flag["int8"]["text_linears_ran"]
    assert ran["int8"] > 0 and ran["floating"] == 0
    assert by_flag["float"]["text_linears_ran"] == {**ran, "int8": 0, "floating": ran["int8"]}
    assert by_flag["float"]["linears_ran"] == by_flag["int8"]["linears_ran"]
    for linears, path in (("float", "bf16"), ("int8", "int8")):
        layers = [use for use in by_flag[linears]["kernels"] if use["layer"].startswith("text.")]
        assert layers and all(use["path"] == path for use in layers)
    assert generate(model, "--require-int8", "--text-encoder-linears", "int8").returncode == 0
