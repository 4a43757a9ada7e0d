"""What iterations find by themselves goes in vectors; what they hand on keeps its order and its bits."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import arrayjit


def sum_of_polynomials(x, c):
    total = 0.0
    for i in range(len(x)):
        value = 0.0
        for j in range(len(c)):
            value = value * x[i] + c[j]
        total += value
    return total


def best_of_three(x, c):
    """The least, where it stands, and what it was made of."""
    least, at, of, side = 1e30, -1, 0.0, 0
    for i in range(len(x)):
        value = 0.0
        for j in range(len(c)):
            value += abs(x[i] - c[j])
        flipped = value > 3
        value = np.where(flipped, 6 - value, value)
        better = value < least
        least, at = np.where(better, value, least), np.where(better, i, at)
        of, side = np.where(better, x[i], of), np.where(better, np.where(flipped, -1, 1), side)
    return least, at, of, side


def running(x, c):
    """Each result needs the one before; what is found is written as well."""
    found, out = np.empty(len(x)), np.empty(len(x))
    before = 0.5
    for i in range(len(x)):
        value = x[i]
        for j in range(len(c)):
            value = value * (1 - value) * 3.5 + 1e-3 * c[j]
        found[i] = value
        before = 0.5 * before + value
        out[i] = before
    return found, out


def so_many(x, c, n):
    total = 0.0
    for i in range(n):
        value = 0.0
        for j in range(len(c)):
            value = value * (0.001 * i) + c[j]
        total += value
    return total


def own_cells(x, c):
    """What one iteration writes, the next one reads: nothing may go before."""
    x = x.copy()
    total = 0.0
    for i in range(1, len(x)):
        value = 0.0
        for j in range(len(c)):
            value = value * x[i - 1] * 0.5 + c[j]
        x[i] = value
        total += value
    x[0] = total
    return x


def arguments(cells):
    random = np.random.default_rng(cells)
    return random.random(cells), random.uniform(-1, 1, 9)


@cache
def numpys(function, cells):
    """Python takes its time, for the same numbers whatever the options are."""
    return function(*arguments(cells))


@pytest.mark.parametrize("options", [{"threads": 1}, {"threads": 2}, {"target": "c"}], ids=str)
@pytest.mark.parametrize("cells", [40, 16_384, 40_001])
@pytest.mark.parametrize(
    ("function", "is_divided"),
    [(sum_of_polynomials, True), (best_of_three, True), (running, True), (own_cells, False)],
)
def test_bits_are_those_of_numpy(function, is_divided, cells, options):
    x, c = arguments(cells)
    jitted = arrayjit.jit(function, **options)
    for actual, expected in zip(
        np.atleast_1d(jitted(x, c)), np.atleast_1d(numpys(function, cells)), strict=True
    ):
        np.testing.assert_array_equal(actual, expected)
    assert ("by themselves" in jitted.explain(x, c)) == is_divided


@pytest.mark.parametrize("threads", [1, 2])
def test_so_many_iterations_as_the_call_says(threads):
    x, c = arguments(3)
    jitted = arrayjit.jit(so_many, threads=threads)
    for n in (0, 1, 17, 16_384, 16_385, 40_000):
        assert jitted(x, c, n) == so_many(x, c, n)
    assert "by themselves" in jitted.explain(x, c, 17)
