"""What is certain of the integers of a program where a walk over its statements has come to.

Every value that nothing is known of is a symbol of its own with a range, and what is computed from it an
affine expression: `j + 1` is larger than `j`, whatever `j` is. A test that has come out is a conjunction of
such expressions that are not negative; it narrows the ranges of their symbols, and of those with several
symbols the least value is kept, as `j - k >= 1` tells more than both ranges (of pairs: Mine, A new numerical
abstract domain based on difference-bound matrices, 2001).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from math import ceil, isqrt

from ...frozen import frozen, slotted
from ...ir.dtype import BOOL, F64, I64, Kind
from ...ir.expr import Apply, Cast, Const, Expr, Gather, Index, Load, Local, Variable, dtype_of
from ...ir.index import Affine, Symbol
from ...ir.loops import For
from ...ir.ops import OPS, Op
from ...ir.tensor import Tensor
from ..analysis.access import Range
from ..analysis.positions import tested_outside
from ..analysis.spans import Span, comparison, computed, converted, held, is_always, result
from .growth import staying

__all__ = ["ALL", "Facts", "Moves", "Test", "Way", "hull"]

ALL = (-(2**63), 2**63 - 1)
"""The values of an int64."""


@frozen
class Side:
    """What is not negative where a test comes out so; that `is_enough` for it to come out so, or not."""

    numbers: tuple[Affine, ...] = ()
    is_enough: bool = False

    def beside(self, other: Side) -> Side:
        """What is not negative where two tests come out so."""
        return Side((*self.numbers, *other.numbers), self.is_enough and other.is_enough)


@frozen
class Test:
    """What is certain where a condition holds, and where it does not."""

    yes: Side
    no: Side

    def inverse(self) -> Test:
        return Test(self.no, self.yes)


@frozen
class Way:
    """How far an iteration of a loop moves a number, and how far all those of a run do together."""

    each: Range
    altogether: Range

    def or_nothing(self) -> Way:
        """The way of iterations that may move it less."""
        return Way(hull(self.each, (0, 0)), hull(self.altogether, (0, 0)))

    def over(self, trips: int) -> Range:
        """How far so many iterations move it, of which some may move it less."""
        (low, high), (least, most) = self.each, self.altogether
        return max(low * trips, least), min(high * trips, most)

    def within(self, other: Way | None, trips: int) -> bool:
        """Does another one go as far, in an iteration and in so many?"""
        if other is None or hull(self.each, other.each) != other.each:
            return False
        reach = other.over(trips)
        return hull(self.or_nothing().over(trips), reach) == reach


@frozen
class Moves:
    """The values that locals have at the start of any iteration of a loop; how far it moves some of them."""

    starts: Mapping[Variable, Range]
    steps: Mapping[Variable, Way]


Terms = tuple[tuple[int, Symbol], ...]

MOST_SUMS = 24
"""Of so many sums, those that were told last, the least value is kept."""

LESS = OPS["less"]
_ANDS = OPS["logical_and"], OPS["bitwise_and"]
_ORS = OPS["logical_or"], OPS["bitwise_or"]
_EQUALITIES = OPS["equal"], OPS["not_equal"]

OPEN = Test(Side(), Side())
CERTAIN = Test(Side((), True), Side((Affine.of(-1),), True))


@slotted
class Facts:
    """The present values of int64 locals and of bound symbols, the tests that bool locals hold, and the
    values that symbols may have. Integers in memory are `cells`, each with a local in its place; `loops` has
    what was found last of a loop, by its identity. Of symbols that stand for what a loop adds to a number,
    `altogether` says what all those of a run come to; of symbols that stand for squares, `roots` says of
    what. Of integers that an array holds, `held` has the range; of locals that are no int64s `spans` has the
    ends, unless they are `changing`."""

    values: dict[Variable, Affine]
    numbers: dict[Symbol, Affine]
    tests: dict[Variable, Test]
    ranges: dict[Symbol, Range]
    cells: Mapping[Tensor, Variable]
    loops: dict[int, Moves]
    altogether: dict[Symbol, Range]
    roots: dict[Symbol, Affine]
    held: dict[Tensor, Range]
    sums: dict[Terms, int]
    spans: dict[Variable, Span]
    changing: frozenset[Variable]

    @staticmethod
    def none(cells: Mapping[Tensor, Variable], changing: frozenset[Variable]) -> Facts:
        return Facts({}, {}, {}, {}, cells, {}, {}, {}, {}, {}, {}, changing)

    def copy(self) -> Facts:
        known = dict(self.values), dict(self.numbers), dict(self.tests), dict(self.ranges)
        squares, sums, others = self.roots, dict(self.sums), (self.spans, self.changing)
        return Facts(*known, self.cells, self.loops, self.altogether, squares, self.held, sums, *others)

    # What is known

    def range(self, number: Affine) -> Range:
        """The least and the greatest value, were there no wrapping around."""
        low, high = self.span(number)
        if len(number.terms) > 1 and self.sums:
            least, most = self.least(number), self.least(-number)
            least, most = (
                low if least is None else max(low, least),
                high if most is None else min(high, -most),
            )
            return (least, most) if least <= most else (low, high)
        return low, high

    def span(self, number: Affine) -> Range:
        """The same, by the ranges of its symbols alone."""
        low = high = number.offset
        for factor, symbol in number.terms:
            ends = [factor * end for end in self.ranges.get(symbol) or _declared(symbol)]
            low, high = low + min(ends), high + max(ends)
        return low, high

    def least(self, number: Affine) -> int | None:
        """The least value that a sum known to be large leaves, by the range of what else there is."""
        of = set(number.terms)
        rests = (
            (number - Affine(terms, 0), low) for terms, low in self.sums.items() if not of.isdisjoint(terms)
        )
        found = [self.span(rest)[0] + low for rest, low in rests if len(rest.terms) < len(number.terms)]
        return max(found, default=None)

    def outcome(self, test: Test) -> bool | None:
        """How a test comes out, if that is certain."""
        for side, other, outcome in ((test.yes, test.no, True), (test.no, test.yes, False)):
            is_met = side.is_enough and all(self.range(number)[0] >= 0 for number in side.numbers)
            if is_met or any(self.range(number)[1] < 0 for number in other.numbers):
                return outcome
        return None

    def local(self, variable: Variable) -> Affine:
        """The present value of a local."""
        if variable not in self.values:
            self.values[variable] = self.fresh(ALL)
        return self.values[variable]

    def exact(self, number: Affine) -> Affine | None:
        """The number, if it is sure not to wrap around."""
        low, high = self.range(number)
        return number if ALL[0] <= low and high <= ALL[1] else None

    def number(self, expr: Expr) -> Affine | None:
        """An int64 as an expression over symbols; None where it may wrap around."""
        match expr:
            case Const(value=value, dtype=dtype) if dtype is I64:
                return Affine.of(int(value))
            case Index(value=value):
                return self.exact(value.substitute(self.numbers))
            case Local(variable=variable) if variable.dtype is I64:
                return self.local(variable)
            case Load(tensor=tensor) if tensor in self.cells:
                return self.local(self.cells[tensor])
            case Apply(op=op, args=(condition, *choices), dtype=dtype) if op is OPS["where"] and dtype is I64:
                return self.chosen(self.test(condition), *choices)
            case Apply(op=op, args=(left, right), dtype=dtype) if dtype is I64:
                return self.combined(op, self.number(left), self.number(right))
            case Apply(op=op, args=(arg,), dtype=dtype) if dtype is I64 and dtype_of(arg) is I64:
                of = self.number(arg)
                known = None if of is None else result(op, [self.range(of)], I64)
                return None if known is None else self.fresh((int(known[0]), int(known[1])))
            case Load(tensor=tensor) | Gather(tensor=tensor) if tensor in self.held:
                return self.fresh(self.held[tensor])
            case Load() | Gather() if dtype_of(expr) is I64:
                return self.fresh(ALL)
            case Cast(arg=arg, dtype=dtype) if dtype is I64 and (known := self.ends(arg)) is not None:
                whole = converted(known, I64)
                return None if whole is None else self.fresh((int(whole[0]), int(whole[1])))
            case _:
                return None

    def ends(self, expr: Expr) -> Span | None:
        """What a number is at least and at most; None where it may be no finite one."""
        dtype = dtype_of(expr)
        found: Span | None = None
        match expr:
            case _ if dtype is I64:
                number = self.number(expr)
                return None if number is None else self.range(number)
            case Const(value=value):
                return (value, value) if not dtype.is_complex and math.isfinite(value) else None
            case Local(variable=variable):
                found = self.spans.get(variable)
            case _:
                found = computed(expr, self.ends)
        return held(dtype) if found is None else found

    def combined(self, op: Op, left: Affine | None, right: Affine | None) -> Affine | None:
        """The result of an operation on two numbers."""
        if left is None or right is None:
            return None
        if op is OPS["add"]:
            return self.exact(left + right)
        if op is OPS["subtract"]:
            return self.exact(left - right)
        if op is OPS["multiply"] and (left.is_constant or right.is_constant):
            return self.exact(left * right.offset if right.is_constant else right * left.offset)
        if op is OPS["multiply"] and left == right:
            return self.square(left)
        known = result(op, [self.range(left), self.range(right)], I64)
        return None if known is None else self.fresh((int(known[0]), int(known[1])))

    def square(self, number: Affine) -> Affine | None:
        """A number multiplied by itself."""
        low, high = self.range(number)
        least, most = max(0, low, -high) ** 2, max(-low, high) ** 2
        if most > ALL[1]:
            return None
        found = self.fresh((least, most))
        if found.symbol is not None:
            self.roots[found.symbol] = number
        return found

    def chosen(self, test: Test, then: Expr, otherwise: Expr) -> Affine | None:
        """One of two numbers."""
        if (settled := self.settled(test, then, otherwise)) is not None:
            return self.number(settled)
        found = []
        for value, side in ((then, test.yes), (otherwise, test.no)):
            there = self.copy()
            there.assume(side)
            number = there.number(value)
            if number is None:
                return None
            found.append((number, there.range(number)))
        (one, first), (other, second) = found
        return self.either(one, other, hull(first, second))

    def settled(self, test: Test, then: Expr, otherwise: Expr) -> Expr | None:
        """The one of two numbers that is right however a test comes out: the other one is never chosen, or is
        equal to it where it is."""
        if (outcome := self.outcome(test)) is not None:
            return then if outcome else otherwise
        for value, side in ((then, test.no), (otherwise, test.yes)):
            there = self.copy()
            there.assume(side)
            one, other = there.number(then), there.number(otherwise)
            if one is not None and other is not None and there.range(one - other) == (0, 0):
                return value
        return None

    def test(self, condition: Expr) -> Test:
        """What a condition tells."""
        match condition:
            case Const(value=value):
                return CERTAIN if value else CERTAIN.inverse()
            case Local(variable=variable):
                return self.tests.get(variable, OPEN)
            case Apply(op=op, args=(arg,)) if op is OPS["logical_not"]:
                return self.test(arg).inverse()
            case Apply(op=op, args=(left, Const(value=False))) if op is OPS["equal"]:
                return self.test(left).inverse()
            case Apply(op=op, args=(left, right), dtype=dtype) if op in _ANDS and dtype is BOOL:
                return self.both(self.test(left), self.test(right))
            case Apply(op=op, args=(left, right), dtype=dtype) if op in _ORS and dtype is BOOL:
                return self.both(self.test(left).inverse(), self.test(right).inverse()).inverse()
            case _ if (asked := tested_outside(condition)) is not None:
                number, most = asked
                return self.outside(number.substitute(self.numbers), most)
            case Apply(op=op, args=(Apply(dtype=dtype) as size, Const(value=most))) if (
                op is LESS and dtype is F64
            ):
                known = self.size(size)
                is_certain = known is not None and known * (1 + 2**-50) < most
                return CERTAIN if is_certain else Test(self.factors(size, most), Side())
            case _ if (result := staying(condition)) is not None:
                return self.within(result)
            case Apply(op=op, args=(left, right)) if op in _COMPARISONS and dtype_of(left) is I64:
                return self.compared(op, self.number(left), self.number(right))
            case Apply(op=op, args=args):
                return self.told_by_ends(op, *args)
            case _:
                return OPEN

    def size(self, expr: Expr) -> float | None:
        """What the size of a float64 made of int64s is at most, but for rounding."""
        match expr:
            case Const(value=value):
                return abs(float(value))
            case Cast(arg=arg) if dtype_of(arg) is I64 and (number := self.number(arg)) is not None:
                return float(max(abs(end) for end in self.range(number)))
            case Apply(op=op, args=(Const(value=2.0), exponent)) if op is OPS["power"]:
                known = self.size(exponent)
                return 2.0**known if known is not None and known < 1000 else None
            case Apply(op=op, args=(arg,)) if op is OPS["absolute"]:
                return self.size(arg)
            case Apply(op=op, args=args) if op is OPS["multiply"]:
                left, right = (self.size(arg) for arg in args)
                return None if left is None or right is None else left * right
            case _:
                return None

    def factors(self, size: Expr, most: float) -> Side:
        """What is certain of two int64s whose product as a float64 is smaller than that: three roundings make
        it smaller by less than 2**-51 of it."""
        match size:
            case Apply(op=op, args=(Apply(args=(Cast(arg=left), Cast(arg=right))) as product,)) if (
                op is OPS["absolute"] and product.op is OPS["multiply"] and 0 <= most < 2**64
            ):
                pair = [self.number(arg) if dtype_of(arg) is I64 else None for arg in (left, right)]
            case _:
                return Side()
        one, other = pair
        if one is None or other is None:
            return Side()
        largest = ceil(most) * (2**51 + 1) >> 51
        if one == other:
            return Side((isqrt(largest) - one, one + isqrt(largest)))
        found: tuple[Affine, ...] = ()
        for number, by in ((one, other), (other, one)):
            low, high = self.range(by)
            if (least := max(low, -high)) > 0:
                found += (largest // least - number, number + largest // least)
        return Side(found)

    def within(self, result: Apply) -> Test:
        """Whether a sum or difference does not wrap around."""
        left, right = (self.number(arg) for arg in result.args)
        if left is None or right is None:
            return OPEN
        number = left + right if result.op is OPS["add"] else left - right
        return Test(Side((number - ALL[0], ALL[1] - number), True), Side())

    def both(self, one: Test, other: Test) -> Test:
        """Whether both come out true."""
        yes = one.yes.beside(other.yes)
        if self.outcome(one):
            return Test(yes, other.no)
        return Test(yes, one.no if self.outcome(other) else Side())

    def outside(self, number: Affine, most: int) -> Test:
        """Whether a number that may wrap around is not from 0 to `most`."""
        low, high = self.range(number)
        is_one = most - 2**64 < low and high < 2**64
        return Test(Side(), Side((number, most - number), True)) if is_one else OPEN

    def compared(self, op: Op, left: Affine | None, right: Affine | None) -> Test:
        """A comparison of numbers."""
        if left is None or right is None:
            return OPEN
        found, (low, high) = _COMPARISONS[op](left - right), self.range(left - right)
        if op not in _EQUALITIES or (low and high):
            return found
        apart = Side((left - right - 1,) if low == 0 else (right - left - 1,))
        return Test(found.yes, apart) if op is OPS["equal"] else Test(apart, found.no)

    def told_by_ends(self, op: Op, *args: Expr) -> Test:
        """A question about a finite number, or a comparison of numbers that are no int64s."""
        if op not in _COMPARISONS and is_always(op) is None:
            return OPEN
        spans = [known for known in map(self.ends, args) if known is not None]
        if len(spans) < len(args):
            return OPEN
        if len(args) == 2 and args[0] == args[1]:
            spans = [(0, 0), (0, 0)]
        outcome = comparison(op, *spans) if len(args) == 2 else is_always(op)
        return OPEN if outcome is None else CERTAIN if outcome else CERTAIN.inverse()

    # What becomes known

    def fresh(self, known: Range) -> Affine:
        """A number of which the range is all that is known."""
        if known[0] == known[1]:
            return Affine.of(known[0])
        symbol = Symbol("number")
        self.ranges[symbol] = known
        return Affine.of(symbol)

    def either(self, one: Affine, other: Affine, known: Range) -> Affine:
        """One of two numbers, which lies in a range: of such as always are as far apart, the first and what
        lies between, where that says no less."""
        if (way := other - one).is_constant:
            number = one + self.fresh(hull((0, 0), (way.offset, way.offset)))
            if hull(self.range(number), known) == known:
                return number
        return self.fresh(known)

    def assume(self, side: Side) -> None:
        """A test came out so: each symbol of its numbers lies where the others let it."""
        for number in side.numbers:
            least, most = self.span(number)
            if least < 0 and len(number.terms) > 1:
                self.keep(number)
            for factor, symbol in number.terms:
                low, high = self.ranges.get(symbol) or _declared(symbol)
                others = most - max(factor * low, factor * high)
                if factor > 0:
                    low = max(low, -(others // factor))
                else:
                    high = min(high, others // -factor)
                if low <= high:
                    self.ranges[symbol] = low, high
                    if symbol in self.roots and high >= 0:
                        root, size = self.roots[symbol], isqrt(high)
                        self.assume(Side((root + size, size - root)))

    def keep(self, number: Affine) -> None:
        """A sum is not negative."""
        known = self.sums.pop(number.terms, -number.offset)
        self.sums[number.terms] = max(known, -number.offset)
        if len(self.sums) > MOST_SUMS:
            del self.sums[next(iter(self.sums))]

    def define(self, variable: Variable, value: Expr) -> None:
        """A local gets a value."""
        if variable.dtype is I64:
            self.values[variable] = self.number(value) or self.fresh(ALL)
        else:
            self.tests[variable] = self.test(value) if variable.dtype.kind is Kind.BOOL else OPEN
            self.spans.pop(variable, None)
            known = None if variable in self.changing else self.ends(value)
            if known is not None:
                self.spans[variable] = known

    def bind(self, symbol: Symbol, value: Expr) -> None:
        """A symbol gets a value, which lies in its declared range."""
        number = self.number(value) or self.fresh(ALL)
        low, high = _declared(symbol)
        self.assume(Side((number - low, high - number)))
        self.numbers[symbol] = number

    def enter(self, loop: For, trips: int) -> None:
        """A loop's symbol gets the values of its iterations, of which there are so many at most."""
        lo, hi = (self.range(end.substitute(self.numbers)) for end in (loop.lo, loop.hi))
        far = loop.step * (trips - 1)
        known = (
            (lo[0], min(hi[1] - 1, lo[1] + far)) if loop.step > 0 else (max(hi[0] + 1, lo[0] + far), lo[1])
        )
        symbol = loop.symbol
        self.sums = {
            terms: least for terms, least in self.sums.items() if all(of is not symbol for _, of in terms)
        }
        self.ranges[symbol] = known if ALL[0] <= known[0] <= known[1] <= ALL[1] else ALL
        way = Affine.of(symbol) if loop.step > 0 else -Affine.of(symbol)
        first, last = (
            end.substitute(self.numbers) * (1 if loop.step > 0 else -1) for end in (loop.lo, loop.hi)
        )
        self.assume(Side((way - first, last - way - 1)))

    def move(self, ranges: Mapping[Variable, Range], steps: Mapping[Variable, Way], trips: int) -> None:
        """Locals get other values, of which only the range is known; and of some, how far so many iterations
        of a loop have moved them from the values of before."""
        before = {variable: self.local(variable) for variable in steps}
        for variable, known in ranges.items():
            self.tests.pop(variable, None)
            if variable.dtype is I64:
                self.values[variable] = self.fresh(known)
        for variable, step in steps.items():
            moved = self.fresh(step.over(trips))
            if moved.symbol is not None:
                self.altogether[moved.symbol] = step.altogether
            number = self.exact(before[variable] + moved)
            if number is not None:
                low, high = ranges[variable]
                self.assume(Side((number - low, high - number)))
                self.values[variable] = number

    def join(self, other: Facts, changed: Iterable[Variable], test: Test) -> None:
        """Only what holds there as well still does, where a test came out otherwise; these locals differ."""
        tests = {variable: self._of_either(other, variable, test) for variable in changed}
        both = {variable: hull(self.range_of(variable), other.range_of(variable)) for variable in changed}
        self.sums = {
            terms: min(least, other.sums[terms]) for terms, least in self.sums.items() if terms in other.sums
        }
        for symbol, known in self.ranges.items():
            self.ranges[symbol] = hull(known, other.ranges.get(symbol) or _declared(symbol))
        for variable, known in both.items():
            if variable.dtype is I64:
                self.values[variable] = self.either(self.local(variable), other.local(variable), known)
            else:
                self.tests[variable] = tests[variable]

    def _of_either(self, other: Facts, variable: Variable, test: Test) -> Test:
        """What a bool tells that was computed here where a test holds, and there where it does not: one of
        two that is certain leaves the other, beside that test."""
        here, there = (facts.tests.get(variable, OPEN) for facts in (self, other))
        if (known := other.outcome(there)) is None:
            test, here, there = test.inverse(), there, here
            known = self.outcome(there)
        if known is None:
            return OPEN
        if known:
            return Test(Side(), test.yes.beside(here.no))
        return Test(test.yes.beside(here.yes), Side())

    def range_of(self, variable: Variable) -> Range:
        """The values that a local may have; of one that is no int64, any."""
        return self.range(self.local(variable)) if variable.dtype is I64 else ALL


def hull(one: Range, other: Range) -> Range:
    """The range of both."""
    return min(one[0], other[0]), max(one[1], other[1])


def _declared(symbol: Symbol) -> Range:
    return (
        ALL[0] if symbol.lower is None else symbol.lower,
        ALL[1] if symbol.upper is None else symbol.upper - 1,
    )


def _sides(yes: tuple[Affine, ...], no: tuple[Affine, ...]) -> Test:
    return Test(Side(yes, True), Side(no, True))


def _same(difference: Affine) -> Test:
    return Test(Side((difference, -difference), True), Side())


_COMPARISONS: Mapping[Op, Callable[[Affine], Test]] = {
    OPS["less"]: lambda difference: _sides((-difference - 1,), (difference,)),
    OPS["less_equal"]: lambda difference: _sides((-difference,), (difference - 1,)),
    OPS["greater"]: lambda difference: _sides((difference - 1,), (-difference,)),
    OPS["greater_equal"]: lambda difference: _sides((difference,), (-difference - 1,)),
    OPS["equal"]: _same,
    OPS["not_equal"]: lambda difference: _same(difference).inverse(),
}
"""What a comparison tells, by the difference of its operands."""
