"""beside: lanes that go through a few neighbours each, one by one, take them all together.

    for j in vector(0, 300, lanes=32):              for j in vector(0, 300, lanes=32):
        s = 0.0                                         d = subtract(x[i, 0], x[j, 0])
        for k in sequential(0, 3):                      d1 = subtract(x[i, 1], x[j, 1])
            d = subtract(x[i, k], x[j, k])      ->      d2 = subtract(x[i, 2], x[j, 2])
            s = reduce(add, s, multiply(d, d))          s = 0.0
                                                        s = reduce(add, s, multiply(d, d))
                                                        ...

Points, colours and small vectors lie one after the other, so that what lanes read of one axis lies a few
cells apart, to be gathered cell by cell. Written out, the loop over the axes reads whole groups of cells:
vectors that are loaded together and taken apart in registers. Every sum has its order of before.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from ...ir.code import Caps
from ...ir.index import Symbol
from ...ir.loops import Bind, Comment, Define, For, Kernel, LoopKind, Stmt, Store, Update
from ...ir.tensor import GROUPS
from ...ir.walk import kept, rewrite_bodies
from ..analysis.copies import one_by_one
from ..analysis.repeats import weight
from ..analysis.strides import affine_accesses, stride
from ..bodies.simplify import simplify

__all__ = ["MOST_OPERATIONS", "beside"]

MOST_OPERATIONS = 64
"""The most operations that a loop becomes."""


def beside(kernel: Kernel, caps: Caps) -> Kernel:
    """Every such loop in a vector loop written out."""
    body = _body(kernel.body, None)
    return kernel if body is kernel.body else simplify(kernel.with_body(body), caps)


def _body(body: tuple[Stmt, ...], lanes: Symbol | None) -> tuple[Stmt, ...]:
    """A body in which such loops are written out; `lanes` is what the vector loop around it counts by."""
    return kept(body, [new for stmt in body for new in _statement(stmt, lanes)])


def _statement(stmt: Stmt, lanes: Symbol | None) -> Iterator[Stmt]:
    if isinstance(stmt, For):
        if lanes is not None and _is_over_neighbours(stmt, lanes):
            yield from one_by_one(stmt)
            return
        lanes = stmt.symbol if stmt.kind is LoopKind.VECTOR else lanes
    yield rewrite_bodies(stmt, partial(_body, lanes=lanes))


def _is_over_neighbours(loop: For, lanes: Symbol) -> bool:
    """Does a loop in order go through the few cells that lie between those of two lanes?"""
    trips = loop.trips or 0
    is_short = loop.kind is LoopKind.SEQUENTIAL and loop.step == 1 and trips in GROUPS
    if not is_short or not loop.lo.is_constant or trips * weight(loop.body) > MOST_OPERATIONS:
        return False
    if not all(isinstance(stmt, (Bind, Comment, Define, Store, Update)) for stmt in loop.body):
        return False
    return any(
        (step := stride(tensor, index, lanes)) in GROUPS and step >= trips
        for tensor, index, _ in affine_accesses(loop.body)
        if stride(tensor, index, loop.symbol) == 1
    )
