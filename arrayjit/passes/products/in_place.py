"""Products of few rows whose columns lie term by term, as those of `x @ w.T` do.

    for s in parallel(0, 3):
        for l in vector(0, 32, lanes=32):
            c, c1, ... = 0.0, 0.0, ...
            for k in sequential(0, 784, 4):
                for u in unrolled(0, 4):
                    t = w[32*s + l, k + u]
                    c = fma(x[0, k + u], t, c)
                    c1 = fma(x[1, k + u], t, c1)  ...

Where one sliver has all rows nothing is read again, so nothing is copied: a few terms of each column of a
panel are transposed in registers where they are multiplied.
"""

from __future__ import annotations

from ...ir.code import Caps
from ...ir.expr import Load, dtype_of
from ...ir.loops import For
from ..analysis.strides import places, stride
from .cuts import Blocking
from .depths import UNROLL
from .products import Product, Sum

__all__ = ["MOST_ROWS", "columns_in_place", "is_run", "is_vector", "step_in"]

MOST_ROWS = 12
"""The rows of a sliver at most: each is a stream of its own."""

PART = 16
"""Bytes that registers interleave with others."""


def columns_in_place(product: Product, caps: Caps) -> Blocking | None:
    """How to cut a product of few rows whose columns lie term by term, for a processor that transposes. A
    panel has the columns of two vectors, or of one, if lines of more push one another out. On Zen 5, `x @
    w.T` of 2 to 12 rows, 784 terms and 100 columns takes 0.45 to 0.7 of the time; of 4 rows, 2000 terms and
    1000 columns 0.46 in float32, 0.8 in float64. `x @ w` of 1000 rows, 784 terms and 4 columns takes 0.5."""
    rows, columns = product.height, min(product.least[1], product.width)
    if not caps.transposes or product.within is not None or not 2 <= rows <= MOST_ROWS:
        return None
    size = max(total.variable.dtype.itemsize for total in product.sums)
    if not all(
        _may_read(total, product.rows, rows, caps) and _may_interleave(total, size) for total in product.sums
    ):
        return None
    lanes = caps.vector_bytes // size
    steps = [step_in(total.right, product.columns) or 0 for total in product.sums]
    stay = min(places(step * size, caps) for step in steps)
    widest = min(columns, 2 * lanes if 2 * lanes <= stay else lanes)
    width = 1 << widest.bit_length() - 1
    if width < UNROLL:
        return None
    depth = max(total.depth for total in product.sums)
    return Blocking(rows, width, depth, 1, 1, None, False, False)


def _may_read(total: Sum, rows: For, height: int, caps: Caps) -> bool:
    """May rows be read where they lie: term by term, or side by side or at all in a cache that holds them?"""
    if not isinstance(total.left, Load):
        return False
    near = caps.l2_bytes if is_vector(total.left, rows) else caps.l1_bytes
    return is_run(total) or total.depth * height * total.left.tensor.dtype.itemsize <= near


def _may_interleave(total: Sum, size: int) -> bool:
    """Are the terms that are added between two tests a part of a register, or several, in a column?"""
    right, last = total.right, total.terms[-1]
    return (
        isinstance(right, Load)
        and dtype_of(right).itemsize == size
        and UNROLL * size >= PART
        and (last.trips or 0) >= UNROLL
        and stride(right.tensor, right.index, last.symbol) == 1
    )


def is_run(total: Sum) -> bool:
    """Does a row's factor lie term by term?"""
    left, last = total.left, total.terms[-1]
    return isinstance(left, Load) and stride(left.tensor, left.index, last.symbol) in (1, -1)


def is_vector(factor: object, loop: For) -> bool:
    """Can a factor be read in place, a vector of columns, or neighbouring rows, at a time?"""
    return step_in(factor, loop) == 1


def step_in(factor: object, loop: For) -> int | None:
    """How far a loop goes in memory from one cell that it reads to the next."""
    return stride(factor.tensor, factor.index, loop.symbol) if isinstance(factor, Load) else None
