"""The checks of the source tree: they hold for ours, and they can fail."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest


def run_check(repository: Path, name: str, root: Path) -> tuple[int, list[str]]:
    """Exit status and offences (every line but the closing count) of one check on one tree."""
    result = subprocess.run(
        [sys.executable, repository / "tools" / name, root],
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.stderr == ""
    *offences, closing = result.stdout.splitlines()
    assert closing.startswith(name.removesuffix(".py") + ": ")
    return result.returncode, offences


def write(root: Path, name: str, text: str) -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


@pytest.mark.parametrize("check", ["check_layers.py", "check_size.py"])
def test_our_own_tree_holds(repository: Path, check: str) -> None:
    assert run_check(repository, check, repository) == (0, [])


ALLOWED_INCLUDES = [
    ("src/cpu/backend.cpp", '#include "backend/backend.h"'),
    ("src/cpu/gemm/driver.cpp", '#include "cpu/pack.h"'),
    ("src/cpu/gemm/kernel_x86_avx2.cpp", "#include <immintrin.h>"),
    ("src/cuda/device.cpp", "#include <cuda_runtime.h>"),
    ("src/cuda/backend.cpp", '#include "tune/planner.h"'),
    ("src/tune/plan_cache.cpp", '#include "formats/json.h"'),
    ("src/devices/devices.cpp", '#include "cpu/backend.h"'),
    ("src/api/bench.cpp", '#include "measure/gemm.h"'),
    ("src/tensor/tensor.cpp", '#include "octet/error.h"'),
    ("include/octet/bench.h", "#include <string>"),
    ("include/octet/bench.h", '#include "octet/error.h"'),
    ("include/octet/octet.h", "#include <stdint.h>"),
    ("apps/cli/main.cpp", '#include "octet/error.h"'),
    ("apps/cli/main.cpp", '#include "formats/json_value.h"'),
    ("apps/cli/main.cpp", "#include <CLI/CLI.hpp>"),
    ("tests/cpu/gemm_test.cpp", '#include "cpu/backend.h"'),
]


@pytest.mark.parametrize(("name", "line"), ALLOWED_INCLUDES)
def test_an_allowed_include_passes(
    repository: Path, tmp_path: Path, name: str, line: str
) -> None:
    write(tmp_path, name, line + "\n")
    assert run_check(repository, "check_layers.py", tmp_path) == (0, [])


FORBIDDEN_INCLUDES = [
    ("src/base/log.cpp", '#include "tensor/tensor.h"', "src/base may not include src/tensor/"),
    ("src/backend/gemm.h", '#include "cpu/pack.h"', "src/backend may not include src/cpu/"),
    ("src/ref/gemm.cpp", '#include "cpu/pack.h"', "src/ref may not include src/cpu/pack.h"),
    ("src/cuda/table.cpp", '  #  include "ref/ops.h"', "src/cuda may not include src/ref/ops.h"),
    ("src/cpu/backend.cpp", '#include "tune/planner.h"', "src/cpu may not include src/tune/"),
    ("src/nn/linear.cpp", '#include "cpu/pack.h"', "src/nn may not include src/cpu/pack.h"),
    ("src/api/bench.cpp", '#include "cpu/pack.h"', "src/api may not include src/cpu/pack.h"),
    ("src/nn/linear.cpp", "#include <models/dit.h>", "src/nn may not include src/models/dit.h"),
    ("apps/cli/main.cpp", '#include "base/log.h"', "an app includes only"),
    ("apps/cli/main.cpp", '#include "../../src/base/log.h"', "an app includes only"),
    ("include/octet/bench.h", '#include "base/log.h"', "a public header includes only"),
    ("include/octet/bench.h", "#include <fmt/format.h>", "a public header includes only"),
    ("src/cpu/backend.cpp", "#include <cuda_runtime.h>", "only src/cuda may include"),
    ("src/base/thread_pool.cpp", "#include <immintrin.h>", "only src/cpu may include"),
    ("src/ref/gemm.cpp", "#include <arm_neon.h>", "only src/cpu may include"),
]


@pytest.mark.parametrize(("name", "line", "expected"), FORBIDDEN_INCLUDES)
def test_a_forbidden_include_is_named_with_its_place(
    repository: Path, tmp_path: Path, name: str, line: str, expected: str
) -> None:
    write(tmp_path, "src/base/log.h", "#pragma once\n")
    write(tmp_path, name, f"// First line.\n{line}\n")
    status, offences = run_check(repository, "check_layers.py", tmp_path)
    assert status == 1
    assert len(offences) == 1
    assert offences[0].startswith(f"{name}:2: ")
    assert expected in offences[0]


def test_a_way_around_through_a_relative_path_is_seen(repository: Path, tmp_path: Path) -> None:
    write(tmp_path, "src/cpu/pack.h", "#pragma once\n")
    write(tmp_path, "src/ref/gemm.cpp", '#include "../cpu/pack.h"\n')
    status, offences = run_check(repository, "check_layers.py", tmp_path)
    assert status == 1
    assert "src/ref may not include src/cpu/pack.h" in offences[0]


ALLOWED_IMPORTS = [
    ("_linear.py", "from octet import _checks as checks"),
    ("torch/ops.py", "from octet.torch.private import check"),
    ("torch/ops.py", "from . import private"),
    ("torch/private.py", "import torch\nkey = torch._C.DispatchKey"),
    ("torch/model.py", "import torch\nversion = torch.__version__"),
    ("diffusers/load.py", "from octet.torch import Int8Linear"),
    ("comfy/registering.py", "def f(registry): return registry._priority"),
    ("_frameworks.py", "def f():\n    from octet.torch import functional"),
    ("__init__.py", 'import importlib\nimportlib.import_module(f"octet.{name}")'),
]


@pytest.mark.parametrize(("name", "text"), ALLOWED_IMPORTS)
def test_an_allowed_import_passes(
    repository: Path, tmp_path: Path, name: str, text: str
) -> None:
    write(tmp_path, f"python/octet/{name}", text + "\n")
    assert run_check(repository, "check_layers.py", tmp_path) == (0, [])


FORBIDDEN_IMPORTS = [
    ("_linear.py", "from octet.torch import functional", "octet/_linear may not import"),
    ("_linear.py", "import octet.torch", "octet/_linear may not import octet/torch"),
    ("report.py", "def f():\n    from octet.torch import rows", "octet/report may not import"),
    ("errors.py", "from octet import _linear", "octet/errors may not import octet/_linear"),
    ("errors.py", "from . import _linear", "octet/errors may not import octet/_linear"),
    ("torch/ops.py", "from ..comfy import rules", "octet/torch may not import octet/comfy"),
    ("comfy/rules.py", "from octet.diffusers import names", "octet/comfy may not import"),
    ("diffusers/load.py", "from octet import OctetError", "may not import octet/__init__"),
    ("torch/ops.py", "key = torch._C.DispatchKey.CPU", "torch._C.DispatchKey.CPU is private"),
    ("torch/ops.py", "key = _torch._C", "torch._C is private"),
    ("torch/ops.py", "from torch._C import _is_tracing", "torch._C._is_tracing is private"),
    ("torch/ops.py", "from torch.autograd import _profiler", "torch.autograd._profiler is"),
    ("torch/ops.py", "import torch._inductor.config", "torch._inductor.config is private"),
    ("torch/ops.py", 'modules.get("torch._inductor.config")', "octet/torch/private.py may use"),
    ("comfy/rules.py", "x = registry._priority", "only octet/comfy/registering.py may"),
    ("torch/ops.py", "y = importlib.import_module(name)", "import_module() hides what"),
    ("torch/ops.py", 'y = __import__("octet.comfy")', "__import__() hides what"),
    ("extras/more.py", "import os", "not in a known layer"),
]


@pytest.mark.parametrize(("name", "text", "expected"), FORBIDDEN_IMPORTS)
def test_a_forbidden_import_is_named_with_its_place(
    repository: Path, tmp_path: Path, name: str, text: str, expected: str
) -> None:
    write(tmp_path, f"python/octet/{name}", text + "\n")
    status, offences = run_check(repository, "check_layers.py", tmp_path)
    assert status == 1
    assert len(offences) == 1
    line = 1 + text.count("\n")
    assert offences[0].startswith(f"python/octet/{name}:{line}: ")
    assert expected in offences[0]


@pytest.mark.parametrize(
    "back",
    [
        "from octet.torch import linear",
        "def f():\n    from octet.torch.linear import Int8Linear",
        "if TYPE_CHECKING:\n    from .linear import Int8Linear",
    ],
)
def test_a_circle_of_imports_is_seen(repository: Path, tmp_path: Path, back: str) -> None:
    write(tmp_path, "python/octet/torch/linear.py", "from octet.torch import ops\n")
    write(tmp_path, "python/octet/torch/ops.py", "\nfrom octet.torch.shared import multiply\n")
    write(tmp_path, "python/octet/torch/shared.py", back + "\n")
    status, offences = run_check(repository, "check_layers.py", tmp_path)
    assert status == 1
    assert offences == [
        "python/octet/torch/linear.py:1: imports in a circle: "
        "torch/linear -> torch/ops -> torch/shared -> torch/linear"
    ]


C_HEADERS = [f"include/octet/{name}.h" for name in ("octet", "operations", "status")]


def test_functions_of_c_let_nothing_out(repository: Path) -> None:
    """Each that returns a status or a text does its work inside of a guard."""
    headers = "".join((repository / header).read_text() for header in C_HEADERS)
    functions = re.findall(r"^OCTET_API (?:octet_status|size_t) (\w+)\(", headers, re.M)
    assert len(functions) > 15
    sources = "".join(path.read_text() for path in (repository / "src/api").glob("c_*.cpp"))
    guard = (r"(?:  if \([^\n]*\n)?"
             r"  return c_api::(?:guarded|guarded_on|guarded_text|on_device|for_caller)\(")
    arithmetic = {"octet_linear_memory"}
    assert {name for name in functions if name not in arithmetic and
            not re.search(rf"^\w+ {name}\([^{{}}]*\) {{\n{guard}", sources, re.M)} == set()


def test_what_ends_the_process_without_memory_is_not_used(repository: Path) -> None:
    """A thread_local, and the destructor of nlohmann's values."""
    sources = [path for top in ("src", "apps") for path in (repository / top).rglob("*.*")]
    for path in sorted(sources):
        name = path.relative_to(repository).as_posix()
        text = re.sub(r"//.*", "", path.read_text(encoding="utf-8"))
        assert "thread_local" not in text, f"{name}: use base/per_thread.h"
        assert name == "src/formats/json_value.h" or "nlohmann/json.hpp" not in text, (
            f"{name}: include formats/json_value.h"
        )


def test_public_functions_let_nothing_but_errors_out(repository: Path) -> None:
    """Each is defined as a function-try-block that ends in rethrow_as_error()."""
    # Only a std::string can fail in these.
    plain = {"remove_temporary_files", "version", "commit", "printable", "error_by_recipe",
             "set_sink", "level_from_environment"}
    names = set()
    of_c = {repository / header for header in C_HEADERS}
    for header in set((repository / "include/octet").rglob("*.h")) - of_c:
        names |= set(re.findall(r"^OCTET_API [\w:<>]+ (\w+)\(", header.read_text(), re.M))
    assert {"generate", "pull", "quantize", "list_devices", "write_picture"} <= names
    sources = "".join(path.read_text() for layer in ("api", "report", "measure", "convert")
                      for path in (repository / "src" / layer).rglob("*.cpp"))
    unguarded = {name for name in names - plain
                 if not re.search(rf"^[\w:<>]+ {name}\([^{{}}]*(?:\{{\}})?[^{{}}]*\) try {{",
                                  sources, re.M)}
    assert unguarded == set()


@pytest.mark.parametrize(("name", "line", "found"), [
    ("src/api/map.cpp", "constexpr int64_t kHidden = 4608;", "4608"),
    ("src/measure/step.cpp", "constexpr int kFfn = 12'288;", "12288"),
    ("src/api/caption.cpp", "return ideogram4::check_caption(text);", "ideogram4::"),
    ("src/engine/session.cpp", '#include "models/ideogram4/dit.h"', "ideogram4/"),
    ("apps/cli/tune.cpp", 'shapes = "ideogram4@1024";', "ideogram4@"),
    ("apps/cli/bench.cpp", 'example = "4096,13824,512";', "13824"),
    ("include/octet/bench.h", "int k = 24576;", "24576"),
])
def test_what_belongs_to_one_model_is_named_where_all_are_served(
    repository: Path, tmp_path: Path, name: str, line: str, found: str
) -> None:
    write(tmp_path, "src/models/ideogram4/dit.h", "int64_t hidden = 4608;\n")
    write(tmp_path, "src/cuda/gemm.cpp", "// 1532 TOPS at k = 4608\n")
    write(tmp_path, "tests/api/map_test.cpp", "int k = 4608;  // ideogram4::\n")
    assert run_check(repository, "check_layers.py", tmp_path) == (0, [])
    write(tmp_path, name, f"// First line.\n{line}\n")
    status, offences = run_check(repository, "check_layers.py", tmp_path)
    assert status == 1
    assert len(offences) == 1
    assert offences[0].startswith(f"{name}:2: {found} is of one model")


def test_an_unknown_layer_is_an_offence(repository: Path, tmp_path: Path) -> None:
    write(tmp_path, "src/misc/helpers.h", "#pragma once\n")
    status, offences = run_check(repository, "check_layers.py", tmp_path)
    assert status == 1
    assert offences[0].startswith("src/misc/helpers.h:1: not in a known layer")


def test_size_limits_are_exact(repository: Path, tmp_path: Path) -> None:
    write(tmp_path, "src/base/fits.cpp", "x" * 100 + "\n" + "//\n" * 399)
    write(tmp_path, "tools/fits.py", "é" * 100 + "\n")  # 200 bytes, 100 columns
    write(tmp_path, "docs/table.md", "|" * 300 + "\n")
    write(tmp_path, "build/generated.cpp", "x" * 300 + "\n")
    assert run_check(repository, "check_size.py", tmp_path) == (0, [])


def test_one_line_too_many_is_an_offence(repository: Path, tmp_path: Path) -> None:
    write(tmp_path, "src/base/long.cpp", "//\n" * 401)
    status, offences = run_check(repository, "check_size.py", tmp_path)
    assert status == 1
    assert len(offences) == 1
    assert offences[0].startswith("src/base/long.cpp:401: the file has 401 lines")


@pytest.mark.parametrize(
    "name", ["src/base/a.cpp", "include/octet/a.h", "tools/a.py", "tools/a.sh", "cmake/a.cmake"]
)
def test_one_column_too_many_is_an_offence(
    repository: Path, tmp_path: Path, name: str
) -> None:
    write(tmp_path, name, "//\n" + "x" * 101 + "\n")
    status, offences = run_check(repository, "check_size.py", tmp_path)
    assert status == 1
    assert offences == [f"{name}:2: 101 columns, at most 100 are allowed"]


def test_a_kernel_that_spills_fails_the_build(repository: Path, tmp_path: Path) -> None:
    """With the flags of cmake/cuda.cmake, on a kernel that has too few registers on purpose."""
    nvcc = shutil.which("nvcc")
    if nvcc is None:
        pytest.skip("nvcc is not installed")
    flags = "--warn-on-spills,--warning-as-error"
    rules = (repository / "cmake/cuda.cmake").read_text()
    assert flags in rules.replace("$<$<BOOL:${OCTET_SPILLS_FAIL}>:", "")
    write(tmp_path, "spills.cu", """
        __global__ void spills(int* data) {
          int values[64];
          for (int i = 0; i < 64; ++i) values[i] = data[i];
          __syncthreads();
          for (int i = 0; i < 64; ++i) data[64 - i] = values[i] * values[(i * 7 + 3) % 64];
        }
    """)
    compile_it = [nvcc, "-cubin", "-arch=sm_80", "-o", tmp_path / "spills.cubin",
                  f"-Xptxas={flags}", tmp_path / "spills.cu"]
    done = subprocess.run([*compile_it, "-maxrregcount=24"], capture_output=True, text=True)
    assert done.returncode != 0 and "spilled" in done.stdout + done.stderr
    assert subprocess.run(compile_it, capture_output=True).returncode == 0
