"""Programs that are refused, written as their messages say: they compute what Python does."""

# ruff: noqa: B023, RUF059, SIM300

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mistakes
import numpy as np
import pytest

import arrayjit


def continue_after_counting(x):
    total, left_out = 0.0, 0
    for i in range(6):

        def yes(left_out, total):
            return left_out, total + 1 / x[i]

        def no(left_out, total):
            return left_out + 1, total

        left_out, total = arrayjit.cond(np.logical_not(x[i] == 0), yes, no, left_out, total)
    return total, left_out


def if_on_a_position_that_may_not_be_there(x):
    places = x.astype(int)
    for i in range(6):

        def yes():
            x[places[i]] = 0.0

        arrayjit.cond(np.logical_and(0 <= places[i], places[i] < 6), yes, lambda: None)
    return x


def return_of_a_cell_that_may_not_be_there(x):
    k = np.searchsorted(np.sort(x), 3.0)
    return arrayjit.cond(k < 6, lambda: x[k], lambda: np.inf)


def break_before_the_step(x):
    def test(state):
        k, left = state
        return np.logical_and(k - 1 > -1, np.logical_not(left))

    def body(state):
        k, left = state
        k = k - 1
        slope = 2 * x[k]
        left = abs(slope) < 1e-9

        def step():
            x[k] -= 1 / slope

        arrayjit.cond(np.logical_not(left), step, lambda: None)
        return k, left

    k, left = arrayjit.while_loop(test, body, (5 + 1, False))
    return x, k


def while_at_a_position_that_may_not_be_there(x):
    k = 0

    def test(k):
        return arrayjit.cond(k < 6, lambda: x[k] < 9, lambda: False)

    def body(k):
        return k + 1

    k = arrayjit.while_loop(test, body, k)
    return k


def return_of_what_the_loop_finds(x):
    rise = 0.0

    def test(state):
        i, rise, left = state
        return np.logical_and(i + 1 < 6, np.logical_not(left))

    def body(state):
        i, rise, left = state
        i = i + 1
        rise = x[i] - x[i - 1]
        return i, rise, rise > 3

    i, rise, left = arrayjit.while_loop(test, body, (0, rise, False))
    return arrayjit.cond(left, lambda: rise / 2, lambda: 0.0)


FIXED = (
    continue_after_counting,
    if_on_a_position_that_may_not_be_there,
    return_of_a_cell_that_may_not_be_there,
    break_before_the_step,
    while_at_a_position_that_may_not_be_there,
    return_of_what_the_loop_finds,
)
ARGUMENTS = (
    [1.0, 2.0, 3.0, 4.0, 5.0, 6.0],
    [-2.0, 7.0, 0.0, 9.0, 1e300, 3.0],
    [5.0, 4.0, 1e-12, -4.0, 8.0, 2.0],
    [0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
)


@pytest.mark.filterwarnings("ignore:invalid value encountered in cast")
@pytest.mark.parametrize("cells", ARGUMENTS, ids=str)
@pytest.mark.parametrize("fixed", FIXED, ids=lambda fixed: fixed.__name__)
def test_a_program_that_is_written_as_its_fix_says_is_as_in_python(
    fixed: Callable[..., Any], cells: list[float]
) -> None:
    mistake = mistakes.MISTAKES[fixed.__name__].function
    mine, own = np.array(cells), np.array(cells)
    got, expected = arrayjit.jit(fixed)(mine), mistake(own)
    np.testing.assert_equal((got, mine), (expected, own))
