"""The wheel: what is in it, in an environment of its own, and what builds it.

Fifteen seconds: the library is not compiled again. The wheel is made of the extension of the build
folder, and of what pyproject.toml builds there is only asked whether CMake knows it.
"""

from __future__ import annotations

import ast
import inspect
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import octet
import pytest
from conftest import BUILD, REPOSITORY
from octet import _octet

if sys.version_info >= (3, 11):
    import tomllib
else:
    tomllib = pytest.importorskip("tomli")


def run(*command: str | Path, **options) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, **options)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    pytest.importorskip("scikit_build_core")
    folder = tmp_path_factory.mktemp("wheel")
    # Files in place of links, which the build folder has.
    run("cp", "-rL", BUILD / "python" / "octet", folder / "octet")
    run(
        *(sys.executable, "-m", "pip", "wheel", REPOSITORY, "--no-deps", "--no-build-isolation"),
        *("--no-index", "--disable-pip-version-check", "-w", folder / "wheels"),
        *("-C", "wheel.cmake=false", "-C", "wheel.platlib=true"),
        *("-C", f"wheel.packages={folder / 'octet'}"),
        cwd=folder,
    )
    (made,) = (folder / "wheels").glob("*.whl")
    return made


def test_what_is_in_it(wheel: Path):
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        (metadata,) = (name for name in names if name.endswith("/METADATA"))
        text = archive.read(metadata).decode()
    assert wheel.name.startswith(f"octet_int8-{octet.__version__}-cp3")
    assert "\nRequires-Dist: torch" in text and "Provides-Extra: torch" in text
    assert not re.search(r"^Requires-Dist: (?!.*extra ==)", text, re.M), "nothing is required"
    package = {name for name in names if name.startswith("octet/")}
    source = REPOSITORY / "python" / "octet"
    expected = {
        f"octet/{path.relative_to(source).as_posix()}"
        for path in source.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    (extension,) = package - expected
    assert extension.startswith("octet/_octet.") and extension.endswith(".so")
    assert expected <= package and "octet/py.typed" in package and "octet/_octet.pyi" in package
    assert any(name.endswith("/LICENSE") for name in names)


def test_it_runs_without_any_other_package(wheel: Path, tmp_path: Path):
    run(sys.executable, "-m", "venv", "--without-pip", tmp_path / "env")
    python = tmp_path / "env" / "bin" / "python"
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", python)
    run(*pip, "install", "--no-index", wheel)
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    said = run(python, "-m", "octet", cwd=tmp_path, env=environment)
    assert "numpy not installed, torch not installed" in said and "  cpu: ok\n" in said
    where = run(python, "-c", "import octet; print(octet.__file__)", cwd=tmp_path, env=environment)
    assert where.startswith(str(tmp_path / "env"))


def test_cmake_knows_what_pyproject_builds(tmp_path: Path):
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())
    settings = project["tool"]["scikit-build"]
    defines = {
        name: value if isinstance(value, str) else value["default"]
        for name, value in settings["cmake"]["define"].items()
    }
    assert defines["OCTET_CUDA"] == "NVCC"
    defines |= {"OCTET_CUDA": "OFF", "Python_EXECUTABLE": sys.executable}
    given = (f"-D{name}={value}" for name, value in defines.items())
    run("cmake", "-S", REPOSITORY, "-B", tmp_path, "-G", "Unix Makefiles", *given)
    help_text = run("cmake", "--build", tmp_path, "--target", "help")
    for target in settings["build"]["targets"]:
        assert re.search(rf"\b{target}\b", help_text)
    assert not re.search(r"\boctet_tests\b|\bapi_tests\b", help_text)
    link = (tmp_path / "CMakeFiles" / "octet_python.dir" / "link.txt").read_text()
    assert "libz.a" in link and "libutf8proc.a" in link and "liboctet_fmt.a" in link
    assert not re.search(r"lib(curl|crypto|ssl|sqlite3|fmt|png|jpeg|webp|z|utf8proc)\.so", link)
    rules = (tmp_path / "cmake_install.cmake").read_text()
    for component in settings["install"]["components"]:
        assert f'"{component}"' in rules
    (version,) = project["tool"]["dynamic-metadata"]
    found = re.search(version["regex"], (REPOSITORY / version["input"]).read_text())
    assert found and found["value"] == octet.__version__


def test_the_stub_is_that_of_the_extension():
    tree = ast.parse((REPOSITORY / "python" / "octet" / "_octet.pyi").read_text())
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    values = {node.target.id for node in tree.body if isinstance(node, ast.AnnAssign)}
    there = {name for name in vars(_octet) if not name.startswith("__")} | {"__version__"}
    assert functions | values | (classes.keys() - {"_Record"}) == there
    for name, node in classes.items():
        if name == "_Record" or issubclass(getattr(_octet, name), Exception):
            continue
        known = {
            item.target.id if isinstance(item, ast.AnnAssign) else item.name
            for item in node.body
            if isinstance(item, (ast.AnnAssign, ast.FunctionDef))
        }
        bases = {base.id for base in node.bases if isinstance(base, ast.Name)}
        if "_Record" in bases:
            known.add("as_dict")
        if "Weight" in bases:
            known |= {"n", "k", "gate_up"}
        members = {
            member
            for member, _ in inspect.getmembers(getattr(_octet, name))
            if not member.startswith("__")
        }
        assert known - {"__init__"} == members, name


def test_the_examples_of_the_page_run(monkeypatch):
    monkeypatch.chdir(REPOSITORY)
    page = (REPOSITORY / "docs" / "python.md").read_text()
    examples = re.findall(r"^```python\n(.*?)^```$", page, re.M | re.S)
    assert len(examples) >= 3
    for example in examples:
        exec(example, {})
