"""Roots and lengths that are only compared are not drawn, and compare as they would."""

from __future__ import annotations

import operator

import numpy as np
import pytest

import arrayjit

COMPARISONS = {
    operator.lt: (lambda x, r: np.sqrt(x) < r, lambda x, y: np.hypot(x, y) < 1.7),
    operator.le: (lambda x, r: r >= np.sqrt(x), lambda x, y: np.hypot(x, y) <= 1.7),
    operator.gt: (lambda x, r: r < np.sqrt(x), lambda x, y: np.hypot(x, y) > 1.7),
    operator.ge: (lambda x, r: np.sqrt(x) >= r, lambda x, y: np.hypot(x, y) >= 1.7),
}
SPECIAL = (0.0, -0.0, -1.0, np.inf, -np.inf, np.nan)


def bounds(dtype):
    """Numbers that roots are compared with: some of any size, and the ends of the type."""
    limits = np.finfo(dtype)
    ends = np.log2(limits.smallest_subnormal), np.log2(limits.max)
    drawn = 2.0 ** np.random.default_rng(3).uniform(*ends, 24)
    return np.array([*drawn, 1, 2, 0.5, limits.tiny, limits.max, limits.smallest_subnormal, *SPECIAL], dtype)


def around(number, count=9):
    """The floats nearest to a number, and the special ones; so many that a search is worth while."""
    found = [number]
    for _ in range(count):
        found += [np.nextafter(found[-1], number.dtype.type(np.inf))]
    for _ in range(count):
        found = [np.nextafter(found[0], number.dtype.type(-np.inf)), *found]
    return np.resize(np.array([*found, *SPECIAL], number.dtype), 80)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("comparison", COMPARISONS)
def test_roots_compare_with_any_number_as_they_do(comparison, dtype):
    compared = arrayjit.jit(COMPARISONS[comparison][0])
    for bound in bounds(dtype):
        with np.errstate(all="ignore"):
            squares = around(bound * bound)
            expected = comparison(np.sqrt(squares), bound)
        np.testing.assert_array_equal(compared(squares, bound), expected, str(bound))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("comparison", COMPARISONS)
def test_lengths_compare_with_a_known_number_as_they_do(comparison, dtype):
    angles = np.linspace(0, 7, 500)
    x = np.nextafter(1.7 * np.cos(angles), np.resize([-9, 9], 500)).astype(dtype)
    y = (1.7 * np.sin(angles)).astype(dtype)
    special = np.array([*SPECIAL, 1.7, 1e30, 1e-30], dtype)
    x, y = np.append(x, np.repeat(special, len(special))), np.append(y, np.tile(special, len(special)))
    expected = comparison(arrayjit.jit(np.hypot)(x, y), dtype(1.7))
    np.testing.assert_array_equal(arrayjit.jit(COMPARISONS[comparison][1])(x, y), expected)


def near_pairs(x, y, r):
    count = 0
    for i in range(len(x)):
        for j in range(i):
            distance = np.sqrt((x[i] - x[j]) ** 2 + (y[i] - y[j]) ** 2)
            count += distance < r
    return count


def test_pairs_that_are_near_one_another_are_counted_without_roots_of_them():
    random = np.random.default_rng(1)
    x, y = random.random(300), random.random(300)
    count = arrayjit.jit(near_pairs)
    assert count(x, y, 0.2) == near_pairs(x, y, 0.2)
    loops = count.lower(x, y, 0.2).as_text("optimized")
    assert "sqrt" not in loops[loops.index("for ") :]


def escaped(z):
    return np.sum(np.abs(z) > 1.5)


def test_absolute_values_of_complex_numbers_are_not_scaled():
    z = np.random.default_rng(2).normal(size=(500, 2)).view(complex)[:, 0]
    assert arrayjit.jit(escaped)(z) == escaped(z)
    assert "sqrt" not in arrayjit.jit(escaped).lower(z).as_text("optimized")


def of_one_root_or_the_other(x, y, z):
    first, second = np.sqrt(x[0]), np.sqrt(y[0])
    return np.where(first < second, z, -z)


def test_two_roots_that_are_compared_for_many_cells():
    x, y, z = np.random.default_rng(5).random((3, 200))
    expected = of_one_root_or_the_other(x, y, z)
    np.testing.assert_array_equal(arrayjit.jit(of_one_root_or_the_other)(x, y, z), expected)
