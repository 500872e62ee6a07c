"""The program as a user meets it: exit codes, sentences, tables, JSON."""

import json
import os
import struct
import subprocess

import pytest


@pytest.fixture
def octet(built_program):
    program = built_program("octet")

    def run(*arguments, **environment):
        return subprocess.run(
            [program, *map(str, arguments)],
            capture_output=True,
            text=True,
            timeout=120,
            env={**os.environ, **environment},
        )

    return run


def only_sentence(done):
    """The one line of a failed run on standard error, with nothing on standard output."""
    assert done.returncode == 1, (done.returncode, done.stdout, done.stderr)
    assert done.stdout == ""
    lines = done.stderr.splitlines()
    assert len(lines) == 1, done.stderr
    assert lines[0].startswith("octet: ")
    return lines[0]


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
    assert octet("bench", "gemm", "--help").returncode == 0
    assert octet("--version").stdout.startswith("octet ")


@pytest.mark.parametrize(
    "arguments",
    [[], ["nonsense"], ["inspect"], ["bench"], ["devices", "--no-such-flag"],
     ["demo", "--threads", "0"], ["demo", "--threads", "many"]],
)
def test_wrong_usage_is_exit_code_2(octet, arguments):
    assert octet(*arguments).returncode == 2


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (["inspect", "/no/such/file"], ["/no/such/file", "No such file"]),
        (["bench", "gemm", "-q", "--shapes", "1,2"], ["'1,2'", "m,n,k"]),
        (["bench", "gemm", "-q", "--shapes", "1,2,x"], ["'x'", "whole number"]),
        (["bench", "gemm", "-q", "--shapes", "1,2,999999999"], ["too large", "132104"]),
        (["bench", "gemm", "-q", "--shapes", "ideogram4@1000"], ["1000", "multiple of 16"]),
        (["bench", "gemm", "-q", "--dtype", "int4", "--shapes", "1,1,1"], ["int4", "bf16"]),
        (["demo", "--device", "tpu"], ["tpu", "cpu"]),
    ],
)
def test_failures_are_one_sentence(octet, arguments, parts):
    sentence = only_sentence(octet(*arguments))
    for part in parts:
        assert part in sentence


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


def test_names_from_files_cannot_drive_the_terminal(octet, tmp_path):
    header = {"\x1b[2Jevil": {"dtype": "U8", "shape": [1], "data_offsets": [0, 1]}}
    done = octet("inspect", write_safetensors(tmp_path / "evil.safetensors", header, b"\0"))
    assert done.returncode == 0
    assert "\x1b" not in done.stdout
    assert "\\x1b[2Jevil" in done.stdout


def test_bench_reports_the_kernel_that_ran(octet, tmp_path):
    path = tmp_path / "bench.json"
    done = octet("bench", "gemm", "--shapes", "33,70,130;5,5,5", "--seconds", "0", "--json", path,
                 OCTET_FORCE_KERNEL="scalar_4x16")
    assert done.returncode == 0, done.stderr
    bench = json.loads(path.read_text())
    assert {"device", "date", "commit", "rows"} <= bench.keys()
    assert [(row["m"], row["n"], row["k"]) for row in bench["rows"]] == [(33, 70, 130), (5, 5, 5)]
    for row in bench["rows"]:
        assert row["kernel"] == "scalar_4x16"
        assert row["us"] > 0 and row["tops"] > 0 and 0 < row["ceiling_share"]
        assert row["ratio"].keys() == {"unquantized", "fake_int8"}
    assert "scalar_4x16" in done.stdout


def test_trace_names_problem_and_kernel(octet):
    done = octet("bench", "gemm", "--shapes", "3,4,5", "--seconds", "0", "--only-native",
                 OCTET_TRACE="gemm", OCTET_FORCE_KERNEL="scalar_4x16")
    assert "octet: gemm m3 n4 k5 BF16" in done.stderr
    assert "scalar_4x16" in done.stderr


def test_ideogram4_shapes(octet):
    done = octet("bench", "gemm", "-q", "--shapes", "ideogram4@32", "--seconds", "0", "--json", "-",
                 "--only-native")
    rows = json.loads(done.stdout)["rows"]
    assert [(row["m"], row["n"], row["k"]) for row in rows] == [
        (4, 13824, 4608), (4, 4608, 4608), (4, 24576, 4608), (4, 4608, 12288)]


def test_forced_kernel_that_does_not_exist(octet):
    sentence = only_sentence(octet("demo", OCTET_FORCE_KERNEL="warp_drive"))
    assert "warp_drive" in sentence and "scalar_4x16" in sentence


def test_unwritable_json_leaves_nothing(octet, tmp_path):
    sentence = only_sentence(octet("devices", "--json", tmp_path / "no" / "such.json"))
    assert "such.json" in sentence


def test_full_standard_output_is_a_failure(built_program):
    with open("/dev/full", "w") as full:
        done = subprocess.run([built_program("octet"), "devices"], stdout=full,
                              stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1
    assert "standard output" in done.stderr


def test_demo_compares_three_paths(octet):
    done = octet("demo", "--json", "-")
    demo = json.loads(done.stdout)
    errors = {path["name"]: path["relative_error"] for path in demo["paths"]}
    assert errors.keys() == {"fake INT8", "unquantized", "native INT8"}
    assert errors["unquantized"] < 0.005
    # Both INT8 paths see the same quantized operands, so their errors agree but for bf16 rounding.
    assert abs(errors["native INT8"] - errors["fake INT8"]) < 0.005
    assert errors["native INT8"] < 0.05
