"""Columns in strips, so that threads may share what goes on in order from row to row.

    for k in sequential(1, 500):                 for strip in parallel(0, 3):
        for i in vector(0, 96, lanes=16):            for k in sequential(1, 500):
            c[k, i] = add(c[k - 1, i], x[k, i])          for i in vector(32*strip, 32*strip + 32, lanes=16):
                                                             c[k, i] = add(c[k - 1, i], x[k, i])

No column needs anything of another one, so each may go through all rows before the next one begins. Every
cell is computed by the same operations in the same order.
"""

from __future__ import annotations

from dataclasses import replace

from ...ir.dtype import I64
from ...ir.expr import Const
from ...ir.index import Affine, Symbol
from ...ir.loops import Bind, For, LoopKind, Stmt, Store, nested, walk_statements
from ..analysis.access import Range, Ranges, effects
from ..analysis.carriers import disturbed
from ..analysis.trips import enter, lesser

__all__ = ["strips_of"]

STRIPS = 2
"""So many strips are made for each thread, or more, so that one may help another."""

SHORT = 2048
"""Bytes of a row of a strip: where sums would read fewer, there is one for each thread, of twice as many."""


def strips_of(loop: For, threads: int, most_bytes: int, ranges: Ranges) -> For | None:
    """A loop in order around a loop over columns, as strips of columns for so many threads, which need
    nothing of one another and of which a row has so many bytes at most; None where that is not so, or there
    are too few columns."""
    nest = _nest(loop)
    columns = nest[-1]
    if columns.kind is not LoopKind.VECTOR or columns.trips is None or not columns.lo.is_constant:
        return None
    vectors = columns.trips // columns.lanes
    if vectors < 2 or not _are_alone(nest, ranges):
        return None
    stores = [stmt for stmt in walk_statements(columns.body) if isinstance(stmt, Store)]
    itemsize = max((stmt.tensor.dtype.itemsize for stmt in stores), default=1)
    rows = [outer.symbol for outer in nest[:-1]]
    are_sums = not any(at.coefficient(row) for stmt in stores for at in stmt.index for row in rows)
    width = vectors // (STRIPS * threads)
    if are_sums and width * columns.lanes * itemsize < SHORT:
        width = -(-columns.trips // (columns.lanes * threads))
    most = most_bytes // (columns.lanes * itemsize)
    return _cut(nest, columns.lanes * max(1, min(width, most)))


def _nest(loop: For) -> list[For]:
    """The loops that go in order, one right in another, and what is inside them."""
    nest = [loop]
    while nest[-1].kind is LoopKind.SEQUENTIAL and len(nest[-1].body) == 1:
        (inner,) = nest[-1].body
        if not isinstance(inner, For):
            break
        nest.append(inner)
    return nest


def _are_alone(nest: list[For], ranges: Ranges) -> bool:
    """Does a column touch no memory that another one writes, in whatever row?"""
    columns, rows = nest[-1], {loop.symbol for loop in nest[:-1]}
    if not rows.isdisjoint(columns.bound_by):
        return False
    known: dict[Symbol, Range] = dict(ranges)
    for loop in nest:
        enter(loop, known)
    found = effects(columns.body, known)
    if found.leaves or found.updates:
        return False
    return not any(disturbed(found, (columns.symbol,), known, [loop.symbol for loop in nest[:-1]]))


def _cut(nest: list[For], width: int) -> For:
    columns = nest[-1]
    trips = columns.trips or 0
    strip = Symbol("strip")
    first = columns.lo + Affine.of(strip) * width
    before: tuple[Stmt, ...] = ()
    length = Affine.of(width)
    if left := trips % width:
        columns_here = Symbol("columns", lower=left, upper=width + 1)
        rest = lesser(trips - Affine.of(strip) * width, Const(width, I64))
        before, length = (Bind(columns_here, rest),), Affine.of(columns_here)
    rows = nested(nest[:-1], (replace(columns, lo=first, hi=first + length),))
    return For(strip, Affine.of(0), Affine.of(-(-trips // width)), (*before, *rows), LoopKind.PARALLEL)
