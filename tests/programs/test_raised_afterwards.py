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


def densities(x):
    sums = np.zeros(len(x))
    for i in range(len(x)):
        for j in range(20):
            distance = (x[i] - x[j]) / 0.7
            sums[i] += math.exp(-0.5 * distance * distance)
    return sums


def chains_of_roots(x):
    y = np.ones(len(x))
    for i in range(len(x)):
        for j in range(3):
            y[i] = math.sqrt(y[i] - 0.1 * x[i] + j)
    return y


def in_place(x):
    for i in range(len(x)):
        x[i] = math.log(x[i])
    return x


QUICK = [exponentials, roots_and_logarithms, paths, whole_numbers, densities]


@pytest.mark.parametrize("program", QUICK)
def test_loops_that_may_raise_go_in_vectors(program: Callable[..., Any]) -> None:
    assert re.search(r"in vector\(0, 1000", arrayjit.jit(program).lower(positive).as_text("optimized"))


@pytest.mark.parametrize("number", [0.0, -1.0, 1e300, -1e300, np.inf, -np.inf, np.nan])
@pytest.mark.parametrize("program", [*QUICK, chains_of_roots, in_place])
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


def whole_parts(x, start):
    total = start
    for i in range(len(x)):
        total += int(x[i])
    return total


def difference_of_whole_parts(x, start):
    above, below = start, 0
    for i in range(len(x)):
        above += int(x[i] * 2.0)
        below -= int(x[i])
    return above, below


def whole_parts_in_rows(x, start):
    total = start
    for i in range(100):
        for j in range(10):
            total += int(x[10 * i + j])
    return total


TOTALS = [whole_parts, difference_of_whole_parts, whole_parts_in_rows]


@pytest.mark.parametrize("program", TOTALS)
def test_totals_of_whole_parts_are_added_up_in_vectors(program: Callable[..., Any]) -> None:
    assert re.search(
        r"in vector\(0, \d+, lanes=\d+", arrayjit.jit(program).lower(positive, 0).as_text("optimized")
    )


@pytest.mark.parametrize("target", ["sync_llvm", "llvm", "c"])
@pytest.mark.parametrize("start", [0, 2**62, -(2**62), 2**62 + 1, 2**63 - 1, -(2**63), 2**63 - 1000])
@pytest.mark.parametrize("program", TOTALS)
def test_totals_leave_64_bits_where_those_taken_in_order_do(
    program: Callable[..., Any], start: int, target: str
) -> None:
    def added_up(x: np.ndarray, target: str) -> Any:
        return outcome(lambda x: jitted(x, start, target=target), x)

    jitted = arrayjit.jit(program)
    for numbers in ({}, {7: 9e18}, {7: 9e18, 8: -9e18}, {7: -9e18, 500: 3e15}, {999: 1e19}, {3: np.nan}):
        x = positive * 3
        for place, number in numbers.items():
            x[place] = number
        given, wanted = added_up(x, target), added_up(x, "interp")
        assert type(given) is type(wanted)
        assert str(given) == str(wanted)
        if not isinstance(wanted, Exception):
            assert given == program(x, start)


def test_an_exception_leaves_the_cell_as_the_iterations_before_it() -> None:
    def program(x, counts):
        for i in range(len(x)):
            counts[3] += int(x[i])

    for number in (np.nan, 1e300):
        x = positive.copy() * 4
        x[600] = number
        mine, theirs = np.arange(5), np.arange(5)
        with pytest.raises((ValueError, OverflowError)):
            program(x, theirs)
        with pytest.raises((ValueError, OverflowError)):
            arrayjit.jit(program)(x, mine)
        np.testing.assert_array_equal(mine, theirs)
