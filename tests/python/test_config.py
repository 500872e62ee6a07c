"""The configuration file: where it is, what it sets, and that it is said."""

import json

import pytest
from generating import (
    generate,  # noqa: F401: a fixture
    model,  # noqa: F401: a fixture
)
from json_docs import check_against, documented_fields
from running import octet, only_sentence  # noqa: F401: a fixture


@pytest.fixture
def config(tmp_path):
    """config(text) writes the file; the result is for the environment."""

    def write(text):
        (tmp_path / "config.toml").write_text(text)
        return {"OCTET_CONFIG": str(tmp_path / "config.toml")}

    return write


def test_places(octet, tmp_path):  # noqa: F811
    home = tmp_path / "home"
    (home / ".config/octet").mkdir(parents=True)
    none = {"OCTET_CONFIG": "", "HOME": str(home)}
    assert octet("config", **none).stdout.startswith("No configuration file")
    # A subprocess' environment cannot lack what ours has, except in this way.
    own = {"HOME": str(home), "XDG_CONFIG_HOME": str(tmp_path / "xdg")}
    result = octet("config", OCTET_CONFIG=str(tmp_path / "none"), **own)
    assert "OCTET_CONFIG names" in only_sentence(result)


def test_it_is_found_below_the_users_folder(built_program, tmp_path):
    import subprocess

    places = {"HOME": tmp_path / ".config", "XDG_CONFIG_HOME": tmp_path}
    for variable, folder in places.items():
        (folder / "octet").mkdir(parents=True, exist_ok=True)
        (folder / "octet/config.toml").write_text('# mine\n\nbase = "a/b" # c\n  model = \'~/x\'\n')
        value = tmp_path if variable == "HOME" else folder
        done = subprocess.run([built_program("octet"), "config"], capture_output=True, text=True,
                              env={variable: str(value), "LC_ALL": "C"})
        assert done.returncode == 0, done.stderr
        lines = done.stdout.splitlines()
        assert lines[0] == str(folder / "octet/config.toml")
        assert 'base = "a/b"' in lines and "device = # not set: auto" in lines
        expected = f"{tmp_path}/x" if variable == "HOME" else "~/x"
        assert f'model = "{expected}"' in lines


def test_json(octet, config, repository):  # noqa: F811
    result = json.loads(octet("config", "--json", "-", **config("device = 'cpu'\n")).stdout)
    check_against(documented_fields(repository), "config", result)
    assert (result["device"], result["model"], result["is_there"]) == ("cpu", None, True)


def test_values_are_used_and_said(generate, model, config):  # noqa: F811
    environment = config(f'model = "{model}"\ndevice = "ref"\n')
    file = environment["OCTET_CONFIG"]
    flags = ("--model", None, "--device", None, "--threads", None)
    quiet = generate(model, *flags, environment=environment)
    assert quiet.returncode == 0 and quiet.stderr == "", quiet.stderr
    told = generate(model, *flags, environment=environment, more=["--json", "-"])
    assert json.loads(told.stdout)["model"] == str(model)
    assert json.loads(told.stdout)["device"].startswith("plain loops")
    # Flags win; what was not taken from the file is not said.
    given = generate(model, environment={**environment, "OCTET_LOG": "info"}, more=["--json", "-"])
    assert "plain loops" not in json.loads(given.stdout)["device"]
    assert file not in given.stderr


def test_defaults_are_said(octet, model, config, tmp_path):  # noqa: F811
    environment = config(f'model = "{model}"\nbase = "{model}"\ndevice = "cpu"\n')
    file = environment["OCTET_CONFIG"]
    done = octet("generate", "-p", "a fox", "--size", "8x6", "--steps", 1, "--tune", "off",
                 "--convention", "diffusers", "-o", tmp_path / "a.png", **environment)
    assert done.returncode == 0, done.stderr
    for line in (f"octet: model: {model} (from {file})", f"octet: base: {model} (from {file})",
                 f"octet: device: cpu (from {file})"):
        assert line in done.stderr.splitlines()


@pytest.mark.parametrize(("text", "part"), [
    ('modle = "a"', '"modle" is not a key; did you mean model?'),
    ('colour = "a"', "expected model, base or device"),
    ("model = a/b", "expected a text in quotes"),
    ('model = "a" b', '"b" stands behind the value'),
    ('model = ""', "is empty"),
    ("[octet]", 'expected key = "value"'),
    ('model = "a"\nmodel = "b"', "line 2: model was given before"),
    ('device = "gpu"', "device is 'gpu', expected auto"),
    ('model = "models/none"', "model is 'models/none', and nothing of this name was pulled"),
    ('model = "\x1b"', "line 1"),
])
def test_mistakes_name_the_line(octet, config, text, part):  # noqa: F811
    environment = config(text)
    if "\x1b" in text:
        done = octet("generate", "-p", "x", **environment)
        assert done.returncode != 0 and "\x1b" not in done.stderr
        return
    sentence = only_sentence(octet("generate", "-p", "x", **environment))
    assert part in sentence and environment["OCTET_CONFIG"] in sentence


def test_a_pipe_is_refused(octet, tmp_path):  # noqa: F811
    import os

    os.mkfifo(tmp_path / "pipe")
    only_sentence(octet("config", OCTET_CONFIG=str(tmp_path / "pipe")))
