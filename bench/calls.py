"""Statements on arrays of 16 numbers, in which little but the call takes time."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from arrayjit.contest.tasks import Arguments, Choice, Task

__all__ = ["PROGRAMS", "calls"]

TOLERANCE = 1e-6


def added(a, b):
    return a + b


def added_into(a, b, out):
    return np.add(a, b, out)


def scaled(a, factor):
    return a * factor


def total(a):
    return a.sum()


def chosen(a):
    return a[a > 5]


def ends(leaves):
    first, *_, last = leaves.values()
    return first + last, first - last


def two(dtype: str) -> Arguments:
    return np.arange(16, dtype=dtype), np.ones(16, dtype)


def two_and_out(dtype: str) -> Arguments:
    return *two(dtype), np.zeros(16, dtype)


def one_and_number(dtype: str) -> Arguments:
    return two(dtype)[0], 2.5


def one(dtype: str) -> Arguments:
    return two(dtype)[:1]


def weights(dtype: str) -> Arguments:
    return ({f"weight{n:02}": np.full(16, n, dtype) for n in range(20)},)


PROGRAMS: Mapping[str, tuple[Callable[..., Any], Callable[..., Any], Callable[[str], Arguments]]] = {
    "a + b": (operator.add, added, two),
    "np.add(a, b, out)": (np.add, added_into, two_and_out),
    "a * 2.5": (operator.mul, scaled, one_and_number),
    "a.sum()": (np.ndarray.sum, total, one),
    "a[a > 5]": (chosen, chosen, one),
    "ends of 20 arrays": (ends, ends, weights),
}
"""By the statement: what NumPy's users call, the function that others compile, and its arguments."""


QUICK = ("a + b", "a.sum()")


def calls(choice: Choice) -> Iterator[Task]:
    for name, (function, program, make) in PROGRAMS.items():
        if choice.quick and name not in QUICK:
            continue
        for dtype in choice.dtypes or ("float64",):
            yield Task(
                suite="calls",
                name=name,
                size="16",
                dtype=dtype,
                function=function,
                make=lambda make=make, dtype=dtype: make(dtype),
                tolerance=TOLERANCE,
                program=program,
                idempotent=True,
            )
