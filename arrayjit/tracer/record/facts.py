"""What may be compiled in about the numbers of a call: facts, which a call either shares or does not."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, Union

from ...frozen import frozen
from .state import state_of

__all__ = ["Argument", "Fact", "Positive", "Remainder"]


@frozen
class Argument:
    """A scalar argument: its position among the leaves of the call."""

    leaf: int

    def read(self, leaves: Sequence[Any]) -> Hashable:
        """The value of the argument in a call, as what is compiled in depends on it."""
        return state_of(leaves[self.leaf])

    def __str__(self) -> str:
        return "its value"


@frozen
class Positive:
    """Whether a sum of integer arguments, `offset + sum(coefficient * leaf)`, is more than 0."""

    terms: tuple[tuple[int, int], ...]
    offset: int

    def read(self, leaves: Sequence[Any]) -> bool:
        return self.offset + sum(factor * int(leaves[leaf]) for factor, leaf in self.terms) > 0

    def __str__(self) -> str:
        return "whether a loop over it runs"


@frozen
class Remainder:
    """What is left of a sum of integer arguments, if it is not negative, after division by `period`."""

    terms: tuple[tuple[int, int], ...]
    offset: int
    period: int

    def read(self, leaves: Sequence[Any]) -> int:
        total = self.offset + sum(factor * int(leaves[leaf]) for factor, leaf in self.terms)
        return max(total, 0) % self.period

    def __str__(self) -> str:
        return f"what is left of it after division by {self.period}"


Fact = Union[Argument, Positive, Remainder]
"""Something about the numbers of a call that is compiled in."""
