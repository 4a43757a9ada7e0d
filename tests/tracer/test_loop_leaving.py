"""The rules of docs/loops.md: a loop that its body leaves in the first of the iterations that are recorded is
not unrolled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from rolling import assert_like_numpy, length

square = np.cos(np.arange(400.0)).reshape(20, 20) + 2
row = np.cos(np.arange(40.0))

# ---- a `break` behind a turn -------------------------------------------------------------------------


def forward_substitution(a: Any) -> Any:
    y = a[0].copy()
    for i in range(len(a)):
        for j in range(len(a)):
            if j >= i:
                break
            y[i] -= a[i, j] * y[j]
        y[i] /= a[i, i]
    return y


def what_the_last_iteration_does(a: Any) -> None:
    for i in range(len(a)):
        for j in range(len(a)):
            if j > i + 3:
                a[i, j] = 0.0
                break
            a[i, j] *= 2


def backward(a: Any) -> None:
    for i in range(len(a)):
        for j in range(len(a) - 1, -1, -1):
            if j <= i:
                break
            a[i, j] += a[j, i]


def at_one_index(a: Any) -> None:
    for i in range(len(a)):
        for j in range(len(a)):
            if j == i + 2:
                a[i, j] = 1.0
                break
            a[i, j] = 0.0


def names_that_change(a: Any) -> Any:
    totals = np.zeros(len(a))
    for i in range(len(a)):
        total, reached = 0.0, -1
        for j in range(len(a)):
            reached = j
            if j > i + 9:
                total = total * 0.5 + a[i, j]
                break
            total += a[i, j]
        totals[i] = total + reached
    return totals


def arrays_that_change(a: Any) -> Any:
    y = np.zeros(len(a))
    for i in range(len(a)):
        for j in range(len(a)):
            if j > i:
                y = y + a[i]
                break
            y = y * 0.5 + 1
    return y


def one_in_the_other(a: Any) -> Any:
    y = np.zeros(len(a))
    for i in range(len(a)):
        if i > 17:
            break
        for j in range(len(a)):
            for k in range(len(a)):
                if k > j:
                    break
                y[k] += a[i, j]
            if j > i:
                break
            y[i] += a[j, i]
    return y


NESTED = [
    forward_substitution,
    what_the_last_iteration_does,
    backward,
    at_one_index,
    names_that_change,
    arrays_that_change,
    one_in_the_other,
]


@pytest.mark.parametrize("program", NESTED)
def test_a_break_behind_a_turn_is_as_in_python(program: Callable[[Any], Any]) -> None:
    assert_like_numpy(program, *((square[:n, :n],) for n in (20, 17, 5, 1)))


@pytest.mark.parametrize("program", NESTED)
def test_a_loop_that_is_left_behind_a_turn_is_kept(program: Callable[[Any], Any]) -> None:
    assert length(program, np.ones((30, 30))) == length(program, np.ones((300, 300)))


def test_a_loop_is_left_at_an_argument() -> None:
    def program(x: Any, most: int) -> Any:
        total = 0.0
        for i in range(len(x)):
            if i >= most:
                break
            total += x[i]
        return total, i

    assert_like_numpy(program, *((row, most) for most in (0, 1, 25, 39, 40, 99)))
    assert length(program, np.ones(4000), 3000) == length(program, np.ones(400), 300)


def test_a_loop_of_a_bound_from_an_array_is_left() -> None:
    def program(x: Any, counts: Any) -> Any:
        y = np.zeros(len(counts))
        for i in range(len(counts)):
            for j in range(counts[i]):
                if j > i + 2:
                    y[i] *= 0.5
                    break
                y[i] += x[j]
        return y

    assert_like_numpy(program, (row, np.arange(20) % 7), (row, np.zeros(20, int)))


# ---- what follows --------------------------------------------------------------------------------


def with_an_else(a: Any) -> Any:
    ends = 0
    for i in range(len(a)):
        for j in range(len(a)):
            if j > i + 3:
                a[i, j] = 0.0
                break
            a[i, j] *= 2
        else:
            ends += 1
    return ends


def ended_by_an_exception(a: Any) -> None:
    for i in range(len(a)):
        try:
            for j in range(len(a)):
                if j > i:
                    raise ValueError
                a[i, j] *= 2
        except ValueError:
            a[i, 0] = 7.0


def that_appends(a: Any) -> Any:
    found = []
    for i in range(len(a)):
        for j in range(len(a)):
            if j > i:
                found.append(a[i, j])
                break
    return found


def that_changes_places(a: Any) -> Any:
    x, y = a[0].copy(), a[1].copy()
    for i in range(len(a)):
        for j in range(len(a)):
            if j > i:
                x, y = y, x
                break
            y = y + a[j]
    return x, y


def returned(a: Any) -> Any:
    for i in range(len(a)):
        for j in range(len(a)):
            if j > i + 20:
                return a[i, j]
            a[i, j] = 0.0
    return None


def with_what_only_one_way_binds(a: Any) -> Any:
    for i in range(len(a)):
        if i >= 17:
            last, number, total = a[i], 2 * i + 1, a[i].sum()
            break
        a[i] *= 2
    else:
        last, number, total = a[0], -1, 0.0
    return last, number, total


@pytest.mark.parametrize(
    "program",
    [
        with_what_only_one_way_binds,
        with_an_else,
        ended_by_an_exception,
        that_appends,
        that_changes_places,
        returned,
    ],
)
def test_what_differs_after_a_break_is_as_in_python(program: Callable[[Any], Any]) -> None:
    assert_like_numpy(program, (square,), (square[:18, :18],), (square[:3, :3],))


def test_nothing_follows_a_return_that_is_like_the_end() -> None:
    def program(x: Any, most: int) -> None:
        for i in range(1, len(x)):
            if i >= most:
                x[i] = 7.0
                return
            x[i] += x[i - 1]

    assert_like_numpy(program, (row, 25), (row, 1), (row, 99))
    assert length(program, np.ones(4000), 3000) == length(program, np.ones(400), 300)
