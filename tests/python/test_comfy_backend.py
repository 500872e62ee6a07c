"""What our backend of comfy-kitchen computes: every form of call, held against its portable one.

Small shapes: a few seconds for each device that there is.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from comfy_calls import assert_as_eager, device, installed, kitchen, rows_of  # noqa: F401
from comfy_calls import torch, weight_of, without_lowest_code

pytestmark = pytest.mark.usefixtures("device", "installed")
DTYPES = [torch.float32, torch.float16, torch.bfloat16]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("m", "n", "k"), [(1, 384, 512), (128, 64, 256), (17, 1, 16),
                                           (17, 64, 12), (5, 33, 300)])
def test_shapes_and_types(dtype, m, n, k):
    codes, scales = weight_of(n, k)
    bias = rows_of(n, dtype=dtype, seed=2)
    x = rows_of(m, k, dtype=dtype)
    assert_as_eager(lambda: kitchen.int8_linear(x, codes, scales, bias, dtype))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("m", "n", "k"), [(1, 384, 512), (128, 64, 256), (33, 96, 1024)])
def test_weights_so_large_that_one_code_matters(dtype, m, n, k):
    """As in comfy-kitchen's own tests: passes only with the codes that it makes itself."""
    if dtype is torch.bfloat16 and without_lowest_code():
        pytest.skip("a code of -128 is -127 with AVX2")
    for seed in range(8):
        codes, scales = weight_of(n, k, spread=1, seed=seed)
        x, bias = rows_of(m, k, dtype=dtype, seed=seed + 100), rows_of(n, dtype=dtype, seed=2)
        assert_as_eager(lambda: kitchen.int8_linear(  # noqa: B023 - called at once
            x, codes, scales[0], bias, dtype))


@pytest.mark.parametrize("out_dtype", [None, *DTYPES])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_output_has_the_type_that_is_asked_for(dtype, out_dtype):
    codes, scales = weight_of(48, 128)
    x = rows_of(9, 128, dtype=dtype)
    assert_as_eager(lambda: kitchen.int8_linear(x, codes, scales, out_dtype=out_dtype))


@pytest.mark.parametrize("shape", [(128,), (3, 128), (2, 3, 128), (1, 2, 2, 128)])
def test_any_leading_dimensions(shape):
    codes, scales = weight_of(32, 128)
    x = rows_of(*shape)
    assert_as_eager(lambda: kitchen.int8_linear(x, codes, scales))


@pytest.mark.parametrize("form", ["scalar", "one", "row", "column", "bfloat16"])
def test_forms_of_the_weights_scale(form):
    codes, scales = weight_of(32, 128)
    scales = {"scalar": scales[0, 0], "one": scales[0], "row": scales.reshape(-1),
              "column": scales, "bfloat16": scales.bfloat16()}[form]
    x = rows_of(5, 128)
    assert_as_eager(lambda: kitchen.int8_linear(x, codes, scales))


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_bias_may_have_another_type(dtype):
    codes, scales = weight_of(32, 128)
    x, bias = rows_of(5, 128, dtype=torch.float16), rows_of(32, dtype=dtype)
    assert_as_eager(lambda: kitchen.int8_linear(x, codes, scales, bias, torch.float16))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("group", [4, 16, 64, 256, 1024])
def test_convrot(dtype, group):
    codes, scales = weight_of(96, 2048, rotation=group)
    x = rows_of(7, 2048, dtype=dtype)
    assert_as_eager(lambda: kitchen.int8_linear(x, codes, scales, None, dtype, convrot=True,
                                                convrot_groupsize=group))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("convrot", [False, True])
@pytest.mark.parametrize("act", ["none", "gelu_tanh", "swiglu", "situ", "rms_norm"])
def test_input_activations(act, convrot, dtype):
    k = 256
    codes, scales = weight_of(64, k, rotation=256 if convrot else 0)
    x = rows_of(2, 9, 2 * k if act in ("swiglu", "situ") else k, dtype=dtype)
    given = {"input_act_weight": rows_of(k, seed=3), "input_act_eps": 1e-6}
    assert_as_eager(lambda: kitchen.int8_linear(
        x, codes, scales, None, dtype, convrot=convrot, input_act=act,
        **(given if act == "rms_norm" else {})))


@pytest.mark.parametrize("residual_dtype", [torch.float32, torch.bfloat16])
def test_a_residual(residual_dtype):
    codes, scales = weight_of(64, 256)
    x = rows_of(2, 9, 256)
    residual, gate = rows_of(2, 9, 64, dtype=residual_dtype, seed=4), rows_of(64, seed=5)
    assert_as_eager(lambda: kitchen.int8_linear(x, codes, scales, rows_of(64), torch.bfloat16,
                                                residual=residual, residual_scale=gate))


@pytest.mark.parametrize("convrot", [False, True])
@pytest.mark.parametrize("scale_dtype", [torch.float32, torch.bfloat16])
def test_modulated(convrot, scale_dtype):
    codes, scales = weight_of(64, 256, rotation=256 if convrot else 0)
    x, scale = rows_of(2, 9, 256), rows_of(1, 1, 256, dtype=scale_dtype, seed=6)
    bias = rows_of(64, seed=2)
    assert_as_eager(lambda: kitchen.int8_linear_modulated(
        x, scale, codes, scales, bias, torch.bfloat16, convrot=convrot))
    weight = rows_of(256, seed=7)
    assert_as_eager(lambda: kitchen.int8_linear_rms_modulated(
        x, weight, 1e-6, scale, codes, scales, bias, torch.bfloat16, convrot=convrot))


def test_codes_of_minus_128_count():
    x, scales = rows_of(8, 64), rows_of(1, dtype=torch.float32).abs()
    codes = torch.full((32, 64), -128, dtype=torch.int8, device=x.device)
    assert_as_eager(lambda: kitchen.int8_linear(x, codes, scales))


def test_strided_inputs_and_weights():
    wide, scales = weight_of(32, 256)
    x = rows_of(128, 6).t()  # columns apart
    apart, transposed = wide[:, :128], wide[:, :128].t().contiguous().t()
    for codes in (apart, transposed):
        assert_as_eager(lambda codes=codes: kitchen.int8_linear(x, codes, scales))
    assert_as_eager(lambda: kitchen.int8_linear(rows_of(12, 128)[::2], apart, scales))


def test_no_rows():
    codes, scales = weight_of(32, 64)
    assert kitchen.int8_linear(rows_of(0, 64), codes, scales).shape == (0, 32)


def test_in_inference_mode_and_in_threads():
    codes, scales = weight_of(32, 64)
    x = rows_of(5, 64)
    expected = kitchen.int8_linear(x, codes, scales)
    with torch.inference_mode():
        assert torch.equal(kitchen.int8_linear(x.clone(), codes.clone(), scales), expected)
    with ThreadPoolExecutor(4) as pool:
        results = pool.map(lambda _: kitchen.int8_linear(x, codes, scales), range(40))
    assert all(torch.equal(result, expected) for result in results)


def test_weights_that_change_in_place_are_seen():
    """ComfyUI writes other weights into the same memory, in inference mode, too."""
    with torch.inference_mode():
        codes, scales = weight_of(32, 64)
        x = rows_of(5, 64)
        first = kitchen.int8_linear(x, codes, scales)
        codes.copy_(weight_of(32, 64, seed=9)[0])
        second = kitchen.int8_linear(x, codes, scales)
    assert not torch.equal(first, second)
    assert_as_eager(lambda: kitchen.int8_linear(x, codes, scales))


def test_quantized_in_float32_is_nearer_to_the_product(installed):  # noqa: F811
    codes, scales = weight_of(64, 1024)
    x = rows_of(64, 1024)
    exact = x.double() @ (codes.double() * scales.double()).t()

    def error() -> float:
        y = kitchen.int8_linear(x, codes, scales, out_dtype=torch.float32)
        return (y.double() - exact).square().mean().item()

    as_kitchen = error()
    installed.install(float32=True)
    assert error() < 0.95 * as_kitchen
    installed.install(float32=False)
    assert error() == as_kitchen


def test_on_a_side_stream_and_in_a_graph(device):  # noqa: F811
    if device.type != "cuda":
        pytest.skip("CPUs have no streams")
    codes, scales = weight_of(96, 256, rotation=256)
    x = rows_of(7, 256)
    call = {"convrot": True, "convrot_groupsize": 256}
    expected = kitchen.int8_linear(x, codes, scales, **call)
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        beside = kitchen.int8_linear(x, codes, scales, **call)
    stream.synchronize()
    assert torch.equal(beside, expected)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        captured = kitchen.int8_linear(x, codes, scales, **call)
    x.copy_(rows_of(7, 256, seed=11))
    graph.replay()
    torch.cuda.synchronize()
    assert torch.equal(captured, kitchen.int8_linear(x, codes, scales, **call))
    assert not torch.equal(captured, expected)
