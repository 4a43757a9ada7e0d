"""invert: steps that every cell takes by itself are taken cell by cell.

    for k in sequential(0, 60):                     for i in parallel(0, 9000):
        for i in parallel(0, 9000):         ->          for k in sequential(0, 60):
            x[i] = add(multiply(x[i], x[i]), c[i])          x[i] = add(multiply(x[i], x[i]), c[i])

A cell then stays in a register from step to step (`carry` sees to that), and threads meet once, not at every
step. No cell may need another one, in any step; nor may many steps walk through arrays that cells walk
through too, which would read memory in another order than it lies. Nests over the same cells go in as one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product, takewhile

from ..ir.code import Caps
from ..ir.index import Affine, Symbol
from ..ir.loops import Define, For, Kernel, LoopKind, Stmt
from ..ir.walk import kept, rewrite_bodies, substitute_statements
from .access import Range, distances, effects
from .strides import affine_accesses, parallel_nest
from .trips import enter

__all__ = ["invert"]

FEW = 16
"""Through so many rows of an array that is only read a cell may step: it is read in as many streams."""


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
        cells, body = _in_one_nest(stmt.body)
        if not cells or not _is_about_cells(stmt, cells, body, ranges):
            return stmt
        notes.append(f"invert: all steps of {stmt.symbol.hint} are taken at once, cell by cell")
        nest: Stmt = replace(stmt, body=body)
        for loop in reversed(cells):
            nest = replace(loop, body=(nest,))
        return nest

    body = visit(kernel.body)
    return kernel if body is kernel.body else replace(kernel, body=body, notes=(*kernel.notes, *notes))


def _in_one_nest(body: Sequence[Stmt]) -> tuple[Sequence[For], tuple[Stmt, ...]]:
    """The loops over cells of a step and what it does in them, as if its nests over the same cells were one;
    no loops if that is not all it does."""
    inside = list(takewhile(lambda stmt: isinstance(stmt, Define), body))
    cells: Sequence[For] = ()
    for nest in body[len(inside) :]:
        loops = parallel_nest(nest)
        cells = cells or loops
        names: dict[Symbol, Affine] = {}
        for loop, cell in zip(loops, cells, strict=False):
            names[loop.symbol] = Affine.of(cell.symbol)
            if (loop.lo, loop.hi, loop.step) != (cell.lo, cell.hi, cell.step):
                return (), ()
        if not loops or len(loops) != len(cells):
            return (), ()
        inside.extend(substitute_statements(loops[-1].body, names))
    return cells, tuple(inside)


def _is_about_cells(
    steps: For, cells: Sequence[For], body: Sequence[Stmt], ranges: dict[Symbol, Range]
) -> bool:
    """Whether the cells, with all that a step does, need nothing of one another in any two steps."""
    if steps.kind is not LoopKind.SEQUENTIAL:
        return False
    if any(steps.symbol in (*loop.lo.symbols, *loop.hi.symbols) for loop in cells):
        return False
    own = [loop.symbol for loop in cells]
    found = effects(body, ranges)
    if found.leaves or found.updates:
        return False
    few = steps.trips is not None and steps.trips <= FEW
    for tensor, index, _ in affine_accesses(tuple(body)):
        symbols = {symbol for position in index for symbol in position.symbols}
        walks = steps.symbol in symbols and not symbols.isdisjoint(own)
        if walks and not (few and tensor.storage not in found.writes):
            return False
    found = found.without({steps.symbol: ranges.get(steps.symbol)})
    return all(
        apart is None or all(distance == (0, 0) for distance in apart.values())
        for storage, written in found.writes.items()
        for one, other in product(written, {**written, **found.reads.get(storage, {})})
        for apart in (distances(one, other, own, ranges),)
    )
