"""The rules of docs/loops.md: loops that carry one of several numbers which stand in arrays of no axes, as
`np.where` gives them and `max` and `min` choose them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from rolling import assert_kept, assert_like_numpy

import arrayjit
from arrayjit.errors import UnsupportedError


def longest_run(x: Any) -> Any:
    run = longest = 0
    for i in range(len(x)):
        run = np.where(x[i] > 0, run + 1, 0)
        longest = max(longest, run)
    return longest, run


def lower_and_higher(x: Any) -> Any:
    low = high = 0.0
    for i in range(len(x)):
        either = np.where(x[i] > 0, low + x[i], high)
        high, low = max(high, either), min(either, np.where(x[i] > 0.5, 5.0, 4.0))
    return low, high


@pytest.mark.parametrize("program", [longest_run, lower_and_higher])
def test_numbers_that_stand_in_arrays_of_no_axes_are_carried_where_one_is_chosen(program: Any) -> None:
    assert_kept(program)
    for n in (0, 1, 2, 5, 40):
        assert_like_numpy(program, (np.sin(np.arange(1.0, n + 1)),))


def test_an_array_of_no_axes_that_may_have_been_chosen_is_not_written() -> None:
    def written_afterwards(x: Any) -> Any:
        longest, run = longest_run(x)
        run += 1
        return longest, run

    def written_meanwhile(x: Any) -> Any:
        run = longest = 0
        for i in range(len(x)):
            run = np.where(x[i] > 0, run + 1, 0)
            longest = max(longest, run)
            run += 1
        return longest, run

    def written_in_the_next_iteration(x: Any) -> Any:
        run, longest = np.array(0), np.array(0)
        for i in range(len(x)):
            longest += 1
            run = np.where(x[i] > 0, run + 1, 0)
            longest = max(longest, run)
        return longest, run

    def changing_places(x: Any) -> Any:
        low, high = np.array(0.0), np.array(1.0)
        for i in range(len(x)):
            low, high = max(low, high), np.where(x[i] > 0, low, high)
        return low, high

    for program in (written_afterwards, written_meanwhile, written_in_the_next_iteration, changing_places):
        with pytest.raises(UnsupportedError, match=r"\[\(\)\]"):
            arrayjit.jit(program)(np.ones(2000))
