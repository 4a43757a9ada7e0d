"""invert: steps that every cell takes by itself are taken cell by cell.

    for k in sequential(0, 60):                     for i in parallel(0, 9000):
        for i in parallel(0, 9000):         ->          for k in sequential(0, 60):
            x[i] = add(multiply(x[i], x[i]), c[i])          x[i] = add(multiply(x[i], x[i]), c[i])

A cell then stays in a register from step to step (`carry` sees to that), and threads meet once, not at every
step. No cell may need another one, in any step; nor may steps walk through arrays that cells walk through
too, which would read memory in another order than it lies.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product

from ..ir.code import Caps
from ..ir.index import Symbol
from ..ir.loops import Define, For, Kernel, LoopKind, Stmt
from ..ir.walk import kept, rewrite_bodies
from .access import Range, distances, effects
from .strides import affine_accesses, parallel_nest
from .trips import enter

__all__ = ["invert"]


def invert(kernel: Kernel, caps: Caps) -> Kernel:
    """Every such loop inside the cells that it is about."""
    ranges: dict[Symbol, Range] = {}
    notes: list[str] = []

    def visit(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        return kept(body, [statement(stmt) for stmt in body])

    def statement(stmt: Stmt) -> Stmt:
        if isinstance(stmt, For):
            enter(stmt, ranges)
        stmt = rewrite_bodies(stmt, visit)
        if not isinstance(stmt, For) or not stmt.body:
            return stmt
        cells = parallel_nest(stmt.body[-1])
        body = (*stmt.body[:-1], *cells[-1].body) if cells else ()
        if not cells or not _is_about_cells(stmt, cells, body, ranges):
            return stmt
        notes.append(f"invert: all steps of {stmt.symbol.hint} are taken at once, cell by cell")
        nest: Stmt = replace(stmt, body=body)
        for loop in reversed(cells):
            nest = replace(loop, body=(nest,))
        return nest

    body = visit(kernel.body)
    return kernel if body is kernel.body else replace(kernel, body=body, notes=(*kernel.notes, *notes))


def _is_about_cells(
    steps: For, cells: Sequence[For], body: Sequence[Stmt], ranges: dict[Symbol, Range]
) -> bool:
    """Whether the cells, with all that a step does, need nothing of one another in any two steps."""
    if steps.kind is not LoopKind.SEQUENTIAL or not all(isinstance(stmt, Define) for stmt in steps.body[:-1]):
        return False
    if any(steps.symbol in (*loop.lo.symbols, *loop.hi.symbols) for loop in cells):
        return False
    own = [loop.symbol for loop in cells]
    for _, index, _ in affine_accesses(tuple(body)):
        symbols = {symbol for position in index for symbol in position.symbols}
        if steps.symbol in symbols and not symbols.isdisjoint(own):
            return False
    found = effects(body, ranges)
    if found.leaves or found.updates:
        return False
    found = found.without({steps.symbol: ranges.get(steps.symbol)})
    return all(
        apart is None or all(distance == (0, 0) for distance in apart.values())
        for storage, written in found.writes.items()
        for one, other in product(written, {**written, **found.reads.get(storage, {})})
        for apart in (distances(one, other, own, ranges),)
    )
