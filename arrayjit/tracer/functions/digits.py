"""Sorting by digits: the least significant first, each time keeping the order of before.

    keys of 64 bits, digits of 8:

    for i in range(n):                     how many cells have which digit, at each of 8 places
        for place in range(8):
            starts[place, digit(x[i], place)] += 1
    for place in range(8):                 where the cells of each digit start
        starts[place] = cumsum(starts[place]) - starts[place]
    for pair in range(4):                  there and back again
        for i in range(n):
            at = starts[2 * pair, digit(x[i], 2 * pair)]++
            spare[at] = x[i]
        for i in range(n):
            at = starts[2 * pair + 1, digit(spare[i], 2 * pair + 1)]++
            x[at] = spare[i]

Two places at which all cells have one digit each are left out, as of small integers or of floats that are
near one another; of one such place the cells are copied. Equal cells keep their order.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...frozen import frozen
from ...ir.assign import Branch
from ...ir.conditions import compare, opposite
from ...ir.dtype import BOOL, I64, DType
from ...ir.expr import Apply, Cast, Const, Expr, Index, dtype_of
from ...ir.index import Affine
from ...ir.ops import op
from ..indices.gathering import gather
from ..record.trace import Trace, current_trace, user_location
from ..record.view import View
from ..values.array import SymbolicArray
from ..values.extents import as_expr, most
from ..values.integer import number
from .keys import digit_of

__all__ = ["sort_by_digits", "work_of_digits"]

_ZERO, _ONE = Const(0, I64), Const(1, I64)


@frozen
class Digits:
    """How keys are cut: `count` places, an even number, of `bits` each."""

    bits: int
    count: int

    @staticmethod
    def of(dtype: DType, cells: int) -> Digits:
        """Those that sort so many cells with the least work: at each place a step for each cell and one for
        each digit. More than 256 digits would go to more lines of memory than the fastest cache has."""
        choices = [Digits(bits, dtype.bits // bits) for bits in (4, 8) if bits < dtype.bits]
        return min(choices, key=lambda choice: choice.work(cells))

    def work(self, cells: int) -> float:
        """The cycles that it takes to sort so many cells, roughly."""
        return self.count * (5 * cells + 2 * (1 << self.bits))

    def of_key(self, key: Expr, place: Affine) -> Expr:
        """The digit of a key at a place."""
        return digit_of(key, Cast(Index(place * self.bits), dtype_of(key)), self.bits)


def work_of_digits(dtype: DType, cells: int) -> float:
    """The cycles that it takes to sort a row of so many cells, roughly."""
    return Digits.of(dtype, cells).work(cells)


def sort_by_digits(arrays: Sequence[SymbolicArray]) -> None:
    """Sort each row of the first array in place, and move the cells of the others along."""
    trace = current_trace()
    count, extent = arrays[0].cells.shape
    longest = most(extent)
    cells = number(extent, trace, "the length of what is sorted") if longest is None else longest
    digits = Digits.of(arrays[0].element_type, cells)
    with trace.loop(0, count) as row:
        here = [array.cells.part(row) for array in arrays]
        spare = [trace.window((extent,), array.element_type, "spare") for array in arrays]
        for old, new in zip(here, spare, strict=True):
            trace.store(new, old.load)  # so that each thread may have its own: nothing else is read
        starts = _counted(trace, here[0], digits)
        with trace.loop(0, digits.count // 2) as pair:
            lower, upper = (_Place(starts, pair * 2 + n, digits) for n in (0, 1))
            first = here[0].load((0,))
            idle = [place.holds_all(first, extent) for place in (lower, upper)]
            moves = opposite(Apply(op("logical_and"), tuple(idle), BOOL))
            trace.begin()
            lower.move(trace, here, spare, idle[0])
            upper.move(trace, spare, here, idle[1])
            trace.emit(Branch(moves, trace.end(), (), user_location()))


def _counted(trace: Trace, cells: View, digits: Digits) -> View:
    """How many of the cells have which digit at each place."""
    starts = trace.window((digits.count << digits.bits,), I64, "starts")
    trace.store(starts, lambda _: _ZERO)
    with trace.loop(0, cells.shape[0]) as at:
        for place in range(digits.count):
            _Place(starts, Affine.of(place), digits).reached(trace, cells.load((at,)))
    return starts


@frozen
class _Place:
    """One place of the keys: where the next cell of each digit goes, or before that, how many have it."""

    starts: View
    place: Affine
    digits: Digits

    def holds_all(self, key: Expr, extent: Affine) -> Expr:
        """Whether all cells have the digit that this key has."""
        digit = self.digits.of_key(key, self.place)
        number = gather(self.starts, [Apply(op("add"), (Index(self._at(Affine.of(0))), digit), I64)])
        return compare("equal", number, as_expr(extent))

    def reached(self, trace: Trace, cell: Expr) -> Affine:
        """The number for the cell's digit, which grows by one."""
        digit = trace.bind(self.digits.of_key(cell, self.place), 0, 1 << self.digits.bits)
        target = self.starts.remap((), (), (self._at(digit),))
        at = trace.bind(target.load(()), 0)
        trace.store(target, lambda _: Apply(op("add"), (Index(at), _ONE), I64))
        return at

    def move(self, trace: Trace, source: Sequence[View], target: Sequence[View], idle: Expr) -> None:
        """The cells in the order of their digits; those of one digit stay in theirs, and all if `idle`."""
        trace.begin()
        for old, new in zip(source, target, strict=True):
            trace.store(new, old.load)
        copied = trace.end()
        trace.begin()
        self._begin(trace)
        with trace.loop(0, source[0].shape[0]) as n:
            at = self.reached(trace, source[0].load((n,)))
            for old, new in zip(source, target, strict=True):
                trace.store(new.remap((), (), (at,)), lambda _, old=old: old.load((n,)))  # type: ignore[misc]
        trace.emit(Branch(idle, copied, trace.end(), user_location()))

    def _begin(self, trace: Trace) -> None:
        """Turn numbers into where the cells of each digit start."""
        reached = trace.window((), I64, "reached")
        trace.store(reached, lambda _: _ZERO)
        with trace.loop(0, 1 << self.digits.bits) as digit:
            cell = self.starts.remap((), (), (self._at(digit),))
            number = trace.bind(cell.load(()), 0)
            trace.store(cell, lambda _: reached.load(()))
            trace.store(reached, lambda _: Apply(op("add"), (reached.load(()), Index(number)), I64))

    def _at(self, digit: Affine) -> Affine:
        return self.place * (1 << self.digits.bits) + digit
