"""What is known of numbers that are not: the ranges of symbols, and expressions that they lie between.

The index of `for j in range(i)` is less than `i`, so `i - j` is more than 0 whatever `i` is; and twice
`i // 2` is no more than `i`.
"""

from __future__ import annotations

import math

from ...ir.index import Affine, Symbol

__all__ = ["Limits"]


class Limits:
    """The limits of symbols, or of multiples of them, in expressions of earlier symbols."""

    def __init__(self) -> None:
        self._known: dict[Symbol, tuple[Affine, Affine, int]] = {}
        self._least: dict[tuple[tuple[int, Symbol], ...], int] = {}

    def note(self, symbol: Symbol, low: Affine, high: Affine, times: int = 1) -> None:
        """From now on `low <= times * symbol < high`; symbols in these were made before."""
        if low.terms or high.terms:
            self._known[symbol] = (low, high, times)

    def note_least(self, value: Affine, least: int) -> None:
        """From now on the value is never less; of `-value`, that the value is never more than `-least`."""
        if value.terms:
            known = self._least.get(value.terms)
            end = least - value.offset
            self._least[value.terms] = end if known is None else max(known, end)

    def note_quotient(self, quotient: Affine, value: Affine, divisor: int) -> None:
        """From now on the first number is what the second by a positive number is, rounded down."""
        if quotient.symbol is not None:
            self.note(quotient.symbol, value - divisor + 1, value + 1, times=divisor)

    def least(self, value: Affine) -> int | None:
        """The smallest value that is known to be possible; None when there is no bound."""
        noted = self._least.get(value.terms)
        ends = (_least_in_ranges(value), None if noted is None else noted + value.offset)
        best, altogether = max((end for end in ends if end is not None), default=None), 1
        symbol = self._newest(value)
        while symbol is not None:
            low, high, times = self._known[symbol]
            coefficient = value.coefficient(symbol)
            end = low if coefficient > 0 else high - 1
            value, altogether = (value - symbol * coefficient) * times + end * coefficient, altogether * times
            other = _least_in_ranges(value)
            if other is not None and (best is None or other > best * altogether):
                best = -(-other // altogether)
            symbol = self._newest(value)
        return best

    def most(self, value: Affine) -> int | None:
        """The largest value that is known to be possible; None when there is no bound."""
        least = self.least(-value)
        return None if least is None else -least

    def greatest(self, value: Affine) -> Affine:
        """A number that the value never exceeds, and does not fall short of everywhere: without symbols whose
        limits are known."""
        while (symbol := self._newest(value, most_times=1)) is not None:
            low, high, _ = self._known[symbol]
            coefficient = value.coefficient(symbol)
            end = high - 1 if coefficient > 0 else low
            value = value + (end - Affine.of(symbol)) * coefficient
        return value

    def between(self, value: Affine) -> tuple[int, int] | None:
        """The smallest and the largest value, if both are known."""
        least, most = self.least(value), self.most(value)
        return None if least is None or most is None else (least, most)

    def _newest(self, value: Affine, most_times: float = math.inf) -> Symbol | None:
        """The latest symbol of which so many times at most have known limits."""
        for symbol in reversed(value.symbols):
            if symbol in self._known and self._known[symbol][2] <= most_times:
                return symbol
        return None


def _least_in_ranges(value: Affine) -> int | None:
    low = value.offset
    for coefficient, symbol in value.terms:
        last = None if symbol.upper is None else symbol.upper - 1
        end = symbol.lower if coefficient > 0 else last
        if end is None:
            return None
        low += coefficient * end
    return low
