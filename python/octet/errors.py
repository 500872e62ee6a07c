"""The exceptions of the package. All of them are OctetError."""

from __future__ import annotations

from typing import NoReturn

from octet._octet import Cancelled, InvalidRequest, OctetError, OutOfMemory

__all__ = ["Cancelled", "InvalidRequest", "OctetError", "OctetTypeError", "OutOfMemory"]


class OctetTypeError(OctetError, TypeError):
    """An argument of the wrong type, or an array of the wrong dtype."""


def refuse_type(field: str, sentence: str) -> NoReturn:
    """An argument of the wrong type: also a TypeError, and names the argument."""
    error = OctetTypeError(sentence)
    error.field = field
    raise error


def refuse(field: str, sentence: str) -> NoReturn:
    """A wrong argument: also a ValueError, and names the argument."""
    error = InvalidRequest(sentence)
    error.field = field
    raise error
