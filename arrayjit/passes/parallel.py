"""parallel: loops of the user's whose iterations need nothing of one another may be taken in any order.

    for k in sequential(0, 120):                    for k in parallel(0, 120):
        p = 0.0                                         p = 0.0
        for i in parallel(0, 150):          ->          for i in parallel(0, 150):
            p = fma(q[i], a[i, k], p)                       p = fma(q[i], a[i, k], p)
        r[k] = p                                        r[k] = p

Then the passes that follow are free to vectorise or interleave them, here along the rows of `a`. An iteration
must write only cells that no other one touches, and no local that it has not made.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product

from ..ir.code import Caps
from ..ir.index import Symbol
from ..ir.loops import For, Kernel, LoopKind, Stmt
from ..ir.tensor import Tensor
from ..ir.walk import kept, rewrite_bodies
from .access import Range, Ranges, distances, effects
from .trips import enter

__all__ = ["carriers", "parallel"]

MAX_REGIONS = 64
"""Places of one array that are compared with one another; a loop that goes to more stays as it is."""


def parallel(kernel: Kernel, caps: Caps) -> Kernel:
    """The kernel with every independent loop parallel."""
    ranges: dict[Symbol, Range] = {}

    def visit(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        return kept(body, [statement(stmt) for stmt in body])

    def statement(stmt: Stmt) -> Stmt:
        if isinstance(stmt, For):
            enter(stmt, ranges)
            if stmt.kind is LoopKind.SEQUENTIAL and carriers(stmt, ranges) == frozenset():
                stmt = _upwards(stmt)
        return rewrite_bodies(stmt, visit)

    return kernel.with_body(visit(kernel.body))


def carriers(loop: For, ranges: Ranges) -> frozenset[Tensor] | None:
    """The storages by which an iteration may disturb another one; None if there is more than memory to it."""
    found = effects(loop.body, ranges)
    if found.leaves or found.updates:
        return None
    disturbed = set()
    for storage, written in found.writes.items():
        touched = {**written, **found.reads.get(storage, {})}
        if len(touched) > MAX_REGIONS or any(
            apart is not None and apart[loop.symbol] != (0, 0)
            for one, other in product(written, touched)
            for apart in (distances(one, other, (loop.symbol,), ranges),)
        ):
            disturbed.add(storage)
    return frozenset(disturbed)


def _upwards(loop: For) -> For:
    """The loop as a parallel one; one that counts down may count up as well."""
    if loop.step == -1:
        loop = replace(loop, lo=loop.hi + 1, hi=loop.lo + 1, step=1)
    return replace(loop, kind=LoopKind.PARALLEL)
