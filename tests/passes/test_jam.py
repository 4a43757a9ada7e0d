"""Stencils whose rows are computed two at a time have the cells that NumPy gives."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import arrayjit
from arrayjit.ir.code import Caps
from arrayjit.ir.parse import parse
from arrayjit.ir.text import print_kernel
from arrayjit.passes.schedule.jam import jam

FOUR_POINTS = """
def f(x: read[f64, 30, 40], y: write[f64, 30, 40]):
    for i in parallel(0, 27):
        y[i + 1, 0] = x[i + 1, 0]
        for j in vector(0, 38, lanes=8):
            t: f64 = add[f64](add[f64](x[i + 1, j + 2], x[i + 1, j]), x[i + 2, j + 1])
            y[i + 1, j + 1] = add[f64](t, x[i, j + 1])
"""


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


def four_points(x):
    """The next row's cells are beside those of a row; what is at the sides is copied row by row."""
    y = x.copy()
    for _ in range(4):
        before = y.copy()
        y[1:-1, 1:-1] = 0.25 * (before[:-2, 1:-1] + before[2:, 1:-1] + before[1:-1, :-2] + before[1:-1, 2:])
    return y


@pytest.mark.parametrize("options", [{}, {"threads": 2}, {"target": "c"}], ids=str)
@pytest.mark.parametrize("function", [five_points, nine_points, back_and_forth, four_points])
@pytest.mark.parametrize("shape", [(3, 3), (4, 20), (5, 37), (40, 18), (41, 130), (100, 133)])
def test_cells_are_those_of_numpy(function, shape, options):
    jitted = arrayjit.jit(function, **options)
    for dtype in (np.float64, np.float32):
        x = np.random.default_rng(3).random(shape).astype(dtype)
        assert jitted(x.copy()).tobytes() == function(x.copy()).tobytes()


@pytest.mark.parametrize("function", [five_points, nine_points, back_and_forth])
def test_two_rows_are_computed_at_once(function):
    text = arrayjit.jit(function).lower(np.zeros((30, 60))).as_text()
    assert "[2*i" in text


def test_rows_stay_where_the_second_cache_takes_what_they_store():
    kernel = parse(FOUR_POINTS)
    caps = Caps(vector_bytes=64, l1_bytes=16 * 1024, l2_bytes=32 * 1024)
    assert jam(kernel, caps) is kernel
    assert jam(kernel, replace(caps, l1_bytes=32 * 1024)) is not kernel
    assert jam(kernel, replace(caps, l2_bytes=16 * 1024)) is not kernel


def test_cells_beside_one_another_are_shared_where_vectors_fill_lines():
    kernel = parse(FOUR_POINTS)
    assert "y[2*i + 2, j + 1]" in print_kernel(jam(kernel, Caps(vector_bytes=64)))
    assert jam(kernel, Caps(vector_bytes=32)) is kernel
    roots = "sqrt[f64](" * 6 + "x[i + 1, j]" + ")" * 6
    longer = parse(FOUR_POINTS.replace("x[i + 1, j]", roots))
    assert jam(longer, Caps(vector_bytes=64)) is longer


def test_rows_whose_inner_loops_form_no_sum_stay():
    kernel = parse(
        """
def f(x: update[f64, 16, 16]):
    for i in parallel(0, 14):
        for j in vector(0, 16, lanes=4):
            for k in sequential(0, 5):
                t: f64 = x[0, j]
                x[i + 2, j] = t
"""
    )
    assert jam(kernel, Caps(vector_bytes=32)) is kernel


def test_a_row_that_steps_repeat_is_that_of_numpy():
    def repeated(x, steps):
        for _ in range(steps):
            x[2:] = np.repeat(x[:1], len(x) - 2, axis=0)
        return x

    x = np.random.default_rng(3).random((16, 16))
    np.testing.assert_array_equal(arrayjit.jit(repeated)(x.copy(), 5), repeated(x.copy(), 5))
