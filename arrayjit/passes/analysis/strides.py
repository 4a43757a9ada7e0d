"""Nests of parallel loops, and how their accesses move through memory when a loop's symbol grows."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence

from ...ir.code import Caps
from ...ir.expr import Gather, Load
from ...ir.index import Affine, Symbol
from ...ir.loops import For, LoopKind, Stmt, Store, walk_statements
from ...ir.tensor import Tensor
from ...ir.walk import nodes_in

__all__ = [
    "LINE",
    "NEIGHBOURS",
    "affine_accesses",
    "gathered",
    "has_own_axis",
    "known_bytes",
    "neighbours",
    "parallel_nest",
    "places",
    "run_length",
    "stride",
]

LINE = 16
"""A step of this many elements or more finds another cache line each time."""


WAY = 4096
"""Cells so many bytes apart share places of the first cache: as many as it is times as large."""


def places(step: int, caps: Caps) -> int:
    """Of how many rows, so many bytes apart, the first cache holds a line each."""
    return WAY // math.gcd(step, WAY) * max(1, caps.l1_bytes // WAY)


def run_length(indices: Sequence[Sequence[Affine]], symbol: Symbol) -> int:
    """How many rows of cells an iteration has to itself, if it reads several neighbours; 0 if it does not."""
    length = indices[0][0].coefficient(symbol)
    starts = [index[0] - Affine.of(symbol) * length for index in indices]
    is_run = length > 1 and all(start.is_constant and 0 <= start.offset < length for start in starts)
    return length if is_run else 0


def stride(tensor: Tensor, index: tuple[Affine, ...], symbol: Symbol) -> int | None:
    """By how many elements the cell at `index` moves when `symbol` grows by one; None if not constant."""
    total = 0
    unit: int | None = 1
    for axis in range(tensor.rank - 1, -1, -1):
        if tensor.strides is not None:
            unit = _constant(tensor.strides[axis])
        step = index[axis].coefficient(symbol)
        if step:
            if unit is None:
                return None
            total += step * unit
        if tensor.strides is None:
            extent = _constant(tensor.shape[axis])
            unit = None if unit is None or extent is None else unit * extent
    return total


def _constant(value: Affine) -> int | None:
    return value.offset if value.is_constant else None


NEIGHBOURS = 4
"""What a thread of a GPU takes at once: more take registers that few programs have left."""


def neighbours(cells: Iterable[tuple[Tensor, tuple[Affine, ...]]], along: Symbol, most: int) -> int:
    """How many cells a thread can reach at once, of at most so many bytes, in all places: they lie side by
    side when `along` grows, or are one, and begin where whole vectors do if their memory does."""
    wide, size = NEIGHBOURS, 1
    for tensor, index in cells:
        step = stride(tensor, index, along)
        if step not in (0, 1):
            return 1
        if step == 1:
            size = max(size, tensor.dtype.itemsize)
            rest = tensor.linear(index) - along
            while any(part % wide for part in (rest.offset, *(c for c, _ in rest.terms))):
                wide //= 2
    return min(wide, most // size)


def affine_accesses(body: tuple[Stmt, ...]) -> list[tuple[Tensor, tuple[Affine, ...], bool]]:
    """Every load and store of a body, nested loops included; True for stores."""
    found: list[tuple[Tensor, tuple[Affine, ...], bool]] = []
    for stmt in walk_statements(body):
        found += [(node.tensor, node.index, False) for node in nodes_in((stmt,)) if type(node) is Load]
        if type(stmt) is Store:
            found.append((stmt.tensor, stmt.index, True))
    return found


def known_bytes(body: tuple[Stmt, ...]) -> int:
    """How many bytes the arrays of known size have that a body, nested loops included, reaches."""
    storages = {tensor.storage for tensor, _, _ in affine_accesses(body)}
    return sum(storage.nbytes for storage in storages if storage.has_fixed_shape)


def gathered(body: tuple[Stmt, ...]) -> set[Tensor]:
    """The storages of which a body, nested loops included, reads cells at computed positions."""
    return {node.tensor.storage for node in nodes_in(walk_statements(body)) if isinstance(node, Gather)}


def has_own_axis(
    symbol: Symbol, storage: Tensor, body: tuple[Stmt, ...], changing: Collection[Symbol]
) -> bool:
    """Whether each value of a symbol reaches cells of its own: one axis of a storage, the same in all
    accesses of a body and whatever the values of the symbols that are `changing`, stands for it."""
    accesses = [(tensor, index) for tensor, index, _ in affine_accesses(body) if tensor.storage is storage]
    tensor, first = accesses[0]
    if any(other is not tensor for other, _ in accesses) or storage in gathered(body):
        return False
    return any(
        symbol in position.symbols
        and not any(other in changing for other in position.symbols)
        and all(index[axis] == position for _, index in accesses)
        for axis, position in enumerate(first)
    )


def parallel_nest(stmt: Stmt) -> list[For]:
    """The perfect nest of parallel loops that a statement is, outermost first."""
    loops: list[For] = []
    while isinstance(stmt, For) and stmt.kind is LoopKind.PARALLEL:
        loops.append(stmt)
        if len(stmt.body) != 1:
            break
        stmt = stmt.body[0]
    return loops
