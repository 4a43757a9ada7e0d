"""braid: rows of which each is one chain of steps go several at a time.

    for i in parallel(0, 300):                      for b in parallel(0, 75):
        s = 0.0                                         s, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
        for j in sequential(0, 300):                    for j in sequential(0, 300):
            s = add(s, x[i, j])             ->              s = add(s, x[4*b, j])
            y[i, j] = s                                     y[4*b, j] = s
                                                            s1 = add(s1, x[4*b + 1, j])
                                                            ...

A step waits for the one before it, and the next row is too far ahead to be seen by the processor; steps of
other rows need not wait. Rows that lie in memory as rows would have to be turned for vectors. Moving averages
of each row take 0.3 of the time, running products and extremes 0.5.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ...ir.code import Caps
from ...ir.expr import Apply
from ...ir.index import Affine, Symbol
from ...ir.loops import Comment, Define, For, Kernel, LoopKind, Stmt, Store, Update, walk_statements
from ...ir.ops import is_of_library
from ...ir.walk import expressions, rewrite_loops, walk
from ..analysis.access import Range
from ..analysis.copies import copy_body, interleaved
from ..analysis.trips import enter
from .broaden import CROWDED, innermost, is_seen, kept_values, waits, works

__all__ = ["braid"]

MOST = 4
"""So many rows at a time."""

FEWEST = 2 * MOST
"""So many rows are worth it, for each thread."""

GAIN = 1.25
"""So much faster rows must become each time that they are doubled."""

LARGE = 64
"""The most statements of several rows: more take long to compile."""


def braid(kernel: Kernel, caps: Caps) -> Kernel:
    """Every such loop over rows in blocks of several."""
    ranges: dict[Symbol, Range] = {}
    notes: list[str] = []

    def together(loop: For) -> Sequence[Stmt] | None:
        enter(loop, ranges)
        if (loop.trips or 0) < FEWEST * caps.threads or not _may_go_together(loop):
            return None
        rows = _rows(loop, ranges, caps)
        if rows == 1:
            return None
        notes.append(
            f"braid: {rows} rows of {loop.symbol.hint} go together, since their steps wait for one another"
        )
        return _in_blocks(loop, rows)

    return kernel.with_body(rewrite_loops(kernel.body, together), notes)


def _may_go_together(loop: For) -> bool:
    """Is it a loop over independent rows, each of plain steps in order, of which all have as many?"""
    if loop.kind is not LoopKind.PARALLEL or loop.step != 1:
        return False
    inside = list(walk_statements(loop.body))
    if not all(isinstance(stmt, (Comment, Define, For, Store, Update)) for stmt in inside):
        return False
    loops = [stmt for stmt in inside if isinstance(stmt, For)]
    if any(inner.kind is not LoopKind.SEQUENTIAL or inner.lanes > 1 for inner in loops):
        return False
    if any(loop.symbol in (*inner.lo.symbols, *inner.hi.symbols) for inner in loops):
        return False
    own = {stmt.variable for stmt in inside if isinstance(stmt, Define)}
    if any(isinstance(stmt, Update) and stmt.variable not in own for stmt in inside):
        return False
    nodes = (node for stmt in inside for expr in expressions(stmt) for node in walk(expr))
    return not any(isinstance(node, Apply) and (node.op.apart or is_of_library(node.op)) for node in nodes)


def _rows(loop: For, ranges: dict[Symbol, Range], caps: Caps) -> int:
    """How many rows go fastest."""
    inner = list(innermost(loop.body))
    long = [steps for steps in inner if not is_seen(steps, ranges)]
    rows = 1
    while long and rows < MOST:
        if 2 * rows * sum(1 for _ in walk_statements(loop.body)) > LARGE:
            break
        if any(waits(steps) < GAIN * rows * works(steps) for steps in long):
            break
        if any(2 * rows * kept_values(steps) > CROWDED * caps.registers for steps in long):
            break
        rows *= 2
    return rows


def _in_blocks(loop: For, rows: int) -> list[Stmt]:
    """So many rows at a time, and those that are left."""
    assert loop.trips is not None
    block = Symbol(loop.symbol.hint)
    count, left = divmod(loop.trips, rows)
    body = interleaved(loop.body, loop.symbol, loop.lo + Affine.of(block) * rows, rows)
    blocks = For(block, Affine.of(0), Affine.of(count), body, LoopKind.PARALLEL)
    rest = copy_body((replace(loop, lo=loop.hi - left),), {}, {}) if left else ()
    return [blocks, *rest]
