"""Loops over the columns of a row that read cells in common become one.

    for j in parallel(0, 350):                          a[i, 0] = subtract(b[i + 1, 0], b[i, 0])
        a[i, j] = subtract(b[i + 1, j], b[i, j])        for j in parallel(1, 350):
    for j in parallel(1, 350):                   ->         a[i, j] = subtract(b[i + 1, j], b[i, j])
        c[i, j] = add(b[i, j], a[i, j])                     c[i, j] = add(b[i, j], a[i, j])

Rows that were made by different nests are then loaded once for all that a column takes of them: where the
nearest cache holds them, loops wait for their loads. What a column of one loop takes must be what another
column of the others leaves alone, so that columns stay independent; those that not all of the loops have are
done beside them. Maxwell's equations in the plane take six sevenths of the time so.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import TypeGuard

from ...ir.index import Affine, Symbol
from ...ir.loops import Define, For, LoopKind, Stmt, Store
from ...ir.tensor import Tensor
from ..analysis.access import Range
from ..analysis.carriers import carriers
from ..analysis.copies import copy_body, unless_once
from ..analysis.strides import affine_accesses
from ..analysis.trips import enter

__all__ = ["in_common"]

EDGE = 8
"""A loop may have so many columns more than all have in common. They are done by themselves."""

STREAMS = 12
"""The most cells that a column may touch of joined loops: they are so many streams of memory."""

COLUMN = Symbol("column")
"""Stands for the columns of any loop where their cells are compared."""


def in_common(body: Sequence[Stmt], ranges: dict[Symbol, Range]) -> tuple[Stmt, ...]:
    """What is done in a row, with such neighbouring loops joined; `ranges` are those of the loops around."""
    out: list[Stmt] = []
    loops: list[For] = []
    for stmt in body:
        if not _over_columns(stmt):
            out += [*_joined(loops), stmt]
            loops = []
        elif _may_join(loops, stmt, ranges):
            loops.append(stmt)
        else:
            out += _joined(loops)
            loops = [stmt]
    return (*out, *_joined(loops))


def _over_columns(stmt: Stmt) -> TypeGuard[For]:
    """Is this a loop, known before it runs, over columns that are computed one by one?"""
    return (
        isinstance(stmt, For)
        and stmt.kind is LoopKind.PARALLEL
        and stmt.step == 1
        and stmt.lo.is_constant
        and stmt.hi.is_constant
        and all(isinstance(inner, (Define, Store)) for inner in stmt.body)
    )


def _may_join(loops: Sequence[For], loop: For, ranges: dict[Symbol, Range]) -> bool:
    """Does a loop touch what these do, in mostly the same columns, and no column what another one makes?"""
    cells, own = _cells(loops), _cells((loop,))
    if cells.isdisjoint(own) or len(cells | own) > STREAMS:
        return False
    both = (*loops, loop)
    lo, hi = _shared(both)
    first, last = min(one.lo.constant for one in both), max(one.hi.constant for one in both)
    if lo >= hi or max(lo - first, last - hi) > EDGE:
        return False
    whole = _one(both, first, last)
    enter(whole, ranges)
    return carriers(whole, ranges) == frozenset()


def _cells(loops: Sequence[For]) -> set[tuple[Tensor, tuple[Affine, ...]]]:
    """The cells that one column of the loops touches."""
    return {
        (tensor, tuple(at.substitute({loop.symbol: Affine.of(COLUMN)}) for at in index))
        for loop in loops
        for tensor, index, _ in affine_accesses(loop.body)
    }


def _shared(loops: Sequence[For]) -> tuple[int, int]:
    """From which column on all loops have them, and before which."""
    return max(loop.lo.constant for loop in loops), min(loop.hi.constant for loop in loops)


def _one(loops: Sequence[For], lo: int, hi: int) -> For:
    """What the loops do, as one over these columns."""
    column = Symbol(loops[0].symbol.hint)
    parts = (copy_body(loop.body, {loop.symbol: Affine.of(column)}, {}) for loop in loops)
    return For(column, Affine.of(lo), Affine.of(hi), tuple(chain.from_iterable(parts)), LoopKind.PARALLEL)


def _joined(loops: Sequence[For]) -> Sequence[Stmt]:
    """The loops as one over the columns that all of them have, and the others before and after it."""
    if len(loops) < 2:
        return loops
    lo, hi = _shared(loops)
    return (
        *(stmt for loop in loops for stmt in _part(loop, loop.lo.constant, lo)),
        *unless_once(_one(loops, lo, hi)),
        *(stmt for loop in loops for stmt in _part(loop, hi, loop.hi.constant)),
    )


def _part(loop: For, lo: int, hi: int) -> Sequence[Stmt]:
    return unless_once(_one((loop,), lo, hi)) if lo < hi else ()
