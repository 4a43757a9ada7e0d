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


SCANS = ("logical_or", "logical_and", "maximum", "minimum", "bitwise_or", "bitwise_and", "fmax", "fmin")


@pytest.mark.parametrize("target", ["sync_llvm", "sync_c", "interp"])
@pytest.mark.parametrize("name", SCANS)
def test_scans_of_bools(name, target):
    """They change once at most: early, late, never; along rows, columns and every other cell."""
    scan = getattr(np, name).accumulate
    x = np.zeros((5, 130), bool)
    x[1, 0] = x[2, 77] = x[3, 129] = x[:, 33] = True
    x[4] = False

    def program(x, y):
        few = x[:, 70:110]
        rows = scan(x, axis=1), scan(~x, axis=1), scan(few, axis=1)
        return *rows, scan(x), scan(y[::2]), scan(x[2], dtype=bool)

    y = np.arange(400) == 301
    function = arrayjit.jit(program, target=target)
    for got, want in zip(function(x, y), program(x, y), strict=True):
        assert got.dtype == want.dtype
        np.testing.assert_array_equal(got, want)


def test_logical_scans_of_numbers():
    x = np.array([0.0, -0.0, np.nan, 0.0] * 40)

    def program(x):
        return np.logical_or.accumulate(x), np.logical_and.accumulate(x), np.logical_and.accumulate(x + 1)

    for got, want in zip(arrayjit.jit(program)(x), program(x), strict=True):
        assert got.dtype == want.dtype
        np.testing.assert_array_equal(got, want)


def test_scans_of_bools_do_not_wait():
    text = (
        arrayjit.jit(lambda x: np.logical_or.accumulate(x)).lower(np.zeros(4000, bool)).as_text("optimized")
    )
    assert "regroup(" not in text


def test_extremes_of_bools_without_nan():
    x = np.zeros((70, 3), bool)
    x[5, 1] = x[:, 2] = True

    def program(x):
        return np.nanmin(x), np.nanmax(x), np.nanmin(x, axis=0), np.fmax.reduce(x)

    function = arrayjit.jit(program)
    for got, want in zip(function(x), program(x), strict=True):
        assert np.asarray(got).dtype == np.asarray(want).dtype
        np.testing.assert_array_equal(got, want)
    assert "fmin," not in function.lower(x).as_text("optimized")
