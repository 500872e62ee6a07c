"""octet.torch.Int8Linear: made of a linear, kept in files, moved, copied and changed.

Five seconds.
"""

from __future__ import annotations

import copy
import gc
import io
import json
import pickle
import weakref

import pytest

torch = pytest.importorskip("torch")

import int8_definition as definition  # noqa: E402
import octet  # noqa: E402
from octet.torch import Int8Linear, int8_linear, int8_mm  # noqa: E402
from octet.torch.rotation import rotate  # noqa: E402
from torch import nn  # noqa: E402


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)


def a_linear(k: int = 64, n: int = 48, bias: bool = True, dtype=torch.bfloat16) -> nn.Linear:
    return nn.Linear(k, n, bias=bias, dtype=dtype)


def marker_of(state: dict[str, torch.Tensor]) -> dict:
    return json.loads(bytes(state["comfy_quant"].tolist()))


@pytest.mark.parametrize("recipe, group", [("rowwise", 0), ("convrot", 256), ("convrot:64", 64)])
def test_it_computes_what_the_linear_does(recipe, group):
    linear = a_linear(k=512)
    made = Int8Linear.from_linear(linear, recipe)
    x = torch.randn(2, 7, 512, dtype=torch.bfloat16)
    with torch.no_grad():
        y, expected = made(x), linear(x)
    assert y.dtype == expected.dtype and y.shape == expected.shape
    assert (y - expected).norm() < 0.02 * expected.norm()
    weight = linear.weight.detach().float()
    codes, scales = definition.quantized(rotate(weight, group) if group else weight)
    assert torch.equal(made.weight, codes)
    assert torch.equal(made.weight_scale, scales[:, None])
    rows = rotate(x, group) if group else x.float()
    assert torch.equal(y, definition.linear(rows, codes, scales, linear.bias).to(y.dtype))
    assert (made.dequantize(torch.float32) - weight).norm() < 0.01 * weight.norm()


def test_a_group_that_does_not_divide_the_inputs_becomes_smaller():
    assert Int8Linear.from_linear(a_linear(k=96)).rotation_group == 16
    assert Int8Linear.from_linear(a_linear(k=36)).rotation_group == 4
    assert Int8Linear.from_linear(a_linear(k=30)).rotation_group == 0


@pytest.mark.parametrize(
    "recipe, words",
    [("smoothquant", "calibration"), ("convrot:48", "a group of 4"), ("int4", "unknown")],
)
def test_recipes_that_are_refused(recipe, words):
    with pytest.raises(octet.OctetError, match=words):
        Int8Linear.from_linear(a_linear(), recipe)


def test_a_weight_that_is_no_number_is_refused():
    linear = a_linear()
    linear.weight.data[5, 3] = torch.nan
    with pytest.raises(octet.OctetError, match="row 5"):
        Int8Linear.from_linear(linear)


def test_it_says_what_it_is():
    made = Int8Linear.from_linear(a_linear(k=512))
    assert "in_features=512, out_features=48, bias=True" in repr(made)
    assert "int8 native, cpu, convrot 256" in repr(made)
    assert isinstance(made, nn.Linear) and not any(p.requires_grad for p in made.parameters())


# --- files ---


def test_the_state_dict_is_comfyuis():
    state = Int8Linear.from_linear(a_linear(k=64)).state_dict()
    assert {key: (value.dtype, tuple(value.shape)) for key, value in state.items()} == {
        "weight": (torch.int8, (48, 64)),
        "weight_scale": (torch.float32, (48, 1)),
        "bias": (torch.bfloat16, (48,)),
        "comfy_quant": (torch.uint8, (len(state["comfy_quant"]),)),
    }
    assert marker_of(state) == {
        "format": "int8_tensorwise",
        "convrot": True,
        "convrot_groupsize": 64,
    }
    state = Int8Linear.from_linear(a_linear(bias=False), "rowwise").state_dict()
    assert marker_of(state) == {"format": "int8_tensorwise"} and "bias" not in state


@pytest.mark.parametrize("assign", [False, True])
@pytest.mark.parametrize("recipe", ["rowwise", "convrot:16"])
def test_a_state_dict_comes_back(recipe, assign):
    made = Int8Linear.from_linear(a_linear(), recipe)
    other = Int8Linear(64, 48, dtype=torch.bfloat16)
    x = torch.randn(3, 64, dtype=torch.bfloat16)
    other(x)
    other.load_state_dict(made.state_dict(), assign=assign)
    assert other.rotation_group == made.rotation_group
    assert torch.equal(other(x), made(x))
    empty = Int8Linear(64, 48, dtype=torch.bfloat16, device="meta")
    empty.load_state_dict(made.state_dict(), assign=assign)
    assert torch.equal(empty(x), made(x))


def test_one_scale_for_all_rows_and_a_smoothed_weight():
    codes = definition.random_codes(48, 64)
    smooth = torch.rand(64) + 0.5
    state = {
        "weight": codes,
        "weight_scale": torch.tensor(0.01),
        "comfy_quant": torch.tensor(list(b'{"format": "int8_tensorwise"}'), dtype=torch.uint8),
        "pre_quant_scale": smooth,
        "input_scale": torch.tensor(1.0),
    }
    made = Int8Linear(64, 48, bias=False)
    made.load_state_dict(state)
    x = torch.randn(3, 64)
    scale = torch.full((48,), 0.01)
    assert torch.equal(made(x), definition.linear(x, codes, scale, smooth=smooth))
    again = Int8Linear(64, 48, bias=False)
    again.load_state_dict(made.state_dict())
    assert torch.equal(again(x), made(x))
    assert torch.allclose(
        nn.functional.linear(x, made.dequantize()), made(x), rtol=0.02, atol=0.2
    )


def test_a_weight_in_floating_point_is_quantized_when_it_is_loaded():
    linear = a_linear()
    made = Int8Linear(64, 48, dtype=torch.bfloat16, recipe="convrot:16")
    made.load_state_dict(linear.state_dict())
    expected = Int8Linear.from_linear(linear, "convrot:16")
    assert torch.equal(made.weight, expected.weight)
    assert torch.equal(made.weight_scale, expected.weight_scale)


def test_weights_that_comfy_kitchen_made():
    kitchen = pytest.importorskip("comfy_kitchen.tensor", reason="comfy-kitchen is not installed")
    linear = a_linear(k=256, bias=False)
    layout = kitchen.TensorWiseINT8Layout
    codes, params = layout.quantize(linear.weight.detach(), per_channel=True, convrot=True)
    marker = {"format": "int8_tensorwise", "convrot": True, "convrot_groupsize": 256}
    state = {
        **{f"weight{k}": v for k, v in layout.state_dict_tensors(codes, params).items()},
        "comfy_quant": torch.tensor(list(json.dumps(marker).encode()), dtype=torch.uint8),
    }
    made = Int8Linear(256, 48, bias=False)
    made.load_state_dict(state)
    x = torch.randn(5, 256, dtype=torch.bfloat16)
    with torch.no_grad():
        expected = linear(x)
    assert (made(x) - expected).norm() < 0.02 * expected.norm()


def broken(**changes):
    state = Int8Linear.from_linear(a_linear()).state_dict()
    return {key: value for key, value in {**state, **changes}.items() if value is not None}


def marked(text: bytes) -> torch.Tensor:
    return torch.tensor(list(text), dtype=torch.uint8)


@pytest.mark.parametrize(
    "changes, words",
    [
        ({"weight": None}, "Missing.*weight"),
        ({"weight_scale": None}, "Missing.*weight_scale"),
        ({"bias": None}, "Missing.*bias"),
        ({"extra": torch.ones(1)}, "Unexpected.*extra"),
        ({"weight": torch.zeros(48, 65, dtype=torch.int8)}, r"weight.*expected \[48, 64\]"),
        ({"weight": torch.zeros(48, 64, dtype=torch.int32)}, "expected int8"),
        ({"weight_scale": torch.ones(7, 1)}, "expected 1 or 48"),
        ({"weight_scale": torch.full((48, 1), torch.nan)}, "row 0 is nan"),
        ({"bias": torch.ones(47)}, r"bias.*expected \[48\]"),
        ({"comfy_quant": marked(b"{")}, "comfy_quant: invalid JSON"),
        ({"comfy_quant": marked(b"[]")}, "expected an object"),
        ({"comfy_quant": marked(b'{"format": "nvfp4"}')}, "nvfp4"),
        ({"comfy_quant": marked(b'{"format": "int8_tensorwise", "params": 3}')}, "params"),
        ({"comfy_quant": marked(b'{"format": "int8_tensorwise", "convrot": 1}')}, "true or false"),
        (
            {"comfy_quant": marked(b'{"format": "int8_tensorwise", "convrot": true}')},
            "groups of 256 does not fit",
        ),
        ({"comfy_quant": torch.ones(3)}, "uint8"),
    ],
)
def test_broken_state_dicts_are_told(changes, words):
    made = Int8Linear(64, 48, dtype=torch.bfloat16)
    with pytest.raises(RuntimeError, match=f"(?s){words}"):
        made.load_state_dict(broken(**changes))


def test_a_linear_that_its_file_keeps_in_floating_point():
    text = b'{"format": "int8_tensorwise", "full_precision_matrix_mult": true}'
    state = broken(comfy_quant=marked(text))
    made = Int8Linear(64, 48, dtype=torch.bfloat16)
    made.load_state_dict(state)
    x = torch.randn(3, 64, dtype=torch.bfloat16)
    expected = nn.functional.linear(x, made.dequantize(x.dtype), made.bias)
    assert torch.equal(made(x), expected)
    assert "as its file asks for" in repr(made)
    assert marker_of(made.state_dict())["full_precision_matrix_mult"] is True
    with octet.require_int8(), pytest.raises(octet.OctetError, match="its file asks for"):
        made(x)


# --- moving, copying, changing ---


def test_scales_stay_float32_when_the_model_does_not():
    made = Int8Linear.from_linear(a_linear(dtype=torch.float32))
    scale = made.weight_scale.clone()
    x = torch.randn(3, 64)
    y = made(x)
    for dtype in (torch.bfloat16, torch.float16):
        made.to(dtype)
        assert made.weight.dtype == torch.int8 and made.weight_scale.dtype == torch.float32
        assert torch.equal(made.weight_scale, scale)
        assert made.bias.dtype == dtype and made.dequantize().dtype == dtype
    made.float()
    assert torch.allclose(made(x), y, atol=1e-2)


def test_copies_are_independent():
    made = Int8Linear.from_linear(a_linear())
    x = torch.randn(3, 64, dtype=torch.bfloat16)
    y = made(x)
    saved = io.BytesIO()
    torch.save(made, saved)
    saved.seek(0)
    for other in (
        copy.deepcopy(made),
        pickle.loads(pickle.dumps(made)),
        torch.load(saved, weights_only=False),
    ):
        assert torch.equal(other(x), y)
        other.weight.zero_()
        assert torch.equal(other(x), made.bias.expand(3, 48)) and torch.equal(made(x), y)


def test_back_to_a_linear():
    linear = a_linear()
    back = Int8Linear.from_linear(linear).to_linear()
    assert type(back) is nn.Linear and back.weight.dtype == torch.bfloat16
    x = torch.randn(3, 64, dtype=torch.bfloat16)
    with torch.no_grad():
        assert (back(x) - linear(x)).norm() < 0.02 * linear(x).norm()
    assert set(back.state_dict()) == set(linear.state_dict())


def test_made_in_inference_mode_it_works_outside():
    with torch.inference_mode():
        made = Int8Linear.from_linear(nn.Linear(64, 48))
    x = torch.randn(3, 64, requires_grad=True)
    y = made(x)
    assert y.requires_grad and not made.weight.is_inference()
    expected = int8_linear(x, made.weight, made.weight_scale, made.bias, rotation_group=64)
    assert torch.equal(y, expected)


def test_a_weight_goes_with_the_last_reference_to_it():
    linear = Int8Linear.from_linear(nn.Linear(64, 32, bias=False))
    linear(torch.randn(2, 64))
    weight, codes = weakref.ref(linear.weight), torch.randint(-9, 9, (4, 16), dtype=torch.int8)
    gc.disable()
    try:
        del linear
        assert weight() is None
        before = len(gc.get_objects())
        for _ in range(20):
            int8_mm(codes, codes.t())
        assert len(gc.get_objects()) < before + 20
    finally:
        gc.enable()


def test_a_weight_in_floating_point_ends_smoothing():
    smoothed = Int8Linear(64, 32, bias=False)
    state = Int8Linear.from_linear(nn.Linear(64, 32, bias=False), "rowwise").state_dict()
    smoothed.load_state_dict({**state, "pre_quant_scale": torch.full((64,), 3.0)})
    plain = nn.Linear(64, 32, bias=False)
    smoothed.load_state_dict(plain.state_dict())
    x = torch.randn(5, 64)
    assert torch.equal(smoothed(x), Int8Linear.from_linear(plain, smoothed.recipe)(x))
    with pytest.raises(RuntimeError, match="pre_quant_scale is there, but weight is"):
        smoothed.load_state_dict({**plain.state_dict(), "pre_quant_scale": torch.ones(64)})


def test_loading_changes_tensors_of_inference_mode_too():
    one, other = (Int8Linear.from_linear(nn.Linear(64, 32, bias=False)) for _ in range(2))
    with torch.inference_mode():
        one.weight, one.weight_scale = one.weight.clone(), one.weight_scale.clone()
        x = torch.randn(3, 64)
        one(x)
        one.load_state_dict(other.state_dict())
        assert torch.equal(one(x), other(x))
