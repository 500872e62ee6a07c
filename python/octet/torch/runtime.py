"""The engine's calls on torch tensors: checked, on the caller's stream, in torch's memory.

Every microsecond here is paid for each linear of a model. So a weight is checked once, and the
result kept on its tensor object, as `Rows`: another object, address or (if something was copied)
version makes a new one. It is freed with the tensor; a table by address would not notice that.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

import torch
from torch import Tensor

from octet import _checks as checks
from octet import _octet
from octet.errors import refuse
from octet.report import Run, run_of
from octet.torch import dialect
from octet.torch.private import current_device, current_stream
from octet.torch.private import empty_strided_cpu, empty_strided_cuda

# Dtypes of activations, outputs and biases, with the engine's numbers.
DTYPES = {getattr(torch, name): code for name, code in checks.FLOATS.items()}
_HOST = -1  # what Tensor.get_device() returns for CPUs
_data_ptr = Tensor.data_ptr

_engines: dict[int, _octet.Device] = {}
_lock = threading.Lock()


def engine(index: int) -> _octet.Device:
    """The engine on a GPU, or on the CPU for -1; opened once, with as many threads as torch."""
    device = _engines.get(index)
    if device is None:
        with _lock:
            device = _engines.get(index)
            if device is None:
                name = "cpu" if index == _HOST else f"cuda:{index}"
                device = _octet.Device(name, torch.get_num_threads() if index == _HOST else 0)
                _engines[index] = device
    return device


# A child process lacks the threads of its parent's engines.
os.register_at_fork(after_in_child=_engines.clear)


def engine_of(tensor: Tensor) -> _octet.Device:
    if tensor.is_cuda:
        return engine(tensor.get_device())
    if tensor.is_cpu:
        return engine(_HOST)
    checks.wrong_value("x", tensor, "it on a CPU or an NVIDIA GPU; move it, or keep the linear")


@cache
def allocator(index: int) -> Callable[[int], Tensor]:
    """Allocates bytes on a device."""
    device = "cpu" if index == _HOST else f"cuda:{index}"
    return partial(torch.empty, dtype=torch.uint8, device=device)


class Rows:
    """A weight of one or more consecutive parts, checked, in the engine's form."""

    __slots__ = (
        *("others", "ids", "addresses", "versions", "options", "held", "engine", "index", "device"),
        *("n", "k", "outputs", "group", "gate_up", "weight", "kernel", "m", "run"),
    )
    weight: _octet.Weight
    kernel: str
    m: int
    run: Run

    def __init__(self, tensors: tuple[Tensor, ...], options: tuple[int, bool, int, bool]) -> None:
        """`tensors`: parts of the weight, as many scales, as many biases or none, smooth or none;
        `options`: the number of parts, whether there are biases, rotation group, gate_up."""
        parts, biased, self.group, self.gate_up = options
        # Not the first tensor, which keeps this object: only the collector could free the cycle.
        self.others, self.options = tensors[1:], options
        self.ids = list(map(id, self.others))
        weights, scales = tensors[:parts], tensors[parts : 2 * parts]
        biases = tensors[2 * parts : 3 * parts] if biased else ()
        smooth = tensors[-1] if len(tensors) > 2 * parts + len(biases) else None
        self.kernel, self.m = "", 0
        self.held: list[Tensor] = []  # copies whose addresses are used
        self.device = weights[0].device
        if not isinstance(self.gate_up, bool):
            refuse("gate_up", f"`gate_up` is {self.gate_up!r}; expected True or False")
        for tensor in tensors:  # addresses do not show it
            if tensor.is_neg():
                checks.wrong_value("weight", tensor, "no negative view; call resolve_neg()")
        _check_parts(weights, scales, biases, smooth, self.device)
        self.addresses = [checks.check_memory("weight", tensor) for tensor in tensors]
        self.n, self.k = sum(weight.shape[0] for weight in weights), weights[0].shape[1]
        self.outputs = self.n // 2 if self.gate_up else self.n
        if self.gate_up and (biased or self.n % 2):
            checks.wrong_value("weight", weights[0], "as many gate rows as up rows, and no bias")
        checks.check_rotation(self.group, self.k)
        self.engine, self.index = engine_of(weights[0]), weights[0].get_device()
        self.versions = []
        if not self.n or not self.k:
            return  # nothing to multiply

        rows = self._joined(weights)
        if rows.stride(1) != 1 or rows.stride(0) < self.k:
            rows = self._hold(rows.contiguous())
        scale = self._joined_scales(weights, scales)
        bias = self._joined(biases) if biased else None
        copied = tensors
        if self.index == _HOST:
            self._pack(rows, scale, bias, smooth)
        else:
            self._borrow(rows, scale, bias, smooth)
            copied = tensors if self.held else ()
        # Tensors of inference mode do not count their changes.
        self.versions = [None if tensor.is_inference() else tensor._version for tensor in copied]

    def fits(self, tensors: tuple[Tensor, ...], options: tuple[int, bool, int, bool]) -> bool:
        """Whether it was made from these tensors, and they are unchanged."""
        # Comparing tensors would compare their elements. None has another id.
        if options != self.options or list(map(id, tensors[1:])) != self.ids:
            return False
        if list(map(_data_ptr, tensors)) != self.addresses:
            return False
        for tensor, version in zip(tensors, self.versions):
            if version is not None and tensor._version != version:
                return False
        return self.index != _HOST or _engines.get(_HOST) is self.engine

    def ran(self, kernel: str, m: int) -> None:
        if kernel is not self.kernel:  # names are interned
            self.run, self.kernel = run_of(kernel, self.n, self.k), kernel
        run = self.run
        self.m = run.m = m
        run.count += 1

    def _hold(self, tensor: Tensor) -> Tensor:
        self.held.append(tensor)
        return tensor

    def _dense(self, tensor: Tensor, dtype: torch.dtype) -> Tensor:
        dense = tensor.detach().reshape(-1).to(dtype).contiguous()
        return tensor if dense.data_ptr() == tensor.data_ptr() else self._hold(dense)

    def _joined(self, parts: tuple[Tensor, ...]) -> Tensor:
        """One tensor of all parts, in place if they lie one after the other in memory."""
        first = parts[0].detach()
        if len(parts) == 1:
            return first
        if not adjoin(parts):
            return self._hold(torch.cat([part.detach() for part in parts]))
        size = (sum(part.shape[0] for part in parts), *first.shape[1:])
        return first.as_strided(size, _dense_strides(size))  # a single row may have any stride

    def _joined_scales(self, weights: tuple[Tensor, ...], scales: tuple[Tensor, ...]) -> Tensor:
        """F32, one for each row, or one for all."""
        if len(scales) == 1:
            return self._dense(scales[0], torch.float32)
        per_row = all(scale.numel() == w.shape[0] for scale, w in zip(scales, weights))
        if per_row and all(scale.dtype == torch.float32 for scale in scales):
            return self._joined(scales)
        return self._hold(
            torch.cat(
                [
                    scale.detach().reshape(-1).float().expand(weight.shape[0])
                    for scale, weight in zip(scales, weights)
                ]
            )
        )

    def _pack(
        self, rows: Tensor, scale: Tensor, bias: Tensor | None, smooth: Tensor | None
    ) -> None:
        dialect.check_scales(scale, "weight_scale")
        rows = rows.contiguous()
        scale = scale.reshape(-1).expand(self.n).contiguous()
        bias = None if bias is None else bias.float().contiguous()
        smooth = None if smooth is None else smooth.detach().float().contiguous()
        self.weight = _octet.PackedWeight(
            *(self.engine, rows.data_ptr(), self.n, self.k, scale.data_ptr()),
            *(_address(bias), _address(smooth), self.group, self.gate_up),
        )
        self.held.clear()  # copied once more, into the packed weight

    def _borrow(
        self, rows: Tensor, scale: Tensor, bias: Tensor | None, smooth: Tensor | None
    ) -> None:
        bias = None if bias is None else self._dense(bias, bias.dtype)
        smooth = None if smooth is None else self._dense(smooth, torch.float32)
        self.weight = _octet.PlainWeight(
            *(rows.data_ptr(), self.n, self.k, rows.stride(0), scale.data_ptr(), scale.numel()),
            *(_address(bias), 0 if bias is None else DTYPES[bias.dtype], _address(smooth)),
            *(self.group, self.gate_up),
        )

    # A copy of the tensor makes its own.
    def __deepcopy__(self, memo: dict[int, Any]) -> None:
        return None

    def __reduce__(self) -> tuple[Any, ...]:
        return (type(None), ())


def _address(tensor: Tensor | None) -> int:
    return 0 if tensor is None else tensor.data_ptr()


def _check_parts(
    weights: tuple[Tensor, ...],
    scales: tuple[Tensor, ...],
    biases: tuple[Tensor, ...],
    smooth: Tensor | None,
    device: torch.device,
) -> None:
    for weight, scale in zip(weights, scales):
        checks.check_int8("weight", weight, "2 dimensions")
        checks.check_device("weight", weight, device)
        checks.check_device("weight_scale", scale, device)
        if weight.shape[1] != weights[0].shape[1]:
            checks.wrong_value("weight", weight, f"[outputs, {weights[0].shape[1]}], as the first")
        checks.check_columns("weight", weight.shape[1])
        if not scale.is_floating_point():
            checks.wrong_type("weight_scale", scale, "float32")
        checks.check_scales(scale, weight.shape[0])
    for weight, bias in zip(weights, biases):
        checks.check_floating("bias", bias)
        checks.check_device("bias", bias, device)
        checks.check_vector("bias", bias, weight.shape[0])
    if smooth is not None:
        checks.check_floating("smooth", smooth)
        checks.check_device("smooth", smooth, device)
        if smooth.numel() != weights[0].shape[1]:
            checks.wrong_value("smooth", smooth, f"[{weights[0].shape[1]}]")


def empty_linear(x: Tensor, rows: Rows, dtype: torch.dtype) -> Tensor:
    """As an nn.Linear without inputs or outputs: its bias, if it has any."""
    y = x.new_zeros((*x.shape[:-1], rows.outputs), dtype=dtype)
    biases = rows.others[2 * rows.options[0] - 1 :] if rows.options[1] else ()
    return y.add_(torch.cat(biases[: rows.options[0]]).to(dtype)) if biases else y


def rows_of(tensors: tuple[Tensor, ...], options: tuple[int, bool, int, bool]) -> Rows:
    """The Rows kept on the first tensor, or new ones."""
    first = tensors[0]
    kept = "_octet_rows" if options[0] == 1 else "_octet_joined_rows"
    rows = getattr(first, kept, None)
    if rows is None or not rows.fits(tensors, options):
        parts, biased = options[:2]
        kinds = ("weight", "weight_scale", "bias") if biased else ("weight", "weight_scale")
        for place, tensor in enumerate(tensors):
            kind = place // parts
            name = kinds[kind] if kind < len(kinds) else "smooth"
            checks.check_tensor(name, tensor)
            if tensor.layout is not torch.strided:
                checks.wrong_value(name, tensor, "a dense one; call to_dense()")
        rows = Rows(tensors, options)
        setattr(first, kept, rows)
    return rows


def forget_rows(weight: Tensor) -> None:
    """Drops the Rows of a tensor that is about to change."""
    for kept in ("_octet_rows", "_octet_joined_rows"):
        vars(weight).pop(kept, None)


def matrix(x: Tensor, k: int) -> tuple[Tensor, int, int]:
    """x as a matrix of k columns, copied if the engine cannot read it; its rows; its stride."""
    if x.is_contiguous():
        return x, x.numel() // k, k
    if x.dim() != 2:
        x = x.reshape(-1, k)
    if x.stride(1) != 1 or x.stride(0) < k:
        x = x.contiguous()
    return x, x.shape[0], x.stride(0)


def linear(x: Tensor, rows: Rows, out_dtype: torch.dtype | None) -> Tensor:
    """y = x W^T with quantized x, and the bias or swiglu of `rows`."""
    dtype, shape, index = x.dtype, x.shape, rows.index
    if dtype not in DTYPES:
        if dtype == torch.int8:
            checks.wrong_type("x", x, "floating point; do not convert it to linear.weight.dtype")
        checks.check_floating("x", x)
    if not shape or shape[-1] != rows.k:
        checks.wrong_value("x", x, f"[..., {rows.k}], the inputs of the weight")
    if x.get_device() != index or x.is_cuda != (index >= 0):
        checks.check_device("x", x, rows.device)
    if out_dtype is not None and out_dtype is not dtype:
        dtype = out_dtype
        if type(dtype) is not torch.dtype or dtype not in DTYPES:
            checks.check_output(dtype)
    if not rows.n or not rows.k:
        return empty_linear(x, rows, dtype)
    y, m, kernel = multiply(rows.engine, rows.weight, index, x, shape, rows.outputs, dtype)
    if m:
        rows.ran(kernel, m)
    return y


def multiply(
    engine: _octet.Device,
    weight: _octet.Weight,
    index: int,
    x: Tensor,
    shape: torch.Size,
    columns: int,
    dtype: torch.dtype,
    stepwise: bool = False,
) -> tuple[Tensor, int, str]:
    """y, its rows and the kernel: x, of that shape, quantized and multiplied by the weight, on the
    device with that number. All shapes fit; y may be empty."""
    k, x_dtype = shape[-1], x.dtype
    x, m, stride = (x, x.numel() // k, k) if x.is_contiguous() else matrix(x, k)
    if index == _HOST:
        make = empty_strided_cpu
    else:  # allocation is on the current GPU
        make = empty_strided_cuda if current_device() == index else None
    size, strides = (m, columns), (columns, 1)
    if len(shape) != 2:
        extents = [*shape]  # slices of a torch.Size take a microsecond
        extents[-1] = columns
        size = tuple(extents)
        strides = _dense_strides(size)
    y = x.new_empty(size, dtype=dtype) if make is None else make(size, strides, dtype)
    if not m or not columns:
        return y, m, ""
    address = x.data_ptr() or checks.check_memory("x", x)
    memory_bytes = memory_address = stream = 0
    if index >= 0:
        memory_bytes = _octet.linear_memory(engine, weight, m)
        if make is None:
            memory = allocator(index)(memory_bytes)
        else:
            memory = make((memory_bytes,), (1,), torch.uint8)
        memory_address, stream = memory.data_ptr(), current_stream(index)
    # Arguments are written out: unpacking them from tuples costs another microsecond.
    # fmt: off
    kernel = _octet.linear(
        engine, stream, memory_address, memory_bytes, allocator(index), weight,
        address, stride, DTYPES[x_dtype], m, y.data_ptr(), columns, DTYPES[dtype], stepwise,
    )
    # fmt: on
    return y, m, kernel


def adjoin(tensors: Sequence[Tensor]) -> bool:
    """Whether they lie one after the other, as one tensor would."""
    first, end = tensors[0], tensors[0].data_ptr()
    # Neighbours by chance, in different storages, are not one tensor.
    storage = first.untyped_storage().data_ptr()
    for tensor in tensors:
        adjoins = tensor.data_ptr() == end and tensor.untyped_storage().data_ptr() == storage
        if not adjoins or not tensor.is_contiguous() or tensor.dtype != first.dtype:
            return False
        end += tensor.numel() * tensor.element_size()
    return True


def _dense_strides(size: tuple[int, ...]) -> tuple[int, ...]:
    strides, step = [], 1
    for extent in reversed(size):
        strides.append(step)
        step *= extent or 1
    return tuple(strides[::-1])
