"""May a body be run again, and is it short enough to be written twice?"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Set
from typing import Union

from ...ir.expr import Apply, Variable
from ...ir.index import Affine, Symbol
from ...ir.loops import Bind, For, Stmt, Store, walk_statements
from ...ir.tensor import Tensor
from ...ir.walk import nodes_in, outer_updates
from .access import reads

__all__ = ["HEAVY", "may_repeat", "weight"]

Cell = tuple[Tensor, Union[tuple[Affine, ...], None]]

HEAVY = 32
"""Operations in a body beyond which a second copy takes longer to compile than it saves."""


def may_repeat(body: tuple[Stmt, ...], sums: Collection[Variable] = (), symbol: Symbol | None = None) -> bool:
    """Does running an iteration again change nothing, apart from what it adds to `sums`? The loop counts by
    that symbol, if one is given: then rows that take turns are told apart."""
    inside = list(walk_statements(body))
    if any(update.variable not in sums for update in outer_updates(inside)):
        return False
    stores = [stmt for stmt in inside if isinstance(stmt, Store)]
    moving = {symbol, *(stmt.symbol for stmt in inside if isinstance(stmt, (For, Bind)))}
    return not any(
        tensor.storage is store.tensor.storage
        and not (symbol and tensor is store.tensor and index and _are_apart(index, store.index, moving))
        for tensor, index in _found(body)
        for store in stores
    )


def _found(body: tuple[Stmt, ...]) -> Iterator[Cell]:
    """What an iteration reads that it has not stored itself by then."""
    stored: set[Cell] = set()
    for line in body:
        for stmt in walk_statements((line,)):
            yield from (cell for cell in reads(stmt) if cell not in stored)
        if isinstance(line, Store):
            stored.add((line.tensor, line.index))


def _are_apart(one: tuple[Affine, ...], other: tuple[Affine, ...], moving: Set[Symbol | None]) -> bool:
    """Do cells lie in different rows, whatever the symbols that are not `moving` are? So it is if the gap is
    no multiple of their steps: `p` and `1 - p`."""
    for mine, theirs in zip(one, other, strict=True):
        gap, steps = mine - theirs, math.gcd(*(step for step, _ in (mine - theirs).terms))
        stays = moving.isdisjoint((*mine.symbols, *theirs.symbols))
        if stays and steps and gap.offset % steps:
            return True
    return False


def weight(body: tuple[Stmt, ...]) -> int:
    """The number of operations in a body."""
    return sum(isinstance(node, Apply) for node in nodes_in(walk_statements(body)))
