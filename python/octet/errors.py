"""The exceptions of the package. All of them are OctetError."""

from __future__ import annotations

from typing import Any, NoReturn

from octet._octet import Cancelled, InvalidRequest, OctetError, OctetTypeError, OutOfMemory

__all__ = ["Cancelled", "InvalidRequest", "OctetError", "OctetTypeError", "OutOfMemory"]


def one_line(text: str) -> str:
    """For a sentence: without line breaks, and not too long."""
    text = " ".join(text.split())
    return text if len(text) <= 60 else text[:57] + "..."


def shown(value: Any) -> str:
    """Its type and value, unless all that is known of it is an address."""
    text = one_line(repr(value))
    return type(value).__name__ if text.startswith("<") else f"{type(value).__name__} {text}"


def refuse_type(field: str, sentence: str) -> NoReturn:
    """An argument of the wrong type: also a TypeError, and names the argument."""
    _raise(OctetTypeError(sentence), field)


def refuse(field: str, sentence: str) -> NoReturn:
    """A wrong argument: also a ValueError, and names the argument."""
    _raise(InvalidRequest(sentence), field)


def _raise(error: OctetError, field: str) -> NoReturn:
    error.field = field
    try:
        raise error
    finally:
        del error  # with it, this frame and the error would keep each other, and all callers' data
