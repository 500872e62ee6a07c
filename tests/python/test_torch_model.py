"""octet.torch.quantize_ on models of plain torch: which linears, shared inputs, swiglu, reports.

Half a minute, most of it torch.compile's.
"""

from __future__ import annotations

import copy
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch")

import octet  # noqa: E402
from octet.torch import Int8Linear, default_filter, dequantize_, quantize_  # noqa: E402
from small_models import (  # noqa: E402
    Attention,
    Block,
    GeluGlu,
    SwiGlu,
    Transformer,
    inputs,
    residue,
    transformer,
)
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402

INT8 = ["attn.to_q", "attn.to_k", "attn.to_v", "attn.to_out.0"]
INT8 += ["feed_forward.w1", "feed_forward.w2", "feed_forward.w3"]


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)


def int8_names(model: nn.Module) -> set[str]:
    return {name for name, module in model.named_modules() if isinstance(module, Int8Linear)}


def calls_of(monkeypatch) -> list[str]:
    """Fills with the shape of each product."""
    from octet.torch import runtime

    seen, run = [], runtime.Rows.ran

    def ran(rows, kernel, m):
        seen.append(f"{m}x{rows.n}x{rows.k}{' swiglu' if rows.gate_up else ''}")
        run(rows, kernel, m)

    monkeypatch.setattr(runtime.Rows, "ran", ran)
    return seen


# --- which linears ---


def test_the_linears_of_the_blocks_become_int8():
    model = transformer()
    assert quantize_(model) is model
    assert int8_names(model) == {f"blocks.{i}.{name}" for i in (0, 1) for name in INT8}
    again = int8_names(model)
    assert int8_names(quantize_(model)) == again


def test_a_single_block_and_a_plain_model():
    block = quantize_(Block(64))
    assert int8_names(block) == set(INT8)
    plain = quantize_(nn.Sequential(nn.Linear(32, 64), nn.GELU(), nn.Linear(64, 32)))
    assert int8_names(plain) == {"0", "2"}
    assert isinstance(quantize_(nn.Linear(32, 64)), Int8Linear)


def test_filters():
    chosen = int8_names(quantize_(transformer(), filter="*.to_q"))
    assert chosen == {"blocks.0.attn.to_q", "blocks.1.attn.to_q"}
    chosen = int8_names(quantize_(transformer(), filter=["*.feed_forward.*", "!blocks.0.*"]))
    assert chosen == {f"blocks.1.feed_forward.{name}" for name in ("w1", "w2", "w3")}
    chosen = int8_names(quantize_(transformer(), filter=["!blocks.0.*"]))
    assert chosen == {f"blocks.1.{name}" for name in INT8}
    chosen = int8_names(quantize_(transformer(), filter=lambda name, linear: name == "proj_in"))
    assert chosen == {"proj_in"}
    model = transformer()
    default = default_filter(model)
    quantize_(model, filter=lambda name, linear: default(name, linear) and "attn" in name)
    assert int8_names(model) == {f"blocks.{i}.{name}" for i in (0, 1) for name in INT8[:4]}
    with pytest.raises(TypeError, match="filter"):
        quantize_(transformer(), filter=[1])


def test_a_linear_in_two_places_stays_one():
    model = nn.ModuleDict({"a": nn.Linear(32, 32)})
    model["b"] = model["a"]
    quantize_(model)
    assert model["a"] is model["b"] and isinstance(model["a"], Int8Linear)


def test_attention_of_torch_is_left_alone():
    model = nn.TransformerEncoderLayer(64, 4, 128, batch_first=True)
    assert int8_names(quantize_(model)) == {"linear1", "linear2"}
    with torch.no_grad():
        model.train()(torch.randn(2, 3, 64))


# --- results ---


def test_a_model_stays_close_and_fusing_changes_nothing_but_swiglus_rounding():
    model = transformer()
    x, t = inputs()
    with torch.no_grad():
        expected = model(x, t)
        unfused = quantize_(copy.deepcopy(model), fuse=False)(x, t)
        fused_model = quantize_(model)
        fused = fused_model(x, t)
    for y in (fused, unfused):
        assert F.cosine_similarity(y.flatten().float(), expected.flatten().float(), 0) > 0.999
    assert (fused - unfused).abs().max() < 0.02 * expected.abs().max()
    assert torch.equal(fused, fused_model(x, t)) and not residue(fused_model)


def test_shared_inputs_are_one_product(monkeypatch):
    model = quantize_(Block(64, GeluGlu))
    calls = calls_of(monkeypatch)
    x, t = torch.randn(3, 64), torch.randn(64)
    with torch.no_grad():
        model(x, t)
    assert calls == ["3x128x64", "3x64x64", "3x256x64", "3x64x128"]
    assert not residue(model)


def test_swiglu_is_recognised_by_what_it_computes(monkeypatch):
    calls = calls_of(monkeypatch)
    x = torch.randn(3, 64)
    swiglu, expected = SwiGlu(64), None
    with torch.no_grad():
        expected = swiglu(x)
        quantize_(swiglu)
        y = swiglu(x)
    assert calls == ["3x256x64 swiglu", "3x64x128"]
    assert (y - expected).norm() < 0.03 * expected.norm()
    for change in (lambda: swiglu.w1.register_forward_hook(lambda *a: None), lambda: None):
        handle = change()
        calls.clear()
        swiglu(x)
        assert ("swiglu" in calls[0]) == (handle is None)  # hooks are called
        if handle is not None:
            handle.remove()


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode, torch.enable_grad])
def test_cross_attention_parts_ways(monkeypatch, mode):
    model = Attention(64)
    x, context = torch.randn(3, 64), torch.randn(7, 64)
    with torch.no_grad():
        expected = quantize_(copy.deepcopy(model), fuse=False)(x, context)
    quantize_(model)
    with mode():
        assert torch.equal(model(x, context), expected)
        calls = calls_of(monkeypatch)
        assert torch.equal(model(x, context), expected)
    assert calls == ["3x64x64", "7x64x64", "3x64x64"]  # k and v in one
    assert not residue(model)


def test_an_input_that_is_changed_between_the_calls():
    model = quantize_(Attention(64))
    alone = quantize_(copy.deepcopy(dequantize_(copy.deepcopy(model))), fuse=False)
    for name in ("to_q", "to_k", "to_v"):  # the same codes
        getattr(alone, name).load_state_dict(getattr(model, name).state_dict())
    with torch.no_grad():
        x, y = (torch.ones(3, 64).cumsum(1) for _ in range(2))
        assert torch.equal(model.to_q(x), alone.to_q(y))
        x.mul_(-1), y.mul_(-1)
        assert torch.equal(model.to_k(x), alone.to_k(y))
        assert torch.equal(model.to_v(x), alone.to_v(y))


def test_members_that_nobody_calls_are_not_computed_for_long(monkeypatch):
    model = quantize_(Attention(64))
    calls = calls_of(monkeypatch)
    for _ in range(5):
        model.to_q(torch.randn(3, 64))
    assert calls[-1] == "3x64x64"


def test_an_exception_between_the_calls_costs_nothing(monkeypatch):
    model = quantize_(Attention(64))
    x = torch.randn(3, 64)
    with torch.no_grad():
        expected = model(x)
        model.to_q(x)  # and then it ended
        other = torch.randn(3, 64)
        model(other)
        calls = calls_of(monkeypatch)
        assert torch.equal(model(x), expected)
    assert calls[0] == "3x128x64"


def test_threads_do_not_see_each_other():
    model = quantize_(transformer())
    batches = [inputs() for _ in range(12)]
    with torch.no_grad():
        expected = [model(*batch) for batch in batches]
    barrier = threading.Barrier(4)

    def work(part):
        barrier.wait()
        with torch.no_grad():
            return [model(*batch) for batch in batches[part::4]]

    with ThreadPoolExecutor(4) as pool:
        for part, outputs in enumerate(pool.map(work, range(4))):
            assert all(torch.equal(a, b) for a, b in zip(outputs, expected[part::4]))
    assert not residue(model)


# --- files and copies ---


def test_the_state_dict_does_not_depend_on_fusing(tmp_path):
    safetensors = pytest.importorskip("safetensors.torch")
    model = transformer()
    unfused = quantize_(copy.deepcopy(model), fuse=False)
    fused = quantize_(model)
    state = fused.state_dict()
    assert state.keys() == unfused.state_dict().keys()
    assert all(torch.equal(value, unfused.state_dict()[key]) for key, value in state.items())
    safetensors.save_file(state, tmp_path / "model.safetensors")
    loaded = safetensors.load_file(tmp_path / "model.safetensors")
    x, t = inputs()
    with torch.no_grad():
        expected = fused(x, t)
        for assign in (False, True):
            other = quantize_(transformer())
            other(x, t)
            other.load_state_dict(loaded, assign=assign)
            assert torch.equal(other(x, t), expected)


def test_copies_of_a_model():
    model = quantize_(transformer())
    x, t = inputs()
    with torch.no_grad():
        expected = model(x, t)
        for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
            assert torch.equal(other(x, t), expected) and not residue(other)
            for name in int8_names(other):
                other.get_submodule(name).weight.zero_()
            assert not torch.equal(other(x, t), expected)
            assert torch.equal(model(x, t), expected)


def test_a_model_that_moves_keeps_its_parts_together():
    model = quantize_(transformer())
    model.to("meta")
    model.to_empty(device="cpu")
    attention = model.blocks[0].attn
    end = attention.to_q.weight.data_ptr() + attention.to_q.weight.numel()
    assert attention.to_k.weight.data_ptr() == end
    model = quantize_(transformer()).float()
    with torch.no_grad():
        assert model(*inputs(torch.float32)).dtype == torch.float32


def test_back_to_floating_point():
    model = transformer()
    keys = model.state_dict().keys()
    x, t = inputs()
    with torch.no_grad():
        expected = model(x, t)
        back = dequantize_(quantize_(model))
        assert back is model and not int8_names(model) and model.state_dict().keys() == keys
        y = model(x, t)
    assert F.cosine_similarity(y.flatten().float(), expected.flatten().float(), 0) > 0.999


# --- compiled ---


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_compiled_it_is_one_graph_with_the_same_bits(backend):
    model = quantize_(transformer(layers=1))
    x, t = inputs()
    with torch.no_grad():
        expected = model(x, t)
        y = torch.compile(model, fullgraph=True, backend=backend)(x, t)
        assert torch.equal(model(x, t), expected)
    if backend == "inductor" and not hasattr(torch._inductor.config, "emulate_precision_casts"):
        pytest.skip(f"Inductor of torch {torch.__version__} rounds in ways of its own")
    assert torch.equal(y, expected)
    assert not residue(model)


def test_compiled_cross_attention_and_gradients():
    model = quantize_(Attention(64))
    x, context = torch.randn(3, 64), torch.randn(7, 64)
    with torch.no_grad():
        expected = quantize_(dequantize_(copy.deepcopy(model)), fuse=False)(x, context)
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
    with torch.no_grad():
        first, second = compiled(x, context), compiled(x, context)
        assert torch.equal(first, second) and torch.equal(second, model(x, context))
    assert (first - expected).norm() < 0.03 * expected.norm() and not residue(model)
    x.requires_grad_()
    compiled(x, context).sum().backward()
    assert torch.isfinite(x.grad).all() and x.grad.abs().sum() > 0


# --- reports ---


def test_a_report_of_a_model():
    model = quantize_(transformer(layers=1))
    x, t = inputs()
    with torch.no_grad():
        model(x, t)
    made = octet.report(model)
    assert (made.native, made.kept, made.fallback) == (7, 5, 0)
    rows = {row.name: row for row in made.rows}
    row = rows["blocks.0.attn.to_k"]
    assert (row.n, row.k, row.m, row.path, row.recipe) == (32, 64, 10, "int8", "convrot:64")
    assert row.kernel and row.device == "cpu" and row.note == "one product of 3 linears"
    assert rows["proj_in"].note == "outside the repeated blocks"
    assert "7 in INT8, 5 kept in floating point, 0 fallbacks" in str(made)
    pipeline = SimpleNamespace(components={"unet": model, "vae": nn.Linear(4, 4), "text": None})
    assert [row.name for row in octet.report(pipeline).rows] == [
        f"unet.{row.name}" for row in made.rows
    ]
    with pytest.raises(TypeError, match="expected a module"):
        octet.report(3)


def test_a_report_of_the_process():
    model = quantize_(nn.Sequential(nn.Linear(48, 80)))
    before = sum(run.count for run in octet.report().runs if (run.n, run.k) == (80, 48))
    model(torch.randn(3, 48))
    after = [run for run in octet.report().runs if (run.n, run.k) == (80, 48)]
    assert sum(run.count for run in after) == before + 1 and after[0].m == 3
    assert "80 x 48" in str(octet.report())


def test_int8_can_be_required():
    model = quantize_(Transformer(dim=64))
    with octet.require_int8(model), torch.no_grad():
        model(*inputs(torch.float32))
    odd = nn.Sequential(nn.Linear(48, 64), nn.ReLU(), nn.Linear(64, 64))
    odd[0].to(torch.float8_e4m3fn)
    assert octet.report(quantize_(odd)).fallback == 1
    with pytest.raises(octet.OctetError, match="0 is not in INT8.*float8"):
        with octet.require_int8(odd):
            pass
    kept = quantize_(nn.Sequential(nn.Linear(48, 64), nn.Linear(64, 64)), filter="1")
    with octet.require_int8(kept):
        pass
