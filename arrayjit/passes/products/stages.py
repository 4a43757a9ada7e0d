"""Few rows that only the run counts: a product for each of some ranges of their number.

    for i in parallel(0, n):                    if n < 5:
        for j in parallel(0, 256):                  some: index[2, 5] = n
            ...                         ->          for i in parallel(0, some):
                                                        ...
                                                else:
                                                    some1: index[5, 9] = n
                                                    for i in parallel(0, some1):
                                                        ...

Slivers that overlap have as many rows as there are at least. In each range rows are one sliver, in which the
last row may stand again: what few rows take is to load the columns, so of 256 x 256 float32 eight rows take
0.17 of the time, and 2 to 16 rows 1.0 to 1.3 of that of code for their number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import pairwise

from ...ir.conditions import compare
from ...ir.dtype import I64
from ...ir.expr import Const, Index
from ...ir.index import Affine, Symbol
from ...ir.loops import Bind, For, If, Stmt
from ...ir.walk import rewrite_bodies
from ..analysis.copies import copy_body
from ..analysis.trips import extent
from .products import Product

__all__ = ["in_stages"]

STARTS = (2, 5, 9, 13)
"""From so many rows on slivers are higher."""


def in_stages(
    nest: For, product: Product, blocked: Callable[[For], Iterable[Stmt] | None]
) -> tuple[Stmt, ...] | None:
    """What a nest becomes that is such a product, where `blocked` makes the product of each range; None if it
    makes none, rows and columns are known or many, or both are few, each in its own way."""
    few = [loop for loop in (product.rows, product.columns) if loop.trips is None and _is_few(loop)]
    lengths = [loop.hi - loop.lo for loop in few]
    if not few or any(length != lengths[0] for length in lengths):
        return None
    least, most = extent(few[0]) or (0, 0)
    starts = [start for start in STARTS if least < start <= most]
    return _stages(nest, lengths[0], [least, *starts, most + 1], blocked)


def _is_few(loop: For) -> bool:
    least, most = extent(loop) or (0, 0)
    return any(least < start <= most for start in STARTS)


def _stages(
    nest: For, length: Affine, ends: list[int], blocked: Callable[[For], Iterable[Stmt] | None]
) -> tuple[Stmt, ...] | None:
    out: tuple[Stmt, ...] = ()
    is_any = False
    for lower, upper in pairwise(ends):
        some = Symbol("some", lower=lower, upper=upper)
        part = _of_length(copy_body((nest,), {}, {})[0], length, some)
        assert isinstance(part, For)
        made = blocked(part)
        is_any |= made is not None
        stage = (Bind(some, Index(length)), *(made or (part,)))
        is_less = compare("less", Index(length), Const(lower, I64))
        out = (If(is_less, out, stage),) if out else stage
    return out if is_any else None


def _of_length(stmt: Stmt, length: Affine, symbol: Symbol) -> Stmt:
    """The statement with loops of a length as long as a symbol says."""
    stmt = rewrite_bodies(stmt, lambda body: tuple(_of_length(inner, length, symbol) for inner in body))
    if isinstance(stmt, For) and stmt.hi - stmt.lo == length:
        return replace(stmt, hi=stmt.lo + symbol)
    return stmt
