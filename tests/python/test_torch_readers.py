"""octet.torch.quantize_ on modules that read the weights of linears within them."""

from __future__ import annotations

import copy
import pickle

import pytest

torch = pytest.importorskip("torch")

import octet  # noqa: E402
from octet.torch import Int8Linear, dequantize_, quantize_  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402

MODES = [torch.no_grad, torch.inference_mode, torch.enable_grad]


def encoder(**options) -> nn.TransformerEncoder:
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(64, 4, 128, dropout=0.0, batch_first=True, **options)
    nested = not options.get("norm_first", False)
    return nn.TransformerEncoder(layer, 3, enable_nested_tensor=nested)


def batch(aligned: bool = True):
    """Two sequences, of which the second has four tokens."""
    padding = torch.zeros(2, 7, dtype=torch.bool)
    padding[1, 4:] = True
    return torch.randn(2, 7, 64), padding if aligned else padding.flip(1)


def error(y, expected) -> float:
    return float((y - expected).norm() / expected.norm())


# --- torch's encoder ---


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("options", [{}, {"norm_first": True}, {"activation": "gelu"}])
def test_torchs_encoder_calls_int8_linears(mode, training, options):
    model = encoder(**options).train(training)
    quantized = quantize_(copy.deepcopy(model))
    int8 = {name for name, m in quantized.named_modules() if isinstance(m, Int8Linear)}
    assert int8 == {f"layers.{i}.{name}" for i in range(3) for name in ("linear1", "linear2")}
    x, padding = batch()
    with mode():
        for mask in (None, padding, padding.flip(1)):
            valid = slice(None) if mask is None else ~mask
            y = quantized(x, src_key_padding_mask=mask)[valid]
            assert 0 < error(y, model(x, src_key_padding_mask=mask)[valid]) < 0.02
        causal = nn.Transformer.generate_square_subsequent_mask(7)
        expected = model(x, mask=causal, is_causal=True)
        assert error(quantized(x, mask=causal, is_causal=True), expected) < 0.02


def test_only_some_layers_of_an_encoder():
    model = encoder().eval()
    quantized = quantize_(copy.deepcopy(model), filter="layers.1.*")
    x, padding = batch()
    with torch.no_grad():
        y = quantized(x, src_key_padding_mask=padding)[~padding]
        assert 0 < error(y, model(x, src_key_padding_mask=padding)[~padding]) < 0.02


def test_layers_that_were_quantized_one_by_one():
    """torch's encoder makes nested tensors of padded batches, as it does for its own layers."""
    model = encoder().eval()
    x, padding = batch()
    with torch.no_grad():
        expected = model(x, src_key_padding_mask=padding)
        for layer in model.layers:
            quantize_(layer, filter="linear*")
        y = model(x, src_key_padding_mask=padding)
        assert 0 < error(y[~padding], expected[~padding]) < 0.02 and (y[padding] == 0).all()


@pytest.mark.parametrize("layout", [torch.strided, torch.jagged])
def test_nested_tensors(layout):
    parts = [torch.randn(3, 64), torch.randn(5, 64)]
    x = torch.nested.nested_tensor(parts, layout=layout, requires_grad=True)
    linear = Int8Linear.from_linear(nn.Linear(64, 64))
    with torch.no_grad():
        assert all(map(torch.equal, linear(x).unbind(), map(linear, parts)))
    y = linear(x) + x
    sum(part.sum() for part in y.unbind()).backward()
    expected = torch.ones(64) @ linear.dequantize() + 1
    torch.testing.assert_close(x.grad.unbind()[1], expected.expand(5, 64))


def test_a_layer_by_itself_and_copies_of_it():
    x, _ = batch()
    layer = encoder().layers[0].eval()
    with torch.no_grad():
        expected = layer(x)
        quantize_(layer)
        y = layer(x)
        assert 0 < error(y, expected) < 0.02
        for other in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
            assert torch.equal(other(x), y)
        of_int8 = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        assert of_int8(x).isfinite().all()


def test_back_in_floating_point_an_encoder_is_as_before():
    model = encoder().eval()
    before = (model.use_nested_tensor, model.layers[0].activation_relu_or_gelu)
    assert before == (True, 1)
    dequantize_(quantize_(quantize_(model)))
    assert (model.use_nested_tensor, model.layers[0].activation_relu_or_gelu) == before
    x, padding = batch()
    with torch.no_grad():
        y = model(x, src_key_padding_mask=padding)
    assert (y[padding] == 0).all()  # torch's function for nested tensors ran


def test_decoders_and_transformers_of_torch():
    torch.manual_seed(0)
    model = nn.Transformer(64, 4, 2, 2, 128, dropout=0.0, batch_first=True).eval()
    quantized = quantize_(copy.deepcopy(model))
    x, padding = batch()
    masks = {"src_key_padding_mask": padding, "memory_key_padding_mask": padding}
    with torch.no_grad():
        assert 0 < error(quantized(x, x, **masks), model(x, x, **masks)) < 0.02


def test_the_projections_of_torchs_attention_stay():
    torch.manual_seed(0)
    model = nn.ModuleDict({"attn": nn.MultiheadAttention(64, 4, batch_first=True)}).eval()
    quantize_(model, filter="*")
    x, _ = batch()
    with torch.no_grad():
        assert model["attn"](x, x, x)[0].shape == x.shape


# --- others that read weights ---


class Reader(nn.Module):
    """As attention pooling in CLIP: weights are arguments of a function."""

    def __init__(self) -> None:
        super().__init__()
        self.read, self.called = nn.Linear(64, 64), nn.Linear(64, 64)

    def forward(self, x):
        x = x.to(self.called.weight.dtype) if self.called.weight.dtype.is_floating_point else x
        return self.called(F.linear(x, self.read.weight, self.read.bias))


def test_a_linear_whose_weight_is_read_stays_in_floating_point():
    model = nn.Sequential(Reader(), Reader())
    x = torch.randn(3, 64)
    with torch.no_grad():
        expected = model(x)
        quantize_(model)
        assert 0 < error(model(x), expected) < 0.03
    made = octet.report(model)
    notes = {row.name: row.note for row in made.rows}
    assert made.native == 2 and "reads its weight" in notes["0.read"]
    with pytest.raises(octet.OctetError, match="0.read is not in INT8"):
        with octet.require_int8(model):
            pass


def test_a_loss_of_torch_that_reads_a_weight():
    if not hasattr(nn, "LinearCrossEntropyLoss"):
        pytest.skip(f"torch {torch.__version__} has no LinearCrossEntropyLoss")
    loss = quantize_(nn.LinearCrossEntropyLoss(64, 32), filter="*")
    assert loss(torch.randn(3, 64), torch.tensor([1, 2, 3])).isfinite()


def test_an_input_in_the_weights_dtype_is_refused_with_the_remedy():
    linear = quantize_(nn.Linear(64, 64))
    with pytest.raises(TypeError, match="int8.*weight.dtype"):
        linear(torch.randn(3, 64).to(linear.weight.dtype))


# --- diffusers' fuse_projections ---


@pytest.fixture(scope="module")
def flux():
    diffusers = pytest.importorskip("diffusers")
    torch.manual_seed(0)
    return diffusers.FluxTransformer2DModel(
        **{"in_channels": 16, "num_layers": 1, "num_single_layers": 1, "attention_head_dim": 32},
        **{"num_attention_heads": 4, "joint_attention_dim": 64, "pooled_projection_dim": 64},
        axes_dims_rope=(8, 12, 12),
    ).eval()


def flux_inputs():
    torch.manual_seed(1)
    return {
        **{"hidden_states": torch.randn(1, 6, 16), "encoder_hidden_states": torch.randn(1, 5, 64)},
        **{"pooled_projections": torch.randn(1, 64), "timestep": torch.tensor([0.5])},
        **{"img_ids": torch.zeros(6, 3), "txt_ids": torch.zeros(5, 3)},
    }


@pytest.mark.parametrize("fuse", [False, True])
def test_projections_are_joined_after_quantizing(flux, fuse):
    model = quantize_(copy.deepcopy(flux), fuse=fuse)
    with torch.no_grad():
        expected = model(**flux_inputs()).sample
        model.fuse_qkv_projections()
        attention = model.transformer_blocks[0].attn
        assert type(attention.to_qkv) is Int8Linear and attention.to_qkv.out_features == 384
        assert type(attention.to_added_qkv) is Int8Linear
        attention.to_q.weight.zero_()  # nobody calls it any more
        y = model(**flux_inputs()).sample
        assert torch.equal(y, expected)
        model.unfuse_qkv_projections()
        assert not torch.equal(model(**flux_inputs()).sample, expected)


def test_projections_are_joined_before_quantizing(flux):
    model = copy.deepcopy(flux)
    with torch.no_grad():
        expected = model(**flux_inputs()).sample
        model.fuse_qkv_projections()
        quantize_(model)
        assert isinstance(model.transformer_blocks[0].attn.to_qkv, Int8Linear)
        assert error(model(**flux_inputs()).sample, expected) < 0.03


def test_floating_point_projections_are_joined_as_before(flux):
    quantize_(copy.deepcopy(flux))  # the class knows of INT8 now
    model = quantize_(copy.deepcopy(flux), filter="*.to_q")
    whole = copy.deepcopy(flux)
    with torch.no_grad():
        expected = whole(**flux_inputs()).sample
        whole.fuse_qkv_projections()
        assert type(whole.transformer_blocks[0].attn.to_qkv) is nn.Linear
        assert error(whole(**flux_inputs()).sample, expected) < 1e-5
        before = model(**flux_inputs()).sample
        with pytest.raises(octet.OctetError, match="to_qkv.*leave the call out"):
            model.fuse_qkv_projections()
        assert torch.equal(model(**flux_inputs()).sample, before)
