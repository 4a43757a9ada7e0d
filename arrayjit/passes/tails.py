"""tails: what is left of a vector loop is one more vector, which overlaps the one before it.

    for i in vector(0, 100, lanes=16):          for i in vector(0, 96, lanes=16):
        y[i] = sqrt(x[i])                ->         y[i] = sqrt(x[i])
                                                for i in vector(84, 100, lanes=16):
                                                    y[i] = sqrt(x[i])

The last cells are computed twice, to the same values, instead of one by one. That needs a body that
reads nothing it writes and adds up nothing. A long body is not written twice; a loop around it takes the
one span, then the other:

    for again in sequential(0, 2):
        for i in vector(84*again, 4*again + 96, lanes=16):
            ...
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from ..ir.code import Caps
from ..ir.expr import Apply, Variable
from ..ir.index import Affine, Symbol
from ..ir.loops import Define, For, Kernel, LoopKind, Stmt, Store, Update, bypasses, walk_statements
from ..ir.walk import expressions, kept, rewrite_bodies, walk
from .access import reads
from .copies import copy_body

__all__ = ["may_repeat", "tails", "weight"]

HEAVY = 32
"""Operations in a body beyond which a second copy takes longer to compile than it saves."""


def tails(kernel: Kernel, caps: Caps) -> Kernel:
    """Every vector loop that may repeat iterations made of whole vectors."""
    return kernel.with_body(_body(kernel.body))


def may_repeat(body: tuple[Stmt, ...], sums: Collection[Variable] = ()) -> bool:
    """Does running an iteration again change nothing, apart from what it adds to `sums`?"""
    inside = list(walk_statements(body))
    own = {*sums, *(stmt.variable for stmt in inside if isinstance(stmt, Define))}
    if any(isinstance(stmt, Update) and stmt.variable not in own for stmt in inside):
        return False
    written = {stmt.tensor.storage for stmt in inside if isinstance(stmt, Store)}
    return not any(tensor.storage in written for stmt in inside for tensor, _ in reads(stmt))


def _body(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    out: list[Stmt] = []
    for stmt in body:
        stmt = rewrite_bodies(stmt, _body)
        out.extend(_whole(stmt) if isinstance(stmt, For) else [stmt])
    return kept(body, out)


def _whole(loop: For) -> Sequence[Stmt]:
    if loop.kind is not LoopKind.VECTOR or loop.trips is None or loop.trips <= loop.lanes:
        return [loop]
    left = loop.trips % loop.lanes
    if not left or not may_repeat(loop.body) or bypasses(loop.body):
        return [loop]
    if weight(loop.body) > HEAVY:
        return [_in_two_spans(loop, left)]
    last = replace(loop, lo=loop.hi - loop.lanes)
    return [replace(loop, hi=loop.hi - left), *copy_body((last,), {}, {})]


def weight(body: tuple[Stmt, ...]) -> int:
    """The number of operations in a body."""
    nodes = (node for stmt in walk_statements(body) for expr in expressions(stmt) for node in walk(expr))
    return sum(isinstance(node, Apply) for node in nodes)


def _in_two_spans(loop: For, left: int) -> For:
    """One text for both: the second time it starts a vector before the end."""
    assert loop.trips is not None
    again = Symbol("again")
    lo = loop.lo + Affine.of(again) * (loop.trips - loop.lanes)
    hi = loop.hi - left + Affine.of(again) * left
    return For(again, Affine.of(0), Affine.of(2), (replace(loop, lo=lo, hi=hi),))
