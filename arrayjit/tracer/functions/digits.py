"""Sorting by digits: the least significant first, each time keeping the order of before.

    100,000 keys of 64 bits, digits of 10:

    first, last = bits between which x - least = x - minimum(x) lies, in all cells
    low = maximum(first, last - 30)
    while low < last:
        for place in range(3):             from one array to the other
            for i in range(n):             how many cells have which digit
                starts[digit(x[i] - least, low + 10 * place)] += 1
            starts = cumsum(starts) - starts
            for i in range(n):
                at = starts[digit(x[i] - least, low + 10 * place)]++
                spare[at] = x[i]
            x, spare = spare, x
        low += 30
        if low >= last:
            for i in range(1, n):          what differs in lower bits alone
                while x[i] < x[i - 1]: they change places, i -= 1
            if that were more than 4 * n steps:
                low = 0                    all digits, the least significant first

So many of the highest bits tell nearly all cells apart. Above the last bit cells are copied. Digits that take
all bits, as three of 11 do of 32, need nothing else. Equal cells keep their order.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...frozen import frozen
from ...ir.assign import Branch, While
from ...ir.conditions import both, compare
from ...ir.dtype import I64, DType
from ...ir.expr import Apply, Cast, Const, Expr, Index, dtype_of
from ...ir.index import Affine
from ...ir.ops import op
from ..indices.gathering import gather
from ..record.trace import Body, Trace, current_trace, user_location
from ..record.view import View
from ..values.array import SymbolicArray
from ..values.extents import as_expr, most
from ..values.integer import number
from .keys import bits_from, length_of, zeros_below

__all__ = ["sort_by_digits", "work_of_digits"]

_ZERO, _ONE = Const(0, I64), Const(1, I64)
_MOST_BITS = 11
"""Of a digit: more would go to more lines and pages of memory than fast caches know. Two arrays go to twice
as many: a million float32 numbers with their places would take twice the time."""
_BITS_THAT_TELL = 13
"""More than it takes to number the cells: of floats around zero, up to twelve are sign and exponent."""
_STEPS = 4
"""For each cell, that put in order what digits left."""


@frozen
class Digits:
    """How keys are cut: `count` places of `bits` each, of keys of `width` bits."""

    bits: int
    count: int
    width: int

    @staticmethod
    def of(dtype: DType, cells: int, arrays: int = 1) -> Digits:
        """Those that sort so many cells with the least work, and move those of further arrays along."""
        told = min(dtype.bits, cells.bit_length() + _BITS_THAT_TELL)
        sizes = range(4, min(_MOST_BITS + 1 - arrays, dtype.bits) + 1)
        choices = [Digits(bits, -(-told // bits), dtype.bits) for bits in sizes]
        return min(choices, key=lambda choice: choice.work(cells))

    @property
    def taken(self) -> int:
        """The bits of all places."""
        return self.bits * self.count

    @property
    def are_all(self) -> bool:
        """Whether no bit of a key is left out."""
        return self.taken >= self.width

    def work(self, cells: int) -> float:
        """The cycles that it takes to sort so many cells, roughly: at each place two steps for each cell,
        wide ones longer, and two for each digit, and one step for each cell to look at what was left out."""
        of_cell = 6 if self.width > 32 else 4
        return self.count * (of_cell * cells + 3 * (1 << self.bits)) + (0 if self.are_all else 2 * cells)


def work_of_digits(dtype: DType, cells: int) -> float:
    """The cycles that it takes to sort a row of so many cells, roughly."""
    return Digits.of(dtype, cells).work(cells)


def sort_by_digits(arrays: Sequence[SymbolicArray]) -> None:
    """Sort each row of the first array in place, and move the cells of the others along."""
    trace = current_trace()
    count, extent = arrays[0].cells.shape
    longest = most(extent)
    cells = number(extent, trace, "the length of what is sorted") if longest is None else longest
    digits = Digits.of(arrays[0].element_type, cells, len(arrays))
    with trace.loop(0, count) as row:
        here = [array.cells.part(row) for array in arrays]
        spare = [trace.window((extent,), array.element_type, "spare") for array in arrays]
        _copy(trace, here, spare)  # so that each thread may have its own: nothing else is read
        _Sorting(trace, digits, here, spare).sort()


@frozen
class _Span:
    """What keys are above the least of them lies in the bits from the first to before the last."""

    least: View
    first: View
    last: View

    @staticmethod
    def of(trace: Trace, keys: View) -> _Span:
        dtype, one = keys.tensor.dtype, keys.load((Affine.of(0),))

        def combined(name: str, of: Body, initial: Expr) -> View:
            return trace.compute((), dtype, of, over=keys.shape, accum=op(name), initial=initial)

        def differing(at: tuple[Affine, ...]) -> Expr:
            return Apply(op("bitwise_xor"), (keys.load(at), one), dtype)

        least, greatest = (combined(name, keys.load, one) for name in ("minimum", "maximum"))
        bits = combined("bitwise_or", differing, Const(0, dtype))
        first = trace.compute((), I64, lambda _: zeros_below(bits.load(())), label="first")
        above = Apply(op("raw_subtract"), (greatest.load(()), least.load(())), dtype)
        last = trace.compute((), I64, lambda _: length_of(above), label="last")
        return _Span(least, first, last)


@frozen
class _Sorting:
    """A row of keys, with what is moved along, and as much room."""

    trace: Trace
    digits: Digits
    here: Sequence[View]
    spare: Sequence[View]

    def sort(self) -> None:
        trace, digits = self.trace, self.digits
        span = _Span.of(trace, self.here[0])
        first = _greater(span.first.load(()), _less(span.last.load(()), digits.taken))
        low = trace.compute((), I64, lambda _: first, label="low")
        if digits.are_all:
            self.go_through(span, low)
            return
        is_left = compare("less", low.load(()), span.last.load(()))
        trace.begin()
        self.go_through(span, low)
        trace.store(low, lambda _: _sum(low.load(()), digits.taken))
        trace.begin()
        self.put_in_order(low)
        trace.emit(Branch(is_left, (), trace.end(), user_location()))
        if digits.count % 2:
            trace.begin()
            _copy(trace, self.here, self.spare)
            trace.emit(Branch(is_left, trace.end(), (), user_location()))
        trace.emit(While((), is_left, trace.end(), user_location()))

    def go_through(self, span: _Span, low: View) -> None:
        """Sort by the digits from a bit on. The cells lie in the spare room before if there are so many that
        they then come to lie in the other one."""
        trace, bits = self.trace, self.digits.bits
        source, target = (self.spare, self.here) if self.digits.count % 2 else (self.here, self.spare)
        starts = trace.window((1 << bits,), I64, "starts")
        for place in range(self.digits.count):
            first = _sum(low.load(()), place * bits)
            trace.begin()
            _copy(trace, source, target)
            copied = trace.end()
            trace.begin()
            _Place(trace, bits, first, span.least.load(()), starts).move(source, target)
            is_beyond = compare("greater_equal", first, span.last.load(()))
            trace.emit(Branch(is_beyond, copied, trace.end(), user_location()))
            source, target = target, source

    def put_in_order(self, low: View) -> None:
        """Move each cell before greater ones in front of it; if many were to move far, begin again at the
        lowest digit."""
        trace, extent = self.trace, self.here[0].shape[0]
        keys, most_steps = self.here[0], Apply(op("multiply"), (as_expr(extent), Const(_STEPS, I64)), I64)
        steps = trace.compute((), I64, lambda _: _ZERO, label="steps")
        with trace.loop(1, extent) as at:
            is_less = compare("less", keys.load((at,)), keys.load((at - 1,)))
            trace.begin()
            self.move_back(at, steps, most_steps)
            trace.emit(Branch(is_less, trace.end(), (), user_location()))
        trace.begin()
        trace.store(low, lambda _: _ZERO)
        was_much = compare("greater_equal", steps.load(()), most_steps)
        trace.emit(Branch(was_much, trace.end(), (), user_location()))

    def move_back(self, at: Affine, steps: View, most_steps: Expr) -> None:
        trace = self.trace
        held = [trace.compute((), view.tensor.dtype, _cell(view, at), label="held") for view in self.here]
        place = trace.compute((), I64, lambda _: Index(at), label="place")
        before = gather(self.here[0], [_greater(_less(place.load(()), 1), _ZERO)])
        trace.begin()
        to = trace.bind(place.load(()), 1, most(self.here[0].shape[0]))
        for view in self.here:
            trace.store(view.part(to), _cell(view, to - 1))
        trace.store(place, lambda _: _less(place.load(()), 1))
        trace.store(steps, lambda _: _sum(steps.load(()), 1))
        is_wrong = both(
            compare("greater", place.load(()), _ZERO), compare("greater", before, held[0].load(()))
        )
        goes_on = both(is_wrong, compare("less", steps.load(()), most_steps))
        trace.emit(While((), goes_on, trace.end(), user_location()))
        to = trace.bind(place.load(()), 0, most(self.here[0].shape[0]))
        for view, cell in zip(self.here, held, strict=True):
            trace.store(view.part(to), cell.load)


@frozen
class _Place:
    """One place of the keys, `bits` from the first one on. `starts` is where the next cell of each digit
    goes, or before that, how many have it."""

    trace: Trace
    bits: int
    first: Expr
    least: Expr
    starts: View

    def move(self, source: Sequence[View], target: Sequence[View]) -> None:
        """The cells in the order of their digits; those of one digit stay in theirs."""
        trace, keys = self.trace, source[0]
        trace.store(self.starts, lambda _: _ZERO)
        with trace.loop(0, keys.shape[0]) as at:
            self.reached(keys.load((at,)))
        passed = trace.compute((), I64, lambda _: _ZERO, label="reached")
        with trace.loop(0, 1 << self.bits) as digit:
            start = self.starts.part(digit)
            number = trace.bind(start.load(()), 0)
            trace.store(start, lambda _: passed.load(()))
            trace.store(passed, lambda _: Apply(op("add"), (passed.load(()), Index(number)), I64))
        with trace.loop(0, keys.shape[0]) as at:
            to = self.reached(keys.load((at,)))
            for old, new in zip(source, target, strict=True):
                trace.store(new.part(to), _cell(old, at))

    def digit(self, key: Expr) -> Expr:
        dtype = dtype_of(key)
        above = Apply(op("raw_subtract"), (key, self.least), dtype)
        return bits_from(above, Cast(self.first, dtype), self.bits)

    def reached(self, key: Expr) -> Affine:
        """The number for the key's digit, which grows by one."""
        trace = self.trace
        number = self.starts.part(trace.bind(self.digit(key), 0, 1 << self.bits))
        at = trace.bind(number.load(()), 0)
        trace.store(number, lambda _: Apply(op("add"), (Index(at), _ONE), I64))
        return at


def _copy(trace: Trace, source: Sequence[View], target: Sequence[View]) -> None:
    for old, new in zip(source, target, strict=True):
        trace.store(new, old.load)


def _cell(view: View, place: Affine) -> Body:
    return lambda _: view.load((place,))


def _sum(one: Expr, other: int) -> Expr:
    return Apply(op("add"), (one, Const(other, I64)), I64)


def _less(one: Expr, other: int) -> Expr:
    return Apply(op("subtract"), (one, Const(other, I64)), I64)


def _greater(one: Expr, other: Expr) -> Expr:
    return Apply(op("maximum"), (one, other), I64)
