"""What save_pretrained() of diffusers and transformers writes about INT8 linears.

Without it a saved folder says nothing of them, and from_pretrained() would take codes for weights:
the model would be wrong, with a line in the log about tensors that nothing asked for.
"""

from __future__ import annotations

from typing import Any

from torch import nn

from octet._recipes import Recipe
from octet.torch.private import drop_from_config

# diffusers refuses a method that it does not know, and its error repeats this word and nothing else
# of the configuration. transformers would only warn: what it refuses is that there is no
# `quant_method`. Neither has entry points.
SAVED_METHOD = "octet (needs octet-int8 and `import octet.diffusers`)"
_NOT_LOADED = {"octet": "INT8: quantize_() the model without weights, then load_state_dict() these"}


def saved_config(recipe: str, excluded: list[str], dtype: str | None) -> dict[str, Any]:
    """`quantization_config` in the config.json of a model of diffusers."""
    return {
        "quant_method": SAVED_METHOD,
        "recipe": recipe,
        "modules_to_not_convert": excluded,
        "dtype": dtype,
    }


def note_in_configs(model: nn.Module, recipe: Recipe) -> None:
    """Call it when linears of a model have become INT8. diffusers loads what it then saves;
    transformers cannot, and refuses it."""
    for module in model.modules():
        if callable(getattr(module, "register_to_config", None)):
            dtype = str(module.dtype).removeprefix("torch.")
            module.register_to_config(quantization_config=saved_config(str(recipe), [], dtype))
        elif (config := _config_of(module)) is not None:
            config.quantization_config = dict(_NOT_LOADED)


def forget_in_configs(model: nn.Module) -> None:
    """Call it when they no longer are: without Octet, diffusers would not open the folder, and it
    refuses to convert the type of a model that it takes for a quantized one."""
    for module in model.modules():
        if callable(getattr(module, "register_to_config", None)):
            if _is_ours(module.config.get("quantization_config")):
                drop_from_config(module, "quantization_config")
                for name in ("hf_quantizer", "is_quantized", "quantization_method"):
                    vars(module).pop(name, None)
            continue
        noted = getattr(_config_of(module), "quantization_config", None)
        if noted == _NOT_LOADED:
            del module.config.quantization_config


def _is_ours(noted: Any) -> bool:
    fields = noted.to_dict() if hasattr(noted, "to_dict") else noted
    return isinstance(fields, dict) and fields.get("quant_method") in ("octet", SAVED_METHOD)


def _config_of(module: nn.Module) -> Any:
    """That of a model of transformers, or None."""
    config = getattr(module, "config", None)
    is_model = callable(getattr(module, "save_pretrained", None)) and hasattr(config, "to_dict")
    return config if is_model else None
