"""docs/json.md as data, for the tests that compare it with what the commands print."""

import re


def documented_fields(repository):
    """{"bench.gemm": {"device", "rows", "rows[].m", ...}}"""
    page = (repository / "docs/json.md").read_text()
    fields = {}
    for command, text in re.findall(r"^## octet\.([\w.]+)/1\n(.*?)(?=^## |\Z)", page, re.M | re.S):
        rows = re.findall(r"^\|(.*?)\|(.*)", text, re.M)
        names = {name for first, _ in rows for name in re.findall(r"`([\w.\[\]]+)`", first)}
        names |= set(re.findall(r"`(\w+\[\]\.\w+)`", text))
        fields[command] = {name.removesuffix("[]") for name in names}
        fields[command] |= {name.split("[]")[0] for name in names}
    fields["demo"] |= {name for name in fields["generate"] - {"seeds", "loras"}
                      if name.split("[]")[0] != "captions"}
    return fields


def fields_of(result):
    """Names of all fields, and those of the objects in lists as rows[].m."""
    names = set(result) - {"schema"}
    for key, value in result.items():
        if isinstance(value, list):
            names |= {f"{key}[].{inner}" for entry in value if isinstance(entry, dict)
                      for inner in entry}
    return names


def check_against(documented, command, result):
    assert list(result)[0] == "schema"
    assert result["schema"] == f"octet.{command}/1"
    assert fields_of(result) == documented[command]
