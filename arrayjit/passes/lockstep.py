"""May the iterations of a sequential loop go through its body side by side?

    for i in sequential(0, 999):
        x[i] = add(x[i + 1], y[i])

An iteration here reads what a later one overwrites. If some successive iterations do the first statement,
then all the second one and so on, and the next few follow, every cell still is read and written in the old
order.
"""

from __future__ import annotations

from ..ir.index import Symbol
from ..ir.loops import Comment, Define, For, Stmt, Store, Update
from ..ir.walk import expressions
from .access import Ranges, Region, distances, loads, region

__all__ = ["in_lockstep"]

MAX_ACCESSES = 32
"""Accesses of a body that are compared with one another; a body with more is not looked at."""

Access = tuple[int, Region]
"""The number of a statement, and what it reads or writes."""


def in_lockstep(loop: For, ranges: Ranges) -> bool:
    """Whether doing each statement for all of some successive iterations changes nothing."""
    own = {stmt.variable for stmt in loop.body if isinstance(stmt, Define)}
    if loop.step != 1 or not all(_is_plain(stmt) for stmt in loop.body):
        return False
    if any(isinstance(stmt, Update) and stmt.variable not in own for stmt in loop.body):
        return False
    reads, writes = _accesses(loop.body)
    if len(reads) + len(writes) > MAX_ACCESSES:
        return False
    return all(
        _keeps_order(write, other, is_read, loop.symbol, ranges)
        for write in writes
        for others, is_read in ((reads, True), (writes, False))
        for other in others
    )


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
