"""The program as a user meets it: failures, tables, JSON."""

import json
import os
import struct
import subprocess

import pytest
from running import octet, only_sentence  # noqa: F401


def write_safetensors(path, header, data=b""):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)
    return path


def test_devices_names_the_cpu_and_its_kernel(octet):
    table = octet("devices")
    assert table.returncode == 0
    devices = json.loads(octet("devices", "--json", "-").stdout)["devices"]
    cpu = next(device for device in devices if device["name"] == "cpu")
    assert cpu["int8_kernel"] and cpu["int8_kernel"] in table.stdout
    assert any(device["name"].startswith("cuda") for device in devices)


def test_help_and_version(octet):
    assert octet("--help").returncode == 0
    for command in (["bench", "gemm"], ["bench", "quantize"], ["tune"]):
        done = octet(*command, "--help")
        assert done.returncode == 0
        assert "--device" in done.stdout and "--json" in done.stdout
    assert octet("--version").stdout.startswith("octet ")


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (["inspect", "/no/such/file"], ["/no/such/file", "No such file"]),
        (["bench", "linear", "--device", "cuda:4000000000"], ["cuda:4000000000"]),
        (["bench", "gemm", "--device", "cuda:99"], ["cuda:99"]),
        (["tune", "--device", "cuda:99"], ["cuda:99"]),
        (["bench", "quantize", "--device", "cuda:99"], ["cuda:99"]),
        (["bench", "quantize", "--device", "cpu", "--rows", "16777216", "--k", "132104", "-q"],
         ["rows=16777216 k=132104", "GB are free"]),
    ],
)
def test_failures_are_one_sentence(octet, arguments, parts):
    sentence = only_sentence(octet(*arguments))
    for part in parts:
        assert part in sentence


def test_octet_log(octet):
    run = ["bench", "gemm", "--shapes", "3,4,5", "--seconds", "0", "--only-native", "--json", "-"]
    assert "device auto" not in octet(*run).stderr
    assert "device auto" in octet(*run, OCTET_LOG="debug").stderr
    assert "device auto" not in octet(*run, "-q", OCTET_LOG="debug").stderr
    assert "device auto" in octet(*run, "-v", OCTET_LOG="quiet").stderr
    sentence = only_sentence(octet("devices", OCTET_LOG="loud"), code=2)
    assert "OCTET_LOG is 'loud'" in sentence and "debug, info or quiet" in sentence


def test_broken_files_name_file_tensor_and_fault(octet, tmp_path):
    entry = {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]}
    broken = {
        "truncated": (b'{"weight":{"dtype":"F32"', b""),
        "short": ({"weight": entry}, b"\0" * 15),
        "long": ({"weight": entry}, b"\0" * 17),
        "dtype": ({"weight": {**entry, "dtype": "F33"}}, b"\0" * 16),
        "negative": ({"weight": {**entry, "shape": [-4]}}, b"\0" * 16),
        "huge": ({"weight": {**entry, "shape": [2**62, 2**62]}}, b"\0" * 16),
        "overlap": ({"weight": entry, "other": entry}, b"\0" * 16),
        "twice": (b'{"weight":%(e)s,"weight":%(e)s}' % {b"e": json.dumps(entry).encode()}, b""),
        "deep": (b'{"weight":' + b"[" * 100_000, b""),
        "latin1": (b'{"weight\xff":{}}', b""),
    }
    for name, (header, data) in broken.items():
        path = write_safetensors(tmp_path / f"{name}.safetensors", header, data)
        sentence = only_sentence(octet("inspect", path))
        assert f"{name}.safetensors" in sentence
        # The others are faults of the header's text or of the whole file: no tensor is at fault.
        if name not in ("truncated", "long", "deep", "latin1"):
            assert "weight" in sentence, sentence


@pytest.mark.parametrize(("content", "kind"), [
    (b"# Octet\n\nA page of text.\n" * 50, "a text file"),
    (b"PK\x03\x04" + b"\0" * 60, "a PyTorch or zip archive"),
    (b"version https://git-lfs.github.com/spec/v1\n", "a pointer of Git LFS"),
    (b"<!DOCTYPE html><html>", "a web page"),
    (b"GGUF" + b"\0" * 60, "a GGUF file; give it a name that ends with .gguf"),
    (b"8 bytes\n", "a text file"),
    (b"\x80\x04K\x01.", "a PyTorch or pickle file"),
    (b"\x89PNG\r\n\x1a\n" + b"\0" * 60, "a PNG picture"),
    (b"\xff\xd8\xff\xe0" + b"\0" * 60, "a JPEG picture"),
    (b"\x1f\x8b\x08\0" + b"\0" * 60, "a gzip archive"),
    (b"\x7fELF\x02\x01\x01" + b"\0" * 60, "a program or library"),
])
def test_what_is_no_checkpoint_is_named_first(octet, tmp_path, content, kind):
    path = tmp_path / "README.md"
    path.write_bytes(content)
    sentence = only_sentence(octet("inspect", path))
    assert f"is not a safetensors file but {kind}" in sentence and "header" not in sentence


@pytest.mark.parametrize(("name", "content", "fault"), [
    ("a.bin", b"\xfe\x01" * 20,
     "is not a safetensors file (it does not begin with a header length)"),
    ("a.safetensors", b"", "is empty, expected a safetensors file"),
    ("config.json", b'{"metadata": "x"}',
     'is JSON but not a shard index: it has no "weight_map"'),
    ("list.json", b"[1]", "is JSON but not a shard index: it is an array"),
])
def test_what_is_no_checkpoint_of_a_known_kind(octet, tmp_path, name, content, fault):
    (tmp_path / name).write_bytes(content)
    assert f"{name}: {fault}" in only_sentence(octet("inspect", tmp_path / name))


def test_a_mistyped_path_is_no_repository(octet, tmp_path, monkeypatch):
    (tmp_path / "models").mkdir()
    monkeypatch.chdir(tmp_path)
    for path in ("models/not.safetensors", "modles/a.gguf", "models/nothing"):
        sentence = only_sentence(octet("inspect", path, HF_HUB_CACHE=tmp_path))
        assert f"{path}: " in sentence and "No such file" in sentence and "pull" not in sentence
    sentence = only_sentence(octet("inspect", "owner/name", HF_HUB_CACHE=tmp_path))
    assert "owner/name: there is no such file or folder here, and no pulled repository" in sentence
    assert sentence.endswith("octet pull owner/name")


def test_a_model_that_is_named_by_an_address(octet):
    sentence = only_sentence(octet("inspect", "https://user:secret@huggingface.co/owner/name"))
    assert "owner/name of what octet pull fetched" in sentence and "secret" not in sentence


def test_the_sentence_comes_after_the_findings(built_program):
    """Where standard output and error go to one pipe."""
    done = subprocess.run([built_program("octet"), "caption", "check", "-"], input="{}", text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert done.stdout.startswith("error: $") or done.stdout.startswith("warning: $")
    assert done.stdout.splitlines()[-1].startswith("octet: standard input: ")


def test_names_from_files_cannot_drive_the_terminal(octet, tmp_path):
    header = {"\x1b[2Jevil": {"dtype": "U8", "shape": [1], "data_offsets": [0, 1]}}
    done = octet("inspect", write_safetensors(tmp_path / "evil.safetensors", header, b"\0"))
    assert done.returncode == 0
    assert "\x1b" not in done.stdout
    assert "\\u001b[2Jevil" in done.stdout


def test_table_is_safe_and_short_and_json_keeps_all(octet, tmp_path):
    name = "größe\u202e\x9b"
    note = "é" * 250
    header = {
        "__metadata__": {"note": note, "short": "日本"},
        name: {"dtype": "U8", "shape": [1] * 30, "data_offsets": [0, 1]},
    }
    path = write_safetensors(tmp_path / "long.safetensors", header, b"\0")
    table = octet("inspect", path).stdout
    assert "größe\\u202e\\u009b" in table
    assert "[1, 1, 1, 1, 1, 1, 1, 1, …]" in table
    assert f"metadata note: {'é' * 200}… (500 bytes)\n" in table
    assert "metadata short: 日本\n" in table
    summary = json.loads(octet("inspect", path, "--json", "-").stdout)
    assert summary["metadata"]["note"] == note
    assert summary["tensors"][0]["name"] == name
    assert summary["tensors"][0]["shape"] == [1] * 30


def test_path_that_is_not_utf8(built_program, tmp_path):
    folder = os.fsencode(tmp_path) + b"/\xff\x1b"
    os.mkdir(folder)
    program = built_program("octet")
    path = folder + b"/a.safetensors"
    failed = subprocess.run([program, "inspect", path], capture_output=True, text=True)
    assert "\\xff\\u001b/a.safetensors" in only_sentence(failed)
    header = b'{"w":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}'
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(header)) + header + b"\0")
    done = subprocess.run([program, "inspect", path, "--json", "-"], capture_output=True, text=True)
    assert json.loads(done.stdout)["tensors"][0]["name"] == "w"


def test_bench_reports_the_kernel_that_ran(octet, tmp_path):
    path = tmp_path / "bench.json"
    done = octet("bench", "gemm", "--device", "cpu", "--shapes", "33,70,130;5,5,5", "--seconds",
                 "0", "--json", path, OCTET_FORCE_KERNEL="scalar_4x16")
    assert done.returncode == 0, done.stderr
    bench = json.loads(path.read_text())
    assert {"device", "date", "commit", "rows"} <= bench.keys()
    assert [(row["m"], row["n"], row["k"]) for row in bench["rows"]] == [(33, 70, 130), (5, 5, 5)]
    for row in bench["rows"]:
        assert row["kernel"] == "scalar_4x16"
        assert row["us"] > 0 and row["tops"] > 0 and 0 < row["ceiling_share"]
        assert row["path"] == "int8" and row["plan"] == "only"
        assert row["ratio"].keys() == {"unquantized", "gemm_unquantized", "fake_int8"}
        assert row["peers_us"].keys() == {"unquantized", "fake_int8"}
        assert row["ratio"]["unquantized"] == row["peers_us"]["unquantized"] / row["linear_us"]
        assert row["ratio"]["gemm_unquantized"] == row["peers_us"]["unquantized"] / row["us"]
    assert "scalar_4x16" in done.stdout


def bench_rows(octet, *flags, shapes="33,70,130"):
    done = octet("bench", "gemm", "-q", "--device", "cpu", "--shapes", shapes, "--seconds", "0",
                 "--json", "-", *flags)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["rows"]


@pytest.mark.parametrize("tune", ["off", "missing", "all"])
def test_bench_of_one_kernel_takes_every_tune_mode(octet, tune):
    assert [row["plan"] for row in bench_rows(octet, "--tune", tune, "--only-native")] == ["only"]


def test_bench_of_the_unquantized_path(octet):
    (row,) = bench_rows(octet, "--path", "bf16")
    assert row["path"] == "bf16" and row["plan"] is None
    assert row["us"] == row["linear_us"] > 0
    for unmeasured in ("quantize_us", "ceiling_tops", "ceiling_share"):
        assert row[unmeasured] is None
    assert row["ratio"]["unquantized"] == 1


def test_bench_of_the_faster_path_measures_it_where_no_plan_says(octet):
    for row in bench_rows(octet, "--path", "auto", "--only-native", shapes="64,64,64;3,4,5"):
        assert row["path"] in ("int8", "bf16")
        assert (row["quantize_us"] is not None) == (row["path"] == "int8")
        assert row["ratio"] == {} and row["peers_us"] == {}


def test_bench_peers_of_a_device_that_has_none(octet):
    done = octet("bench", "gemm", "-q", "--device", "cpu", "--shapes", "33,70,130", "--seconds",
                 "0", "--json", "-", "--peers")
    (warning,) = done.stderr.splitlines()
    assert "cpu has no library" in warning and "leave --peers out" in warning
    (row,) = json.loads(done.stdout)["rows"]
    assert row["ratio"].keys() == {"unquantized", "gemm_unquantized", "fake_int8"}


def test_small_figures_are_not_rounded_to_nothing(octet):
    row = octet("bench", "gemm", "-q", "--device", "ref", "--shapes", "1,1,1", "--seconds", "0",
                "--only-native").stdout.splitlines()[4].split()
    assert row[:5] == ["ref", "int8", "1", "1", "1"]
    assert float(row[6].lstrip("~")) > 0 and row[7] == "-"  # GOPS; ref has no peak


def test_bench_quantize(octet):
    run = ["bench", "quantize", "-q", "--device", "cpu", "--rows", "5", "--k", "512,100",
           "--seconds", "0"]
    bench = json.loads(octet(*run, "--json", "-").stdout)
    assert {"schema", "device", "date", "commit", "dtype", "threads", "rows"} == bench.keys()
    # 256 does not divide 100.
    assert [(row["k"], row["transform"]) for row in bench["rows"]] == [
        (512, "none"), (512, "smooth"), (512, "rotate 256"), (100, "none"), (100, "smooth")]
    for row in bench["rows"]:
        # bf16 in, int8 and a scale out, and the smoothing vector
        extra = 4 * row["k"] if row["transform"] == "smooth" else 0
        assert row["bytes"] == 5 * (3 * row["k"] + 4) + extra
        assert row["us"] > 0 and row["copy_us"] > 0
        assert row["gb_per_s"] == pytest.approx(row["bytes"] / row["us"] / 1e3)
        assert row["share_of_copy"] == pytest.approx(row["gb_per_s"] / row["copy_gb_per_s"])
    table = octet(*run).stdout
    assert "rotate 256" in table and "GB/s" in table


@pytest.mark.parametrize("device", ["cpu", "ref"])
def test_tune_of_a_device_with_one_kernel(octet, device, tmp_path):
    run = ["tune", "--device", device, "--shapes", "ideogram4@768;3,4,5;3,4,5"]
    done = octet(*run, "-q", OCTET_CACHE_DIR=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "one kernel" in done.stdout and "nothing to tune" in done.stdout
    report = json.loads(octet(*run, "--json", "-", OCTET_CACHE_DIR=tmp_path).stdout)
    assert {"device", "date", "commit", "mode", "rows"} < report.keys()
    assert report["plan_file"] is None
    assert report["mode"] == "missing" and report["has_choice"] is False
    # The shape whose outputs a SwiGLU joins is two problems, one written twice is one.
    assert [(row["m"], row["n"], row["k"], row["fusion"]) for row in report["rows"]] == [
        (2304, 13824, 4608, "none"), (2304, 4608, 4608, "none"), (2304, 24576, 4608, "none"),
        (2304, 24576, 4608, "swiglu"), (2304, 4608, 12288, "none"), (3, 4, 5, "none")]
    for row in report["rows"]:
        assert row["kernel"] and row["plan"] == "only" and row["out"] == "BF16"
        assert row["us"] is None and row["faster"] is None
    assert list(tmp_path.iterdir()) == []


def test_tune_of_one_kernel_shows_no_progress(octet):
    assert octet("tune", "--device", "ref", "--shapes", "3,4,5").stderr == ""


@pytest.mark.parametrize("flags", [[], ["-q"]])
def test_trace_names_problem_and_kernel(octet, flags):
    done = octet("bench", "gemm", "--device", "cpu", "--shapes", "3,4,5", "--seconds", "0",
                 "--only-native", *flags, OCTET_TRACE="gemm", OCTET_FORCE_KERNEL="scalar_4x16")
    assert "octet: gemm m3 n4 k5 BF16" in done.stderr
    assert "scalar_4x16" in done.stderr


def test_ideogram4_shapes(octet):
    rows = bench_rows(octet, "--only-native", shapes="ideogram4@32")
    assert [(row["m"], row["n"], row["k"]) for row in rows] == [
        (4, 13824, 4608), (4, 4608, 4608), (4, 24576, 4608), (4, 4608, 12288)]


def test_forced_kernel_that_does_not_exist(octet):
    run = ("bench", "linear", "--device", "cpu")
    sentence = only_sentence(octet(*run, OCTET_FORCE_KERNEL="warp_drive"))
    assert "warp_drive" in sentence and "scalar_4x16" in sentence


@pytest.mark.parametrize(
    "command", [["devices"], ["demo"], ["tune"], ["bench", "gemm", "--seconds", "3600"],
                ["bench", "quantize", "--seconds", "3600"]])
def test_unwritable_json_fails_before_the_work(octet, tmp_path, command):
    (tmp_path / "no").touch()  # a folder that is not there would be made
    sentence = only_sentence(octet(*command, "--json", tmp_path / "no" / "such.json"))
    assert "such.json" in sentence
    assert list(tmp_path.iterdir()) == [tmp_path / "no"]


def test_failed_work_leaves_no_json(octet, tmp_path):
    only_sentence(octet("inspect", "/no/such/file", "--json", tmp_path / "a.json"))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("arguments", [["devices"], ["devices", "--json", "-"], ["--help"],
                                       ["--version"], ["bench", "gemm", "--help"]])
@pytest.mark.parametrize("redirection", [">/dev/full", ">&-"])
def test_lost_standard_output_is_a_failure(built_program, arguments, redirection):
    done = subprocess.run(["sh", "-c", f'exec "$@" {redirection}', "sh", built_program("octet"),
                           *arguments], stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1
    assert "standard output" in done.stderr


def test_a_failure_is_told_though_nobody_reads_the_output(built_program):
    run = subprocess.Popen([built_program("octet"), "caption", "check", "-"], text=True,
                           stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    run.stdout.close()
    run.stdin.write("{}")
    run.stdin.close()
    assert "error in the caption" in run.stderr.read()
    assert run.wait(timeout=60) == 1
    run.stderr.close()


def test_output_cut_in_the_middle_is_a_failure(built_program, tmp_path):
    """More than a buffer: the failed write is over when the program comes to its end."""
    entries = {f"tensor.{i}": {"dtype": "U8", "shape": [0], "data_offsets": [0, 0]}
               for i in range(1000)}
    path = write_safetensors(tmp_path / "many.safetensors", entries)
    with open("/dev/full", "w") as full:
        done = subprocess.run([built_program("octet"), "inspect", path], stdout=full,
                              stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1
    assert "standard output" in done.stderr


@pytest.mark.parametrize(("arguments", "code"), [
    (["devices"], 0), (["inspect", "/no/such/file"], 1),
    (["bench", "linear", "--device", "cuda:9999"], 1),
    (["nope"], 2), (["devices", "--threads", "1"], 2)])
@pytest.mark.parametrize("redirection", ["2>/dev/full", "2>&-", "<&- 2>&-"])
def test_lost_standard_error_changes_no_exit_code(built_program, arguments, code, redirection):
    done = subprocess.run(["sh", "-c", f'exec "$@" {redirection}', "sh", built_program("octet"),
                           *arguments], stdout=subprocess.PIPE, text=True)
    assert done.returncode == code


def test_closed_descriptors_do_not_reach_the_json_file(built_program, tmp_path):
    path = tmp_path / "devices.json"
    done = subprocess.run(["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", built_program("octet"),
                           "devices", "--json", path])
    assert done.returncode == 1  # the table is lost
    assert json.loads(path.read_text())["devices"]


def test_bench_linear_compares_three_paths(octet):
    done = octet("bench", "linear", "--device", "cpu", "--shape", "64,1152,1152", "--seconds", "0",
                 "--json", "-")
    result = json.loads(done.stdout)
    assert (result["m"], result["n"], result["k"]) == (64, 1152, 1152)
    errors = {path["name"]: path["relative_error"] for path in result["paths"]}
    assert "bench linear: 0/9 parts" in done.stderr  # it is not silent
    assert errors.keys() == {"fake INT8", "unquantized", "native INT8"}
    assert errors["unquantized"] < 0.005
    # Both INT8 paths see the same quantized operands, so their errors agree but for bf16 rounding.
    assert abs(errors["native INT8"] - errors["fake INT8"]) < 0.005
    assert errors["native INT8"] < 0.05
