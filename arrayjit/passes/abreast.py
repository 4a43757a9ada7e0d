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
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

from ..ir.code import Caps
from ..ir.expr import Load
from ..ir.index import Affine, Symbol
from ..ir.loops import For, Kernel, LoopKind, Stmt, Update, walk_statements
from ..ir.walk import expressions, kept, rewrite_bodies, substitute_statements, walk
from .access import Effects, Range, Ranges, distances, effects
from .copies import copy_body, interleaved
from .trips import enter

__all__ = ["abreast"]

ROWS = 4
"""So many rows go together, on any machine: on that depends in which order sums are formed."""


def abreast(kernel: Kernel, caps: Caps) -> Kernel:
    """Every such triangle with a few of its rows side by side."""
    ranges: dict[Symbol, Range] = {}
    notes: list[str] = []

    def visit(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        out: list[Stmt] = []
        for stmt in body:
            if isinstance(stmt, For):
                enter(stmt, ranges)
                if _is_triangle(stmt) and _may_go(stmt, ranges):
                    notes.append(f"abreast: {ROWS} rows of {stmt.symbol.hint} go side by side")
                    out += _together(stmt)
                    continue
            out.append(rewrite_bodies(stmt, visit))
        return kept(body, out)

    return kernel.with_body(visit(kernel.body), notes)


def _is_triangle(rows: For) -> bool:
    """Does a row start with steps, one more than the row before, in which it sums up what all rows read?"""
    if rows.kind is not LoopKind.SEQUENTIAL or rows.step != 1 or (rows.trips or 0) < 2 * ROWS:
        return False
    steps = rows.body[0]
    if not isinstance(steps, For) or steps.kind is not LoopKind.SEQUENTIAL or steps.step != 1:
        return False
    fewest = steps.hi.substitute({rows.symbol: rows.lo}) - steps.lo
    if steps.hi.coefficient(rows.symbol) != 1 or not fewest.is_constant or fewest.offset < 0:
        return False
    loops = [loop for loop in walk_statements(steps.body) if isinstance(loop, For)]
    return any(_shares(loop, rows.symbol) for loop in loops) and not any(
        rows.symbol in (*loop.lo.symbols, *loop.hi.symbols) for loop in loops
    )


def _shares(loop: For, row: Symbol) -> bool:
    """Does a loop sum up what it reads, among it cells that are those of every row?"""
    sums = [stmt for stmt in loop.body if isinstance(stmt, Update) and stmt.accum is not None]
    parts = (node for stmt in sums for expr in expressions(stmt) for node in walk(expr))
    reads = (node.index for node in parts if isinstance(node, Load))
    symbols = [{symbol for position in index for symbol in position.symbols} for index in reads]
    return any(loop.symbol in found and row not in found for found in symbols)


def _may_go(rows: For, ranges: dict[Symbol, Range]) -> bool:
    """Do the common steps of some rows need nothing of one another, nor of what the earlier of these rows do
    later than such steps?"""
    steps, *rest = rows.body
    assert isinstance(steps, For)
    if rows.symbol not in ranges:
        return False
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
        return effects((*loops, *substitute_statements(tuple(more), symbols)), inside)

    ahead = [done(row, end - 1 - number, most[1]) for row in range(ROWS)]
    later = [done(row, end + number, row, rest) for row in range(ROWS)]
    if any(found.leaves or found.updates for found in (*ahead, *later)):
        return False
    pairs = [
        *combinations(ahead, 2),
        *((ahead[row], later[one]) for row in range(ROWS) for one in range(row)),
    ]
    return not any(_meet(one, other, inside) for one, other in pairs)


def _meet(one: Effects, other: Effects, ranges: Ranges) -> bool:
    """May either of them touch what the other one writes?"""
    return any(
        distances(cell, touched, (), ranges) is not None
        for first, second in ((one, other), (other, one))
        for storage, written in first.writes.items()
        for cell in written
        for touched in (*second.writes.get(storage, ()), *second.reads.get(storage, ()))
    )


def _together(rows: For) -> tuple[Stmt, ...]:
    """A few rows at a time: their common steps, then what is left of each; after them the last rows."""
    steps, *rest = rows.body
    assert isinstance(steps, For)
    assert rows.trips is not None
    block = Symbol(rows.symbol.hint)
    first = rows.lo + Affine.of(block) * ROWS
    end = steps.hi.substitute({rows.symbol: first})
    common = interleaved((replace(steps, hi=end),), rows.symbol, first, ROWS)
    each = replace(rows, lo=first, hi=first + ROWS, body=(replace(steps, lo=end), *rest))
    whole = rows.trips // ROWS
    main = For(block, Affine.of(0), Affine.of(whole), (*common, *copy_body((each,), {}, {})))
    last = replace(rows, lo=rows.lo + whole * ROWS)
    return (main, last) if last.trips else (main,)
