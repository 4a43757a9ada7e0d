"""What is known of numbers that are not: the ranges of symbols, and expressions that they lie between.

The index of `for j in range(i)` is less than `i`, so `i - j` is more than 0 whatever `i` is.
"""

from __future__ import annotations

from ...ir.index import Affine, Symbol

__all__ = ["Limits"]


class Limits:
    """The limits of symbols in expressions of earlier symbols."""

    def __init__(self) -> None:
        self._known: dict[Symbol, tuple[Affine, Affine]] = {}

    def note(self, symbol: Symbol, low: Affine, high: Affine) -> None:
        """From now on `low <= symbol < high`; symbols in these were made before."""
        if low.terms or high.terms:
            self._known[symbol] = (low, high)

    def least(self, value: Affine) -> int | None:
        """The smallest value that is known to be possible; None when there is no bound."""
        best = _least_in_ranges(value)
        symbol = self._newest(value)
        while symbol is not None:
            low, high = self._known[symbol]
            coefficient = value.coefficient(symbol)
            end = low if coefficient > 0 else high - 1
            value = value + (end - Affine.of(symbol)) * coefficient
            other = _least_in_ranges(value)
            if other is not None and (best is None or other > best):
                best = other
            symbol = self._newest(value)
        return best

    def most(self, value: Affine) -> int | None:
        """The largest value that is known to be possible; None when there is no bound."""
        least = self.least(-value)
        return None if least is None else -least

    def greatest(self, value: Affine) -> Affine:
        """A number that the value never exceeds, and does not fall short of everywhere: without symbols whose
        limits are known."""
        while (symbol := self._newest(value)) is not None:
            low, high = self._known[symbol]
            coefficient = value.coefficient(symbol)
            end = high - 1 if coefficient > 0 else low
            value = value + (end - Affine.of(symbol)) * coefficient
        return value

    def between(self, value: Affine) -> tuple[int, int] | None:
        """The smallest and the largest value, if both are known."""
        least, most = self.least(value), self.most(value)
        return None if least is None or most is None else (least, most)

    def _newest(self, value: Affine) -> Symbol | None:
        """The latest symbol whose limits are known."""
        return next((symbol for symbol in reversed(value.symbols) if symbol in self._known), None)


def _least_in_ranges(value: Affine) -> int | None:
    low = value.offset
    for coefficient, symbol in value.terms:
        last = None if symbol.upper is None else symbol.upper - 1
        end = symbol.lower if coefficient > 0 else last
        if end is None:
            return None
        low += coefficient * end
    return low
