"""LoRA files in the dialects of other programs, merged by Octet, against diffusers with the same
change added to its weights in torch. Tolerances are relative errors ||ours - theirs|| / ||theirs||.
"""

from __future__ import annotations

import copy
import json
import statistics
import subprocess

import pytest

pytest.importorskip("diffusers")
pytest.importorskip("transformers")

import reference
import tiny_ideogram4 as tiny
import torch
from code_flips import count_flips
from diffusers import Ideogram4Pipeline
from safetensors.torch import load_file, save_file

GRID, COUNT = (3, 4), 7
SHAPE = tiny.SHAPES["deep"]

# Float32 on both sides, sums in another order, as without a LoRA.
VELOCITY_F32 = 1e-5


def relative_error(got, expected):
    error = ((got.double() - expected.double()).norm() / expected.double().norm()).item()
    print(f"relative error {error:.2e}")
    return error


@pytest.fixture(scope="session")
def split(tmp_path_factory):
    folder = tmp_path_factory.mktemp("split")
    tiny.save_pipeline(folder, SHAPE)
    return folder


@pytest.fixture(scope="session")
def fused(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fused")
    tiny.save_pipeline(folder, SHAPE)
    tiny.rewrite_transformers(folder, fused=True)
    return folder


@pytest.fixture(scope="session")
def pipeline(split):
    return reference.load(split)


@pytest.fixture
def run(built_program, tmp_path):
    def run(component, folder, tensors, lora=None, refused=False, **options):
        save_file(tensors, tmp_path / "in.safetensors")
        command = [built_program("run_model"), component, "--model", folder, "--dtype", "f32"]
        command += ["--in", tmp_path / "in.safetensors", "--out", tmp_path / "out.safetensors"]
        options |= {} if lora is None else {"lora": lora}
        for name, value in options.items():
            command += [f"--{name}", value]
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
        if refused:
            assert done.returncode == 1
            return done.stderr
        assert done.returncode == 0, done.stderr
        return load_file(tmp_path / "out.safetensors")["velocity"]

    return run


def inputs(conditional=True, seed=11):
    generator = torch.Generator().manual_seed(seed)
    tensors = {
        "latent": torch.randn(GRID[0] * GRID[1], SHAPE.token_channels, generator=generator),
        "time": torch.tensor([0.4]),
        "grid": torch.tensor(GRID, dtype=torch.int32),
    }
    if conditional:
        tensors["features"] = 2 * torch.randn(COUNT, SHAPE.text_features, generator=generator)
    return tensors


def their_velocity(transformer, tensors):
    return reference.velocity(
        transformer, tensors["latent"], tensors["time"], GRID, tensors.get("features")
    )


# --- LoRAs ---------------------------------------------------------------------------------------


def modules(transformer, fused=False):
    """Name -> (rows, k) of every linear, under the names of either layout."""
    found = {}
    for name, module in transformer.named_modules():
        if not isinstance(module, torch.nn.Linear):
            continue
        rows, k = module.weight.shape
        if fused and name.endswith((".to_k", ".to_v")):
            continue
        if fused and name.endswith(".to_q"):
            name, rows = name.replace(".to_q", ".qkv"), 3 * rows
        if fused:
            name = name.replace(".to_out.0", ".o")
        found[name] = (rows, k)
    return found


def make_lora(shapes, rank=6, seed=5, down="lora_A", up="lora_B"):
    """Matrices whose product changes a weight by about as much as it holds. Ranks differ."""
    generator = torch.Generator().manual_seed(seed)
    made = {}
    for i, (name, (rows, k)) in enumerate(sorted(shapes.items())):
        r = rank + i % 3
        made[f"{name}.{down}.weight"] = torch.randn(r, k, generator=generator) / k**0.5
        made[f"{name}.{up}.weight"] = 0.3 * torch.randn(rows, r, generator=generator)
    return made


def prefixed(prefix, tensors):
    return {prefix + name: tensor for name, tensor in tensors.items()}


def merged(transformer, state, strength=1.0, factor=lambda name, rank: 1.0):
    """A copy with the LoRA, named as in diffusers, added to its weights."""
    changed = copy.deepcopy(transformer)
    linears = dict(changed.named_modules())
    for name, down in state.items():
        if not name.endswith(".lora_A.weight"):
            continue
        name = name.removesuffix(".lora_A.weight")
        up = state[name + ".lora_B.weight"].double()
        change = strength * factor(name, down.shape[0]) * (up @ down.double())
        weight = linears[name].weight
        weight.data = (weight.double() + change).float()
    return changed


def as_diffusers(path):
    """The file as diffusers' own loader understands it, without the prefix."""
    state = Ideogram4Pipeline.lora_state_dict(str(path))
    assert all(name.startswith("transformer.") for name in state)
    return {name.removeprefix("transformer."): tensor for name, tensor in state.items()}


def of_blocks(shapes):
    """What diffusers' conversion knows of."""
    return {name: shape for name, shape in shapes.items() if name.startswith("layers.")}


def far(got, pipeline, tensors):
    return relative_error(got, their_velocity(pipeline.transformer, tensors)) > 0.05


# --- tests ---------------------------------------------------------------------------------------


def test_every_linear_in_the_names_of_diffusers(run, split, fused, pipeline, tmp_path):
    """Split matrices on split and on fused weights."""
    state = make_lora(modules(pipeline.transformer))
    save_file(prefixed("transformer.", state), tmp_path / "a.safetensors")
    tensors = inputs()
    expected = their_velocity(merged(pipeline.transformer, state, 0.7), tensors)
    for folder in (split, fused):
        got = run("dit", folder, tensors, f"{tmp_path / 'a.safetensors'}:0.7")
        assert relative_error(got, expected) < VELOCITY_F32
        assert far(got, pipeline, tensors)


@pytest.mark.parametrize("prefix", ["diffusion_model.", "conditional_transformer.", ""])
@pytest.mark.parametrize("suffixes", [("lora_A", "lora_B"), ("lora_down", "lora_up")])
def test_fused_files_as_diffusers_reads_them(
    run, split, fused, pipeline, tmp_path, prefix, suffixes
):
    """ComfyUI's and ai-toolkit's names, with an alpha where diffusers looks for one."""
    shapes = of_blocks(modules(pipeline.transformer, fused=True))
    state = make_lora(shapes, down=suffixes[0], up=suffixes[1])
    for i, name in enumerate(sorted(shapes)):
        if i % 2 == 0:
            state[f"{name}.alpha"] = torch.tensor(2.0 + i)
    path = tmp_path / "a.safetensors"
    save_file(prefixed(prefix, state), path)
    tensors = inputs()
    expected = their_velocity(merged(pipeline.transformer, as_diffusers(path)), tensors)
    for folder in (split, fused):
        got = run("dit", folder, tensors, path)
        assert relative_error(got, expected) < VELOCITY_F32
        assert far(got, pipeline, tensors)


def test_kohya_names(run, split, pipeline, tmp_path):
    shapes = of_blocks(modules(pipeline.transformer, fused=True))
    dotted = make_lora(shapes, down="lora_down", up="lora_up")
    flat = {}
    for name, tensor in dotted.items():
        module, _, rest = name.rpartition(".lora_")
        flat[f"lora_unet_{module.replace('.', '_')}.lora_{rest}"] = tensor
    for name in shapes:
        key = name.replace(".", "_")
        dotted[f"{name}.alpha"] = flat[f"lora_unet_{key}.alpha"] = torch.tensor(3.0).half()
    save_file(prefixed("diffusion_model.", dotted), tmp_path / "dotted.safetensors")
    save_file(flat, tmp_path / "flat.safetensors")
    tensors = inputs()
    theirs = merged(pipeline.transformer, as_diffusers(tmp_path / "dotted.safetensors"))
    got = run("dit", split, tensors, tmp_path / "flat.safetensors")
    assert relative_error(got, their_velocity(theirs, tensors)) < VELOCITY_F32


def test_alpha_in_the_metadata_of_diffusers(run, split, pipeline, tmp_path):
    """save_lora_weights keeps PEFT's configuration there."""
    state = make_lora(modules(pipeline.transformer))
    special = "layers.1.attention.to_q"
    config = {"r": 6, "lora_alpha": 9, "alpha_pattern": {special: 2}, "use_dora": False}
    save_file(
        prefixed("transformer.", state),
        tmp_path / "a.safetensors",
        {"lora_adapter_metadata": json.dumps(prefixed("transformer.", config))},
    )
    tensors = inputs()
    theirs = merged(
        pipeline.transformer, state, factor=lambda name, r: (2 if name == special else 9) / r
    )
    got = run("dit", split, tensors, tmp_path / "a.safetensors")
    assert relative_error(got, their_velocity(theirs, tensors)) < VELOCITY_F32


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_narrow_files(run, split, pipeline, tmp_path, dtype):
    shapes = modules(pipeline.transformer)
    state = {name: tensor.to(dtype) for name, tensor in make_lora(shapes).items()}
    save_file(prefixed("base_model.model.", state), tmp_path / "a.safetensors")
    tensors = inputs()
    expected = their_velocity(merged(pipeline.transformer, state), tensors)
    got = run("dit", split, tensors, tmp_path / "a.safetensors")
    assert relative_error(got, expected) < VELOCITY_F32


def test_networks(run, split, pipeline, tmp_path):
    """As in diffusers, a file changes the conditional network; asked to, the other one or both."""
    path = tmp_path / "a.safetensors"
    state = make_lora(modules(pipeline.transformer))
    save_file(prefixed("transformer.", state), path)
    both = {
        "dit": (pipeline.transformer, True),
        "uncond": (pipeline.unconditional_transformer, False),
    }
    cases = {"": {"dit"}, ":1:cond": {"dit"}, ":1:uncond": {"uncond"}, ":1:both": {"dit", "uncond"}}
    for choice, changed in cases.items():
        for component, (network, conditional) in both.items():
            tensors = inputs(conditional)
            theirs = merged(network, state) if component in changed else network
            got = run(component, split, tensors, f"{path}{choice}")
            assert relative_error(got, their_velocity(theirs, tensors)) < VELOCITY_F32, choice


def test_int8_is_that_of_the_merged_weights(run, split, pipeline, tmp_path):
    """The LoRA is in the codes: the same as quantizing the merged weights in torch, so its error
    is that of W8A8 and no more."""
    state = make_lora(modules(pipeline.transformer))
    save_file(prefixed("transformer.", state), tmp_path / "a.safetensors")
    theirs = merged(pipeline.transformer, state)

    def quantized():  # anew, for codes of weights are counted too: Octet merges in float32
        return reference.quantize_transformer(copy.deepcopy(theirs))

    exact = []
    for seed in range(5):
        tensors = inputs(seed=seed)
        got = run("dit", split, tensors, tmp_path / "a.safetensors", linears="int8")
        count_flips(got, lambda: their_velocity(quantized(), tensors), VELOCITY_F32, most=3)
        exact.append(relative_error(got, their_velocity(theirs, tensors)))
    assert 1e-3 < statistics.median(exact) < 0.1


def test_what_does_not_fit_is_refused(run, split, pipeline, tmp_path):
    path = tmp_path / "a.safetensors"
    state = make_lora(modules(pipeline.transformer))
    stray = {"transformer.no.lora_A.weight": torch.ones(1, 2)}
    save_file(prefixed("transformer.", state) | stray, path)
    assert '"transformer.no" is not a linear of the model' in run(
        "dit", split, inputs(), path, refused=True
    )
    save_file(prefixed("transformer.", state), path)
    assert "is not a number" in run("dit", split, inputs(), f"{path}:nan", refused=True)
