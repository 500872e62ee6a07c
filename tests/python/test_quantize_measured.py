"""What `octet quantize` measures of each linear, and what people read of it."""

from __future__ import annotations

import subprocess

import pytest

pytest.importorskip("diffusers")
pytest.importorskip("transformers")

import reference
import tiny_ideogram4 as tiny
import torch
from quantizing import (
    LINEARS,
    OUTLIER,
    SHAPE,
    WEIGHTS,
    caption,  # noqa: F401: fixtures
    inputs_for,
    network_of,
    plant_outliers,
    planted,  # noqa: F401
    quantize,  # noqa: F401
    run_quantize,
    statistics_file,  # noqa: F401
)
from safetensors.torch import load_file
from test_parity import relative_error, their_velocity


# --- errors of linears ---------------------------------------------------------------------------


def rowwise_error(weight, rows):
    """NRMSE of W8A8 in torch."""
    linear = torch.nn.Linear(weight.shape[1], weight.shape[0], bias=False)
    linear.weight = torch.nn.Parameter(weight)
    exact = rows.double() @ weight.double().T
    got = reference.Int8Linear(linear)(rows).double()
    return ((got - exact).norm() / exact.norm()).item()


def test_quiet_hides_progress_and_not_the_errors_asked_for(built_program, planted, tmp_path):
    program = built_program("octet")
    for words in ([], [tmp_path / "out", "--measure"]):
        done = run_quantize(program, planted, *words, "--recipe", "rowwise", "-q")
        assert done.stderr == ""
        assert "layers.0.attention.o" in done.stdout and "NRMSE" in done.stdout
    unasked = run_quantize(program, planted, tmp_path / "out2", "--recipe", "rowwise", "-q")
    assert "NRMSE" not in unasked.stdout and str(tmp_path / "out2") in unasked.stdout


def test_measured_errors(quantize, planted, statistics_file):
    report = quantize(planted, "--statistics", statistics_file, "--no-clip")
    assert report["files"] == [] and report["output_bytes"] == 0
    errors = [error for error in report["errors"] if error["branch"] == "conditional"]
    assert [error["module"] for error in errors] == LINEARS
    source = tiny.fuse_attention(load_file(planted / "transformer" / WEIGHTS))
    seen = load_file(statistics_file)
    for error in errors:
        module = error["module"]
        inputs = module.replace("w3", "w1")  # they see the same
        weight, rows = source[f"{module}.weight"], seen[f"conditional.{inputs}.rows"]
        assert (error["n"], error["k"]) == tuple(weight.shape)
        # A value next to a half gets the other code now and then.
        assert error["rowwise"] == pytest.approx(rowwise_error(weight, rows), rel=0.02)
        assert error["bf16"] < 0.004
        amax = seen[f"conditional.{inputs}.amax"]
        column = error["worst_columns"][0]
        assert column["index"] == amax.argmax().item()
        median = amax.sort()[0][len(amax) // 2]
        assert column["reach"] == pytest.approx((amax.max() / median).item())
        shares = [row["share"] for row in error["worst_rows"]]
        assert shares == sorted(shares, reverse=True) and 0 < sum(shares) <= 1
        if module.endswith(("qkv", "w1", "w3")):  # behind the planted channel
            assert column["index"] == OUTLIER
            assert error["smoothquant"] <= error["rowwise"] / 2
            assert error["convrot"] <= error["rowwise"] / 2


def test_plant_is_exact():
    """The premise of this file: the planted model is the same function."""
    plain = tiny.make_transformer(tiny.SHAPES[SHAPE], seed=3).state_dict()
    other = {name: tensor.clone() for name, tensor in plain.items()}
    plant_outliers(other)
    assert any(not torch.equal(plain[name], other[name]) for name in plain)
    tensors = inputs_for("transformer")
    a, b = (their_velocity(network_of(state), tensors) for state in (plain, other))
    assert relative_error(b, a) < 1e-6


def test_pictures_from_the_output(built_program, quantize, planted, caption, tmp_path):
    """The folder is a model where the source gives the rest."""
    quantize(planted, tmp_path / "out")
    command = [built_program("octet"), "generate", "-q", "--device", "cpu", "--tune", "off"]
    command += ["--model", tmp_path / "out", "--base", planted, "--caption", caption]
    command += ["--size", "256x256", "--steps", "1", "--out", tmp_path / "a.png", "--require-int8"]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "a.png").stat().st_size > 1000


def test_text_for_people(built_program, planted, statistics_file, tmp_path):
    words = ["--measure", "--protect", "auto:1", "--statistics", statistics_file, "--verify"]
    done = run_quantize(built_program("octet"), planted, tmp_path / "out", *words)
    lines = done.stdout.splitlines()
    assert max(map(len, lines[: 2 * len(LINEARS) + 1])) <= 100
    assert sum(line.split()[1] == "*" or " * " in line for line in lines if "layers." in line) == 2
    assert "* is protected" in done.stdout
    assert f"{tmp_path}/out/transformer/{WEIGHTS}" in lines
    assert f"--model {tmp_path}/out --base {planted}" in lines[-1]
    # Nothing is told in units of which there is none.
    assert "/0 MB" not in done.stderr and "kB" in done.stderr
