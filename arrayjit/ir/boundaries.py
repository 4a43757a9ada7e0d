"""Cells that lie alike between boundaries of memory while a vector loop goes along them.

for j in vector(1, 299, lanes=16):              of x[i - 1, j], x[i + 1, j] and y[i, j], where rows are
    y[i, j] = add(add(x[i - 1, j],      ->      300 cells long, either each lies on a boundary of 32 bytes
        x[i + 1, j]), x[i, j + 1])              or none, if arrays start alike; x[i, j + 1] lies otherwise
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator

from .expr import Load
from .index import Affine
from .loops import For, Store, walk_statements
from .tensor import Tensor
from .walk import expressions, walk

__all__ = ["Cell", "cells_along", "lying_alike"]

Cell = tuple[Tensor, tuple[Affine, ...]]
"""What an iteration reads or writes."""


def cells_along(loop: For) -> list[Cell]:
    """The distinct cells of an iteration which are others in the next one, among those of arrays whose layout
    is known before the program runs."""
    found: dict[tuple[Tensor, Affine], Cell] = {}
    for tensor, index in _cells(loop):
        if all(step.is_constant for step in tensor.element_strides()):
            place = tensor.linear(index)
            if place.coefficient(loop.symbol):
                found.setdefault((tensor.storage, place), (tensor, index))
    return list(found.values())


def lying_alike(loop: For, boundary: int) -> list[Cell]:
    """Of the cells that are neighbours from one iteration to the next as many as possible that lie on
    boundaries of so many bytes together, if arrays start alike; of as many those of which more are written.
    Those that are written come first, then those of the array with most: where arrays start otherwise, a
    store across lines lasts longer than five loads (a stencil took 1.6 times as long, Emerald Rapids)."""
    alike: dict[Hashable, list[Cell]] = {}
    for tensor, index in cells_along(loop):
        place, size = tensor.linear(index), tensor.dtype.itemsize
        if place.coefficient(loop.symbol) == 1:
            cells = max(1, boundary // size)
            moved = frozenset((factor % cells, symbol) for factor, symbol in place.terms if factor % cells)
            alike.setdefault((size, moved, place.offset % cells), []).append((tensor, index))
    written = {stmt.tensor.storage for stmt in walk_statements(loop.body) if isinstance(stmt, Store)}

    def weight(cells: list[Cell]) -> tuple[int, int]:
        return len(cells), sum(tensor.storage in written for tensor, _ in cells)

    most = max(alike.values(), key=weight, default=[])
    by_array = Counter(tensor.storage for tensor, _ in most)
    return sorted(most, key=lambda cell: (cell[0].storage not in written, -by_array[cell[0].storage]))


def _cells(loop: For) -> Iterator[Cell]:
    for stmt in walk_statements(loop.body):
        for node in (node for expr in expressions(stmt) for node in walk(expr)):
            if isinstance(node, Load):
                yield node.tensor, node.index
        if isinstance(stmt, Store):
            yield stmt.tensor, stmt.index
