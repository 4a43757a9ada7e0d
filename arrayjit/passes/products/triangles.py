"""Nests in which each row has columns of its own, seen as rectangles of which a part of each row counts.

    for i in parallel(0, 100):                  for i in parallel(0, 100):
        for j in parallel(0, -i + 100):   ->        for j in parallel(0, 100):      of which i <= j < 100
            y[i, i + j] = ...                           y[i, j] = ...

Columns are numbered as in the program, or so that one end of all rows is the same column.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ...frozen import frozen
from ...ir.index import Affine, Symbol
from ...ir.loops import For, Stmt
from ...ir.walk import substitute_statements
from ..analysis.access import Range
from ..analysis.trips import enter

__all__ = ["Rectangle", "rectangles"]


@frozen
class Rectangle:
    """Independent loops around a body, among them those over rows and columns; of the columns of a row those
    `within` count, from the first to before the second."""

    loops: tuple[For, ...]
    rows: For
    columns: For
    body: tuple[Stmt, ...]
    within: tuple[Affine, Affine]


def rectangles(loops: Sequence[For], body: tuple[Stmt, ...]) -> Iterator[Rectangle]:
    """The rectangles around a nest of parallel loops of which one has ends that vary with another one, a
    column further with each row."""
    own = {loop.symbol for loop in loops}
    slanted = [loop for loop in loops if not own.isdisjoint(loop.bound_by)]
    if len(slanted) != 1 or slanted[0].step != 1:
        return
    (columns,) = slanted
    rows = [loop for loop in loops if loop.symbol in columns.bound_by]
    if len(rows) != 1 or not rows[0].trips or rows[0].step != 1:
        return
    row = rows[0].symbol
    slants = [end.coefficient(row) for end in (columns.lo, columns.hi)]
    for slant in sorted({0, *slants}):
        if all(abs(other - slant) <= 1 for other in slants):
            shift = Affine.of(row) * slant
            yield _rectangle(loops, body, rows[0], columns, shift)


def _rectangle(
    loops: Sequence[For], body: tuple[Stmt, ...], rows: For, columns: For, shift: Affine
) -> Rectangle:
    """The nest with its columns numbered from `shift` on."""
    symbol = Symbol(columns.symbol.hint)
    ranges: dict[Symbol, Range] = {}
    enter(rows, ranges)
    within = columns.lo - shift, columns.hi - shift
    ends = [end.bounds(ranges) for end in within]
    least, most = (ends[0] or (0, 0))[0], (ends[1] or (0, 0))[1]
    whole = replace(columns, symbol=symbol, lo=Affine.of(least), hi=Affine.of(most), body=())
    new = substitute_statements(body, {columns.symbol: shift + Affine.of(symbol)})
    others = tuple(whole if loop is columns else loop for loop in loops)
    return Rectangle(others, rows, whole, new, within)
