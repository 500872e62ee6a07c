"""The int32 accumulator of every CPU kernel equals torch._int_mm bit for bit, and the row
quantization equals its definition written in torch."""

import subprocess

import pytest
import torch
from safetensors.torch import load_file, save_file

SHAPES = [
    (32, 32, 64),
    (33, 40, 72),
    (17, 8, 16),
    (128, 256, 1024),
    (100, 96, 4608),
    (64, 48, 12288),
]


def kernels(octet):
    """The kernels of this build, taken from what the program says when asked for another."""
    answer = subprocess.run(
        [octet, "bench", "linear"],
        env={"OCTET_FORCE_KERNEL": "none"},
        capture_output=True,
        text=True,
    )
    assert answer.returncode == 1
    return answer.stderr.strip().rsplit("this build has ", 1)[1].split(", ")


def run_gemm(tool, folder, tensors, kernel=""):
    save_file(tensors, folder / "in.safetensors")
    command = [tool, folder / "in.safetensors", folder / "out.safetensors"]
    done = subprocess.run(command + ([kernel] if kernel else []), capture_output=True, text=True)
    if "this CPU has no" in done.stderr:
        return None
    assert done.returncode == 0, done.stderr
    return load_file(folder / "out.safetensors")


def random_int8(rows, columns, low=-127):
    return torch.randint(low, 128, (rows, columns), dtype=torch.int8)


def test_accumulator_equals_int_mm_on_every_kernel(built_program, tmp_path):
    torch.manual_seed(0)
    names = kernels(built_program("octet"))
    assert "scalar_4x16" in names
    ran = []
    for name in names:
        for m, n, k in SHAPES:
            a, b = random_int8(m, k), random_int8(n, k, -128)
            out = run_gemm(built_program("run_gemm"), tmp_path, {"a": a, "b": b}, name)
            if out is None:
                print(f"skipped {name}, because this CPU cannot run it")
                break
            expected = torch._int_mm(a, b.t().contiguous())
            assert expected.dtype == torch.int32
            assert torch.equal(out["acc"], expected), (name, m, n, k)
        else:
            ran.append(name)
    assert "scalar_4x16" in ran


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_row_quantization_equals_its_definition(built_program, tmp_path, dtype):
    torch.manual_seed(1)
    x = torch.randn(40, 300) * torch.logspace(-6, 4, 40)[:, None]
    x[7] = 0
    x[9, 13] = float("nan")
    x[11, 0] = float("inf")
    x = x.to(dtype)
    a, b = random_int8(40, 300), random_int8(8, 300)
    out = run_gemm(built_program("run_gemm"), tmp_path, {"a": a, "b": b, "x": x})

    wide = x.float()
    amax = wide.abs().amax(dim=1)
    good = torch.isfinite(amax) & (amax > 0)
    assert torch.equal(out["scale"][good], amax[good] / 127)
    # Not 127 / amax: with a scalar on the left torch takes the reciprocal first, another rounding.
    inverse = torch.full_like(amax, 127) / amax
    expected = torch.round(wide[good] * inverse[good][:, None]).to(torch.int8)
    assert torch.equal(out["q"][good], expected)
    assert torch.isnan(out["scale"][[9, 11]]).all()
    assert out["scale"][7] == 0
    assert (out["q"][[7, 9, 11]] == 0).all()
