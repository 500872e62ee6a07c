"""The layers of python/octet: which file or folder there may import which, for check_layers.py.

Imports within functions and those for type checkers count as well, since they may hide a circle.
That importing octet.torch.ops first runs the __init__.py of its folders does not count: those are
facades, which nothing below them names.
Names that a framework does not document have one home each, where they are looked up and guarded.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path("python/octet")

_LEAVES = {"_octet", "errors", "_calls", "_checks", "_recipes", "report"}
_FOR_FRAMEWORKS = {"_linear", "torch"} | _LEAVES

# A folder may always import itself. `_octet` is the extension, which imports nothing of Python.
MAY_IMPORT: dict[str, set[str]] = {
    "_octet": set(),
    "errors": {"_octet"},
    "_calls": {"errors"},
    "_checks": {"_octet", "errors"},
    "_recipes": {"_checks", "errors"},
    "_records": set(),
    "report": {"errors"},
    "_linear": _LEAVES,
    "torch": {"_linear"} | _LEAVES,
    "diffusers": _FOR_FRAMEWORKS,
    "comfy": _FOR_FRAMEWORKS,
    "_requests": {"_octet", "_calls", "errors"},
    "_engine": {"_requests"} | _LEAVES,
    "_files": _LEAVES,
    "_frameworks": _FOR_FRAMEWORKS,
    "__init__": {"_engine", "_files", "_frameworks", "diffusers", "comfy"} | _FOR_FRAMEWORKS,
    "__main__": {"__init__"} | _LEAVES,
}

# Who may import by a computed name: the facade, and the check that a framework is installed.
COMPUTED_IMPORTS = ("__init__", "_checks")

# Packages whose private names are used in only one file; `registry` is comfy-kitchen's.
PRIVATE_HOMES = {"torch": "torch/private.py", "registry": "comfy/registering.py"}
_PRIVATE_TEXT = re.compile(r"torch(\.\w+)*\._[a-zA-Z]\w*(\.\w+)*")


def _module_of(name: str, root: Path) -> str | None:
    """The module that `octet.a.b` names, as a path from the package without suffix."""
    parts = name.split(".")[1:]
    path = root / PACKAGE / "/".join(parts)
    if path.is_dir() or not parts:
        return "/".join([*parts, "__init__"])
    known = path.with_suffix(".py").is_file() or path.with_suffix(".pyi").is_file()
    return "/".join(parts) if known or parts[0] in MAY_IMPORT and len(parts) == 1 else None


def _imported(node: ast.AST, module: str, root: Path) -> Iterator[str]:
    """The modules of ours that a statement imports."""
    if isinstance(node, ast.Import):
        names = [alias.name for alias in node.names]
    elif isinstance(node, ast.ImportFrom):
        here = ["octet", *module.split("/")]
        base = ".".join(here[: len(here) - node.level]) if node.level else ""
        base = ".".join(filter(None, [base, node.module or ""]))
        inner = {alias.name: f"{base}.{alias.name}" for alias in node.names}
        names = [full if _module_of(full, root) else base for full in inner.values()]
    else:
        return
    for name in names:
        if name.split(".")[0] == "octet":
            yield _module_of(name, root) or name.replace(".", "/").removeprefix("octet/")


def _layer_of(module: str) -> str:
    return module.split("/")[0]


def _import_offence(module: str, target: str) -> str | None:
    layer, below = _layer_of(module), _layer_of(target)
    if layer == below or below in MAY_IMPORT[layer]:
        return None
    allowed = ", ".join(sorted(MAY_IMPORT[layer])) or "no other layer"
    return f"octet/{layer} may not import octet/{target} (it may import {allowed})"


def _private_name(node: ast.AST) -> tuple[str, str] | None:
    """(whose, what) of a private name that is used: torch._C, from torch._C import, a text."""
    if isinstance(node, ast.ImportFrom) and not node.level:
        whole = [f"{node.module}.{alias.name}" for alias in node.names]
    elif isinstance(node, ast.Import):
        whole = [alias.name for alias in node.names]
    elif isinstance(node, ast.Attribute):
        whole = [ast.unparse(node).lstrip("_")]
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        whole = [node.value] if _PRIVATE_TEXT.fullmatch(node.value) else []
    else:
        whole = []
    for name in whole:
        owner, *parts = name.split(".")
        if owner in PRIVATE_HOMES and any(re.match(r"_[a-zA-Z]", part) for part in parts):
            return owner, name
    return None


def _offence_of(node: ast.AST, module: str, root: Path) -> str | None:
    for target in _imported(node, module, root):
        if sentence := _import_offence(module, target):
            return sentence
    private = _private_name(node)
    if private and f"{module}.py" != PRIVATE_HOMES[private[0]]:
        return f"{private[1]} is private; only octet/{PRIVATE_HOMES[private[0]]} may use such names"
    if isinstance(node, ast.Call) and module not in COMPUTED_IMPORTS:
        called = ast.unparse(node.func)
        if called.split(".")[-1] in ("import_module", "__import__"):
            return f"{called}() hides what is imported; only {', '.join(COMPUTED_IMPORTS)} may"
    return None


def _circle(imports: dict[str, dict[str, int]]) -> list[str] | None:
    """Modules that import one another in a ring, the first of them at both ends."""
    done: set[str] = set()

    def search(module: str, path: list[str]) -> list[str] | None:
        if module in path:
            return [*path[path.index(module) :], module]
        if module in done:
            return None
        for target in imports.get(module, {}):
            if found := search(target, [*path, module]):
                return found
        done.add(module)
        return None

    return next(filter(None, (search(module, []) for module in imports)), None)


def check(root: Path) -> tuple[int, list[str]]:
    """The number of files, and a sentence with its place for each offence."""
    imports: dict[str, dict[str, int]] = {}
    offences: list[str] = []
    for path in sorted((root / PACKAGE).rglob("*.py")):
        name = path.relative_to(root).as_posix()
        module = path.relative_to(root / PACKAGE).with_suffix("").as_posix()
        if _layer_of(module) not in MAY_IMPORT:
            offences.append(f"{name}:1: not in a known layer; tools/python_layers.py lists them")
            continue
        targets = imports.setdefault(module, {})
        found: dict[int, str] = {}
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            for target in _imported(node, module, root):
                if target != module:
                    targets.setdefault(target, node.lineno)
            if sentence := _offence_of(node, module, root):
                found.setdefault(node.lineno, sentence)
        offences += [f"{name}:{line}: {sentence}" for line, sentence in sorted(found.items())]
    if circle := _circle(imports):
        place = f"{PACKAGE}/{circle[0]}.py:{imports[circle[0]][circle[1]]}"
        offences.append(f"{place}: imports in a circle: {' -> '.join(circle)}")
    return len(imports), offences
