"""What emitters ask about loops and their bodies."""

from __future__ import annotations

from ..errors import CompilerBug, Location
from ..ir.dtype import BOOL
from ..ir.expr import Apply, Cast, Const, Expr, Index, Local, Variable, dtype_of
from ..ir.loops import Define, Fill, For, If, Raise, Stmt, Store, Update, walk_statements
from ..ir.ops import OPS, Op
from ..ir.walk import nodes_in, outer_updates

__all__ = [
    "ADD",
    "accumulation",
    "changes",
    "conditions",
    "counted",
    "counts",
    "fills_lanes",
    "is_count",
    "place",
    "squared",
    "updated",
]

ADD = OPS["add"]
MULTIPLY = OPS["multiply"]
DIVIDE = OPS["raw_divide"]


def updated(body: tuple[Stmt, ...]) -> dict[Variable, None]:
    """The locals that a body updates, in order."""
    return {stmt.variable: None for stmt in walk_statements(body) if isinstance(stmt, Update)}


def squared(body: tuple[Stmt, ...]) -> set[Variable]:
    """The integers that may be multiplied by themselves from iteration to iteration."""
    statements = walk_statements(body)
    updates = (stmt.variable for stmt in statements if isinstance(stmt, Update) and stmt.accum is None)
    integers = {variable for variable in updates if variable.dtype.is_integer}
    if not integers:
        return set()
    products = (node for node in nodes_in(statements) if isinstance(node, Apply) and node.op is MULTIPLY)
    return integers if any(one == other for one, other in (node.args for node in products)) else set()


def changes(body: tuple[Stmt, ...]) -> tuple[Variable, ...]:
    """The locals from outside that a body updates."""
    updates = outer_updates(list(walk_statements(body)))
    return tuple(dict.fromkeys(update.variable for update in updates))


def counted(update: Update) -> Expr | None:
    """The condition that an update of an integer counts, if that is all it does."""
    match update:
        case Update(variable=count, value=Cast(arg=condition), accum=accum) if accum is ADD:
            is_count = count.dtype.is_integer and dtype_of(condition) is BOOL
            return condition if is_count else None
        case _:
            return None


def counts(body: tuple[Stmt, ...]) -> frozenset[Variable]:
    """The integers in which a body counts conditions, and does nothing else."""
    updates = [stmt for stmt in walk_statements(body) if isinstance(stmt, Update)]
    others = {stmt.variable for stmt in updates if counted(stmt) is None}
    return frozenset(stmt.variable for stmt in updates) - others


def is_count(expr: Apply) -> bool:
    """Is it a number that is known not to be negative, divided by a positive one?"""
    match expr:
        case Apply(op=op, args=(Index(value=number), Const(value=int(size)))):
            bounds = number.bounds({}) if op is DIVIDE and size > 0 else None
            return bounds is not None and bounds[0] >= 0
        case _:
            return False


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
