"""`np.polymul` and `np.polydiv`, whose results are as long as the run finds: without leading zeros."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..record.registry import implements
from .adopted import numpy_program

__all__: list[str] = []


@implements(np.polymul)
@numpy_program
def polymul(a1: Any, a2: Any) -> Any:
    left, right = np.atleast_1d(a1), np.atleast_1d(a2)
    return np.convolve(_from_first(left, left != 0), _from_first(right, right != 0))


@implements(np.polydiv)
@numpy_program
def polydiv(u: Any, v: Any) -> Any:
    """The quotient, and the remainder without leading numbers that are zero but for rounding."""
    dividend, divisor = np.atleast_1d(u) + 0.0, np.atleast_1d(v) + 0.0
    kind = np.result_type(dividend, divisor)
    steps, degree = len(dividend) - len(divisor) + 1, len(divisor) - 1
    scale = 1.0 / divisor[0]
    quotient: Any = np.zeros(max(steps, 1), kind)
    rest: Any = dividend.astype(kind)
    for k in range(steps):
        quotient[k] = scale * rest[k]
        rest[k : k + degree + 1] -= quotient[k] * divisor
    return quotient, _from_first(rest, ~np.isclose(rest, 0, rtol=1e-14))


@numpy_program
def _from_first(numbers: Any, flags: Any) -> Any:
    """The numbers from the first one on that is flagged; the last one if none is."""
    first = np.where(np.any(flags), np.argmax(flags), len(numbers) - 1)
    return numbers[int(first) :].copy()
