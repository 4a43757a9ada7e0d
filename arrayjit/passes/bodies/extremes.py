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

    for k in sequential(0, 1000):                   s = m
        m = where(greater(x[k], m), x[k], m)        m = nan
                                                    for k in parallel(0, 1000):
                                        ->              m = reduce(fmax, m, x[k])
                                                    z = m
                                                    m = where(greater(z, s), z, s)
                                                    if seldom(z == 0.0 and z >= s):
                                                        m = s
                                                        for k in sequential(0, 1000):
                                                            m = where(greater(x[k], m), x[k], m)

Of equal floats only zeros differ, by their signs: if an extreme is a zero, the old loop says which. What is
no number is never chosen, and what started as none stays.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce

from ...frozen import frozen
from ...ir.conditions import both, compare, either, one_of
from ...ir.dtype import BOOL, I64
from ...ir.expr import Apply, Const, Expr, Index, Local, Variable, constant
from ...ir.index import Affine, Symbol
from ...ir.loops import Comment, Define, For, If, LoopKind, Stmt, Store, Update, walk_statements
from ...ir.ops import OPS, Op
from ...ir.walk import expressions, locals_defined, rewrite_bodies, substitute, variables, walk
from ..analysis.copies import copy_body
from ..analysis.values import LONG, written_out

__all__ = ["EXTREMES", "Sought", "Zeros", "places_apart"]

EXTREMES = OPS["fmax"], OPS["fmin"]
"""By which floats are accumulated: the greatest and the least, whatever is no number left out."""

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
        is_it = compare("equal", substitute(self.cell, there), Local(self.extreme))
        number = Index(self.number.substitute(there))
        step = Update(first, one_of(is_it, number, NOWHERE), OPS["minimum"])
        lo, hi = (loop.lo, loop.hi) if loop.step > 0 else (loop.hi + 1, loop.lo + 1)
        pair = Local(self.extreme), Local(start)
        is_new: Expr = Apply(OPS["not_equal"], pair, BOOL)
        if not start.dtype.is_integer:
            is_new = either(*(Apply(op, pair, BOOL) for op in STRICT))
        yield Define(first, NOWHERE)
        yield For(symbol, lo, hi, (step,), LoopKind.PARALLEL)
        yield Update(self.place, one_of(is_new, Local(first), Local(self.place)))


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
    left = body
    for one in found:
        dropped = {one.place} | {name for name, value in known.items() if one.place in variables(value)}
        left = tuple(stmt for stmt in left if _variable(stmt) not in dropped)
        if any(name in dropped for stmt in left for value in expressions(stmt) for name in variables(value)):
            return body, []
    return left, found


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
                chosen = one_of(condition, cell, extreme)
                is_kept = written_out(updates[variable].value, known) == chosen
                if is_kept and not set(variables(cell)) & set(updates):
                    return Sought(place, variable, cell, number)
            return None
        case _:
            return None


def _variable(stmt: Stmt) -> Variable | None:
    return stmt.variable if isinstance(stmt, (Define, Update)) else None


@frozen
class Zeros:
    """A loop that finds extremes of floats by `ops`, each with what it `started` with: `body` is what it does
    in order to find them."""

    loop: For
    body: tuple[Stmt, ...]
    ops: Mapping[Variable, Op]
    started: Mapping[Variable, Variable]

    @staticmethod
    def of(loop: For, body: tuple[Stmt, ...], ops: Mapping[Variable, Op]) -> Zeros | None:
        """None of a loop without any."""
        started = {total: Variable("start", total.dtype) for total in ops if total.dtype.is_inexact}
        return Zeros(loop, body, ops, started) if started else None

    @property
    def can_be_looked_at(self) -> bool:
        """Does the loop do nothing that it cannot do twice?"""
        return not any(isinstance(stmt, Store) for stmt in walk_statements(self.body))

    def before(self) -> Iterator[Stmt]:
        """What stands before the loop that finds them in any order."""
        for extreme, start in self.started.items():
            yield Define(start, Local(extreme))
            yield Update(extreme, constant(float("nan"), extreme.dtype))

    def after(self) -> Iterator[Stmt]:
        """What stands after it."""
        conditions: list[Expr] = []
        for extreme, start in self.started.items():
            found, is_greatest = Variable("found", extreme.dtype), self.ops[extreme] is EXTREMES[0]
            pair = Local(found), Local(start)
            beyond, not_before = ("greater", "greater_equal") if is_greatest else ("less", "less_equal")
            yield Define(found, Local(extreme))
            yield Update(extreme, one_of(compare(beyond, *pair), *pair))
            is_zero = compare("equal", Local(found), constant(0, extreme.dtype))
            conditions.append(both(is_zero, compare(not_before, *pair)))
        symbol = Symbol(self.loop.symbol.hint)
        body = copy_body(self._alone(self.body), {self.loop.symbol: Affine.of(symbol)}, {})
        again = replace(self.loop, symbol=symbol, body=body)
        starts = (Update(extreme, Local(start)) for extreme, start in self.started.items())
        yield If(reduce(either, conditions), (*starts, again), seldom=True)

    def _alone(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        """A body that accumulates nothing else."""
        made = locals_defined(walk_statements(self.body))
        wanted = made | set(self.started)
        left = (stmt for stmt in body if not isinstance(stmt, Update) or stmt.variable in wanted)
        return tuple(rewrite_bodies(stmt, self._alone) for stmt in left)
