"""Loops that may raise go in vectors; the exception is that of the first iteration that raises."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import arrayjit

positive = np.random.default_rng(3).random(1000) + 0.5


def exponentials(x):
    y = np.empty_like(x)
    for i in range(len(x)):
        y[i] = math.exp(-x[i])
    return y


def roots_and_logarithms(x):
    y = np.empty_like(x)
    for i in range(len(x)):
        y[i] = math.sqrt(x[i]) + math.log(x[i])
    return y


def paths(x):
    ends = np.zeros(len(x))
    for i in range(len(x)):
        price = 1.0
        for _ in range(20):
            price = price * math.exp(0.1 * x[i])
        ends[i] = price
    return ends


def whole_numbers(x):
    counts = np.zeros(len(x), np.int64)
    for i in range(len(x)):
        counts[i] = int(x[i] * 10.0)
    return counts


def in_place(x):
    for i in range(len(x)):
        x[i] = math.log(x[i])
    return x


QUICK = [exponentials, roots_and_logarithms, paths, whole_numbers]


@pytest.mark.parametrize("program", QUICK)
def test_loops_that_may_raise_go_in_vectors(program: Callable[..., Any]) -> None:
    assert re.search(r"in vector\(0, 1000", arrayjit.jit(program).lower(positive).as_text("optimized"))


@pytest.mark.parametrize("number", [0.0, -1.0, 1e300, -1e300, np.inf, -np.inf, np.nan])
@pytest.mark.parametrize("program", [*QUICK, in_place])
@pytest.mark.parametrize("target", ["sync_llvm", "llvm", "interp"])
def test_what_is_raised_is_that_of_the_first_iteration_that_raises(
    program: Callable[..., Any], number: float, target: str
) -> None:
    jitted = arrayjit.jit(program).on(target)
    for place in (0, 511, 999):
        x = positive.copy()
        x[place] = number
        x[-2:] = [-5.0, number]
        mine, theirs = x.copy(), x.copy()
        wanted, given = outcome(program, theirs), outcome(jitted, mine)
        if isinstance(wanted, Exception):
            assert isinstance(given, type(wanted))
            assert str(wanted).split(" ")[0] in str(given) or isinstance(wanted, OverflowError)
        else:
            np.testing.assert_allclose(given, wanted, rtol=1e-13)
        np.testing.assert_allclose(mine, theirs, rtol=1e-13)


def outcome(program: Callable[..., Any], x: np.ndarray) -> Any:
    try:
        return program(x)
    except (ValueError, OverflowError) as error:
        return error


def test_what_lies_outside_of_an_array_is_never_touched() -> None:
    def program(x, counts):
        y = np.zeros(len(x))
        for i in range(counts[0]):
            y[i] = x[i] * 2
        return y

    with pytest.raises(IndexError):
        arrayjit.jit(program)(positive, np.array([10**9]))
