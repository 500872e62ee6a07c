"""The examples of docs/torch.md run. Ten seconds, most of it for importing diffusers."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("diffusers")


def examples(repository: Path) -> list[str]:
    page = (repository / "docs/torch.md").read_text(encoding="utf-8")
    return re.findall(r"^```python\n(.*?)^```", page, re.M | re.S)


def test_the_examples_run(repository, capsys):
    codes = examples(repository)
    assert len(codes) == 2
    for code in codes:
        exec(compile(code, "docs/torch.md", "exec"), {})
    printed = capsys.readouterr().out
    assert "17 in INT8, 11 kept in floating point, 0 fallbacks" in printed
    for wanted in re.findall(r"print\(.*\)\s+# (Int8Linear\(.*\))$", "\n".join(codes), re.M):
        assert wanted in printed
