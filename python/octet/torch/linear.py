"""Int8Linear: a linear with INT8 rows that replaces an `nn.Linear`."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from multiprocessing.context import get_spawning_popen
from typing import Any

import torch
from torch import Tensor, nn

from octet._checks import check_floating, check_tensor, describe
from octet._recipes import Recipe, parse_recipe
from octet.errors import OctetError, one_line, refuse, refuse_type, shown
from octet.report import Row, note_fallback
from octet.torch import dialect
from octet.torch.dialect import Marker
from octet.torch.functional import int8_linear, quantize_rows
from octet.torch.private import PLAIN
from octet.torch.rotation import dequantize_rows
from octet.torch.runtime import DTYPES, forget_rows
from octet.torch.shared import SharedInput

_KEYS = ("weight", "weight_scale", "comfy_quant", "pre_quant_scale", "bias")
_IGNORED_KEYS = ("input_scale",)  # of static activations, which nothing here uses


class Int8Linear(nn.Linear):
    """y = x W^T + bias, with W as INT8 rows and x quantized row by row in each call.

    Buffers: `weight` int8 [out_features, in_features], `weight_scale` float32 [out_features, 1],
    `pre_quant_scale` float32 [in_features] or None. The state dict is in ComfyUI's dialect
    int8_tensorwise, with the additional tensor `comfy_quant`; a floating-point `weight` that is
    loaded is quantized with the module's recipe. It is an `nn.Linear` so that adapters find it.
    """

    weight: Tensor
    weight_scale: Tensor
    pre_quant_scale: Tensor | None

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
        *,
        recipe: str | Recipe = "convrot",
    ) -> None:
        """All zeros, to be loaded; `dtype` is that of the bias and of dequantize()'s result."""
        for name, size in (("in_features", in_features), ("out_features", out_features)):
            if not isinstance(size, int) or size < 0:
                refuse_type(name, f"`{name}` is {shown(size)}; expected a whole number from 0 up")
        nn.Module.__init__(self)
        self.in_features, self.out_features = in_features, out_features
        self.recipe = parse_recipe(recipe)
        self.rotation_group = self.recipe.group_for(in_features)
        self.full_precision = False
        self.float_dtype = dtype or torch.get_default_dtype()
        if self.float_dtype not in DTYPES:
            words = "float32, bfloat16 or float16"
            refuse_type("dtype", f"`dtype` is {one_line(str(self.float_dtype))}; expected {words}")
        self.shared: SharedInput | None = None
        self.place = 0  # among those that share the input
        with torch.inference_mode(False):  # its tensors do not count their changes
            codes = torch.zeros((out_features, in_features), dtype=torch.int8, device=device)
            scales = torch.zeros((out_features, 1), dtype=torch.float32, device=device)
            zeros = torch.zeros(out_features if bias else 0, dtype=self.float_dtype, device=device)
        self.register_buffer("weight", codes)
        self.register_buffer("weight_scale", scales)
        self.register_buffer("pre_quant_scale", None)
        self.register_parameter("bias", nn.Parameter(zeros, requires_grad=False) if bias else None)

    @classmethod
    def from_linear(
        cls, linear: nn.Linear, recipe: str | Recipe = "convrot", name: str = "weight"
    ) -> Int8Linear:
        """The same linear in INT8; errors call its weight by `name`."""
        if not isinstance(linear, nn.Linear):
            refuse_type("linear", f"`linear` is {type(linear).__name__}; expected an nn.Linear")
        weight = linear.weight
        check_floating(name, weight)
        made = cls(
            *(linear.in_features, linear.out_features, False, "meta", weight.dtype), recipe=recipe
        )
        if linear.bias is not None:
            with torch.inference_mode(False):
                bias = linear.bias.detach()
                bias = bias.clone() if bias.is_inference() else bias
                made.bias = nn.Parameter(bias, requires_grad=False)
        made.quantize_weight(weight, name)
        made.train(linear.training)
        return made

    @torch.no_grad()
    def quantize_weight(self, weight: Tensor, name: str = "weight") -> None:
        """Quantizes a floating-point weight on its device, to the same bits as in Octet's files."""
        check_tensor(name, weight)
        _check_shape(weight, (self.out_features, self.in_features), name)
        device = weight.device
        if weight.is_meta:
            codes = torch.empty_like(weight, dtype=torch.int8)
            scales = torch.empty(weight.shape[:1], device=device)
        else:
            with torch.inference_mode(False):
                rows = weight.detach() if weight.is_cpu or weight.is_cuda else weight.detach().cpu()
                check_floating(name, rows)
                codes, scales = quantize_rows(rows, self.rotation_group)
                codes, scales = codes.to(device), scales.to(device)
            dialect.check_scales(scales, name)
        self.weight, self.weight_scale = codes, scales.reshape(-1, 1)
        self.pre_quant_scale, self.full_precision = None, False

    def forward(self, input: Tensor) -> Tensor:  # by this name as well, as that of nn.Linear
        if self.shared is not None:
            return self.shared.product(self, input)
        return self.product(input)

    def product(self, x: Tensor) -> Tensor:
        """y of only this linear."""
        buffers = self._buffers
        if self.full_precision:
            note_fallback(f"{self.in_features} x {self.out_features} linear", self.path)
            return nn.functional.linear(x, self.dequantize(x.dtype), self.bias)
        weight = buffers.get("weight")
        return int8_linear(
            x,
            self.weight if weight is None else weight,  # computed, with a parametrization
            buffers["weight_scale"],
            self._parameters["bias"],
            smooth=buffers["pre_quant_scale"],
            rotation_group=self.rotation_group,
        )

    def dequantize(self, dtype: torch.dtype | None = None) -> Tensor:
        """The weight in floating point, for activations without a transform."""
        return dequantize_rows(
            *(self.weight, self.weight_scale, self.pre_quant_scale, self.rotation_group),
            dtype or self.float_dtype,
        )

    @property
    def W_q(self) -> Tensor:
        """PEFT calls dequantize() of modules with this name, and takes `weight` of others."""
        return self.weight

    def to_linear(self) -> nn.Linear:
        """An `nn.Linear` with the dequantized weight; the bias is shared."""
        made = nn.Linear(self.in_features, self.out_features, bias=False, device="meta")
        made.weight = nn.Parameter(self.dequantize(), requires_grad=False)
        made.bias = self.bias
        return made.train(self.training)

    # --- what it is ---

    @property
    def path(self) -> str:
        """Where and how it runs, or why it does not."""
        device = self.weight.device
        if self.full_precision:
            return "floating point, as its file asks for"
        if device.type not in ("cpu", "cuda", "meta"):
            return f"int8 cannot run on {device}"
        return f"int8 native, {device.type}"

    def extra_repr(self) -> str:
        recipe = f"convrot {self.rotation_group}" if self.rotation_group else "rowwise"
        if self.pre_quant_scale is not None:
            recipe = "smoothquant"
        shared = ""
        if self.shared is not None and len(mates := self.shared.mates_of(self.place)) > 1:
            shared = f", one product of {len(mates)}"
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, "
            f"bias={self.bias is not None}, {self.path}, {recipe}{shared}"
        )

    def describe(self, name: str) -> Row:
        """Its row in octet.report()."""
        rows, note = getattr(self.weight, "_octet_rows", None), ""
        if self.shared is not None and len(mates := self.shared.mates_of(self.place)) > 1:
            rows = getattr(mates[0].weight, "_octet_joined_rows", None) or rows
            note = f"one product of {len(mates)} linears"
        runs_int8 = self.path.startswith("int8 native")
        return Row(
            *(name, self.out_features, self.in_features, "int8" if runs_int8 else "float"),
            recipe=f"convrot:{self.rotation_group}" if self.rotation_group else "rowwise",
            device=str(self.weight.device),
            kernel=rows.kernel if rows else "",
            m=rows.m if rows else 0,
            note=note if runs_int8 else self.path,
            fallback=not runs_int8,
        )

    # --- moving ---

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Int8Linear:
        before = {name: self._buffers[name] for name in ("weight_scale", "pre_quant_scale")}
        super()._apply(fn, recurse)
        for name, buffer in before.items():
            moved = self._buffers[name]
            if moved is not None and moved.dtype != torch.float32:  # by half() and the like
                self._buffers[name] = buffer.to(moved.device)
        sample = torch.empty(0, dtype=self.float_dtype, device=self.weight.device)
        self.float_dtype = fn(sample).dtype
        if self.shared is not None:
            self.shared.join()
        return self

    # --- state dict ---

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        marker = dialect.write_marker(Marker(self.rotation_group, self.full_precision))
        destination[prefix + "comfy_quant"] = marker
        if self.shared is None or keep_vars:
            return
        for key in ("weight", "weight_scale", "bias"):
            if prefix + key in destination:
                destination[prefix + key] = _own(destination[prefix + key])

    def _forget_rows(self) -> None:
        for member in (self,) if self.shared is None else self.shared.members():
            forget_rows(member.weight)

    def __getstate__(self) -> dict[str, Any]:
        """For files: torch writes all of the memory that a tensor lies in."""
        if self.shared is None:
            return self.__dict__
        parts = {"_buffers": self._buffers, "_parameters": self._parameters}
        for kind, tensors in parts.items():
            parts[kind] = {k: None if t is None else _own(t) for k, t in tensors.items()}
        process = get_spawning_popen()
        if process is not None:  # which takes over their files when everything is pickled
            vars(process).setdefault("_octet_sent", []).append(parts)
        return {**self.__dict__, **parts}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if self.shared is not None and not self.shared.adopt(self):
            self.shared = None

    def __deepcopy__(self, memo: dict[int, Any]) -> Int8Linear:
        made = memo[id(self)] = self.__new__(type(self))
        made.__setstate__(deepcopy(self.__dict__, memo))
        return made

    def _load_from_state_dict(
        self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
    ) -> None:
        given = {key: state_dict[prefix + key] for key in _KEYS if prefix + key in state_dict}
        wanted = ["weight"] if "weight" not in given or _is_floating(given["weight"]) else _KEYS[:2]
        wanted = [*wanted, *(["bias"] if self.bias is not None else [])]
        missing_keys += [prefix + key for key in wanted if key not in given]
        if strict:
            known = {prefix + key for key in (*_KEYS, *_IGNORED_KEYS)}
            if self.bias is None:
                known.discard(prefix + "bias")
            unexpected_keys += [
                key for key in state_dict if key.startswith(prefix) and key not in known
            ]
        self._forget_rows()  # tensors of inference mode do not count their changes
        assign = local_metadata.get("assign_to_params_buffers", False)
        try:
            if "weight" in given:
                self._load_weight(given, prefix, assign)
            if "bias" in given and self.bias is not None:
                _check_shape(given["bias"], (self.out_features,), prefix + "bias")
                self.bias = _loaded(self.bias, given["bias"], assign)
        except OctetError as error:
            error_msgs.append(str(error))
        if self.shared is not None:
            self.shared.join()

    def _load_weight(self, given: dict[str, Tensor], prefix: str, assign: bool) -> None:
        weight = given["weight"]
        _check_shape(weight, (self.out_features, self.in_features), prefix + "weight")
        if _is_floating(weight):
            if "pre_quant_scale" in given:
                raise OctetError(
                    f"{prefix}pre_quant_scale is there, but {prefix}weight is {describe(weight)}, "
                    "expected int8"
                )
            here = weight if assign or self.weight.is_meta else weight.to(self.weight.device)
            self.quantize_weight(here, prefix + "weight")
            return
        if "weight_scale" not in given:
            return  # reported as missing
        marker = Marker()
        if "comfy_quant" in given:
            marker = dialect.read_marker(given["comfy_quant"], prefix + "comfy_quant")
        scales, smooth = given["weight_scale"], given.get("pre_quant_scale")
        if weight.dtype != torch.int8:
            refuse("weight", f"{prefix}weight is {describe(weight)}, expected int8")
        if scales.numel() not in (1, self.out_features):
            refuse(
                "weight_scale",
                f"{prefix}weight_scale is {describe(scales)}, expected 1 or {self.out_features}",
            )
        if marker.group and (self.in_features % marker.group or smooth is not None):
            refuse(
                "comfy_quant",
                f"{prefix}comfy_quant: a rotation within groups of {marker.group} does not fit "
                f"{self.in_features} inputs, or there is a pre_quant_scale as well",
            )
        scales = scales.float().reshape(-1, 1).expand(self.out_features, 1).contiguous()
        dialect.check_scales(scales, prefix + "weight_scale")
        if smooth is not None:
            _check_shape(smooth, (self.in_features,), prefix + "pre_quant_scale")
            smooth = smooth.float().to(weight.device if assign else self.weight.device)
        self.weight = _loaded(self.weight, weight, assign)
        self.weight_scale = _loaded(self.weight_scale, scales, assign)
        self.pre_quant_scale = smooth
        self.rotation_group, self.full_precision = marker.group, marker.full_precision
        self.recipe = Recipe(marker.group)


def _is_floating(tensor: Tensor) -> bool:
    return tensor.is_floating_point() and tensor.element_size() > 1  # FP8 has a scale of its own


def _own(tensor: Tensor) -> Tensor:
    """The same memory as a storage of its own: torch.save() writes whole storages, and safetensors
    and accelerate take tensors of one storage for copies of each other, and leave some out."""
    if type(tensor) not in PLAIN or tensor.is_meta or not tensor.numel():
        return tensor
    if tensor.untyped_storage().nbytes() == tensor.numel() * tensor.itemsize:
        return tensor
    own = tensor.detach()
    own.data = torch.from_dlpack(tensor.detach())  # `own` counts changes with the tensor
    return nn.Parameter(own, tensor.requires_grad) if isinstance(tensor, nn.Parameter) else own


def _check_shape(tensor: Tensor, shape: tuple[int, ...], name: str) -> None:
    if tensor.shape != shape:
        refuse(name, f"{name} is {describe(tensor)}, expected {list(shape)}")


def _loaded(target: Tensor, value: Tensor, assign: bool) -> Tensor:
    """Copied into the target, or replacing it if that is requested or it has no memory."""
    if not (assign or target.is_meta):
        with torch.no_grad():
            return target.copy_(value)
    if isinstance(target, nn.Parameter):
        return nn.Parameter(value.detach(), requires_grad=False)
    return value.detach()
