"""Models by their name on the Hub: owner/name finds what was pulled, in every command."""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest

pytest.importorskip("diffusers")
pytest.importorskip("transformers")

import torch
from generating import (
    generate,  # noqa: F401: a fixture
    picture,
    refusal,
    weights_of,
)
from model_files import (
    same,
    save,
    tensors_of,
    whole,  # noqa: F401: a fixture
)

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture
def hub(whole, tmp_path, monkeypatch):  # noqa: F811
    """A cache with ideogram-ai/tiny, all files links to blobs; the environment that names it."""
    repo = tmp_path / "hub" / "models--ideogram-ai--tiny"
    snapshot = repo / "snapshots" / COMMIT
    (repo / "blobs").mkdir(parents=True)
    for index, path in enumerate(sorted(whole.rglob("*"))):
        if path.is_dir():
            continue
        blob = repo / "blobs" / f"{index:040x}"
        shutil.copy(path, blob)
        link = snapshot / path.relative_to(whole)
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(blob)
    (repo / "refs").mkdir()
    (repo / "refs" / "main").write_text(COMMIT)
    monkeypatch.chdir(tmp_path)
    return {"HF_HUB_CACHE": str(tmp_path / "hub")}


@pytest.fixture
def run(built_program, hub):
    def run(*words):
        return subprocess.run(
            [built_program("octet"), *map(str, words)],
            capture_output=True,
            text=True,
            env={**os.environ, **hub},
        )

    return run


def test_generate(generate, whole, hub):  # noqa: F811
    plain = picture(generate(whole), generate)
    made = picture(generate("ideogram-ai/tiny", environment=hub), generate)
    assert same(made, plain) and made.text["checkpoint"] == plain.text["checkpoint"]
    one = weights_of(whole / "transformer")
    made = picture(generate(one, "--base", "ideogram-ai/tiny", environment=hub), generate)
    assert same(made, plain)
    parts = ("--uncond", "ideogram-ai/tiny", "--text-encoder", "ideogram-ai/tiny")
    flags = (*parts, "--vae", "ideogram-ai/tiny")
    assert same(picture(generate(one, *flags, environment=hub), generate), plain)


def test_inspect(run, whole, tmp_path):  # noqa: F811
    done = run("inspect", "ideogram-ai/tiny")
    assert done.returncode == 0 and "unconditional_transformer: " in done.stdout
    one = save(tmp_path / "few.safetensors", {"layers.0.attention.qkv.weight": one_tensor(whole)})
    done = run("inspect", one, "--base", "ideogram-ai/tiny", "--json", "-")
    assert done.returncode == 0 and '"layers.0.attention.qkv"' in done.stdout
    assert '"problem"' not in done.stdout


def one_tensor(model):
    tensors = tensors_of(model)
    return torch.cat([tensors[f"layers.0.attention.to_{part}.weight"] for part in "qkv"])


def test_inspect_of_a_repository_of_one_file(run, hub, tmp_path, whole):  # noqa: F811
    snapshot = tmp_path / "hub" / "models--me--file" / "snapshots" / COMMIT
    snapshot.mkdir(parents=True)
    (snapshot.parents[1] / "refs").mkdir()
    (snapshot.parents[1] / "refs" / "main").write_text(COMMIT)
    save(snapshot / "model.safetensors", tensors_of(whole))
    done = run("inspect", "me/file")
    assert done.returncode == 0, done.stderr
    assert "layers.0.attention.to_q.weight" in done.stdout and "transformer: " in done.stdout


def test_quantize(run, tmp_path):
    out = tmp_path / "out"
    done = run("quantize", "ideogram-ai/tiny", out, "--recipe", "rowwise", "--device", "cpu")
    assert done.returncode == 0, done.stderr
    assert len(list(out.rglob("*.safetensors"))) == 2


@pytest.mark.parametrize("flag", ["--model", "--base", "--uncond", "--vae"])
def test_not_pulled(generate, whole, hub, flag):  # noqa: F811
    sentence = refusal(generate(whole, flag, "ideogram-ai/other", environment=hub), generate)
    assert "octet pull ideogram-ai/other" in sentence
    assert hub["HF_HUB_CACHE"] in sentence


def test_commands_say_how_to_pull(run, tmp_path):
    for words in (("inspect", "a/b"), ("quantize", "a/b", tmp_path / "out")):
        done = run(*words)
        assert done.returncode == 1 and done.stderr.count("\n") == 1
        assert "octet pull a/b" in done.stderr


def test_a_folder_of_this_name_wins(generate, whole, hub, tmp_path):  # noqa: F811
    local = tmp_path / "ideogram-ai" / "tiny"
    shutil.copytree(whole, local)
    tensors = tensors_of(whole)
    tensors["layers.0.attention.to_v.weight"] *= -1
    save(weights_of(local / "transformer"), tensors)
    made = picture(generate("ideogram-ai/tiny", environment=hub), generate)
    assert same(made, picture(generate(local), generate))
    assert not same(made, picture(generate(whole), generate))
    shutil.rmtree(local)
    local.mkdir()  # an empty one, too: it is what the user named
    assert str(local.relative_to(tmp_path)) in refusal(
        generate("ideogram-ai/tiny", environment=hub), generate
    )
