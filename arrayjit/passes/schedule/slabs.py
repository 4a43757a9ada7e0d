"""Nests that go through memory together do so in slabs of rows, which threads share.

    for i in sequential(1, 601):                    for s in parallel(0, 2):
        b[i] = f(a[i - 1], a[i], a[i + 1])              for r in parallel(300*s + 1, 300*s + 3):
        a[i - 1] = f(b[i - 2], b[i - 1], b[i])              b[r] = f(a[r - 1], a[r], a[r + 1])
                                            ->          for i in sequential(300*s + 3, 300*s + 301):
                                                            b[i] = f(a[i - 1], a[i], a[i + 1])
                                                            a[i - 1] = f(b[i - 2], b[i - 1], b[i])
                                                    for s1 in parallel(0, 2):
                                                        for r1 in parallel(300*s1, 300*s1 + 2):
                                                            a[r1] = f(b[r1 - 1], b[r1], b[r1 + 1])

Where a slab begins, each nest leaves out the rows that need some which those before it have left out, or
that these still need as they are: what is left of a slab needs nothing of the one before. After all slabs the
rows between them are made, nest by nest. In each cell the same is computed from the same.

Threads that share each nest by itself wait for one another after each, and fetch every array again for each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain

from ...frozen import frozen
from ...ir.index import Affine, Symbol
from ...ir.loops import For, LoopKind, Place, PlaceKind, Stmt
from ...ir.tensor import Tensor
from ..analysis.access import Effects, Range
from ..analysis.carriers import carriers, upwards
from ..analysis.copies import copy_body, unless_once
from ..analysis.trips import enter
from .columns import in_common

__all__ = ["Rows", "fits", "in_slabs", "part", "span", "together"]

BETWEEN = 8
"""A slab has so many times the rows that are left out between all of them: these are made by one thread."""


@frozen
class Rows:
    """A nest that takes part: the statement, its loop over rows by the symbol that all of them share, what an
    iteration does, how many rows later than the first nest's it is done, and how many rows after a slab's
    first one are the first that need nothing of the slab before."""

    stmt: Stmt
    loop: For
    does: Effects
    behind: int = 0
    ahead: float = 0

    @property
    def is_long(self) -> bool:
        return self.loop.trips != 1

    @property
    def first(self) -> int:
        """When its first row is done."""
        return self.loop.lo.constant + self.behind

    @property
    def end(self) -> int:
        """When all are."""
        return self.loop.hi.constant + self.behind

    @property
    def left_out(self) -> float:
        """How many of its rows lie between two slabs."""
        return self.behind + self.ahead


def span(group: Iterable[Rows]) -> tuple[int, int]:
    """From when to when all nests over more than one row take part."""
    long = [one for one in group if one.is_long]
    return max((one.first for one in long), default=0), min((one.end for one in long), default=0)


def fits(group: Sequence[Rows], begin: int, end: int, slabs: int, placement: Mapping[Tensor, Place]) -> bool:
    """May so many threads share what all these nests do from one time to another, and is little left between
    their slabs? Memory that an iteration makes anew is nobody else's, and is left where it is."""
    between = slabs * max(one.left_out for one in group)
    if slabs < 2 or end - begin < slabs * max(between * BETWEEN, 1):
        return False
    touched = {storage for one in group for storage in (*one.does.reads, *one.does.writes)}
    places = (placement.get(storage) for storage in touched)
    return all(place is None or place.kind is PlaceKind.ARENA for place in places)


def in_slabs(
    group: Sequence[Rows], begin: int, end: int, slabs: int, ranges: dict[Symbol, Range]
) -> tuple[Stmt, ...]:
    """What all nests do from one time to another, in so many slabs; the last few times, which do not divide
    among them, come after."""
    height, left_out = (end - begin) // slabs, int(max(one.left_out for one in group))

    def each(count: str, part: Callable[[Affine], Iterable[Stmt]]) -> For:
        symbol = Symbol(count)
        slab = For(symbol, Affine.of(0), Affine.of(slabs), (), LoopKind.PARALLEL)
        enter(slab, ranges)
        return replace(slab, body=tuple(part(Affine.of(symbol) * height + begin)))

    def inside(start: Affine) -> Iterator[Stmt]:
        for one in group:
            yield from _rows(one, start + int(one.ahead), start + left_out - one.behind)
        yield from together(group, start + left_out, start + height, ranges)

    def between(start: Affine) -> Iterator[Stmt]:
        for one in group:
            yield from _rows(one, start - one.behind, start + int(one.ahead))

    done = each("slab", inside), *((each("between", between),) if left_out else ())
    return *done, *together(group, Affine.of(begin + slabs * height), Affine.of(end), ranges)


def together(
    group: Sequence[Rows], begin: Affine, end: Affine, ranges: dict[Symbol, Range]
) -> tuple[Stmt, ...]:
    """What all these nests do from one time to another, time by time; in any order, if no time takes what
    another one made."""
    row = Symbol(group[0].loop.symbol.hint)
    parts = (copy_body(one.loop.body, {one.loop.symbol: row - one.behind}, {}) for one in group)
    loop = For(row, begin, end, tuple(chain.from_iterable(parts)))
    if loop.trips == 0:
        return ()
    enter(loop, ranges)
    loop = replace(loop, body=in_common(loop.body, ranges))
    return unless_once(upwards(loop) if carriers(loop, ranges) == frozenset() else loop)


def part(rows: Rows, begin: int, end: int) -> tuple[Stmt, ...]:
    """What a nest does from one time to another, if anything."""
    lo, hi = max(begin, rows.first) - rows.behind, min(end, rows.end) - rows.behind
    return _rows(rows, Affine.of(lo), Affine.of(max(lo, hi)))


def _rows(rows: Rows, lo: Affine, hi: Affine) -> tuple[Stmt, ...]:
    """Some rows of a nest, if any."""
    loop, symbol = rows.loop, Symbol(rows.loop.symbol.hint)
    loop = replace(loop, symbol=symbol, lo=lo, hi=hi)
    if loop.trips == 0:
        return ()
    return unless_once(replace(loop, body=copy_body(loop.body, {rows.loop.symbol: Affine.of(symbol)}, {})))
