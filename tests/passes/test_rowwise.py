"""Steps that rows take by themselves are taken row by row where the rows of all would go through memory."""

from __future__ import annotations

import numpy as np
import pytest

import arrayjit

RNG = np.random.default_rng(7)
POINTS = RNG.standard_normal((150, 2100))


def classes_of_nearest(distances: np.ndarray, labels: np.ndarray, k: int) -> np.ndarray:
    distances = distances.copy()
    everyone = np.arange(len(distances))
    votes = np.zeros((len(distances), 4), dtype=np.int64)
    for _ in range(k):
        nearest = np.argmin(distances, axis=1)
        votes[everyone, labels[nearest]] += 1
        distances[everyone, nearest] = np.inf
    return votes


def smoothed(x: np.ndarray, steps: int) -> np.ndarray:
    x = x.copy()
    for _ in range(steps):
        x[:, 1:-1] = 0.5 * x[:, 1:-1] + 0.25 * (x[:, 2:] + x[:, :-2])
    return x


@pytest.mark.parametrize("target", ["llvm", "c"])
@pytest.mark.parametrize("threads", [1, 2])
def test_each_row_has_all_its_steps(target: str, threads: int) -> None:
    labels = RNG.integers(-4, 4, 2100)
    nearest = arrayjit.jit(classes_of_nearest, target=target, threads=threads)
    assert "row by row" in str(nearest.explain(POINTS, labels, 5))
    np.testing.assert_array_equal(nearest(POINTS, labels, 5), classes_of_nearest(POINTS, labels, 5))
    smooth = arrayjit.jit(smoothed, target=target, threads=threads)
    np.testing.assert_array_equal(smooth(POINTS, 3), smoothed(POINTS, 3))


@pytest.mark.parametrize("threads", [1, 2])
def test_a_row_that_cannot_go_on_raises_its_exception(threads: int) -> None:
    labels = RNG.integers(-4, 4, 2100)
    labels[np.argsort(POINTS[140])[3]] = 10**15
    nearest = arrayjit.jit(classes_of_nearest, threads=threads)
    with pytest.raises(IndexError, match="out of bounds for axis 1 with size 4"):
        nearest(POINTS, labels, 5)


def test_columns_and_what_rows_have_in_common_stay_step_by_step() -> None:
    def columns(x: np.ndarray, steps: int) -> np.ndarray:
        x = x.copy()
        for _ in range(steps):
            x[1:-1] = 0.5 * x[1:-1] + 0.25 * (x[2:] + x[:-2])
            x /= x.max()
        return x

    function = arrayjit.jit(columns)
    assert "row by row" not in str(function.explain(POINTS, 3))
    np.testing.assert_array_equal(function(POINTS, 3), columns(POINTS, 3))
