"""exp, pow, sin and cos of float32 as every machine computes them: in double, rounded once.

Torch's own are right to an ulp or so, and which ulp depends on the processor: on aarch64 a tenth of
the frequencies of the time embedding differ from those of x86-64 in the last place. An angle is a
frequency times up to 65536 (positions) or 1e4 (times), so that last place comes out as 1e-3 rad. It
would be the largest difference between Octet and the reference by far, and says nothing of either.
Everything else stays torch's: what a frequency is, where it is rounded, and all other functions.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch.overrides import TorchFunctionMode

_FUNCTIONS = {
    *(torch.exp, torch.pow, torch.sin, torch.cos),
    *(torch.Tensor.exp, torch.Tensor.pow, torch.Tensor.sin, torch.Tensor.cos),
    *(torch.Tensor.__pow__, torch.Tensor.__rpow__),
}


class _InDouble(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        tensors = [value for value in args if isinstance(value, torch.Tensor)]
        if func not in _FUNCTIONS or any(tensor.dtype != torch.float32 for tensor in tensors):
            return func(*args, **kwargs)
        args = [value.double() if isinstance(value, torch.Tensor) else value for value in args]
        return func(*args, **kwargs).float()


@contextmanager
def exactly_rounded() -> Iterator[None]:
    """Around a block, or as @exactly_rounded() before a function."""
    with _InDouble():
        yield
