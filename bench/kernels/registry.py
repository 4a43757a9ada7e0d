"""What a kernel is: a NumPy function, how its arguments are drawn, and how its results are judged."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from arrayjit.contest.checking import difference

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
