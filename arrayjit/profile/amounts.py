"""Numbers that are known exactly or within bounds."""

from __future__ import annotations

import math
from typing import Union

from ..frozen import frozen

__all__ = ["NONE", "Amount", "Number"]

Number = Union[int, float]


@frozen
class Amount:
    """A count between `low` and `high`, both reached by some data as far as is known; `high` may be
    `math.inf`. Where both are the same it is exact, and `int(...)` gives it."""

    low: int
    high: Number

    @staticmethod
    def of(low: float, high: float) -> Amount:
        """Whole numbers of what was computed in floats."""
        return Amount(int(low), math.inf if math.isinf(high) else int(high))

    @property
    def is_exact(self) -> bool:
        return self.low == self.high

    def __int__(self) -> int:
        """Raises ValueError where only bounds are known."""
        if not self.is_exact:
            raise ValueError(f"only bounds are known: {self}")
        return self.low

    def __add__(self, other: Amount) -> Amount:
        return Amount(self.low + other.low, self.high + other.high)

    def __str__(self) -> str:
        if self.is_exact:
            return f"{self.low:,}"
        return f"at least {self.low:,}" if math.isinf(self.high) else f"{self.low:,} to {self.high:,}"


NONE = Amount(0, 0)
