"""What octet.torch does with a torch that lacks one of its private names.

A second or two after importing torch. The file is run again while torch has the name no more.
"""

from __future__ import annotations

import runpy
import sys
from operator import attrgetter
from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch")

from octet.torch import functional, int8_linear, ops, private, runtime  # noqa: E402

CODES = torch.randint(-127, 128, (32, 64), dtype=torch.int8)
SCALE = torch.rand(32) + 0.1
X = torch.randn(3, 64)


@pytest.fixture
def without(monkeypatch):
    """The names of private.py in a torch without those."""

    def run(*paths: str) -> SimpleNamespace:
        with monkeypatch.context() as change:
            for path in paths:
                owner, _, name = path.rpartition(".")
                change.delattr(attrgetter(owner)(torch) if owner else torch, name)
            return SimpleNamespace(**runpy.run_path(private.__file__))

    return run


def test_a_torch_that_has_them_is_asked_directly(without):
    assert private.is_any_autocast_enabled is torch._C._is_any_autocast_enabled
    assert private.below_autograd is torch._C._AutoDispatchBelowAutograd
    assert private.check is torch._check
    assert without().is_plain(X) and private.is_plain(X)


@pytest.mark.parametrize(
    "path",
    [
        "_C._len_torch_dispatch_stack",
        "_C._functorch.peek_interpreter_stack",
        "autograd._profiler_enabled",
    ],
)
def test_without_what_tells_of_modes_calls_go_through_the_dispatcher(monkeypatch, without, path):
    expected = int8_linear(X, CODES, SCALE)
    lacking = without(path)
    assert not lacking.is_plain(X)
    monkeypatch.delattr(functional, "rows_of")  # which the way around the dispatcher needs
    with pytest.raises(NameError):
        int8_linear(X, CODES, SCALE)
    monkeypatch.setattr(functional, "is_plain", lacking.is_plain)
    assert torch.equal(int8_linear(X, CODES, SCALE), expected)


def test_without_what_makes_tensors_new_empty_does(monkeypatch, without):
    guards = "_C._dynamo.guards._empty_strided"
    lacking = without(f"{guards}_cpu", f"{guards}_cuda")
    assert lacking.empty_strided_cpu is None and lacking.empty_strided_cuda is None
    expected = int8_linear(X[None], CODES, SCALE)
    monkeypatch.setattr(runtime, "empty_strided_cpu", lacking.empty_strided_cpu)
    y = int8_linear(X[None], CODES, SCALE)
    assert torch.equal(y, expected) and y.stride() == expected.stride()


def test_streams_and_devices_by_the_public_functions(monkeypatch, without):
    names = ("_C._cuda_getCurrentRawStream", "_C._cuda_getDevice")
    lacking = without(*(name for name in names if hasattr(torch._C, name[3:])))
    monkeypatch.setattr(
        torch.cuda, "current_stream", lambda index: SimpleNamespace(cuda_stream=100 + index)
    )
    assert lacking.current_stream(3) == 103
    assert lacking.current_device is torch.cuda.current_device


def test_autocast_by_the_public_functions(monkeypatch, without):
    lacking = without("_C._is_any_autocast_enabled", "_C._ExcludeDispatchKeyGuard")
    assert not lacking.is_any_autocast_enabled() and lacking.is_plain(X)
    monkeypatch.setattr(ops, "without_autocast", lacking.without_autocast)
    run = ops._with_autocast(torch.ops.octet.int8_linear.default, "cpu")
    with torch.autocast("cpu", torch.bfloat16):
        assert lacking.is_any_autocast_enabled() and not lacking.is_plain(X)
        y, expected = run(X, CODES, SCALE), int8_linear(X, CODES, SCALE)
    assert y.dtype == torch.bfloat16 and torch.equal(y, expected)


def test_traces_and_checks_by_other_ways(without):
    lacking = without("_C._is_tracing", "_check")
    assert lacking.is_plain(X)
    assert lacking.is_plain.__globals__["_is_tracing"] is torch.jit.is_tracing
    lacking.check(True, lambda: "not said")
    with pytest.raises(RuntimeError, match="a sentence"):
        lacking.check(False, lambda: "a sentence")


def test_what_has_no_other_way_is_one_clear_error(without):
    name = "_C._AutoDispatchBelowAutograd"
    with pytest.raises(ImportError, match=f"needs torch.{name}, which torch 2.* lacks; expected"):
        without(name)


@pytest.mark.parametrize("setting", [None, True, False])
def test_inductor_is_told_where_it_knows_the_setting(monkeypatch, setting):
    config = SimpleNamespace(**({} if setting is None else {"emulate_precision_casts": setting}))
    monkeypatch.setitem(sys.modules, "torch._inductor.config", config)
    private.round_as_eager_mode()
    assert vars(config) == ({} if setting is None else {"emulate_precision_casts": True})
    monkeypatch.delitem(sys.modules, "torch._inductor.config")
    private.round_as_eager_mode()  # Inductor is not at work
