"""The exceptions of the package. All of them are OctetError."""

from __future__ import annotations

from octet._octet import Cancelled, InvalidRequest, OctetError, OutOfMemory

__all__ = ["Cancelled", "InvalidRequest", "OctetError", "OctetTypeError", "OutOfMemory"]


class OctetTypeError(OctetError, TypeError):
    """An argument of the wrong type, or an array of the wrong dtype."""
