"""comfy-kitchen's weights of four and six bits, multiplied in INT8 by our backend."""

from __future__ import annotations

import pytest
from comfy_calls import assert_as_eager, backend, device, installed, kitchen  # noqa: F401
from comfy_calls import rows_of, torch
from octet.comfy import four_bits, rules


def close(y, expected, most: float) -> bool:
    return (y.float() - expected.float()).norm() < most * expected.float().norm()


def weight(n: int, k: int) -> torch.Tensor:
    return rows_of(n, k, dtype=torch.float32, seed=5) * 0.1


def quantized(layout: str, n: int = 48, k: int = 256, **how):
    return kitchen.tensor.QuantizedTensor.from_float(weight(n, k), layout, **how)


def served() -> dict:
    return {row.function: count for row, count in backend.report().served}


def declined() -> dict:
    return {(row.function, row.parameter): count for row, count in backend.report().declined}


@pytest.fixture
def eager_alone():
    """As where comfy-kitchen's CUDA backend is off."""
    before = kitchen.registry.is_available("cuda")
    kitchen.registry.disable("cuda")
    yield
    if before:
        kitchen.registry.enable("cuda")


def test_codes_of_four_bits(device):
    packed = torch.arange(-128, 128, dtype=torch.int8, device=device).reshape(8, 32)
    expected = kitchen.registry.get_implementation(
        "prepare_int4_weight_for_int8_linear", kwargs={"weight": packed})(packed)
    codes = four_bits.unpack_int4(packed)
    assert codes.dtype == torch.int8 and torch.equal(codes, expected)
    assert codes[0, :4].tolist() == [0, -8, 1, -8]


# --- convrot_w4a4 ---


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_w4a4_with_int8_activations(installed, device, bias, dtype):
    w = quantized("TensorCoreConvRotW4A4Layout", linear_dtype="int8")
    x = rows_of(1100, 256, dtype=dtype)
    b = rows_of(48, dtype=dtype, seed=9) if bias else None
    with kitchen.use_backend("octet"):
        y = torch.nn.functional.linear(x, w, b)
    expected = torch.nn.functional.linear(x.float(), w.dequantize().float(),
                                          None if b is None else b.float())
    assert y.dtype == dtype and close(y, expected, 0.02)
    assert served() == {"convrot_w4a4_linear": 1}


def test_w4a4_with_four_bit_activations_is_declined(installed):
    w = quantized("TensorCoreConvRotW4A4Layout")
    torch.nn.functional.linear(rows_of(3, 256), w)
    assert declined() == {("convrot_w4a4_linear", "linear_dtype"): 1} and not served()


# --- asym_w4a8_int8 ---


@pytest.mark.parametrize("how", [{}, {"bits": 6}, {"codebook": False}, {"group_size": 64},
                                 {"scale_dtype": torch.float32}])
def test_w4a8(installed, device, eager_alone, how):
    w = quantized("AsymW4A8Int8Layout", **how)
    x, b = rows_of(2, 5, 256), rows_of(48, seed=9)
    params = w._params
    rows = four_bits.decode_grouped(w._qdata, params.scale, params.codebook, params.group_size)
    values = rows.float() * params.s_channel.reshape(-1, 1)
    assert close(values.norm(dim=1), w.dequantize().float().norm(dim=1), 0.01)  # it is rotated
    assert_as_eager(lambda: torch.nn.functional.linear(x, w, b))
    assert served() == {"w4a8_int8_linear": 1}


def test_w4a8_with_activation_and_residual(installed, eager_alone):
    layout = kitchen.tensor.w4a8_int8.AsymW4A8Int8Layout
    w = quantized("AsymW4A8Int8Layout")
    if not hasattr(layout, "linear_input_act"):
        pytest.skip("this comfy-kitchen has no activations in it")
    x, residual = rows_of(4, 512), rows_of(4, 48, seed=7)
    scale = rows_of(48, seed=8)
    assert_as_eager(lambda: layout.linear_input_act(
        w, x, input_act="swiglu", residual=residual, residual_scale=scale))
    assert served() == {"w4a8_int8_linear": 1}


def test_w4a8_with_offsets_is_declined(installed, eager_alone):
    w = quantized("AsymW4A8Int8Layout", symmetric=False, codebook=False)
    assert w._params.correction is not None
    assert torch.nn.functional.linear(rows_of(3, 256), w).isfinite().all()
    assert declined() == {("w4a8_int8_linear", "correction"): 1} and not served()


# --- what comfy-kitchen's own kernels keep ---


class OnGpu(torch.Tensor):
    """A tensor that says it is on a GPU, for rules, which look at nothing else."""

    is_cuda = True

    @classmethod
    def rows(cls, *shape: int) -> OnGpu:
        return torch.empty(*shape, dtype=torch.bfloat16, device="meta").as_subclass(cls)


@pytest.mark.parametrize("available", [False, True])
def test_on_a_gpu_small_calls_stay_with_kernels_that_read_four_bits(monkeypatch, available):
    monkeypatch.setattr(four_bits, "_has_own_cuda", lambda: available)
    packed = torch.zeros(48, 128, dtype=torch.int8)
    for rows, takes in ((four_bits.FEWEST_ROWS, True), (four_bits.FEWEST_ROWS - 1, not available)):
        made = four_bits.as_linear("convrot_w4a4_linear", {
            "x": OnGpu.rows(rows, 256), "qweight": packed, "linear_dtype": "int8"})
        assert isinstance(made, rules.Refusal) != takes
    made = four_bits.as_linear("w4a8_int8_linear", {
        "x": OnGpu.rows(4096, 256), "qdata": packed, "s_rel": torch.ones(48, 16)})
    assert isinstance(made, rules.Refusal) == available


def test_shapes_that_do_not_fit_are_declined():
    x = torch.zeros(3, 256)
    good = {"x": x, "qdata": torch.zeros(48, 128, dtype=torch.int8), "s_rel": torch.ones(48, 16),
            "s_channel": torch.ones(48)}
    assert rules.why_not("w4a8_int8_linear", good) is None
    wrong = {"qdata": torch.zeros(48, 100, dtype=torch.int8), "s_rel": torch.ones(47, 16),
             "s_channel": torch.ones(47), "codebook": torch.ones(15),
             "x": torch.zeros(3, 255), "convrot_groupsize": 512}
    for name, value in wrong.items():
        assert rules.why_not("w4a8_int8_linear", {**good, name: value}) is not None, name
