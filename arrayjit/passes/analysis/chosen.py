"""Cells in rows that are chosen at run time."""

from __future__ import annotations

from ...ir.expr import Const, Gather, Index, Variable
from ...ir.index import Affine, Symbol
from ...ir.loops import Define, Stmt, walk_statements
from ...ir.walk import differs, locals_updated, nodes_in, walk

__all__ = ["choosing", "row_along"]


def row_along(cell: Gather, symbol: Symbol, body: tuple[Stmt, ...]) -> tuple[Affine, ...] | None:
    """Where a cell of the body of a loop over `symbol` is in a row that all iterations choose alike, the
    place of the row counted as 0; None if they may choose different ones."""
    varying: set[Variable] | None = None
    index: list[Affine] = []
    for part in cell.index:
        match part:
            case Index(value=value):
                index.append(value)
            case Const():
                index.append(Affine.of(0))
            case _:
                varying = _varying(body, symbol) if varying is None else varying
                if differs(part, symbol, varying):
                    return None
                index.append(Affine.of(0))
    return tuple(index)


def choosing(body: tuple[Stmt, ...], symbol: Symbol) -> set[int]:
    """What says which rows a body reads, where all iterations of a loop over `symbol` choose them alike: the
    definitions and the expressions, as the numbers of these objects. No lane has its own of them."""
    inside = list(walk_statements(body))
    cells = [node for node in nodes_in(inside) if isinstance(node, Gather)]
    alike = [cell for cell in cells if row_along(cell, symbol, body) is not None]
    if not alike:
        return set()
    varying = _varying(body, symbol)
    defined = {id(stmt) for stmt in inside if isinstance(stmt, Define) and stmt.variable not in varying}
    return defined | {id(node) for cell in alike for part in cell.index for node in walk(part)}


def _varying(body: tuple[Stmt, ...], symbol: Symbol) -> set[Variable]:
    """The locals that may differ from iteration to iteration."""
    varying = set(locals_updated(walk_statements(body)))
    for stmt in walk_statements(body):
        if isinstance(stmt, Define) and differs(stmt.value, symbol, varying):
            varying.add(stmt.variable)
    return varying
