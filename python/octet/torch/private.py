"""Undocumented names of torch, each looked up once, here and nowhere else.

If torch lacks one, the public alternative next to it is used. Without the three that report modes,
transforms and profilers, every call goes through torch's dispatcher, 2.4 us longer; without those
that make tensors, `new_empty()` does. A name without an alternative is an ImportError.
Attributes of nn.Module that its subclasses have always shared (`_buffers`, `_modules`, `_apply`,
hooks) are used where they are needed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from operator import attrgetter
from typing import Any

import torch

_NO_OTHER_WAY = object()


def _find(path: str, otherwise: Any = _NO_OTHER_WAY) -> Any:
    try:
        return attrgetter(path)(torch)
    except AttributeError:
        if otherwise is _NO_OTHER_WAY:
            raise ImportError(
                f"octet.torch needs torch.{path}, which torch {torch.__version__} lacks; expected "
                "a torch that has it, such as 2.15; install one, or a newer Octet"
            ) from None
        return otherwise


def _public_stream(index: int) -> int:
    return torch.cuda.current_stream(index).cuda_stream


def _public_autocast() -> bool:
    return torch.is_autocast_enabled("cpu") or torch.is_autocast_enabled("cuda")


def _plain_check(condition: bool, message: Callable[[], str]) -> None:
    if not condition:
        raise RuntimeError(message())


# Also missing in a torch without CUDA, which never calls them.
current_stream = _find("_C._cuda_getCurrentRawStream", _public_stream)
current_device = _find("_C._cuda_getDevice", torch.cuda.current_device)

# As in Inductor's code: a third of the cost of torch.empty().
empty_strided_cpu = _find("_C._dynamo.guards._empty_strided_cpu", None)
empty_strided_cuda = _find("_C._dynamo.guards._empty_strided_cuda", None)

is_any_autocast_enabled = _find("_C._is_any_autocast_enabled", _public_autocast)
_is_tracing = _find("_C._is_tracing", torch.jit.is_tracing)
# If it cannot be asked, assume that there is one.
_count_modes = _find("_C._len_torch_dispatch_stack", lambda: 1)
_innermost_transform = _find("_C._functorch.peek_interpreter_stack", lambda: "unknown")
_is_profiling = _find("autograd._profiler_enabled", lambda: True)

check = _find("_check", _plain_check)  # sizes may be symbols
below_autograd = _find("_C._AutoDispatchBelowAutograd")


# Tensors whose address is that of their numbers; other classes may keep them elsewhere.
PLAIN = (torch.Tensor, torch.nn.Parameter)


def is_plain(x: torch.Tensor) -> bool:
    """Whether a kernel may be called directly: no mode, transform, trace, autocast or gradient."""
    return (
        type(x) in PLAIN
        and (x.is_cpu or x.is_cuda)
        and not (x.requires_grad and torch.is_grad_enabled())
        and not _count_modes()
        and not is_any_autocast_enabled()
        and not _is_profiling()
        and not _is_tracing()
        and _innermost_transform() is None
        and not x.is_neg()
        and x.layout is torch.strided
        and not x.is_nested
    )


def is_transformed() -> bool:
    """Whether torch.func transforms what is called now."""
    return _innermost_transform() is not None


def without_autocast(device_type: str) -> Callable[[], AbstractContextManager[Any]]:
    """Makes contexts in which calls do not return to the kernel for autocast."""
    key = _find(f"_C.DispatchKey.Autocast{device_type.upper()}", None)
    key_set, exclude = _find("_C.DispatchKeySet", None), _find("_C._ExcludeDispatchKeyGuard", None)
    if None in (key, key_set, exclude):
        return partial(torch.autocast, device_type, enabled=False)
    return partial(exclude, key_set(key))


def drop_from_config(model: torch.nn.Module, key: str) -> None:
    """The opposite of register_to_config() of diffusers, which can only add."""
    config = model._internal_dict
    model._internal_dict = type(config)({k: v for k, v in config.items() if k != key})


def round_as_eager_mode() -> None:
    """Tells Inductor, if it is compiling, not to keep float32 between the ops that it fuses."""
    config = sys.modules.get("torch._inductor.config")
    if not getattr(config, "emulate_precision_casts", True):
        config.emulate_precision_casts = True
