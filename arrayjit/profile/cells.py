"""Which cells of an array statements touch, each counted once.

What an access touches at a point is a box: along each axis so many positions, evenly apart. The boxes of all
accesses are marked in a bitmap of what they span, and the marks counted. What an access may touch, but need
not, counts for the upper bound only.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import reduce
from typing import Union

import numpy as np

from ..frozen import frozen_by_identity
from ..ir.expr import Gather, Load
from ..ir.index import Affine, Symbol
from ..ir.loops import Fill, Store
from ..ir.tensor import Tensor
from ..ir.walk import nodes_in
from .amounts import Amount, Number
from .visits import MOST_POINTS, Array, Loop, Space, Visit

__all__ = ["Access", "accesses", "distinct"]

MOST_CELLS = 1 << 27
"""Of a bitmap, at a byte each; where more is spanned, only bounds are known."""

MOST_BOXES = 1 << 15
"""That are marked one by one."""


@frozen_by_identity
class Access:
    """A load or a store where it runs. An index of None is any cell for a load, every one for a store."""

    tensor: Tensor
    index: tuple[Affine, ...] | None
    space: Space
    is_store: bool


@frozen_by_identity
class Boxes:
    """What an access touches at each point: along each axis the first position, and how many there are, so
    many `steps` apart; at those points that are `sure` exactly that, at others that at most."""

    first: Array
    count: Array
    steps: tuple[int, ...]
    sure: Array


def accesses(visit: Visit) -> Iterable[Access]:
    """What one statement loads and stores, without the statements in it."""
    stmt, space = visit.stmt, visit.space
    if visit.lanes or not space.high.any():
        return
    space = _at(space, np.flatnonzero(space.high))
    for node in nodes_in((stmt,)):
        match node:
            case Load(tensor=tensor, index=index):
                yield Access(tensor, index, space, False)
            case Gather(tensor=tensor):
                yield Access(tensor, None, space, False)
            case _:
                pass
    match stmt:
        case Store(tensor=tensor, index=index, accum=accum):
            if accum is not None:
                yield Access(tensor, index, space, False)
            yield Access(tensor, index, space, True)
        case Fill(tensor=tensor):
            yield Access(tensor, None, space, True)
        case _:
            pass


def distinct(touching: Sequence[Access]) -> Amount:
    """How many cells of one array these accesses touch together."""
    anywhere = [access for access in touching if access.index is None and not access.is_store]
    somewhere = [access for access in touching if access.index is not None or access.is_store]
    found = [(access.tensor, _boxes(access)) for access in somewhere]
    sure = [(tensor, _selected(boxes, boxes.sure)) for tensor, boxes in found]
    least, _ = _united(sure)
    _, most = _united(found)
    if anywhere:
        least = max(least, int(any(access.space.low.any() for access in anywhere)))
        most = min(most + sum(access.space.runs[1] for access in anywhere), _size(anywhere[0].tensor.storage))
    return Amount.of(least, max(most, least))


def _at(space: Space, points: Array) -> Space:
    """The space at some of its points."""
    if len(points) == space.points:
        return space
    return replace(
        space,
        low=space.low[points],
        high=space.high[points],
        values={symbol: span.at(points) for symbol, span in space.values.items()},
        known={},
        loops=tuple(
            replace(loop, first=loop.first.at(points), trips=loop.trips.at(points)) for loop in space.loops
        ),
    )


def _size(tensor: Tensor) -> Number:
    """How many cells there are; infinitely many where only a run knows."""
    return tensor.size if tensor.has_fixed_shape else math.inf


def _boxes(access: Access) -> Boxes:
    """What an access touches. A loop that makes no box is taken apart: one whose index stands in two axes, or
    whose steps leave gaps between what other loops touch."""
    if access.index is None:
        return _whole(access.tensor, access.space)
    space, fixed = access.space, _fixed_axes(access.tensor)
    while True:
        axes = [_axis(p, space, is_fixed) for p, is_fixed in zip(access.index, fixed, strict=True)]
        apart = _in_two_axes(access.index, space) or next((a for a in axes if isinstance(a, Loop)), None)
        if apart is None:
            break
        if not apart.trips.is_exact or apart.trips.low.sum() > MOST_POINTS:
            return replace(_whole(access.tensor, space), sure=np.zeros(space.points, bool))
        others = tuple(loop for loop in space.loops if loop is not apart)
        space = replace(space, loops=others).taken_apart(
            apart.first.low, apart.trips.low, apart.step, apart.symbol
        )
    parts = [axis for axis in axes if isinstance(axis, _Axis)]
    sure = reduce(np.logical_and, [axis.sure for axis in parts], space.low > 0)
    if not parts:
        empty = np.zeros((space.points, 0), np.int64)
        return Boxes(empty, empty, (), sure)
    first, count = (
        np.stack(columns, axis=1) for columns in zip(*((a.first, a.count) for a in parts), strict=True)
    )
    return _within(access.tensor, Boxes(first, count, tuple(axis.step for axis in parts), sure))


@frozen_by_identity
class _Axis:
    """Positions along an axis at each point."""

    first: Array
    count: Array
    step: int
    sure: Array


def _axis(position: Affine, space: Space, is_fixed: bool) -> Union[_Axis, Loop]:
    """The positions that an expression takes; or the loop to be taken apart, where they are not evenly
    apart."""
    ones = np.ones(space.points, np.int64)
    if is_fixed:
        return _Axis(0 * ones, ones, 1, ones > 0)
    loops = {loop.symbol: loop for loop in space.loops}
    first, sure = position.offset * ones, ones > 0
    parts: list[tuple[int, Array, Loop | None]] = []
    for coefficient, symbol in position.terms:
        loop = loops.get(symbol)
        if loop is not None and loop.first.is_exact and loop.trips.is_exact:
            stride, trips = coefficient * loop.step, loop.trips.low
            first = first + coefficient * loop.first.low + min(stride, 0) * (trips - 1)
            parts.append((abs(stride), trips, loop))
            continue
        span = space.values.get(symbol) or space.declared(symbol)
        first = first + coefficient * (span.low if coefficient > 0 else span.high)
        if not span.is_exact:
            sure = sure & (span.low == span.high)
            parts.append((abs(coefficient), span.high - span.low + 1, None))
    step, count = 1, ones
    for stride, trips, loop in sorted(parts, key=lambda part: part[0]):
        if (count <= 1).all():
            step, count = stride, trips
        elif stride % step == 0 and ((stride // step <= count) | (trips <= 1)).all():
            count = stride // step * (trips - 1) + count
        elif loop is not None:
            return loop
        else:
            step, count = 1, stride * (trips - 1) + step * (count - 1) + 1
    return _Axis(first, count, step, sure)


def _in_two_axes(index: tuple[Affine, ...], space: Space) -> Loop | None:
    """A loop whose index stands in several axes."""
    seen: set[Symbol] = set()
    repeated: set[Symbol] = set()
    for position in index:
        repeated.update(seen.intersection(position.symbols))
        seen.update(position.symbols)
    return next((loop for loop in space.loops if loop.symbol in repeated), None)


def _fixed_axes(tensor: Tensor) -> tuple[bool, ...]:
    """The axes along which all cells are one, as in arrays that were broadcast."""
    if tensor.strides is None:
        return (False,) * tensor.rank
    return tuple(stride == Affine.of(0) for stride in tensor.strides)


def _whole(tensor: Tensor, space: Space) -> Boxes:
    """All cells, as far as the extents are known."""
    spans = [space.span(extent) for extent in tensor.shape]
    count = np.array([[span.high.max() for span in spans]], np.int64).reshape(1, tensor.rank)
    sure = np.array([bool(space.low.any()) and all(span.is_exact for span in spans)])
    return Boxes(0 * count, count, (1,) * tensor.rank, sure)


def _within(tensor: Tensor, boxes: Boxes) -> Boxes:
    """Boxes that are known to lie in the array, as far as its extents are known."""
    if boxes.sure.all() or not tensor.has_fixed_shape:
        return boxes
    extents = np.array([extent.offset for extent in tensor.shape])
    steps = np.array(boxes.steps)
    ends = np.minimum(boxes.first + steps * (boxes.count - 1), extents - 1)
    skipped = np.maximum(-(boxes.first // steps), 0) * (boxes.first < 0)
    first = boxes.first + skipped * steps
    return replace(boxes, first=first, count=(ends - first) // steps + 1)


def _selected(boxes: Boxes, chosen: Array) -> Boxes:
    return Boxes(boxes.first[chosen], boxes.count[chosen], boxes.steps, boxes.sure[chosen])


def _united(found: Sequence[tuple[Tensor, Boxes]]) -> tuple[int, Number]:
    """How many cells lie in some box, at least and at most: one number where they can be marked."""
    found = [(tensor, _reduced(boxes)) for tensor, boxes in found if len(boxes.first)]
    found = list(
        {(t.shape, b.first.tobytes(), b.count.tobytes(), b.steps): (t, b) for t, b in found}.values()
    )
    volumes = [float(boxes.count.astype(float).prod(axis=1).sum()) for _, boxes in found]
    if not found:
        return 0, 0
    largest = max(int(boxes.count.astype(float).prod(axis=1).max()) for _, boxes in found)
    if len(found) == 1 and len(found[0][1].first) == 1:
        return largest, largest
    corner, extents = _spanned(found)
    if math.prod(extents) > MOST_CELLS or sum(len(boxes.first) for _, boxes in found) > MOST_BOXES:
        return largest, min(sum(volumes), math.prod(extents))
    marks = np.zeros(extents, bool)
    for tensor, boxes in found:
        form = marks if len(extents) == tensor.rank else marks.reshape(-1)
        start = corner if form is marks else [0] * tensor.rank
        _mark(form, boxes, start)
    cells = int(np.count_nonzero(marks))
    return cells, cells


def _reduced(boxes: Boxes) -> Boxes:
    """Without boxes that repeat another, or are the beginning of one that is longer along an axis."""
    first, count = boxes.first, boxes.count
    for axis in range(first.shape[1]):
        if len(first) == 1:
            break
        rows = np.concatenate([first, np.delete(count, axis, axis=1)], axis=1)
        _, where = np.unique(rows, axis=0, return_inverse=True)
        where = where.reshape(-1)
        longest = np.zeros(where.max() + 1, np.int64)
        np.maximum.at(longest, where, count[:, axis])
        kept = np.flatnonzero(count[:, axis] == longest[where])
        _, once = np.unique(where[kept], return_index=True)
        first, count = first[kept[once]], count[kept[once]]
    return Boxes(first, count, boxes.steps, boxes.sure[:1])


def _spanned(found: Sequence[tuple[Tensor, Boxes]]) -> tuple[list[int], list[int]]:
    """The first cell and the extents of what holds all boxes; the whole array, where it is accessed in
    several forms."""
    ranks = {tensor.rank for tensor, _ in found}
    if len(ranks) > 1:
        storage = found[0][0].storage
        return [0] * storage.rank, [int(extent.constant) for extent in storage.shape]
    firsts = np.concatenate([boxes.first for _, boxes in found])
    ends = np.concatenate([b.first + (b.count - 1) * np.array(b.steps, np.int64) + 1 for _, b in found])
    low = firsts.min(axis=0)
    return low.tolist(), (ends.max(axis=0) - low).tolist()


def _mark(marks: Array, boxes: Boxes, corner: Sequence[int]) -> None:
    first = boxes.first - np.array(corner, np.int64)
    if (boxes.count == 1).all():
        marks[tuple(first.T)] = True
        return
    for starts, counts in zip(first.tolist(), boxes.count.tolist(), strict=True):
        marks[
            tuple(
                slice(start, start + count * step, step)
                for start, count, step in zip(starts, counts, boxes.steps, strict=True)
            )
        ] = True
