"""`octet quantize`: its files against the source in diffusers. Tolerances are relative errors
||ours - theirs|| / ||theirs||."""

from __future__ import annotations

import json
import os
import shutil

import pytest

pytest.importorskip("diffusers")
pytest.importorskip("transformers")

import dialect_files
import tiny_ideogram4 as tiny
import torch
from generating import edit_tensors
from quantizing import (
    INT8_ERROR,
    LINEARS,
    OUTLIER,
    PARTS,
    SHAPE,
    TIMES,
    WEIGHTS,
    calibration,
    caption,  # noqa: F401: fixtures
    inputs_for,
    network_at,
    network_of,
    planted,  # noqa: F401
    quantize,  # noqa: F401
    statistics_file,  # noqa: F401
)
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from test_parity import (
    relative_error,
    run_model,  # noqa: F401
    their_velocity,
)

LAB_WEIGHTS = "ideogram4-int8-w8a8.safetensors"
# The planted channel takes five bits from all the others when nothing is done about it.
ROWWISE_ERROR = 0.3

RECIPES = ["rowwise", "smoothquant", "smoothquant:0.7", "convrot", "convrot:16"]
CASES = [(recipe, "comfyui") for recipe in RECIPES] + [
    (recipe, "transformerlab") for recipe in RECIPES if not recipe.startswith("convrot")
]


def model_of(folder, file):
    """A folder as run_model takes it, where the file stands for both transformers."""
    for part in PARTS:
        (folder / part).mkdir(parents=True)
        os.link(file, folder / part / file.name)
        if (file.parent / "recipe.json").exists():
            os.link(file.parent / "recipe.json", folder / part / "recipe.json")
    return folder


def component(part):
    return "dit" if part == "transformer" else "uncond"


# --- every recipe in every dialect ---------------------------------------------------------------


@pytest.mark.parametrize(("recipe", "dialect"), CASES)
def test_velocity_is_that_of_the_source(
    quantize, run_model, planted, statistics_file, tmp_path, recipe, dialect
):
    words = ["--recipe", recipe, "--dialect", dialect, "--statistics", statistics_file, "--verify"]
    report = quantize(planted, tmp_path / "out", *words)
    for branch in report["branches"]:
        assert (branch["int8"], branch["protected"]) == (len(LINEARS), 0)
    out = tmp_path / "out"
    if dialect == "transformerlab":
        out = model_of(tmp_path / "model", out / LAB_WEIGHTS)
    for part in PARTS:
        tensors = inputs_for(part)
        meant = their_velocity(network_at(planted, part), tensors)
        got = run_model(component(part), out, tensors, linears="int8")["velocity"]
        error = relative_error(got, meant)
        if recipe == "rowwise":
            assert 0.02 < error < ROWWISE_ERROR
        else:
            assert 1e-3 < error < INT8_ERROR


def test_files_of_the_comfyui_dialect(quantize, planted, tmp_path):
    quantize(planted, tmp_path / "out", "--recipe", "convrot")
    assert sorted(p.relative_to(tmp_path / "out") for p in (tmp_path / "out").rglob("*.*")) == [
        (tmp_path / "out" / part / name).relative_to(tmp_path / "out")
        for part in PARTS
        for name in ("config.json", WEIGHTS)
    ]
    for part in PARTS:
        theirs = json.loads((planted / part / "config.json").read_text())
        ours = json.loads((tmp_path / "out" / part / "config.json").read_text())
        assert "load_int8" in ours.pop("quantization_config")["quant_method"]
        assert {key: theirs[key] for key in ours if not key.startswith("_")} == {
            key: value for key, value in ours.items() if not key.startswith("_")
        }
        tensors = load_file(tmp_path / "out" / part / WEIGHTS)
        for name in LINEARS:
            codes, scale = tensors[f"{name}.weight"], tensors[f"{name}.weight_scale"]
            assert codes.dtype == torch.int8
            assert scale.dtype == torch.float32 and scale.shape == (codes.shape[0], 1)
            blob = json.loads(bytes(tensors[f"{name}.comfy_quant"].tolist()))
            group = 64 if codes.shape[1] % 64 == 0 else 16
            assert blob == {
                "format": "int8_tensorwise",
                "convrot": True,
                "convrot_groupsize": group,
            }
        with safe_open(tmp_path / "out" / part / WEIGHTS, "pt") as file:
            assert file.metadata()["format"] == "pt"
            made = json.loads(file.metadata()["octet.quantization"])
        assert made["recipe"] == "convrot:256" and made["clip"] and not made["folded"]
        source = tiny.fuse_attention(load_file(planted / part / WEIGHTS))
        for name, tensor in source.items():
            if name.removesuffix(".weight") not in LINEARS:
                assert torch.equal(tensors[name], tensor), name
        made_of_linears = 3 * len(LINEARS)  # codes, scales and blobs
        assert len(tensors) == len(source) - len(LINEARS) + made_of_linears


def test_files_of_the_transformerlab_dialect(quantize, planted, statistics_file, tmp_path):
    words = ["--dialect", "transformerlab", "--recipe", "smoothquant:0.6"]
    words += ["--statistics", statistics_file, "--protect", "*.w2"]
    quantize(planted, tmp_path / "out", *words)
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == [LAB_WEIGHTS, "recipe.json"]
    recipe = json.loads((tmp_path / "out" / "recipe.json").read_text())
    assert recipe["smooth"] == "divide" and recipe["alpha"] == pytest.approx(0.6)
    assert recipe["protected"] == [
        f"{branch}.layers.{layer}.feed_forward.w2"
        for branch in ("conditional", "unconditional")
        for layer in range(2)
    ]
    tensors = load_file(tmp_path / "out" / LAB_WEIGHTS)
    source = tiny.fuse_attention(load_file(planted / "transformer" / WEIGHTS))
    for name in LINEARS:
        at, plain = f"conditional.{name}", source[f"{name}.weight"]
        if name.endswith("w2"):
            assert torch.equal(tensors[f"{at}.weight"], plain) and f"{at}.wq" not in tensors
            continue
        smooth = tensors[f"{at}.smooth"]
        meant = tensors[f"{at}.wq"].float() * tensors[f"{at}.ws"][:, None] / smooth
        # Half a step, and a row's largest value may be clipped to three quarters.
        assert relative_error(meant, plain) < 0.03
        assert smooth.max() / smooth.median() > 2 if not name.endswith(".o") else True


def test_one_file_says_how_it_is_smoothed(
    quantize, run_model, planted, statistics_file, tmp_path
):
    """There is no recipe.json beside it, and numbers alone may mislead."""
    out = tmp_path / "both.safetensors"
    words = ["--dialect", "transformerlab", "--recipe", "smoothquant"]
    quantize(planted, out, *words, "--statistics", statistics_file, "--verify")
    assert [path.name for path in tmp_path.iterdir()] == [out.name]
    with safe_open(out, "pt") as file:
        assert file.metadata()["smooth"] == "divide"
    tensors = inputs_for("transformer")
    model = model_of(tmp_path / "model", out)
    got = run_model("dit", model, tensors, linears="int8")["velocity"]
    assert relative_error(got, their_velocity(network_at(planted), tensors)) < INT8_ERROR


# --- sources -------------------------------------------------------------------------------------


def cast(dtype):
    def write(weight):
        return {"weight": weight.to(dtype)}, weight.to(dtype).float()

    return write


SOURCES = {
    "F32": (None, cast(torch.float32)),
    "BF16": (None, cast(torch.bfloat16)),
    "F16": (None, cast(torch.float16)),
    "FP8": ("comfy_kitchen", dialect_files.comfy_fp8),
    "NVFP4": ("comfy_kitchen", dialect_files.comfy_nvfp4),
    "NF4": ("bitsandbytes", dialect_files.bitsandbytes_4bit("nf4", True)),
    "GGUF": ("gguf", None),
}


@pytest.mark.parametrize("fused", [False, True], ids=["split", "fused"])
@pytest.mark.parametrize("name", SOURCES)
def test_sources(quantize, run_model, tmp_path, name, fused):
    library, writer = SOURCES[name]
    if library is not None:
        pytest.importorskip(library, reason=f"{library} has no wheel for this machine")
    source = tmp_path / "source"
    network = tiny.make_transformer(tiny.SHAPES[SHAPE], seed=3)
    network.save_pretrained(source / "transformer")
    if writer is None:
        meant = dialect_files.write_gguf(source, fused=fused)
    else:
        meant = dialect_files.rewrite_transformer(source, writer, fused=fused)
    protect = ["--protect", "layers.1.feed_forward.w2"]
    quantize(source / "transformer", tmp_path / "out", *protect, "--verify")
    made = load_file(tmp_path / "out" / "transformer" / WEIGHTS)
    # Protected linears keep their type where it is a plain one, and are BF16 else.
    kept = made["layers.1.feed_forward.w2.weight"]
    types = {"F32": torch.float32, "F16": torch.float16}
    assert kept.dtype == types.get(name, torch.bfloat16)
    assert relative_error(kept.float(), meant["layers.1.feed_forward.w2.weight"]) < 2**-8
    # Those that are small lose nothing.
    small = [key for key in made if key.endswith(".weight") and f"{key}_scale" not in made
             and not key.startswith("layers.1.feed_forward.w2")]  # fmt: skip
    assert any("adaln" in key or "embed" in key for key in small)
    for key in small:
        assert torch.equal(made[key].float(), meant[key].float()), key
    tensors = inputs_for("transformer")
    expected = their_velocity(network_of(meant), tensors)
    got = run_model("dit", tmp_path / "out", tensors, linears="int8")["velocity"]
    assert 1e-4 < relative_error(got, expected) < INT8_ERROR


def test_split_and_fused_sources_give_the_same_bytes(quantize, planted, tmp_path):
    fused = tmp_path / "fused"
    fused.mkdir()
    save_file(tiny.fuse_attention(load_file(planted / "transformer" / WEIGHTS)), fused / WEIGHTS)
    os.link(planted / "transformer" / "config.json", fused / "config.json")
    quantize(planted / "transformer", tmp_path / "a.safetensors")
    quantize(fused, tmp_path / "b.safetensors")
    a, b = load_file(tmp_path / "a.safetensors"), load_file(tmp_path / "b.safetensors")
    assert a.keys() == b.keys()
    for name in a:
        assert torch.equal(a[name], b[name]), name


def test_memory_and_threads_do_not_change_the_bytes(quantize, planted, tmp_path):
    quantize(planted / "transformer", tmp_path / "a.safetensors")
    words = ["--max-memory", "24M", "--threads", "2"]
    quantize(planted / "transformer", tmp_path / "b.safetensors", *words)
    a, b = ((tmp_path / f"{name}.safetensors").read_bytes() for name in "ab")
    assert a == b


# --- protection and statistics -------------------------------------------------------------------


def test_protection_by_name(quantize, planted, tmp_path):
    out = tmp_path / "out.safetensors"
    words = ["--protect", "layers.0.attention.*,*.w2"]
    report = quantize(planted / "transformer", out, *words)
    expected = [
        name for name in LINEARS if name.startswith("layers.0.attention") or name.endswith("w2")
    ]
    assert report["branches"][0]["protected_modules"] == expected
    tensors = load_file(out)
    for name in LINEARS:
        kept = tensors[f"{name}.weight"].dtype == torch.float32
        assert kept == (name in expected)
        assert (f"{name}.comfy_quant" in tensors) != kept


def test_protection_takes_the_worst(quantize, planted, statistics_file, tmp_path):
    words = ["--recipe", "rowwise", "--protect", "auto:3", "--statistics", statistics_file]
    report = quantize(planted, tmp_path / "out", *words)
    for branch in report["branches"]:
        errors = [e for e in report["errors"] if e["branch"] == branch["branch"]]
        worst = sorted(errors, key=lambda error: -error["rowwise"])[:3]
        assert {e["module"] for e in worst} == set(branch["protected_modules"])
        assert {e["module"] for e in errors if e["protected"]} == set(branch["protected_modules"])
        # The planted channel goes into qkv, w1 and w3.
        assert not any(name.endswith((".o", ".w2")) for name in branch["protected_modules"])


def test_statistics_are_kept_and_used_again(
    quantize, planted, caption, statistics_file, tmp_path
):
    out, again = tmp_path / "out", tmp_path / "again"
    words = ["--recipe", "smoothquant"]
    made = tmp_path / "activations.safetensors"
    report = quantize(planted, out, *words, *calibration(caption, made))
    assert report["activations"] == str(made)
    # The same work, done by another run; the header also names the source, by inode and time.
    kept, other = load_file(statistics_file), load_file(made)
    assert kept.keys() == other.keys()
    assert all(torch.equal(kept[name], other[name]) for name in kept)
    quantize(planted, again, *words, "--statistics", statistics_file)
    for part in PARTS:
        assert (out / part / WEIGHTS).read_bytes() == (again / part / WEIGHTS).read_bytes()
    # The planted channel was seen.
    amax = load_file(made)["conditional.layers.0.feed_forward.w1.amax"]
    assert amax[OUTLIER] > TIMES / 4 * amax.median()


def test_activations_lie_beside_the_output(quantize, planted, caption, tmp_path):
    words = ["--recipe", "smoothquant", "--captions", caption]
    words += ["--calibration-size", "256x256", "--calibration-steps", "1"]
    quantize(planted, f"{tmp_path}/out/", *words)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["out", "out.activations.safetensors"]


def test_a_base_gives_the_rest(quantize, run_model, planted, caption, tmp_path):
    """One transformer, calibrated with the other parts of a model."""
    words = ["--base", planted, "--recipe", "smoothquant", "--captions", caption]
    words += ["--calibration-size", "256x256", "--calibration-steps", "1", "--verify"]
    quantize(planted / "transformer", tmp_path / "out", *words)
    tensors = inputs_for("transformer")
    got = run_model("dit", tmp_path / "out", tensors, linears="int8")["velocity"]
    assert relative_error(got, their_velocity(network_at(planted), tensors)) < INT8_ERROR


def test_the_unconditional_transformer_alone(quantize, planted, caption, tmp_path):
    """Its own activations are seen, not those of the base's."""
    changed = tmp_path / "changed"
    shutil.copytree(planted, changed)
    edit_tensors(changed / PARTS[1],
                 lambda tensors: tensors["layers.0.ffn_norm1.weight"].mul_(64))
    amax = {}
    for source in (planted, changed):
        made = tmp_path / f"{source.name}.safetensors"
        words = [*calibration(caption, made), "--unconditional", "--base", planted]
        quantize(source / PARTS[1], *words)
        amax[source] = load_file(made)
    name = "unconditional.layers.0.feed_forward.w1.amax"
    assert amax[changed][name].max() > 16 * amax[planted][name].max()
    name = "conditional.layers.0.feed_forward.w1.amax"
    assert amax[changed][name].max() < 4 * amax[planted][name].max()


def test_a_complete_transformer_is_not_made_again(quantize, planted, tmp_path):
    out = tmp_path / "out"
    first = quantize(planted, out, "--protect", "auto:1", "--verify")
    assert first["resumed_tensors"] == 0 and first["verified"] is True
    # As a run leaves it that was stopped in the second.
    shutil.rmtree(out / PARTS[1])
    kept = (out / PARTS[0] / WEIGHTS).stat()
    again = quantize(planted, out, "--protect", "auto:1")
    assert again["resumed_tensors"] > 0
    assert (out / PARTS[0] / WEIGHTS).stat() == kept
    assert (out / PARTS[1] / WEIGHTS).is_file()
    # Another wish makes both.
    quantize(planted, out, "--protect", "none")
    assert (out / PARTS[0] / WEIGHTS).stat().st_ino != kept.st_ino


def test_an_embedding_in_eight_bits(quantize, run_model, planted, tmp_path):
    """Some files quantize every matrix, this one included."""
    model = tmp_path / "model"
    folder = model / "transformer"
    shutil.copytree(planted / "transformer", folder)

    def to_fp8(tensors):
        name = "embed_image_indicator.weight"
        scale = tensors[name].abs().max().reshape(1).float() / 448
        tensors[name] = (tensors[name] / scale).to(torch.float8_e4m3fn)
        tensors["embed_image_indicator.weight_scale"] = scale

    edit_tensors(folder, to_fp8)
    quantize(folder, tmp_path / "out", "--verify", "--measure")
    tensors = inputs_for("transformer")
    got = run_model("dit", tmp_path / "out", tensors, linears="float")["velocity"]
    expected = run_model("dit", model, tensors, linears="float")["velocity"]
    assert relative_error(got, expected) < INT8_ERROR
