"""Loops until a condition: of two conditions, over bits, over digits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import arrayjit
from arrayjit.stages import Lowered

TARGETS = [{"threads": 1}, {"threads": 2}, {"target": "c"}, {"target": "interp"}]
random = np.random.default_rng(11)


def insertion_sort(x):
    for i in range(1, len(x)):
        key = x[i]

        def back(j, key=key):
            x[j + 1] = x[j]
            return j - 1

        j = arrayjit.while_loop(lambda j, key=key: (j >= 0) & (x[j] > key), back, i - 1)
        x[j + 1] = key
    return x


def words(x):
    """How many of the first numbers are found again, from each place on."""
    n, found = len(x), np.zeros(len(x), np.int64)
    for i in range(n):

        def is_same(k, i=i):
            return (k < n - i) & (x[np.minimum(i + k, n - 1)] == x[np.minimum(k, n - 1)])

        found[i] = arrayjit.while_loop(is_same, lambda k: k + 1, np.int64(0))
    return found


def least_divisors(x):
    found = np.zeros(len(x), np.int64)
    for i in range(len(x)):
        number = np.int64(i)

        def is_other(d, number=number):
            return (d * d <= number) & (number % d != 0)

        found[i] = arrayjit.while_loop(is_other, lambda d: d + 1, np.int64(2))
    return found


def position_outside(x):
    """Both conditions are computed, so that the position is looked at where the first does not hold."""
    return arrayjit.while_loop(lambda j: (j < len(x)) & (x[j] < 100), lambda j: j + 1, 0)


def cleared_bits(x):
    counts = np.zeros(len(x), np.int64)
    for i in range(len(x)):
        _, counts[i] = arrayjit.while_loop(
            lambda s: s[0] != 0, lambda s: (s[0] & (s[0] - s[0].dtype.type(1)), s[1] + 3), (x[i], 1)
        )
    return counts


def shifted_bits(x):
    counts, rests = np.zeros(len(x), x.dtype), np.zeros_like(x)
    for i in range(len(x)):
        rests[i], counts[i] = arrayjit.while_loop(
            lambda s: s[0] > 0, lambda s: (s[0] >> 1, s[1] + (s[0] & 1)), (x[i], x.dtype.type(0))
        )
    return counts, rests


def digits(x):
    sums = np.zeros(len(x), np.int64)
    for i in range(len(x)):
        _, sums[i] = arrayjit.while_loop(
            lambda s: s[0] > 0, lambda s: (s[0] // 10, s[1] + s[0] % 10), (np.int64(i * i), np.int64(0))
        )
    return sums


def same(function: Callable[..., Any], x: np.ndarray, options: dict[str, Any]) -> None:
    expected = function(x.copy())
    actual = arrayjit.jit(function, **options)(x.copy())
    for one, other in zip(np.atleast_2d(actual), np.atleast_2d(expected), strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)


def lowered(function: Callable[..., Any], x: np.ndarray) -> Lowered:
    return arrayjit.jit(function, threads=1).lower(x)


def walks(x):
    """A walk from place to place, from each of the first ones, until there were as many steps as places."""
    n, found = len(x), np.zeros(5)
    far, beside = (7 * np.arange(n) + 1) % n, (np.arange(n) + 3) % n
    for i in range(5):

        def further(state, n=n, i=i):
            place, steps, total = state
            apart = 0.01 * x[place] - 0.1 * i
            near = np.sqrt(apart * apart + 0.01) < 0.2
            return np.where(near, far[place], beside[place]), steps + 1, total + apart

        state = np.int64(i), np.int64(0), 0.0
        _, _, found[i] = arrayjit.while_loop(lambda state, n=n: state[1] < n, further, state)
    return found


@pytest.mark.parametrize("options", TARGETS, ids=lambda options: "-".join(map(str, options.values())))
@pytest.mark.parametrize("function", [insertion_sort, words, least_divisors, digits, walks])
def test_loops_until_conditions(function: Callable[..., Any], options: dict[str, Any]) -> None:
    same(function, random.integers(0, 50, 60), options)


def test_a_position_is_looked_at_without_being_brought_into_the_axis_first() -> None:
    x = random.integers(0, 50, 60)
    assert "where[i64](less[bool](index(" not in lowered(insertion_sort, x).as_text()
    assert "minimum" not in lowered(words, x).as_text()


def test_walks_go_on_before_it_is_known_where() -> None:
    text = lowered(walks, random.integers(0, 50, 60)).as_text("optimized")
    assert "if t" in text[text.index("while") :]


def test_a_divisor_that_grows_has_no_sign() -> None:
    assert "raw_remainder[u64]" in lowered(least_divisors, random.integers(0, 50, 60)).as_text()


@pytest.mark.parametrize("options", TARGETS, ids=lambda options: "-".join(map(str, options.values())))
def test_exceptions_of_a_condition_are_raised_though_another_one_does_not_hold(
    options: dict[str, Any],
) -> None:
    with pytest.raises(IndexError, match="out of bounds"):
        arrayjit.jit(position_outside, **options)(np.arange(50))
    assert arrayjit.jit(position_outside, **options)(np.arange(200)) == 100


@pytest.mark.parametrize("options", TARGETS, ids=lambda options: "-".join(map(str, options.values())))
@pytest.mark.parametrize("dtype", [np.int64, np.uint64, np.int32, np.int8, np.uint8])
@pytest.mark.parametrize("function", [cleared_bits, shifted_bits])
def test_bits_are_counted(function: Callable[..., Any], dtype: type, options: dict[str, Any]) -> None:
    known = np.iinfo(dtype)
    ends = np.array([0, 1, known.max, known.min, known.min + 1], dtype)
    x = np.concatenate((random.integers(known.min, known.max, 90, dtype, endpoint=True), ends))
    with np.errstate(over="ignore"):
        same(function, x, options)


@pytest.mark.parametrize("function", [cleared_bits, shifted_bits])
def test_bits_are_counted_in_vectors(function: Callable[..., Any]) -> None:
    text = lowered(function, random.integers(0, 2**60, 90)).as_text()
    assert "popcount" in text
    assert "vector" in text
    assert "while" not in text
