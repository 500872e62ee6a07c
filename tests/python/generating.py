"""What the tests of `octet generate` share: a tiny model, damaged copies of it, and the program."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
import tiny_ideogram4 as tiny
from PIL import Image
from safetensors.torch import load_file, save_file

# One VAE level without attention: a token is two by two pixels, and a run takes 50 ms.
SHAPE = tiny.SHAPES["plain"]

SETTINGS = {
    "--caption": "-",
    "--device": "cpu",
    "--threads": "1",
    "--convention": "diffusers",
    "--size": "8x6",
    "--steps": "2",
    "--tune": "off",
}


@pytest.fixture(scope="session")
def model(tmp_path_factory) -> Path:
    """Not to be changed: tests take a copy."""
    return tiny.save_pipeline(tmp_path_factory.mktemp("model"), SHAPE)


@pytest.fixture
def copy(model, tmp_path) -> Path:
    """A model of links to the files of the other, each of which may be replaced."""
    return copy_of(model, tmp_path / "copy")


@pytest.fixture
def generate(built_program, tmp_path):
    """generate(model, "--flag", value, ...) runs the program; a flag given here replaces that of
    SETTINGS, and None takes it away; `more` are words as they stand. Pictures go to
    generate.out."""
    out = tmp_path / "out"
    out.mkdir()

    def run(folder, *flags, caption=tiny.CAPTION, environment=None, more=(), **options):
        done = subprocess.run(
            [*command(built_program("octet"), folder, out, flags), *map(str, more)],
            input=caption if isinstance(caption, bytes) else caption.encode(),
            capture_output=True,
            timeout=60,
            env={**os.environ, **(environment or {})},
            **options,
        )
        done.stdout, done.stderr = done.stdout.decode(), done.stderr.decode()
        return done

    run.out = out
    return run


def command(program, folder, out, flags=()) -> list[str]:
    settings = {**SETTINGS, "--model": folder, "--out": out / "out.png"}
    words, flags = [], list(flags)
    while flags:
        flag = flags.pop(0)
        if flag in ("--wrap-text", "--any-caption", "--require-int8", "--cache-weights"):
            words.append(flag)
        elif flag == "--lora":  # several stack
            words += [flag, str(flags.pop(0))]
        else:
            settings[flag] = flags.pop(0)
    for flag, value in settings.items():
        if value is not None:
            words += [flag, str(value)]
    return [str(program), "generate", "-q", *words]


def pictures(done, run) -> list[Image.Image]:
    """Those that a successful run wrote, with nothing beside them."""
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    opened = []
    for path in sorted(run.out.iterdir()):
        assert path.suffix == ".png"
        with Image.open(path) as image:
            image.load()
            opened.append(image)
        path.unlink()
    return opened


def picture(done, run) -> Image.Image:
    (only,) = pictures(done, run)
    return only


def refusal(done, run, code=1) -> str:
    """The one sentence of a failed run, which wrote nothing."""
    assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
    assert done.stdout == ""
    lines = done.stderr.splitlines()
    assert len(lines) == 1, done.stderr
    assert lines[0].startswith("octet: ")
    assert "unexpected failure" not in lines[0]
    assert list(run.out.iterdir()) == []
    return lines[0]


# --- damage --------------------------------------------------------------------------------------


def copy_of(model: Path, folder: Path) -> Path:
    return Path(shutil.copytree(model, folder, copy_function=os.link))


def weights_of(part: Path) -> Path:
    (path,) = part.glob("*.safetensors")
    return path


def rewrite(path: Path, content: bytes | str) -> None:
    """A new file in the place of what may be a link to the model of all tests."""
    path.unlink(missing_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())


def edit_json(path: Path, edit) -> None:
    value = json.loads(path.read_text())
    edit(value)
    rewrite(path, json.dumps(value))


def edit_tensors(part: Path, edit) -> None:
    path = weights_of(part)
    tensors = {name: tensor.clone() for name, tensor in load_file(path).items()}
    edit(tensors)
    path.unlink()
    save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, path)


def shard(folder: Path) -> Path:
    """Cuts both transformers of a copy; returns the first one's index."""
    for part in ("transformer", "unconditional_transformer"):
        path = weights_of(folder / part)
        rewrite(path, path.read_bytes())
    tiny.rewrite_transformers(folder, max_shard_size="20KB")
    (index,) = (folder / "transformer").glob("*.index.json")
    return index
