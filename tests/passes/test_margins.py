"""Which cells of a table that is filled first are filled, and that results are NumPy's either way."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import arrayjit

N, M = 34, 40
"""A table that is worth loops over its edges."""


def along_rows(x, down, right):
    y = np.full((N, M), 2.5)
    for i in range(1, N - 1):
        for j in range(1, M - 1):
            y[i, j] = 0.5 * y[i + down, j + right] + x[i, j]
    return y


def along_columns(x, down, right):
    y = np.full((N, M), 2.5)
    for j in range(1, M - 1):
        for i in range(1, N - 1):
            y[i, j] = 0.5 * y[i + down, j + right] + x[i, j]
    return y


def after_reading(x, down, right):
    y = np.full((N, M), 2.5)
    x[0, 0] = y[5 + down, 0] + right
    y[1:, :] = x[1:, :]
    return y, x


def in_two_halves(x, down, right):
    y = np.full((N, M), 2.5)
    y[: N // 2] = x[: N // 2] + down
    y[N // 2 :] = x[N // 2 :] + right
    return y


def is_made_of_edges(function, *args) -> bool:
    notes = arrayjit.jit(function, static_argnames=("down", "right")).lower(*args).build.optimized.notes
    return any(note.startswith("margins") for note in notes)


@pytest.mark.parametrize("offset", [*product((-1, 0, 1), repeat=2)], ids=str)
@pytest.mark.parametrize("function", [along_rows, along_columns, after_reading, in_two_halves])
def test_results_are_those_of_numpy(function, offset):
    x = np.random.default_rng(3).random((N, M))
    jitted = arrayjit.jit(function, static_argnames=("down", "right"))
    np.testing.assert_array_equal(jitted(x.copy(), *offset), function(x.copy(), *offset))


@pytest.mark.parametrize("offset", [*product((-1, 0, 1), repeat=2)], ids=str)
def test_a_table_is_filled_where_a_recurrence_needs_it(offset):
    x = np.ones((N, M))
    down, right = offset
    assert is_made_of_edges(along_rows, x, *offset) == (offset < (0, 0))
    assert is_made_of_edges(along_columns, x, *offset) == ((right, down) < (0, 0))


def test_what_is_read_first_is_filled():
    x = np.ones((N, M))
    assert not is_made_of_edges(after_reading, x, 0, 0)
    assert is_made_of_edges(in_two_halves, x, 1, 2)


def sums_and_differences(x):
    y = x.copy()
    pairs = y.reshape(-1, 2)
    sums, differences = pairs[:, 0] + pairs[:, 1], pairs[:, 0] - pairs[:, 1]
    y[: len(y) // 2] = sums
    y[len(y) // 2 : -1] = differences[:-1]
    return y


def smooth_within(x):
    y = x.copy()
    y[1:-1] = 0.5 * y[1:-1] + 0.25 * (y[:-2] + y[2:])
    return y


def after_the_original_changes(x):
    y = x.copy()
    x[:] = 0.0
    y[1:] = y[:-1] + 1.0
    return y


@pytest.mark.parametrize("target", ["interp", "llvm", "c"])
@pytest.mark.parametrize("function", [sums_and_differences, smooth_within, after_the_original_changes])
def test_what_a_program_overwrites_is_not_copied(function, target):
    x = np.random.default_rng(4).random(4096)
    ours, theirs = x.copy(), x.copy()
    np.testing.assert_array_equal(arrayjit.jit(function, target=target)(ours), function(theirs))
    np.testing.assert_array_equal(ours, theirs)
    notes = arrayjit.jit(function).lower(x).build.optimized.notes
    is_copied_in_part = any(note.startswith("margins") for note in notes)
    assert is_copied_in_part == (function is not after_the_original_changes)
