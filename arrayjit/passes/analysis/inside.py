"""Which cells lie inside their arrays, and which apart from others.

Where loops end at numbers that loops around are at, cells are those of triangles: with `k` up to 18 and `l`
up to `18 - k`, no position `k + l + 1` is greater than 19, though its bounds are 1 and 37. So the range of
such a loop's symbol tells how its ends vary.
"""

from __future__ import annotations

from collections.abc import Iterable

from ...ir.index import Affine, Symbol
from ...ir.tensor import Tensor
from .access import Range, Ranges

__all__ = ["Varying", "are_apart", "exists", "is_inside"]

DEEP = 16
"""So many symbols of loops are followed to those of loops around."""


class Varying(tuple[int, int]):
    """A range whose ends vary with outer symbols: a value of its symbol is between `least` and `most`, both
    included."""

    least: Affine
    most: Affine

    @staticmethod
    def of(known: Range, least: Affine, most: Affine) -> Varying:
        found = Varying(known)
        found.least, found.most = least, most
        return found


def exists(tensor: Tensor, index: Iterable[Affine], ranges: Ranges) -> bool:
    """Is the cell inside the tensor, whatever the symbols are?"""
    pairs = zip(index, tensor.shape, strict=True)
    return all(is_inside(position, extent, ranges) for position, extent in pairs)


def is_inside(position: Affine, extent: Affine, ranges: Ranges) -> bool:
    """Is a position inside an axis, whatever the symbols are?"""
    known = position.bounds(ranges)
    if known is None or extent.terms:
        return False
    return (known[0] >= 0 or _is_positive(position + 1, ranges)) and (
        known[1] < extent.offset or _is_positive(extent - position, ranges)
    )


def are_apart(one: Iterable[Affine], other: Iterable[Affine], ranges: Ranges) -> bool:
    """Are two cells of an array different ones, whatever the symbols are?"""
    ways = [mine - theirs for mine, theirs in zip(one, other, strict=True)]
    return any(_is_positive(way, ranges) or _is_positive(-way, ranges) for way in ways)


def _is_positive(number: Affine, ranges: Ranges) -> bool:
    """Is a number greater than 0 as far as the ends of loops tell, those of inner ones first?"""
    for _ in range(DEEP):
        found = _innermost(number, ranges)
        if found is None:
            break
        symbol, known = found
        end = known.least if number.coefficient(symbol) > 0 else known.most
        number = number.substitute({symbol: end})
    bounds = number.bounds(ranges)
    return bounds is not None and bounds[0] > 0


def _innermost(number: Affine, ranges: Ranges) -> tuple[Symbol, Varying] | None:
    for _, symbol in reversed(number.terms):
        known = ranges.get(symbol)
        if isinstance(known, Varying):
            return symbol, known
    return None
