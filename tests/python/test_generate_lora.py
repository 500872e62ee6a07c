"""`octet generate --lora` and `--cache-weights` from the outside."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("diffusers")
pytest.importorskip("transformers")

import dialect_files
import numpy as np
import torch
from generating import (
    copy_of,
    generate,  # noqa: F401: a fixture
    picture,
    refusal,
    weights_of,
)
from model_files import (
    PARTS,
    apart,
    modules_of,
    quantized,
    same,
    save,
    tensors_of,
    whole,  # noqa: F401: a fixture
)

# Of pixels, whose range is 255: weights and activations in 8 bits over two guided steps.
INT8_PIXELS = 10
FLOAT = ("--linears", "float", "--dtype", "f32")


def make_lora(tensors, seed=1, rank=4, size=0.4):
    """Of all linears of the blocks, as diffusers names them."""
    generator = torch.Generator().manual_seed(seed)
    made = {}
    for module in modules_of(tensors):
        rows, k = tensors[f"{module}.weight"].shape
        name = f"transformer.{module}"
        made[f"{name}.lora_A.weight"] = torch.randn(rank, k, generator=generator) / k**0.5
        made[f"{name}.lora_B.weight"] = size * torch.randn(rows, rank, generator=generator)
    return made


def merge(tensors, lora, strength=1.0):
    merged = {name: tensor.clone() for name, tensor in tensors.items()}
    for name, down in lora.items():
        if not name.endswith(".lora_A.weight"):
            continue
        stem = name.removesuffix("lora_A.weight")
        target = stem.removeprefix("transformer.") + "weight"
        change = lora[stem + "lora_B.weight"].double() @ down.double()
        merged[target] = (merged[target].double() + strength * change).float()
    return merged


@pytest.fixture
def folders(whole, tmp_path):  # noqa: F811
    """folders(conditional, unconditional) is a model with these weights in the transformers."""

    def make(name, **branches):
        folder = copy_of(whole, tmp_path / name)
        for branch, tensors in branches.items():
            path = weights_of(folder / PARTS[branch])
            path.unlink()
            save(path, tensors)
        return folder

    return make


@pytest.fixture
def lora(whole, tmp_path):  # noqa: F811
    return save(tmp_path / "style.safetensors", make_lora(tensors_of(whole)))


@pytest.fixture
def cache(tmp_path):
    folder = tmp_path / "cache"
    environment = {"OCTET_CACHE_DIR": str(folder)}
    return folder / "converted", environment


@pytest.fixture
def run(generate, cache):  # noqa: F811
    """A picture, with a cache of this test's own."""

    def run(model, *flags, **options):
        return picture(generate(model, *flags, environment=cache[1], **options), generate)

    return run


def test_strength(run, whole, lora):  # noqa: F811
    plain = run(whole)
    changed = run(whole, "--lora", lora)
    assert apart(changed, plain) > 5
    assert same(run(whole, "--lora", f"{lora}:1"), changed)
    nothing = run(whole, "--lora", f"{lora}:0")
    assert same(nothing, plain) and nothing.text["checkpoint"] == plain.text["checkpoint"]
    half = run(whole, "--lora", f"{lora}:0.5")
    assert not same(half, changed) and not same(half, plain)
    assert changed.text["loras"] == str(lora) and plain.text["loras"] == "none"
    texts = [image.text["checkpoint"] for image in (plain, changed, half)]
    assert len(set(texts)) == 3


@pytest.mark.parametrize(
    ("networks", "changed"),
    [
        ("", ["conditional"]),
        (":cond", ["conditional"]),
        (":uncond", ["unconditional"]),
        (":both", list(PARTS)),
    ],
)
def test_it_is_the_merge_of_torch(run, whole, folders, lora, networks, changed):  # noqa: F811
    """In floating point. Sums in another order may move a value to the neighbouring byte."""
    matrices = make_lora(tensors_of(whole))
    branches = {branch: merge(tensors_of(whole, branch), matrices, 0.7) for branch in changed}
    expected = run(folders("merged", **branches), *FLOAT)
    got = run(whole, "--lora", f"{lora}:0.7{networks}", *FLOAT)
    assert np.abs(np.asarray(got).astype(int) - np.asarray(expected)).max() <= 1
    assert apart(got, run(whole, *FLOAT)) > 5


def test_several_stack(run, whole, folders, lora, tmp_path):  # noqa: F811
    others = make_lora(tensors_of(whole), seed=2, rank=3)
    second = save(tmp_path / "second.safetensors", others)
    merged = merge(merge(tensors_of(whole), make_lora(tensors_of(whole))), others, -0.5)
    expected = run(folders("merged", conditional=merged), *FLOAT)
    got = run(whole, "--lora", lora, "--lora", f"{second}:-0.5", *FLOAT)
    assert np.abs(np.asarray(got).astype(int) - np.asarray(expected)).max() <= 1


@pytest.mark.parametrize("source", ["bf16", "convrot", "smoothquant"])
def test_in_int8(run, whole, folders, lora, source):  # noqa: F811
    """Close to the merge in floating point, of plain weights and of those in INT8 already."""
    base = whole
    if source == "convrot":
        pytest.importorskip("comfy_kitchen", reason="has no wheel for this machine")
        writer = dialect_files.comfy_convrot(16)
        base = folders("int8", conditional=quantized(tensors_of(whole), writer))
    elif source == "smoothquant":
        writer = dialect_files.transformer_lab
        base = folders("int8", conditional=quantized(tensors_of(whole), writer))
    merged = merge(tensors_of(whole), make_lora(tensors_of(whole)))
    expected = run(folders("merged", conditional=merged), *FLOAT)
    got = run(base, "--lora", lora)
    assert "attention.qkv int8" in got.text["kernels"]
    assert 0 < apart(got, expected) < INT8_PIXELS
    again = run(base, "--lora", lora)
    assert same(again, got) and again.text["checkpoint"] == got.text["checkpoint"]


# --- the cache -----------------------------------------------------------------------------------


@pytest.mark.parametrize("what", ["a LoRA", "conversion alone"])
def test_the_second_run_reads_what_the_first_kept(run, whole, lora, cache, what):  # noqa: F811
    flags = ("--lora", f"{lora}:both") if what == "a LoRA" else ("--cache-weights",)
    plain = run(whole)
    assert not cache[0].exists()  # nobody asked for it
    first = run(whole, *flags)
    files = sorted(cache[0].iterdir())
    assert len(files) == 2  # one for each transformer, and nothing half done
    assert all(path.suffix == ".safetensors" for path in files)
    assert same(first, plain) == (what != "a LoRA")
    states = [path.read_bytes() for path in files]
    second = run(whole, *flags)
    assert same(second, first)
    assert [path.read_bytes() for path in files] == states
    assert second.text["checkpoint"] == first.text["checkpoint"]
    if what != "a LoRA":
        assert first.text["checkpoint"] == plain.text["checkpoint"]


def test_the_second_run_does_read_them(run, whole, cache):  # noqa: F811
    """Other codes in the kept file, which no run would make, show in the picture."""
    first = run(whole, "--cache-weights")
    for path in cache[0].iterdir():
        content = path.read_bytes()
        begin = 8 + int.from_bytes(content[:8], "little")
        header = json.loads(content[8:begin])
        data = bytearray(content)
        for name, entry in header.items():
            if name != "__metadata__" and entry["dtype"] == "I8":
                start, end = (begin + offset for offset in entry["data_offsets"])
                data[start:end] = data[start:end][::-1]
        path.write_bytes(bytes(data))
    assert not same(run(whole, "--cache-weights"), first)


@pytest.mark.parametrize("damage", ["cut", "empty", "header", "key", "missing tensor", "end"])
def test_damaged_files_are_made_anew(generate, run, whole, lora, cache, damage):  # noqa: F811
    first = run(whole, "--lora", lora)
    (path,) = cache[0].iterdir()
    content = path.read_bytes()
    header = int.from_bytes(content[:8], "little")
    if damage == "cut":
        path.write_bytes(content[:-100])
    elif damage == "end":
        path.write_bytes(content[: len(content) * 9 // 10].ljust(len(content), b"\xff"))
    elif damage == "empty":
        path.write_bytes(b"")
    elif damage == "header":
        path.write_bytes(content[:8] + b"\xff" * 20 + content[28:])
    elif damage == "key":
        path.write_bytes(content.replace(b"octet converted weights", b"octet Converted weights"))
    else:
        tensors = json.loads(content[8 : 8 + header])
        name = next(name for name in tensors if name.endswith("to_q.weight"))
        # The name is as long as before, and so is the header.
        path.write_bytes(content.replace(name.encode(), name[:-1].encode() + b"x"))
    damaged = path.read_bytes()
    done = generate(whole, "--lora", lora, environment=cache[1])
    if done.stderr:  # at most one sentence about it
        assert done.stderr.count("\n") == 1 and "made again" in done.stderr
        done.stderr = ""
    assert same(picture(done, generate), first)
    assert path.read_bytes() != damaged  # it was replaced, and is of use again
    assert same(run(whole, "--lora", lora), first)


def test_what_changes_is_not_taken_from_it(run, whole, folders, lora, cache):  # noqa: F811
    """Another strength, another LoRA under the same name, another model in the same place."""
    model = folders("model", conditional=tensors_of(whole))
    first = run(model, "--lora", lora)
    assert not same(run(model, "--lora", f"{lora}:0.5"), first)
    assert len(list(cache[0].iterdir())) == 2
    save(lora, make_lora(tensors_of(whole), seed=9))
    assert not same(run(model, "--lora", lora), first)
    assert len(list(cache[0].iterdir())) == 3
    save(lora, make_lora(tensors_of(whole)))
    assert same(run(model, "--lora", lora), first)
    assert len(list(cache[0].iterdir())) == 3
    tensors = tensors_of(whole)
    tensors["layers.0.feed_forward.w2.weight"] *= -1
    save(weights_of(model / "transformer"), tensors)
    assert not same(run(model, "--lora", lora), first)
    assert len(list(cache[0].iterdir())) == 4


@pytest.mark.parametrize("obstacle", ["a file in its place", "too small"])
def test_a_cache_that_cannot_be_written_only_warns(  # noqa: F811
    generate, run, whole, lora, cache, tmp_path, obstacle
):
    first = run(whole, "--lora", lora)
    environment = {"OCTET_CACHE_DIR": str(tmp_path / "other")}
    if obstacle == "too small":
        environment["OCTET_CACHE_MAX_GB"] = "0.000001"
    else:
        (tmp_path / "other").write_text("in the way")
    done = generate(whole, "--lora", lora, environment=environment)
    lines = done.stderr.splitlines()
    assert len(lines) == 1 and "not kept" in lines[0]
    done.stderr = ""
    assert same(picture(done, generate), first)


def test_floating_point_keeps_nothing(run, whole, lora, cache):  # noqa: F811
    run(whole, "--lora", lora, "--cache-weights", "--linears", "float")
    assert not cache[0].exists()


def test_int8_files_need_no_cache(run, whole, folders, cache):  # noqa: F811
    stored = {
        branch: quantized(tensors_of(whole, branch), dialect_files.transformer_lab)
        for branch in PARTS
    }
    run(folders("int8", **stored), "--cache-weights")
    assert not cache[0].exists()


# --- what is refused -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "part", "code"),
    [
        ("{}:nan", "strength", 2),
        ("{}:1e9", "strength", 2),
        ("{}:x", "strength", 2),
        ("{}:1:every", "networks", 2),
        ("{}:1:1:1", "", 1),  # a file of this name
        (":1", "file name", 2),
        ("", "path is empty", 2),
        ("{}.no", ".no", 1),
    ],
)
def test_wrong_words(generate, whole, lora, words, part, code):  # noqa: F811
    done = generate(whole, "--lora", words.format(lora))
    sentence = refusal(done, generate, code)
    assert part in sentence


def test_hostile_files(generate, whole, tmp_path):  # noqa: F811
    good = make_lora(tensors_of(whole))
    path = tmp_path / "bad.safetensors"
    name = "transformer.layers.0.attention.to_q.lora_A.weight"
    broken = {
        "is not a linear": {**good, name.replace("layers.0", "layers.7"): good[name]},
        "not a tensor of a LoRA": {**good, "junk\x1b[2J": torch.ones(1)},
        "no down matrix": {key: t for key, t in good.items() if key != name},
        "expected [rank": {**good, name: good[name][:, 1:]},
        "NaN": {**good, name: good[name] * float("nan")},
        "F32, BF16 or F16": {**good, name: good[name].to(torch.int8)},
        "overflows": {key: t * 1e25 for key, t in good.items()},
        "DoRA": {**good, name.replace("lora_A.weight", "dora_scale"): torch.ones(1)},
    }
    for part, tensors in broken.items():
        save(path, tensors)
        sentence = refusal(generate(whole, "--lora", path), generate)
        assert part in sentence and "bad.safetensors" in sentence or part == "overflows", sentence
        assert "\x1b" not in sentence
    for content in (b"", b"\xff" * 64, path.read_bytes()[:-5]):
        path.write_bytes(content)
        assert "bad.safetensors" in refusal(generate(whole, "--lora", path), generate)
