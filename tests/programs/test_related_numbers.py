"""Loops whose tests tell how far numbers are apart, how large products are and what was asked before."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import arrayjit

OPTIONS = [{"threads": 1}, {"target": "c"}, {"target": "interp"}]
random = np.random.default_rng(11)


def reach(letters, centre):
    n = len(letters)

    def goes_on(way):
        inside = (centre - way >= 0) & (centre + way < n)
        return inside & (letters[max(centre - way, 0)] == letters[min(centre + way, n - 1)])

    return arrayjit.while_loop(goes_on, lambda way: way + 1, 0)


def longest_palindrome(letters):
    longest = 0
    for centre in range(len(letters)):
        longest = max(longest, 2 * reach(letters, centre) - 1)
    return longest


def is_prime(number):
    d = arrayjit.while_loop(lambda d: (d * d <= number) & (number % d != 0), lambda d: d + 1, 2)
    return d * d > number


def primes(n):
    count = 0
    for number in range(2, n):
        count += np.where(is_prime(number), 1, 0)
    return count


def sextets(octets):
    out = np.zeros(4 * (len(octets) // 3), np.int64)
    for i in range(len(octets) // 3):
        bits = (int(octets[3 * i]) << 16) | (int(octets[3 * i + 1]) << 8) | int(octets[3 * i + 2])
        for part in range(4):
            out[4 * i + part] = (bits >> (18 - 6 * part)) & 63
    return out


def fridays(first, last):
    count = 0
    for year in range(first, last):
        for month in range(3, 15):
            old, young = year // 100, year % 100
            day = (13 + 13 * (month + 1) // 5 + young + young // 4 + old // 4 + 5 * old) % 7
            count += np.where(day == 6, 1, 0)
    return count


def around(n, steps):
    row, column, told = 0, n // 2, np.zeros((n, n), np.int64)
    for number in range(steps):
        told[row, column] += number
        above, beside = (row - 1) % n, (column + 1) % n
        is_taken = told[above, beside] > number // 2
        row, column = np.where(is_taken, (row + 1) % n, above), np.where(is_taken, column, beside)
    return told


def places(numbers):
    total = 0
    for number in numbers:
        _, count = arrayjit.while_loop(
            lambda state: state[0] > 0, lambda state: (state[0] >> 1, state[1] + 1), (number, 0)
        )
        total = 3 * total % 1000003 + count
    return total


PROGRAMS: list[tuple[Callable[..., Any], tuple[Any, ...]]] = [
    (longest_palindrome, (random.integers(0, 2, 60),)),
    (longest_palindrome, (np.zeros(31, np.int64),)),
    (primes, (60,)),
    (sextets, (random.integers(0, 256, 42).astype(np.uint8),)),
    (fridays, (1990, 2010)),
    (fridays, (-40, 20)),
    (around, (7, 60)),
    (places, (np.array([0, 1, 2, 3, 255, 256, 2**62, 2**63 - 1, -1, -(2**63)]),)),
    (places, (np.arange(256).astype(np.uint8),)),
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize(("program", "arguments"), PROGRAMS)
def test_what_tests_tell_is_the_same(
    program: Callable[..., Any], arguments: tuple[Any, ...], options: dict[str, Any]
) -> None:
    np.testing.assert_array_equal(arrayjit.jit(program, **options)(*arguments), program(*arguments))


@pytest.mark.parametrize(
    ("program", "arguments"), [PROGRAMS[0], *PROGRAMS[3:5]], ids=lambda value: getattr(value, "__name__", "")
)
def test_what_follows_from_tests_is_not_looked_out_for(
    program: Callable[..., Any], arguments: tuple[Any, ...]
) -> None:
    assert "raise_" not in arrayjit.jit(program, threads=1).lower(*arguments).as_text()


def apart(x, k):
    """Positions that are as far apart as a test says, and one further."""
    total = 0.0
    for i in range(len(x)):
        total += arrayjit.cond(i - k[0] >= 0, lambda i=i: x[i - k[0]], lambda: 0.0)
        total += arrayjit.cond(i + k[1] < len(x), lambda i=i: x[i + k[1] + k[2]], lambda: 0.0)
    return total


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_positions_further_than_tests_say_are_found(options: dict[str, Any]) -> None:
    x, jitted = random.normal(size=20), arrayjit.jit(apart, **options)
    for offsets in (
        (3, 2, 0),
        (3, 2, -1),
        (-1, 2, 0),
        (0, 2, 1),
        (0, -50, 0),
        (-30, 0, 0),
        (0, 0, 2**63 - 1),
    ):
        numbers = np.array(offsets)
        try:
            expected = apart(x, numbers)
        except (IndexError, OverflowError):
            with pytest.raises((IndexError, OverflowError)):
                jitted(x, numbers)
        else:
            assert jitted(x, numbers) == expected
