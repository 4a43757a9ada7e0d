"""Which cells of arrays a loop comes to first."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator
from itertools import pairwise

from ...ir.index import Affine, Symbol
from ...ir.loops import For, Store, walk_statements
from ...ir.tensor import Tensor
from .strides import affine_accesses

__all__ = ["FARTHEST", "PLACES", "Cell", "are_at_places", "chosen_bytes", "fetched", "latest", "leading"]

FARTHEST = 8192
"""Bytes between cells of a row that have nothing to do with one another."""

PLACES = 4
"""At so many of an array a sum is at once."""

Cell = tuple[Tensor, tuple[Affine, ...]]


def fetched(loop: For) -> Iterator[Cell]:
    """The cells whose lines are fetched: all but what is written past the caches."""
    past = {stmt.tensor for stmt in walk_statements(loop.body) if isinstance(stmt, Store) and stmt.bypass}
    for tensor, index, is_store in affine_accesses(loop.body):
        if not (is_store and tensor in past):
            yield tensor, index


def leading(cells: Iterable[Cell]) -> dict[Cell, bool]:
    """Of neighbours in a row the last, and of neighbouring rows the one that a loop around comes to first:
    the others were there before. Each with whether one of them is a row away, or as far: it is read again."""
    found: dict[tuple[Tensor, tuple[Affine, ...]], Cell] = {}
    again: set[tuple[Tensor, tuple[Affine, ...]]] = set()
    for tensor, index in cells:
        place = tensor, (*index[:-2], *map(_moving, index[-2:]))
        known = found.get(place)
        if known is not None and _is_apart(tensor, index, known[1]):
            again.add(place)
        if known is None or _offsets(index) >= _offsets(known[1]):
            found[place] = tensor, index
    return {cell: place in again for place, cell in found.items()}


def latest(cells: Iterable[Cell], near: int) -> list[Cell]:
    """Of leading cells those in the last of neighbouring planes: the others were there before, if no more
    bytes lie between two planes."""
    found: dict[tuple[Tensor, tuple[Affine, ...]], Cell] = {}
    for tensor, index in cells:
        between = tensor.dtype.itemsize * math.prod(extent.offset for extent in tensor.shape[-2:])
        planes, inside = index[:-2], [position - position.offset for position in index[-2:]]
        if between <= near:
            planes = tuple(position - position.offset for position in planes)
        known = found.get(place := (tensor, (*planes, *inside)))
        if known is None or _offsets(index, 3) >= _offsets(known[1], 3):
            found[place] = tensor, index
    return list(found.values())


def are_at_places(cells: Iterable[Cell]) -> bool:
    """Are cells at several places of each array, far from one another in a row of it, as `quarters` has
    them?"""
    places: dict[tuple[Tensor, tuple[Affine, ...]], list[int]] = {}
    for tensor, index in cells:
        places.setdefault((tensor, index[:-1]), []).append(index[-1].offset * tensor.dtype.itemsize)
    return all(
        len(found) >= PLACES and all(after - before >= FARTHEST for before, after in pairwise(sorted(found)))
        for found in places.values()
    )


def chosen_bytes(tensor: Tensor, index: tuple[Affine, ...], bound: Collection[Symbol]) -> int | None:
    """How many bytes of an array of known extents follow one another from a place on that a position has
    chosen, which the run binds to a symbol; None if none has."""
    places = [n for n, at in enumerate(index[:-1]) if at.symbols and all(s in bound for s in at.symbols)]
    if not places:
        return None
    return tensor.dtype.itemsize * math.prod(extent.offset for extent in tensor.shape[places[-1] + 1 :])


def _is_apart(tensor: Tensor, one: tuple[Affine, ...], other: tuple[Affine, ...]) -> bool:
    """Whether cells lie in different rows, or as far from each other in one as is asked ahead."""
    distance = abs(one[-1].offset - other[-1].offset) * tensor.dtype.itemsize
    return one[-2:-1] != other[-2:-1] or distance >= FARTHEST


def _offsets(index: tuple[Affine, ...], axes: int = 2) -> list[int]:
    return [position.offset for position in index[-axes:]]


def _moving(position: Affine) -> Affine:
    """What goes up with loops, from wherever it starts."""
    goes_up = all(position.coefficient(symbol) > 0 for symbol in position.symbols)
    return position - position.offset if goes_up and not position.is_constant else position
