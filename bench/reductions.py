"""Reductions and scans of arrays of random numbers, in plain NumPy."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from programs import TOLERANCE

from arrayjit.contest.checking import added_in_order
from arrayjit.contest.tasks import Arguments, Choice, Task

__all__ = ["reductions"]


def sum_of(x):
    return x.sum()


def means_of_columns(x):
    return x.mean(axis=0)


def maxima_of_rows(x):
    return x.max(axis=1)


def argmax(x):
    return x.argmax()


def variance(x):
    return x.var()


def norm(x):
    return np.sqrt((x * x).sum())


def dot(x, y):
    return x @ y


def cumsum(x):
    return np.cumsum(x)


def logsumexp(x):
    largest = x.max(axis=1)
    return np.log(np.exp(x - largest[:, np.newaxis]).sum(axis=1)) + largest


def square(n: int, dtype: str) -> Arguments:
    side = math.isqrt(n)
    return (np.random.default_rng(1).random((side, side)).astype(dtype),)


def vectors(n: int, dtype: str) -> Arguments:
    return tuple(np.random.default_rng(1).random((2, n)).astype(dtype))


def vector(n: int, dtype: str) -> Arguments:
    return vectors(n, dtype)[:1]


PROGRAMS: dict[str, tuple[Callable[..., Any], Callable[[int, str], Arguments]]] = {
    "sum": (sum_of, square),
    "means_of_columns": (means_of_columns, square),
    "maxima_of_rows": (maxima_of_rows, square),
    "argmax": (argmax, vector),
    "variance": (variance, square),
    "norm": (norm, vector),
    "dot": (dot, vectors),
    "cumsum": (cumsum, vector),
    "logsumexp": (logsumexp, square),
}
QUICK = ("sum", "norm")


def reductions(choice: Choice) -> Iterator[Task]:
    for name, (function, make) in PROGRAMS.items():
        for dtype in choice.dtypes or ("float64",):
            for size in choice.sizes or ("1000000",):
                if choice.quick and name not in QUICK:
                    continue
                yield Task(
                    suite="reductions",
                    name=name,
                    size=size,
                    dtype=dtype,
                    function=function,
                    make=lambda make=make, size=size, dtype=dtype: make(int(size), dtype),
                    tolerance=tolerance(name, int(size), dtype),
                )


def tolerance(name: str, n: int, dtype: str) -> float:
    """NumPy's own running sums add one number after another."""
    return max(TOLERANCE[dtype], added_in_order(n, np.dtype(dtype)) if name == "cumsum" else 0.0)
