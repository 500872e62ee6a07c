"""Other transformers of diffusers in two lines: close to BF16, and the same when compiled.

A few seconds, and the import of diffusers.
"""

from __future__ import annotations

import copy

import pytest

pytest.importorskip("diffusers")
pytest.importorskip("accelerate")

import diffusers_models as models
import torch

import octet
from octet.diffusers import OctetConfig
from octet.torch import Int8Linear, quantize_

MAKERS = {"Flux": models.flux, "SD3": models.sd3}


def made(name: str):
    torch.manual_seed(0)
    model, inputs = MAKERS[name]()
    return model.to(torch.bfloat16).eval(), models.in_bf16(inputs)


def output(model, inputs) -> torch.Tensor:
    with torch.inference_mode():
        return model(**inputs).sample.clone()


def int8_count(model) -> int:
    return sum(isinstance(module, Int8Linear) for module in model.modules())


@pytest.mark.parametrize("recipe", ["convrot", "rowwise"])
@pytest.mark.parametrize("name", MAKERS)
def test_two_lines(name, recipe):
    model, inputs = made(name)
    reference = output(model, inputs)
    quantize_(model, recipe)
    with octet.require_int8():
        got = output(model, inputs)
    assert models.cosine(got, reference) > 0.999
    assert int8_count(model) > 10


@pytest.mark.parametrize("name", MAKERS)
def test_while_loading(name, tmp_path):
    """As from_pretrained() loads it in bf16, in two lines; saved and loaded, compiled or not."""
    model, inputs = made(name)
    model.save_pretrained(tmp_path / "plain")
    load = type(model).from_pretrained
    plain = load(tmp_path / "plain", dtype=torch.bfloat16)
    loaded = load(
        tmp_path / "plain", quantization_config=OctetConfig(), dtype=torch.bfloat16
    )
    expected = output(quantize_(copy.deepcopy(plain)), inputs)
    assert torch.equal(output(loaded, inputs), expected)
    loaded.save_pretrained(tmp_path / "int8")
    again = load(tmp_path / "int8")
    assert int8_count(again) == int8_count(loaded) and again.dtype == torch.bfloat16
    assert torch.equal(output(again, inputs), expected)
    torch._dynamo.reset()
    compiled = torch.compile(again, fullgraph=True, backend="aot_eager")
    assert torch.equal(output(compiled, inputs), expected)
    torch._dynamo.reset()
