"""OctetConfig: models are quantized while diffusers loads them, saved, and loaded again.

Twenty seconds, of which importing diffusers takes most.
"""

from __future__ import annotations

import copy
import json
import shutil
import subprocess
from pathlib import Path

import pytest

pytest.importorskip("diffusers")
pytest.importorskip("accelerate")
pytest.importorskip("transformers")

import diffusers_models as models
import tiny_ideogram4 as tiny
import torch
from diffusers import Ideogram4Pipeline, Ideogram4Transformer2DModel
from diffusers.quantizers import PipelineQuantizationConfig, auto
from safetensors.torch import load_file, save_file

import octet.diffusers
from octet.diffusers import OctetConfig
from octet.torch import Int8Linear, quantize_


@pytest.fixture(scope="module")
def pipeline(tmp_path_factory) -> Path:
    """In bf16, not to be changed."""
    folder = tmp_path_factory.mktemp("pipeline")
    return tiny.save_pipeline(folder, models.SHAPE, dtype=torch.bfloat16)


def load(folder: Path, **options) -> Ideogram4Transformer2DModel:
    return Ideogram4Transformer2DModel.from_pretrained(folder, **options)


def load_plain(pipeline: Path) -> Ideogram4Transformer2DModel:
    return load(pipeline / "transformer", dtype=torch.bfloat16)


def load_quantized(pipeline: Path, config=None, **options) -> Ideogram4Transformer2DModel:
    options = {"dtype": torch.bfloat16} | options
    return load(pipeline / "transformer", quantization_config=config or OctetConfig(), **options)


@pytest.fixture(scope="module")
def quantized(pipeline) -> Ideogram4Transformer2DModel:
    return load_quantized(pipeline)


@pytest.fixture(scope="module")
def saved(quantized, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("saved")
    quantized.save_pretrained(folder)
    return folder


def int8_names(model) -> set[str]:
    return {name for name, module in model.named_modules() if isinstance(module, Int8Linear)}


def same(a, b) -> bool:
    return torch.equal(models.velocity(a), models.velocity(b))


# --- quantizing while loading --------------------------------------------------------------------


def test_close_to_bf16_and_the_same_as_two_lines(pipeline, quantized):
    plain = load_plain(pipeline)
    assert models.cosine(models.velocity(quantized), models.velocity(plain)) > 0.9995
    assert len(int8_names(quantized)) == models.INT8_LINEARS
    assert same(quantize_(plain, "convrot"), quantized)


def test_types(quantized):
    linear = quantized.layers[0].attention.to_q
    assert linear.weight.dtype == torch.int8
    assert linear.weight_scale.dtype == torch.float32
    assert quantized.dtype == torch.bfloat16
    assert quantized.layers[0].adaln_modulation.weight.dtype == torch.bfloat16


def test_recipe_and_exceptions(pipeline):
    config = OctetConfig("rowwise", modules_to_not_convert=["layers.0", "feed_forward.w?"])
    model = load_quantized(pipeline, config)
    parts = ("to_q", "to_k", "to_v", "to_out.0")
    assert int8_names(model) == {f"layers.1.attention.{part}" for part in parts}
    assert model.layers[1].attention.to_q.rotation_group == 0
    assert config.dtype is None  # the caller's own is left alone


@pytest.mark.parametrize("device_map", ["auto", "cpu", {"": "cpu"}])
def test_device_map(pipeline, quantized, saved, device_map):
    assert same(load_quantized(pipeline, device_map=device_map), quantized)
    assert same(load(saved, device_map=device_map), quantized)


def test_float32_file_in_shards(tmp_path):
    """Weights are of the type that was asked for before they are quantized, in any file."""
    network = tiny.make_transformer(models.SHAPE, 3)
    network.save_pretrained(tmp_path, max_shard_size=200_000)
    assert len(list(tmp_path.glob("*.safetensors"))) > 2
    plain = quantize_(load(tmp_path, dtype=torch.bfloat16))
    assert same(load(tmp_path, quantization_config=OctetConfig(), dtype=torch.bfloat16), plain)
    in_float32 = load(tmp_path, quantization_config=OctetConfig())
    assert in_float32.dtype == torch.float32
    assert models.cosine(models.velocity(in_float32), models.velocity(network)) > 0.9995


def test_pipelines(pipeline, tmp_path):
    parts = {"transformer": OctetConfig(), "unconditional_transformer": OctetConfig("rowwise")}
    pipe = Ideogram4Pipeline.from_pretrained(
        pipeline,
        dtype=torch.bfloat16,
        quantization_config=PipelineQuantizationConfig(quant_mapping=parts),
    )
    for part in parts:
        assert len(int8_names(getattr(pipe, part))) == models.INT8_LINEARS
    pipe.save_pretrained(tmp_path)
    again = Ideogram4Pipeline.from_pretrained(tmp_path, dtype=torch.bfloat16)
    for part in parts:
        assert same(getattr(again, part), getattr(pipe, part))
    pipe.to("cpu")


def test_compiled_is_the_same(pipeline, quantized):
    torch._dynamo.reset()
    model = load_quantized(pipeline)
    model.compile_repeated_blocks(fullgraph=True, backend="aot_eager")
    assert same(model, quantized)
    torch._dynamo.reset()


# --- saving and loading --------------------------------------------------------------------------


def test_a_saved_folder_is_loaded_as_it_was(quantized, saved):
    again = load(saved)
    assert again.dtype == torch.bfloat16  # the type is in its configuration
    assert int8_names(again) == int8_names(quantized)
    assert same(again, quantized)
    config = json.loads((saved / "config.json").read_text())["quantization_config"]
    assert config["quant_method"].startswith("octet") and config["recipe"] == "convrot"
    stored = load_file(next(saved.glob("*.safetensors")))
    for key, tensor in again.state_dict().items():
        assert torch.equal(tensor, stored[key]) and tensor.dtype == stored[key].dtype, key


def test_without_octet_the_error_says_what_to_import(saved):
    octet.diffusers.unregister()
    try:
        with pytest.raises(ValueError, match="Unknown quantization.*`import octet.diffusers`"):
            load(saved)
    finally:
        octet.diffusers.register()
    load(saved)


def test_a_folder_with_the_short_name_is_loaded(quantized, saved, tmp_path):
    shutil.copytree(saved, tmp_path / "older")
    file = tmp_path / "older" / "config.json"
    config = json.loads(file.read_text())
    config["quantization_config"]["quant_method"] = "octet"
    file.write_text(json.dumps(config))
    assert same(load(file.parent), quantized)


def test_in_shards(quantized, tmp_path):
    quantized.save_pretrained(tmp_path, max_shard_size=60_000)
    assert len(list(tmp_path.glob("*.safetensors"))) > 2
    assert same(load(tmp_path), quantized)


def test_saved_again(saved, quantized, tmp_path):
    load(saved).save_pretrained(tmp_path)
    assert same(load(tmp_path), quantized)


def test_the_engine_reads_it(built_program, saved):
    words = [built_program("octet"), "inspect", saved, "--json", "-"]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (part,) = json.loads(done.stdout)["parts"]
    runs = [linear["runs"] for linear in part["linears"]]
    assert runs.count("int8") == models.INT8_LINEARS and "int8 on load" not in runs


def test_dequantize(saved, pipeline):
    model = load(saved).dequantize()
    assert not int8_names(model)
    assert models.cosine(models.velocity(model), models.velocity(load_plain(pipeline))) > 0.9995


# --- what is refused -----------------------------------------------------------------------------


def test_wrong_arguments(pipeline):
    with pytest.raises(ValueError, match="nope"):
        OctetConfig("nope")
    with pytest.raises(octet.InvalidRequest, match="quant_method is 'gguf'"):
        OctetConfig(quant_method="gguf")
    with pytest.raises(ValueError, match="dtype is 'int4'"):
        OctetConfig(dtype="int4")
    for wrong in (5, [5], {"proj_out": True}):
        with pytest.raises(octet.OctetTypeError, match="`modules_to_not_convert` is .* of names"):
            OctetConfig(modules_to_not_convert=wrong)
    with pytest.raises(octet.InvalidRequest, match="torch_dtype is torch.int8, expected"):
        load_quantized(pipeline, dtype=torch.int8)
    with pytest.raises(ValueError, match="on disk"):
        load_quantized(pipeline, device_map={"layers": "disk", "": "cpu"})


def test_another_type_is_refused(quantized):
    with pytest.raises(ValueError, match="dtype"):
        quantized.to(torch.float16)
    assert quantized.layers[0].attention.to_q.weight_scale.dtype == torch.float32


LINEAR = "layers.0.attention.to_k"
NAN = torch.full((128, 1), float("nan"))
BROKEN = {
    "no codes": ({f"{LINEAR}.weight": None}, rf"has no '{LINEAR}.weight';"),
    "no scales": ({f"{LINEAR}.weight_scale": None}, rf"has no '{LINEAR}.weight_scale';"),
    "a linear that the model lacks": (
        {"layers.9.comfy_quant": torch.tensor(list(b'{"format": "int8_tensorwise"}')).byte()},
        r"INT8 weights for 'layers.9', .* another model",
    ),
    "a description": (
        {f"{LINEAR}.comfy_quant": torch.tensor(list(b"{")).byte()},
        rf"{LINEAR}.comfy_quant: invalid JSON",
    ),
    "codes of another size": (
        {f"{LINEAR}.weight": torch.zeros(8, 128, dtype=torch.int8)},
        rf"{LINEAR}.weight is .*8, 128.*, expected .*128, 128",
    ),
    "codes of another type": (
        {f"{LINEAR}.weight": torch.zeros(128, 128)},
        rf"{LINEAR}.weight is .*float32.*, expected .*int8",
    ),
    "scales that are no numbers": ({f"{LINEAR}.weight_scale": NAN}, rf"{LINEAR}.*row 0 is nan"),
}


@pytest.mark.parametrize("what", BROKEN)
def test_broken_folders(saved, tmp_path, what):
    changes, sentence = BROKEN[what]
    path = next(saved.glob("*.safetensors"))
    (tmp_path / "config.json").write_text((saved / "config.json").read_text())
    tensors = {name: t for name, t in (load_file(path) | changes).items() if t is not None}
    save_file(tensors, tmp_path / path.name)
    with pytest.raises((ValueError, octet.OctetError), match=sentence):
        load(tmp_path)


def test_copies(quantized):
    assert same(copy.deepcopy(quantized), quantized)


def test_registration():
    try:
        octet.diffusers.unregister()
        assert "octet" not in auto.AUTO_QUANTIZER_MAPPING
        assert "octet" not in auto.AUTO_QUANTIZATION_CONFIG_MAPPING
        auto.AUTO_QUANTIZER_MAPPING["octet"] = str  # somebody else's stays
        octet.diffusers.register()
        octet.diffusers.unregister()
        assert auto.AUTO_QUANTIZER_MAPPING.pop("octet") is str
    finally:
        octet.diffusers.register()
    assert auto.AUTO_QUANTIZER_MAPPING["octet"] is octet.diffusers.OctetQuantizer
