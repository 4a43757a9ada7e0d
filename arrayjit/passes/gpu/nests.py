"""Nests of independent loops as one loop, for hardware that takes thousands of iterations at once.

    for i in parallel(0, 62):                   for f in parallel(0, 3844):
        for j in parallel(0, 62):       ->          i = f // 62
            y[i, j] = ...                           y[i, f - 62 * i] = ...

The innermost loop is one along which memory lies. What stands between two loops is computed by every
iteration of the inner one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from ...frozen import frozen
from ...ir.dtype import I64
from ...ir.expr import Apply, Const, Index
from ...ir.index import Affine, Symbol
from ...ir.loops import (
    Bind,
    Define,
    Fill,
    For,
    If,
    LoopKind,
    Place,
    Stmt,
    Store,
    Update,
    While,
    nested,
    walk_statements,
)
from ...ir.ops import OPS
from ...ir.tensor import Tensor
from ...ir.walk import (
    expressions,
    locals_defined,
    locals_read,
    outer_updates,
    storages_read,
    substitute_statements,
)
from ..analysis.access import Ranges
from ..analysis.strides import affine_accesses, stride
from ..analysis.trips import about
from ..analysis.work import UNKNOWN_TRIPS

__all__ = ["Grids", "Nest", "accumulated", "contiguous", "flat", "nest_of", "power_of_two", "width"]


@frozen
class Nest:
    """Loops whose iterations are independent, outermost first, and what each point of them does."""

    loops: tuple[For, ...]
    body: tuple[Stmt, ...]

    def points(self, ranges: Ranges) -> int:
        """About how many iterations there are."""
        total = 1
        for loop in self.loops:
            total *= _about(loop, ranges)
        return total


@frozen
class Grids:
    """Launches that do what a nest does, where lives what they need for it, and why it is done so."""

    loops: tuple[For, ...]
    placement: Mapping[Tensor, Place]
    reason: str


def nest_of(loop: For) -> Nest:
    """The nest that starts with `loop`, whose iterations are independent but for sums that they all add
    to."""
    loops, body, between = [loop], loop.body, list[Stmt]()
    while body and isinstance(body[-1], For) and _joins(loops, body[:-1], body[-1]):
        inner = body[-1]
        loops.append(inner)
        between.extend(body[:-1])
        body = inner.body
    return Nest(tuple(loops), (*between, *body))


def _joins(outer: Sequence[For], before: Sequence[Stmt], inner: For) -> bool:
    """May an inner loop be taken together with those around it?"""
    if inner.kind is not LoopKind.PARALLEL or inner.step != 1 or outer[-1].step != 1:
        return False
    if any(loop.symbol in inner.bound_by for loop in outer):
        return False
    if not all(isinstance(stmt, Define) for stmt in before):
        return False
    made = locals_defined(before)
    read = {storage for stmt in before for storage in storages_read(expressions(stmt))}
    return not any(
        (isinstance(stmt, Update) and stmt.variable in made)
        or (isinstance(stmt, (Store, Fill)) and stmt.tensor.storage in read)
        for stmt in walk_statements(inner.body)
    )


def accumulated(loop: For) -> tuple[Update, ...] | None:
    """The updates of variables of outside; None if it does more with them than to add up each by one op."""
    inside = list(walk_statements(loop.body))
    updates = tuple(outer_updates(inside))
    variables = {update.variable for update in updates}
    ops = {(update.variable, update.accum) for update in updates}
    if any(update.accum is None for update in updates) or len(ops) > len(variables):
        return None
    return updates if variables.isdisjoint(locals_read(inside)) else None


def contiguous(body: tuple[Stmt, ...], symbol: Symbol) -> int:
    """How many accesses of a body move by one cell when the symbol grows by one; a store counts four
    times."""
    return sum(1 + 3 * is_store for tensor, index, is_store in affine_accesses(body)
               if stride(tensor, index, symbol) in (1, -1))  # fmt: skip


def power_of_two(count: int) -> int:
    """The least one that is no less."""
    return 1 << max(count - 1, 0).bit_length()


def flat(nest: Nest) -> For:
    """The nest as one loop, if only the outermost loop's extent is unknown; else its outermost loop with the
    rest inside."""
    loops = _ordered(nest)
    if loops is None:
        return _nested(nest)
    if len(loops) == 1:
        return replace(loops[0], body=nest.body, kind=LoopKind.PARALLEL)
    counts = [loop.trips for loop in loops[1:]]
    inner = 1
    for count in counts:
        assert count is not None
        inner *= count
    total = (loops[0].hi - loops[0].lo) * inner
    symbol = Symbol("f", lower=0, upper=total.offset if total.is_constant else None)
    rest = Affine.of(symbol)
    binds: list[Stmt] = []
    values: dict[Symbol, Affine] = {}
    for loop, count in zip(loops[:-1], counts, strict=True):
        number = Symbol(loop.symbol.hint, lower=0, upper=loop.trips)
        binds.append(Bind(number, Apply(OPS["raw_divide"], (Index(rest), Const(inner, I64)), I64)))
        rest = rest - Affine.of(number) * inner
        values[loop.symbol] = loop.lo + number
        assert count is not None
        inner //= count
    values[loops[-1].symbol] = loops[-1].lo + rest
    body = (*binds, *substitute_statements(nest.body, values))
    return For(symbol, Affine.of(0), total, body, LoopKind.PARALLEL)


def _ordered(nest: Nest) -> tuple[For, ...] | None:
    """The loops with the one last along which most memory lies, and one of unknown extent first; None if more
    than one is unknown, or some do not run at all."""
    unknown = [loop for loop in nest.loops if loop.trips is None]
    known = [loop for loop in nest.loops if loop.trips is not None]
    if len(unknown) > 1 or any(loop.trips == 0 for loop in known):
        return None
    if len(known) > 1:
        scores = [contiguous(nest.body, loop.symbol) for loop in known]
        best = len(known) - 1 - scores[::-1].index(max(scores))
        known.append(known.pop(best))
    return (*unknown, *known)


def _nested(nest: Nest) -> For:
    outer, *others = nest.loops
    return replace(outer, body=nested(others, nest.body), kind=LoopKind.PARALLEL)


def width(body: Iterable[Stmt], ranges: Ranges) -> int:
    """About how many iterations of a body could run side by side, at its widest place."""
    return max((_width(stmt, ranges) for stmt in body), default=1)


def _width(stmt: Stmt, ranges: Ranges) -> int:
    match stmt:
        case For(kind=LoopKind.PARALLEL, body=body):
            return _about(stmt, ranges) * width(body, ranges)
        case For(body=body):
            return width(body, ranges)
        case Fill(tensor=tensor):
            total = 1
            for extent in tensor.shape:
                total *= extent.offset if extent.is_constant else UNKNOWN_TRIPS
            return total
        case If(body=body, orelse=orelse):
            return width((*body, *orelse), ranges)
        case While(test=test, body=body):
            return width((*test, *body), ranges)
        case _:
            return 1


def _about(loop: For, ranges: Ranges) -> int:
    count = about(loop, ranges)
    return UNKNOWN_TRIPS if count is None else max(count, 0)
