"""widen: a thread of a GPU takes neighbours, and reads and writes them at once.

    for i in grid(0, 4000, lanes=256):          for w in grid(0, 1000, lanes=256):
        y[i] = add(x[i], f32(1.0))      ->          for l in vector(0, 4, lanes=4):
                                                        y[4*w + l] = add(x[4*w + l], f32(1.0))

That is done where there is work enough for threads that each do more, and memory lies along the grid. Where
the number of iterations is no multiple, the last thread takes what is left one by one.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...ir.code import Caps, GpuCaps
from ...ir.conditions import compare
from ...ir.expr import Index
from ...ir.index import Affine, Symbol
from ...ir.loops import Bind, Define, For, If, Kernel, LoopKind, Stmt, Store, Update, While, walk_statements
from ...ir.walk import expressions, rewrite_loops, substitute_statements
from ..analysis.access import loads
from ..analysis.copies import copy_body
from ..analysis.strides import NEIGHBOURS, stride

__all__ = ["widen"]


def widen(kernel: Kernel, caps: Caps) -> Kernel:
    """The kernel with wide accesses in grids that walk along memory."""
    gpu = caps.gpu
    if gpu is None:
        return kernel

    def widened(loop: For) -> Sequence[For] | None:
        return (_widened(loop, gpu),) if loop.kind is LoopKind.GRID else None

    return kernel.with_body(rewrite_loops(kernel.body, widened))


def _widened(grid: For, gpu: GpuCaps) -> For:
    lanes = _lanes(grid, gpu)
    trips = grid.trips
    if lanes < 2 or trips is None or trips < lanes * gpu.busy_threads:
        return grid
    wide, lane, rest = Symbol("w"), Symbol("l"), Symbol("l")
    start = grid.lo + Affine.of(wide) * lanes
    body = substitute_statements(grid.body, {grid.symbol: start + lane})
    inner: Stmt = For(lane, Affine.of(0), Affine.of(lanes), body, LoopKind.VECTOR, lanes=lanes)
    if trips % lanes:
        fits = compare("less_equal", Index(start + lanes), Index(grid.hi))
        alone = copy_body(grid.body, {grid.symbol: Affine.of(rest)}, {})
        inner = If(fits, (inner,), (For(rest, start, grid.hi, alone),))
    return For(wide, Affine.of(0), Affine.of(-(-trips // lanes)), (inner,), LoopKind.GRID, lanes=grid.lanes)


def _lanes(grid: For, gpu: GpuCaps) -> int:
    """How many neighbours a thread may take; 1 where it must not take several."""
    stores = [stmt for stmt in grid.body if isinstance(stmt, Store)]
    nested = [stmt for stmt in walk_statements(grid.body) if isinstance(stmt, (For, While, Bind))]
    accumulates = any(store.accum is not None for store in stores)
    if grid.lanes == 1 or grid.step != 1 or nested or not stores or accumulates:
        return 1
    if any(stride(store.tensor, store.index, grid.symbol) != 1 for store in stores):
        return 1
    written: dict[object, tuple[Affine, ...]] = {}
    for stmt in grid.body:
        inside = list(walk_statements((stmt,)))
        for inner in inside:
            for expr in expressions(inner):
                if any(tensor.storage in written for tensor, _ in loads(expr)):
                    return 1
        if isinstance(stmt, Store):
            if stmt.tensor.storage in written:
                return 1
            written[stmt.tensor.storage] = stmt.index
        elif not isinstance(stmt, (Define, Update, If)) or any(isinstance(i, Store) for i in inside):
            return 1
    widest = max(store.tensor.dtype.itemsize for store in stores)
    return min(NEIGHBOURS, gpu.access_bytes // widest)
