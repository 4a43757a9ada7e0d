"""Totals of which each step is watched for 64 bits: whether they stay within these can be asked of the steps.

    for i in sequential(0, 1000):                              s = total[()]
        t = cast(x[i], i64)                                    fails = not (-2**62 <= s <= 2**62)
        raise_(not "total + t stays in 64 bits", ...)    ->    for i in sequential(0, 1000):
        total[()] = total[()] + t                                  t = cast(x[i], i64)
                                                                   raise_(not (-L <= t <= L), ...)
                                                                   s = reduce(add, s, t)
                                                               total[()] = s

A thousand steps of at most L = 2**62 / 1000 from a number of at most 2**62 do not leave 64 bits, whatever
their order. Where one is larger nothing is known: then the loop runs again as it was.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from functools import reduce

from ...frozen import frozen
from ...ir.conditions import compare, either
from ...ir.dtype import I64, named
from ...ir.expr import Apply, Cast, Expr, Load, Local, Variable, constant
from ...ir.loops import Define, For, Raise, Stmt, Store, Update, walk_statements
from ...ir.ops import OPS
from ...ir.walk import outer_updates
from ..analysis.access import Ranges
from .alarms import doubted
from .growth import staying
from .totals import Steps, in_locals, own_cells

__all__ = ["Watched", "watched"]

U64 = named("u64")
ADD, NOT = OPS["add"], OPS["logical_not"]

ROOM = 2**62
"""What a total may be at first, and what all of its steps may come to."""

MOST_STEPS = 2**31


@frozen
class Watched:
    """A loop that accumulates in other locals: what stands `before` and `after` it, and whether a total is
    too large from the start."""

    loop: For
    totals: frozenset[Variable]
    before: tuple[Stmt, ...]
    doubt: Expr
    after: tuple[Stmt, ...]


def watched(loop: For, ranges: Ranges) -> Watched | None:
    """The loop with its steps watched instead of its totals, if it watches some and all that it accumulates
    may be accumulated in any order."""
    inside = list(walk_statements(loop.body))
    if not any(isinstance(stmt, Raise) and _grown(stmt) is not None for stmt in inside):
        return None
    places: dict[Load | Local, Variable] = {
        cell: Variable(cell.tensor.label, cell.tensor.dtype) for cell in own_cells(loop, inside, ranges)
    }
    for variable in dict.fromkeys(update.variable for update in outer_updates(inside)):
        places[Local(variable)] = Variable(variable.hint, variable.dtype)
    body = tuple(in_locals(loop.body, places))
    doubts: list[Expr] = []
    for total in places.values():
        steps = Steps(total)
        body = steps.without_copies(body)
        without = tuple(_unwatched(body, total))
        is_watched = without != body
        found = steps.body(without)
        if found is None or (is_watched and steps.op is not ADD):
            return None
        body = found
        if is_watched:
            times = _times(replace(loop, body=body), total, ranges)
            if times is None or times > MOST_STEPS:
                return None
            body = _with_steps_watched(body, total, (ROOM - 1) // times)
            doubts.append(_beyond(Local(total), ROOM))
    if not doubts:
        return None
    return Watched(
        replace(loop, body=body),
        frozenset(places.values()),
        tuple(Define(total, place) for place, total in places.items()),
        reduce(either, doubts),
        tuple(_left(place, Local(total)) for place, total in places.items()),
    )


def _grown(stmt: Raise) -> Apply | None:
    """The sum that an exception is about: it left 64 bits."""
    match stmt.condition:
        case Apply(op=op, args=(holds,)) if op is NOT:
            return staying(holds)
        case _:
            return None


def _unwatched(body: Collection[Stmt], total: Variable) -> Iterator[Stmt]:
    """A body without the exceptions that are about a total's steps."""
    for stmt in body:
        match stmt:
            case For():
                inner = tuple(_unwatched(stmt.body, total))
                yield stmt if inner == stmt.body else replace(stmt, body=inner)
            case Raise() if (grown := _grown(stmt)) is not None and Local(total) in grown.args:
                pass
            case _:
                yield stmt


def _times(loop: For, total: Variable, ranges: Ranges) -> int | None:
    """How many steps a total takes at most; None where that is not known."""
    steps = 0
    for stmt in loop.body:
        match stmt:
            case For():
                inner = _times(stmt, total, ranges)
                if inner is None:
                    return None
                steps += inner
            case Update(variable=variable) if variable is total:
                steps += 1
            case _:
                pass
    if steps == 0 or loop.trips is not None:
        return steps * (loop.trips or 0)
    bounds = ((loop.hi - loop.lo) * (1 if loop.step > 0 else -1)).bounds(ranges)
    return None if bounds is None else steps * max(bounds[1], 0)


def _with_steps_watched(body: Collection[Stmt], total: Variable, most: int) -> tuple[Stmt, ...]:
    """A body that stops at a step of more than so much, and needs no other exceptions for floats that are
    like no int64: they become the smallest one."""
    integers = {stmt.variable: stmt.value for stmt in body if isinstance(stmt, Define)}
    out: list[Stmt] = []
    asked: set[Expr] = set()
    for stmt in body:
        match stmt:
            case For():
                out.append(replace(stmt, body=_with_steps_watched(stmt.body, total, most)))
            case Update(variable=variable, value=value) if variable is total:
                step = Variable("step", I64)
                out.append(Define(step, value))
                out.append(Raise(_beyond(Local(step), most), "OverflowError", "a step is large"))
                out.append(replace(stmt, value=Local(step)))
                match integers.get(value.variable, value) if isinstance(value, Local) else value:
                    case Cast(arg=number):
                        asked.add(number)
                    case _:
                        pass
            case _:
                out.append(stmt)
    return tuple(stmt for stmt in out if not (isinstance(stmt, Raise) and _doubted(stmt) in asked))


def _doubted(stmt: Raise) -> Expr | None:
    return doubted(stmt.condition, lambda value: value)


def _beyond(value: Expr, most: int) -> Expr:
    """Whether a number is further from zero than so much."""
    above = Cast(Apply(ADD, (value, constant(most, I64)), I64), U64)
    return compare("greater", above, constant(2 * most, U64))


def _left(place: Load | Local, total: Expr) -> Stmt:
    """The total where it was."""
    if isinstance(place, Local):
        return Update(place.variable, total)
    return Store(place.tensor, place.index, total)
