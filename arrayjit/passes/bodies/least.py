"""What floats are at least: exceptions that would need less are never raised.

    a = add(multiply(x, x), 1.0)
    r = sqrt(a)                                                     a = add(multiply(x, x), 1.0)
    raise_(not (not isnan(r) or isnan(a)), 'math domain error')  -> r = sqrt(a)
    raise_(not (r != 0.0), 'division by zero')                      y[i] = divide(y[i], r)
    y[i] = divide(y[i], r)

A square is no less than zero, an index no less than its range begins, and rounding keeps the order of
numbers: a sum is no less than the rounded sum of what its parts are at least. What is no number raises
nothing. A square root of what is not negative is finite where that is, and no number where that is none; an
integer as a float is whole and finite.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from ...ir.dtype import F64
from ...ir.expr import Apply, Cast, Const, Expr, Index, Local, Variable, dtype_of
from ...ir.index import Affine, Symbol
from ...ir.loops import For, Raise, Stmt, walk_statements
from ...ir.ops import OPS
from ...ir.walk import kept, rewrite_bodies
from ..analysis.values import definitions

__all__ = ["Floats", "without_less"]

DEEP = 12
"""So many operations are looked through."""

NOWHERE = -math.inf

ADD, MULTIPLY, DIVIDE, SQRT = OPS["add"], OPS["multiply"], OPS["divide"], OPS["sqrt"]
POWER, SQUARE, ABSOLUTE, LESS, WHERE = OPS["power"], OPS["square"], OPS["absolute"], OPS["less"], OPS["where"]
OR, NOT, NOT_EQUAL = OPS["logical_or"], OPS["logical_not"], OPS["not_equal"]
NAN, INFINITE, FINITE = OPS["isnan"], OPS["isinf"], OPS["isfinite"]
EQUAL, RINT = OPS["equal"], OPS["rint"]


def without_less(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """A body without the exceptions that floats would have to be less for than they are."""
    inside = list(walk_statements(body))
    if not any(isinstance(stmt, Raise) for stmt in inside):
        return body
    known = Floats.of(body)

    def visit(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        left = [stmt for stmt in body if not (isinstance(stmt, Raise) and known.is_never(stmt.condition))]
        return kept(body, [rewrite_bodies(stmt, visit) for stmt in left])

    return visit(body)


class Floats:
    """What follows from the values of locals that have one each, and from where loops begin."""

    def __init__(self, values: Mapping[Variable, Expr], begins: Mapping[Symbol, int]) -> None:
        self.values = values
        self.begins = begins

    @staticmethod
    def of(body: tuple[Stmt, ...]) -> Floats:
        """What follows from a body."""
        loops = (stmt for stmt in walk_statements(body) if isinstance(stmt, For) and stmt.step > 0)
        return Floats(
            {variable: stmt.value for variable, stmt in definitions(body).items()},
            {loop.symbol: loop.lo.offset for loop in loops if loop.lo.is_constant},
        )

    def value(self, expr: Expr) -> Expr:
        return self.values.get(expr.variable, expr) if isinstance(expr, Local) else expr

    def is_never(self, condition: Expr) -> bool:
        match self.value(condition):
            case Apply(op=op, args=(arg,)) if op is NOT:
                return self.is_always(arg)
            case _:
                return False

    def is_always(self, condition: Expr) -> bool:
        """Does one of several conditions hold, whatever the numbers are?"""
        ones = [self.question(one) for one in self.alternatives(condition)]
        numbers = {arg for op, arg in ones if op is NAN}
        return any(
            (op is NOT and arg in numbers)
            or (op is FINITE and arg in numbers and (INFINITE, arg) in ones)
            or (op is FINITE and self.is_finite(arg))
            or (op is NOT_EQUAL and self.least(arg) > 0)
            or (op is RINT and self.is_whole(arg))
            for op, arg in ones
        )

    def is_whole(self, number: Expr) -> bool:
        """Is it an integer, as a float64?"""
        match self.value(number):
            case Cast(arg=arg, dtype=dtype):
                return dtype is F64 and dtype_of(arg).is_integer
            case _:
                return False

    def is_finite(self, number: Expr) -> bool:
        match self.value(number):
            case Apply(op=op, args=(Const(value=-1), exponent)) if op is POWER:
                return self.is_whole(exponent)
            case _:
                return self.is_whole(number)

    def alternatives(self, condition: Expr) -> Iterable[Expr]:
        match self.value(condition):
            case Apply(op=op, args=(left, right)) if op is OR:
                yield from self.alternatives(left)
                yield from self.alternatives(right)
            case value:
                yield value

    def question(self, condition: Expr) -> tuple[object, Expr]:
        """What is asked of which number: NOT for whether it is one, RINT for whether it is whole."""
        match condition:
            case Apply(op=op, args=(arg,)) if op in (NAN, INFINITE, FINITE):
                return op, self.beneath(arg)
            case Apply(op=op, args=(inner,)) if op is NOT:
                asked, arg = self.question(self.value(inner))
                return (NOT, arg) if asked is NAN else (None, arg)
            case Apply(op=op, args=(arg, Const(value=zero))) if op is NOT_EQUAL and zero == 0:
                return op, arg
            case Apply(op=op, args=(arg, rounded)) if op is EQUAL and self.is_rounded(arg, rounded):
                return RINT, arg
            case _:
                return None, condition

    def is_rounded(self, number: Expr, rounded: Expr) -> bool:
        match self.value(rounded):
            case Apply(op=op, args=(arg,)):
                return op is RINT and arg == number
            case _:
                return False

    def beneath(self, number: Expr) -> Expr:
        """What a root was taken of, if that is not negative: both are finite or no numbers together."""
        match self.value(number):
            case Apply(op=op, args=(Local(variable=variable) as arg,)) if op is SQRT:
                return arg if variable in self.values and self.least(arg) >= 0 else number
            case _:
                return number

    def least(self, number: Expr, deep: int = DEEP) -> float:
        """What a float64 is at least, unless it is no number."""
        value = self.value(number)
        if isinstance(value, Const) and value.dtype is F64:
            return float(value.value) if value.value == value.value else NOWHERE
        if isinstance(value, Cast) and value.dtype is F64:
            whole = self.value(value.arg)
            return self.least_index(whole.value) if isinstance(whole, Index) else NOWHERE
        if not deep or not isinstance(value, Apply) or value.dtype is not F64:
            return NOWHERE
        match value:
            case Apply(op=op) if op in (SQUARE, ABSOLUTE):
                return 0.0
            case Apply(op=op, args=(left, right)) if op is MULTIPLY and left == right:
                return 0.0
            case Apply(op=op, args=(_, Const(value=exponent))) if op is POWER and exponent % 2 == 0:
                return 0.0
            case Apply(op=op, args=(test, then, otherwise)) if op is WHERE:
                least = self.least(then, deep - 1)
                is_bound = self.is_less(test, otherwise, self.value(then))
                return least if is_bound else min(least, self.least(otherwise, deep - 1))
            case Apply(op=op, args=args) if op in (ADD, MULTIPLY, DIVIDE, SQRT):
                return self.combined(value, [self.least(arg, deep - 1) for arg in args])
            case _:
                return NOWHERE

    def least_index(self, index: Affine) -> float:
        """What an index is at least."""
        least = float(index.offset)
        for factor, symbol in index.terms:
            last = None if symbol.upper is None else symbol.upper - 1
            end = self.begins.get(symbol, symbol.lower) if factor > 0 else last
            least += NOWHERE if end is None else factor * end
        return least

    def is_less(self, test: Expr, one: Expr, bound: Expr) -> bool:
        """Is it asked whether a number is less than a constant? What is none is less than nothing, so that
        another bound may be passed over."""
        is_known = isinstance(one, Local) and one.variable in self.values
        match self.value(test) if is_known else test:
            case Apply(op=op, args=(left, right)):
                return op is LESS and left == one and isinstance(bound, Const) and self.value(right) == bound
            case _:
                return False

    def combined(self, value: Apply, parts: list[float]) -> float:
        """What follows for a number from what its parts are at least."""
        if value.op is ADD:
            return sum(parts)
        if min(parts) < 0 or (value.op is DIVIDE and parts[1] == 0):
            return NOWHERE
        if value.op is DIVIDE:
            return 0.0
        return math.sqrt(parts[0]) if value.op is SQRT else parts[0] * parts[1]
