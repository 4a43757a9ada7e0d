"""Loops of the host that end when the GPU says so, of which the host need not see every condition.

    while True:                                     while True:                      round of 2, 4, 8, ...
        for g in grid(0, 1):                            test<<<1>>>  if goes_on
            goes_on[()] = less(x[0], 9)     ->          body<<<n>>>  if goes_on
        if not goes_on[()]:                             test<<<1>>>  if goes_on
            break                                       body<<<n>>>  if goes_on ...
        for w in grid(0, n):                            the host looks at goes_on
            ...

Kernels that look at the condition themselves do nothing once it is false, so that the host may have launched
more of them than it takes. A branch is a loop that ends itself: nobody looks at all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..ir.expr import Const, Load
from ..ir.loops import Comment, For, LoopKind, Place, PlaceKind, Stmt, Store, While, walk_statements, written
from ..ir.tensor import Tensor

__all__ = ["is_branch", "is_guarded"]


def is_guarded(loop: While, placement: Mapping[Tensor, Place]) -> bool:
    """May all kernels of a loop look at the condition? It is in memory that they all see, and decided by the
    very last of the test or, where there is none, of the body, in one block; nobody else changes it. The host
    has nothing else to look at in there."""
    if not isinstance(loop.condition, Load):
        return False
    cell = loop.condition.tensor
    place = placement.get(cell)
    if place is None or place.kind is not PlaceKind.ARENA:
        return False
    decider = _last(loop.test or loop.body)
    if decider is None or decider.trips != 1 or _stored(decider.body, cell) is None:
        return False
    grids = list(_grids((*loop.test, *loop.body), placement))
    others = [grid for grid in grids if grid is not decider]
    return None not in grids and not any(grid and _writes(grid, cell) for grid in others)


def is_branch(loop: While, placement: Mapping[Tensor, Place]) -> bool:
    """Does a loop that may be guarded run once or never, as a few launches?"""
    if loop.test or not is_guarded(loop, placement) or not isinstance(loop.condition, Load):
        return False
    decider = _last(loop.body)
    stored = None if decider is None else _stored(decider.body, loop.condition.tensor)
    is_false = stored is not None and isinstance(stored.value, Const) and not stored.value.value
    return is_false and not any(
        isinstance(stmt, For) and stmt.kind is not LoopKind.GRID for stmt in loop.body
    )


def _writes(grid: For, cell: Tensor) -> bool:
    return any(written(stmt) is cell for stmt in walk_statements(grid.body))


def _grids(body: tuple[Stmt, ...], placement: Mapping[Tensor, Place]) -> Iterator[For | None]:
    """The grids that the host launches, and None for each loop of which it has to see the condition."""
    for stmt in body:
        match stmt:
            case For(kind=LoopKind.GRID):
                yield stmt
            case For(body=inner):
                yield from _grids(inner, placement)
            case While(body=inner):
                if not is_branch(stmt, placement):
                    yield None
                yield from _grids(inner, placement)


def _last(body: tuple[Stmt, ...]) -> For | None:
    """The grid that a body ends with."""
    last = next((stmt for stmt in reversed(body) if not isinstance(stmt, Comment)), None)
    return last if isinstance(last, For) and last.kind is LoopKind.GRID else None


def _stored(body: tuple[Stmt, ...], cell: Tensor) -> Store | None:
    """The store to a cell that a body does, whatever else it does."""
    for stmt in body:
        match stmt:
            case Store(tensor=tensor) if tensor is cell:
                return stmt
            case For(kind=LoopKind.BLOCK, trips=int() as trips, body=inner) if trips > 0:
                found = _stored(inner, cell)
                if found is not None:
                    return found
    return None
