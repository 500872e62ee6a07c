"""The flags of fields as apps/cli/field_names.cpp has them."""

import re


def flags_of_fields(repository):
    """For each field the words of its rows, the first of them first."""
    text = (repository / "apps/cli/field_names.cpp").read_text(encoding="utf-8")
    same = re.search(r"kSameNames =(.*?);", text, re.S)[1]
    flags = {name: ["--" + name.replace("_", "-")] for name in re.findall(r"\w+", same)}
    for field, flag in re.findall(r'^    \{"(\w+)",\s*"([\w-]+)"', text, re.M):
        flags.setdefault(field, []).append(flag)
    return flags
