"""Stencils whose rows are computed two at a time have the cells that NumPy gives."""

from __future__ import annotations

import numpy as np
import pytest

import arrayjit


def five_points(x):
    y = np.zeros_like(x)
    y[1:-1, 1:-1] = x[1:-1, 1:-1] + 0.1 * (x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:])
    return y


def nine_points(x):
    y = x.copy()
    rows, columns = x.shape
    total = np.zeros((rows - 2, columns - 2), x.dtype)
    for i in range(3):
        for j in range(3):
            total = total + x[i : rows - 2 + i, j : columns - 2 + j]
    y[1:-1, 1:-1] = total
    return y


def back_and_forth(x):
    y = x.copy()
    for _ in range(3):
        y[1:-1, 1:-1] = x[1:-1, 1:-1] + 0.5 * (x[2:, 1:-1] - x[:-2, 1:-1])
        x[1:-1, 1:-1] = y[1:-1, 1:-1] - 0.25 * (y[2:, 1:-1] + y[:-2, 1:-1])
    return x + y


@pytest.mark.parametrize("options", [{}, {"threads": 2}, {"target": "c"}], ids=str)
@pytest.mark.parametrize("function", [five_points, nine_points, back_and_forth])
@pytest.mark.parametrize("shape", [(3, 3), (4, 20), (5, 37), (40, 18), (41, 130), (100, 133)])
def test_cells_are_those_of_numpy(function, shape, options):
    jitted = arrayjit.jit(function, **options)
    for dtype in (np.float64, np.float32):
        x = np.random.default_rng(3).random(shape).astype(dtype)
        assert jitted(x.copy()).tobytes() == function(x.copy()).tobytes()


@pytest.mark.parametrize("function", [five_points, nine_points, back_and_forth])
def test_two_rows_are_computed_at_once(function):
    text = arrayjit.jit(function).lower(np.zeros((101, 131))).as_text()
    assert "[2*i" in text
