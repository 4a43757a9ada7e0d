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


def tridiagonal(x: np.ndarray) -> np.ndarray:
    """Elimination downwards, in rows that only this one has, and back upwards."""
    above, right, y = np.empty_like(x), np.empty_like(x), np.empty_like(x)
    above[:, 0], right[:, 0] = 0.25, x[:, 0]
    for t in range(1, x.shape[1]):
        above[:, t] = 0.3 * x[:, t]
        scale = 1.0 / (2.0 - 0.5 * above[:, t - 1])
        above[:, t] *= scale
        right[:, t] = (x[:, t] - 0.5 * right[:, t - 1]) * scale
    y[:, -1] = right[:, -1]
    for t in range(x.shape[1] - 2, -1, -1):
        y[:, t] = right[:, t] - above[:, t] * y[:, t + 1]
    return y


def back_in_one_row(x: np.ndarray) -> np.ndarray:
    """What each row makes in a table is gone through backwards in a flat shape."""
    y = np.zeros_like(x)
    for i in range(x.shape[0]):
        table = np.zeros((3, x.shape[1] // 3))
        s = 0.0
        for j in range(table.shape[0]):
            for k in range(table.shape[1]):
                s = 0.5 * s + x[i, j * table.shape[1] + k]
                table[j, k] = s
        flat = table.reshape(-1)
        s = 0.0
        for k in range(flat.size):
            s = 0.5 * s + flat[flat.size - 1 - k]
            y[i, k] = s
    return y


PROGRAMS = [back_in_one_row, drawdowns, running, largest_so_far, averages, solved, tridiagonal]


@pytest.mark.parametrize("program", PROGRAMS)
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


def test_rows_with_memory_of_their_own_go_together() -> None:
    text = arrayjit.jit(tridiagonal, threads=1).lower(np.ones((40, 300))).as_text("optimized")
    assert "temporary[f64, 2, 300]" in text
