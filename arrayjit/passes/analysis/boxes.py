"""Boxes of cells of an array: those at some positions along each axis."""

from __future__ import annotations

import math
from collections.abc import Iterator

__all__ = ["Box", "common", "size", "without"]

Box = tuple[range, ...]
"""Each range has step 1."""


def size(box: Box) -> int:
    """The number of cells."""
    return math.prod(map(len, box))


def common(one: range, other: range) -> range:
    """The positions that are in both."""
    return range(max(one.start, other.start), min(one.stop, other.stop))


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
