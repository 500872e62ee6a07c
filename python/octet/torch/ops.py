"""The ops `torch.ops.octet.*`: schemas, kernels of CPU and CUDA, shapes, autocast, gradients.

They are plain registrations: the decorator `torch.library.custom_op` adds 2.5 us to each call, 6
with gradients on (torch 2.15, a Xeon). torch's dispatcher takes as much again (2.4 us, an H200's
host), so `functional.py` bypasses it where nothing in it would act.

Gradients are those of the linear in floating point, with the weight's values (the rounding of x is
ignored): enough to train what surrounds frozen INT8 linears.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from octet._checks import check_device, check_parts, check_tensor
from octet.torch import codes as codes_calls
from octet.torch import runtime
from octet.torch.private import below_autograd, check, is_transformed
from octet.torch.private import round_as_eager_mode, without_autocast
from octet.torch.rotation import dequantize_rows

_library = torch.library.Library("octet", "DEF")

_OPTIONS = (
    "Tensor? smooth=None, int rotation_group=0, bool gate_up=False, ScalarType? out_dtype=None"
)
for _schema in (
    f"int8_linear(Tensor x, Tensor weight, Tensor weight_scale, Tensor? bias=None, *, {_OPTIONS})"
    " -> Tensor",
    "int8_linear_parts(Tensor x, Tensor[] weights, Tensor[] weight_scales, Tensor[] biases, *, "
    f"{_OPTIONS}) -> Tensor",
    "quantize_rows(Tensor x, Tensor? smooth=None, int rotation_group=0) -> (Tensor, Tensor)",
    "int8_linear_codes(Tensor codes, Tensor scales, Tensor weight, Tensor weight_scale, "
    "Tensor? bias, bool gate_up, ScalarType out_dtype) -> Tensor",
    "int8_mm(Tensor a, Tensor b) -> Tensor",
):
    _library.define(_schema, tags=(torch.Tag.pt2_compliant_tag,))


def _run_linear(
    x, weight, weight_scale, bias=None, *, smooth=None, rotation_group=0, gate_up=False,
    out_dtype=None,
):  # fmt: skip
    biased = bias is not None
    tensors = (weight, weight_scale, bias) if biased else (weight, weight_scale)
    if smooth is not None:
        tensors += (smooth,)
    rows = runtime.rows_of(tensors, (1, biased, rotation_group, gate_up))
    return runtime.linear(x, rows, out_dtype)


def _run_parts(
    x, weights, weight_scales, biases, *, smooth=None, rotation_group=0, gate_up=False,
    out_dtype=None,
):  # fmt: skip
    check_parts(weights, weight_scales, biases)
    tensors = (*weights, *weight_scales, *biases)
    if smooth is not None:
        tensors += (smooth,)
    rows = runtime.rows_of(tensors, (len(weights), bool(biases), rotation_group, gate_up))
    return runtime.linear(x, rows, out_dtype)


for _name, _kernel in (
    ("int8_linear", _run_linear),
    ("int8_linear_parts", _run_parts),
    ("quantize_rows", codes_calls.quantize_rows),
    ("int8_linear_codes", codes_calls.linear_codes),
    ("int8_mm", codes_calls.mm),
):
    _library.impl(_name, _kernel, "CPU")
    _library.impl(_name, _kernel, "CUDA")


# --- shapes, for tracing ---

_same_bits = True


def same_bits_when_compiled(enable: bool = True) -> None:
    """Whether torch.compile rounds between INT8 linears as eager mode does (the default).

    Inductor keeps bfloat16 values in float32 between the ops that it fuses, so that a model's bits
    change when it is compiled. When it meets an op of this library, its setting against that,
    `torch._inductor.config.emulate_precision_casts`, is turned on for the whole process.
    """
    global _same_bits
    _same_bits = enable


def _outputs(weights: Sequence[Tensor], gate_up: bool) -> int:
    rows = sum(weight.shape[0] for weight in weights)
    return rows // 2 if gate_up else rows


def _check_inputs(x: Tensor, weight: Tensor) -> None:
    if _same_bits:
        round_as_eager_mode()
    check(
        weight.dim() == 2 and x.dim() > 0 and x.shape[-1] == weight.shape[1],
        lambda: f"`x` is {list(x.shape)}, `weight` is {list(weight.shape)}; "
        "expected [..., inputs] and [outputs, inputs]",
    )


def _check_devices(x: Tensor, **others: Tensor | Sequence[Tensor] | None) -> None:
    """One tensor on meta is enough for torch to ask for a shape, and to take memory that nothing
    was written to for the result."""
    for name, given in others.items():
        for one in (given,) if given is None or isinstance(given, Tensor) else given:
            if one is not None:
                check_device(name, one, x.device)


@torch.library.register_fake("octet::int8_linear", lib=_library)
def _fake_linear(x, weight, weight_scale, bias=None, **options):
    return _fake_parts(x, [weight], [weight_scale], [] if bias is None else [bias], **options)


@torch.library.register_fake("octet::int8_linear_parts", lib=_library)
def _fake_parts(
    x, weights, weight_scales, biases, *, smooth=None, rotation_group=0, gate_up=False,
    out_dtype=None,
):  # fmt: skip
    _check_inputs(x, weights[0])
    _check_devices(x, weight=weights, weight_scale=weight_scales, bias=biases, smooth=smooth)
    return x.new_empty((*x.shape[:-1], _outputs(weights, gate_up)), dtype=out_dtype or x.dtype)


@torch.library.register_fake("octet::quantize_rows", lib=_library)
def _fake_quantize_rows(x, smooth=None, rotation_group=0):
    _check_devices(x, smooth=smooth)
    return x.new_empty(x.shape, dtype=torch.int8), x.new_empty(x.shape[:-1], dtype=torch.float32)


@torch.library.register_fake("octet::int8_linear_codes", lib=_library)
def _fake_linear_codes(codes, scales, weight, weight_scale, bias, gate_up, out_dtype):
    _check_inputs(codes, weight)
    _check_devices(codes, scales=scales, weight=weight, weight_scale=weight_scale, bias=bias)
    return codes.new_empty((*codes.shape[:-1], _outputs([weight], gate_up)), dtype=out_dtype)


@torch.library.register_fake("octet::int8_mm", lib=_library)
def _fake_mm(a, b):
    _check_devices(a, b=b)
    return a.new_empty((a.shape[0], b.shape[1]), dtype=torch.int32)


# --- autocast: x in its dtype, as for torch.nn.functional.linear ---


def _with_autocast(op, device_type: str):
    quiet = without_autocast(device_type)

    def run(x: Tensor, *args, **options):
        dtype = torch.get_autocast_dtype(device_type)
        eligible = x.is_floating_point() and x.dtype != torch.float64
        with quiet():
            return op(x.to(dtype) if eligible else x, *args, **options)

    return run


for _device_type in ("cpu", "cuda"):
    for _name in ("int8_linear", "int8_linear_parts"):
        _op = getattr(torch.ops.octet, _name).default
        _library.impl(
            _name, _with_autocast(_op, _device_type), f"Autocast{_device_type.upper()}"
        )


# --- gradients ---


def _silu_gradients(gate: Tensor, up: Tensor, grad: Tensor) -> Tensor:
    """Of silu(gate) * up, for gate and up side by side."""
    share = torch.sigmoid(gate)
    of_gate = grad * up * share * (1 + gate * (1 - share))
    return torch.cat([of_gate, grad * gate * share], dim=-1)


class DifferentiableLinear(torch.autograd.Function):
    """Of x, smooth, other options, the number of weights, and weights, scales and biases."""

    @staticmethod
    def forward(x, smooth, options, parts, *tensors):
        weights, scales = tensors[:parts], tensors[parts : 2 * parts]
        with below_autograd():
            return torch.ops.octet.int8_linear_parts.default(
                x, weights, scales, tensors[2 * parts :], smooth=smooth, **options
            )

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, smooth, options, parts, *tensors = inputs
        ctx.save_for_backward(x, smooth, *tensors)
        ctx.rotation_group, ctx.gate_up = options.get("rotation_group", 0), options.get("gate_up")
        ctx.parts = parts

    @staticmethod
    def vmap(info, in_dims, x, smooth, options, parts, *tensors):
        given, dims = (smooth, *tensors), (in_dims[1], *in_dims[4:])
        if all(dim is None for dim in dims):  # rows of x may have any leading dimensions
            x = x.movedim(in_dims[0], 0)
            return DifferentiableLinear.apply(x, smooth, options, parts, *tensors), 0
        made = []
        for i in range(info.batch_size):
            one, smooth, *tensors = (
                tensor if dim is None else tensor.select(dim, i)
                for tensor, dim in zip((x, *given), (in_dims[0], *dims))
            )
            made.append(DifferentiableLinear.apply(one, smooth, options, parts, *tensors))
        return torch.stack(made), 0

    @staticmethod
    def backward(ctx, grad):
        x, smooth, *tensors = ctx.saved_tensors
        parts, group = ctx.parts, ctx.rotation_group
        weights, scales, biases = tensors[:parts], tensors[parts : 2 * parts], tensors[2 * parts :]
        if ctx.gate_up:
            if is_transformed():  # torch.func does not reach the gradients of an op
                options = {"rotation_group": group}
                both = DifferentiableLinear.apply(x, smooth, options, parts, *weights, *scales)
            else:
                both = torch.ops.octet.int8_linear_parts.default(
                    x, weights, scales, [], smooth=smooth, rotation_group=group
                )
            grad = _silu_gradients(*both.float().chunk(2, dim=-1), grad.float())
        grad_x = None
        if ctx.needs_input_grad[0]:
            values = torch.cat(
                [
                    dequantize_rows(weight, scale, smooth, group, x.dtype)
                    for weight, scale in zip(weights, scales)
                ]
            )
            grad_x = grad.to(x.dtype) @ values
        sums = grad.reshape(-1, grad.shape[-1]).sum(0)
        grad_biases = [
            part.to(bias.dtype)
            for part, bias in zip(sums.split([weight.shape[0] for weight in weights]), biases)
        ]
        return (grad_x, *(None,) * (3 + 2 * parts), *grad_biases)


def _wants_gradient(x: Tensor, biases: Sequence[Tensor]) -> bool:
    check_tensor("x", x)  # torch treats None as an undefined tensor
    return torch.is_grad_enabled() and (
        x.requires_grad or any(bias.requires_grad for bias in biases)
    )


def _differentiable_linear(x, weight, weight_scale, bias=None, *, smooth=None, **options):
    biases = [] if bias is None else [bias]
    if _wants_gradient(x, biases):
        return DifferentiableLinear.apply(x, smooth, options, 1, weight, weight_scale, *biases)
    with below_autograd():
        return torch.ops.octet.int8_linear.default(
            x, weight, weight_scale, bias, smooth=smooth, **options
        )


def _differentiable_parts(x, weights, weight_scales, biases, *, smooth=None, **options):
    if _wants_gradient(x, biases):
        tensors = (*weights, *weight_scales, *biases)
        return DifferentiableLinear.apply(x, smooth, options, len(weights), *tensors)
    with below_autograd():
        return torch.ops.octet.int8_linear_parts.default(
            x, weights, weight_scales, biases, smooth=smooth, **options
        )


_library.impl("int8_linear", _differentiable_linear, "Autograd")
_library.impl("int8_linear_parts", _differentiable_parts, "Autograd")
