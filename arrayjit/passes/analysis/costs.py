"""What it costs to compute an expression once, in additions."""

from __future__ import annotations

from collections.abc import Iterable

from ...ir.expr import Apply, Cast, Expr, Gather, Load, dtype_of
from ...ir.walk import walk

__all__ = ["cost_of", "cost_of_nodes", "scalar_cost", "size_of"]


def size_of(expr: Expr) -> int:
    """The nodes of an expression."""
    return sum(1 for _ in walk(expr))


def cost_of_nodes(nodes: Iterable[Expr]) -> float:
    """The cost of the operations among nodes."""
    return sum(node.op.cost for node in nodes if isinstance(node, Apply))


def cost_of(expr: Expr) -> float:
    """The cost without loads, in vectors."""
    total = 0.0
    for node in walk(expr):
        match node:
            case Apply(op=op):
                total += op.cost
            case Cast() | Gather():
                total += 1.0
            case _:
                pass
    return total


def scalar_cost(expr: Expr) -> float:
    """The same by itself, not in vectors: integers of memory get more bits as they are loaded."""
    casts = [node for node in walk(expr) if isinstance(node, Cast) and isinstance(node.arg, Load)]
    return cost_of(expr) - sum(cast.dtype.is_integer and dtype_of(cast.arg).is_integer for cast in casts)
