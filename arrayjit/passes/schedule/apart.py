"""apart: what iterations find out by themselves is done before what they hand on to one another.

    for k in sequential(0, 1000):                   for k in parallel(0, 1000):
        p = 0.0                                         p = 0.0
        for j in sequential(0, 12):                     for j in sequential(0, 12):
            p = add(multiply(p, x[k]), c[j])                p = add(multiply(p, x[k]), c[j])
        s = add(s, p)                       ->          found[k] = p
                                                    for k in sequential(0, 1000):
                                                        p = found[k]
                                                        s = add(s, p)

Steps that wait for one another keep an iteration out of vectors, and what it adds to a total or compares with
the best so far keeps it from going beside others. By itself the first part goes in vectors of iterations, or
is shared by threads; the second takes what was found in the order of before, so that every bit is the same.
Long loops go block by block, whose numbers stay in a cache.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ...frozen import frozen
from ...ir.expr import Const, Expr, Index, Load, Local, Variable
from ...ir.index import Affine, Symbol
from ...ir.loops import (
    Bind,
    Comment,
    Define,
    For,
    LoopKind,
    Place,
    PlaceKind,
    Stmt,
    Store,
    Update,
    walk_statements,
    written,
)
from ...ir.tensor import Tensor
from ...ir.walk import locals_defined, locals_read, locals_updated
from ..analysis.access import Ranges, mentioned, reads
from ..analysis.copies import copy_body
from ..analysis.loopwise import Site, loopwise
from ..analysis.trips import about, blocks, lesser
from ..analysis.work import work

__all__ = ["apart"]

FEWEST = 16
"""So many iterations make vectors that are worth the memory between the two parts."""

BLOCK = 1 << 14
"""So many iterations go from one part to the other at once: a few such arrays stay in the second cache, and
threads have enough to share."""

MOST = 4
"""So many numbers of an iteration are kept at most."""

PLACE = Place(PlaceKind.ARENA, "what iterations found by themselves")

PLAIN = Bind, Comment, Define, For, Store, Update

ZERO = Affine.of(0)


@loopwise
def apart(loop: For, site: Site) -> Sequence[Stmt] | None:
    """Every such loop in two, unless threads or vectors can have a loop around it."""
    if loop.kind is not LoopKind.SEQUENTIAL:
        return (loop,)
    parts = _Parts.of(loop, site.ranges)
    if parts is None:
        return None
    rows = parts.rows()
    site.placement.update(dict.fromkeys(rows.values(), PLACE))
    names = " and ".join(variable.hint for variable in rows)
    site.notes.append(f"apart: iterations of {loop.symbol.hint} find {names} by themselves")
    return parts.in_turn(rows, site.ranges)


@frozen
class _Parts:
    """A loop whose iterations do `own` by themselves and `handed` one after the other; of their own they then
    need the numbers `found`."""

    loop: For
    own: tuple[Stmt, ...]
    handed: tuple[Stmt, ...]
    found: tuple[Variable, ...]

    @staticmethod
    def of(loop: For, ranges: Ranges) -> _Parts | None:
        """None where the first part is none, or gains nothing by going beside others."""
        many = about(loop, ranges)
        if loop.step != 1 or (many is not None and many < FEWEST) or not _may_wait(loop.body):
            return None
        if not all(isinstance(stmt, PLAIN) for stmt in walk_statements(loop.body)):
            return None
        own, handed = _divided(loop.body)
        if not _may_wait(own) or not _has_one_count(loop, own) or _work(handed, loop) > _work(own, loop):
            return None
        bound = {stmt.symbol for stmt in own if isinstance(stmt, Bind)}
        again, found = _needed(own, handed)
        handed = (*again, *handed)
        if not bound.isdisjoint(mentioned(walk_statements(handed))) or not 0 < len(found) <= MOST:
            return None
        return _Parts(loop, own, handed, found)

    def rows(self) -> dict[Variable, Tensor]:
        """The memory for what is found."""
        trips = self.loop.trips
        extent = Affine.of(BLOCK if trips is None else min(trips, BLOCK))
        return {one: Tensor(f"{one.hint}_found", (extent,), one.dtype) for one in self.found}

    def in_turn(self, rows: dict[Variable, Tensor], ranges: Ranges) -> tuple[Stmt, ...]:
        """Both parts, block by block if there may be several."""
        loop = self.loop
        if loop.trips is not None and loop.trips <= BLOCK:
            return self.both(rows, loop.lo, loop.hi)
        counted, whole = blocks(loop, BLOCK)
        block = Symbol("b")
        start = loop.lo + Affine.of(block) * BLOCK
        least, most = loop.lo.bounds(ranges), loop.hi.bounds(ranges)
        lower = None if least is None or most is None else min(least[0] + BLOCK, most[0])
        end = Symbol("end", lower=lower, upper=None if most is None else most[1] + 1)
        bind = Bind(end, lesser(loop.hi, start + BLOCK))
        body = (bind, *self.both(rows, start, Affine.of(end)))
        return *counted, For(block, ZERO, whole + 1, body)

    def both(self, rows: dict[Variable, Tensor], lo: Affine, hi: Affine) -> tuple[For, Stmt]:
        """The iterations from `lo` to `hi`, by themselves and then one after the other."""
        loop = self.loop
        at = (Affine.of(loop.symbol) - lo,)
        puts = (Store(row, at, Local(one)) for one, row in rows.items())
        takes = (Define(one, Load(row, at)) for one, row in rows.items())
        making = replace(loop, lo=lo, hi=hi, body=(*self.own, *puts), kind=LoopKind.PARALLEL)
        (rest,) = copy_body((replace(loop, lo=lo, hi=hi, body=(*takes, *self.handed)),), {}, {})
        return making, rest


def _may_wait(body: Sequence[Stmt]) -> bool:
    """Are there loops whose steps wait for one another?"""
    return any(
        isinstance(stmt, For)
        and stmt.kind is LoopKind.SEQUENTIAL
        and any(isinstance(step, Update) for step in stmt.body)
        for stmt in walk_statements(tuple(body))
    )


def _divided(body: tuple[Stmt, ...]) -> tuple[tuple[Stmt, ...], tuple[Stmt, ...]]:
    """What an iteration does by itself, and what reads or changes anything that outlives it."""
    inside = list(walk_statements(body))
    made = locals_defined(inside)
    changed = locals_updated(inside) - made
    stores = {tensor.storage for tensor in map(written, inside) if tensor is not None}
    bound: set[Symbol] = set()
    read: set[Variable] = set()
    own: list[Stmt] = []
    handed: list[Stmt] = []
    for stmt in body:
        within = list(walk_statements((stmt,)))
        uses = set(locals_read(within))
        updates = locals_updated(within)
        touched = {tensor.storage for each in within for tensor, _ in reads(each)}
        touched |= {tensor.storage for tensor in map(written, within) if tensor is not None}
        is_own = changed.isdisjoint(uses | updates) and read.isdisjoint(updates)
        if is_own and stores.isdisjoint(touched) and bound.isdisjoint(mentioned(within)):
            own.append(stmt)
            continue
        handed.append(stmt)
        read |= uses
        changed |= updates | locals_defined(within)
        bound |= {each.symbol for each in within if isinstance(each, Bind)}
    return tuple(own), tuple(handed)


def _needed(own: Sequence[Stmt], handed: Sequence[Stmt]) -> tuple[tuple[Define, ...], tuple[Variable, ...]]:
    """What the second part reads of the first: what it may read from memory again, and what must be kept."""
    inside = list(walk_statements(tuple(handed)))
    used = {*locals_read(inside), *locals_updated(inside)}
    updated = locals_updated(walk_statements(tuple(own)))
    needed = [stmt for stmt in own if isinstance(stmt, Define) and stmt.variable in used]
    again = tuple(stmt for stmt in needed if _is_at_hand(stmt.value) and stmt.variable not in updated)
    return again, tuple(stmt.variable for stmt in needed if stmt not in again)


def _is_at_hand(value: Expr) -> bool:
    return isinstance(value, (Const, Index, Load))


def _has_one_count(loop: For, own: Sequence[Stmt]) -> bool:
    """Do the loops of all iterations run equally often?"""
    inside = list(walk_statements(tuple(own)))
    moving = {loop.symbol, *(stmt.symbol for stmt in inside if isinstance(stmt, Bind))}
    loops = [stmt for stmt in inside if isinstance(stmt, For)]
    return all(moving.isdisjoint(each.bound_by) for each in loops)


def _work(body: tuple[Stmt, ...], loop: For) -> float:
    """What is known of it: numbers of the run count as one."""
    own = {stmt.symbol for stmt in walk_statements((loop,)) if isinstance(stmt, (Bind, For))}
    return sum(work(body, own, {}).values())
