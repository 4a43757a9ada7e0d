"""What a body defines, each value in terms of what the body is given."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Mapping, Sequence
from functools import partial

from ...ir.expr import Const, Expr, Local, Variable
from ...ir.loops import Comment, Define, Stmt, Store, Update, walk_statements
from ...ir.ops import Op
from ...ir.walk import locals_read, locals_updated, rewrite_bodies, rewrite_expressions, transform, walk

__all__ = ["LONG", "Values", "definitions", "in_place", "stays", "values_of", "written_out"]

LONG = 64
"""Nodes of an expression that is written out, beyond which none is compared."""

Values = Mapping[Variable, Expr]


def definitions(body: tuple[Stmt, ...]) -> dict[Variable, Define]:
    """What a body defines and nothing changes later, in order."""
    inside = list(walk_statements(body))
    changing = locals_updated(inside)
    defined = (stmt for stmt in inside if isinstance(stmt, Define))
    return {stmt.variable: stmt for stmt in defined if stmt.variable not in changing}


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
    sums = locals_updated(body)
    return values if sums.isdisjoint(locals_read(body)) else None


def _nodes_of(node: Expr, nodes: Mapping[Variable, int]) -> int:
    return nodes.get(node.variable, 1) if isinstance(node, Local) else 1


def stays(value: Expr, changing: Container[Variable]) -> bool:
    """Is this a constant, or a local that is none of those that change?"""
    return isinstance(value, Const) or (isinstance(value, Local) and value.variable not in changing)


def written_out(value: Expr, values: Values) -> Expr:
    """An expression with what locals are in their places."""
    return transform(value, lambda node: values.get(node.variable, node) if isinstance(node, Local) else node)


def in_place(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """A body without the locals that only the next statement reads."""
    times = Counter(locals_read(walk_statements(body)))
    out: list[Stmt] = []
    for stmt in body:
        stmt = rewrite_bodies(stmt, in_place)
        while out and isinstance(last := out[-1], Define) and _alone_reads(stmt, last.variable, times):
            stmt = rewrite_expressions(stmt, partial(written_out, values={last.variable: last.value}))
            out.pop()
        out.append(stmt)
    return tuple(out)


def _alone_reads(stmt: Stmt, variable: Variable, times: Mapping[Variable, int]) -> bool:
    """Does nothing else read a local?"""
    computes = isinstance(stmt, (Define, Store, Update))
    return computes and times[variable] == 1 and variable in locals_read((stmt,))
