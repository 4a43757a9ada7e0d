"""What emitters ask about loops and their bodies."""

from __future__ import annotations

from collections.abc import Iterator

from ..errors import CompilerBug, Location
from ..ir.expr import Apply, Const, Expr, Local, Variable
from ..ir.loops import Define, Fill, For, If, Raise, Stmt, Store, Update, walk_statements
from ..ir.ops import OPS, Op
from ..ir.walk import expressions, walk

__all__ = ["accumulation", "changes", "conditions", "fills_lanes", "nodes", "place", "squared", "updated"]

MULTIPLY = OPS["multiply"]


def updated(body: tuple[Stmt, ...]) -> dict[Variable, None]:
    """The locals that a body updates, in order."""
    return {stmt.variable: None for stmt in walk_statements(body) if isinstance(stmt, Update)}


def squared(body: tuple[Stmt, ...]) -> set[Variable]:
    """The integers that may be multiplied by themselves from iteration to iteration."""
    products = (node for node in nodes(body) if isinstance(node, Apply) and node.op is MULTIPLY)
    if not any(one == other for one, other in (node.args for node in products)):
        return set()
    updates = (stmt for stmt in walk_statements(body) if isinstance(stmt, Update) and stmt.accum is None)
    return {stmt.variable for stmt in updates if stmt.variable.dtype.is_integer}


def changes(body: tuple[Stmt, ...]) -> tuple[Variable, ...]:
    """The locals from outside that a body updates."""
    defined = {stmt.variable for stmt in walk_statements(body) if isinstance(stmt, Define)}
    return tuple(variable for variable in updated(body) if variable not in defined)


def conditions(test: tuple[Stmt, ...], condition: Expr) -> list[tuple[tuple[Stmt, ...], Expr]]:
    """The conditions that a loop goes on by, one after the other, each after what it is computed from: where
    the first does not hold, the second need not be."""
    match test:
        case (
            *before,
            Define(variable=both, value=Const(value=False)),
            If(condition=first, body=(*own, Update(variable=last, value=second, accum=None)), orelse=()),
        ) if both is last and condition == Local(both) and not changes((*before, *own)):
            return [*conditions(tuple(before), first), *conditions(tuple(own), second)]
        case _:
            return [(test, condition)]


def nodes(body: tuple[Stmt, ...]) -> Iterator[Expr]:
    """Every node of every expression in a body."""
    return (node for stmt in walk_statements(body) for expr in expressions(stmt) for node in walk(expr))


def place(stmt: Stmt) -> Location | None:
    """The user's line that a statement stands for, if it is one that has any."""
    return stmt.loc if isinstance(stmt, (Store, Fill, Raise)) else None


def accumulation(variable: Variable, body: tuple[Stmt, ...]) -> Op:
    """The one op by which a vector loop's body accumulates into a local from outside."""
    ops = {
        stmt.accum for stmt in walk_statements(body) if isinstance(stmt, Update) and stmt.variable is variable
    }
    op = ops.pop()
    if ops or op is None:
        raise CompilerBug(f"lanes carry {variable} from one iteration to another", stage="targets")
    return op


def fills_lanes(loop: For) -> bool:
    """Whether nothing is left after whole vectors, whatever the bounds turn out to be."""
    span = loop.hi - loop.lo
    return all(count % (loop.lanes * loop.step) == 0 for count in (span.offset, *(c for c, _ in span.terms)))
