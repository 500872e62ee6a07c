"""octet audit: what it prints and writes, exit codes, and recording a command. Seconds in all."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest
from json_docs import documented_fields, fields_of
from running import octet, only_sentence  # noqa: F401


def op(start, name, dims, types, dur=1000):
    return {"ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": 1, "ts": start, "dur": dur,
            "args": {"Input Dims": dims, "Input type": types}}


M, N, K = 1024, 4608, 4608


def bf16_linear(start):
    return [op(start, "aten::mm", [[M, K], [K, N]], ["c10::BFloat16"] * 2)]


def fake_linear(start):
    weight = op(start, "aten::_to_copy", [[N, K]], ["signed char"], 300)
    scale = op(start + 400, "aten::mul", [[N, K], [N, 1]], ["c10::BFloat16"] * 2, 300)
    return [weight, scale, *bf16_linear(start + 800)]


def native_linear(start):
    return [op(start, "aten::_int_mm", [[M, K], [K, N]], ["signed char"] * 2)]


def trace_of(*linears, name=None):
    events = []
    for index in range(4):
        for linear in linears:
            start = 1000 + 10_000 * len(events)
            events += linear(start)
    events.append(op(10_000_000, name or "mylib::mystery", [[M, K]], ["c10::BFloat16"]))
    return json.dumps({"schemaVersion": 1, "traceEvents": events})


@pytest.fixture
def fake(tmp_path):
    path = tmp_path / "fake.json"
    path.write_text(trace_of(fake_linear))
    return path


@pytest.fixture
def native(tmp_path):
    path = tmp_path / "native.json"
    path.write_text(trace_of(native_linear))
    return path


def test_the_first_line_is_the_verdict(octet, fake):  # noqa: F811
    done = octet("audit", fake)
    assert done.returncode == 0 and done.stderr == "", done.stderr
    first, pair, source, *rest = done.stdout.splitlines()
    assert "fake INT8" in first
    assert pair == f"  int8[{N},{K}] -> bf16, then mm with k = {K}, 4 times"
    assert "PyTorch profiler trace" in source
    text = "\n".join(rest)
    assert "dequantization" in text and "GEMM" in text and "█" in text
    assert "mylib::mystery" in text  # unknown, and never guessed away
    assert octet("audit", fake, "-q").stdout == first + "\n"


def test_json_has_the_documented_fields(octet, repository, fake):  # noqa: F811
    done = octet("audit", fake, "--json", "-")
    result = json.loads(done.stdout)
    assert list(result)[0] == "schema" and result["schema"] == "octet.audit/1"
    documented = documented_fields(repository)["audit"]
    found = fields_of(result)
    assert found <= documented
    empty = {key for key, value in result.items() if value == []}
    assert {name for name in documented - found if name.split("[]")[0] not in empty} == set()
    assert result["verdict"] == "fake_int8"
    assert result["linears"]["fake"] == result["linears"]["calls"] == 4
    assert {"classes", "layers", "kernels", "unknown"} & empty == set()
    assert sum(each["share"] for each in result["classes"]) == pytest.approx(1)


def test_page_needs_no_other_file(octet, fake, tmp_path):  # noqa: F811
    done = octet("audit", fake, "--html", tmp_path / "audit.html", "-q")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[1] == str(tmp_path / "audit.html")
    page = (tmp_path / "audit.html").read_text()
    assert page.startswith("<!doctype html>") and done.stdout.splitlines()[0] in page
    for word in ("<script", "http:", "https:", "<link", "<img"):
        assert word not in page


def test_names_of_a_trace_cannot_drive_a_terminal(octet, tmp_path):  # noqa: F811
    path = tmp_path / "bad.json"
    path.write_text(trace_of(bf16_linear, name="mylib::\x1b[31m\n<script>"))
    done = octet("audit", path, "--html", tmp_path / "audit.html")
    assert done.returncode == 0, done.stderr
    assert "\x1b" not in done.stdout
    assert "<script" not in (tmp_path / "audit.html").read_text()


def test_standard_input_is_a_trace(built_program, fake):
    done = subprocess.run([built_program("octet"), "audit", "-", "-q"], input=fake.read_text(),
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and "fake INT8" in done.stdout


def test_several_files_are_one_run(octet, fake, native):  # noqa: F811
    result = json.loads(octet("audit", fake, native, "--json", "-").stdout)
    assert result["files"] == [str(fake), str(native)]


@pytest.mark.parametrize(("linears", "flags", "code"), [
    ([fake_linear], ["--fail-on", "fake"], 3),
    ([fake_linear], ["--fail-on", "fallback"], 3),
    ([fake_linear], ["--fail-on", "fallback,fake"], 3),
    ([fake_linear], [], 0),
    ([native_linear], ["--fail-on", "fake", "--fail-on", "fallback"], 0),
    ([bf16_linear], ["--fail-on", "fallback"], 0),
    ([native_linear, fake_linear], ["--fail-on", "fallback"], 3),
    ([native_linear, fake_linear], ["--fail-on", "fake"], 0),
])
def test_fail_on(octet, tmp_path, linears, flags, code):  # noqa: F811
    path = tmp_path / "trace.json"
    path.write_text(trace_of(*linears))
    done = octet("audit", *flags, path, "--json", tmp_path / "out.json")
    assert done.returncode == code, (done.stdout, done.stderr)
    assert done.stdout and (tmp_path / "out.json").exists()  # everything is written first
    said = done.stderr.splitlines()
    assert len(said) == (1 if code == 3 else 0)
    assert all("--fail-on" in line and "the verdict is" in line for line in said)


def test_fail_on_looks_at_every_model(octet, tmp_path):  # noqa: F811
    """The one that took most time gives the report's verdict, and hides nothing by that."""
    events, start = [], 1000
    for layer in range(16):
        fake = layer < 4
        model = "text_encoder" if fake else "transformer"
        events.append({"ph": "X", "cat": "user_annotation", "name": f"{model}.layers.{layer}.proj",
                       "pid": 1, "tid": 1, "ts": start - 10, "dur": 5000, "args": {}})
        events += fake_linear(start) if fake else native_linear(start)
        start += 10_000
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
    done = octet("audit", path, "--json", tmp_path / "out.json", "--fail-on", "fake")
    result = json.loads((tmp_path / "out.json").read_text())
    assert result["verdict"] == "native_int8"
    assert [model["verdict"] for model in result["models"]] == ["native_int8", "fake_int8"]
    assert done.returncode == 3 and "the verdict on text_encoder is fake INT8" in done.stderr


@pytest.mark.parametrize(("words", "parts"), [
    ([], ["TRACE... is missing"]),
    ([""], ["the path is empty"]),
    (["-", "-"], ["standard input is read once"]),
    (["a", "--fail-on", "x"], ["'x'", "fake or fallback"]),
    (["a", "-o", "b.json"], ["--out requires --record"]),
    (["--record"], ["--record has no command", "octet audit --record -- python main.py"]),
    (["--record", "--"], ["--record has no command"]),
    (["--record", "python", "x y.py"], ["--record needs --", "-- python 'x y.py'"]),
    (["--record", "python", "x.py", "--scale", "3"],
     ["'--scale' was not expected", "put the flags of a recorded command after --"]),
    (["--record", "-o", "a.txt", "--", "true"], ["'a.txt'", ".json or .json.gz"]),
    (["--record", "--record-seconds", "0", "--", "true"], ["'0'", "from 1 to"]),
])
def test_wrong_usage(octet, words, parts):  # noqa: F811
    sentence = only_sentence(octet("audit", *words), code=2)
    for part in parts:
        assert part in sentence


@pytest.mark.parametrize("flag", ["--html", "--json"])
def test_no_output_replaces_a_trace(octet, fake, flag):  # noqa: F811
    before = fake.read_text()
    assert "belongs to what another argument names" in only_sentence(
        octet("audit", fake, flag, fake), code=2)
    assert fake.read_text() == before


def test_what_is_no_trace_is_one_sentence(octet, tmp_path):  # noqa: F811
    path = tmp_path / "photo.png"
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(100))
    assert "photo.png" in only_sentence(octet("audit", path))
    assert "none.json" in only_sentence(octet("audit", tmp_path / "none.json"))


@pytest.fixture
def record(built_program, tmp_path):
    """octet audit --record with these flags -- this command; leaves no folder behind."""
    (tmp_path / "tmp").mkdir()

    def run(command, *flags, **environment):
        done = subprocess.run(
            [built_program("octet"), "audit", "--record", *flags, "--", *map(str, command)],
            capture_output=True, text=True, timeout=60, cwd=tmp_path,
            env={**os.environ, "TMPDIR": str(tmp_path / "tmp"), **environment})
        assert not list(tmp_path.glob(".octet*")) and not list((tmp_path / "tmp").iterdir())
        return done

    return run


def test_a_command_is_recorded_and_audited(record, fake, tmp_path):
    done = record(["sh", "-c", 'cp "$1" "$OCTET_RECORD_FILE"', "sh", fake])
    assert done.returncode == 0 and done.stderr == "", done.stderr
    assert "fake INT8" in done.stdout.splitlines()[0]
    assert "Recorded: octet-trace.json.gz" in done.stdout
    assert (tmp_path / "octet-trace.json.gz").read_text() == fake.read_text()


def test_flags_and_commands_after_the_dashes_are_the_commands_own(record, fake, tmp_path):
    show = 'cp "$1" "$OCTET_RECORD_FILE"; shift; echo "$@" > words'
    done = record(["sh", "-c", show, "sh", fake, "--json", "-", "-q", "generate", "--", "-x"],
                  "-q", "-o", "kept.json")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "words").read_text() == "--json - -q generate -- -x\n"
    assert (tmp_path / "kept.json").read_text() == fake.read_text()


def test_python_finds_ours_first_and_its_own_path_after(record, tmp_path):
    code = ("import os, sys, sitecustomize\n"
            "place = os.path.dirname(sitecustomize.__file__)\n"
            "print(os.stat(place).st_mode & 0o777, os.environ['PYTHONPATH'].split(':')[1:],\n"
            "      os.environ['OCTET_RECORD_SECONDS'], os.environ['OCTET_RECORD_SKIP_SECONDS'],\n"
            "      os.path.basename(place)[:7])")
    done = record([sys.executable, "-c", code], "--record-seconds", "7", "--record-skip", "2",
                  PYTHONPATH="/a:/b")
    assert done.stdout.splitlines()[0] == f"{0o700} ['/a', '/b'] 7 2 .octet-"
    assert done.returncode == 1  # it did not use PyTorch


def test_where_nothing_was_recorded_other_ways_are_shown(record):
    done = record(["true"])
    assert done.returncode == 1
    assert "nsys profile -o run true" in done.stdout and "torch.profiler" in done.stdout
    assert "nothing was recorded" in done.stderr and len(done.stderr.splitlines()) == 1
    assert record(["true"], "-q").stdout == ""
    failed = record(["sh", "-c", "exit 7"])
    assert failed.returncode == 1 and "exit code 7, and nothing was recorded" in failed.stderr
    absent = record(["no-such-program"])
    assert "no-such-program: cannot be run" in only_sentence(absent)


def test_a_command_that_fails_is_audited_all_the_same(record, fake):
    done = record(["sh", "-c", 'cp "$1" "$OCTET_RECORD_FILE"; kill -9 $$', "sh", fake],
                  "--fail-on", "fake")
    assert done.returncode == 1
    assert "fake INT8" in done.stdout.splitlines()[0]
    assert "signal 9" in done.stderr and "by then was audited" in done.stderr


def test_json_is_alone_on_standard_output(record, fake):
    done = record(["sh", "-c", 'echo hello; cp "$1" "$OCTET_RECORD_FILE"', "sh", fake], "--json",
                  "-")
    assert json.loads(done.stdout)["verdict"] == "fake_int8"
    assert done.stderr == "hello\n"


def test_several_processes_are_one_run(record, fake, native, tmp_path):
    command = 'f=${OCTET_RECORD_FILE%.json}; cp "$1" $f.11.json; cp "$2" $f.12.json; : > $f.9.json'
    done = record(["sh", "-c", command, "sh", fake, native], "-o", "out.json", "--json", "-")
    assert json.loads(done.stdout)["files"] == ["out.11.json", "out.12.json"]
    assert (tmp_path / "out.12.json").read_text() == native.read_text()


def test_several_traces_replace_nothing(record, fake, native, tmp_path):
    (tmp_path / "out.11.json").write_text("mine")
    (tmp_path / "out.12.json").symlink_to(tmp_path / "nowhere")
    command = 'f=${OCTET_RECORD_FILE%.json}; cp "$1" $f.11.json; cp "$2" $f.12.json'
    done = record(["sh", "-c", command, "sh", fake, native], "-o", "out.json", "--json", "-")
    assert json.loads(done.stdout)["files"] == ["out.11-2.json", "out.12-2.json"]
    assert (tmp_path / "out.11.json").read_text() == "mine"
    assert (tmp_path / "out.12-2.json").read_text() == native.read_text()
    assert not (tmp_path / "nowhere").exists()


def test_a_link_is_no_trace(record, fake, tmp_path):
    done = record(["sh", "-c", 'ln -s "$1" "$OCTET_RECORD_FILE"', "sh", fake], "-q")
    assert done.returncode == 1 and "nothing was recorded" in done.stderr
    assert not (tmp_path / "octet-trace.json.gz").is_symlink()


def test_a_folder_for_temporary_files_may_have_a_colon(record, tmp_path):
    folder = tmp_path / "a:b"
    folder.mkdir()
    code = "import os, sitecustomize as s; print(os.path.basename(os.path.dirname(s.__file__)))"
    done = record([sys.executable, "-c", code], TMPDIR=str(folder))
    assert done.stdout.startswith(".octet-record-"), done.stdout
    assert not list(folder.iterdir())
    done = record(["true"], TMPDIR=str(tmp_path / "none"))
    assert done.returncode == 1 and "(TMPDIR, else /tmp) cannot be used" in done.stderr


def peak_bytes(command):
    # By a small process between: a child's peak begins with the memory of whoever started it.
    code = ("import resource, subprocess, sys\n"
            "subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL)\n"
            "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)\n")
    done = subprocess.run([sys.executable, "-c", code, *map(str, command)], check=True,
                          capture_output=True, text=True)
    return int(done.stdout) * 1024


def test_json_takes_memory_only_where_it_was_asked_for(built_program, tmp_path):
    """Its values took most of the memory of an audit, and running out of it ended the process."""
    kernels = [{"ph": "X", "cat": "kernel", "name": f"void kernel<{i}>(" + "int, " * 20 + ")",
                "pid": 0, "tid": 7, "ts": 1000 + 10 * i, "dur": 9.5} for i in range(20_000)]
    path, result = tmp_path / "many.json", tmp_path / "result.json"
    path.write_text(json.dumps({"traceEvents": kernels}))
    plain = peak_bytes([built_program("octet"), "audit", path])
    with_json = peak_bytes([built_program("octet"), "audit", path, "--json", result])
    assert plain < with_json  # else nothing is measured here
    assert with_json < plain + 3 * result.stat().st_size  # the text, and half of it while it grows


@pytest.mark.parametrize("which", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_are_the_commands_own(built_program, fake, tmp_path, which):
    """What a server recorded until somebody ended it is audited, and that is no failure."""
    (tmp_path / "tmp").mkdir()
    code = ("import os, shutil, signal, sys, time\n"
            "def end(*_):\n"
            f"    shutil.copy({str(fake)!r}, os.environ['OCTET_RECORD_FILE'])\n"
            "    sys.exit(1)\n"
            f"signal.signal({int(which)}, end)\n"
            "open('ready', 'w').close()\n"
            "time.sleep(60)\n")
    run = subprocess.Popen(
        [built_program("octet"), "audit", "--record", "-q", "--", sys.executable, "-c", code],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path,
        env={**os.environ, "TMPDIR": str(tmp_path / "tmp")})
    try:
        while not (tmp_path / "ready").exists():
            assert run.poll() is None
            time.sleep(0.01)
        run.send_signal(which)
        out, err = run.communicate(timeout=60)
    finally:
        run.kill()
    assert run.returncode == 0 and "fake INT8" in out, err
    assert not list(tmp_path.glob(".octet*")) and not list((tmp_path / "tmp").iterdir())
