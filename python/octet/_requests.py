"""What callers make themselves, and pass to an engine."""

from __future__ import annotations

from collections.abc import Sequence

from octet import _octet
from octet._calls import Path, call, path_text


class Lora(_octet.Lora):
    """A LoRA to merge into the networks: all that its file is for, or those that are named."""

    def __init__(self, file: Path, strength: float = 1.0, networks: Sequence[str] = ()) -> None:
        call(super().__init__, path_text("file", file), strength, networks)


class Stop(_octet.Stop):
    """Ends the calls that it was passed to, even before they begin."""

    def __init__(self) -> None:
        super().__init__()

    def request(self) -> None:
        """From any thread."""
        super().request()
