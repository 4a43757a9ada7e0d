"""From the points of a product space to the cells of a tensor: who is reached, and how often.

Both questions are answered with "yes" only when it is certain, from the positions alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..frozen import frozen
from ..ir.index import Affine, Symbol

__all__ = ["Loops", "Projection"]

Loops = tuple[tuple[Symbol, int], ...]
"""Symbols with their extents: a symbol runs from 0."""


@frozen
class Projection:
    """The cell at `index` for every point of `loops`."""

    loops: Loops
    index: tuple[Affine, ...]

    def is_injective(self) -> bool:
        """Whether every point has a cell of its own.

        A position tells its symbols apart if it counts like a number with digits: each coefficient is
        greater than all that the smaller ones add up to. What one position has told apart is fixed in the
        others, so that triangular maps are recognised.
        """
        extents = dict(self.loops)
        unknown = {symbol for symbol, extent in self.loops if extent > 1}
        progress = True
        while unknown and progress:
            progress = False
            for position in self.index:
                rest = sorted((abs(c), extents[s] - 1, s.order) for c, s in position.terms if s in unknown)
                reach = 0
                for coefficient, last, _ in rest:
                    if coefficient <= reach:
                        break
                    reach += coefficient * last
                else:
                    progress = progress or bool(rest)
                    unknown.difference_update(position.symbols)
        return not unknown or any(extent == 0 for _, extent in self.loops)

    def is_surjective(self, region: Sequence[tuple[int, int]]) -> bool:
        """Whether every cell of a region, (first, extent) per axis, is reached: each axis is counted through
        without gaps by symbols of its own."""
        if any(extent == 0 for _, extent in region):
            return True
        extents = dict(self.loops)
        if any(extent == 0 for extent in extents.values()):
            return False
        used: set[Symbol] = set()
        for position, (first, extent) in zip(self.index, region, strict=True):
            own = set(position.symbols)
            if own & used or not own <= extents.keys():
                return False
            used |= own
            if not _counts_through(position, extents, first, extent):
                return False
        return True


def _counts_through(position: Affine, extents: Mapping[Symbol, int], first: int, extent: int) -> bool:
    """Whether a position takes every value from `first` to the end of the extent."""
    low, reach = position.offset, 0
    for coefficient, symbol in sorted(position.terms, key=lambda term: abs(term[0])):
        last = extents[symbol] - 1
        if last > 0 and abs(coefficient) > reach + 1:
            return False
        reach += abs(coefficient) * last
        low += min(coefficient * last, 0)
    return low <= first and first + extent <= low + reach + 1
