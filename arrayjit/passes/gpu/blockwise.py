"""Statements as the threads of one block run them, together.

    m = -inf                                    m = -inf
    for j in parallel(0, 1000):                 for j in block(0, 1000, lanes=256):
        m = maximum(m, x[j])          ->            m = maximum(m, x[j])
    y[0] = m                                    for t in block(0, 1, lanes=256):
    for j in parallel(0, 1000):                     y[0] = m
        z[j] = subtract(x[j], m)                for j in block(0, 1000, lanes=256):
                                                    z[j] = subtract(x[j], m)

Independent iterations are dealt out to the threads. What stands outside of such loops every thread computes
for itself, with the same result, so that all take the same branches; only what is stored is stored by one. So
any program can be run by a block; one without independent iterations is left to a single thread.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ...frozen import slotted
from ...ir.code import GpuCaps
from ...ir.index import Affine, Symbol
from ...ir.loops import Fill, For, LoopKind, Raise, Stmt, Store, While, walk_statements
from ...ir.walk import rewrite_bodies
from ..analysis.access import Range
from ..analysis.copies import each_cell
from ..analysis.trips import enter
from .nests import accumulated, flat, nest_of, width

__all__ = ["FEW", "MOST_THREADS", "block_of", "threads_for"]

FEW = 8
"""So few iterations are not worth a second thread."""

MOST_THREADS = 512
"""A thread of more would have fewer than 128 registers."""


def threads_for(iterations: int, gpu: GpuCaps) -> int:
    """How many threads take so many iterations that are independent: one, or whole warps."""
    if iterations < FEW:
        return 1
    threads = gpu.warp
    while threads < min(iterations, MOST_THREADS, gpu.block_threads):
        threads *= 2
    return threads


def block_of(body: tuple[Stmt, ...], threads: int, ranges: dict[Symbol, Range]) -> tuple[Stmt, ...]:
    """The statements for a block of so many threads."""
    return body if threads == 1 else _Block(threads, ranges).body(body)


@slotted
class _Block:
    """`ranges` has the values of the symbols around."""

    threads: int
    ranges: dict[Symbol, Range]

    def body(self, body: Iterable[Stmt]) -> tuple[Stmt, ...]:
        out: list[Stmt] = []
        alone: list[Stmt] = []  # what one thread stores
        for stmt in body:
            if isinstance(stmt, Store) or (isinstance(stmt, For) and self.is_for_one(stmt)):
                alone.append(stmt)
                continue
            out.extend(self.by_one(alone))
            out.append(self.statement(stmt))
        return (*out, *self.by_one(alone))

    def by_one(self, stores: list[Stmt]) -> list[Stmt]:
        if not stores:
            return []
        once = For(Symbol("t", lower=0, upper=1), Affine.of(0), Affine.of(1), tuple(stores),
                   LoopKind.BLOCK, lanes=self.threads)  # fmt: skip
        stores.clear()
        return [once]

    def is_for_one(self, loop: For) -> bool:
        """Is a loop best left to one thread? It hands nothing on but memory, and no two can take it
        together."""
        if loop.kind is LoopKind.PARALLEL or width((loop,), self.ranges) >= FEW or accumulated(loop) != ():
            return False
        return not any(isinstance(stmt, (Raise, While)) for stmt in walk_statements(loop.body))

    def statement(self, stmt: Stmt) -> Stmt:
        match stmt:
            case For():
                enter(stmt, self.ranges)
                return self.loop(stmt)
            case Fill():
                return self.dealt(_cells(stmt))
            case _:
                return rewrite_bodies(stmt, self.body)

    def loop(self, loop: For) -> Stmt:
        """The loop's iterations dealt out, or taken in order by all threads together."""
        if loop.kind is LoopKind.PARALLEL and accumulated(loop) is not None:
            nest = nest_of(loop)
            points = nest.points(self.ranges)
            if points >= self.threads // 2 or points >= width(nest.body, self.ranges):
                return self.dealt(flat(nest))
        return replace(loop, body=self.body(loop.body), kind=LoopKind.SEQUENTIAL)

    def dealt(self, loop: For) -> For:
        return replace(loop, kind=LoopKind.BLOCK, lanes=self.threads)


def _cells(fill: Fill) -> For:
    """A filled tensor, cell by cell."""
    tensor = fill.tensor
    loop = each_cell(tensor, lambda cell: Store(tensor, cell, fill.value, fill.loc))
    assert isinstance(loop, For), f"{tensor} has no axes, and is filled"
    return flat(nest_of(loop))
