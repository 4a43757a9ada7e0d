"""short_circuit: of two conditions of a loop the second is computed where the first one holds.

    while True:                                     while True:
        t = greater_equal(j, 0)                         t = greater_equal(j, 0)
        n = j                                           n = j
        raise_(n + 50 > 99, ...)                        raise_(n + 50 > 99, ...)
        t1 = greater(a[n], k)               ->          both = False
        if not logical_and(t, t1):                      if t:
            break                                           t1 = greater(a[n], k)
        ...                                                 both = t1
                                                        if not both:
                                                            break
                                                        ...

Either of them ends the loop, so that the branch is no harder to foresee than the loop's own. The first one
tells what is certain where the second is computed: that a position lies in an axis. Exceptions of the second
stay where they are, as `&` computes both.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Union

from ...ir.code import Caps
from ...ir.dtype import BOOL
from ...ir.expr import Apply, Const, Expr, Gather, Load, Local, Variable
from ...ir.index import Symbol
from ...ir.loops import Bind, Comment, Define, If, Kernel, Raise, Stmt, Update, While, walk_statements
from ...ir.ops import OPS
from ...ir.walk import (
    kept,
    locals_read,
    locals_updated,
    nodes_in,
    rewrite_bodies,
    symbols_read,
    variables,
    walk,
)
from ..analysis.access import mentioned
from ..analysis.costs import cost_of_nodes
from .certain import followed

__all__ = ["short_circuit"]

ANDS = OPS["logical_and"], OPS["bitwise_and"]

_COMPUTING = (Bind, Comment, Define, Raise)

WORTH = 8.0
"""So much work is left out where the first condition does not hold; what is read from memory is worth it
anyway."""


Names = frozenset[Union[Symbol, Variable]]


def short_circuit(kernel: Kernel, caps: Caps) -> Kernel:
    """The kernel with such conditions one after the other."""
    if not any(isinstance(stmt, While) for stmt in walk_statements(kernel.body)):
        return kernel
    notes: list[str] = []

    def visit(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        return kept(body, [statement(stmt) for stmt in body])

    def statement(stmt: Stmt) -> Stmt:
        stmt = rewrite_bodies(stmt, visit)
        if not isinstance(stmt, While) or not all(isinstance(part, _COMPUTING) for part in stmt.test):
            return stmt
        test, condition = _one_by_one(stmt.test, stmt.condition, _names(stmt.body))
        if condition is stmt.condition:
            return stmt
        notes.append("short_circuit: what ends a loop is computed where nothing before it does")
        return replace(stmt, test=test, condition=condition)

    done = kernel.with_body(visit(kernel.body), notes)
    return done if done is kernel else followed(done, caps)


def _one_by_one(test: tuple[Stmt, ...], condition: Expr, used: Names) -> tuple[tuple[Stmt, ...], Expr]:
    """Statements that compute a condition, the second part of it where the first holds; what is used
    elsewhere stays."""
    rest, both = _written_out(test, condition, used)
    match both:
        case Apply(op=op, args=(first, second), dtype=dtype) if op in ANDS and dtype is BOOL:
            own = _only_for(rest, used | _read(first))
            before = tuple(stmt for stmt in rest if stmt not in own)
            right, last = _one_by_one(own, second, used)
            left, start = _one_by_one(before, first, used | _names(own) | _read(second))
            if not _is_worth(own, second):
                is_same = start is first and last is second
                return (test, condition) if is_same else ((*left, *right), Apply(op, (start, last), BOOL))
            name = Variable("both", BOOL)
            branch = If(start, (*right, Update(name, last)))
            return (*left, Define(name, Const(False, BOOL)), branch), Local(name)
        case _:
            return test, condition


def _written_out(test: tuple[Stmt, ...], condition: Expr, used: Names) -> tuple[tuple[Stmt, ...], Expr]:
    """A condition that has a name of its own without that name."""
    for stmt in test:
        if isinstance(stmt, Define) and condition == Local(stmt.variable):
            rest = tuple(other for other in test if other is not stmt)
            is_own = stmt.variable not in used | _names(rest)
            return (rest, stmt.value) if is_own else (test, condition)
    return test, condition


def _only_for(test: tuple[Stmt, ...], used: Names) -> tuple[Stmt, ...]:
    """The statements that make only what is not used."""
    own: list[Stmt] = []
    for stmt in reversed(test):
        name = stmt.variable if isinstance(stmt, Define) else stmt.symbol if isinstance(stmt, Bind) else None
        if name is None or name in used:
            used |= _names((stmt,))
        else:
            own.append(stmt)
    return tuple(reversed(own))


def _is_worth(own: tuple[Stmt, ...], second: Expr) -> bool:
    """Is it much to compute, or read from an array?"""
    nodes = [*nodes_in(own), *walk(second)]
    work = cost_of_nodes(nodes)
    return work >= WORTH or any(
        isinstance(node, Gather) or (isinstance(node, Load) and node.index) for node in nodes
    )


def _read(expr: Expr) -> Names:
    return frozenset((*variables(expr), *symbols_read(expr)))


def _names(body: tuple[Stmt, ...]) -> Names:
    """The names that a body reads or changes."""
    inside = list(walk_statements(body))
    return frozenset((*locals_read(inside), *locals_updated(inside), *mentioned(body)))
