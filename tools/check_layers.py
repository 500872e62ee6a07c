#!/usr/bin/env python3
"""Fails on an #include or an import that does not point downward, and on facts of one model in
code for all of them.

    tools/check_layers.py [ROOT]

A layer is a folder under src/. MAY_INCLUDE is the whole rule for them; the rest of this file finds
out which layer an include names. Besides the layers:
  include/octet   the standard library and itself, so that users need no header of ours or others'
  apps            include/octet, the app's own folder and what stands for a header from outside;
                  apps/cli also the other apps
  the rest        anything: tests, bench
CUDA headers belong to src/cuda, intrinsics to src/cpu. The layers of the Python package are in
python_layers.py.
"""

from __future__ import annotations

import re
import sys
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath

import python_layers
from source_files import cpp_files

_GROUND = {"base", "tensor"}
_KERNELS = {"backend", "tune"} | _GROUND
_MODEL = {"weights", "nn", "formats", "backend"} | _GROUND

# A layer may always include itself and include/octet. Only `devices` names ref, cpu and cuda:
# everybody else gets a Backend from it.
MAY_INCLUDE: dict[str, set[str]] = {
    "base": set(),
    "tensor": {"base"},
    "formats": _GROUND,
    "hub": {"formats", "base"},
    "backend": _GROUND,
    "tune": {"backend", "formats"} | _GROUND,
    "ref": {"backend"} | _GROUND,  # these two are also built without tune and formats
    "cpu": {"backend"} | _GROUND,
    "cuda": _KERNELS,
    "devices": {"ref", "cpu", "cuda"} | _KERNELS,
    "nn": {"backend"} | _GROUND,
    "weights": {"nn", "formats", "backend"} | _GROUND,
    "quant": {"weights", "nn", "formats", "backend"} | _GROUND,
    "models": {"nn", "weights", "quant", "formats", "backend"} | _GROUND,
    "engine": {"models", "devices", "hub", "tune"} | _MODEL,
    "convert": {"engine", "models", "quant", "devices", "hub"} | _MODEL,
    "audit": {"formats"} | _GROUND,
    "report": {"formats"} | _GROUND,  # results are plain data of include/octet
    "measure": {"report", "engine", "models", "devices", "hub", "tune"} | _MODEL,
    "api": {"audit", "report", "measure", "convert", "engine", "models", "quant", "hub"}
    | {"devices", "tune"}
    | _MODEL,
    "python": {"weights", "formats"} | _GROUND,  # the rest through include/octet
}
OUTSIDE_HEADERS = {"src/formats/json_value.h"}  # nlohmann's, mended
C_HEADERS = {"stddef.h", "stdint.h", "string.h"}  # octet.h is for C, too
CHECKED_FOLDERS = ("src", "include", "apps")

# Header patterns, the one layer that may include them, and what they are called in the message.
HARDWARE_HEADERS = (
    (("cuda*.h", "cuda/*", "cublas*", "cudnn*", "nvrtc*", "nvml*"), "cuda", "a CUDA header"),
    (("*intrin.h", "arm_*.h"), "cpu", "an intrinsics header"),
)

# Sizes and names of a model family are in its folder; above it, models/family.h provides them.
MODEL_FOLDER = "src/models/ideogram4/"
_MODEL_FACT = re.compile(r"\b(?:4608|12288|13824|18432|24576|53248)\b|ideogram4(?:::|@|/)")
MODEL_EXCUSED = {
    "src/models/family.cpp",  # the table of families
    "src/models/qwen3/config.h",  # another model's
    "src/cuda/rows/search_rows.cu",  # 96 KB of shared memory
}

_INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


def named_place(root: Path, includer: PurePosixPath, header: str) -> str | None:
    """The path from the root that `header` names, or None for a header from outside.

    As the compiler does, looks beside the including file, then under src/, include/ and apps/. A
    header that is not there but begins with a layer's name counts as that layer's.
    """
    for folder in (includer.parent, *map(PurePosixPath, ("src", "include", "apps"))):
        candidate = (root / folder / header).resolve()
        if candidate.is_file() and root in candidate.parents:
            return candidate.relative_to(root).as_posix()
    first = header.split("/")[0]
    if "/" in header and first in MAY_INCLUDE:
        return f"src/{header}"
    if first == "octet" and "/" in header:
        return f"include/{header}"
    return None


def hardware_offence(layer: str | None, header: str) -> str | None:
    for patterns, owner, noun in HARDWARE_HEADERS:
        if layer != owner and any(fnmatch(header, pattern) for pattern in patterns):
            return f"<{header}> is {noun}, which only src/{owner} may include"
    return None


def offence_of(root: Path, includer: PurePosixPath, quote: str, header: str) -> str | None:
    """The sentence that says what is wrong with one include, or None."""
    top = includer.parts[0]
    if top not in CHECKED_FOLDERS:
        return None
    place = named_place(root, includer, header)
    parts = PurePosixPath(place).parts if place else ()
    target_layer = parts[1] if len(parts) > 2 and parts[0] == "src" else None
    is_public = parts[:2] == ("include", "octet")

    if top == "include":
        is_standard = quote == "<" and (header in C_HEADERS or not re.search(r"[./]", header))
        if is_public or is_standard:
            return None
        return f'"{header}": a public header includes only the standard library and "octet/..."'

    layer = includer.parts[1] if top == "src" and len(includer.parts) > 2 else None
    if place is None:
        return hardware_offence(layer, header)
    if is_public:
        return None
    if top == "apps":
        is_own = parts[:2] == includer.parts[:2]
        is_program = includer.parts[1] == "cli" and top == parts[0]
        if is_own or is_program or place in OUTSIDE_HEADERS:
            return None
        return f'"{header}": an app includes only "octet/..." and its own folder, not {place}'
    if layer is None or target_layer == layer or target_layer in MAY_INCLUDE[layer]:
        return None
    allowed = ", ".join(sorted(MAY_INCLUDE[layer])) or "no other layer"
    return f'"{header}": src/{layer} may not include {place} (it may include {allowed})'


def model_offence(name: PurePosixPath, line: str) -> str | None:
    """The same for a line of code; comments may quote measurements."""
    if name.parts[0] not in CHECKED_FOLDERS or str(name) in MODEL_EXCUSED:
        return None
    found = _MODEL_FACT.search(line.split("//")[0].replace("'", ""))
    if found is None or str(name).startswith(MODEL_FOLDER):
        return None
    return f"{found[0]} is of one model, and belongs to {MODEL_FOLDER}; ask models::Family"


def main() -> int:
    root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent.parent).resolve()
    checked, offences = python_layers.check(root)
    for path in cpp_files(root):
        name = PurePosixPath(path.relative_to(root).as_posix())
        checked += 1
        if name.parts[0] == "src" and (len(name.parts) < 3 or name.parts[1] not in MAY_INCLUDE):
            offences.append(f"{name}:1: not in a known layer; tools/check_layers.py lists them")
            continue
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
        for number, line in enumerate(lines, 1):
            match = _INCLUDE.match(line)
            sentence = offence_of(root, name, *match.groups()) if match else None
            sentence = sentence or model_offence(name, line)
            if sentence:
                offences.append(f"{name}:{number}: {sentence}")
    for offence in offences:
        print(offence)
    print(f"check_layers: {checked} files checked, {len(offences)} offences")
    return 1 if offences else 0


if __name__ == "__main__":
    sys.exit(main())
