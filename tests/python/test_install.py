"""Octet as others take it: installed, and used by a project outside of ours.

About 15 seconds: nothing of the library is compiled here. `cmake --install` copies what is built,
and the outside project is one small file, compiled once for each way of finding Octet.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import struct
import subprocess
from pathlib import Path

import pytest
from demo_folder import demo_folder  # noqa: F401: a fixture

def run(*command: str | Path, **options) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(command, capture_output=True, text=True, check=False, **options)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done


@pytest.fixture(scope="module")
def prefix(built_program, build_dir: Path, tmp_path_factory) -> Path:
    """An installation, in another place than the build was configured for."""
    built_program("octet")
    folder = tmp_path_factory.mktemp("installed")
    run("cmake", "--install", build_dir, "--prefix", folder)
    return folder


@pytest.fixture(scope="module")
def library_folder(prefix: Path) -> Path:
    """lib, lib64 or lib/<architecture>, as this system has it."""
    (archive,) = prefix.rglob("liboctet.a")
    return archive.parent


@pytest.fixture(scope="module")
def environment(library_folder: Path, tmp_path_factory) -> dict[str, str]:
    cache = tmp_path_factory.mktemp("cache")
    return {
        **os.environ,
        "OCTET_CACHE_DIR": str(cache),
        "PKG_CONFIG_PATH": str(library_folder / "pkgconfig"),
    }


def public_headers(repository: Path) -> list[Path]:
    return sorted((repository / "include/octet").rglob("*.h"))


def files_in(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def test_what_is_installed(prefix: Path, library_folder: Path, repository: Path) -> None:
    found = files_in(prefix)
    lib = library_folder.relative_to(prefix).as_posix()
    config = {f"{lib}/cmake/octet/{name}.cmake"
              for name in ("octetConfig", "octetConfigVersion", "octetTargets", "Findutf8proc",
                           "FindWebP")}
    optional = {path for path in found if "/octetTargets-" in path}  # named after the build type
    assert found - optional == {
        "bin/octet", f"{lib}/liboctet.a", f"{lib}/pkgconfig/octet.pc", *config,
        *(path.relative_to(repository).as_posix() for path in public_headers(repository)),
        "share/doc/octet/LICENSE", "share/doc/octet/CHANGELOG.md", "share/man/man1/octet.1",
        "share/bash-completion/completions/octet", "share/zsh/site-functions/_octet",
        "share/fish/vendor_completions.d/octet.fish",
        *(f"share/octet/demo/{path}" for path in files_in(repository / "models/demo")),
    }  # fmt: skip
    assert len(optional) == 1


def test_the_pages_are_what_the_program_prints(prefix: Path) -> None:
    for page, command in {
        "man/man1/octet.1": ["man"],
        "bash-completion/completions/octet": ["completion", "bash"],
        "zsh/site-functions/_octet": ["completion", "zsh"],
        "fish/vendor_completions.d/octet.fish": ["completion", "fish"],
    }.items():
        assert (prefix / "share" / page).read_text() == run(prefix / "bin/octet", *command).stdout


def test_one_version_everywhere(
    prefix: Path, library_folder: Path, environment: dict[str, str], repository: Path
) -> None:
    project = (repository / "CMakeLists.txt").read_text()
    version = re.search(r"project\(octet VERSION (\d+\.\d+\.\d+)", project)[1]
    assert re.search(rf"\b{version}\b", run(prefix / "bin/octet", "--version").stdout)
    found = run("pkg-config", "--modversion", "octet", env=environment).stdout.strip()
    assert found == version
    config = (library_folder / "cmake/octet/octetConfigVersion.cmake").read_text()
    assert f'set(PACKAGE_VERSION "{version}")' in config
    changes = (repository / "CHANGELOG.md").read_text()
    assert re.findall(r"^## (\d\S+)", changes, re.MULTILINE)[0] == version


def test_the_example_of_the_documentation_is_the_one_compiled_here(repository: Path) -> None:
    page = (repository / "docs/library.md").read_text()
    (example,) = re.findall(r"```cpp\n(.*?)```", page, re.DOTALL)
    assert example == (repository / "tests/package/picture.cpp").read_text()


def test_the_example_in_c_is_the_one_compiled_here(repository: Path) -> None:
    page = (repository / "docs/c.md").read_text()
    (example,) = re.findall(r"```c\n(.*?)```", page, re.DOTALL)
    assert example == (repository / "tests/package/picture.c").read_text()


def test_every_function_in_c_is_in_the_documentation(repository: Path) -> None:
    page = (repository / "docs/c.md").read_text()
    functions = {name for name in declared_functions(repository) if name.startswith("octet_")}
    assert len(functions) > 20
    assert {name for name in functions if f"`{name}`" not in page} == set()


def test_every_public_header_is_in_the_documentation(repository: Path) -> None:
    page = (repository / "docs/library.md").read_text()
    headers = {path.name for path in public_headers(repository)} - {"export.h"}
    assert {name for name in headers if f"`{name}`" not in page} == set()


def assert_takes_no_flag_of_ours(build: Path, repository: Path) -> None:
    """The numeric contract's flags and the folder of our own headers stay in our own files."""
    commands = json.loads((build / "compile_commands.json").read_text())
    (command,) = (entry["command"] for entry in commands if "picture.cpp" in entry["file"])
    assert "-ffp-contract" not in command
    assert "-Wshadow" not in command
    assert f"{repository}/src" not in command


def configure(repository: Path, build: Path, *arguments: str) -> None:
    run("cmake", "-S", repository / "tests/package", "-B", build, *arguments)


def test_find_package(
    prefix: Path, environment, repository: Path, demo_folder: Path, tmp_path: Path  # noqa: F811
) -> None:
    configure(repository, tmp_path, f"-DCMAKE_PREFIX_PATH={prefix}")
    assert_takes_no_flag_of_ours(tmp_path, repository)
    run("cmake", "--build", tmp_path)
    assert_runs_in_c(tmp_path / "picture_in_c", environment, tmp_path)
    caption = demo_folder / "demo.json"
    run(tmp_path / "picture", demo_folder, caption, "out.png", cwd=tmp_path, env=environment)
    png = (tmp_path / "out.png").read_bytes()
    assert png[:8] == b"\x89PNG\r\n\x1a\n" and struct.unpack(">II", png[16:24]) == (512, 512)


def test_find_package_refuses_another_minor_version(prefix: Path, tmp_path: Path) -> None:
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.22)\nproject(p LANGUAGES CXX)\n"
        f"find_package(octet 0.1 QUIET PATHS {prefix} NO_DEFAULT_PATH)\n"
        "if(octet_FOUND)\n  message(FATAL_ERROR found)\nendif()\n"
    )
    done = run("cmake", "-S", tmp_path, "-B", tmp_path / "build")
    assert "Configuring done" in done.stdout


@pytest.fixture(scope="module")
def example_object(environment, repository: Path, tmp_path_factory) -> Path:
    """The example, compiled with what pkg-config says and nothing else but the standard."""
    flags = run("pkg-config", "--cflags", "octet", env=environment).stdout.split()
    compiled = tmp_path_factory.mktemp("example") / "picture.o"
    source = repository / "tests/package/picture.cpp"
    run("g++", "-std=c++20", *flags, "-c", source, "-o", compiled)
    return compiled


def assert_runs(program: Path, environment: dict[str, str], folder: Path) -> None:
    """Its devices are listed, and an Error of the library is caught by its type."""
    missing = folder / "missing.json"
    done = subprocess.run([program, "model", missing, "out.png"], env=environment,
                          capture_output=True, text=True, check=False)  # fmt: skip
    assert done.returncode == 1
    assert done.stdout.startswith("Octet ")
    assert done.stdout.count("\n") > 1
    assert done.stderr.startswith("picture: ") and str(missing) in done.stderr


def assert_runs_in_c(program: Path, environment: dict[str, str], folder: Path) -> None:
    missing = folder / "missing"
    done = subprocess.run([program, missing, "out.png"], env=environment, capture_output=True,
                          text=True, check=False)  # fmt: skip
    assert done.returncode == 1
    assert done.stderr.startswith("picture: ") and str(missing) in done.stderr


def test_pkg_config(example_object: Path, environment, tmp_path: Path) -> None:
    libraries = run("pkg-config", "--libs", "octet", env=environment).stdout.split()
    run("g++", example_object, *libraries, "-o", tmp_path / "picture")
    assert_runs(tmp_path / "picture", environment, tmp_path)


def test_pkg_config_for_c(environment, repository: Path, tmp_path: Path) -> None:
    """Also linked by the C compiler, which adds no library of C++ of itself."""
    flags = run("pkg-config", "--cflags", "octet", env=environment).stdout.split()
    libraries = run("pkg-config", "--libs", "octet", env=environment).stdout.split()
    run("gcc", "-std=c11", "-pedantic", "-Wall", "-Wextra", "-Werror", *flags,
        repository / "tests/package/picture.c", *libraries, "-o", tmp_path / "picture")  # fmt: skip
    assert_runs_in_c(tmp_path / "picture", environment, tmp_path)


def test_add_subdirectory(repository: Path, tmp_path: Path) -> None:
    """Configured, and the example's own file compiled. The library is not built a second time:
    ninja tells how it would be, and how the example would be linked with it."""
    if shutil.which("ninja") is None:
        pytest.skip("ninja, which tells what it would build, is not installed")
    source = f"-DOCTET_SOURCE={repository}"
    configure(repository, tmp_path, source, "-DOCTET_CUDA=OFF", "-G", "Ninja")
    assert_takes_no_flag_of_ours(tmp_path, repository)
    run("ninja", "-C", tmp_path, "CMakeFiles/picture.dir/picture.cpp.o")
    *steps, linked = run("ninja", "-C", tmp_path, "-t", "commands", "picture").stdout.splitlines()
    assert "-o picture" in linked and "liboctet.a" in linked and "libfmt" in linked
    compiled = [step for step in steps if " -c " in step and "picture.cpp" not in step]
    assert len(compiled) > 10 and all("-ffp-contract=off" in step for step in compiled)
    targets = run("ninja", "-C", tmp_path, "-t", "targets", "all").stdout
    assert "_tests" not in targets and "apps/cli" not in targets  # neither tests nor the program
    cache = (tmp_path / "CMakeCache.txt").read_text()
    assert re.search(r"^CMAKE_BUILD_TYPE:\w+=$", cache, re.MULTILINE), "the outer project's choice"
    assert not (tmp_path / "octetConfig.cmake").exists()


# --- the shared library ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def shared_library(built_program, build_dir: Path) -> Path:
    """Linked from the objects that are there, which takes a second."""
    built_program("octet")
    run("cmake", "--build", build_dir, "--target", "octet_shared")
    return build_dir / "liboctet.so"


def declared_functions(repository: Path) -> set[str]:
    """Qualified names of the functions that the public headers declare: what stands before the
    first parenthesis of a line that begins at its margin, whether marked OCTET_API or not. Those of
    octet.h are C's, and in no namespace."""
    names = set()
    for header in public_headers(repository):
        text = re.sub(r"^template <.*>\n.*\n", "", header.read_text(), flags=re.MULTILINE)
        space = (re.findall(r"^namespace (\S+) {", text, re.MULTILINE) or [""])[0]
        functions = re.findall(r"^(?!using|inline|#|//)\w[^(\n]* (\w+)\(", text, re.MULTILINE)
        names |= {f"{space}::{name}" if space else name for name in functions}
    return names


def test_what_the_shared_library_shows(shared_library: Path, repository: Path) -> None:
    """Each function of the public headers, and nothing else: OCTET_API was not forgotten, and no
    inner symbol, no template of the standard library and no symbol of a dependency is visible."""
    lines = run("nm", "-DC", "--defined-only", shared_library).stdout.splitlines()
    symbols = {re.sub(r"\[abi:\w+\]", "", line.split(maxsplit=2)[2]) for line in lines}
    of_c = {name for name in symbols if re.fullmatch(r"octet_\w+", name)}
    assert "octet_engine_render" in of_c
    functions = of_c | {name.split("(")[0] for name in symbols if "(" in name}
    of_classes = {name for name in functions if re.match(r"octet::[A-Z]", name)}
    assert functions - of_classes == declared_functions(repository)
    headers = "".join(header.read_text() for header in public_headers(repository))
    classes = re.findall(r"^(?:struct|class)(?: OCTET_API)? (\w+)", headers, re.MULTILINE)
    assert {name.split("::")[1] for name in of_classes} <= set(classes)
    rest = {name for name in symbols - of_c if "(" not in name}
    assert "typeinfo for octet::Error" in rest  # it is caught on the other side
    assert all(re.match(r"(typeinfo|typeinfo name|vtable) for octet::", name) for name in rest)


def objects_with(symbol: str, shared_library: Path, source: Path) -> set[str]:
    """Of those of the library and of `source`, which has that symbol."""
    own = source.with_suffix(".o")
    run("g++", "-c", source, "-o", own)
    folders = (shared_library.parent / "CMakeFiles").glob("octet_*.dir")
    # The server is the program's alone, and its threads have ended before main() does.
    objects = [path for folder in folders if folder.name != "octet_server.dir"
               for path in folder.rglob("*.c*.o")]
    assert len(objects) > 5
    found = run("nm", "-A", own, *objects).stdout.splitlines()
    return {line.split(":")[0] for line in found if symbol in line}


def test_nothing_static_is_destroyed_at_exit(shared_library: Path, tmp_path: Path) -> None:
    """Threads may use it then: see base/never_destroyed.h."""
    (tmp_path / "one.cpp").write_text("struct S { ~S(); } one;")
    found = objects_with("__cxa_atexit", shared_library, tmp_path / "one.cpp")
    assert found == {str(tmp_path / "one.o")}


def test_nothing_static_waits_to_be_made(shared_library: Path, tmp_path: Path) -> None:
    """A program that links the library may use it before main(), in whatever order files are."""
    (tmp_path / "one.cpp").write_text("struct S { S(); } one;")
    found = objects_with("_GLOBAL__sub_I", shared_library, tmp_path / "one.cpp")
    # Python runs nothing of its extension before that is made.
    of_library = {name for name in found if "octet_python.dir" not in name}
    assert of_library == {str(tmp_path / "one.o")}


def test_the_shared_library_serves_the_example(
    shared_library: Path, example_object: Path, environment, tmp_path: Path
) -> None:
    """Linked with nothing but it: it brings what it needs."""
    folder = shared_library.parent
    run("g++", example_object, f"-L{folder}", "-l:liboctet.so", f"-Wl,-rpath,{folder}",
        "-o", tmp_path / "picture")  # fmt: skip
    needed = run("readelf", "-d", tmp_path / "picture").stdout
    assert re.search(r"NEEDED.*\[liboctet\.so\.\d+\.\d+\]", needed)
    assert_runs(tmp_path / "picture", environment, tmp_path)


def test_the_shared_library_serves_the_example_in_c(
    shared_library: Path, environment, repository: Path, tmp_path: Path
) -> None:
    folder = shared_library.parent
    run("gcc", "-std=c11", f"-I{repository}/include", repository / "tests/package/picture.c",
        f"-L{folder}", "-l:liboctet.so", f"-Wl,-rpath,{folder}", "-o", tmp_path / "picture")
    assert_runs_in_c(tmp_path / "picture", environment, tmp_path)


# --- make install ---------------------------------------------------------------------------------


def install(repository: Path, tree: Path, user: int) -> tuple[int, str, list[str]]:
    """Runs tools/install.sh in a tree whose other tools only write down that they were called."""
    tools = tree / "tools"
    fakes = tree / "fakes"
    tools.mkdir(parents=True)
    fakes.mkdir()
    for name in ("common.sh", "install.sh"):
        shutil.copy(repository / "tools" / name, tools)
    log = '#!/bin/sh\necho "$(basename "$0") $*" >>"$LOG"\n'
    for path, text in {
        tools / "setup.sh": log,
        tools / "build.sh": log,
        fakes / "cmake": log,
        fakes / "id": f"#!/bin/sh\necho {user}\n",
    }.items():
        path.write_text(text)
        path.chmod(0o755)
    calls = tree / "calls"
    calls.touch()
    environment = {"PATH": f"{fakes}:{os.environ['PATH']}", "LOG": str(calls)}
    done = subprocess.run([tools / "install.sh", "/opt/octet"], env=environment,
                          capture_output=True, text=True, check=False)  # fmt: skip
    return done.returncode, done.stderr, calls.read_text().splitlines()


INSTALLED = "cmake --install build --prefix /opt/octet"


def test_the_owner_of_the_checkout_builds_and_installs(repository: Path, tmp_path: Path) -> None:
    status, _, calls = install(repository, tmp_path, tmp_path.stat().st_uid)
    assert (status, calls) == (0, ["setup.sh build", "build.sh default octet", INSTALLED])


def test_another_user_only_installs(repository: Path, tmp_path: Path) -> None:
    """`sudo make install` neither builds as root nor leaves root's files in build/."""
    (tmp_path / "build").mkdir()
    (tmp_path / "build/octet").touch(mode=0o755)
    status, _, calls = install(repository, tmp_path, tmp_path.stat().st_uid + 1)
    assert (status, calls) == (0, [INSTALLED])


def test_another_user_without_a_build_is_told_so(repository: Path, tmp_path: Path) -> None:
    status, message, calls = install(repository, tmp_path, tmp_path.stat().st_uid + 1)
    assert (status, calls) == (1, [])
    assert message.startswith("octet: there is no build/octet to install; run make build first")
