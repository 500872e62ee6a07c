"""Records that were pickled: those of the extension have no memory of their own to restore."""

from __future__ import annotations

from functools import cache
from typing import Any


class Restored:
    """The fields of a record under their names, as the extension's own has them."""

    __match_args__: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """The same as dicts and lists, for JSON."""
        return {name: _plain(value) for name, value in vars(self).items()}

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={value!r}" for name, value in vars(self).items())
        return f"{type(self).__name__}({fields})"

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    __hash__ = None

    def __reduce__(self) -> tuple[Any, ...]:
        return restored, (type(self).__name__, vars(self))


def restored(name: str, fields: dict[str, Any]) -> Restored:
    """A record of the type with that name."""
    made = _type(name, tuple(fields))()
    vars(made).update(fields)
    return made


@cache
def _type(name: str, fields: tuple[str, ...]) -> type[Restored]:
    return type(name, (Restored,), {"__match_args__": fields})


def _plain(value: Any) -> Any:
    if hasattr(value, "as_dict"):
        return value.as_dict()
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value
