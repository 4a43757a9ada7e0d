"""triple: sums of two or three columns are formed in one loop.

    for c in parallel(0, 3):                            s, s1, s2 = 0.0, 0.0, 0.0
        s = 0.0                                         for j in parallel(0, 400):
        for j in parallel(0, 400):                          s = reduce(add, s, multiply(f[j], x[j, 0]))
            t = multiply(f[j], x[j, c])         ->          s1 = reduce(add, s1, multiply(f[j], x[j, 1]))
            s = reduce(add, s, t)                           s2 = reduce(add, s2, multiply(f[j], x[j, 2]))
        y[c] = s                                        y[0] = s
                                                        ...

Coordinates lie beside one another: they are read together, and so is what all sums need. If another loop has
just made that, as the strengths of forces, the sums join it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ...ir.loops import Define, For, LoopKind, Stmt, Store, Update
from ..analysis.copies import interleaved
from ..analysis.loopwise import Site, loopwise
from ..analysis.repeats import weight
from ..analysis.strides import affine_accesses, parallel_nest, stride

__all__ = ["triple"]

COLUMNS = (2, 3)

FEWEST = 32
"""So many terms are worth it."""

MOST_OPERATIONS = 64
"""The most operations that the terms of all sums take."""


@loopwise
def triple(loop: For, site: Site) -> Sequence[Stmt] | None:
    """Every such loop over columns in the loop over the terms."""
    if not _is_over_columns(loop):
        return None
    return interleaved(loop.body, loop.symbol, loop.lo, loop.trips or 0)


def _is_over_columns(loop: For) -> bool:
    """Does a loop form a sum for each of a few columns that lie beside one another?"""
    is_short = loop.kind is LoopKind.PARALLEL and loop.step == 1 and loop.trips in COLUMNS
    if not is_short or not loop.lo.is_constant:
        return False
    if not all(isinstance(stmt, (Define, For, Store)) for stmt in loop.body):
        return False
    inner = [stmt for stmt in loop.body if isinstance(stmt, For)]
    nest = parallel_nest(inner[0]) if len(inner) == 1 else []
    return bool(nest) and _are_terms(nest, loop)


def _are_terms(nest: Sequence[For], columns: For) -> bool:
    """Does a nest add up many terms, and go through memory column by column?"""
    terms = nest[-1]
    if not all(isinstance(stmt, (Define, Update)) for stmt in terms.body):
        return False
    if any(isinstance(stmt, Update) and (stmt.accum is None or stmt.contract) for stmt in terms.body):
        return False
    if any(columns.symbol in loop.bound_by for loop in nest):
        return False
    few = math.prod(FEWEST if loop.trips is None else loop.trips for loop in nest) < FEWEST
    if few or (columns.trips or 0) * weight(terms.body) > MOST_OPERATIONS:
        return False
    return any(
        stride(tensor, index, columns.symbol) == 1 and stride(tensor, index, terms.symbol) == columns.trips
        for tensor, index, _ in affine_accesses(terms.body)
    )
