"""Calls into the extension, whose refusal of an argument becomes one sentence.

nanobind refuses a call as a whole and shows its signature, which says what each argument has to be.
So the wrong one is found by it, after the call has failed: calls that succeed cost nothing more.
"""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from difflib import get_close_matches
from numbers import Real
from typing import Any, NoReturn

from octet.errors import one_line, refuse, refuse_type, shown

Path = str | os.PathLike[str]
_SIGNATURE = re.compile(r"\n +1\. \w+\((.*)\) -> ")


def call(function: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """function(*args, **options), a function or method of the extension."""
    try:
        return function(*args, **options)
    except TypeError as error:
        signature = _SIGNATURE.search(str(error))
        if signature is None:
            raise
    _refuse(signature[1], args, options)


def check_names(
    function: Callable[..., Any], options: Iterable[str], taker: Callable[..., Any]
) -> None:
    """Refuses options of `function` that neither it nor `taker`, which gets the rest, knows."""
    known = [
        name
        for each in (function, taker)
        for name, parameter in inspect.signature(each).parameters.items()
        if parameter.kind is parameter.KEYWORD_ONLY
    ]
    for name in options:
        if name not in known:
            meant = get_close_matches(name, known, n=1)
            hint = f"; did you mean {meant[0]}?" if meant else ""
            refuse_type(name, f"{function.__name__}() has no argument `{name}`{hint}")


def path_text(name: str, path: Any) -> str:
    """A path as the extension takes it."""
    if not isinstance(path, (str, os.PathLike)):
        refuse_type(name, f"`{name}` is {shown(path)}; expected a path")
    return os.fspath(path)


def _refuse(signature: str, args: tuple[Any, ...], options: Mapping[str, Any]) -> NoReturn:
    kinds = dict(_parameters(signature))
    given = dict(zip((name for name in kinds if name != "self"), args)) | options
    for name, value in given.items():
        if not _fits(value, kinds[name]):
            words = _words(kinds[name])
            refuse_type(name, f"`{name}` is {shown(value)}; expected {words}")
    for name, value in given.items():  # of the right type, and more than the engine's can hold
        for number in value if isinstance(value, (list, tuple)) else [value]:
            if isinstance(number, int) and not 0 <= number < 1 << 31:
                refuse(name, f"`{name}` is {one_line(str(value))}, which is out of range")
        if isinstance(value, str) and not _is_unicode(value):
            refuse(name, f"`{name}` has a surrogate, {value!a:.60}; expected text that is Unicode")
    refuse_type("", f"the arguments do not fit: {', '.join(given)}")


def _parameters(signature: str) -> Iterator[tuple[str, str]]:
    """Names and types; commas within brackets do not separate."""
    for part in re.split(r", (?![^\[]*\])", signature):
        name, _, kind = part.partition(": ")
        yield name, kind.partition(" = ")[0]


def _split(kind: str) -> tuple[str, str]:
    """ "collections.abc.Sequence[str]" is Sequence and str."""
    outer, _, inner = kind.removesuffix("]").partition("[")
    return outer.rpartition(".")[2], inner


def _fits(value: Any, kind: str) -> bool:
    if kind.endswith(" | None"):
        return value is None or _fits(value, kind.removesuffix(" | None"))
    outer, inner = _split(kind)
    if outer == "Sequence":
        return isinstance(value, (list, tuple)) and all(_fits(one, inner) for one in value)
    if outer == "tuple":
        kinds = inner.split(", ")
        return (
            isinstance(value, tuple)
            and len(value) == len(kinds)
            and all(map(_fits, value, kinds))
        )
    if outer == "Mapping":
        return all(isinstance(one, str) for pair in value.items() for one in pair)
    if outer == "ndarray":
        return False  # the least likely to be right of what is left
    return _TESTS.get(outer, lambda one: type(one).__name__ == outer)(value)


_TESTS: dict[str, Callable[[Any], bool]] = {
    "str": lambda value: isinstance(value, str),
    "int": lambda value: hasattr(value, "__index__"),
    "float": lambda value: isinstance(value, Real),
    "bool": lambda value: isinstance(value, bool),
    "Callable": callable,
}
_NAMES = {
    "str": "text",
    "int": "a whole number",
    "float": "a number",
    "bool": "True or False",
    "Callable": "a function",
    "Mapping": "a dict of text",
    "ndarray": "an array of float32 [tokens, channels] in host memory",
}


def _words(kind: str) -> str:
    outer, inner = _split(kind.removesuffix(" | None"))
    if outer == "Sequence":
        return f"a list: {_words(inner)} for each element"
    if outer == "tuple":
        return f"({inner.replace('str', 'text').replace('int', 'number')})"
    return _NAMES.get(outer, f"an octet.{outer}")


def _is_unicode(text: str) -> bool:
    return not any("\ud800" <= letter <= "\udfff" for letter in text)
