"""Boxes of cells of an array: those at some positions along each axis."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from ...ir.assign import Assign, Statement
from ...ir.index import Affine
from .access import Ranges

__all__ = ["Box", "common", "holds", "meet", "own_ranges", "reached", "size", "without", "written"]

Box = tuple[range, ...]
"""Each range has step 1."""


def size(box: Box) -> int:
    """The number of cells."""
    return math.prod(map(len, box))


def common(one: range, other: range) -> range:
    """The positions that are in both."""
    return range(max(one.start, other.start), min(one.stop, other.stop))


def meet(one: Box, other: Box) -> bool:
    """Have two boxes cells in common?"""
    return all(map(common, one, other))


def holds(box: Box, other: Box) -> bool:
    """Is all of another box in the first?"""
    return all(one.start <= two.start and two.stop <= one.stop for one, two in zip(box, other, strict=True))


def own_ranges(statement: Statement) -> Ranges:
    """The values of a statement's loops of known extent."""
    loops = statement.loops if isinstance(statement, Assign) else ()
    return {symbol: (0, extent.constant - 1) for symbol, extent in loops if extent.is_constant}


def reached(index: Sequence[Affine], ranges: Ranges) -> Box | None:
    """A box around the cells at an index; None where that is not known."""
    ends = [position.bounds(ranges) for position in index]
    known = [one for one in ends if one is not None]
    return tuple(range(lo, hi + 1) for lo, hi in known) if len(known) == len(ends) else None


def written(assign: Assign) -> Box | None:
    """The cells that an assignment only stores to, each once, if they are a box of known size."""
    if assign.accum is not None:
        return None
    loops, box = dict(assign.loops), list[range]()
    for position in assign.index:
        extent = Affine.of(1)
        if position.terms:
            ((factor, symbol), *more) = position.terms
            if more or factor != 1 or symbol not in loops:
                return None
            extent = loops.pop(symbol)
        if not extent.is_constant:
            return None
        box.append(range(position.offset, position.offset + extent.constant))
    return None if loops else tuple(box)


def without(box: Box, other: Box) -> Iterator[Box]:
    """What a box has beyond another one, as boxes that have nothing in common."""
    inside = tuple(map(common, box, other))
    if not all(inside):
        yield box
        return
    for axis, middle in enumerate(inside):
        for side in (range(box[axis].start, middle.start), range(middle.stop, box[axis].stop)):
            if side:
                yield (*inside[:axis], side, *box[axis + 1 :])
