"""Timing two ways of computing the same thing, so that their ratio means something.

Machines are noisy, so both are run in turn and the medians compared: a slow spell hits both.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import numpy as np

from ..frozen import frozen

__all__ = ["Comparison", "in_turn", "largest_difference", "seconds"]

Result = TypeVar("Result")


@frozen
class Comparison:
    """One row of the demo's table. Times are in seconds; `difference` is the largest absolute one."""

    name: str
    numpy: float
    first: float
    warm: float
    difference: float

    @property
    def speedup(self) -> float:
        return self.numpy / self.warm


def seconds(call: Callable[[], Result]) -> tuple[float, Result]:
    """How long one call takes, and what it returns."""
    start = time.perf_counter()
    result = call()
    return time.perf_counter() - start, result


def in_turn(one: Callable[[], Any], other: Callable[[], Any], runs: Iterable[int]) -> tuple[float, float]:
    """The median seconds of each, called in turn, once for each of `runs`."""
    pairs = [(seconds(one)[0], seconds(other)[0]) for _ in runs]
    first, second = zip(*pairs, strict=True)
    return statistics.median(first), statistics.median(second)


def largest_difference(ours: tuple[Any, ...], theirs: tuple[Any, ...]) -> float:
    """The largest absolute difference between results that must have equal dtypes and shapes.

    Raises AssertionError where they have not, or where one is NaN and the other is a number.
    """
    worst = 0.0
    for our, their in zip(ours, theirs, strict=True):
        left, right = np.asarray(our), np.asarray(their)
        if left.dtype != right.dtype or left.shape != right.shape:
            raise AssertionError(f"{left.dtype}{left.shape} is not NumPy's {right.dtype}{right.shape}")
        if not np.array_equal(np.isnan(left), np.isnan(right)):
            raise AssertionError("NaN in other places than NumPy's")
        gap = np.abs(left.astype(np.float64) - right.astype(np.float64))
        worst = max(worst, float(np.nanmax(gap, initial=0.0)))
    return worst
