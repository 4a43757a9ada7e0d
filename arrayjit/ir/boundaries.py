"""Cells that lie alike between boundaries of memory while a vector loop goes along them.

for j in vector(1, 299, lanes=16):              of x[i - 1, j], x[i + 1, j] and y[i, j], where rows are
    y[i, j] = add(add(x[i - 1, j],      ->      300 cells long, either each lies on a boundary of 32 bytes
        x[i + 1, j]), x[i, j + 1])              or none, if arrays start alike; x[i, j + 1] lies otherwise
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence

from .expr import Load
from .index import Affine
from .loops import For, Store, walk_statements
from .tensor import Tensor
from .walk import nodes_in

__all__ = ["ALONE", "Cell", "cells_along", "lying_alike"]

ALONE = (4, 8)
"""The bytes of cells of which one instruction stores a single one past the caches."""

Cell = tuple[Tensor, tuple[Affine, ...]]
"""What an iteration reads or writes."""


def cells_along(loop: For) -> list[Cell]:
    """The distinct cells of an iteration which are others in the next one, among those of arrays whose layout
    is known before the program runs."""
    found: dict[tuple[Tensor, Affine], Cell] = {}
    for tensor, index in _cells(loop):
        if _is_laid_out(tensor):
            place = tensor.linear(index)
            if place.coefficient(loop.symbol):
                found.setdefault((tensor.storage, place), (tensor, index))
    return list(found.values())


def lying_alike(loop: For, boundary: int) -> list[Cell]:
    """Of the cells that are neighbours from one iteration to the next those that lie on boundaries of so many
    bytes together, if arrays start alike: as many as possible that are stored, then as many as possible, the
    stored ones first. A store across lines lasts longer than five loads (of a stencil whose arrays start
    otherwise 0.6 of the time is left, on Emerald Rapids)."""
    alike: dict[Hashable, list[Cell]] = {}
    for tensor, index in cells_along(loop):
        place, size = tensor.linear(index), tensor.dtype.itemsize
        if place.coefficient(loop.symbol) == 1:
            cells = max(1, boundary // size)
            moved = frozenset((factor % cells, symbol) for factor, symbol in place.terms if factor % cells)
            alike.setdefault((size, moved, place.offset % cells), []).append((tensor, index))
    stores = [stmt for stmt in walk_statements(loop.body) if isinstance(stmt, Store)]
    stored = {(s.tensor.storage, s.tensor.linear(s.index)) for s in stores if _is_laid_out(s.tensor)}

    def is_read(cell: Cell) -> bool:
        tensor, index = cell
        return (tensor.storage, tensor.linear(index)) not in stored

    def weight(cells: Sequence[Cell]) -> tuple[int, int]:
        return len(cells) - sum(map(is_read, cells)), len(cells)

    most = max(alike.values(), key=weight) if alike else []
    return sorted(most, key=is_read)


def _is_laid_out(tensor: Tensor) -> bool:
    return all(step.is_constant for step in tensor.element_strides())


def _cells(loop: For) -> Iterator[Cell]:
    for stmt in walk_statements(loop.body):
        for node in nodes_in((stmt,)):
            if isinstance(node, Load):
                yield node.tensor, node.index
        if isinstance(stmt, Store):
            yield stmt.tensor, stmt.index
