"""Bools: the first that holds, or does not, wherever it is; and whether any does."""

from __future__ import annotations

import numpy as np
import pytest

import arrayjit

SIZE = 9001
PLACES = [(), (0,), (1, 2, 3), (2047,), (2048, 5000), (8191,), (8192,), (SIZE - 1,), (4095, SIZE - 1)]
FUNCTIONS = {
    "argmax": lambda x: np.argmax(x),
    "argmin": lambda x: np.argmin(x),
    "extremes": lambda x: (x.max(), x.min(), np.any(x), np.all(x)),
    "of a condition": lambda x: np.argmax(np.where(x, 2.5, 0.5) > 1),
}


@pytest.mark.parametrize("target", ["sync_llvm", "sync_c"])
@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("inverted", [False, True])
def test_first_of_bools(target, name, inverted):
    function = arrayjit.jit(FUNCTIONS[name], target=target, threads=1)
    for places in PLACES:
        x = np.zeros(SIZE, bool)
        x[list(places)] = True
        x ^= inverted
        np.testing.assert_array_equal(function(x), FUNCTIONS[name](x))
        assert np.asarray(function(x)).dtype == np.asarray(FUNCTIONS[name](x)).dtype


@pytest.mark.parametrize("axis", [0, 1])
def test_first_of_bools_along_an_axis(axis):
    x = np.zeros((SIZE, 12), bool)
    for column, places in enumerate(PLACES):
        x[list(places), column] = True
    x = x if axis == 0 else np.ascontiguousarray(x.T)
    function = arrayjit.jit(
        lambda x: (x.argmax(axis), (~x).argmin(axis), x.max(axis), x.any(axis)), threads=1
    )
    for got, want in zip(
        function(x), (x.argmax(axis), (~x).argmin(axis), x.max(axis), x.any(axis)), strict=True
    ):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("length", [128, 150, 1000])
@pytest.mark.parametrize("target", ["sync_llvm", "sync_c"])
def test_first_of_short_rows_of_bools(length, target):
    """The first of each row, the last, several, none; looked for and left out."""
    x = np.zeros((length + 1, length), bool)
    np.fill_diagonal(x, True)
    x[:, length // 2] |= np.arange(length + 1) < length // 3

    def program(x, y):
        return x.argmax(1), np.argmin(~x, axis=1), x.any(1), np.argmax(y > 0.5, axis=1), x[5].argmin()

    function = arrayjit.jit(program, target=target)
    for got, want in zip(function(x, x * 1.0), program(x, x * 1.0), strict=True):
        np.testing.assert_array_equal(got, want)


def test_what_decides_ends_the_loop():
    """Cells behind the first one are not looked at."""

    def program(x):
        return np.argmax(x > 2.0)

    text = arrayjit.jit(program, threads=1).lower(np.zeros(SIZE)).as_text("optimized")
    assert "stay(" in text
    assert "temporary" not in text


def test_what_decides_ends_a_row():
    text = arrayjit.jit(lambda x: np.argmax(x, axis=1)).lower(np.zeros((50, 500), bool)).as_text("optimized")
    assert "stay(" in text
