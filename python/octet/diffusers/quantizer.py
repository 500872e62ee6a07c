"""How diffusers loads and saves a model with INT8 linears.

Linears are replaced while the model has no memory yet; each weight is quantized, or taken over,
when diffusers passes it on. So floating-point weights are in memory one at a time. A saved folder
is in the dialect of ComfyUI, split by module, which Octet's engine reads as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import copy
from dataclasses import dataclass
from typing import Any, NoReturn

import torch
from diffusers.models.model_loading_utils import load_state_dict
from diffusers.quantizers.base import DiffusersQuantizer
from diffusers.utils import get_module_from_name, is_accelerate_available
from safetensors import safe_open
from torch import nn

from octet._checks import describe
from octet._recipes import Recipe
from octet.diffusers.config import OctetConfig
from octet.diffusers.modules import empty_like, put, replace_modules
from octet.diffusers.names import listed
from octet.errors import refuse
from octet.torch import Int8Linear, dequantize_
from octet.torch.dialect import Marker, check_scales, read_marker
from octet.torch.model import fuse_
from octet.torch.readers import adapt
from octet.torch.runtime import DTYPES
from octet.torch.selection import Selection, linears_of

_MARK = ".comfy_quant"  # next to the weight of each INT8 linear in a file


def check_accelerate() -> None:
    if not is_accelerate_available():
        raise ImportError(
            "diffusers needs accelerate to make models without memory; it is not installed; try "
            "`pip install accelerate`"
        )


class OctetQuantizer(DiffusersQuantizer):
    """diffusers' side of OctetConfig."""

    use_keep_in_fp32_modules = True
    quantization_config: OctetConfig

    def __init__(self, quantization_config: OctetConfig, **kwargs: Any) -> None:
        # A copy: the caller may load other models with the same configuration.
        super().__init__(copy(quantization_config), **kwargs)
        self._stored: dict[str, _Stored] = {}

    # --- before weights are read ---

    def validate_environment(self, *args: Any, device_map: Any = None, **kwargs: Any) -> None:
        check_accelerate()
        if isinstance(device_map, dict) and "disk" in device_map.values():
            refuse(
                "device_map",
                "device_map puts parts of the model on disk, where diffusers stores them before "
                "they can be quantized; expected only CPUs and GPUs",
            )

    def update_torch_dtype(self, torch_dtype: torch.dtype | None) -> torch.dtype:
        if torch_dtype is None:  # diffusers' default, or the type when it was saved
            torch_dtype = getattr(torch, self.quantization_config.dtype or "float32")
        if torch_dtype not in DTYPES:
            refuse(
                "torch_dtype",
                f"torch_dtype is {torch_dtype}, expected torch.bfloat16, torch.float16 or "
                "torch.float32: it is the type of everything that is not INT8",
            )
        self.quantization_config.dtype = str(torch_dtype).removeprefix("torch.")
        return torch_dtype

    def maybe_update_loaded_keys(
        self, loaded_keys: list[str], checkpoint_files: list[str]
    ) -> list[str]:
        if self.pre_quantized:
            self._stored = _stored_in(checkpoint_files, loaded_keys)
        return [key for key in loaded_keys if not key.endswith(_MARK)]

    def _process_model_before_weight_loading(
        self,
        model: nn.Module,
        keep_in_fp32_modules: Iterable[str] = (),
        state_dict: Mapping[str, torch.Tensor] | None = None,
        **kwargs: Any,
    ) -> None:
        if state_dict is not None:  # of a single file, which may be quantized or not
            self._stored = _described(state_dict)
            self.pre_quantized = bool(self._stored)
        if self.pre_quantized:
            made = self._stored_linears(model)
        else:
            made = self._chosen_linears(model, set(keep_in_fp32_modules))
        replace_modules(model, made)
        model.register_to_config(quantization_config=self.quantization_config)
        # Descriptions are in a module's state but are not tensors of it: diffusers would fail.
        self._without_marks = model._register_state_dict_hook(_drop_marks)

    def _stored_linears(self, model: nn.Module) -> dict[nn.Module, nn.Module]:
        """Places for the INT8 linears that are in the files."""
        linears = {n: m for n, m in model.named_modules() if isinstance(m, nn.Linear)}
        if unknown := sorted(self._stored.keys() - linears.keys()):
            refuse(
                "",
                f"the file has INT8 weights for {listed(unknown)}, which are not linears of "
                f"{type(model).__name__}; it belongs to another model",
            )
        made: dict[nn.Module, nn.Module] = {}
        for name, stored in self._stored.items():
            linear = linears[name]
            made[linear] = module = empty_like(linear, Recipe(stored.marker.group))
            module.full_precision = stored.marker.full_precision
            if stored.smooth:
                module.pre_quant_scale = torch.empty(linear.in_features, device="meta")
        return made

    def _chosen_linears(
        self, model: nn.Module, keep_in_fp32: set[str]
    ) -> dict[nn.Module, nn.Module]:
        """Places for the linears to quantize."""
        config, selection = self.quantization_config, Selection(model)
        self.modules_to_not_convert = list(config.modules_to_not_convert)
        made: dict[nn.Module, nn.Module] = {}
        for name, linear in linears_of(model).items():
            reason = selection.reason(name, linear)
            if config.excludes(name):
                reason = "in modules_to_not_convert"
            elif not keep_in_fp32.isdisjoint(name.split(".")):
                reason = "the model keeps it in float32"
            if reason:
                linear._octet_kept = (reason, reason == selection.obstacle(linear))
            else:
                made[linear] = empty_like(linear, config.recipe)
        return made

    # --- as weights are read ---

    def update_missing_keys(
        self, model: nn.Module, missing_keys: list[str], prefix: str
    ) -> list[str]:
        made_here = () if self.pre_quantized else ("weight_scale",)
        left = []
        for key in missing_keys:
            module, tensor = get_module_from_name(model, key)
            if not isinstance(module, Int8Linear):
                left.append(key)
            elif tensor not in made_here:
                _fail_missing([key])
        return left

    def check_if_quantized_param(
        self,
        model: nn.Module,
        param_value: torch.Tensor,
        param_name: str,
        state_dict: Mapping[str, Any],
        **kwargs: Any,
    ) -> bool:
        module, tensor = get_module_from_name(model, param_name)
        return isinstance(module, Int8Linear) and tensor != "bias"

    def create_quantized_param(
        self,
        model: nn.Module,
        param_value: torch.Tensor,
        param_name: str,
        target_device: torch.device,
        state_dict: Mapping[str, torch.Tensor],
        unexpected_keys: list[str] | None = None,
        **kwargs: Any,
    ) -> None:
        module, tensor = get_module_from_name(model, param_name)
        if tensor == "weight" and not self.pre_quantized:
            module.quantize_weight(param_value.to(target_device), param_name)
            return
        # Not param_value, in which diffusers has rounded scales to the model's type.
        stored = state_dict[param_name]
        self.check_quantized_param_shape(param_name, getattr(module, tensor), stored)
        if stored.is_floating_point():
            check_scales(stored, param_name)
        put(module, tensor, stored.to(target_device))

    def check_quantized_param_shape(
        self, param_name: str, current_param: torch.Tensor, loaded_param: torch.Tensor
    ) -> bool:
        if (loaded_param.shape, loaded_param.dtype) != (current_param.shape, current_param.dtype):
            refuse(
                param_name,
                f"{param_name} is {describe(loaded_param)}, expected {describe(current_param)}; "
                "the file is damaged or of another model",
            )
        return True

    # --- afterwards ---

    def _process_model_after_weight_loading(self, model: nn.Module, **kwargs: Any) -> nn.Module:
        self._without_marks.remove()
        del self._without_marks
        int8 = [(n, m) for n, m in model.named_modules() if isinstance(m, Int8Linear)]
        if empty := [f"{name}.weight" for name, module in int8 if module.weight.is_meta]:
            _fail_missing(empty)
        adapt(model)
        if not any(hasattr(module, "_hf_hook") for module in model.modules()):
            fuse_(model)  # not across devices, where a hook moves each module's weights
        return model

    def dequantize(self, model: nn.Module) -> nn.Module:
        return dequantize_(model)  # which also drops this object

    @property
    def is_serializable(self) -> bool:
        return True

    @property
    def is_trainable(self) -> bool:
        return False

    @property
    def is_compileable(self) -> bool:
        return True


def _fail_missing(keys: list[str]) -> NoReturn:
    refuse("", f"the checkpoint has no {listed(keys)}; it is incomplete or of another model")


@dataclass
class _Stored:
    """An INT8 linear of a file."""

    marker: Marker
    smooth: bool


def _described(tensors: Mapping[str, Any], keys: Iterable[str] | None = None) -> dict[str, _Stored]:
    """The linears that have a description among the tensors."""
    known = set(tensors if keys is None else keys)
    found = {}
    for key, tensor in tensors.items():
        if key.endswith(_MARK):
            name = key.removesuffix(_MARK)
            found[name] = _Stored(read_marker(tensor, key), f"{name}.pre_quant_scale" in known)
    return found


def _stored_in(files: list[str], keys: list[str]) -> dict[str, _Stored]:
    """Those in whole files, of which only the descriptions are read."""
    found: dict[str, _Stored] = {}
    if not any(key.endswith(_MARK) for key in keys):
        return found
    for path in map(str, files):
        if path.endswith(".safetensors"):
            with safe_open(path, framework="pt") as file:
                marks = [key for key in file.keys() if key.endswith(_MARK)]  # noqa: SIM118
                found |= _described({key: file.get_tensor(key) for key in marks}, keys)
        else:
            found |= _described(load_state_dict(path), keys)
    return found


def _drop_marks(module: nn.Module, state: dict[str, Any], *args: Any) -> None:
    for key in [key for key in state if key.endswith(_MARK)]:
        del state[key]
