"""`octet quantize` with everything wrong: one sentence that names the culprit, and nothing left;
and the page of errors."""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
from html.parser import HTMLParser

import pytest

pytest.importorskip("diffusers")
pytest.importorskip("transformers")

import tiny_ideogram4 as tiny
from generating import copy_of, edit_json, edit_tensors, rewrite, weights_of
from quantizing import (
    PARTS,
    WEIGHTS,
    calibration,
    caption,  # noqa: F401: fixtures
    planted,  # noqa: F401
    quantize,  # noqa: F401
    refused,  # noqa: F401
    run_quantize,
    statistics_file,  # noqa: F401
)
from safetensors.torch import load_file, save_file

# --- words ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("flag", "word", "code"),
    [
        ("--recipe", "awq", 2),
        ("--recipe", "", 2),
        ("--recipe", "convrot:8", 2),
        ("--recipe", "smoothquant:2", 2),
        ("--protect", "auto:", 2),
        ("--protect", "auto:-1", 2),
        ("--protect", "layers.0.attention.qkv,", 2),
        ("--protect", "layers.7.attention.qkv", 1),
        ("--protect", "input_proj", 1),  # small ones are never quantized
        ("--max-memory", "1M", 2),
        ("--max-memory", "much", 2),
        ("--max-memory", "-4G", 2),
        ("--max-memory", "0.1", 2),
        ("--max-memory", "", 2),
        ("--dialect", "gguf", 2),
        ("--calibration-steps", "0", 2),
        ("--seed", "-1", 2),
        ("--device", "abacus", 2),
    ],
)
def test_wrong_words(refused, planted, tmp_path, flag, word, code):
    sentence = refused(planted, tmp_path / "out", f"{flag}={word}", code=code)
    assert word in sentence or flag.removeprefix("--") in sentence


def test_no_source(built_program):
    done = run_quantize(built_program("octet"), code=2)
    assert "SOURCE is missing" in done.stderr


def test_recipes_that_do_not_go_with_the_rest(refused, planted, tmp_path):
    sentence = refused(planted, tmp_path / "out", "--recipe", "smoothquant", code=2)
    assert "activations" in sentence and "--captions" in sentence
    words = ["--recipe", "convrot", "--dialect", "transformerlab"]
    assert "rotation" in refused(planted, tmp_path / "out", *words, code=2)


# --- sources -------------------------------------------------------------------------------------


def test_sources_that_are_none(refused, planted, tmp_path):
    assert "nowhere" in refused("nowhere", tmp_path / "out")
    assert "nowhere" in refused(planted, tmp_path / "out", "--base", "nowhere")
    (tmp_path / "empty").mkdir()
    assert "empty" in refused(tmp_path / "empty", tmp_path / "out")
    (tmp_path / "text.safetensors").write_text("hello")
    assert "text.safetensors" in refused(tmp_path / "text.safetensors", tmp_path / "out")
    assert "vae" in refused(planted / "vae", tmp_path / "out")
    assert "text_encoder" in refused(planted / "text_encoder", tmp_path / "out")


def test_what_is_int8_already(quantize, refused, planted, statistics_file, tmp_path):
    for dialect in ("comfyui", "transformerlab"):
        quantize(planted, tmp_path / dialect, "--dialect", dialect, "--recipe", "rowwise")
        sentence = refused(tmp_path / dialect, tmp_path / "out")
        assert "INT8 already" in sentence and dialect in sentence


@pytest.mark.parametrize("damage", ["truncated", "missing", "surplus", "nan", "shape", "config"])
def test_damaged_sources(refused, planted, tmp_path, damage):
    source = copy_of(planted, tmp_path / "source")
    part = source / "unconditional_transformer"
    path, name = weights_of(part), "layers.1.feed_forward.w2.weight"
    if damage == "truncated":
        rewrite(path, path.read_bytes()[:-1])
    elif damage == "missing":
        edit_tensors(part, lambda tensors: tensors.pop(name))
    elif damage == "surplus":
        edit_tensors(part, lambda tensors: tensors.update(extra=tensors[name].clone()))
    elif damage == "shape":
        edit_tensors(part, lambda tensors: tensors.update({name: tensors[name][1:]}))
    elif damage == "config":
        edit_json(part / "config.json", lambda value: value.update(num_layers=3))
    elif damage == "nan":
        edit_tensors(part, lambda tensors: tensors[name].view(-1)[77].fill_(float("nan")))
        done = run_quantize(refused.program, source, tmp_path / "out", "-q", code=1)
        assert name in done.stderr and "\n" not in done.stderr.strip()
        return  # found while writing: the part and the other file stay for another run
    sentence = refused(source, tmp_path / "out")
    assert str(part) in sentence


# --- outputs -------------------------------------------------------------------------------------


def test_the_source_is_never_overwritten(refused, planted, tmp_path):
    source = copy_of(planted, tmp_path / "source")
    before = weights_of(source / "transformer").read_bytes()
    for other, out in [
        (source, source),
        (source, f"{source}/"),
        (source, tmp_path / "source" / ".." / "source"),
        (source / "transformer", source),
        (source / "transformer", weights_of(source / "transformer")),
        (source / "transformer", source / "transformer" / "int8.safetensors"),
        (weights_of(source / "transformer"), weights_of(source / "transformer")),
    ]:
        assert "where the source is" in refused(other, out)
    os.symlink(source, tmp_path / "link")
    assert "where the source is" in refused(source, tmp_path / "link")
    assert weights_of(source / "transformer").read_bytes() == before


def test_outputs_of_the_wrong_form(refused, planted, tmp_path):
    for name in ("out.gguf", "out.bin", "out.ckpt"):
        assert name in refused(planted, tmp_path / name)
    assert "several networks" in refused(planted, tmp_path / "out.safetensors")


def test_names_with_dots_are_folders(quantize, planted, tmp_path):
    report = quantize(planted, tmp_path / "ideogram-4.0-int8", "--recipe", "rowwise")
    assert len(report["files"]) == 2


def test_outputs_that_cannot_be_written(refused, planted, caption, tmp_path):
    (tmp_path / "file").write_text("")
    assert "file" in refused(planted, tmp_path / "file" / "out")
    assert "file" in refused(planted, tmp_path / "file")
    (tmp_path / "a.safetensors").mkdir()
    assert "a.safetensors" in refused(planted / "transformer", tmp_path / "a.safetensors")
    assert "/nowhere" in refused(planted / "transformer", "/proc/nowhere/out.safetensors")
    # Told before the captions are run.
    words = calibration(caption, tmp_path / "statistics.safetensors")
    assert "file" in refused(planted, tmp_path / "file" / "out", *words)
    for flag in ("--report", "--json"):
        assert "/nowhere" in refused(planted, tmp_path / "out", flag, "/proc/nowhere/report")


def test_full_disk(built_program, planted, tmp_path):
    """The limit on the size of files stands for it. What there is room for again is finished."""
    options = {
        "preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (99_000, 99_000)),
        "restore_signals": False,  # Python ignores SIGXFSZ, and so shall the program
    }
    source, out = planted / "transformer", tmp_path / "out.safetensors"
    done = run_quantize(built_program("octet"), source, out, "-q", code=1, **options)
    assert len(done.stderr.splitlines()) == 1 and "out.safetensors" in done.stderr
    assert not out.exists()
    run_quantize(built_program("octet"), source, out, "-q", "--verify")
    assert [path.name for path in tmp_path.iterdir()] == [out.name]


# --- activations ---------------------------------------------------------------------------------


def test_statistics_that_are_none(refused, planted, statistics_file, tmp_path):
    def smooth(path):
        return refused(planted, tmp_path / "out", "--recipe", "smoothquant", "--statistics", path)

    assert "nowhere" in smooth("nowhere")
    (tmp_path / "text").write_text("hello")
    assert "text" in smooth(tmp_path / "text")
    assert "not a file of activation statistics" in smooth(weights_of(planted / "transformer"))
    cut = tmp_path / "cut.safetensors"
    cut.write_bytes(statistics_file.read_bytes()[:-1])
    assert "cut.safetensors" in smooth(cut)


def test_statistics_of_another_model(refused, planted, statistics_file, tmp_path):
    tensors = load_file(statistics_file)
    path = tmp_path / "other.safetensors"
    words = ["--recipe", "smoothquant", "--statistics", path]
    save_file({k: v for k, v in tensors.items() if "layers.1.feed_forward.w2" not in k}, path)
    sentence = refused(planted, tmp_path / "out", *words)
    assert "another model" in sentence and "layers.1.feed_forward.w2" in sentence
    save_file({k: v[..., :-1].contiguous() for k, v in tensors.items()}, path)
    assert "another model" in refused(planted, tmp_path / "out", *words)


@pytest.mark.parametrize("group", ["9223372036854775807", "4611686018427387905", "0", "-4", "5"])
def test_groups_that_are_none(refused, planted, tmp_path, group):
    words = ["--recipe", f"convrot:{group}"]
    assert "4, 16, 64, 256" in refused(planted, tmp_path / "out", *words, code=2)


def test_a_folder_with_another_dialect(quantize, refused, planted, tmp_path):
    quantize(planted, tmp_path / "out", "--recipe", "rowwise")
    words = ["--recipe", "rowwise", "--dialect", "transformerlab"]
    assert "another dialect" in refused(planted, tmp_path / "out", *words)


def test_flags_without_effect(refused, planted, tmp_path):
    assert "--verify" in refused(planted, "--verify", code=2)
    words = ["--calibration-size", "256x256"]
    assert "--captions" in refused(planted, tmp_path / "out", *words, code=2)


def test_unfinished_statistics(refused, planted, statistics_file, tmp_path):
    path = tmp_path / "state.safetensors"
    words = ["--recipe", "smoothquant", "--statistics", path]
    save_file(load_file(statistics_file), path, {"octet.calibration.complete": "no"})
    assert "unfinished calibration" in refused(planted, tmp_path / "out", *words)
    save_file({}, path, {"octet.calibration.complete": "yes"})
    assert "no activations" in refused(planted, tmp_path / "out", *words)


def test_captions_that_are_none(refused, planted, caption, tmp_path):
    words = ["--statistics", tmp_path / "s.safetensors", "--calibration-size", "256x256"]
    assert "nowhere" in refused(planted, tmp_path / "out", *words, "--captions", "nowhere")
    (tmp_path / "bad.json").write_text("{")
    assert "bad.json" in refused(
        planted, tmp_path / "out", *words, "--captions", tmp_path / "bad.json"
    )
    words = ["--captions", caption, "--calibration-size", "17x4"]
    assert "17x4" in refused(planted, tmp_path / "out", *words, code=2)
    assert "--statistics" in refused(planted, "--captions", caption, code=2)  # kept where?
    assert "base" in refused(planted / "transformer", tmp_path / "out", "--captions", caption)


def test_an_output_that_would_replace_the_statistics(
        refused, planted, caption, statistics_file, tmp_path):
    shutil.copy(statistics_file, tmp_path / "seen.safetensors")
    source, new = planted / "transformer", tmp_path / "new.safetensors"
    for out, words in ((tmp_path / "seen.safetensors", []), (new, ["--captions", caption])):
        sentence = refused(source, out, "--base", planted, "--statistics", out, *words, code=2)
        assert f"{out}: is the file of the statistics" in sentence


# --- the page ------------------------------------------------------------------------------------


class Page(HTMLParser):
    """Rows of the table as (linear, widths of bars by kind), and whether tags are balanced."""

    VOID = ("meta", "br", "link")

    def __init__(self, text):
        super().__init__()
        self.open, self.rows, self.texts = [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        if tag not in self.VOID:
            self.open.append(tag)
        values = dict(attributes)
        assert tag not in ("script", "img", "link"), "the page stands alone"
        if tag == "tr":
            self.rows.append({"text": [], "protected": values.get("class") == "protected"})
        kind = values.get("class", "").removeprefix("bar ")
        if tag == "div" and kind != values.get("class"):
            width = values["style"].removeprefix("width:").removesuffix("%")
            self.rows[-1][kind] = float(width)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)
        if self.rows and self.open and self.open[-1] == "td":
            self.rows[-1]["text"].append(data)


@pytest.mark.parametrize("recipe", ["rowwise", "smoothquant", "convrot"])
def test_page_of_errors(built_program, planted, statistics_file, tmp_path, recipe):
    statistics = tmp_path / "<b>&\"'.safetensors"
    shutil.copy(statistics_file, statistics)
    page, report = tmp_path / "page.html", tmp_path / "report.json"
    words = ["--recipe", recipe, "--statistics", statistics, "--protect", "auto:2"]
    run_quantize(built_program("octet"), planted, *words, "--report", page, "--json", report, "-q")
    read, errors = Page(page.read_text()), json.loads(report.read_text())["errors"]
    rows = read.rows[1:]  # behind the head
    assert len(rows) == len(errors) == 2 * 5 * tiny.SHAPES["wide"].layers
    assert [row[recipe] for row in rows] == sorted((row[recipe] for row in rows), reverse=True)
    names = {"conditional": "", "unconditional": "uncond. "}
    expected = sorted(errors, key=lambda error: -error[recipe])
    longest = max(max(e["rowwise"], e["smoothquant"], e["convrot"]) for e in errors)
    for row, error in zip(rows, expected, strict=True):
        title = names[error["branch"]] + error["module"]
        assert row["text"][0] == title + (" (protected)" if error["protected"] else "")
        assert row["protected"] == error["protected"]
        for kind in ("rowwise", "smoothquant", "convrot", "bf16"):
            assert row[kind] == pytest.approx(100 * error[kind] / longest, abs=0.01)
            assert f"{100 * error[kind]:.3f} %" in row["text"]
    assert max(row["rowwise"] for row in rows) == 100
    assert sum(row["protected"] for row in rows) == 4
    assert any(str(statistics) in text for text in read.texts)  # escaped, and whole


# --- its output in the wrong place ---------------------------------------------------------------


def test_the_output_says_which_branch_it_is(built_program, quantize, planted, caption, tmp_path):
    quantize(planted, tmp_path / "out")
    one, other = (tmp_path / f"{part}.safetensors" for part in PARTS)
    for part, copied in zip(PARTS, (one, other)):  # under names that say nothing
        shutil.copy(tmp_path / "out" / part / WEIGHTS, copied)
    command = [built_program("octet"), "generate", "-q", "--base", planted, "--caption", caption]
    for flags, wrong, sentence in (
            (["--model", other, "--uncond", one], other, "but is the unconditional one"),
            (["--model", planted, "--uncond", one], one, "but is the conditional one"),
            (["--model", other, "--uncond", other], other, "but is the unconditional one")):
        done = subprocess.run(list(map(str, command + flags)), capture_output=True, text=True)
        assert done.returncode == 1 and done.stderr.count("\n") == 1
        assert done.stderr.startswith(f"octet: {wrong}: was taken for the ")
        assert sentence in done.stderr
