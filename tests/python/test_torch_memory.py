"""Memory of models in INT8: when it is freed, and what of it goes into files and copies."""

from __future__ import annotations

import copy
import gc
import io
import os
import pickle
import stat
import weakref
from multiprocessing.context import set_spawning_popen
from multiprocessing.reduction import ForkingPickler

import pytest

torch = pytest.importorskip("torch")

from octet.torch import Int8Linear, quantize_  # noqa: E402
from small_models import Attention, Block, SwiGlu, inputs, transformer  # noqa: E402
from torch import nn  # noqa: E402


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)


@pytest.fixture
def without_collector():
    gc.disable()
    yield
    gc.enable()


def watched(model: nn.Module) -> list[weakref.ref]:
    storages = [weakref.ref(m.weight) for m in model.modules() if isinstance(m, Int8Linear)]
    return [*storages, weakref.ref(model)]


def size_of(saved) -> int:
    file = io.BytesIO()
    torch.save(saved, file)
    return file.tell()


@pytest.mark.parametrize("copied", [False, True])
@pytest.mark.parametrize("mode", [torch.no_grad, torch.enable_grad])
def test_a_fused_model_is_freed_with_its_last_reference(without_collector, mode, copied):
    model = quantize_(transformer())
    if copied:
        model = copy.deepcopy(model)
    with mode():
        model(*inputs())
    seen = watched(model)
    assert len(seen) > 10 and all(ref() is not None for ref in seen)
    del model
    assert all(ref() is None for ref in seen)


def test_an_error_keeps_nothing(without_collector):
    """It held the frame that raised it, and with that all others; quantize_() itself tries out
    blocks on stand-ins, and discards their errors."""

    class Alike(nn.Module):  # not a SwiGLU, which only its linear's error shows
        def __init__(self) -> None:
            super().__init__()
            self.w1, self.w3 = nn.Linear(64, 128, bias=False), nn.Linear(64, 128, bias=False)
            self.w2, self.first = nn.Linear(128, 64, bias=False), nn.Linear(64, 64)

        def forward(self, x):
            x = self.first(x)
            return self.w2(nn.functional.silu(self.w1(x)) * self.w3(x))

    model = quantize_(nn.Sequential(Alike(), Alike()))
    with pytest.raises(ValueError, match="expected"):
        model(torch.randn(3, 63))
    seen = watched(model)
    del model
    assert all(ref() is None for ref in seen)


def test_a_member_that_was_removed(without_collector):
    model = quantize_(Attention(64))
    x = torch.randn(3, 64)
    with torch.no_grad():
        q, v = model.to_q(x), (model.to_k(x), model.to_v(x))[1]
        seen = weakref.ref(model.to_k)
        del model.to_k
        assert seen() is None
        for _ in range(3):
            assert torch.equal(model.to_q(x), q) and torch.equal(model.to_v(x), v)
    assert model.to_q.shared.mates_of(0) == [model.to_q, model.to_v]


# --- files ---


def test_a_file_of_one_member_has_nothing_of_the_others():
    model = quantize_(Block(256))
    model(torch.randn(3, 256), torch.randn(256))
    for linear in (model.attn.to_k, model.feed_forward.w1):
        own = linear.weight.numel() + 4 * linear.weight_scale.numel()
        assert linear.weight.untyped_storage().nbytes() > linear.weight.numel()  # it is fused
        for saved in (linear, linear.state_dict()):
            assert own < size_of(saved) < own + 8192
        assert len(pickle.dumps(linear)) < own + 8192
    # Those that are saved together are written once each.
    codes = sum(m.weight.numel() for m in model.modules() if isinstance(m, Int8Linear))
    for saved in (model, model.state_dict()):
        rest = sum(p.numel() * p.element_size() for p in model.parameters())
        assert codes < size_of(saved) < codes + rest + 40_000


def test_a_module_that_holds_some_of_those_that_share():
    class Parallel(nn.Module):  # as in Flux: the feed-forward part has attention's input
        def __init__(self) -> None:
            super().__init__()
            self.attn, self.proj_mlp = Attention(256), nn.Linear(256, 4096, bias=False)

    model = quantize_(Parallel())
    assert len(model.proj_mlp.shared.members()) == 4
    assert size_of(model.attn.state_dict()) < 400_000 < 4096 * 256


def test_a_state_dict_of_a_whole_model_is_of_its_own_tensors():
    model = quantize_(Attention(64))
    state = model.state_dict()
    for name in ("to_q", "to_k", "to_v"):
        linear = getattr(model, name)
        assert state[f"{name}.weight"].data_ptr() == linear.weight.data_ptr()
    # Each in a storage of its own: others take tensors of one storage for copies of each other.
    for part in (state, model.to_k.state_dict()):
        for tensor in part.values():
            assert tensor.untyped_storage().nbytes() == tensor.numel() * tensor.itemsize
    kept = model.to_k.state_dict(keep_vars=True)
    assert kept["weight"] is model.to_k.weight


def test_files_of_safetensors_and_accelerate_have_all_of_it(tmp_path):
    """Both look for shared storages; the latter left k and v out of its file."""
    load_file = pytest.importorskip("safetensors.torch").load_file
    save_model = pytest.importorskip("safetensors.torch").save_model
    model = quantize_(Attention(64, bias=True))
    save_model(model, tmp_path / "a.safetensors")
    pytest.importorskip("accelerate").Accelerator(cpu=True).save_model(model, tmp_path / "b")
    for file in (tmp_path / "a.safetensors", tmp_path / "b" / "model.safetensors"):
        stored = load_file(file)
        assert stored.keys() == model.state_dict().keys()
        assert all(torch.equal(stored[key], value) for key, value in model.state_dict().items())


def test_what_is_written_through_a_state_dict_arrives():
    model, other = quantize_(Attention(64, bias=True)), quantize_(Attention(64, bias=True))
    x = torch.randn(3, 64)
    with torch.no_grad():
        expected = other(x)
        assert not torch.equal(model(x), expected)  # and packs the weights
        own = model.state_dict()
        for key, value in other.state_dict().items():
            own[key].copy_(value)
        assert torch.equal(model(x), expected)
        own["to_k.weight"].zero_()  # after the weights were packed
        assert not torch.equal(model(x), expected)


def test_a_state_dict_outlives_its_model():
    state = quantize_(Attention(64)).state_dict()
    kept = {key: value.clone() for key, value in state.items()}
    torch.randn(50, 64, 64)  # would take the memory
    assert all(torch.equal(state[key], value) for key, value in kept.items())


# --- copies ---


@pytest.mark.parametrize("how", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
def test_copies_share_among_themselves_alone(how):
    model = quantize_(nn.Sequential(Attention(64, bias=True), SwiGlu(64)))
    x = torch.randn(3, 64)
    with torch.no_grad():
        expected = model(x)
        other = how(model)
        assert torch.equal(other(x), expected)
        group = other[0].to_q.shared
        assert group is not model[0].to_q.shared
        assert group.mates_of(0) == [other[0].to_q, other[0].to_k, other[0].to_v]
        end = group.mates_of(0)[0].weight.data_ptr() + 64 * 64
        assert other[0].to_k.weight.data_ptr() == end
        assert type(other[1]).__name__ == "SwiGlu" and hasattr(type(other[1]), "swiglu_of")
        alone = how(model[0].to_k)
        assert alone.shared.members() == [alone]
        assert torch.equal(alone(x), model[0].to_k(x))


def test_on_its_way_to_a_spawned_process():
    """It takes over files by their numbers, which must be open until it is started."""

    class Process:
        DupFd = int

        def __init__(self) -> None:
            self.files = []

        def duplicate_for_child(self, file: int) -> int:
            self.files.append(file)
            return file

    model, process = quantize_(Attention(64, bias=True)), Process()
    set_spawning_popen(process)
    try:
        ForkingPickler.dumps(model)
    finally:
        set_spawning_popen(None)
    assert len(process.files) >= 12
    assert all(stat.S_ISREG(os.fstat(file).st_mode) for file in process.files)


def test_a_shallow_copy_stands_alone():
    model = quantize_(Attention(64))
    x = torch.randn(3, 64)
    other = copy.copy(model.to_k)
    with torch.no_grad():
        assert other.shared is None and model.to_k.shared.members()[1] is model.to_k
        assert torch.equal(other(x), model.to_k(x))
