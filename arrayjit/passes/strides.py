"""Nests of parallel loops, and how their accesses move through memory when a loop's symbol grows."""

from __future__ import annotations

from collections.abc import Iterator

from ..ir.expr import Load
from ..ir.index import Affine, Symbol
from ..ir.loops import For, LoopKind, Stmt, Store, walk_statements
from ..ir.tensor import Tensor
from ..ir.walk import expressions, walk

__all__ = ["LINE", "affine_accesses", "parallel_nest", "stride"]

LINE = 16
"""A step of this many elements or more finds another cache line each time."""


def stride(tensor: Tensor, index: tuple[Affine, ...], symbol: Symbol) -> int | None:
    """By how many elements the cell at `index` moves when `symbol` grows by one; None if not constant."""
    steps = [position.coefficient(symbol) for position in index]
    if not any(steps[:-1]):
        if not steps or not steps[-1]:
            return 0
        if tensor.strides is None:
            return steps[-1]
    try:
        strides = tensor.element_strides()
    except ValueError:
        return None
    total = Affine.of(0)
    for step, unit in zip(steps, strides, strict=True):
        total = total + unit * step
    return total.offset if total.is_constant else None


def affine_accesses(body: tuple[Stmt, ...]) -> Iterator[tuple[Tensor, tuple[Affine, ...], bool]]:
    """Every load and store of a body, nested loops included; True for stores."""
    for stmt in walk_statements(body):
        for expr in expressions(stmt):
            for node in walk(expr):
                if isinstance(node, Load):
                    yield node.tensor, node.index, False
        if isinstance(stmt, Store):
            yield stmt.tensor, stmt.index, True


def parallel_nest(stmt: Stmt) -> list[For]:
    """The perfect nest of parallel loops that a statement is, outermost first."""
    loops: list[For] = []
    while isinstance(stmt, For) and stmt.kind is LoopKind.PARALLEL:
        loops.append(stmt)
        if len(stmt.body) != 1:
            break
        stmt = stmt.body[0]
    return loops
