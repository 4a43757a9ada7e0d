"""order: the loops of a parallel nest are put in the order in which memory lies.

    for i in parallel(0, 64):                       for j in parallel(0, 64):
        for j in parallel(0, 64):           ->          for i in parallel(0, 64):
            y[j, i] = add(x[j, i], f32(1.0))                y[j, i] = add(x[j, i], f32(1.0))

Only perfect nests of parallel loops with independent bounds are touched, so nothing but the order of
independent iterations changes; what stands inside, reductions included, keeps its order.
"""

from __future__ import annotations

from ...ir.code import Caps
from ...ir.index import Symbol
from ...ir.loops import For, Kernel, Stmt, Store, nested, walk_statements
from ...ir.walk import kept, rewrite_bodies
from ..analysis.strides import LINE, affine_accesses, parallel_nest, stride

__all__ = ["order"]


def order(kernel: Kernel, caps: Caps) -> Kernel:
    """The loop that walks along memory innermost, in every parallel nest."""
    return kernel.with_body(_order_body(kernel.body))


def _order_body(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    return kept(body, [rewrite_bodies(_order_nest(stmt), _order_body) for stmt in body])


def _order_nest(stmt: Stmt) -> Stmt:
    """A nest with its loops sorted by how far they move, the farthest outermost."""
    loops = parallel_nest(stmt)
    if len(loops) < 2:
        return stmt
    inner = loops[-1].body
    ordered = sorted(loops, key=lambda loop: _distance(inner, loop.symbol), reverse=True)
    if all(new is old for new, old in zip(ordered, loops, strict=True)) or not _independent(loops):
        return stmt
    return nested(ordered, inner)[0]


def _independent(loops: list[For]) -> bool:
    """May the loops of a nest be interchanged? Their bounds must not depend on one another, and every
    iteration must store to cells of its own."""
    symbols = {loop.symbol for loop in loops}
    if any(not symbols.isdisjoint(loop.bound_by) for loop in loops):
        return False
    stores = [stmt for stmt in walk_statements(loops[-1].body) if isinstance(stmt, Store)]
    return all(symbols <= {s for position in store.index for s in position.symbols} for store in stores)


def _distance(body: tuple[Stmt, ...], symbol: Symbol) -> tuple[int, int]:
    """How far the accesses of a body move when the symbol grows: in cache lines first, then in elements.
    A store counts twice, since its line is read and written."""
    lines = elements = 0
    for tensor, index, is_store in affine_accesses(body):
        step = stride(tensor, index, symbol)
        far = LINE if step is None else abs(step)
        lines += min(far, LINE) * (2 if is_store else 1)
        elements += far
    return lines, elements
