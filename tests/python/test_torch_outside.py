"""Models in INT8 within what surrounds a model: torch.func, torch.fx, wrappers, save_pretrained();
and what is not a model at all."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

import octet  # noqa: E402
from octet.torch import Int8Linear, dequantize_, fuse_, quantize_  # noqa: E402
from small_models import Attention, Block, SwiGlu, transformer  # noqa: E402
from torch import nn  # noqa: E402


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)


_PROJECTIONS = ("to_q", "to_k", "to_v", "to_out.0")


def int8_names(model: nn.Module) -> list[str]:
    return [name for name, module in model.named_modules() if isinstance(module, Int8Linear)]


# --- torch.func and torch.fx ---


def test_gradients_of_torch_func():
    linear = Int8Linear.from_linear(nn.Linear(64, 32))
    x = torch.randn(4, 5, 64)
    expected = torch.ones(5, 32) @ linear.dequantize()
    gradient = torch.func.grad(lambda one: linear(one).sum())
    torch.testing.assert_close(gradient(x[0]), expected)
    torch.testing.assert_close(torch.vmap(gradient)(x), expected.expand(4, 5, 64))
    torch.testing.assert_close(torch.func.jacrev(linear)(x[0, 0]), linear.dequantize())


def test_gradients_of_a_fused_model():
    model = quantize_(Attention(64, bias=True))
    x = torch.randn(3, 64, requires_grad=True)
    model(x).sum().backward()
    made = torch.func.grad(lambda one: model(one).sum())(x.detach())
    torch.testing.assert_close(made, x.grad)


def test_gradients_of_torch_func_through_swiglu():
    model = quantize_(nn.Sequential(SwiGlu(64)))
    x = torch.randn(3, 5, 64, requires_grad=True)
    model(x).sum().backward()
    gradient = torch.func.grad(lambda one: model(one).sum())
    torch.testing.assert_close(gradient(x.detach()), x.grad)
    torch.testing.assert_close(torch.vmap(gradient)(x.detach()), x.grad)


def test_a_batch_of_vmap_is_one_product():
    linear = Int8Linear.from_linear(nn.Linear(64, 32))
    x = torch.randn(4, 5, 64)
    with torch.no_grad():
        before = octet.report().native
        made = torch.vmap(linear, in_dims=1, out_dims=1)(x)
        assert octet.report().native == before + 1
        assert torch.equal(made, linear(x))


def test_an_ensemble():
    """Weights are what vmap() runs over."""
    models = [quantize_(Attention(64, bias=True)) for _ in range(3)]
    parameters, buffers = torch.func.stack_module_state(models)
    x = torch.randn(3, 64)

    def run(parameters, buffers):
        return torch.func.functional_call(models[0], (parameters, buffers), (x,))

    with torch.no_grad():
        made = torch.vmap(run)(parameters, buffers)
        for y, model in zip(made, models, strict=True):
            assert torch.equal(y, model(x))


def test_a_fused_model_is_traced_by_fx():
    model = quantize_(Attention(64, bias=True))
    traced = torch.fx.symbolic_trace(model, concrete_args={"context": None})
    x = torch.randn(3, 64)
    with torch.no_grad():
        assert torch.equal(traced(x), model(x))


def test_a_parametrized_weight():
    """torch.nn.utils.parametrize puts a property in the place of the weight."""
    model, x = quantize_(Attention(64, bias=True)), torch.randn(3, 64)
    with torch.no_grad():
        expected = model(x)
        for linear in (model.to_k, model.to_out[0]):
            nn.utils.parametrize.register_parametrization(linear, "weight", nn.Identity())
        assert torch.equal(model(x), expected)
        assert torch.equal(model.float()(x), expected)  # moved, so joined anew


def test_shapes_alone():
    from torch._subclasses.fake_tensor import FakeTensorMode  # noqa: PLC0415

    with FakeTensorMode():
        assert quantize_(nn.Linear(64, 32))(torch.randn(2, 64)).shape == (2, 32)


# --- wrappers ---


def test_a_model_that_is_compiled_already():
    """torch.compile() adds `_orig_mod` to names, in which "mod" stands for no modulation."""
    model = nn.Sequential(Block(64), Block(64))
    expected = int8_names(quantize_(nn.Sequential(Block(64), Block(64))))
    compiled = torch.compile(model, backend="eager")
    assert quantize_(compiled) is compiled
    assert int8_names(model) == expected
    partly = nn.Sequential(torch.compile(Block(64), backend="eager"), Block(64))
    quantize_(partly, filter=["0.attn.to_*"])
    assert int8_names(partly) == [f"0._orig_mod.attn.{name}" for name in _PROJECTIONS]


@pytest.mark.parametrize("buffers", [False, True])
@pytest.mark.parametrize("how", ["cpu", "disk"])
def test_a_model_that_accelerate_offloads(tmp_path, how, buffers):
    """What waits on meta has no numbers: with a gradient, q was computed from the other two."""
    accelerate = pytest.importorskip("accelerate")
    model = quantize_(nn.Sequential(Attention(64, bias=True), SwiGlu(64)), filter="*")
    x = torch.randn(3, 64)
    expected = model(x.requires_grad_())
    gradient = torch.autograd.grad(expected.sum(), x)[0]
    if how == "cpu":
        accelerate.cpu_offload(model, "cpu", offload_buffers=buffers)
    else:
        accelerate.disk_offload(model, tmp_path, "cpu", offload_buffers=buffers)
    y = model(x)
    torch.testing.assert_close(y, expected)  # SwiGLU in several steps
    torch.testing.assert_close(torch.autograd.grad(y.sum(), x)[0], gradient)
    with torch.no_grad():
        torch.testing.assert_close(model(x.detach()), expected.detach())


# --- LoRA ---


class Adapted(nn.Module):
    """As PEFT wraps a linear, and diffusers' models merge what it wraps."""

    def __init__(self) -> None:
        super().__init__()
        self.merged = False
        self.blocks = nn.ModuleList([nn.ModuleDict({"base_layer": nn.Linear(64, 64)})])

    def fuse_lora(self) -> None:
        self.merged = True


def test_merging_a_lora_into_codes_is_refused():
    """It failed with torch's sentence or, with safe_fusing, rounded all of it to nothing."""
    plain, model = Adapted(), quantize_(Adapted(), filter=["*base_layer"])
    plain.fuse_lora()
    with pytest.raises(octet.OctetError, match=r"cannot merge into blocks\.0, which"):
        model.fuse_lora()
    assert plain.merged and not model.merged
    dequantize_(model).fuse_lora()
    assert model.merged


def test_peft_finds_the_weight():
    """For DoRA, whose magnitudes are those of the weight. Its dequantize_module_weight() calls
    dequantize() where there is a `W_q`."""
    linear = Int8Linear.from_linear(nn.Linear(64, 32))
    assert linear.W_q is linear.weight and linear.dequantize().dtype == torch.float32


# --- save_pretrained() ---


def test_diffusers_loads_what_it_saved(tmp_path):
    """It took codes for weights: nothing in the folder said what they are."""
    kind = pytest.importorskip("diffusers").FluxTransformer2DModel
    pytest.importorskip("octet.diffusers")
    options = dict(
        in_channels=16, num_layers=1, num_single_layers=1, attention_head_dim=32,
        num_attention_heads=2, joint_attention_dim=64, pooled_projection_dim=64,
        axes_dims_rope=(8, 12, 12),
    )  # fmt: skip
    model = quantize_(kind(**options))
    model.save_pretrained(tmp_path / "int8")
    state = kind.from_pretrained(tmp_path / "int8").state_dict()
    assert state.keys() == model.state_dict().keys()
    assert all(torch.equal(state[key], value) for key, value in model.state_dict().items())
    for how in (dequantize_, kind.dequantize):
        made = kind.from_pretrained(tmp_path / "int8")
        dequantize_(model), how(made)
        made.save_pretrained(tmp_path / "float")
        # Anyone can open it, without Octet.
        assert "quantiz" not in (tmp_path / "float" / "config.json").read_text()
        state = kind.from_pretrained(tmp_path / "float").state_dict()
        assert all(torch.equal(state[key], value) for key, value in model.state_dict().items())
        assert made.to(torch.float16).dtype == torch.float16  # refused for quantized models


def test_transformers_refuses_what_it_saved(tmp_path):
    """It took codes for weights, with a warning."""
    transformers = pytest.importorskip("transformers")
    sizes = dict(hidden_size=64, num_attention_heads=2, intermediate_size=128, vocab_size=32)
    model = transformers.BertModel(transformers.BertConfig(num_hidden_layers=2, **sizes))
    quantize_(model).save_pretrained(tmp_path)
    assert "load_state_dict" in model.config.to_dict()["quantization_config"]["octet"]
    for kind in (transformers.BertModel, transformers.AutoModel):
        with pytest.raises(ValueError, match="quantization config"):
            kind.from_pretrained(tmp_path)
    assert "quantization_config" not in dequantize_(model).config.to_dict()


# --- wrong arguments ---


@pytest.mark.parametrize("function", [quantize_, dequantize_, fuse_, octet.torch.default_filter])
def test_what_is_no_model(function):
    for value in ("model", None, [nn.Linear(4, 4)]):
        with pytest.raises(octet.OctetTypeError, match="expected a module of torch"):
            function(value)


def test_other_wrong_arguments():
    for wrong in (5, [5]):
        with pytest.raises(octet.OctetTypeError, match="`filter` is .*5"):
            quantize_(transformer(), filter=wrong)
    with pytest.raises(octet.OctetTypeError, match=r"expected an nn\.Linear"):
        Int8Linear.from_linear("linear")
    weight, scale = torch.zeros(8, 64, dtype=torch.int8), torch.ones(8)
    with pytest.raises(octet.OctetTypeError, match=r"`x` is list \[1\]; expected a tensor"):
        octet.torch.int8_linear([1], weight, scale)
    with pytest.raises(octet.OctetTypeError, match="`b` is str"):
        octet.torch.int8_mm(weight, "b")
    with pytest.raises(octet.OctetTypeError, match="`x` is int 3"):
        octet.torch.quantize_rows(3)
    for size in ("64", -1, None):
        with pytest.raises(octet.OctetTypeError, match="`out_features` is .*; expected a whole"):
            Int8Linear(64, size)
    with pytest.raises(octet.OctetTypeError, match="`weight` is int 5; expected a tensor"):
        Int8Linear(64, 8).quantize_weight(5)
    with pytest.raises(octet.OctetTypeError, match="`out` is int 5; expected a tensor"):
        octet.int8_linear(torch.zeros(1, 64), weight, scale, out=5)


@pytest.mark.parametrize("name, value", [
    ("bias", 5), ("smooth", "x"), ("rotation_group", "x"), ("gate_up", "x"), ("out_dtype", []),
    ("weight_scale", 5), ("weight", [5]),
])  # fmt: skip
def test_options_of_wrong_types(name, value):
    """With a gradient, the op is called, which would answer with its signature."""
    linear, x = Int8Linear(64, 8), torch.zeros(1, 64)
    weights = {"weight": linear.weight, "weight_scale": linear.weight_scale}
    for given in (x, x.clone().requires_grad_()):
        with pytest.raises(octet.OctetError, match=f"`{name}` is ") as raised:
            octet.torch.int8_linear(given, **{**weights, name: value})
        assert "\n" not in str(raised.value)


@pytest.mark.parametrize("name", ["weights", "weight_scales", "biases"])
def test_parts_are_lists(name):
    linear = Int8Linear(64, 8)
    parts = {"weights": [linear.weight], "weight_scales": [linear.weight_scale], "biases": []}
    with pytest.raises(octet.OctetTypeError, match=f"`{name}` is int 5; expected a list"):
        octet.torch.int8_linear_parts(torch.zeros(1, 64), **{**parts, name: 5})


def test_the_weight_that_is_not_finite_is_named():
    model = nn.Sequential(nn.Linear(64, 64), nn.Linear(64, 64))
    model[1].weight.data[3, 0] = float("nan")
    with pytest.raises(octet.InvalidRequest, match="1.weight: the scale of row 3 is nan"):
        quantize_(model)
