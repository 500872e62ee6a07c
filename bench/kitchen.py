"""comfy-kitchen's INT8 linear, if the package is installed: what ComfyUI runs for INT8 files."""

from __future__ import annotations

import functools

import torch

GROUP = 256  # of ConvRot: inputs that are rotated together


@functools.cache
def package():
    """The module; raises a RuntimeError with the reason if there is none."""
    try:
        import comfy_kitchen
    except Exception as error:  # not installed, or a binary for another torch
        missing = isinstance(error, ModuleNotFoundError) and error.name == "comfy_kitchen"
        raise RuntimeError("comfy-kitchen is not installed" if missing else
                           f"comfy-kitchen cannot be imported: {error}") from error
    return comfy_kitchen


def linear(x, weight, scale, bias=None, convrot: bool = False):
    """x bf16 [m, k], weight int8 [n, k] (rotated for convrot), scale f32 [n] -> bf16 [m, n]. It
    quantizes, and rotates, the activations itself."""
    return package().int8_linear(x, weight, scale, bias=bias, out_dtype=torch.bfloat16,
                                 convrot=convrot, convrot_groupsize=GROUP)


def version_and_backend(x, weight, scale) -> str:
    """Only one of its backends is native; the others would be another comparison."""
    import importlib.metadata

    arguments = {"x": x, "weight": weight, "weight_scale": scale, "bias": None,
                 "out_dtype": torch.bfloat16, "convrot": True, "convrot_groupsize": GROUP}
    backend = package().registry.get_capable_backend("int8_linear", arguments)
    return f"{importlib.metadata.version('comfy-kitchen')}, its backend {backend}"


def rotated(rows):
    """Rows [n, k] with each group of inputs times the regular Hadamard matrix, in float32. The
    matrix is symmetric and orthogonal: rotated activations times rotated weights is the product."""
    h4 = torch.tensor([[1, 1, 1, -1], [1, 1, -1, 1], [1, -1, 1, 1], [-1, 1, 1, 1]],
                      dtype=torch.float32, device=rows.device) / 2
    matrix = functools.reduce(torch.kron, [h4] * 4)
    return (rows.float().unflatten(1, (-1, GROUP)) @ matrix).flatten(1)
