"""Vectors of copies of one number, made where a short loop is entered.

    loop:                                             %b = insertelement <8 x double> poison, double %a, i64 0
        %x = load <8 x double>, ptr %p          ->    %c = shufflevector <8 x double> %b, ...
        %b = insertelement ... double %a, i64 0   loop:
        %c = shufflevector <8 x double> %b, ...       %x = load <8 x double>, ptr %p
        %y = fmul <8 x double> %c, %x                 %y = fmul <8 x double> %c, %x

LLVM leaves in a loop what takes a cycle, as such copies do by its tables of AMD's processors, and takes out
of it what takes three, as on Intel's, or is loaded. In loops of few operations with numbers that are made
before the loops around them the copies are a quarter of all instructions: steps of two coupled rows with two
factors take 0.85 of the time without them, a tree of prices 0.94. Long loops have no registers for them.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import field

from ..frozen import slotted

__all__ = ["Entry", "entry_for", "makes_ahead"]

FEATURE, REGISTERS = "sse4a", "avx512f"
"""What AMD's processors have, and what those of them that have registers for it."""

LONG = 128
"""The lines of a loop's text from which on registers are scarce."""

_NUMBER = re.compile(r"\d+$")


def makes_ahead(features: Collection[str]) -> bool:
    """Whether copies are made ahead of loops for a processor with these features."""
    return FEATURE in features and REGISTERS in features


@slotted
class Entry:
    """Where a loop is entered: a line of the text that is left `before` it, the line where its body starts
    behind the values that it hands on, and a number greater than those of all names that stand before it.
    `made` are the names of what is made there, by instruction, each a line of `lines`."""

    before: int
    number: int
    start: int = 0
    made: dict[str, str] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)

    def place(self, end: int) -> int:
        """The line at which all is made in a loop whose text ends there."""
        return self.before if end - self.start <= LONG else self.start


def entry_for(entries: Sequence[Entry], name: str) -> Entry | None:
    """The entry of the innermost loop, if it is within another, and what the name stands for is made before
    it: what is visible in a loop and stands before it in the text is."""
    number = _NUMBER.search(name)
    if len(entries) < 2 or number is None or int(number[0]) > entries[-1].number:
        return None
    return entries[-1]
