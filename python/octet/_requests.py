"""A request's arguments, as the extension takes them."""

from __future__ import annotations

import json
import operator
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from octet import _octet
from octet._calls import call
from octet.errors import OctetError, refuse, refuse_type, shown


def caption_text(caption: str | Mapping[str, Any] | os.PathLike[str], wrap_text: bool) -> str:
    if isinstance(caption, str):
        if wrap_text:
            return call(_octet.wrap_plain_text, caption)
        if caption.endswith(".json"):
            refuse("caption", f"`caption` is the name of a file; give pathlib.Path({caption!r})")
        return caption
    if isinstance(caption, Mapping):
        try:
            return json.dumps(caption, ensure_ascii=False, default=_json_value)
        except OctetError:
            raise
        except (TypeError, ValueError, RecursionError) as error:  # keys, circles, depth
            refuse("caption", f"`caption` cannot be written as JSON: {error}")
    if isinstance(caption, os.PathLike):
        with open(caption, encoding="utf-8") as file:
            return file.read()
    refuse_type(
        "caption",
        f"`caption` is of type {type(caption).__name__}; expected JSON as text, a dict, or a path",
    )


def _json_value(value: Any) -> Any:
    """What JSON has for something that it does not know."""
    if isinstance(value, Mapping):
        return dict(value)
    refuse_type("caption", f"`caption` contains a {type(value).__name__}, which JSON does not have")


def size_of(size: int | tuple[int, int] | None, width: int, height: int) -> tuple[int, int]:
    if size is None:
        for name, side in (("width", width), ("height", height)):
            if whole(side) is None:
                refuse_type(name, f"`{name}` is {shown(side)}; expected a whole number of pixels")
        return operator.index(width), operator.index(height)
    if width or height:
        refuse("size", "there are both `size` and `width` or `height`; expected one of them")
    both = size if isinstance(size, Sequence) else (size, size)
    sides = [whole(side) for side in both]
    if len(sides) != 2 or None in sides:
        refuse("size", f"`size` is {size!r}; expected a number of pixels, or (width, height)")
    return sides[0], sides[1]


def seed_of(seed: int) -> int:
    number = whole(seed)
    if number is None or not 0 <= number < 1 << 64:
        refuse("seed", f"`seed` is {seed!r}; expected a number from 0 to 2^64 - 1")
    return number


def whole(value: Any) -> int | None:
    """The number, of NumPy as well; None for anything else, and for True."""
    try:
        return None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        return None


def guidance_of(guidance: float | Sequence[float] | None) -> list[float]:
    if guidance is None:
        return []
    if isinstance(guidance, (str, bytes)):
        refuse_type("guidance", f"`guidance` is {shown(guidance)}; expected a number, or several")
    return list(guidance) if isinstance(guidance, Iterable) else [guidance]
