"""Vectors that take turns in memory, as the parts of complex numbers do, or the colours of pixels.

for i in vector(0, 8, lanes=8):          ; two vectors are interleaved in registers and
    y[i, 0] = add(a[i], b[i])      ->    ; stored as one, where the last of them stood
    y[i, 1] = subtract(a[i], b[i])

Where a loop reads and writes pairs, and few single numbers beside them, its lanes are in another order than
memory: each vector of pairs is then taken apart and put together again by one instruction.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Union

from ..ir.expr import Expr, Gather, Load, Local, Variable
from ..ir.index import Affine
from ..ir.loops import Comment, Define, For, LoopKind, Stmt, Store, Update, walk_statements
from ..ir.tensor import GROUPS, Tensor
from ..ir.walk import nodes_in
from .bodies import changes
from .llvm_memory import Lanes
from .llvm_text import PART

__all__ = ["Item", "lanes_of", "side_by_side"]

Together = tuple[Store, ...]
"""Stores to the neighbours of a group, in the order of memory."""

Item = Union[Stmt, Together]

Access = Union[Store, Load]
"""Cells that are written or read."""

Cells = tuple[Tensor, tuple[Affine, ...], int]
"""A group: where it starts in the first lane, and how many cells it has."""


def lanes_of(loop: For, count: int) -> Lanes:
    """So many lanes of a vector loop, in an order in which all that it reads and writes is found easily."""
    lanes = Lanes(loop.symbol, loop.step, count)
    size = _size_of_pairs(loop, lanes)
    return (
        replace(lanes, numbers=_by_halves(count, size))
        if size in (4, 8) and count % (PART // size) == 0
        else lanes
    )


def _by_halves(lanes: int, size: int) -> tuple[int, ...]:
    """Of which pair each lane is, where parts of memory of the first half of the pairs and of the second half
    take turns. `size` is that of a number."""
    pairs = PART // size // 2
    starts = range(0, lanes // 2, pairs)
    return tuple(start + half + pair for start in starts for half in (0, lanes // 2) for pair in range(pairs))


def _size_of_pairs(loop: For, lanes: Lanes) -> int | None:
    """The bytes of each number, if a loop has most of its lanes in pairs, all in numbers of one size, and may
    have them in any order: what it adds up it does by lanes."""
    inside = list(walk_statements(loop.body))
    inner = [stmt for stmt in inside if isinstance(stmt, For)]
    if loop.kind is not LoopKind.VECTOR or (changes(loop.body) and lanes.count != loop.lanes):
        return None
    if not all(isinstance(stmt, (Define, Update, Store, Comment, For)) for stmt in inside):
        return None
    if any(stmt.kind is LoopKind.UNROLLED for stmt in inner):
        return None
    by_step: dict[int | None, list[Access]] = {}
    for access in _accesses(loop.body):
        by_step.setdefault(lanes.step_in(access.tensor, access.index), []).append(access)
    same, singles, pairs = (by_step.pop(step, []) for step in (0, 1, 2))
    stored = sum(isinstance(access, Store) for access in pairs)
    # A vector of single numbers is put in order by two instructions. Of pairs, each that is read spares one,
    # and each that is written two.
    if by_step or len(pairs) + stored <= 2 * len(singles) or any(isinstance(it, Store) for it in same):
        return None
    if any(access.tensor.part_of(access.index, 2) is None for access in pairs):
        return None
    if stored != 2 * sum(len(_groups(stmt.body, lanes)) for stmt in (loop, *inner)):
        return None
    sizes = {access.tensor.dtype.itemsize for access in (*singles, *pairs)}
    return sizes.pop() if len(sizes) == 1 else None


def _accesses(body: tuple[Stmt, ...]) -> Iterator[Access]:
    yield from (stmt for stmt in walk_statements(body) if isinstance(stmt, Store))
    yield from (node for node in nodes_in(walk_statements(body)) if isinstance(node, Load))


def side_by_side(body: Sequence[Stmt], lanes: Lanes) -> Iterator[Item]:
    """A body whose stores to neighbours are done together, where the last of them stood. Their values are
    those of where each stood."""
    found = {id(store): group for group in _groups(body, lanes) for store in group}
    values: dict[int, Variable] = {}
    for stmt in body:
        group = found.get(id(stmt))
        if group is None or not isinstance(stmt, Store):
            yield stmt
            continue
        values[id(stmt)] = variable = Variable(stmt.tensor.label, stmt.tensor.dtype)
        yield Define(variable, stmt.value)
        if all(id(store) in values for store in group):
            yield tuple(_of_local(store, values[id(store)]) for store in group)


def _of_local(store: Store, variable: Variable) -> Store:
    return Store(store.tensor, store.index, Local(variable), store.loc, store.bypass)


def _groups(body: Sequence[Stmt], lanes: Lanes) -> list[Together]:
    """The stores that may be done together: nothing between them depends on what the first ones wrote."""
    found: list[Together] = []
    waiting: dict[Cells, dict[int, Store]] = {}
    for stmt in body:
        if not isinstance(stmt, (Define, Update, Comment, Store)):
            waiting.clear()
        for node in nodes_in((stmt,)) if waiting else ():
            waiting = {at: stores for at, stores in waiting.items() if not _may_read(node, at, stores)}
        if not isinstance(stmt, Store):
            continue
        at, part = _place(stmt, lanes)
        stores = waiting.pop(at, {}) if at else {}
        waiting = {
            other: held for other, held in waiting.items() if other[0].storage is not stmt.tensor.storage
        }
        if at is None or part in stores:
            continue
        stores[part] = stmt
        if len(stores) == at[2]:
            found.append(tuple(store for _, store in sorted(stores.items())))
        else:
            waiting[at] = stores
    return found


def _place(store: Store, lanes: Lanes) -> tuple[Cells | None, int]:
    """The group that a store writes to, and which part of it, if lanes are groups apart."""
    tensor, index = store.tensor, store.index
    count = lanes.step_in(tensor, index)
    part = tensor.part_of(index, count) if count in GROUPS else None
    if count is None or part is None:
        return None, 0
    return (tensor, (*index[:-1], index[-1] - part), count), part


def _may_read(node: Expr, at: Cells, stores: Mapping[int, Store]) -> bool:
    """Whether an expression reads what may be waiting to be stored, in any lane."""
    tensor, _, count = at
    match node:
        case Load(tensor=other, index=index) if other is tensor:
            part = tensor.part_of(index, count)
            return part is None or part in stores
        case Load(tensor=other) | Gather(tensor=other):
            return other.storage is tensor.storage
        case _:
            return False
