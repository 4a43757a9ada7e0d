"""Where the extremes stand that a loop finds: looked for once they are known.

    for k in sequential(0, 1000):                   s = m
        t = greater(x[k], m)                        for k in parallel(0, 1000):
        p = where(t, k, p)                              m = reduce(maximum, m, x[k])
        m = where(t, x[k], m)           ->          f = 9223372036854775807
                                                    for k in parallel(0, 1000):
                                                        f = reduce(minimum, f, where(x[k] == m, k, ...))
                                                    p = where(m != s, f, p)

The first of the greatest is the one that was greater than all before it. If it is no greater than what the
loop started with, nothing was chosen.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ..frozen import frozen
from ..ir.dtype import BOOL, I64
from ..ir.expr import Apply, Const, Expr, Index, Local, Variable
from ..ir.index import Affine, Symbol
from ..ir.loops import Comment, Define, For, LoopKind, Stmt, Update
from ..ir.ops import OPS
from ..ir.walk import expressions, substitute, variables, walk
from .foremost import LONG, written_out

__all__ = ["Sought", "places_apart"]

WHERE = OPS["where"]
STRICT = OPS["greater"], OPS["less"]
NOWHERE = Const(2**63 - 1, I64)


@frozen
class Sought:
    """A local `place` that has the `number` of the iteration whose `cell` became the `extreme`."""

    place: Variable
    extreme: Variable
    cell: Expr
    number: Affine

    def search(self, loop: For, start: Variable) -> Iterator[Stmt]:
        """What finds the place in the range of a loop, before which the extreme was `start`."""
        symbol, first = Symbol(loop.symbol.hint), Variable("first", I64)
        there = {loop.symbol: Affine.of(symbol)}
        is_it = Apply(OPS["equal"], (substitute(self.cell, there), Local(self.extreme)), BOOL)
        number = Index(self.number.substitute(there))
        step = Update(first, Apply(WHERE, (is_it, number, NOWHERE), I64), OPS["minimum"])
        lo, hi = (loop.lo, loop.hi) if loop.step > 0 else (loop.hi + 1, loop.lo + 1)
        is_new = Apply(OPS["not_equal"], (Local(self.extreme), Local(start)), BOOL)
        yield Define(first, NOWHERE)
        yield For(symbol, lo, hi, (step,), LoopKind.PARALLEL)
        yield Update(self.place, Apply(WHERE, (is_new, Local(first), Local(self.place)), I64))


def places_apart(body: tuple[Stmt, ...], loop: For) -> tuple[tuple[Stmt, ...], list[Sought]]:
    """A loop's body without the places of extremes, and these; the body itself where it does more."""
    updates = {stmt.variable: stmt for stmt in body if isinstance(stmt, Update)}
    known = _written_out(body)
    if known is None or abs(loop.step) != 1:
        return body, []
    found = [
        one
        for place, update in updates.items()
        for one in (_sought(place, written_out(update.value, known), updates, known),)
        if one is not None and one.number.coefficient(loop.symbol) * loop.step > 0
    ]
    for one in found:
        dropped = {one.place} | {name for name, value in known.items() if one.place in variables(value)}
        rest = tuple(stmt for stmt in body if _variable(stmt) not in dropped)
        if any(name in dropped for stmt in rest for value in expressions(stmt) for name in variables(value)):
            return body, []
        body = rest
    return body, found


def _written_out(body: Sequence[Stmt]) -> Mapping[Variable, Expr] | None:
    """What a body defines, over what it starts with; None if anything in it is read after it was changed."""
    known: dict[Variable, Expr] = {}
    changed: set[Variable] = set()
    for stmt in body:
        match stmt:
            case Define(variable=variable, value=value):
                known[variable] = written_out(value, known)
                if sum(1 for _ in walk(known[variable])) > LONG:
                    return None
            case Update(variable=variable, accum=None, value=value) if variable not in (*changed, *known):
                pass
            case Comment():
                continue
            case _:
                return None
        if not changed.isdisjoint(variables(value)):
            return None
        if isinstance(stmt, Update):
            changed.add(stmt.variable)
    return known


def _sought(
    place: Variable, value: Expr, updates: Mapping[Variable, Update], known: Mapping[Variable, Expr]
) -> Sought | None:
    """What a local is, by the value that it gets."""
    match value:
        case Apply(
            op=op, args=(Apply(op=comparison, args=pair) as condition, Index(value=number), Local() as old)
        ) if op is WHERE and comparison in STRICT and old == Local(place):
            for extreme, cell in (pair, pair[::-1]):
                if not isinstance(extreme, Local) or extreme.variable not in updates or extreme == old:
                    continue
                variable = extreme.variable
                chosen = Apply(WHERE, (condition, cell, extreme), variable.dtype)
                is_kept = written_out(updates[variable].value, known) == chosen
                if is_kept and variable.dtype.is_integer and not set(variables(cell)) & set(updates):
                    return Sought(place, variable, cell, number)
            return None
        case _:
            return None


def _variable(stmt: Stmt) -> Variable | None:
    return stmt.variable if isinstance(stmt, (Define, Update)) else None
