"""SIGINT, SIGTERM and SIGHUP end the program alike: what is finished is saved, nothing is
half-written, and the exit code says which signal it was. Some fifteen seconds in all."""

from __future__ import annotations

import os
import pty
import re
import resource
import signal
import subprocess
import time

import pytest

pytest.importorskip("diffusers")
pytest.importorskip("transformers")

import tiny_ideogram4 as tiny
from generating import (
    command,
    generate,  # noqa: F401: a fixture
    model,  # noqa: F401: a fixture
)
from PIL import Image
from quantizing import (
    caption,  # noqa: F401: a fixture
    planted,  # noqa: F401: a fixture
)

# A VAE that stays in memory decodes each picture as soon as it is denoised.
DECODED_LAST = ("--keep", "vae=stream")

CODES = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGHUP: 129}


class Screen:
    """What a program writes to a terminal, line by line, those that are drawn over each other,
    too."""

    def __init__(self, descriptor):
        self.file = os.fdopen(descriptor, "rb", buffering=0)
        self.text = ""

    def __iter__(self):
        while self.more():
            *lines, self.text = re.split("[\r\n]+", self.text)
            yield from lines

    def more(self):
        try:
            read = self.file.read(4096)
        except OSError:  # EIO: the program has ended
            return False
        self.text += read.decode(errors="replace")
        return bool(read)

    def read(self):
        while self.more():
            pass
        return self.text


class Running:
    """A program whose progress is read until it says what a test waits for."""

    def __init__(self, words, caption="", **options):
        options = {"stderr": subprocess.PIPE, **options}
        self.process = subprocess.Popen([str(word) for word in words], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True, **options)
        self.process.stdin.write(caption)
        self.process.stdin.close()

    @classmethod
    def on_a_terminal(cls, words):
        """Elsewhere work of some seconds has a single line of progress, whatever it has done."""
        screen, stderr = pty.openpty()
        run = cls(words, stderr=stderr)
        os.close(stderr)
        run.process.stderr = Screen(screen)
        return run

    def wait_for(self, pattern):
        for line in self.process.stderr:
            if re.match(pattern, line):
                return
        raise AssertionError(f"it ended before {pattern}")

    def wait_until(self, is_there):
        while self.process.poll() is None:
            if is_there():
                return
            time.sleep(0.005)
        raise AssertionError("it ended before")

    def send(self, which):
        self.process.send_signal(which)

    def end(self):
        """The exit code, and the lines of standard error that are no progress."""
        rest = self.process.stderr.read().splitlines()
        assert self.process.stdout.read() == "" or self.process.wait(timeout=60) == 0
        code = self.process.wait(timeout=60)
        return code, [line for line in rest if line.startswith("octet: ")]


def generating(built_program, model, out, *flags, **options):
    words = command(built_program("octet"), model, out, flags)
    words.remove("-q")
    return Running(words, tiny.CAPTION, **options)


def whole_pictures(folder):
    """How many there are; nothing else lies beside them."""
    for path in folder.iterdir():
        assert path.suffix == ".png"
        with Image.open(path) as image:
            image.load()
    return len(list(folder.iterdir()))


@pytest.mark.parametrize("which", CODES)
@pytest.mark.parametrize("stage", ["text encoder", "denoising"])
def test_nothing_is_finished_yet(built_program, generate, model, stage, which):
    run = generating(built_program, model, generate.out, "--steps", 1000, "--images", 1000)
    run.wait_for(stage)
    run.send(which)
    code, sentences = run.end()
    assert code == CODES[which]
    assert sentences == ["octet: stopped on request; 0 of 1000 pictures are complete"]
    assert whole_pictures(generate.out) == 0


def test_a_list_counts_the_pictures_of_all(built_program, generate, model, tmp_path):
    rows = tmp_path / "rows.jsonl"
    rows.write_text(f"{tiny.CAPTION}\n" * 6)
    words = command(built_program("octet"), model, generate.out / "{name}.png", ["--steps", "1000"])
    words.remove("-q")
    words[words.index("--caption") + 1] = rows
    run = Running(words)
    run.wait_for("1/6 line-1: denoising")
    run.send(signal.SIGINT)
    code, sentences = run.end()
    assert code == 130
    assert sentences == ["octet: stopped on request; 0 of 6 pictures are complete"]


@pytest.mark.parametrize("which", CODES)
def test_finished_latents_become_pictures(built_program, generate, model, which):
    flags = ("--size", "32x32", "--steps", 10, "--images", 100)
    run = generating(built_program, model, generate.out, *flags)
    run.wait_until(lambda: len(list(generate.out.iterdir())) >= 10)
    run.send(which)
    code, sentences = run.end()
    assert code == CODES[which]
    (sentence,) = sentences
    complete = int(re.search(r"stopped on request; (\d+) of 100 ", sentence).group(1))
    assert 10 <= complete == whole_pictures(generate.out)


@pytest.mark.parametrize("which", CODES)
def test_a_signal_while_decoding_loses_nothing(built_program, generate, model, which):
    run = generating(built_program, model, generate.out, "--size", "32x32", "--images", 50,
                     *DECODED_LAST)
    run.wait_for("decoding")
    run.send(which)
    code, sentences = run.end()
    assert code == CODES[which]
    assert sentences == ["octet: stopped on request; 50 of 50 pictures are complete"]
    assert whole_pictures(generate.out) == 50


@pytest.mark.parametrize("which", [signal.SIGTERM])  # any: the others are told apart above
def test_the_second_signal_ends_it_at_once(built_program, generate, model, which):
    run = generating(built_program, model, generate.out, "--size", "64x64", "--images", 100,
                     "--steps", 1, *DECODED_LAST)
    run.wait_for("decoding")
    run.send(signal.SIGINT)
    seen = len(list(generate.out.iterdir()))
    while len(list(generate.out.iterdir())) < seen + 2:  # by then it was taken
        assert run.process.poll() is None
    run.send(signal.SIGSTOP)
    time.sleep(1.1)  # before that it is the same wish
    run.send(which)  # waits there, and is the first thing that the program meets
    run.send(signal.SIGCONT)
    code, sentences = run.end()
    assert code == CODES[which]
    assert sentences == ["octet: ended by a signal"]
    assert 0 < whole_pictures(generate.out) < 100


@pytest.mark.parametrize("which", [signal.SIGINT])
def test_signals_that_come_together_are_one_wish(built_program, generate, model, which):
    run = generating(built_program, model, generate.out, "--size", "32x32", "--images", 50,
                     *DECODED_LAST)
    run.wait_for("decoding")
    for _ in range(3):
        run.send(which)
        time.sleep(0.005)
    code, sentences = run.end()
    assert code == CODES[which]
    assert sentences == ["octet: stopped on request; 50 of 50 pictures are complete"]
    assert whole_pictures(generate.out) == 50


def test_nohup_is_obeyed(built_program, generate, model):
    run = generating(built_program, model, generate.out, "--size", "32x32", "--images", 20,
                     preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    run.wait_for("denoising")
    run.send(signal.SIGHUP)
    assert run.end() == (0, [])
    assert whole_pictures(generate.out) == 20


@pytest.mark.parametrize("which", CODES)
def test_a_benchmark_has_nothing_to_save(built_program, tmp_path, which):
    words = ["bench", "gemm", "--shapes", "64,64,64", "--seconds", 60, "--device", "cpu"]
    run = Running([built_program("octet"), *words, "--json", tmp_path / "out.json"])
    run.wait_for("bench")
    run.send(which)
    assert run.end() == (CODES[which], ["octet: ended by a signal"])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("which", CODES)
def test_a_calibration_is_kept_and_goes_on(built_program, planted, caption, tmp_path, which):
    statistics = tmp_path / "activations.safetensors"
    words = [built_program("octet"), "quantize", "--device", "cpu", "--threads", "1", planted,
             tmp_path / "new" / "out", "--recipe", "smoothquant", "--statistics", statistics,
             "--calibration-size", "256x256", "--calibration-steps", 1000, "--captions"]
    run = Running.on_a_terminal([*words, caption])
    run.wait_for(r"calibrate .* [1-9]\d*/1000")
    run.send(which)
    code, (stopping, sentence) = run.end()
    assert code == CODES[which] and "stopping" in stopping
    done = re.search(r"; (\d+) of 1000 steps of calibration are done; the same command resumes",
                     sentence)
    assert [path.name for path in tmp_path.iterdir()] == [statistics.name]
    if which != signal.SIGINT:  # once is enough
        return
    # Others would lose it.
    kept = statistics.read_bytes()
    run = Running([*words, caption, caption])
    code, (sentence,) = run.end()
    assert code == 1 and "unfinished calibration; give the same captions" in sentence
    assert statistics.read_bytes() == kept
    # It goes on where it was, and says so from the first line on.
    run = Running([*words, caption])
    run.wait_for(f"calibrate: {done[1]}/1000 steps")
    run.send(which)
    run.end()


def test_a_calibration_can_be_stopped_before_its_first_step(built_program, planted, caption,
                                                            tmp_path):
    words = [built_program("octet"), "quantize", "--device", "cpu", "--threads", "1", planted,
             "--captions", caption, "--statistics", tmp_path / "activations.safetensors"]
    run = Running([*words, "--calibration-steps", 1000])
    run.wait_for("calibrate: 0/1000")
    run.send(signal.SIGTERM)
    code, (sentence,) = run.end()
    assert code == 143 and "0 of 1000 steps of calibration are done" in sentence


def test_a_limit_on_the_size_of_files_is_an_error(generate, model):
    limit = (1000, 1000)
    done = generate(model, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, limit))
    assert done.returncode == 1 and "out.png" in done.stderr
    assert whole_pictures(generate.out) == 0
