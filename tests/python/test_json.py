"""docs/json.md against what the commands print: the same fields, on two levels, and the schema."""

import json
import os
import re
import subprocess

import pytest
import tiny_ideogram4 as tiny
from demo_folder import demo_folder  # noqa: F401
from generating import SETTINGS, model  # noqa: F401
from hub_server import File, Hub, RunningHub
from json_docs import check_against, documented_fields, fields_of
from pulling import home, pull  # noqa: F401


@pytest.fixture(scope="module")
def documented(repository):
    return documented_fields(repository)


@pytest.fixture
def octet(built_program, tmp_path):
    def run(*arguments, stdin=None):
        done = subprocess.run(
            [built_program("octet"), *map(str, arguments), "-q", "--json", "-"], input=stdin,
            capture_output=True, text=True, timeout=600, cwd=tmp_path,
            env={**os.environ, "OCTET_CACHE_DIR": str(tmp_path / "cache")})
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run


@pytest.mark.parametrize(("command", "flags"), [
    ("devices", []),
    ("bench gemm", ["--device", "cpu", "--shapes", "3,4,5", "--seconds", "0"]),
    ("bench linear", ["--device", "cpu", "--shape", "3,64,64", "--seconds", "0"]),
    ("bench quantize", ["--device", "cpu", "--rows", "2", "--k", "256", "--seconds", "0"]),
    ("tune", ["--device", "cpu", "--shapes", "3,4,5"]),
])
def test_fields_of_what_needs_no_file(octet, documented, command, flags):
    check_against(documented, command.replace(" ", "."), octet(*command.split(), *flags))


def test_fields_of_demo(octet, documented, demo_folder, monkeypatch):  # noqa: F811
    monkeypatch.setenv("OCTET_DEMO_MODEL", str(demo_folder))
    check_against(documented, "demo", octet("demo", "--device", "cpu"))


def test_fields_of_bench_e2e(octet, documented, demo_folder):  # noqa: F811
    bench = octet("bench", "e2e", "--model", demo_folder, "--device", "cpu", "--size", "256",
                  "--steps", "2", "--pictures", "2")
    check_against(documented, "bench.e2e", bench)
    assert (bench["width"], bench["height"], bench["steps"]) == (256, 256, 2)
    assert bench["model"] == str(demo_folder) and bench["text_tokens"] > 0
    assert len(bench["pictures"]) == 2 and bench["power"] is bench["joules_per_picture"] is None
    for picture in bench["pictures"]:
        assert picture["text_s"] > 0  # the caption is encoded for each
    assert bench["ms_per_step"] == pytest.approx(500 * bench["denoise_s"])


def test_a_pipe_takes_it(built_program, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    words = [built_program("octet"), "devices", "--json", tmp_path / "pipe"]
    run = {"capture_output": True, "text": True, "timeout": 60}
    reader = subprocess.Popen(["cat", tmp_path / "pipe"], stdout=subprocess.PIPE, text=True)
    try:
        while (done := subprocess.run(words, **run)).returncode != 0:
            assert "without a reader" in done.stderr  # cat has not opened it yet
        assert json.loads(reader.communicate(timeout=60)[0])["devices"]
    finally:
        reader.kill()


def test_fields_of_caption_check(octet, documented, tmp_path):
    caption = json.loads(tiny.CAPTION)
    caption["mood"] = "calm"  # an unknown key is a warning: there is a finding
    result = octet("caption", "check", "-", stdin=json.dumps(caption, ensure_ascii=False))
    check_against(documented, "caption.check", result)


@pytest.fixture
def models_flags():
    return [word for pair in SETTINGS.items() for word in pair]


def test_fields_of_what_runs_a_model(
        octet, documented, model, models_flags, tmp_path):  # noqa: F811
    generated = octet("generate", "--model", model, *models_flags, stdin=tiny.CAPTION)
    check_against(documented, "generate", generated)
    compared = octet("compare", model, model, *models_flags, stdin=tiny.CAPTION)
    check_against(documented, "compare", compared)
    quantized = octet("quantize", model, tmp_path / "out", "--recipe", "rowwise", "--measure")
    check_against(documented, "quantize", quantized)


def test_fields_of_inspect(octet, documented, model):  # noqa: F811
    whole = {"parts", *(name for name in documented["inspect"] if name.startswith("parts"))}
    result = octet("inspect", model)
    assert result["schema"] == "octet.inspect/1"
    assert fields_of(result) == whole
    (file,) = (model / "vae").glob("*.safetensors")
    lone = octet("inspect", file)
    of_stamps = {name for name in documented["inspect"] if name.startswith("certificates")}
    assert fields_of(lone) | whole == documented["inspect"] - {"problem"} - of_stamps


def test_fields_of_pull(documented, pull):  # noqa: F811
    with RunningHub(Hub(files={"config.json": File(b"{}")})) as server:
        done = pull(server, "--json", "-", "-q")
    assert done.returncode == 0, done.stderr
    check_against(documented, "pull", json.loads(done.stdout))


def test_every_command_is_documented(built_program, documented):
    """Those whose help knows --json."""
    def helped(*path):
        return subprocess.run([built_program("octet"), *path, "--help"], capture_output=True,
                              text=True).stdout

    def commands(page):
        return re.findall(r"^  ([a-z0-9]+)  ", page, re.M)

    found = set()
    for first in commands(helped()):
        for path in [(first,), *((first, second) for second in commands(helped(first)))]:
            if "--json" in helped(*path):
                found.add(".".join(path))
    found.add("map.predict")  # of octet map --predict, which is no command of its own
    assert found == documented.keys()
