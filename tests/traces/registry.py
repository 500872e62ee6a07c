"""What is known of each recorded program: its name, what it is in a sentence, what an audit of its
trace has to say, and the function that makes it. That function gets a Setting, and returns the
network, whose layers have names (None: they have none), and what one step calls.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from network import SETTINGS, Setting

# Of one step: four in each of two blocks.
ALL = 8
LONG = {"blocks": 4}  # for what is looked at most
GPU, CPU = ("cuda",), ("cpu",)


@dataclasses.dataclass(frozen=True)
class Program:
    name: str
    sentence: str
    verdict: str
    make: Callable
    devices: tuple = GPU + CPU
    # Of the linears of one step; None: not known.
    linears: int | None = ALL
    native: int | None = 0
    fake: int | None = 0
    # Verdicts that are right as well, by variant; "cpu": of one with shapes. What such a trace
    # cannot tell.
    may_be: dict = dataclasses.field(default_factory=dict)
    seconds: int = 40  # time limit of its process
    blocks: int = 2

    def setting(self, device: str) -> Setting:
        return dataclasses.replace(SETTINGS[device], blocks=self.blocks)


PROGRAMS: dict[str, Program] = {}


def program(name: str, sentence: str, verdict: str, **rest):
    def register(make):
        PROGRAMS[name] = Program(name, sentence, verdict, make, **rest)
        return make

    return register
