"""Extremes of columns and where they stand: with NaN anywhere, zeros of both signs, steps that wait."""

from __future__ import annotations

import numpy as np
import pytest

import arrayjit


def extremes(x):
    return x.argmax(axis=0), x.max(axis=0), x.argmin(axis=0), x.min(axis=0)


def steps(x, score):
    back = np.zeros((4, len(score)), dtype=int)
    for k in range(4):
        paths = score[:, None] + x
        back[k] = paths.argmax(axis=0)
        score = 0.5 * paths.max(axis=0)
    return back, score


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("rows", [1, 2, 12, 16, 17, 24, 31])
@pytest.mark.parametrize("columns", [1, 7, 12, 33, 5000])
def test_extremes_of_columns(rows: int, columns: int, dtype: str) -> None:
    random = np.random.default_rng(rows * columns)
    x = random.integers(-3, 3, (rows, columns)).astype(dtype)
    x[x == 0] = random.choice([0.0, -0.0], (x == 0).sum())
    function = arrayjit.jit(extremes)
    for number in (0.0, np.nan, np.inf, -np.inf):
        x[random.integers(rows), random.integers(columns)] = number
        for expected, actual in zip(extremes(x), function(x), strict=True):
            assert actual.dtype == expected.dtype
            np.testing.assert_array_equal(actual, expected)
    x[:, -1] = np.nan
    for expected, actual in zip(extremes(x), function(x), strict=True):
        np.testing.assert_array_equal(actual, expected)


@pytest.mark.parametrize("states", [1, 3, 8, 12, 15, 20, 40])
@pytest.mark.parametrize("number", [0.0, np.nan, -np.inf])
def test_steps_that_wait_for_extremes(states: int, number: float) -> None:
    random = np.random.default_rng(states)
    x, score = random.standard_normal((states, states)), random.standard_normal(states)
    x[random.integers(states), random.integers(states)] = number
    expected, actual = steps(x, score), arrayjit.jit(steps)(x, score)
    np.testing.assert_array_equal(actual[0], expected[0])
    np.testing.assert_array_equal(actual[1], expected[1])
    assert actual[1].tobytes() == arrayjit.jit(steps, target="interp")(x, score)[1].tobytes()


@pytest.mark.parametrize("rows", [16, 33, 200])
def test_positions_found_beside_long_sums(rows: int) -> None:
    def program(x):
        return x.argmin(axis=0), x.sum(axis=0), x.argmax(axis=0)

    x = np.random.default_rng(rows).standard_normal((rows, 70))
    for found, expected in zip(arrayjit.jit(program)(x), program(x), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
