"""The cells at a few places of the order, found without putting all in order.

    t = x; left = n; rank = k
    while a sample is worth it:                        of many cells, first: 64 of t[:left], put in order
        low, high = those that stand some places before and behind where the wanted one would be
        if it is not between these, they are the first or last key there is and one of these
        rank -= how many of t[:left] are less than low
        t[:reached] = those of t[:left] between the two, in place; left = reached
    bits = those that are not the same in all cells
    while bits:
        shift = max(0, the highest of them less 7)     a digit that tells cells apart
        numbers = how many of t[:left] have which digit there
        wanted = the digit that the cell of this rank has
        rank -= how many cells have lower digits
        t[:reached] = those of t[:left] with that digit, in place
        left = reached
        bits = those that are not the same in all of t[:left]

What is left are equal cells: the one wanted, and the next ones in order, if rank allows. If not, the next one
is the least of the greater cells, which is one more way through all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...ir.assign import Branch, While
from ...ir.conditions import both, compare, one_of
from ...ir.dtype import I64, DType, Kind, named
from ...ir.expr import Apply, Cast, Const, Expr, Index, dtype_of
from ...ir.index import Affine
from ...ir.ops import op
from ..indices.gathering import gather
from ..record.trace import Body, Trace, current_trace, user_location
from ..record.view import View
from ..values.array import SymbolicArray
from ..values.elementwise import always
from ..values.extents import as_expr, most
from .keys import digit_of, length_of

__all__ = ["Search", "divide", "last_key", "select", "select_pairs", "work_of_division", "work_of_selection"]

_ZERO, _ONE = Const(0, I64), Const(1, I64)
_BITS = 8
_TABLES = 4
"""In which digits are counted."""
_SAMPLE, _APART = 64, 11
"""So many keys tell, of which each is compared with each. Among them the one wanted would stand 4 places off
its own, more or less: 11 are hardly ever too few."""
_MANY = 1000
"""Of fewer candidates, no sample is looked at: digits take as long."""


def work_of_selection(keys: DType, cells: int, ranks: Sequence[int]) -> float:
    """The cycles that it takes to select from a row of so many cells, roughly: what is wider than 16 bits is
    put together by registers."""
    digits = (1 + keys.itemsize / 2 if keys.bits > 16 else 10) * cells + 8 * (1 << _BITS)
    sample = 4500 + cells * keys.itemsize / 4
    return len(_runs(ranks)) * (min(digits, sample) if _is_sampled(keys, cells) else digits)


def _is_sampled(keys: DType, cells: int | None) -> bool:
    """Whether samples are looked at first in rows of so many keys at most: those that are kept should be put
    together by registers, and their number must fit in one key."""
    return keys.bits > 16 and cells is not None and _MANY < cells < 1 << 31


def work_of_division(keys: DType, cells: int) -> float:
    """The cycles that it takes to divide a row of so many cells, roughly."""
    return work_of_selection(keys, cells, (0,)) + (1 if keys.bits > 16 else 6) * cells


def select(keys: SymbolicArray, ranks: Sequence[int]) -> SymbolicArray:
    """For each row of keys, those at the given places of its order."""
    trace = current_trace()
    count = keys.cells.shape[0]
    found = trace.window((count, len(ranks)), keys.element_type, "found")
    with trace.loop(0, count) as row:
        cells = keys.cells.part(row)
        for run in _runs(ranks):
            search = Search(trace, cells, Const(run[0], I64))
            for rank in run:
                value = search.key if rank == run[0] else search.next()
                for column in (n for n, other in enumerate(ranks) if other == rank):
                    trace.store(found.remap((), (), (row, column)), value.load)
    return SymbolicArray(found, trace)


def select_pairs(keys: SymbolicArray, ranks: SymbolicArray) -> SymbolicArray:
    """For each row of keys, the one at the row's own place of the order and the next; the greatest key there
    could be after the last one."""
    trace = current_trace()
    count = keys.cells.shape[0]
    found = trace.window((count, 2), keys.element_type, "found")
    with trace.loop(0, count) as row:
        search = Search(trace, keys.cells.part(row), ranks.cells.load((row,)))
        for column, value in enumerate((search.key, search.next())):
            trace.store(found.remap((), (), (row, column)), value.load)
    return SymbolicArray(found, trace)


def divide(
    keys: SymbolicArray, rank: int, dtype: DType, cell: Body, equal: Callable[[Expr], Expr] | None = None
) -> SymbolicArray:
    """For each row of keys, the cells that belong to them: first those of lesser keys than the one at this
    place of the order, then those of equal ones, then the others, each in the order of before. `equal` tells
    which cell a key belongs to, if only one does."""
    trace = current_trace()
    count, extent = keys.cells.shape
    divided = trace.window(keys.cells.shape, dtype, "divided")
    with trace.loop(0, count) as row:
        search = Search(trace, keys.cells.part(row), Const(rank, I64))
        parts = {"less": divided.part(row)}
        for name in ("greater",) if equal else ("equal", "greater"):
            parts[name] = trace.window((extent,), dtype, name)
            if count != Affine.of(1):  # so that each thread may have its own: nothing else is read
                trace.store(parts[name], lambda at: cell((row, *at)))
        numbers = {name: search.number(_ZERO, name) for name in parts}
        with trace.loop(0, extent) as at:
            key, found = keys.cells.load((row, at)), search.key.load(())
            for name, part in parts.items():
                place = trace.bind(numbers[name].load(()), 0, most(extent))
                trace.store(part.remap((), (), (place,)), lambda _: cell((row, at)))
                _add(trace, numbers[name], Cast(compare(name, key, found), I64))
        left = search.left.load(())
        middle = _of("subtract", Const(rank, I64), search.rank.load(()))
        for name, start in (("equal", middle), ("greater", _of("add", middle, left))):
            number = numbers[name].load(()) if name in numbers else left
            first, many = (trace.bind(n, 0, most(extent + 1)) for n in (start, number))
            with trace.loop(0, many) as at:
                value = parts[name].load((at,)) if name in parts or not equal else equal(search.key.load(()))
                trace.store(divided.remap((), (), (row, first + at)), always(value))
    return SymbolicArray(divided, trace)


def _add(trace: Trace, number: View, value: Expr) -> None:
    trace.store(number, lambda _: _of("add", number.load(()), value))


def _runs(ranks: Sequence[int]) -> list[list[int]]:
    """The ranks, two together that follow one another: one search finds both."""
    runs: list[list[int]] = []
    for rank in sorted(set(ranks)):
        if runs and [rank - 1] == runs[-1]:
            runs[-1].append(rank)
        else:
            runs.append([rank])
    return runs


class Search:
    """The search for the key at one place of a row's order. `key` is what it finds."""

    def __init__(self, trace: Trace, cells: View, rank: Expr) -> None:
        self.trace, self.cells, self.dtype = trace, cells, cells.tensor.dtype
        (self.extent,) = cells.shape
        self.left = self.number(as_expr(self.extent), "left")
        self.rank = self.number(rank, "rank")
        self.bits = trace.window((), self.dtype, "bits")
        self.those = trace.compute(cells.shape, self.dtype, cells.load, label="candidates")
        if _is_sampled(self.dtype, most(self.extent)):
            self._sample()
        self._compare()
        trace.begin()
        self._narrow(self._bound())
        differs = compare("not_equal", self.bits.load(()), Const(0, self.dtype))
        trace.emit(While((), differs, trace.end(), user_location()))
        self.key = trace.compute((), self.dtype, lambda _: self.those.load((0,)))

    def next(self) -> View:
        """The key that comes after the one found."""
        trace, last = self.trace, Const(last_key(self.dtype), self.dtype)
        is_equal = compare("less", _of("add", self.rank.load(()), _ONE), self.left.load(()))
        value = trace.compute((), self.dtype, self.key.load)
        trace.begin()

        def above(at: tuple[Affine, ...]) -> Expr:
            key = self.cells.load(at)
            is_above = compare("greater", key, self.key.load(()))
            return one_of(is_above, key, last)

        least = trace.compute((), self.dtype, above, over=(self.extent,), accum=op("minimum"), initial=last)
        trace.store(value, least.load)
        trace.emit(Branch(is_equal, (), trace.end(), user_location()))
        return value

    def _sample(self) -> None:
        """Look at samples, as long as there are many candidates, and the last one left out half of them."""
        trace = self.trace
        before = self.number(_of("multiply", self.left.load(()), Const(2, I64)), "before")
        trace.begin()
        trace.store(before, self.left.load)
        self._keep_around(self._bound())
        left, half = self.left.load(()), _of("floor_divide", before.load(()), Const(2, I64))
        is_worth = both(compare("greater", left, Const(_MANY, I64)), compare("less_equal", left, half))
        trace.emit(While((), is_worth, trace.end(), user_location()))

    def _keep_around(self, left: Affine) -> None:
        """Keep the candidates between two of a sample, as the wanted one is; or those before or behind both,
        if it is there."""
        trace, rank = self.trace, self.rank.load(())
        below, above = (key.load(()) for key in self._around())
        under, upto = (self._number_of(left, *than) for than in (("less", below), ("less_equal", above)))
        is_under, is_beyond = compare("less", rank, under), compare("less_equal", upto, rank)
        one, first, last = (Const(n, self.dtype) for n in (1, _first_key(self.dtype), last_key(self.dtype)))
        low = one_of(is_under, first, one_of(is_beyond, self._op("add", above, one), below))
        high = one_of(is_under, self._op("subtract", below, one), one_of(is_beyond, last, above))
        low_end, high_end = (trace.compute((), self.dtype, always(end)).load(()) for end in (low, high))
        passed = one_of(is_under, _ZERO, one_of(is_beyond, upto, under))
        trace.store(self.rank, always(_of("subtract", rank, passed)))

        def is_between(at: Affine) -> Expr:
            key = self.those.load((at,))
            return both(compare("less_equal", low_end, key), compare("less_equal", key, high_end))

        self._keep(left, is_between)

    def _around(self) -> tuple[View, View]:
        """Of a sample of the candidates, those that stand some places before and behind where the wanted one
        would be: of keys that no more of them are less than, the last one."""
        trace, number, many, apart = self.trace, self._number, Const(_SAMPLE, I64), Const(_APART, I64)
        step = Index(trace.bind(_of("floor_divide", self.left.load(()), many), 0, most(self.extent)))
        middle = _of("floor_divide", _of("multiply", self.rank.load(()), many), self.left.load(()))
        nearby = (_of("maximum", _of("subtract", middle, apart), _ZERO), _of("add", middle, apart))
        places = [trace.compute((), number, always(Cast(place, number))) for place in nearby]
        first = Const(_first_key(self.dtype), self.dtype)

        def chosen(at: tuple[Affine, ...]) -> Expr:
            return gather(self.those, [_of("multiply", Index(at[0]), step)])

        def is_less(at: tuple[Affine, ...]) -> Expr:
            return Cast(compare("less", sample.load(at[1:]), sample.load(at[:1])), number)

        def key_at(place: View) -> View:
            def no_later(at: tuple[Affine, ...]) -> Expr:
                return one_of(compare("less_equal", less.load(at), place.load(())), sample.load(at), first)

            return trace.compute((), self.dtype, no_later, over=over, accum=op("maximum"), initial=first)

        over = (_SAMPLE,)
        sample = trace.compute(over, self.dtype, chosen, label="sample")
        less = trace.compute(over, number, is_less, over=over, accum=op("add"), initial=Const(0, number))
        return key_at(places[0]), key_at(places[1])

    def _number_of(self, left: Affine, name: str, bound: Expr) -> Expr:
        """How many candidates compare so with a bound, counted in lanes as wide as theirs."""

        def is_so(at: tuple[Affine, ...]) -> Expr:
            return Cast(compare(name, self.those.load(at), bound), self._number)

        nothing = Const(0, self._number)
        many = self.trace.compute((), self._number, is_so, over=(left,), accum=op("add"), initial=nothing)
        return Cast(many.load(()), I64)

    @property
    def _number(self) -> DType:
        return named(f"i{self.dtype.bits}")

    def _bound(self) -> Affine:
        """How many candidates are left, to end a loop."""
        return self.trace.bind(self.left.load(()), 0, most(self.extent + 1))

    def _narrow(self, left: Affine) -> None:
        """Keep the candidates whose highest digit that tells them apart is the one wanted."""
        trace = self.trace
        shift = trace.compute((), self.dtype, lambda _: _shift(self.bits.load(())))

        def digit(at: Affine) -> Expr:
            return digit_of(self.those.load((at,)), shift.load(()), _BITS)

        wanted, below = self._wanted(self._counted(left, digit))
        trace.store(self.rank, always(_of("subtract", self.rank.load(()), below.load(()))))
        self._keep(left, lambda at: compare("equal", digit(at), wanted.load(())))
        self._compare()

    def _keep(self, left: Affine, is_kept: Callable[[Affine], Expr]) -> None:
        """Make those of the candidates, in place, the only ones."""
        trace = self.trace
        reached = self.number(_ZERO, "reached")
        with trace.loop(0, left) as at:
            place = trace.bind(reached.load(()), 0, most(self.extent))
            kept = trace.compute((), I64, lambda _: Cast(is_kept(at), I64))
            trace.store(self.those.remap((), (), (place,)), always(self.those.load((at,))))
            _add(trace, reached, kept.load(()))
        trace.store(self.left, reached.load)

    def _counted(self, left: Affine, digit: Callable[[Affine], Expr]) -> View:
        """How many candidates have which digit, in tables for each quarter of them: a number that grows by
        one waits for itself, and neighbours often have one digit."""
        trace = self.trace
        tables = trace.window((_TABLES << _BITS,), I64, "numbers")
        trace.store(tables, lambda _: _ZERO)

        def count(table: int, at: Affine) -> None:
            target = tables.remap((), (), (trace.bind(digit(at), 0, 1 << _BITS) + (table << _BITS),))
            _add(trace, target, _ONE)

        longest = most(self.extent)
        end = None if longest is None else longest // _TABLES + 1
        quarter = trace.bind(_of("floor_divide", as_expr(left), Const(_TABLES, I64)), 0, end)
        with trace.loop(0, quarter) as at:
            for table in range(_TABLES):
                count(table, at + quarter * table)
        with trace.loop(quarter * _TABLES, left) as at:
            count(0, at)
        return tables

    def _compare(self) -> None:
        """Find the bits that are not the same in all candidates. It goes through all cells, since that takes
        less than ending within a vector, unless samples left out most of them."""
        nothing = Const(0, self.dtype)

        def differing(at: tuple[Affine, ...]) -> Expr:
            bits = self._op("bitwise_xor", self.those.load(at), self.those.load((0,)))
            is_candidate = compare("less", Index(at[0]), self.left.load(()))
            return one_of(is_candidate, bits, nothing)

        over = (self._bound() if _is_sampled(self.dtype, most(self.extent)) else self.extent,)
        self.trace.store(self.bits, differing, over=over, accum=op("bitwise_or"), initial=nothing)

    def _op(self, name: str, one: Expr, other: Expr) -> Expr:
        return Apply(op(name), (one, other), self.dtype)

    def _wanted(self, tables: View) -> tuple[View, View]:
        """The digit of the cell of the rank, and how many candidates have lower ones."""
        trace = self.trace
        wanted, below, passed = (self.number(_ZERO, name) for name in ("wanted", "below", "passed"))
        with trace.loop(0, 1 << _BITS) as digit:
            for table in range(_TABLES):
                _add(trace, passed, tables.load((digit + (table << _BITS),)))
            is_lower = compare("less_equal", passed.load(()), self.rank.load(()))
            _add(trace, wanted, Cast(is_lower, I64))
            trace.store(below, lambda _: one_of(is_lower, passed.load(()), below.load(())))
        return wanted, below

    def number(self, value: Expr, name: str) -> View:
        return self.trace.compute((), I64, lambda _: value, label=name)


def _shift(bits: Expr) -> Expr:
    """How far down the digit lies that begins with the highest of the bits."""
    above = Apply(op("subtract"), (length_of(bits), Const(_BITS, I64)), I64)
    return Cast(Apply(op("maximum"), (above, _ZERO), I64), dtype_of(bits))


def _first_key(dtype: DType) -> int:
    return -(1 << (dtype.bits - 1)) if dtype.kind is Kind.INT else 0


def last_key(dtype: DType) -> int:
    return (1 << (dtype.bits - (dtype.kind is Kind.INT))) - 1


def _of(name: str, one: Expr, other: Expr) -> Expr:
    return Apply(op(name), (one, other), I64)
