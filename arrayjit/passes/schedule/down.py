"""down: rows that are gone through again and again are gone through for a few columns at a time.

    for k in sequential(0, 70):                             for j in parallel(0, 80):
        for j in parallel(0, 80):                               for k in sequential(0, 70):
            t = b[k, j]                                             t = b[k, j]
            for i in parallel(0, k):                                s = 0.0
                c[i, j] = c[i, j] + t * a[k, i]         ->          for i in parallel(0, k):
            s = 0.0                                                     c[i, j] = c[i, j] + t * a[k, i]
            for l in parallel(0, k):                                    s = reduce(add, s, b[i, j] * a[k, i])
                s = reduce(add, s, b[l, j] * a[k, l])               c[k, j] = s
            c[k, j] = s

What the steps of a loop hand on stays within a column here, so all steps may be done for one column before
the next. A vector's columns of all rows are in a near cache then, from which each step takes them again,
where whole rows are not. Loops of a step that read the same numbers go through their rows together: each sum
still takes its terms in order, and a few steps may go as one (`trapezoid`). A product with a symmetric
matrix, of which half is stored, takes 0.25 to 0.3 of the time so, whichever cache holds it.

    for k in sequential(0, 70):                             for j in parallel(0, 80):
        for i in parallel(0, k):                                for k in sequential(0, 70):
            for j in parallel(0, 80):               ->              for i in parallel(0, k):
                c[i, j] = c[i, j] + b[k, j] * a[k, i]                   c[i, j] = c[i, j] + b[k, j] * a[k, i]

Steps that change cells which the first cache does not hold go down likewise, if a few of them may then take
turns at each cell (`trapezoid`): 0.25 to 0.5 of the time.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from ...ir.code import Caps
from ...ir.expr import Load, Variable
from ...ir.index import Affine
from ...ir.loops import (
    Comment,
    Define,
    For,
    LoopKind,
    Stmt,
    Store,
    Update,
    walk_statements,
    written_in,
)
from ...ir.tensor import Tensor
from ...ir.walk import (
    locals_defined,
    locals_updated,
    locals_used,
    nodes_in,
    substitute_statements,
)
from ..analysis.loopwise import Site, loopwise
from ..analysis.strides import affine_accesses, gathered, has_own_axis, stride

__all__ = ["down"]

VECTORS = 2
"""The registers of columns that go together."""

ALIKE = 1024
"""Rows that are multiples of so many bytes apart share few places of the caches."""


@loopwise
def down(loop: For, site: Site) -> Sequence[Stmt] | None:
    """Every loop over steps whose columns have nothing to do with one another inside that over columns."""
    rows = loop.body[0] if len(loop.body) == 1 else None
    if not isinstance(rows, For):
        return None
    for columns, pays in ((rows, _is_nearer), (_columns_first(rows), _takes_turns)):
        if columns is not None and _may_turn(loop, columns) and pays(loop, columns, site.caps):
            site.notes.append(f"down: loop {loop.symbol.hint} goes to its end for a few columns at a time")
            return (replace(columns, body=(replace(loop, body=_together(columns.body)),)),)
    return None


def _columns_first(rows: For) -> For | None:
    """A loop over rows and columns with that over columns outside."""
    match rows:
        case For(kind=LoopKind.PARALLEL, body=(For(kind=LoopKind.PARALLEL) as columns,)) if (
            rows.symbol not in columns.bound_by
        ):
            return replace(columns, body=(replace(rows, body=columns.body),))
        case _:
            return None


def _may_turn(loop: For, columns: For) -> bool:
    """Whether no step needs what an earlier one did to another column."""
    if loop.kind is not LoopKind.SEQUENTIAL or columns.kind is not LoopKind.PARALLEL:
        return False
    if loop.symbol in columns.bound_by:
        return False
    inside = list(walk_statements(columns.body))
    if not all(isinstance(stmt, (Define, Update, Store, For, Comment)) for stmt in inside):
        return False
    own = locals_defined(inside)
    if any(stmt.variable not in own for stmt in inside if isinstance(stmt, Update)):
        return False
    changing = {loop.symbol, *(stmt.symbol for stmt in inside if isinstance(stmt, For))}
    stored = _stored(columns.body)
    return all(has_own_axis(columns.symbol, tensor, columns.body, changing) for tensor in stored)


def _is_nearer(loop: For, columns: For, caps: Caps) -> bool:
    """Whether the first cache does not hold the rows that steps go through again, and the second at least a
    few columns of them; and going through what all columns share for each few of them does not cost more."""
    again, shared, lanes = _gone_through(loop, columns, caps)
    if not again or not columns.trips or any(apart % ALIKE == 0 for apart in again.values()):
        return False
    whole = sum(map(_bytes, again))
    is_nearer = whole * lanes // columns.trips <= caps.l2_bytes and whole > caps.l1_bytes
    costs = sum(map(_bytes, shared))
    return is_nearer and (costs <= whole or costs * columns.trips < whole * (loop.trips or 0) * lanes)


def _takes_turns(loop: For, columns: For, caps: Caps) -> bool:
    """Whether the first cache does not hold what steps change again and again, and going through it once for
    several steps, as `trapezoid` does with a few columns, saves more than going through what these share for
    each few of them costs."""
    again, shared, lanes = _gone_through(loop, columns, caps)
    whole, steps = sum(map(_bytes, again)), loop.trips or 0
    costs = sum(map(_bytes, shared)) * (columns.trips or 0)
    return whole > caps.l1_bytes and costs < whole * steps * lanes and _stays_in_cells(columns.body)


def _stays_in_cells(body: tuple[Stmt, ...]) -> bool:
    """Whether what is stored is reached by one index alone."""
    stored = set(_stored(body))
    reached = {(tensor, index) for tensor, index, _ in affine_accesses(body) if tensor.storage in stored}
    return len(reached) == len(stored) and stored.isdisjoint(gathered(body))


def _gone_through(loop: For, columns: For, caps: Caps) -> tuple[dict[Tensor, int], set[Tensor], int]:
    """The arrays through whose rows steps go again, with the bytes from one row to the next; those that all
    columns share; and how many columns go together. No arrays if the size of one is not known."""
    again: dict[Tensor, int] = {}
    shared: set[Tensor] = set()
    for inner in (stmt for stmt in columns.body if isinstance(stmt, For)):
        for tensor, index, _ in affine_accesses(inner.body):
            along, apart = (stride(tensor, index, symbol) for symbol in (columns.symbol, inner.symbol))
            if along == 0:
                shared.add(tensor)
            elif along == 1 and apart and stride(tensor, index, loop.symbol) == 0:
                again[tensor] = apart * tensor.dtype.itemsize
    if not again or not all(map(_bytes, (*again, *shared))):
        return {}, set(), 1
    lanes = VECTORS * caps.vector_bytes // max(tensor.dtype.itemsize for tensor in again)
    return again, shared, lanes


def _bytes(tensor: Tensor) -> int:
    """0 where that is not known."""
    extents = [extent.constant if extent.is_constant else 0 for extent in tensor.shape]
    return math.prod(extents) * tensor.dtype.itemsize


def _together(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """A step with its loops over the same numbers put together."""
    out: list[Stmt] = []
    for stmt in body:
        earlier = [at for at, other in enumerate(out) if isinstance(other, For)]
        if isinstance(stmt, For) and earlier:
            at, between = earlier[-1], out[earlier[-1] + 1 :]
            first = out[at]
            assert isinstance(first, For)
            second = substitute_statements(stmt.body, {stmt.symbol: Affine.of(first.symbol)})
            if _are_alike(first, stmt) and _may_join(first, between, second):
                out[at:] = [*between, replace(first, body=(*first.body, *second))]
                continue
        out.append(stmt)
    return tuple(out)


def _are_alike(first: For, second: For) -> bool:
    return first.bounds == second.bounds and first.kind is second.kind


def _may_join(first: For, between: Sequence[Stmt], second: tuple[Stmt, ...]) -> bool:
    """Whether an iteration of the one may come before later ones of the other, and what stands between them
    before both, and whether both read the same number."""
    if not all(isinstance(stmt, (Define, Comment)) for stmt in between):
        return False
    later = (*between, *second)
    if not _changed(first.body).isdisjoint(locals_used(later)):
        return False
    if not _changed(second).isdisjoint(locals_used(first.body)):
        return False
    if not _stored(first.body).isdisjoint(_reached(later)):
        return False
    if not _stored(second).isdisjoint(_reached(first.body)):
        return False
    return not _loads(first.body).isdisjoint(_loads(second))


def _stored(body: tuple[Stmt, ...]) -> set[Tensor]:
    return written_in(walk_statements(body))


def _changed(body: tuple[Stmt, ...]) -> set[Variable]:
    return locals_updated(walk_statements(body))


def _reached(body: tuple[Stmt, ...]) -> set[Tensor]:
    return {tensor.storage for tensor, _, _ in affine_accesses(body)} | gathered(body)


def _loads(body: tuple[Stmt, ...]) -> set[Load]:
    return {node for node in nodes_in(walk_statements(body)) if isinstance(node, Load)}
