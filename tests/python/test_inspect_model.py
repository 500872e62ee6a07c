"""`octet inspect` of models: dialects, how each linear will run, and the memory that it takes."""

from __future__ import annotations

import os
import shutil
import subprocess

import dialect_files
import pytest

pytest.importorskip("diffusers")
pytest.importorskip("transformers")

import tiny_ideogram4 as tiny
import torch
from generating import copy_of, rewrite, weights_of
from model_files import (
    SHAPE,
    inspect_json,
    modules_of,
    prefixed,
    quantized,
    save,
    tensors_of,
    whole,  # noqa: F401: a fixture
    write_gguf,
)
from safetensors.torch import load_file


@pytest.fixture
def inspect(built_program):
    return lambda *words: inspect_json(built_program("octet"), *words)


@pytest.fixture
def run(built_program):
    def run(*words):
        return subprocess.run(
            [built_program("octet"), "inspect", *map(str, words)], capture_output=True, text=True
        )

    return run


def parts_of(report):
    return {part["part"]: part for part in report["parts"]}


def linears_of(part):
    return {linear["name"]: linear for linear in part["linears"]}


def memory_of(tensors, int8_modules, smooth=0):
    """By hand: codes and a float per row of INT8, two bytes for other matrices and their biases,
    four for a norm."""
    total = 0
    for name, tensor in tensors.items():
        module = name.removesuffix(".weight")
        if module in int8_modules:
            total += tensor.numel() + 4 * tensor.shape[0]
        elif tensor.dim() == 2 or name.endswith(".bias"):
            total += 2 * tensor.numel()
        else:
            total += 4 * tensor.numel()
    return total + smooth


def bytes_of(tensors):
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors.values())


def test_a_whole_model(inspect, whole):  # noqa: F811
    report = inspect(whole)
    assert "tensors" not in report  # a folder of parts has none of its own
    parts = parts_of(report)
    assert list(parts) == ["transformer", "unconditional_transformer", "text_encoder", "vae"]
    tensors = tensors_of(whole)
    modules = modules_of(tensors)
    part = parts["transformer"]
    assert part["dialect"] == "plain"
    assert part["path"] == str(weights_of(whole / "transformer"))
    linears = linears_of(part)
    assert set(modules) < set(linears)
    for name, linear in linears.items():
        n, k = tensors[f"{name}.weight"].shape
        assert (linear["n"], linear["k"]) == (n, k)
        assert linear["format"] == "BF16" and linear["file_bytes"] == 2 * n * k
        int8 = name in modules
        assert linear["runs"] == ("int8 on load" if int8 else "bf16")
        assert linear["memory_bytes"] == (n * k + 4 * n if int8 else 2 * n * k)
    assert part["memory_bytes"] == memory_of(tensors, modules)
    assert part["file_bytes"] == bytes_of(tensors)
    # The unconditional one never reads the text's weights.
    tensors = tensors_of(whole, "unconditional")
    used = {name: t for name, t in tensors.items() if not name.startswith("llm_cond_")}
    other = parts["unconditional_transformer"]
    assert other["memory_bytes"] == memory_of(used, modules)
    assert other["file_bytes"] == bytes_of(used)


def test_the_text_encoder_and_the_vae(inspect, whole):  # noqa: F811
    parts = parts_of(inspect(whole))
    tower = {
        name.removeprefix("language_model."): tensor
        for name, tensor in load_file(weights_of(whole / "text_encoder")).items()
        if name.startswith("language_model.")
    }
    # The largest unit: of the embedding only a prompt's rows leave the file.
    layer = {name: t for name, t in tower.items() if name.startswith("layers.0.")}
    part = parts["text_encoder"]
    assert part["memory_bytes"] == memory_of(layer, [])
    used = {n: t for n, t in tower.items() if n.startswith(("layers.", "embed_tokens."))}
    assert part["file_bytes"] == bytes_of(used)
    assert all(linear["runs"] == "bf16" for linear in part["linears"])
    decoder = {
        name: tensor
        for name, tensor in load_file(weights_of(whole / "vae")).items()
        if name.startswith(("decoder.", "post_quant_conv."))
    }
    assert parts["vae"]["file_bytes"] == bytes_of(decoder)


def test_an_int8_file(inspect, whole, tmp_path):  # noqa: F811
    """Smoothed INT8 linears, one protected, as a single file: tensors and parts."""
    tensors = tiny.fuse_attention(tensors_of(whole))
    modules = [name for name in modules_of(tensors) if name != "layers.1.feed_forward.w2"]
    stored = quantized(tensors, dialect_files.transformer_lab, modules)
    path = save(tmp_path / "one.safetensors", prefixed("diffusion_model.", stored))
    report = inspect(path)
    assert len(report["tensors"]) == len(stored)
    (part,) = report["parts"]
    assert part["part"] == "transformer" and part["dialect"] == "plain, transformerlab"
    linears = linears_of(part)
    for name in modules:
        linear = linears[f"diffusion_model.{name}"]
        assert linear["dialect"] == "transformerlab" and linear["runs"] == "int8"
        assert "INT8" in linear["format"] and "SmoothQuant" in linear["format"]
    protected = linears["diffusion_model.layers.1.feed_forward.w2"]
    assert protected["runs"] == "bf16" and protected["dialect"] == "plain"
    # One vector per input: w1 and w3 share theirs.
    inputs = [name for name in modules if not name.endswith(".w3")]
    smooth = sum(4 * tensors[f"{name}.weight"].shape[1] for name in inputs)
    assert part["memory_bytes"] == memory_of(tensors, modules, smooth)
    assert part["file_bytes"] == bytes_of(stored)


def test_other_dialects(inspect, whole, tmp_path):  # noqa: F811
    tensors = tensors_of(whole)
    cases = {"transformerlab": (dialect_files.transformer_lab, "int8")}
    if pytest.importorskip("comfy_kitchen", reason="has no wheel for this machine"):
        cases["comfyui"] = (dialect_files.comfy_convrot(16), "int8")
        cases["comfyui "] = (dialect_files.comfy_fp8, "int8 on load")
    for name, (writer, runs) in cases.items():
        path = save(tmp_path / "one.safetensors", quantized(tensors, writer))
        (part,) = inspect(path)["parts"]
        of_blocks = [linears_of(part)[module] for module in modules_of(tensors)]
        assert {linear["runs"] for linear in of_blocks} == {runs}
        assert {linear["dialect"] for linear in of_blocks} == {name.strip()}
        assert part["dialect"].startswith(name.strip())


def test_gguf_of_both_branches(inspect, whole, tmp_path):  # noqa: F811
    pytest.importorskip("gguf")
    tensors = prefixed("cond.", tensors_of(whole))
    tensors |= prefixed("uncond.", tensors_of(whole, "unconditional"))
    parts = parts_of(inspect(write_gguf(tmp_path / "both.gguf", tensors)))
    assert list(parts) == ["transformer", "unconditional_transformer"]
    linear = linears_of(parts["unconditional_transformer"])["uncond.layers.0.attention.to_q"]
    assert linear["runs"] == "int8 on load" and linear["format"] == "GGUF Q8_0"
    assert linear["file_bytes"] == SHAPE.hidden**2 // 32 * 34


def test_an_unconditional_file(inspect, whole, tmp_path):  # noqa: F811
    """Known by its prefix, or by having no weights for the text."""
    tensors = tensors_of(whole, "unconditional")
    used = {name: t for name, t in tensors.items() if not name.startswith("llm_cond_")}
    for stored in (used, prefixed("unconditional.", used), prefixed("uncond.", tensors)):
        report = inspect(save(tmp_path / "one.safetensors", stored))
        assert "problem" not in report
        assert [part["part"] for part in report["parts"]] == ["unconditional_transformer"]


def test_over_a_base(inspect, whole, tmp_path):  # noqa: F811
    tensors = tiny.fuse_attention(tensors_of(whole))
    attention = {name: t for name, t in tensors.items() if "attention.qkv" in name}
    path = save(tmp_path / "one.safetensors", quantized(attention, dialect_files.transformer_lab))
    alone = inspect(path)
    assert "parts" not in alone and "one.safetensors" in alone["problem"]
    assert len(alone["tensors"]) == 3 * SHAPE.layers
    (part,) = inspect(path, "--base", whole)["parts"]
    runs = {name: linear["runs"] for name, linear in linears_of(part).items()}
    assert runs["layers.0.attention.qkv"] == "int8"
    # The file chose which of the large ones are INT8.
    assert runs["layers.0.feed_forward.w1"] == runs["input_proj"] == "bf16"


def test_text(run, whole, tmp_path):  # noqa: F811
    done = run(whole)
    assert done.returncode == 0 and done.stderr == ""
    rows = [line.split() for line in done.stdout.splitlines()]
    blocks = SHAPE.layers
    assert ["attention.qkv", str(3 * blocks), "BF16", "int8", "on", "load"] in [r[:6] for r in rows]
    assert ["adaln_proj", "1", "BF16", "bf16"] in [row[:4] for row in rows]
    assert "layers.0.attention.to_q" not in done.stdout
    verbose = run(whole, "-v").stdout
    assert "layers.0.attention.to_q" in verbose and "layers.1.feed_forward.w2" in verbose
    quiet = run(whole, "-q").stdout
    assert "attention.qkv" not in quiet and "transformer: " in quiet
    for text in (done.stdout, verbose, quiet):
        assert "one layer at a time" in text
        assert text.endswith(" of memory for weights.\n")


def test_what_is_no_model(inspect, run, tmp_path):
    path = save(tmp_path / "a.safetensors", {"x.weight": torch.ones(2, 3)})
    report = inspect(path)
    assert [tensor["name"] for tensor in report["tensors"]] == ["x.weight"]
    assert "parts" not in report and "problem" not in report
    assert "transformer" not in run(path).stdout.replace(str(path), "")


@pytest.mark.parametrize("suffix", ["lora_A.weight", "qweight"])
def test_what_looks_like_one_is_listed_too(inspect, run, whole, tmp_path, suffix):  # noqa: F811
    """A LoRA, or a file with tensors of no use: refusals tell people to look at them here."""
    for tensors in ({}, tensors_of(whole)):
        name = f"layers.0.attention.to_q.{suffix}"
        stored = tensors | {name: torch.ones(2, 2)}
        path = save(tmp_path / "odd.safetensors", stored)
        report = inspect(path)
        assert len(report["tensors"]) == len(stored) and "parts" not in report
        assert "odd.safetensors" in report["problem"]
        done = run(path)
        assert done.returncode == 0 and name in done.stdout
        assert "Not a complete network: " in done.stdout


def test_broken_models(run, whole, tmp_path):  # noqa: F811
    def refused(*words):
        done = run(*words)
        assert done.returncode == 1 and done.stdout == ""
        assert done.stderr.startswith("octet: ") and done.stderr.count("\n") == 1
        return done.stderr

    broken = copy_of(whole, tmp_path / "model")
    rewrite(broken / "transformer" / "config.json", "{")
    assert "transformer/config.json" in refused(broken)
    shutil.rmtree(broken / "transformer")
    shutil.copytree(whole / "transformer", broken / "transformer")
    rewrite(weights_of(broken / "transformer"), b"\x00" * 7)
    assert "transformer" in refused(broken)
    tensors = tensors_of(whole)
    del tensors["layers.0.ffn_norm1.weight"]
    save(weights_of(broken / "transformer"), tensors)
    assert "layers.0.ffn_norm1.weight" in refused(broken)
    assert "nowhere" in refused(tmp_path / "nowhere")
    path = tmp_path / "short.safetensors"
    path.write_bytes(weights_of(whole / "transformer").read_bytes()[:-1])
    assert "short.safetensors" in refused(path)
    one = save(tmp_path / "one.safetensors", tensors_of(whole))
    assert "nowhere" in run(one, "--base", os.path.join(tmp_path, "nowhere")).stdout
