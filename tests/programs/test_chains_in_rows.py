"""Rows of which each is one chain of steps: several go together, and every bit is the same."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import arrayjit


def running(x: np.ndarray) -> np.ndarray:
    return x.cumsum(axis=1)


def largest_so_far(x: np.ndarray) -> np.ndarray:
    return np.maximum.accumulate(x, axis=1)


def averages(x: np.ndarray) -> np.ndarray:
    y = np.empty_like(x)
    for i in range(x.shape[0]):
        s = x[i, 0]
        for t in range(x.shape[1]):
            s = 0.1 * x[i, t] + 0.9 * s
            y[i, t] = s
    return y


def solved(x: np.ndarray) -> np.ndarray:
    y = np.empty_like(x)
    for i in range(x.shape[0]):
        y[i, 0] = x[i, 0]
        for t in range(1, x.shape[1]):
            y[i, t] = (x[i, t] - 0.3 * y[i, t - 1]) / (1.5 + y[i, t - 1] * y[i, t - 1])
    return y


def drawdowns(x: np.ndarray) -> np.ndarray:
    peaks = np.maximum.accumulate(x, axis=1)
    return ((peaks - x) / (1 + peaks * peaks)).max(axis=1)


@pytest.mark.parametrize("program", [drawdowns, running, largest_so_far, averages, solved])
@pytest.mark.parametrize(("rows", "columns"), [(1, 300), (7, 300), (9, 300), (35, 257), (12, 3)])
def test_rows_that_go_together_have_the_bits_of_rows_by_themselves(
    program: Callable[[np.ndarray], np.ndarray], rows: int, columns: int
) -> None:
    x = np.random.default_rng(rows).standard_normal((rows, columns))
    x[0, columns // 2] = np.nan
    found = arrayjit.jit(program)(x)
    np.testing.assert_array_equal(found, arrayjit.jit(program, target="interp")(x))
    np.testing.assert_array_equal(found, arrayjit.jit(program, target="c")(x))
    np.testing.assert_array_equal(found, program(x))


def test_moving_averages_go_four_rows_at_a_time() -> None:
    text = arrayjit.jit(averages, threads=1).lower(np.ones((40, 300))).as_text("optimized")
    assert "x[4*k + 3," in text
