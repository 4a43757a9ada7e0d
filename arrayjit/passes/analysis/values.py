"""What a body defines, each value in terms of what the body is given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...ir.expr import Expr, Local, Variable
from ...ir.loops import Comment, Define, Stmt, Update
from ...ir.ops import Op
from ...ir.walk import locals_read, transform, walk

__all__ = ["LONG", "Values", "values_of", "written_out"]

LONG = 64
"""Nodes of an expression that is written out, beyond which none is compared."""

Values = Mapping[Variable, Expr]


def values_of(body: Sequence[Stmt]) -> dict[Variable, Expr] | None:
    """What a body defines, written out, beside what it accumulates in variables that it does not read; None
    if it does anything else, or too much."""
    values: dict[Variable, Expr] = {}
    nodes: dict[Variable, int] = {}
    for stmt in body:
        match stmt:
            case Define(variable=variable, value=value):
                nodes[variable] = sum(_nodes_of(node, nodes) for node in walk(value))
                if nodes[variable] > LONG:
                    return None
                values[variable] = written_out(value, values)
            case Comment() | Update(accum=Op(), contract=False):
                pass
            case _:
                return None
    sums = {stmt.variable for stmt in body if isinstance(stmt, Update)}
    return values if sums.isdisjoint(locals_read(body)) else None


def _nodes_of(node: Expr, nodes: Mapping[Variable, int]) -> int:
    return nodes.get(node.variable, 1) if isinstance(node, Local) else 1


def written_out(value: Expr, values: Values) -> Expr:
    """An expression with what locals are in their places."""
    return transform(value, lambda node: values.get(node.variable, node) if isinstance(node, Local) else node)
