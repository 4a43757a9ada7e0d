"""Floats that count: what is added to them may as well be added up in an integer, in any order.

    n: f64 = f64(0.0)                               n: f64 = f64(0.0)
    for k in sequential(0, 1000):                   for k in sequential(0, 1000):
        t: bool = less[bool](x[k], y[k])                t: bool = less[bool](x[k], y[k])
        n = reduce(add, n, cast(t, f64))                m = reduce(add, m, cast(t, i64))
                                                    n = reduce(add, n, cast(m, f64))

A float64 holds every whole number up to 2**53, so that nothing is rounded on the way to a sum that surely
goes no further. It is no negative zero, for it does not begin with one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from ...ir.conditions import one_of
from ...ir.dtype import F64, I64
from ...ir.expr import Apply, Cast, Const, Expr, Load, Local, Variable, constant, dtype_of
from ...ir.index import Symbol
from ...ir.loops import Define, For, Stmt, Store, Update, walk_statements, written
from ...ir.ops import OPS
from ...ir.walk import locals_updated, rewrite_bodies, walk
from .access import Ranges, loop_range
from .spans import held

__all__ = ["counted", "stands_behind"]

EXACT = 2**53
"""All whole numbers up to here are float64s."""

ENDLESS = 2**52
"""No loop runs more often than this, even if nothing tells how often it does."""

ADD, WHERE = OPS["add"], OPS["where"]


NEAR = 16
"""What a total begins with stands at most so many statements before the loop."""


def stands_behind(body: tuple[Stmt, ...]) -> dict[Symbol, tuple[Stmt, ...]]:
    """The few statements before each loop, by its symbol."""
    found: dict[Symbol, tuple[Stmt, ...]] = {}

    def visit(inner: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        for at, stmt in enumerate(inner):
            if isinstance(stmt, For):
                found[stmt.symbol] = inner[max(0, at - NEAR) : at]
            rewrite_bodies(stmt, visit)
        return inner

    visit(body)
    return found


def counted(
    total: Variable, place: Load | Local, loop: For, before: Sequence[Stmt], ranges: Ranges
) -> tuple[Variable, For] | None:
    """An integer in which a loop accumulates what it adds to a float64, and the loop that does; None where
    that may not be a whole number, or not exact. What the float64 begins with is in a `place` after the
    statements `before` the loop."""
    start = _value_of(place, before)
    first = None if start is None or total.dtype is not F64 else _whole(start, _names(before), is_start=True)
    count = Variable(total.hint, I64)
    names = _names(loop.body)
    added = 0 if first is None else first[1]

    def steps(body: tuple[Stmt, ...], times: int) -> Iterator[Stmt]:
        nonlocal added
        for stmt in body:
            match stmt:
                case For():
                    yield replace(stmt, body=tuple(steps(stmt.body, times * _times(stmt, ranges))))
                case Update(variable=variable, value=value) if variable is total:
                    whole, largest = _whole(value, names) or (value, EXACT + 1)
                    added += times * largest
                    yield Update(count, whole, ADD)
                case _:
                    yield stmt

    found = replace(loop, body=tuple(steps(loop.body, _times(loop, ranges))))
    return (count, found) if first is not None and added <= EXACT else None


def _times(loop: For, ranges: Ranges) -> int:
    """How often a loop runs at most."""
    known = loop_range(loop.lo, loop.hi, loop.step, ranges)
    return ENDLESS if known is None else max(1, (known[1] - known[0]) // abs(loop.step) + 1)


def _value_of(place: Load | Local, before: Sequence[Stmt]) -> Expr | None:
    """What a local or a cell has after some statements; None where they do not tell."""
    for stmt in reversed(before):
        match stmt:
            case Define(variable=v, value=value) | Update(variable=v, value=value, accum=None):
                if place == Local(v):
                    return value
            case Store(tensor=tensor, index=index, value=value, accum=None):
                if place == Load(tensor, index):
                    return value
        inside = list(walk_statements((stmt,)))
        if isinstance(place, Local) and place.variable in locals_updated(inside):
            return None
        if isinstance(place, Load) and place.tensor.storage in map(written, inside):
            return None
    return None


def _names(body: Sequence[Stmt]) -> dict[Variable, Expr]:
    """What locals are whose values could be computed anywhere after them."""
    inside = list(walk_statements(tuple(body)))
    changed = locals_updated(inside)

    def may_change(node: Expr) -> bool:
        return isinstance(node, Load) or (isinstance(node, Local) and node.variable in changed)

    defined = {stmt.variable: stmt.value for stmt in inside if isinstance(stmt, Define)}
    return {
        variable: value
        for variable, value in defined.items()
        if variable not in changed and not any(map(may_change, walk(value)))
    }


def _whole(value: Expr, names: Mapping[Variable, Expr], is_start: bool = False) -> tuple[Expr, int] | None:
    """A float64 as an integer, and how far from zero that lies at most; None where it may be something else,
    or, of a start, a negative zero."""
    match value:
        case Const(value=float() as number) if number.is_integer():
            is_other = is_start and number == 0 and math.copysign(1.0, number) < 0
            return None if is_other or abs(number) > EXACT else (constant(int(number), I64), abs(int(number)))
        case Local(variable=variable) if variable in names:
            return _whole(names[variable], names, is_start)
        case Cast(arg=arg) if (span := held(dtype_of(arg))) is not None:
            return Cast(arg, I64), max(map(abs, span))
        case Apply(op=op, args=(condition, *sides)) if op is WHERE:
            found = [part for side in sides if (part := _whole(side, names, is_start)) is not None]
            if len(found) == len(sides):
                return one_of(condition, *(whole for whole, _ in found)), max(most for _, most in found)
        case Apply(op=op, args=terms) if op is ADD:
            found = [part for term in terms if (part := _whole(term, names, is_start)) is not None]
            if len(found) == len(terms):
                return Apply(ADD, tuple(whole for whole, _ in found), I64), sum(most for _, most in found)
        case _:
            pass
    return None
