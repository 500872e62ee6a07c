"""load_int8: checkpoints of all dialects in diffusers' Ideogram 4.

The velocity is that of the weights that each tool itself reads out of its file. INT8 codes are the
file's, bit for bit. Whatever is wrong with a file, the model stays as it was. Ten seconds, and the
import of diffusers.
"""

from __future__ import annotations

import json

import pytest

pytest.importorskip("diffusers")
pytest.importorskip("accelerate")
pytest.importorskip("transformers")

import dialect_files
import diffusers_models as models
import model_files
import tiny_ideogram4 as tiny
import torch
from diffusers import Ideogram4Pipeline, Ideogram4Transformer2DModel
from safetensors.torch import load_file
from test_dialects import CHANGES, WRITERS, writer_of

from octet import OctetError, OctetTypeError
from octet.diffusers import load_int8, load_pipeline
from octet.torch import Int8Linear, quantize_

SEED = 3  # of the weights in files; models begin with others
QUANTIZED = "layers.1.feed_forward.w1"
LAB = dialect_files.transformer_lab


def network(seed: int = SEED) -> Ideogram4Transformer2DModel:
    return tiny.make_transformer(models.SHAPE, seed)


def in_bf16(model: Ideogram4Transformer2DModel) -> Ideogram4Transformer2DModel:
    """As from_pretrained() makes it: to() would round rotary frequencies as well."""
    for parameter in model.parameters():
        parameter.data = parameter.data.bfloat16()
    return model


def fresh() -> Ideogram4Transformer2DModel:
    return in_bf16(network(seed=11))


def meant_by(state) -> Ideogram4Transformer2DModel:
    made = network()
    made.load_state_dict(state)
    return in_bf16(made)


def lab_tensors(seed: int = SEED) -> dict[str, torch.Tensor]:
    """Transformer Lab's, with fused q, k and v."""
    return model_files.quantized(tiny.fuse_attention(network(seed).state_dict()), LAB)


def is_close(model, other) -> bool:
    return models.cosine(models.velocity(model), models.velocity(other)) > 0.9995


def same(model, other) -> bool:
    return torch.equal(models.velocity(model), models.velocity(other))


# --- dialects ------------------------------------------------------------------------------------


@pytest.mark.parametrize("fused", [False, True], ids=["split", "fused"])
@pytest.mark.parametrize("name", [*WRITERS, "GGUF", "plain"])
def test_dialects(tmp_path, name, fused):
    network().save_pretrained(tmp_path / "transformer")
    if name == "GGUF":
        pytest.importorskip("gguf")
        state = dialect_files.write_gguf(tmp_path, fused=fused)
    else:
        writer = writer_of(name) if name in WRITERS else lambda weight: ({"weight": weight}, weight)
        state = dialect_files.rewrite_transformer(tmp_path, writer, fused=fused)
    model = load_int8(fresh(), tmp_path / "transformer")
    assert sum(isinstance(m, Int8Linear) for m in model.modules()) == models.INT8_LINEARS
    assert model.dtype == torch.bfloat16
    assert is_close(model, meant_by(state))
    path = next((tmp_path / "transformer").glob("*model*"))
    if name in CHANGES:
        check_codes(model, load_file(path), fused)
    else:  # made here: as those of the same weights in two lines
        exact = network()
        exact.load_state_dict(state)
        codes = quantize_(exact).state_dict()[f"{QUANTIZED}.weight"]
        assert torch.equal(model.state_dict()[f"{QUANTIZED}.weight"], codes)


def check_codes(model, stored, fused) -> None:
    """Those of the file, also where its names are others."""

    def of_file(module: str) -> tuple[torch.Tensor, torch.Tensor]:
        codes = stored.get(f"{module}.weight", stored.get(f"{module}.wq"))
        scales = stored.get(f"{module}.weight_scale", stored.get(f"{module}.ws"))
        return codes, scales.reshape(-1, 1).expand(codes.shape[0], 1)

    attention, feed_forward = model.layers[1].attention, model.layers[1].feed_forward
    codes, scales = of_file(QUANTIZED)
    assert torch.equal(feed_forward.w1.weight, codes)
    assert torch.equal(feed_forward.w1.weight_scale, scales)
    if fused:
        codes, scales = of_file("layers.1.attention.qkv")
        parts = (attention.to_q, attention.to_k, attention.to_v)
        assert torch.equal(torch.cat([part.weight for part in parts]), codes)
        assert torch.equal(torch.cat([part.weight_scale for part in parts]), scales)
    else:
        assert torch.equal(attention.to_v.weight, of_file("layers.1.attention.to_v")[0])


def test_protected_linears_stay(tmp_path):
    chosen = ["layers.0.attention.qkv", "layers.1.feed_forward.w2"]
    plain = tiny.fuse_attention(network().state_dict())
    path = model_files.save(tmp_path / "m.safetensors", model_files.quantized(plain, LAB, chosen))
    model = load_int8(fresh(), path)
    int8 = {name for name, module in model.named_modules() if isinstance(module, Int8Linear)}
    assert int8 == {
        *(f"layers.0.attention.to_{part}" for part in "qkv"),
        "layers.1.feed_forward.w2",
    }
    kept = model.layers[0].feed_forward.w1.weight
    assert torch.equal(kept, plain["layers.0.feed_forward.w1.weight"].bfloat16())


@pytest.mark.parametrize("prefix", ["model.diffusion_model.", "diffusion_model.", "transformer."])
def test_prefixes_and_other_parts(tmp_path, prefix):
    tensors = model_files.prefixed(prefix, lab_tensors())
    tensors["first_stage_model.decoder.weight"] = torch.zeros(3)
    path = model_files.save(tmp_path / "m.safetensors", tensors)
    assert is_close(load_int8(fresh(), path), in_bf16(network()))


# --- both transformers ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    tensors = model_files.prefixed("conditional.", lab_tensors(3))
    tensors |= model_files.prefixed("unconditional.", lab_tensors(4))
    return model_files.save(tmp_path_factory.mktemp("both") / "both.safetensors", tensors)


@pytest.fixture(scope="module")
def pipeline(tmp_path_factory):
    """In bf16, with other weights; not to be changed."""
    folder = tmp_path_factory.mktemp("pipeline")
    return tiny.save_pipeline(folder, models.SHAPE, seed=50, dtype=torch.bfloat16)


def check_pipeline(pipe) -> None:
    assert is_close(pipe.transformer, in_bf16(network(3)))
    assert is_close(pipe.unconditional_transformer, in_bf16(network(4)))


def test_one_file_saved_and_loaded_again(both, pipeline, tmp_path):
    """SmoothQuant survives as well."""
    pipe = Ideogram4Pipeline.from_pretrained(pipeline, dtype=torch.bfloat16)
    check_pipeline(load_int8(pipe, both))
    pipe.save_pretrained(tmp_path)
    config = json.loads((tmp_path / "transformer" / "config.json").read_text())
    assert config["quantization_config"]["quant_method"].startswith("octet")
    again = Ideogram4Pipeline.from_pretrained(tmp_path)
    assert same(again.transformer, pipe.transformer)
    assert same(again.unconditional_transformer, pipe.unconditional_transformer)
    other = Ideogram4Pipeline.from_pretrained(pipeline, dtype=torch.bfloat16)
    assert same(load_int8(other, tmp_path).transformer, pipe.transformer)


def test_into_one_transformer(both):
    assert is_close(load_int8(fresh(), both), in_bf16(network(3)))
    assert is_close(load_int8(fresh(), both, branch="unconditional"), in_bf16(network(4)))


def test_two_files_without_a_copy_in_bf16(pipeline, tmp_path):
    files = [
        model_files.save(tmp_path / f"{seed}.safetensors", lab_tensors(seed)) for seed in (3, 4)
    ]
    pipe = load_pipeline(pipeline, files[0], unconditional=files[1])
    check_pipeline(pipe)
    assert not any(parameter.is_meta for parameter in pipe.transformer.parameters())


def test_a_guide_that_sees_no_text(both, pipeline, tmp_path):
    """Its file need not have weights of the text, or may have those of another text encoder."""
    tensors = load_file(both)
    for key in [key for key in tensors if key.startswith("unconditional.llm_cond_")]:
        del tensors[key]
    path = model_files.save(tmp_path / "m.safetensors", tensors)
    pipe = load_pipeline(pipeline, path)
    guide = pipe.unconditional_transformer
    assert not guide.llm_cond_proj.weight.any()
    inputs = models.ideogram4_inputs(guide)
    inputs["indicator"][:] = 2
    with torch.inference_mode():
        got = guide(**inputs).sample
        meant = in_bf16(network(4))(**inputs).sample
    assert models.cosine(got, meant) > 0.9995
    tensors["unconditional.llm_cond_norm.weight"] = torch.ones(5)
    load_pipeline(pipeline, model_files.save(path, tensors))


def test_one_file_is_not_both(pipeline, tmp_path):
    path = model_files.save(tmp_path / "one.safetensors", lab_tensors())
    pipe = Ideogram4Pipeline.from_pretrained(pipeline, dtype=torch.bfloat16)
    with pytest.raises(OctetError, match="one network, and the pipeline has two; name"):
        load_int8(pipe, path)
    noted = {"octet.quantization": json.dumps({"protected": {"unconditional": []}})}
    model_files.save(path, lab_tensors(), noted)
    with pytest.raises(OctetError, match="taken for the conditional .* is the unconditional one"):
        load_int8(pipe.transformer, path)
    load_int8(pipe.transformer, path, branch="unconditional")


# --- what is wrong -------------------------------------------------------------------------------


def without(tensors, name):
    return {key: tensor for key, tensor in tensors.items() if key != name}


BROKEN = {
    "a norm is missing": (
        lambda t: without(t, "layers.1.ffn_norm1.weight"),
        r"has no 'layers\.1\.ffn_norm1\.weight'",
    ),
    "a linear is missing": (
        lambda t: without(t, f"{QUANTIZED}.wq"),
        r"has no 'layers\.1\.feed_forward\.w1\.weight'",
    ),
    "scales are missing": (
        lambda t: without(t, f"{QUANTIZED}.ws"),
        r"layers\.1\.feed_forward\.w1\.ws.* is missing",
    ),
    "a bias is missing": (
        lambda t: without(t, "final_layer.linear.bias"),
        r"has no 'final_layer\.linear\.bias'",
    ),
    "a tensor of no use": (
        lambda t: t | {"layers.7.what": torch.zeros(2)},
        r"no place in the model for 'layers\.7\.what'",
    ),
    "a norm of another size": (
        lambda t: t | {"layers.1.ffn_norm1.weight": torch.ones(3)},
        r"'layers\.1\.ffn_norm1\.weight' is \[3\], expected \[128\]",
    ),
    "codes of another size": (
        lambda t: t | {f"{QUANTIZED}.wq": torch.ones(8, 128, dtype=torch.int8)},
        r"layers\.1\.feed_forward\.w1\.wq.* is \[8, 128\], expected \[192, 128\]",
    ),
    "a scale is no number": (
        lambda t: t | {f"{QUANTIZED}.ws": torch.full((192,), float("nan"))},
        r"layers\.1\.feed_forward\.w1\.ws.* NaN .* damaged",
    ),
    "a bias is infinite": (
        lambda t: t | {"final_layer.linear.bias": torch.full((128,), float("inf"))},
        r"final_layer\.linear\.bias.* damaged",
    ),
    "another model": (lambda t: {"a.weight": torch.ones(3, 3)}, r"no tensors of the conditional"),
}


@pytest.mark.parametrize("what", BROKEN)
def test_broken_files_leave_the_model_alone(tmp_path, what):
    change, sentence = BROKEN[what]
    path = model_files.save(tmp_path / "m.safetensors", change(lab_tensors()))
    model = fresh()
    before = {key: tensor.clone() for key, tensor in model.state_dict().items()}
    modules = list(model.modules())
    with pytest.raises(OctetError, match=sentence):
        load_int8(model, path)
    assert [id(m) for m in model.modules()] == [id(m) for m in modules]
    assert all(torch.equal(before[key], tensor) for key, tensor in model.state_dict().items())
    assert "quantization_config" not in model.config


def test_the_second_file_is_broken(both, pipeline, tmp_path):
    path = model_files.save(
        tmp_path / "m.safetensors", without(load_file(both), f"unconditional.{QUANTIZED}.ws")
    )
    pipe = Ideogram4Pipeline.from_pretrained(pipeline, dtype=torch.bfloat16)
    with pytest.raises(OctetError, match="missing"):
        load_int8(pipe, path)
    assert not any(isinstance(module, Int8Linear) for module in pipe.transformer.modules())


def test_missing_norms_can_be_kept(tmp_path):
    tensors = {key: tensor for key, tensor in lab_tensors().items() if "norm" not in key}
    path = model_files.save(tmp_path / "m.safetensors", tensors)
    model = fresh()
    norm = model.layers[0].ffn_norm1.weight.clone()
    with pytest.raises(OctetError, match=r"has no .* and \d+ more; .*keep_missing=True"):
        load_int8(model, path)
    load_int8(model, path, keep_missing=True)
    assert torch.equal(model.layers[0].ffn_norm1.weight, norm)
    assert isinstance(model.layers[0].attention.to_q, Int8Linear)


def test_wrong_arguments(both, tmp_path):
    with pytest.raises(TypeError, match="Ideogram4Pipeline .* of this Linear is NoneType"):
        load_int8(torch.nn.Linear(2, 2), both)
    with pytest.raises(OctetTypeError, match="this NoneType is NoneType"):
        load_int8(None, "x")
    for wrong in (5, None):  # before the pipeline is loaded
        with pytest.raises(OctetTypeError, match="`checkpoint` is .*; expected a path"):
            load_pipeline("nowhere", wrong)
    with pytest.raises(OctetError, match=r"missing\.safetensors"):
        load_pipeline("nowhere", "missing.safetensors")
    with pytest.raises(TypeError, match="unconditional is for a pipeline"):
        load_int8(fresh(), both, unconditional=both)
    with pytest.raises(ValueError, match="`branch` is 'first'; expected"):
        load_int8(fresh(), both, branch="first")
    with pytest.raises(ValueError, match="nope"):
        load_int8(fresh(), both, recipe="nope")
    with pytest.raises(OctetError, match="nowhere"):
        load_int8(fresh(), tmp_path / "nowhere")
