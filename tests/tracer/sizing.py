"""Programs whose sizes depend on an int that is passed: for many of its values like NumPy, compiled once."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from copy import deepcopy
from typing import Any

import numpy as np
import pytest
from harness import assert_same

import arrayjit

__all__ = ["EDGES", "N", "assert_like_numpy", "assert_near", "matrix", "vector"]

N = 6
EDGES = (-N - 3, -N - 1, -N, 1 - N, -2, -1, 0, 1, 2, N - 1, N, N + 1, N + 3)
"""Where a bound may change its meaning on an axis of extent N."""

vector = np.array([3.0, -1.0, 4.0, -1.0, 5.0, -9.0])
matrix = np.arange(24.0).reshape(N, 4) - 7
"""Whole numbers, whose sums are exact in any order."""


def assert_like_numpy(
    program: Callable[..., Any],
    *arguments: Any,
    numbers: Iterable[int] = EDGES,
    compiles: int | None = 1,
    tolerance: float = 0.0,
) -> None:
    """For every number, passed last: the same result or the same exception, and the arguments left the same.
    `compiles` says how often that compiles; None for any number of times."""
    for target in ("interp", "sync_llvm"):
        jitted = arrayjit.jit(program, target=target)
        for number in numbers:
            plain, traced = deepcopy(arguments), deepcopy(arguments)
            wanted, error = _outcome(program, (*plain, number))
            if error is None:
                assert_near(jitted(*traced, number), wanted, tolerance)
            else:
                with pytest.raises(error):
                    jitted(*traced, number)
            assert_same(traced, plain)
        assert compiles in (None, jitted.stats().compiles)


def _outcome(program: Callable[..., Any], arguments: tuple[Any, ...]) -> tuple[Any, type[Exception] | None]:
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return program(*arguments), None
    except (ArithmeticError, IndexError, TypeError, ValueError) as error:
        return None, next(kind for kind in type(error).__mro__ if kind.__module__ == "builtins")


def assert_near(got: Any, wanted: Any, tolerance: float) -> None:
    """Equal, or equal but for rounding."""
    if tolerance and wanted is not None:
        np.testing.assert_allclose(got, wanted, rtol=tolerance, atol=tolerance, strict=True)
    else:
        assert_same(got, wanted)
