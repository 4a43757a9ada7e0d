"""Positions that go along with a loop: whether all lie within their axis shows at its two ends."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

from ...ir.conditions import either
from ...ir.dtype import BOOL, I64
from ...ir.expr import Apply, Expr, Index, Variable
from ...ir.index import Affine, Symbol
from ...ir.loops import Bind, Define, For, If, LoopKind, Raise, Stmt, While, walk_statements
from ...ir.ops import OPS
from ...ir.walk import (
    locals_updated,
    nodes_in,
    rewrite_bodies,
    rewrite_expressions,
    substitute,
    transform,
    walk,
)
from ..analysis.access import Ranges
from ..analysis.changes import Changes
from ..analysis.copies import copy_body
from ..analysis.positions import ZERO, are_negative, tested
from ..analysis.repeats import HEAVY, weight
from ..analysis.values import written_out
from .growth import multiplied, staying

__all__ = ["Ends", "straight"]

PACES = {"add": 1, "subtract": -1}
"""How the paces of two numbers add up."""

MOST_TESTS = 4
"""So many times as heavy as what is left a loop may be with its tests."""

FEWEST = 8
"""So many steps are worth a question before them."""


def straight(
    loop: For, passes: Callable[[Stmt], bool], is_known: Callable[[Affine], bool]
) -> tuple[Stmt, ...]:
    """A copy of a loop without tests that a run `passes`, in which positions of which it `is_known` that they
    are not negative count from the start."""

    def counted(node: Expr) -> Expr:
        place = position(node)
        return node if place is None or not is_known(place) else Index(place)

    def statement(stmt: Stmt) -> Stmt:
        stmt = rewrite_expressions(stmt, lambda expr: transform(expr, counted))
        return rewrite_bodies(stmt, lambda body: tuple(statement(one) for one in body if not passes(one)))

    return copy_body((statement(loop),), {}, {})


def position(node: Expr) -> Affine | None:
    """The position that an expression counts from the start, if it is negative from the end."""
    match node:
        case Apply(op=op, args=(Apply(op=less, args=(Index() as one, zero)), Index(), Index() as other)):
            is_one = op is OPS["where"] and less is OPS["less"] and one == other and zero == ZERO
            return one.value if is_one else None
        case _:
            return None


class Ends:
    """A loop without loops in it. `values` and `numbers` are what its body defines and binds that goes along
    with it, written out; `told` are the positions and what is tested that do, each of which must not be
    negative; `exact` are the sums and products that go along too and that tests keep from wrapping around,
    `asked` these tests, by identity."""

    def __init__(self, loop: For, ranges: Ranges) -> None:
        self.loop = loop
        self.ranges = ranges
        self.changes = Changes.by(loop)
        self.values: dict[Variable, Expr] = {}
        self.numbers: dict[Symbol, Expr] = {}
        self.told: list[Affine] = []
        self.exact: set[Expr] = set()
        self.asked: dict[int, Expr] = {}

    @staticmethod
    def of(loop: For, ranges: Ranges) -> Ends | None:
        """None where nothing would be gained, or the loop is too long to be written twice."""
        few = loop.trips is not None and loop.trips < FEWEST
        if loop.kind is not LoopKind.SEQUENTIAL or abs(loop.step) != 1 or few:
            return None
        if weight(loop.body) > MOST_TESTS * HEAVY:
            return None
        if any(isinstance(stmt, (For, While)) for stmt in walk_statements(loop.body)):
            return None
        ends = Ends(loop, ranges)
        ends.collect()
        return ends if ends.told and weight(ends.straight()) <= HEAVY else None

    def collect(self) -> None:
        updated = locals_updated(walk_statements(self.loop.body))
        tests: list[Affine] = []
        for stmt in self.loop.body:
            for node in nodes_in((stmt,)):
                place = position(node)
                if place is not None and place not in self.told and self.goes_along(place):
                    self.told.append(place)
            match stmt:
                case Define(variable=variable, value=value) if variable not in updated:
                    value = written_out(value, self.values)
                    if self.pace(value) is not None or value in self.exact:
                        self.values[variable] = value
                case Bind(symbol=symbol, value=value):
                    value = written_out(value, self.values)
                    if self.pace(value) is not None or value in self.exact:
                        self.numbers[symbol] = value
                case Raise(condition=condition) if (number := tested(condition)) is not None:
                    tests.append(number)
                case Raise(condition=Apply(op=op, args=(holds,))) if op is OPS["logical_not"]:
                    self.ask(stmt, written_out(holds, self.values))
                case _:
                    pass
        self.told += [number for number in tests if not self.is_told(number) and self.goes_along(number)]

    def ask(self, stmt: Raise, holds: Expr) -> None:
        """Note a test that holds in each step if it does in the first and the last: of a sum of what goes
        along without wrapping around, or of its product with what stays, which is largest in one of these."""
        total, product = staying(holds), multiplied(holds)
        result = total or product
        if result is None or self.pace(holds) == 0:
            return
        moving = [arg for arg in result.args if self.pace(arg) != 0]
        if all(map(self.is_line, moving)) and (total is not None or len(moving) == 1):
            self.exact.add(result)
            self.asked[id(stmt)] = holds

    def is_line(self, value: Expr) -> bool:
        """Does a value go along with the loop by the same amount in each step, and never wrap around?"""
        return value in self.exact or (isinstance(value, Index) and self.pace(value) is not None)

    def goes_along(self, number: Affine) -> bool:
        """Is it between its first and its last value in each step?"""
        if any(abs(factor) != 1 and symbol in self.numbers for factor, symbol in number.terms):
            return False
        values = [self.numbers.get(symbol, Index(Affine.of(symbol))) for symbol in number.symbols]
        return self.is_even(number) or all(self.pace(value) == 0 or self.is_line(value) for value in values)

    def is_told(self, number: Affine) -> bool:
        """Is it negative only where one of those is that are told?"""
        apart = (number - one for one in self.told)
        return any(rest.is_constant and rest.constant >= 0 for rest in apart)

    def is_even(self, number: Affine) -> bool:
        """Is it the same in each step, or one more in each, or one less?"""
        pace = 0
        for factor, symbol in number.terms:
            value = self.numbers.get(symbol, Index(Affine.of(symbol)))
            own = self.pace(value)
            if own is None or (abs(factor) != 1 and symbol in self.changes.symbols):
                return False
            pace += own * factor
        return abs(pace) <= 1

    def pace(self, value: Expr) -> int | None:
        """By how much a value grows with the loop's symbol; None where that is not the same in each step."""
        match value:
            case Index(value=number) if self.changes.symbols & set(number.symbols) <= {self.loop.symbol}:
                return number.coefficient(self.loop.symbol)
            case Apply(op=op, args=(one, other), dtype=dtype) if dtype is I64 and op.name in PACES:
                first, second = self.pace(one), self.pace(other)
                if first is None or second is None:
                    return None
                return first + PACES[op.name] * second
            case _:
                return 0 if all(self.changes.leave(node, self.ranges) for node in walk(value)) else None

    def in_two_forms(self) -> tuple[Stmt, ...]:
        """The loop without tests, unless one of the numbers is negative in the first step or in the last."""
        last = self.loop.hi - self.loop.step
        each = {self.at(number, place): None for number in self.told for place in (self.loop.lo, last)}
        unknown = [number for number in each if not self.is_never_negative(number)]
        tests = [are_negative(unknown)] if unknown else []
        for holds in dict.fromkeys(self.asked.values()):
            ends = (substitute(holds, {self.loop.symbol: place}) for place in (self.loop.lo, last))
            tests += [Apply(OPS["logical_not"], (holds,), BOOL) for holds in ends]
        instead = self.straight()
        return (If(reduce(either, tests), (self.loop,), instead),) if tests else instead

    def straight(self) -> tuple[Stmt, ...]:
        return straight(self.loop, self.passes, self.told.__contains__)

    def at(self, number: Affine, place: Affine) -> Expr:
        """What a number is in the step in which the loop's symbol is this."""
        there = {self.loop.symbol: place}
        apart = [(factor, symbol) for factor, symbol in number.terms if symbol in self.numbers]
        rest = sum((Affine.of(symbol) * -factor for factor, symbol in apart), number)
        total: Expr = Index(rest.substitute(there))
        for factor, symbol in apart:
            op = OPS["add" if factor > 0 else "subtract"]
            total = Apply(op, (total, substitute(self.numbers[symbol], there)), I64)
        return total

    def is_never_negative(self, number: Expr) -> bool:
        known = number.value.bounds(self.ranges) if isinstance(number, Index) else None
        return known is not None and known[0] >= 0

    def passes(self, stmt: Stmt) -> bool:
        number = tested(stmt.condition) if isinstance(stmt, Raise) else None
        return id(stmt) in self.asked or (number is not None and self.is_told(number))
