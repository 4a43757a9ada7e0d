"""Extremes of floats that loops find by comparing: to the bit, whatever is no number or a zero among them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import arrayjit

TARGETS = [{"threads": 1}, {"threads": 2}, {"target": "c"}, {"target": "cuda-sim"}, {"target": "interp"}]


def python_s_own(x):
    least, most = x[0], x[0]
    for i in range(1, len(x)):
        least, most = min(least, x[i]), max(most, x[i])
    return least, most


def chosen(x):
    least, last, other = x[0], x[0], x[0]
    for i in range(1, len(x)):
        least = np.where(x[i] < least, x[i], least)
        last = np.where(last <= x[i], x[i], last)
        other = np.where(other > x[i], other, x[i])
    return least, last, other


def left_as_it_is(x):
    result = x.copy()
    for _ in range(len(x)):
        for _ in range(len(x)):
            result = result.copy()
    return result


def between_pairs(x):
    nearest, count = x.dtype.type(np.inf), 0
    for i in range(len(x)):
        for j in range(i):
            nearest = min(nearest, x[i] * x[j])
            count += np.where(x[i] < x[j], 1, 0)
    return nearest, count


def places(x):
    most, place, least, other = x[0], 0, x[-1], -1
    for i in range(1, len(x)):
        is_more = x[i] > most
        place, most = np.where(is_more, i, place), np.where(is_more, x[i], most)
    for i in range(len(x) - 1, -1, -1):
        is_less = x[i] < least
        other, least = np.where(is_less, i, other), np.where(is_less, x[i], least)
    return most, place, least, other


def of_some(x):
    most = x.dtype.type(-1)
    for i in range(len(x)):
        most = np.where(x[i] < 0.5, np.where(x[i] > most, x[i], most), most)
    return most


def where_another_says_so(x):
    numbers = np.arange(len(x)) % 17
    most, least, whole = x[0], x[0], np.int64(-3)
    for i in range(1, len(x)):
        most = np.where((x[i - 1] < 0.5) & (x[i] > most), x[i], most)
        least = np.where((x[i] < least) & (x[i - 1] > -0.5), x[i], least)
        whole = np.where((x[i] < 0.5) & (whole < numbers[i]), numbers[i], whole)
    return most, least, whole


def in_place(x):
    out = np.zeros(3, x.dtype)
    out[1] = x[0]
    for i in range(len(x)):
        out[1] = max(out[1], x[i])
        out[2] = x[i]
    return out


def samples(dtype: Any) -> list[np.ndarray]:
    random = np.random.default_rng(3)
    drawn, signs = random.normal(size=101), np.where(random.random(101) < 0.5, -0.0, 0.0)
    mixed = random.choice([0.0, -0.0, np.nan, 1.0, -1.0, np.inf, -np.inf], 101)
    late = np.where(np.arange(101) < 50, -np.arange(101.0) - 1, signs)
    started, nothing = drawn.copy(), np.full(101, np.nan)
    started[0] = np.nan
    return [
        x.astype(dtype) for x in (drawn, signs, mixed, late, -late, nothing, started, mixed[::-1], drawn[:3])
    ]


@pytest.mark.parametrize("options", TARGETS, ids=str)
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
@pytest.mark.parametrize(
    "program",
    [python_s_own, chosen, left_as_it_is, between_pairs, places, of_some, where_another_says_so, in_place],
)
def test_extremes_that_loops_find(program: Callable[..., Any], dtype: Any, options: dict[str, Any]) -> None:
    jitted = arrayjit.jit(program, **options)
    for x in samples(dtype):
        with np.errstate(all="ignore"):
            wanted = program(x.copy())
        wanted, results = (
            given if isinstance(given, tuple) else (given,) for given in (wanted, jitted(x.copy()))
        )
        for result, one in zip(results, wanted, strict=True):
            one, result = np.asarray(one), np.asarray(result)
            assert result.dtype == one.dtype
            np.testing.assert_array_equal(result, one)
            np.testing.assert_array_equal(np.signbit(result[result == 0]), np.signbit(one[one == 0]))


@pytest.mark.parametrize("program", [python_s_own, between_pairs, places, where_another_says_so])
def test_they_are_found_in_vectors(program: Callable[..., Any]) -> None:
    lowered = arrayjit.jit(program, threads=1).lower(np.ones(1000))
    assert "is accumulated in any order" in str(lowered.explain())
    assert "lanes=" in lowered.as_text()
