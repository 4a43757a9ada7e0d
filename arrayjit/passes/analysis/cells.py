"""Which cells the iterations of a loop have in common."""

from __future__ import annotations

from ...ir.expr import Load
from ...ir.index import Affine, Symbol, symbols_of
from ...ir.loops import Bind, For
from ...ir.tensor import Tensor
from .access import Ranges, declared, distances, region
from .inside import are_apart

__all__ = ["Cells"]

LONGEST = 2**40
"""More iterations than any loop has."""


class Cells:
    """The cells that a loop's body reaches, over its iterations. `ranges` may be those of a whole program:
    they are looked up, not copied."""

    def __init__(self, loop: For, ranges: Ranges) -> None:
        number = Symbol(loop.symbol.hint)
        span = (loop.hi - loop.lo).bounds(ranges)
        most = LONGEST if span is None else max(abs(span[0]), abs(span[1]))
        self._bound = {stmt.symbol: declared(stmt.symbol) for stmt in loop.body if isinstance(stmt, Bind)}
        self._symbol = loop.symbol
        self._number = number
        self._ranges = ranges
        self._span = 0, most
        self._values = {loop.symbol: loop.lo + Affine.of(number) * loop.step}

    def is_known(self, index: tuple[Affine, ...]) -> bool:
        """Does an index depend on no number that an iteration computes?"""
        return not any(symbol in self._bound for position in index for symbol in position.symbols)

    def meet(self, one: Load, tensor: Tensor, index: tuple[Affine, ...] | None) -> bool:
        """May an access reach, in any iteration, what another one reaches in any?"""
        if tensor.storage is not one.tensor.storage or self._is_never(one, tensor, index):
            return False
        mine = region(one.tensor, one.index, self._bound).renamed(self._values)
        other = region(tensor, index, self._bound).renamed(self._values)
        named = symbols_of(span.base for span in (*mine.spans, *other.spans) if span is not None)
        ranges = {symbol: self._ranges[symbol] for symbol in named if symbol in self._ranges}
        return distances(mine, other, (self._number,), {**ranges, self._number: self._span}) is not None

    def _is_never(self, one: Load, tensor: Tensor, index: tuple[Affine, ...] | None) -> bool:
        """Is one cell for all iterations another one than an access reaches, as the ends of loops tell?"""
        if tensor is not one.tensor or index is None or not self.is_known(one.index):
            return False
        stays = self._symbol not in symbols_of(one.index)
        return stays and are_apart(one.index, index, self._ranges)
