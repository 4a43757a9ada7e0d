"""Numbers that follow from constants and sizes alone are known while tracing: docs/control.md, rule 17."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from harness import assert_same
from likeness import TARGETS, assert_runs_as_in_numpy

import arrayjit


def cells() -> np.ndarray:
    return np.arange(12.0).reshape(3, 4)


def checked_shape(x: np.ndarray) -> Any:
    extents = np.asarray(x.shape)
    if np.any(extents <= 0) or not np.array_equal(extents, np.trunc(extents)):
        raise ValueError("empty")
    return x * 2


def number_of_cells(x: np.ndarray) -> Any:
    return x.ravel() if np.array(x.shape).prod() > 5 else x


def compared_shapes(x: np.ndarray) -> Any:
    return x + 1 if np.all(np.greater(x.shape, (2, 2))) else x


def axes_in_an_array(x: np.ndarray) -> Any:
    return x.sum(axis=tuple(np.atleast_1d(1).astype(int)))


def widths_in_an_array(x: np.ndarray) -> Any:
    return np.pad(x, [(width, width) for width in np.array([3, 5]) // 2])


def twice_as_large(x: np.ndarray) -> Any:
    return np.zeros(np.array(x.shape) * 2) + x[0, 0]


def extent_that_is_replaced(x: np.ndarray) -> Any:
    extents = np.array(x.shape)
    extents[1] = 1
    return x.sum(axis=1).reshape(extents)


def part_that_is_replaced(x: np.ndarray) -> Any:
    extents = np.ones((2, 3), int)
    extents[0, 1:] = x.shape
    return x.reshape(extents.max(axis=0))


def what_is_no_number_of_python(x: np.ndarray) -> Any:
    where = np.arange(-1, 2) / 3
    return x[:, :3] * where if np.all(np.isfinite(where)) else x


def choices_of_a_constant(x: np.ndarray) -> Any:
    steps = np.array([2.0, 0.0])
    return [x * step for step in steps if step != 0.0]


def views_and_transposes(x: np.ndarray) -> Any:
    table = (np.arange(6).reshape(2, 3).T + 1)[::-1]
    return x[table[2, 0]] if table[0, 1] == 6 and complex(table[1, 1]) == 5 else x


@pytest.mark.parametrize(
    "program",
    [
        checked_shape,
        number_of_cells,
        compared_shapes,
        axes_in_an_array,
        widths_in_an_array,
        twice_as_large,
        extent_that_is_replaced,
        part_that_is_replaced,
        what_is_no_number_of_python,
        choices_of_a_constant,
        views_and_transposes,
    ],
)
def test_what_numpy_makes_of_constants_decides(program: Callable[..., Any]) -> None:
    assert_runs_as_in_numpy(lambda: (program, (cells(),)))


@pytest.mark.parametrize("place", [0, 2, -1])
def test_a_cell_that_only_the_run_knows_is_written_into_known_numbers(place: int) -> None:
    def program(x: np.ndarray) -> Any:
        table = np.zeros((3, 2))
        table[int(x[0]), 1] = 5.0
        table[int(x[0])] += table[0, 0]
        return table

    assert_runs_as_in_numpy(lambda: (program, (np.array([float(place)]),)))


def written_in_a_loop(x: np.ndarray) -> Any:
    count = np.zeros(1, int)
    for i in range(x.size):
        if count[0] < 3:
            count[0] += 1
        x[i] = count[0]
    return x


def followed_before_it_is_written(x: np.ndarray) -> Any:
    count = np.zeros(1, int)
    for i in range(x.size):
        twice = count * 2
        count[0] += 1
        if twice[0] > 3:
            x[i] = -1
    return x


def written_on_one_side(x: np.ndarray) -> Any:
    count = np.zeros(1, int)

    def write() -> None:
        count[0] = 5

    arrayjit.cond(x[0] > 0, write, lambda: None)
    return x if count[0] == 5 else -x


def made_by_one_side(x: np.ndarray) -> Any:
    count = arrayjit.cond(x[0] > 0, lambda: np.ones(1, int), lambda: np.zeros(1, int))
    return x if count[0] == 1 else -x


def written_until_it_is_enough(x: np.ndarray) -> Any:
    count = np.zeros(1, int)
    while count[0] < x[0]:
        count[0] += 1
    return count


def sums_of_floats(x: np.ndarray) -> Any:
    weights = np.array([0.1, 0.2, 0.3])
    return x if weights.sum() == 0.6 else -x


@pytest.mark.parametrize(
    "program",
    [
        written_in_a_loop,
        followed_before_it_is_written,
        written_on_one_side,
        made_by_one_side,
        written_until_it_is_enough,
        sums_of_floats,
    ],
)
def test_what_may_be_another_number_when_it_runs_does_not_decide(program: Callable[..., Any]) -> None:
    """It is computed as in NumPy, or refused."""
    for first in (1.0, 0.0):
        numbers = np.array([first, 2.0, 3.0, 4.0, 5.0, 6.0])
        for target in TARGETS:
            try:
                got = arrayjit.jit(program, target=target)(numbers.copy())
            except arrayjit.ConcretizationError:
                continue
            assert_same(got, program(numbers.copy()))


def counted_by_a_statement(x: np.ndarray) -> Any:
    count = np.array(x.shape)
    if count[0] > 3:
        x[0] = 0.0
    for _ in range(x.size):
        count[0] += 1
    return count


def counted_by_a_while_loop(x: np.ndarray) -> Any:
    count = np.array(x.shape)
    if count[0] > 3:
        x[0] = 0.0

    def step(number: Any) -> Any:
        count[0] += 1
        return number + 1

    arrayjit.while_loop(lambda number: number < x[1] * 4, step, 0)
    return count


@pytest.mark.parametrize("program", [counted_by_a_statement, counted_by_a_while_loop])
def test_loops_that_write_what_decided_before_them_stay_loops(program: Callable[..., Any]) -> None:
    assert_runs_as_in_numpy(lambda: (program, (np.arange(6.0),)))
    recorded = arrayjit.jit(program).lower(np.arange(6.0)).as_text("assignments")
    assert recorded.count("t[0] = ") == 1


def test_a_loop_reads_what_it_has_written() -> None:
    def program(x: np.ndarray) -> Any:
        last = np.zeros(1, int)
        for i in range(x.size):
            x[i] = last[0] + 1
            last[0] = i * i
        return x, last

    assert_runs_as_in_numpy(lambda: (program, (np.zeros(40),)))


def test_a_state_begins_with_a_constant() -> None:
    def program(x: np.ndarray) -> Any:
        def step(state: Any) -> Any:
            count, total = state
            return count + 1, total + x[count[0]]

        return arrayjit.while_loop(lambda state: state[0][0] < x.size, step, (np.zeros(1, int), 0.0))

    assert_runs_as_in_numpy(lambda: (program, (np.arange(5.0),)))
