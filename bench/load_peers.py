"""How fast PyTorch loads the same files to the GPU, to compare load_bench with.

    python bench/load_peers.py FILE_OR_FOLDER... [--rounds 3]

Two ways, both with the safetensors package: `load_file` and `.to("cuda")`, tensor by tensor, and
`load_file(device="cuda")`. The files are read once beforehand, so that they are in the page cache.
Neither converts or rearranges anything, as the engine does on the way.
"""

from __future__ import annotations

import argparse
import gc
import time
from pathlib import Path


def files_of(paths: list[Path]) -> list[Path]:
    found: list[Path] = []
    for path in paths:
        found += sorted(path.glob("*.safetensors")) if path.is_dir() else [path]
    if not found:
        raise SystemExit("load_peers: there are no safetensors files")
    return found


def read_once(files: list[Path]) -> int:
    """Their bytes."""
    total = 0
    for path in files:
        with path.open("rb", buffering=0) as file:
            while chunk := file.read(1 << 24):
                total += len(chunk)
    return total


def to_cuda(file: Path) -> dict:
    from safetensors.torch import load_file

    return {name: tensor.to("cuda") for name, tensor in load_file(file).items()}


def straight(file: Path) -> dict:
    from safetensors.torch import load_file

    return load_file(file, device="cuda")


def measure(way, files: list[Path]) -> float:
    import torch

    gc.collect()
    torch.cuda.empty_cache()
    torch.cuda.synchronize()
    begin = time.perf_counter()
    kept = [way(file) for file in files]
    torch.cuda.synchronize()
    seconds = time.perf_counter() - begin
    del kept
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("paths", nargs="+", type=Path)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    files = files_of(arguments.paths)
    gigabytes = read_once(files) * 1e-9
    for name, way in (("load_file, .to(cuda)", to_cuda), ("load_file(device=cuda)", straight)):
        for number in range(1, arguments.rounds + 1):
            seconds = measure(way, files)
            print(f"{name} round {number}: {gigabytes:.2f} GB in {seconds:.3f} s, "
                  f"{gigabytes / seconds:.1f} GB/s", flush=True)


if __name__ == "__main__":
    main()
