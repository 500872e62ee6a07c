"""How a weight becomes INT8, in the words of `octet quantize`."""

from __future__ import annotations

from dataclasses import dataclass

from octet._checks import ROTATION_GROUPS
from octet.errors import refuse


@dataclass(frozen=True)
class Recipe:
    """Weights as they are (group 0), or rotated within groups of inputs."""

    group: int = 0

    def group_for(self, k: int) -> int:
        """The recipe's group, or the largest smaller one that divides k inputs; 0 if none does."""
        return max((g for g in ROTATION_GROUPS if g <= self.group and k % g == 0), default=0)

    def __str__(self) -> str:
        return f"convrot:{self.group}" if self.group else "rowwise"


def parse_recipe(text: str | Recipe) -> Recipe:
    """From "rowwise", "convrot" (groups of 256) or "convrot:64"."""
    if isinstance(text, Recipe):
        return text
    name, colon, number = str(text).partition(":")
    if name == "rowwise" and not colon:
        return Recipe()
    if name == "convrot":
        if not colon:
            return Recipe(256)
        if number.isdecimal() and int(number) in ROTATION_GROUPS:
            return Recipe(int(number))
        refuse(
            "recipe",
            f"recipe: {text!r}: expected a group of 4, 16, 64, 256 or 1024 after the colon",
        )
    if name == "smoothquant":
        refuse(
            "recipe",
            "recipe: smoothquant needs recorded activations, which `octet quantize` gets from a "
            "calibration; expected rowwise or convrot[:group]",
        )
    refuse("recipe", f"recipe: {text!r} is unknown, expected rowwise or convrot[:group]")
