"""The weights of one network on their way from a file into a model."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from diffusers import Ideogram4Transformer2DModel
from torch import nn

from octet._octet import Checkpoint, StoredWeight
from octet.diffusers import names
from octet.diffusers.modules import from_codes, from_weight, plain_linear, put
from octet.errors import OctetError


@dataclass
class _Linear:
    """A linear of the model: rows from `first` on of a weight in the file."""

    module: nn.Module
    weight: StoredWeight
    first: int
    bias: str  # its name in the file, if it has one
    int8: bool

    @property
    def rows(self) -> int:
        return self.module.out_features


class StagedTransformer:
    """Looks everything up when it is made; read() and commit() follow, in this order."""

    def __init__(
        self,
        model: Ideogram4Transformer2DModel,
        checkpoint: Checkpoint,
        branch: str,
        *,
        keep_missing: bool,
    ) -> None:
        self.model = model
        self._checkpoint = checkpoint
        self._branch = branch
        self._tensors = checkpoint.tensors
        self._prefix = self._find_prefix()
        self._protects = self._holds_int8()
        self._linears: dict[str, _Linear] = {}
        self._others: dict[str, torch.Tensor] = {}
        self._modules: dict[str, nn.Module] = {}
        self._missing: list[str] = []
        self._used: set[str] = set()
        self._check_hooks()
        self._plan()
        self._check_missing(keep_missing)
        self._check_left_over()

    # --- looking things up ---

    def _find_prefix(self) -> str:
        prefix = names.find_prefix(self._tensors, self._branch)
        if prefix is None:
            raise OctetError(
                f"{self._checkpoint.path}: has no tensors of the {self._branch} network of "
                'Ideogram 4, such as "layers.0.attention.qkv.weight" with or without a known prefix'
            )
        return prefix

    def _holds_int8(self) -> bool:
        """If so, its linears in floating point are so by choice."""
        return "octet.quantization" in self._checkpoint.metadata or any(
            name.startswith(self._prefix) and dtype == "I8" and len(shape) == 2
            for name, (dtype, shape) in self._tensors.items()
        )

    def _check_hooks(self) -> None:
        parts = (module for module in self.model.modules() if module is not self.model)
        if any(hasattr(module, "_hf_hook") for module in parts):
            raise OctetError(
                "parts of the model are offloaded or on several devices (device_map), by hooks "
                "that new modules would lack; call load_int8 first"
            )

    def _plan(self) -> None:
        of_linears: set[str] = set()
        for name, module in self.model.named_modules():
            if isinstance(module, nn.Linear):
                of_linears.update(f"{name}.{key}" for key in module.state_dict())
                self._plan_linear(name, module)
        for key, tensor in self.model.state_dict().items():
            if key not in of_linears:
                self._plan_other(key, tensor)

    def _plan_linear(self, name: str, module: nn.Linear) -> None:
        rows, k = module.out_features, module.in_features
        if self._is_dispensable(f"{name}.weight", (rows, k)):
            return
        for place, first, total in names.places_of(name, rows):
            if self._checkpoint.dialect(self._prefix + place) is None:
                continue
            weight = self._checkpoint.weight(self._prefix + place, total, k)
            bias = f"{self._prefix}{place}.bias"
            int8 = weight.is_int8 or (names.is_large(name) and not self._protects)
            self._linears[name] = _Linear(module, weight, first, bias, int8)
            self._used.update(weight.tensors)
            if module.bias is not None:
                self._expect(bias, (rows,))
            return
        self._lack(f"{name}.weight")

    def _plan_other(self, key: str, tensor: torch.Tensor) -> None:
        name = self._prefix + key
        if self._is_dispensable(key, tuple(tensor.shape)):
            return
        if name not in self._tensors:
            return self._lack(key)
        self._expect(name, tuple(tensor.shape))
        self._others[key] = torch.empty(tensor.shape, dtype=torch.float32)

    def _expect(self, name: str, shape: tuple[int, ...]) -> None:
        if name not in self._tensors:
            return self._lack(name.removeprefix(self._prefix))
        self._used.add(name)
        found = self._tensors[name][1]
        if found != shape:
            raise OctetError(
                f"{self._checkpoint.path}: tensor {name!r} is {list(found)}, expected "
                f"{list(shape)} as in the model"
            )

    def _lack(self, key: str) -> None:
        self._missing.append(self._prefix + key)

    def _is_dispensable(self, key: str, shape: tuple[int, ...]) -> bool:
        """Of no effect, and missing or made for another text encoder's size."""
        if not names.is_of_no_effect(key, self._branch):
            return False
        return self._tensors.get(self._prefix + key, (None, None))[1] != shape

    def _check_missing(self, keep_missing: bool) -> None:
        if not self._missing:
            return
        has_values = not any(parameter.is_meta for parameter in self.model.parameters())
        if keep_missing and has_values:
            return
        raise OctetError(
            f"{self._checkpoint.path}: has no {names.listed(self._missing)}; the checkpoint is "
            "incomplete or of another model"
            + (" (keep_missing=True keeps the model's own)" if has_values else "")
        )

    def _check_left_over(self) -> None:
        left = [
            name
            for name in self._tensors
            if name not in self._used
            and not names.is_unread(name.removeprefix(self._prefix), self._branch)
        ]
        if left:
            raise OctetError(
                f"{self._checkpoint.path}: has no place in the model for {names.listed(left)}; the "
                "file belongs to another model, or to a dialect that is not read"
            )

    # --- reading ---

    def read(self, recipe: str) -> None:
        """Reads everything into host memory."""
        dtype = self.model.dtype
        for name, linear in self._linears.items():
            self._modules[name] = self._read_linear(linear, dtype, recipe)
        for key, into in self._others.items():
            self._read_other(key, into)
            self._others[key] = _narrowed(into, dtype, key)

    def _read_linear(self, linear: _Linear, dtype: torch.dtype, recipe: str) -> nn.Module:
        weight, shape = linear.weight, (linear.rows, linear.weight.k)
        bias = self._read_bias(linear, dtype)
        if not weight.is_int8:
            narrow = dtype == torch.bfloat16 and not linear.int8
            exact = torch.empty(shape, dtype=dtype if narrow else torch.float32)
            weight.read(exact, linear.first)
            if linear.int8:
                return from_weight(exact, bias, recipe, dtype)
            return plain_linear(_narrowed(exact, dtype, weight.module), bias)
        codes = torch.empty(shape, dtype=torch.int8)
        weight.read_codes(codes, linear.first)
        scales = torch.empty(linear.rows, dtype=torch.float32)
        weight.read_scales(scales, linear.first)
        smooth = None
        if weight.has_smooth:
            smooth = torch.empty(weight.k, dtype=torch.float32)
            weight.read_smooth(smooth)
        group = weight.rotation_group
        return from_codes(codes, scales, bias, rotation_group=group, smooth=smooth, dtype=dtype)

    def _read_bias(self, linear: _Linear, dtype: torch.dtype) -> torch.Tensor | None:
        own = linear.module.bias
        if own is None or linear.bias not in self._tensors:
            return own if own is None else own.detach().to("cpu", dtype)
        values = torch.empty(linear.rows, dtype=torch.float32)
        self._checkpoint.read_vector(linear.bias, values)
        return _narrowed(values, dtype, linear.bias)

    def _read_other(self, key: str, into: torch.Tensor) -> None:
        if into.dim() == 2 and key.endswith(".weight"):  # an embedding, which a dialect may pack
            module = self._prefix + key.removesuffix(".weight")
            self._checkpoint.weight(module, *into.shape).read(into)
        else:
            self._checkpoint.read_vector(self._prefix + key, into)

    # --- replacing ---

    def commit(self) -> None:
        """Replaces modules and tensors; nothing is read from the file any more."""
        self._linears.clear()  # they refer to the model's own
        for name, module in self._modules.items():  # one by one: a device has no room for both sets
            path, _, child = name.rpartition(".")
            places = self.model.get_submodule(path)._modules
            old = places[child]
            places[child] = module.to(_device_of(old.weight)).train(old.training)
        for key, value in self._others.items():
            path, _, name = key.rpartition(".")
            module = self.model.get_submodule(path)
            put(module, name, value.to(_device_of(getattr(module, name))))
        self._modules.clear()
        self._others.clear()
        self._fill_unused()

    def _fill_unused(self) -> None:
        """Weights without effect that the file lacks, in a model made without memory."""
        for key, parameter in list(self.model.named_parameters()):
            if parameter.is_meta:
                path, _, name = key.rpartition(".")
                zeros = torch.zeros(parameter.shape, dtype=parameter.dtype)
                put(self.model.get_submodule(path), name, zeros)


def _device_of(tensor: torch.Tensor) -> torch.device:
    return torch.device("cpu") if tensor.is_meta else tensor.device


def _narrowed(values: torch.Tensor, dtype: torch.dtype, name: str) -> torch.Tensor:
    narrowed = values.to(dtype)
    if not torch.isfinite(narrowed).all():
        raise OctetError(f"{name}: has values that {dtype} cannot hold; load the model as bfloat16")
    return narrowed
