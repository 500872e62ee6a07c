"""docs/server_api.md: its examples run, and it names every route, field and metric there is."""

from __future__ import annotations

import base64
import importlib.util
import os
import re
import subprocess
import sys

import pytest
from conftest import REPOSITORY
from serving import server  # noqa: F401

PAGE = (REPOSITORY / "docs" / "server_api.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(sh|python)\n(.*?)^```", PAGE, re.M | re.S)
WRITTEN = "http://127.0.0.1:8642"
README = (REPOSITORY / "README.md").read_text(encoding="utf-8")
SERVE = re.compile(r"octet serve\b[^`#|]*")


def test_there_are_examples() -> None:
    assert [kind for kind, _ in BLOCKS].count("python") == 2 and len(BLOCKS) >= 7


@pytest.mark.parametrize("kind, text", BLOCKS, ids=[f"{kind}-{i}" for i, (kind, _)
                                                    in enumerate(BLOCKS)])
def test_an_example_runs(server, tmp_path, kind, text) -> None:
    if "import OpenAI" in text and importlib.util.find_spec("openai") is None:
        pytest.skip("the package openai is not installed")
    program = [sys.executable, "-"] if kind == "python" else ["bash", "-euo", "pipefail"]
    done = subprocess.run(
        program, input=text.replace(WRITTEN, server.url).replace("curl -s ", "curl -sS --fail "),
        cwd=tmp_path, capture_output=True, text=True, timeout=120, env=os.environ)
    assert done.returncode == 0, done.stderr
    assert done.stdout
    for file in tmp_path.iterdir():
        assert file.read_bytes().startswith(b"\x89PNG"), file


def test_the_example_of_the_readme_runs(server) -> None:
    pytest.importorskip("openai", reason="the package openai is not installed")
    (text,) = (block for block in re.findall(r"^```python\n(.*?)^```", README, re.M | re.S)
               if "import OpenAI" in block)
    # The model that it names is the one that the command before it starts.
    (model,) = re.findall(r'model="([^"]+)"', text)
    assert f"`octet serve --model {model} " in README
    exec(text.replace(WRITTEN, server.url), given := {})
    assert base64.b64decode(given["picture"]).startswith(b"\x89PNG")


@pytest.mark.parametrize("name", ["README.md", "docs/serve.md", "docs/deploy.md",
                                  "docs/troubleshooting.md", "SECURITY.md"])
def test_pages_start_the_server_with_flags_that_it_has(built_program, name: str) -> None:
    page = (REPOSITORY / name).read_text(encoding="utf-8")
    usage = subprocess.run([built_program("octet"), "serve", "--help"], capture_output=True,
                           text=True).stdout
    known = set(re.findall(r"--[a-z][a-z-]*", usage))
    lines = SERVE.findall(page)
    assert lines
    assert {flag for line in lines for flag in re.findall(r"--[a-z][a-z-]*", line)} <= known


def test_every_route_is_named(server) -> None:
    described = server.get("/openapi.json").json
    assert [path for path in described["paths"] if path not in PAGE] == []


def test_every_field_of_jobs_is_named(server) -> None:
    schemas = server.get("/openapi.json").json["components"]["schemas"]
    named = set(re.findall(r"`(\w+)", PAGE))
    for schema in ("JobRequest", "Job", "Picture", "ImageRequest", "TextToImage",
                   "CaptionCheck"):
        fields = set(schemas[schema]["properties"]) - {"safety_identifier"}
        assert fields - named == set(), schema


def test_every_metric_is_named(server) -> None:
    metrics = set(re.findall(r"^([a-z]\w+)", server.get("/metrics").body.decode(), re.M))
    named = set(re.findall(r"`(\w+)", PAGE))
    kinds = {metric: re.sub(r"_(bucket|sum|count)$", "", metric) for metric in metrics}
    assert {metric for metric, kind in kinds.items() if not {metric, kind} & named} == set()


def test_the_description_has_every_route_of_the_server() -> None:
    sources = "".join(path.read_text() for path in
                      sorted((REPOSITORY / "apps/server/routes").glob("*.cpp")))
    patterns = set(re.findall(r'"(/(?:v1|sdapi|health|ready|metrics|openapi)[^"\s]*)"', sources))
    assert len(patterns) > 20
    described = (REPOSITORY / "apps/server/routes/openapi.json").read_text(encoding="utf-8")
    plain = {re.sub(r"\{\w*\*?\}", "{}", path) for path in re.findall(r'^    "(/[^"]*)"', described,
                                                                     re.M)}
    assert {pattern.replace("{*}", "{}") for pattern in patterns} - {"/v1/jobs/"} - plain == set()
