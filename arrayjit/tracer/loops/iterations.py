"""The iterations of a user's loop as those of the recorded one: index arithmetic and nothing else."""

from __future__ import annotations

from dataclasses import replace

from ...frozen import frozen
from ...ir.index import Affine, Symbol, SymbolKind

__all__ = ["Iterations", "count_between"]

_NONE = Affine.of(0)


def count_between(first: Affine, stop: Affine, step: int) -> Affine:
    """How many indices `range(first, stop, step)` has, `step` being 1 or -1. Where that is not constant,
    it may be negative, for none."""
    span = (stop - first) * step
    return Affine.of(max(span.offset, 0)) if span.is_constant else span


@frozen
class Iterations:
    """The indices `range(first, stop, step)`, `step` being 1 or -1. One iteration of the recorded loop, over
    `symbol`, makes `period` of them: where that is 1 the symbol is the index, else a count from 0 to `whole`,
    and a `rest` of indices is left. With `alone` it makes only the first of a period."""

    first: Affine
    stop: Affine
    step: int
    symbol: Symbol
    period: int = 1
    whole: Affine = _NONE
    rest: int = 0
    alone: bool = False

    @staticmethod
    def of(first: Affine, stop: Affine, step: int) -> Iterations:
        ends = (first, stop) if step > 0 else (stop + 1, first + 1)
        low, high = (end.bounds({}) for end in ends)
        symbol = Symbol("k", SymbolKind.LOOP, low and low[0], high and high[1])
        return Iterations(first, stop, step, symbol)

    @staticmethod
    def at_most_one(first: Affine, step: int, times: Affine, period: int) -> Iterations:
        """One index, or none: `times` is 1 or 0. Of the index is known what `period` of them leave."""
        symbol = Symbol("k", SymbolKind.LOOP, 0, 1)
        return Iterations(first, first + times * step, step, symbol, period, times, alone=True)

    def firsts(self, count: int) -> list[Affine]:
        """The first indices of the user's."""
        return [self.first + n * self.step for n in range(count)]

    def after_one(self, most: int | None) -> Iterations:
        """All but the first of the recorded loop, which then has at most `most`."""
        left = Iterations.of(self.first + self.period * self.step, self.stop, self.step)
        if self.period == 1:
            return left
        return left.grouped(self.period, self.groups - 1, self.rest, most)

    def begun(self, times: Affine) -> Iterations:
        """The first of the user's iterations, so many `times`: 1 or 0."""
        return replace(self, stop=self.first + times * self.step)

    def grouped(self, period: int, groups: Affine, rest: int, most: int | None) -> Iterations:
        """The same iterations, `period` at a time: `groups` times, `most` of these at most, and a `rest`."""
        symbol = Symbol("k", SymbolKind.LOOP, 0, None if most is None else max(1, most))
        return Iterations(self.first, self.stop, self.step, symbol, period, groups, rest)

    @property
    def count(self) -> Affine:
        """How many iterations of the user's there are."""
        return count_between(self.first, self.stop, self.step)

    @property
    def groups(self) -> Affine:
        """How many iterations the recorded loop has."""
        return self.count if self.period == 1 else self.whole

    @property
    def shift(self) -> int:
        """What an iteration of the recorded loop adds to the symbol."""
        return self.step if self.period == 1 else 1

    @property
    def number(self) -> Affine:
        """How many iterations of the recorded loop come before that at the symbol."""
        symbol = Affine.of(self.symbol)
        return symbol if self.period > 1 else (symbol - self.first) * self.step

    def indices(self) -> list[Affine]:
        """The user's indices in one iteration of the recorded loop."""
        symbol = Affine.of(self.symbol)
        if self.period == 1:
            return [symbol]
        taken = 1 if self.alone else self.period
        return [self.first + (symbol * self.period + n) * self.step for n in range(taken)]

    def remainder(self) -> list[Affine]:
        """The user's indices that are too few for another iteration of the recorded loop."""
        done = self.whole * self.period
        return [self.first + (done + n) * self.step for n in range(self.rest)]

    def bounds(self) -> tuple[Affine, Affine, int]:
        """`lo`, `hi` and `step` of the recorded loop."""
        if self.period == 1:
            return self.first, self.stop, self.step
        return Affine.of(0), self.groups, 1

    def limits(self) -> tuple[Affine, Affine]:
        """The symbol is from the first of these on, and below the second."""
        if self.period > 1:
            return Affine.of(0), self.groups
        return (self.first, self.stop) if self.step > 0 else (self.stop + 1, self.first + 1)

    def symbol_after(self, iterations: Affine) -> Affine:
        """The symbol's value in the last of so many iterations; for none, one shift before the first."""
        return iterations - 1 if self.period > 1 else self.first + (iterations - 1) * self.step
