"""octet bench step as a user meets it, with one layer of the published width."""

import json
import os
import subprocess

import pytest
from json_docs import check_against, documented_fields

ONE_LAYER = ["--device", "cpu", "--layers", "1", "--size", "256", "--text-tokens", "4"]


@pytest.fixture
def bench_step(built_program):
    def run(*arguments):
        return subprocess.run(
            [built_program("octet"), "bench", "step", *arguments],
            capture_output=True,
            text=True,
            timeout=600,
            env=os.environ,
        )

    return run


def test_text_and_json_of_one_layer(bench_step, repository, tmp_path):
    path = tmp_path / "step.json"
    done = bench_step(
        *ONE_LAYER, "--steps", "1", "--require-int8", "--attention", "int8", "--json", path)
    assert done.returncode == 0, done.stderr
    assert "million weights" in done.stderr and "measured steps" in done.stderr
    bench = json.loads(path.read_text())
    check_against(documented_fields(repository), "bench.step", bench)
    # Of 458 tensors one block's 13, and those outside of blocks, which the other transformer has
    # without the text's 245 million.
    block = 4 * 4608**2 + 3 * 4608 * 12288 + 4 * 4608 * 513 + 4 * 4608 + 2 * 256
    outside = 4608 * 129 + 2 * 4608 * 4609 + 512 * 4609 + 2 * 4608 + 4608 * 513 + 128 * 4609
    text = 53248 + 4608 * 53249
    assert bench["parameters"] == 2 * (block + outside) + text
    assert bench["peak_bytes"] > bench["weight_bytes"] > bench["parameters"]
    conditional, unconditional = bench["branches"]
    assert (conditional["tokens"], unconditional["tokens"]) == (260, 256)
    assert bench["ms"] == pytest.approx(conditional["ms"] + unconditional["ms"])
    for branch in bench["branches"]:
        assert branch["reliable"] is False  # one step says nothing about how steady it is
        assert sum(op["share"] for op in branch["ops"]) == pytest.approx(1)
        int8 = {use["layer"] for use in branch["kernels"] if use["op"] == "gemm"}
        assert int8 == {"attention.qkv", "attention.o", "feed_forward.w1+w3", "feed_forward.w2"}
        for use in branch["kernels"]:
            assert use["calls"] == 1
            if use["op"] == "gemm":
                assert use["kernel"] and use["kernel"] in done.stdout
        ops = {op["op"]: op for op in branch["ops"]}
        # The last layer, here the only one, needs the text's tokens as keys and values alone.
        tokens, image, hidden, ffn = branch["tokens"], 256, 4608, 12288
        of_qkv, of_others = 3 * hidden**2, hidden**2 + 3 * hidden * ffn
        assert ops["gemm"]["operations"] == 2 * (tokens * of_qkv + image * of_others)
        assert ops["gemm"]["bytes"] > of_qkv + of_others and ops["gemm"]["ceiling_share"] > 0
        assert ops["attention"]["operations"] == 4 * image * tokens * hidden
        assert ops["residual"]["gb_per_s"] > 0 and ops["residual"]["operations"] is None
    assert bench["ceilings"]["int8_tops"] > 0 and bench["ceilings"]["copy_gb_per_s"] > 0
    assert bench["power"] is None  # a CPU does not tell
    assert "of ceiling" in done.stdout and "Ceilings, measured after the steps" in done.stdout
    assert "█" in done.stdout and "attention.qkv" in done.stdout
    assert bench["attention"] == "int8"
    assert all(use["kernel"].endswith("_int8") for branch in bench["branches"]
               for use in branch["kernels"] if use["op"] == "attention")
    assert "attention_int8" in done.stdout


@pytest.mark.parametrize(("arguments", "part"), [
    (["--size", "100"], "not a multiple of 16"),
    (["--pictures", "0"], "--pictures is '0'"),
    (["--text-tokens", "0"], "--text-tokens is '0'"),
    (["--steps", "0"], "--steps is '0'"),
    (["--linears", "float", "--require-int8"], "--require-int8: the networks' linears"),
])
def test_wrong_usage_of_e2e_is_one_sentence(built_program, arguments, part):
    done = subprocess.run([built_program("octet"), "bench", "e2e", *arguments, "--device", "cpu"],
                          capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    assert len(done.stderr.splitlines()) == 1 and part in done.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "part"),
    [
        (["--size", "100"], 2, "not a multiple of 16"),
        (["--random", "--size", "1000"], 2, "not a multiple of 16"),
        (["--random", "--size", "1024x"], 2, "a side of --size is ''"),
        (["--random", "--size", "axb"], 2, "a side of --size is 'a'"),
        (["--layers", "35"], 2, "--layers is '35'"),
        (["--layers", "0"], 2, "--layers is '0'"),
        (["--text-tokens", "2049"], 2, "--text-tokens is '2049'"),
        (["--steps", "0"], 2, "--steps is '0'"),
        (["--linears", "int4"], 2, "int8 or float"),
        (["--attention", "fp8"], 2, "auto, bf16, int8 or int8-full"),
        (["--linears", "float", "--require-int8"], 2, "--require-int8: the networks' linears"),
        (["--timeline", "step.svg"], 2, "--timeline requires --max-memory"),
        (["--max-memory", "8GB", "--device", "cpu"], 2, "no memory of its own"),
    ],
)
def test_wrong_usage_is_one_sentence(bench_step, arguments, code, part):
    done = bench_step(*arguments)
    assert (done.returncode, done.stdout) == (code, ""), done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert part in done.stderr
