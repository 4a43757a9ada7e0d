"""The stretches of a loop: indices in a row on one side of each of its turns (see `record.turns`).

for i in range(100), turning at 1 and at j, which may be anything:

    range(0, 1)
    range(1, minimum(j, 100))
    range(maximum(j, 1), 100)
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ...frozen import frozen
from ...ir.dtype import I64
from ...ir.expr import Apply, Const, Index
from ...ir.index import Affine
from ...ir.ops import op
from ..record.deciding import not_negative, quotient, rest
from ..record.trace import Trace
from ..values.extents import divided
from .iterations import Iterations, count_between

__all__ = ["Stretch", "stretches_between"]


@frozen
class Turned:
    """The `index` from which on a loop goes on otherwise: `value` divided by `divisor` and rounded down."""

    index: Affine
    value: Affine
    divisor: int

    @staticmethod
    def of(value: Affine, divisor: int) -> Turned:
        return Turned(divided(value, divisor), value, divisor)

    def note(self, index: Affine, last: int, first: int, is_below: bool, trace: Trace) -> None:
        """Indices from `first` to `last` beyond that one lie on one side."""
        gap, by = index * self.divisor - self.value, self.divisor
        if is_below:
            trace.limits.note_least(-gap, by + by * last)
        else:
            trace.limits.note_least(gap, 1 - by - by * first)


@frozen
class Stretch:
    """The indices `range(first, stop, step)`; `sides` are turns with whether the indices lie below them. No
    stretch of the loop follows the `last` one; nor does an index follow one without any that `decides`. With
    `times`, which is 1 or 0, it is one that is left behind rows of `period` indices."""

    first: Affine
    stop: Affine
    step: int
    sides: tuple[tuple[Turned, bool], ...] = ()
    period: int = 1
    times: Affine | None = None
    is_last: bool = True
    decides: bool = True

    @property
    def count(self) -> Affine:
        """How many indices there are."""
        return count_between(self.first, self.stop, self.step)

    def iterations(self) -> Iterations:
        """The same, one by one."""
        if self.times is None:
            return Iterations.of(self.first, self.stop, self.step)
        return Iterations.at_most_one(self.first, self.step, self.times, self.period)

    def in_rows(self, period: int, what: str, trace: Trace) -> list[Stretch]:
        """Whole rows of so many indices, if there may be any, and then one by one those that are left, if
        only the run shows how many these are."""
        most = trace.limits.most(self.count)
        is_less = most is not None and most < period
        if not is_less and rest(self.count, period, trace, what) is not None:
            return [self]
        count = not_negative(self.count, trace)
        rows = Affine.of(0) if is_less else quotient(count, period, trace)
        end = self.first + rows * (period * self.step)
        found = [] if is_less else [replace(self, stop=end)]
        for n in range(min(period - 1, period - 1 if most is None else most)):
            left = Apply(op("minimum"), (Index(count - rows * period - n), Const(1, I64)), I64)
            times = trace.bind(Apply(op("maximum"), (left, Const(0, I64)), I64), 0, 2)
            first = end + n * self.step
            found.append(Stretch(first, first + times * self.step, self.step, self.sides, period, times))
        return found

    def note(self, iterations: Iterations, trace: Trace) -> None:
        """Let the trace know on which sides of the turns the indices of some of the iterations lie."""
        index, *others = iterations.indices()
        steps = [0, *((other - index).offset for other in others)]
        for turned, is_below in self.sides:
            turned.note(index, max(steps), min(steps), is_below, trace)

    def split(self, turned: Turned, trace: Trace) -> list[Stretch]:
        """The indices on this side of a turn and those on the other, where there may be both."""
        turn = turned.index
        low, high = (self.first, self.stop) if self.step > 0 else (self.stop + 1, self.first + 1)
        limits, below, above = trace.limits, (turned, True), (turned, False)
        if _is_at_most(limits.most(turn - low), 0):
            return [replace(self, sides=(*self.sides, above))]
        if _is_at_most(limits.most(high - turn), 0):
            return [replace(self, sides=(*self.sides, below))]
        end = turn if _is_at_most(limits.most(turn - high), 0) else _bound("minimum", turn, high, trace)
        begin = turn if _is_at_most(limits.most(low - turn), 0) else _bound("maximum", turn, low, trace)
        is_any_below = _is_at_most(limits.most(low - turn), -1)
        is_any_above = _is_at_most(limits.most(turn - high), -1)
        parts = [(low, end, below, is_any_below), (begin, high, above, is_any_above)]
        first, last = parts if self.step > 0 else parts[::-1]
        return [self._part(*first, is_last=False), self._part(*last, is_last=self.is_last)]

    def _part(
        self, low: Affine, high: Affine, side: tuple[Turned, bool], is_any: bool, is_last: bool
    ) -> Stretch:
        """The indices on one side, of which there surely are some (`is_any`) if there are any at all."""
        first, stop = (low, high) if self.step > 0 else (high - 1, low - 1)
        decides = self.decides and (is_any or is_last)
        return Stretch(first, stop, self.step, (*self.sides, side), is_last=is_last, decides=decides)


def stretches_between(
    first: Affine, stop: Affine, step: int, turns: Iterable[tuple[Affine, int]], trace: Trace
) -> list[Stretch]:
    """The indices `range(first, stop, step)` in stretches, by turns that are numbers with their divisors."""
    found = [Stretch(first, stop, step)]
    for value, divisor in turns:
        turned = Turned.of(value, divisor)
        found = [part for stretch in found for part in stretch.split(turned, trace)]
    return found


def _is_at_most(value: int | None, most: int) -> bool:
    return value is not None and value <= most


def _bound(name: str, turn: Affine, end: Affine, trace: Trace) -> Affine:
    """The lesser (`minimum`) or the greater of a turn and an end of the indices."""
    limits, is_least = trace.limits, name == "minimum"
    pick = min if is_least else max
    ranges = [limits.between(turn), limits.between(end)]
    lower, upper = None, None
    match ranges:
        case [(int(first), int(last)), (int(low), int(high))]:
            lower, upper = pick(first, low), pick(last, high) + 1
    found = trace.bind(Apply(op(name), (Index(turn), Index(end)), I64), lower, upper)
    for number in (turn, end):
        limits.note_least(number - found if is_least else found - number, 0)
    return found
