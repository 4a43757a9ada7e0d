"""endwise: a position that counts from the end of its axis is seldom, and found by the test of its exception.

    for i in sequential(0, 500):                    for i in sequential(0, 500):
        n = p[i]                                        n = p[i]
        raise_(u64(n + 9) > 17, 'IndexError', ...)      t = n
        m = where(n < 0, n + 9, n)              ->      if seldom(u64(n) > 8):
        h[m] = add(h[m], 1)                                 raise_(u64(n + 9) > 17, 'IndexError', ...)
                                                            t = n + 9
                                                        m = t
                                                        h[m] = add(h[m], 1)

Two tests and a choice, which the address waits for, become one branch that is foreseen: on Zen 5 steps that
count take 0.55 to 0.7 of the time, sorts by counting 0.7, lookups in lookups 0.75.

Where negative positions come without order (-1 for a neighbour that is missing), branches are guessed wrong,
and steps take up to eight times as long. So of positions that lie in memory as a loop goes along, the first
256 are looked at: if more than one in 32 is negative, the loop of before runs.

    few = 0
    for i in vector(0, 256, lanes=8):
        few = reduce(add, few, p[i] < 0)
    if few > 8:
        (the loop of before)
    else:
        (that loop with branches)
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import field, replace

from ...frozen import frozen, slotted
from ...ir.code import Caps
from ...ir.conditions import compare
from ...ir.dtype import I64
from ...ir.expr import Apply, Cast, Const, Expr, Index, Local, Variable, dtype_of
from ...ir.index import Affine, Symbol
from ...ir.loops import (
    Bind,
    Define,
    For,
    If,
    Kernel,
    LoopKind,
    Raise,
    Stmt,
    Update,
    nested,
    walk_statements,
    written_in,
)
from ...ir.ops import OPS
from ...ir.walk import kept, rewrite_bodies
from ..analysis.access import Range
from ..analysis.copies import copy_body
from ..analysis.inside import exists
from ..analysis.positions import ZERO, Positions, outside, tested_outside
from ..analysis.repeats import HEAVY, weight
from ..analysis.trips import enter

__all__ = ["endwise"]

LOOKED_AT = 256
"""So many positions tell of the others."""

FEW = 32
"""Of so many one may be negative."""

LANES = 8


def endwise(kernel: Kernel, caps: Caps) -> Kernel:
    """Every such position, in loops whose iterations go one by one."""
    return kernel.with_body(_outermost(kernel.body))


def _outermost(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """A body, of which loops stand by themselves, with branches where these are foreseen."""
    return kept(body, [new for stmt in body for new in _foreseen(stmt)])


def _foreseen(stmt: Stmt) -> Iterator[Stmt]:
    if not isinstance(stmt, For):
        yield rewrite_bodies(stmt, _outermost)
        return
    nest = _Nest()
    (new,) = nest.body((stmt,))
    written = written_in(walk_statements((stmt,)))
    found = [
        (each.value, *first)
        for each in dict.fromkeys(nest.positions)
        if each.load.tensor.storage not in written and (first := _first(each)) is not None
    ]
    if not found:
        yield new
    elif weight(stmt.body) > HEAVY:
        yield stmt
    else:
        few, looked_at = Variable("few", I64), sum(count for _, _, count in found)
        yield Define(few, ZERO)
        for one, loops, _ in found:
            negative = compare("less", one, Const(0, dtype_of(one)))
            update = Update(few, Cast(negative, I64), OPS["add"])
            yield from copy_body(nested(loops, (update,)), {}, {})
        many = compare("greater", Local(few), Const(looked_at // FEW, I64))
        yield If(many, copy_body((stmt,), {}, {}), (new,))


def _first(positions: Positions) -> tuple[tuple[For, ...], int] | None:
    """Loops over the first of the positions, and how many these are; None where only the run knows which are
    there, or few are."""
    room, loops = LOOKED_AT, list[For]()
    own, load = positions.own(), positions.load
    ranges: dict[Symbol, Range] = {}
    for loop in own:
        if loop.bound_by or not loop.trips:
            return None
        enter(loop, ranges)
    is_along = all(ranges.keys() >= set(at.symbols) for at in load.index)
    if not is_along or not exists(load.tensor, load.index, ranges):
        return None
    for loop in reversed(own):
        trips = min(loop.trips or 0, room)
        loops.append(replace(loop, hi=loop.lo + trips * loop.step))
        room //= trips
    count = math.prod(loop.trips or 0 for loop in loops)
    if count < FEW:
        return None
    innermost, *others = loops
    if innermost.step == 1:
        innermost = replace(innermost, kind=LoopKind.VECTOR, lanes=LANES)
    return (*reversed(others), innermost), count


@slotted
class _Nest:
    """A nest on the way to branches, and the positions of which it knows where they lie in memory."""

    around: tuple[For, ...] = ()
    positions: list[Positions] = field(default_factory=list)

    def body(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        out: list[tuple[Stmt, ...]] = []
        tested: dict[_Position, int] = {}
        values: dict[Symbol, Expr] = {}
        for stmt in body:
            new = stmt
            match stmt:
                case For(kind=LoopKind.VECTOR | LoopKind.LOCKSTEP):
                    pass
                case For():
                    self.around = (*self.around, stmt)
                    new = rewrite_bodies(stmt, self.body)
                    self.around = self.around[:-1]
                case Raise() if (position := _Position.tested(stmt)) is not None:
                    tested[position] = len(out)
                case Bind(value=value) | Define(value=value):
                    if isinstance(stmt, Bind):
                        values[stmt.symbol] = value
                    chosen = _Position.chosen(value)
                    at = None if chosen is None else tested.pop(chosen, None)
                    if chosen is not None and at is not None:
                        place = Variable("t", I64)
                        out[at] = chosen.told(place, out[at])
                        new = replace(stmt, value=Local(place))
                        self.note(chosen.number, values)
                case _:
                    new = rewrite_bodies(stmt, self.body)
            out.append((new,))
        return kept(body, [stmt for stmts in out for stmt in stmts])

    def note(self, number: Affine, values: Mapping[Symbol, Expr]) -> None:
        """A position with branches."""
        value = None if number.symbol is None else values.get(number.symbol)
        found = None if value is None else Positions.of(value, self.around)
        if found is not None:
            self.positions.append(found)


@frozen
class _Position:
    """A number that counts from the end of an axis of so many cells where it is negative."""

    number: Affine
    extent: int

    @staticmethod
    def tested(stmt: Raise) -> _Position | None:
        """What is raised on if it finds no cell."""
        match tested_outside(stmt.condition):
            case (counted, most) if most % 2:
                extent = (most + 1) // 2
                return _Position(counted - extent, extent)
            case _:
                return None

    @staticmethod
    def chosen(value: Expr) -> _Position | None:
        """What a value counts to from the start of the axis."""
        match value:
            case Apply(
                op=op, args=(Apply(op=is_less, args=(first, zero)), Index(value=counted), Index(value=number))
            ) if op is OPS["where"] and is_less is OPS["less"]:
                extent = counted - number
                is_one = (first, zero) == (Index(number), ZERO) and extent.is_constant
                return _Position(number, extent.offset) if is_one else None
            case _:
                return None

    def told(self, place: Variable, raised: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        """Makes `place` the position from the start, after the exception that it may be raised with."""
        counted = Update(place, Index(self.number + self.extent))
        seldom = If(outside(self.number, self.extent - 1), (*raised, counted), seldom=True)
        return Define(place, Index(self.number)), seldom
