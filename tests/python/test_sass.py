"""What the GPU's kernels became: the machine code of the Hopper family, read with cuobjdump."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest


def cuobjdump():
    """The toolkit's, or the one that comes with Triton."""
    nvcc = shutil.which("nvcc")
    folders = [Path(nvcc).resolve().parent] if nvcc else []
    try:
        import triton
        folders.append(Path(triton.__file__).parent / "backends/nvidia/bin")
    except ImportError:
        pass
    found = shutil.which("cuobjdump")
    return found or next((str(folder / "cuobjdump") for folder in folders
                          if (folder / "cuobjdump").is_file()), None)


def functions_of(tool: str, path: Path) -> dict:
    done = subprocess.run([tool, "--dump-sass", path], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    parts = re.split(r"Function : (\S+)", done.stdout)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


@pytest.mark.parametrize("fusion", ["none", "bias", "swiglu"])
def test_hopper_kernels_run_hoppers_instructions(build_dir: Path, fusion: str) -> None:
    objects = build_dir / "CMakeFiles/octet_gemm_hopper.dir/generated"
    path = objects / f"gemm_hopper_{fusion}_packed.cu.o"
    if fusion == "swiglu" and not path.is_file():  # `make test` without a GPU compiles some tiles
        path = objects / "gemm_hopper_checked_0.cu.o"
    if not path.is_file():
        pytest.skip(f"this build has no machine code of {fusion} for sm_90a")
    tool = cuobjdump()
    if tool is None:
        pytest.skip("cuobjdump is not installed")
    kernels = {name: code for name, code in functions_of(tool, path).items() if "gemm_sm90" in name}
    assert len(kernels) >= 3
    for name, code in kernels.items():
        assert "IGMMA.64x" in code, f"{name} does not multiply by wgmma"
        assert "UTMALDG" in code, f"{name} does not fetch by TMA"
        assert not re.search(r"\s(LDL|STL)[. ]", code), f"{name} uses local memory"
        assert not re.search(r"\sIMMA\.", code), f"{name} falls back to mma.sync"
