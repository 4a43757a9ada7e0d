"""What a kernel is: a NumPy function, how its arguments are drawn, and how its results are judged."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["DOUBLE", "EXACT", "SINGLE", "Kernel", "difference", "results_of"]

# Elementwise arithmetic and moves: the bits are NumPy's.
EXACT = 0.0
# Reductions and elementary functions round otherwise than NumPy's, in float64 and in float32.
DOUBLE = 1e-12
SINGLE = 1e-5


@dataclass(frozen=True, slots=True)
class Kernel:
    """A row of the table of kernels.

    `make` draws the arguments from a seeded generator, for the extents of one of `sizes` ("small",
    "medium", "large"). The function may write to its arguments. `check(arguments, results)` asserts a fact
    known from mathematics; `arguments` are those before the call, and `results` are the returned values
    followed by the arguments after the call, in one tuple. `tolerance` bounds the difference from NumPy,
    as a fraction of the largest number of each result. `changed` says what had to be rewritten for
    arrayjit, and why; `plain` is then the function as it was.
    """

    name: str
    function: Callable[..., Any]
    make: Callable[..., tuple[Any, ...]]
    sizes: Mapping[str, Mapping[str, int]]
    source: str
    check: Callable[[tuple[Any, ...], tuple[Any, ...]], None]
    tolerance: float = DOUBLE
    changed: str = ""
    plain: Callable[..., Any] | None = None

    def arguments(self, size: str) -> tuple[Any, ...]:
        """The arguments at a size; the same ones at every call."""
        return self.make(np.random.default_rng(20260), **self.sizes[size])


def results_of(function: Callable[..., Any], arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """What a call returns, followed by the arguments as it leaves them."""
    returned = function(*arguments)
    return (*returned, *arguments) if isinstance(returned, tuple) else (returned, *arguments)


def difference(got: tuple[Any, ...], wanted: tuple[Any, ...]) -> float:
    """How far results are from those wanted, as a fraction of the largest number of each of those.

    Infinite where the types, the dtypes or the shapes differ, and where integers or what is not finite do.
    """
    if len(got) != len(wanted):
        return math.inf
    return max(map(_difference, got, wanted))


def _difference(got: Any, wanted: Any) -> float:
    ours, theirs = np.asarray(got), np.asarray(wanted)
    if type(got) is not type(wanted) or ours.dtype != theirs.dtype or ours.shape != theirs.shape:
        return math.inf
    if ours.dtype.kind != "f":
        return 0.0 if np.array_equal(ours, theirs) else math.inf
    apart = ~((ours == theirs) | (np.isnan(ours) & np.isnan(theirs)))
    if not apart.any():
        return 0.0
    largest = np.max(np.abs(theirs), where=np.isfinite(theirs), initial=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        worst = np.max(np.abs(ours[apart] - theirs[apart])) / largest
    return float(worst) if np.isfinite(worst) else math.inf
