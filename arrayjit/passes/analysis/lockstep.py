"""May the iterations of a sequential loop go through its body side by side?

    for i in sequential(0, 999):
        x[i] = add(x[i + 1], y[i])

An iteration here reads what a later one overwrites. If some successive iterations do the first statement,
then all the second one and so on, and the next few follow, every cell still is read and written in the old
order. What is added to one cell or local is added in order, one iteration after the other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from ...ir.expr import Apply, Expr, Gather, Load, Local, Variable
from ...ir.index import Symbol
from ...ir.loops import Comment, Define, For, Stmt, Store, Update
from ...ir.ops import Op
from ...ir.walk import (
    expressions,
    kept,
    locals_defined,
    locals_read,
    locals_updated,
    nodes_in,
    outer_updates,
    walk,
)
from .access import Ranges, Region, distances, loads, region
from .cells import Cells
from .costs import cost_of_nodes
from .inside import exists

__all__ = ["added", "in_lockstep", "lockstep"]

MAX_ACCESSES = 32
"""Accesses of a body that are compared with one another; a body with more is not looked at."""

LONG = 12.0
"""So many operations take so long that sums which wait for one another do not matter."""

NEAR = 64
"""So many lines a value is put off at most."""

Access = tuple[int, Region]
"""The number of a statement, and what it reads or writes."""


def in_lockstep(loop: For, ranges: Ranges) -> bool:
    """Whether doing each statement for all of some successive iterations changes nothing."""
    if loop.step != 1 or not all(_is_plain(stmt) for stmt in loop.body) or outer_updates(loop.body):
        return False
    return _is_in_order(loop, ranges)


def lockstep(loop: For, ranges: Ranges) -> tuple[Sequence[Stmt], For, Sequence[Stmt]] | None:
    """A loop that may go in lockstep, though it is not that kind yet; None where it may not. What is added to
    one cell, or to one local, is accumulated in a local: what is to stand before the loop, and after it."""
    if loop.step != 1 or not all(_is_plain(stmt) for stmt in loop.body):
        return None
    if _work(loop.body) >= LONG:
        loop = replace(loop, body=_with_values_where_put(loop.body))
    before: list[Stmt] = []
    after: list[Stmt] = []
    rest: list[Stmt] = []
    totals: dict[int, Update] = {}
    own, cells = locals_defined(loop.body), Cells(loop, ranges)
    for at, stmt in enumerate(loop.body):
        match stmt:
            case Store(tensor=tensor, index=index, value=value) if (
                found := added(Load(tensor, index), value)
            ) and _is_one_cell(Load(tensor, index), loop, cells, ranges):
                total = Variable(tensor.label, tensor.dtype)
                before.append(Define(total, Load(tensor, index)))
                after.append(Store(tensor, index, Local(total)))
                totals[at] = Update(total, *found)
            case Update(variable=variable, value=value, accum=None) if variable not in own and (
                found := added(Local(variable), value)
            ):
                totals[at] = Update(variable, *found)
            case _:
                rest.append(stmt)
    body = tuple(totals.get(at, stmt) for at, stmt in enumerate(loop.body))
    inner = replace(loop, body=body)
    sums = [total.variable for total in totals.values()]
    if len(set(sums)) < len(sums) or not set(sums).isdisjoint(locals_read(body)):
        return None
    if any(isinstance(stmt, Update) and stmt.variable not in own for stmt in rest):
        return None
    return (before, inner, after) if _is_in_order(inner, ranges) else None


def _work(body: Sequence[Stmt]) -> float:
    return cost_of_nodes(nodes_in(body))


def _with_values_where_put(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """A body in which what only a store or an update reads stands there, if it may be computed so late."""
    times = Counter(locals_read(body))
    changing = locals_updated(body)
    made = {stmt.variable: at for at, stmt in enumerate(body) if isinstance(stmt, Define)}
    out: list[Stmt | None] = list(body)
    for at, stmt in enumerate(body):
        if not isinstance(stmt, (Store, Update)) or not isinstance(stmt.value, Local):
            continue
        variable = stmt.value.variable
        first = made.get(variable, -1)
        if 0 <= first < at <= first + NEAR and times[variable] == 1 and variable not in changing:
            (value,) = expressions(body[first])
            if _may_wait(value, body[first:at]):
                out[first], out[at] = None, replace(stmt, value=value)
    return kept(body, [stmt for stmt in out if stmt is not None])


def _may_wait(value: Expr, lines: Sequence[Stmt]) -> bool:
    """Is nothing that a value follows from changed by these lines?"""
    nodes = list(walk(value))
    changed = locals_updated(lines)
    reads_memory = any(isinstance(node, (Load, Gather)) for node in nodes)
    stores = any(isinstance(stmt, Store) for stmt in lines)
    is_changed = any(isinstance(node, Local) and node.variable in changed for node in nodes)
    return not (is_changed or (reads_memory and stores))


def _is_in_order(loop: For, ranges: Ranges) -> bool:
    """Does each cell still meet all that reads and writes it in the old order?"""
    reads, writes = _accesses(loop.body)
    if len(reads) + len(writes) > MAX_ACCESSES:
        return False
    return all(
        _keeps_order(write, other, is_read, loop.symbol, ranges)
        for write in writes
        for others, is_read in ((reads, True), (writes, False))
        for other in others
    )


def _is_one_cell(cell: Load, loop: For, cells: Cells, ranges: Ranges) -> bool:
    """Is this one cell for all iterations, which is read and written once in each?"""
    if any(position.coefficient(loop.symbol) for position in cell.index) or not cells.is_known(cell.index):
        return False
    if not loop.trips and not exists(cell.tensor, cell.index, ranges):
        return False
    reads = [load for stmt in loop.body for expr in expressions(stmt) for load in loads(expr)]
    writes = [(stmt.tensor, stmt.index) for stmt in loop.body if isinstance(stmt, Store)]
    return all(sum(cells.meet(cell, *access) for access in found) == 1 for found in (reads, writes))


def added(place: Expr, value: Expr) -> tuple[Expr, Op] | None:
    """What is accumulated where this is put to a place, and how."""
    match value:
        case Apply(op=op, args=(first, second)) if op.identity is not None:
            if first == place:
                return second, op
            if second == place and op.commutative:
                return first, op
    return None


def _is_plain(stmt: Stmt) -> bool:
    return isinstance(stmt, (Comment, Define, Store, Update))


def _accesses(body: tuple[Stmt, ...]) -> tuple[list[Access], list[Access]]:
    """What a body reads, and what it writes."""
    reads: list[Access] = []
    writes: list[Access] = []
    for at, stmt in enumerate(body):
        for expr in expressions(stmt):
            reads += ((at, region(tensor, index, {})) for tensor, index in loads(expr))
        if isinstance(stmt, Store):
            writes.append((at, region(stmt.tensor, stmt.index, {})))
    return reads, writes


def _keeps_order(write: Access, other: Access, is_read: bool, symbol: Symbol, ranges: Ranges) -> bool:
    """Whether a write and a read, or a write that is not after it in the body, still meet in each cell in the
    order in which they did."""
    (at, written), (when, touched) = write, other
    if written.tensor.storage is not touched.tensor.storage or (not is_read and when > at):
        return True
    apart = distances(written, touched, (symbol,), ranges)
    if apart is None:
        return True
    least, greatest = apart[symbol]
    if when > at:
        return greatest <= 0
    return least >= 0 and (is_read or when < at or greatest <= 0)
