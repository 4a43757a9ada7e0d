"""abreast: a few rows of a triangle go side by side, as far as they all are long.

    for k in sequential(0, 150):                    for b in sequential(0, 37):
        for i in sequential(0, k):                      for i in sequential(0, 4*b):
            p = 0.0                                         p, p1, p2, p3 = 0.0, 0.0, 0.0, 0.0
            for j in parallel(0, i):                        for j in parallel(0, i):
                p = fma(a[k, j], a[i, j], p)                    p = fma(a[4*b, j], a[i, j], p)
            a[k, i] = divide(..., a[i, i])      ->              p1 = fma(a[4*b + 1, j], a[i, j], p1)  ...
        a[k, k] = ...                                       a[4*b, i] = divide(..., a[i, i])  ...
                                                        for k in sequential(4*b, 4*b + 4):
                                                            for i in sequential(4*b, k):
                                                                ...
                                                            a[k, k] = ...
                                                    (the last 2 rows as before)

What rows share is read once, and the processor has several sums under way: the Cholesky factor of a matrix of
150 rows takes half the time. The first steps of a row must need nothing of the rows that it goes with.

The steps may be the terms of a sum. Each of the rows goes on with its own one, and memory is read at as many
places: a triangle of 4000 rows is solved in two thirds of the time.

    for k in sequential(0, 4000):                   for b in sequential(0, 1000):
        p = 0.0                                         p, p1, p2, p3 = 0.0, 0.0, 0.0, 0.0
        for i in parallel(0, k):                        for i in parallel(0, 4*b):
            p = fma(a[k, i], x[i], p)       ->              p = fma(a[4*b, i], x[i], p)
        x[k] = divide(subtract(b[k], p), ..)                p1 = fma(a[4*b + 1, i], x[i], p1)  ...
                                                        x[4*b] = divide(subtract(b[4*b], p), ..)
                                                        for i in parallel(4*b, 4*b + 1):
                                                            p1 = fma(a[4*b + 1, i], x[i], p1)
                                                        x[4*b + 1] = ...

A sum may be turned for that, as where each row takes what those before it have become, from the last one on,
by weights: `p = fma(w[i + 1], x[k - 1 - i], p)` is `fma(w[k - i], x[i], p)`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain, combinations, takewhile

from ...ir.expr import Load
from ...ir.index import Affine, Symbol, symbols_of
from ...ir.loops import Define, For, LoopKind, Stmt, Update, walk_statements, written_in
from ...ir.walk import (
    locals_read,
    locals_updated,
    locals_used,
    nodes_in,
    substitute_statements,
)
from ..analysis.access import Effects, Range, effects, loads
from ..analysis.carriers import conflicts
from ..analysis.copies import Copying, copy_body, merged
from ..analysis.loopwise import Site, loopwise

__all__ = ["abreast"]

ROWS = 4
"""So many rows go together, on any machine: on that depends in which order sums are formed."""


@loopwise
def abreast(loop: For, site: Site) -> Sequence[Stmt] | None:
    """Every such triangle with a few of its rows side by side."""
    if not _is_long(loop):
        return None
    for rows in (loop, _turned(loop)):
        if _is_triangle(rows) and _may_go(rows, site.ranges):
            site.notes.append(f"abreast: {ROWS} rows of {rows.symbol.hint} go side by side")
            return _together(rows)
    return None


def _parts(rows: For) -> tuple[tuple[Define, ...], For, tuple[Stmt, ...]] | None:
    """What a row starts with: variables, the steps after these; and the rest of it. Variables that the steps
    need not are of the rest, unless the steps change what they are read from."""
    starts = list(takewhile(lambda stmt: isinstance(stmt, Define), rows.body))
    steps, *rest = rows.body[len(starts) :] or (None,)
    if not isinstance(steps, For) or steps.step != 1:
        return None
    first: list[Define] = []
    needed = locals_used((steps,))
    inside = list(walk_statements(steps.body))
    stored = written_in(inside)
    updated = locals_updated(inside)
    for stmt in reversed(starts):
        assert isinstance(stmt, Define)
        changes = not updated.isdisjoint(locals_read((stmt,)))
        changes = changes or any(tensor.storage in stored for tensor, _ in loads(stmt.value))
        if stmt.variable in needed or changes:
            first.insert(0, stmt)
            needed |= set(locals_read((stmt,)))
        else:
            rest.insert(0, stmt)
    return tuple(first), steps, tuple(rest)


def _is_long(rows: For) -> bool:
    """Does a loop go over enough rows in order?"""
    return rows.kind is LoopKind.SEQUENTIAL and rows.step == 1 and (rows.trips or 0) >= 2 * ROWS


def _is_triangle(rows: For) -> bool:
    """Does a row start with steps, one more than the row before, in which it sums up what all rows read? What
    is done with one sum must be short, since each row has it written out."""
    parts = _parts(rows)
    if parts is None:
        return False
    starts, steps, rest = parts
    if starts and any(isinstance(stmt, For) for stmt in walk_statements(rest)):
        return False
    fewest = steps.hi.substitute({rows.symbol: rows.lo}) - steps.lo
    if steps.hi.coefficient(rows.symbol) != 1 or not fewest.is_constant or fewest.offset < 0:
        return False
    loops = [loop for loop in walk_statements(steps.body) if isinstance(loop, For)]
    return any(_shares(loop, rows.symbol) for loop in (steps, *loops)) and not any(
        rows.symbol in loop.bound_by for loop in loops
    )


def _turned(rows: For) -> For:
    """The rows with the steps that each starts with from the last to the first, if these may go in any order:
    what the first of them takes from the row before, the last one does then."""
    parts = _parts(rows)
    if parts is None or parts[1].kind is not LoopKind.PARALLEL:
        return rows
    starts, steps, rest = parts
    place = steps.lo + steps.hi - 1 - Affine.of(steps.symbol)
    body = substitute_statements(steps.body, {steps.symbol: place})
    return replace(rows, body=(*starts, replace(steps, body=body), *rest))


def _shares(loop: For, row: Symbol) -> bool:
    """Does a loop sum up what it reads, among it cells that are those of every row?"""
    if not any(isinstance(stmt, Update) for stmt in loop.body):
        return False
    reads = (node.index for node in nodes_in(loop.body) if isinstance(node, Load))
    symbols = [set(symbols_of(index)) for index in reads]
    return any(loop.symbol in found and row not in found for found in symbols)


def _may_go(rows: For, ranges: dict[Symbol, Range]) -> bool:
    """Do the common steps of some rows need nothing of one another, nor of what the earlier of these rows do
    later than such steps?"""
    parts = _parts(rows)
    if parts is None or rows.symbol not in ranges:
        return False
    starts, steps, rest = parts
    first, number = Symbol("first"), Symbol("number")
    end = steps.hi.substitute({rows.symbol: Affine.of(first)})
    inside = {**ranges, first: ranges[rows.symbol]}
    most = (end - steps.lo).bounds(inside)
    if most is None:
        return False

    def done(row: int, step: Affine, count: int, more: Sequence[Stmt] = ()) -> Effects:
        """What a row does in some steps, and then."""
        symbols = {rows.symbol: first + Affine.of(row), steps.symbol: step}
        loop = For(number, Affine.of(0), Affine.of(count), substitute_statements(steps.body, symbols))
        loops = (loop,) if count else ()
        before, after = (substitute_statements(tuple(body), symbols) for body in (starts, more))
        return effects((*before, *loops, *after), inside)

    ahead = [done(row, end - 1 - number, most[1]) for row in range(ROWS)]
    later = [done(row, end + number, row, rest) for row in range(ROWS)]
    if any(found.leaves or found.updates for found in (*ahead, *later)):
        return False
    pairs = [
        *combinations(ahead, 2),
        *((ahead[row], later[one]) for row in range(ROWS) for one in range(row)),
    ]
    return not any(True for one, other in pairs for _ in conflicts(one, other, (), inside))


def _together(rows: For) -> tuple[Stmt, ...]:
    """A few rows at a time: their common steps, then what is left of each; after them the last rows."""
    parts = _parts(rows)
    assert parts is not None
    assert rows.trips is not None
    starts, steps, rest = parts
    block = Symbol(rows.symbol.hint)
    first = rows.lo + Affine.of(block) * ROWS
    end = steps.hi.substitute({rows.symbol: first})
    copies = [Copying({rows.symbol: first + row}, {}) for row in range(ROWS)]
    common = merged((*starts, replace(steps, hi=end)), copies)
    left = (replace(steps, lo=end), *rest)
    if starts:
        bodies = (copy.body(left if row else rest) for row, copy in enumerate(copies))
        each = tuple(chain.from_iterable(bodies))
    else:
        each = copy_body((replace(rows, lo=first, hi=first + ROWS, body=left),), {}, {})
    whole = rows.trips // ROWS
    main = For(block, Affine.of(0), Affine.of(whole), (*common, *each))
    last = replace(rows, lo=rows.lo + whole * ROWS)
    return (main, last) if last.trips else (main,)
