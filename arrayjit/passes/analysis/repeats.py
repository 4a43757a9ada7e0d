"""May a body be run again, and is it short enough to be written twice?"""

from __future__ import annotations

from collections.abc import Collection

from ...ir.expr import Apply, Variable
from ...ir.loops import Define, Stmt, Store, Update, walk_statements
from ...ir.walk import expressions, walk
from .access import reads

__all__ = ["HEAVY", "may_repeat", "weight"]

HEAVY = 32
"""Operations in a body beyond which a second copy takes longer to compile than it saves."""


def may_repeat(body: tuple[Stmt, ...], sums: Collection[Variable] = ()) -> bool:
    """Does running an iteration again change nothing, apart from what it adds to `sums`?"""
    inside = list(walk_statements(body))
    own = {*sums, *(stmt.variable for stmt in inside if isinstance(stmt, Define))}
    if any(isinstance(stmt, Update) and stmt.variable not in own for stmt in inside):
        return False
    written = {stmt.tensor.storage for stmt in inside if isinstance(stmt, Store)}
    return not any(tensor.storage in written for stmt in inside for tensor, _ in reads(stmt))


def weight(body: tuple[Stmt, ...]) -> int:
    """The number of operations in a body."""
    nodes = (node for stmt in walk_statements(body) for expr in expressions(stmt) for node in walk(expr))
    return sum(isinstance(node, Apply) for node in nodes)
