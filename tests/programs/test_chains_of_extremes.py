"""Chains of `np.maximum` and `np.minimum`, which look for NaN once: to the bit, wherever one stands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import arrayjit

TARGETS = [{"threads": 1}, {"threads": 2}, {"target": "c"}, {"target": "interp"}]


def median_of_three(x):
    a, b, c = x[:-2], x[1:-1], x[2:]
    return np.maximum(np.minimum(a, b), np.minimum(np.maximum(a, b), c))


def largest_around(x):
    out = x[1:-1].copy()
    for k in range(3):
        for other in (x, -x):
            out = np.maximum(out, other[k : len(x) - 2 + k])
    return out


def largest_of_many(x):
    out = np.zeros(len(x) - 12, x.dtype)
    for k in range(7):
        out = np.maximum(out, x[k : len(x) - 12 + k])
        for j in range(5):
            np.minimum(out, 1 + x[k + j : len(x) - 12 + k + j], out=out)
    return out


def sorted_four(x):
    a, b, c, d = x[:-3], x[1:-2], x[2:-1], x[3:]
    a, b, c, d = np.minimum(a, b), np.maximum(a, b), np.minimum(c, d), np.maximum(c, d)
    a, c, b, d = np.minimum(a, c), np.maximum(a, c), np.minimum(b, d), np.maximum(b, d)
    return a, np.minimum(b, c), np.maximum(b, c), np.sqrt(np.abs(d))


def between_others(x):
    low, high = x[:-3] * 2, x[3:] / 3
    first = np.maximum(np.minimum(x[1:-2], high), low)
    return np.minimum(np.maximum(first, x[2:-1]), np.fmax(high, low)), first


def with_places(x):
    most = np.maximum(np.maximum(x[:-3], x[1:-2]), np.maximum(x[2:-1], x[3:]))
    return np.minimum(most, x[np.where(most > 0, 1, 2)]), np.maximum(most, x[0])


PROGRAMS = [median_of_three, largest_around, largest_of_many, sorted_four, between_others, with_places]


@pytest.mark.parametrize("options", TARGETS, ids=str)
@pytest.mark.parametrize("function", PROGRAMS, ids=lambda function: function.__name__)
def test_chains_are_as_in_numpy(function: Callable[..., Any], options: dict[str, Any]) -> None:
    check(function, options, [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, 0.25, -0.5])


def check(function: Callable[..., Any], options: dict[str, Any], numbers: list[float]) -> None:
    random = np.random.default_rng(5)
    compiled = arrayjit.jit(function, **options)
    for dtype in (np.float64, np.float32, np.float16):
        for share in (0.0, 0.02, 0.5):
            x = random.choice(numbers, 101)
            x = np.where(random.random(101) < share, np.nan, x).astype(dtype)
            found, wanted = compiled(x), function(x)
            for one, other in zip(np.atleast_2d(found), np.atleast_2d(wanted), strict=True):
                assert one.dtype == other.dtype
                np.testing.assert_array_equal(one, other)
                np.testing.assert_array_equal(np.signbit(one[one == 0]), np.signbit(other[other == 0]))


def test_a_chain_is_formed_again_only_where_there_is_a_nan() -> None:
    text = arrayjit.jit(median_of_three, threads=1).lower(np.ones(98)).as_text("optimized")
    assert text.count("if seldom(") == text.count("in vector(") == 1
    assert "not_equal" not in text[: text.index("if seldom(")]


def window_extremes(x):
    windows = np.lib.stride_tricks.sliding_window_view
    return windows(x, 5).max(axis=1)[:80], windows(np.abs(x), 21).min(axis=1)[:80]


def extremes_of_columns(x):
    rows = x[:99].reshape(33, 3).T.reshape(9, 11)
    return rows.max(axis=0), (rows * 2).min(axis=0)


def extremes_of_all_windows(x):
    windows = np.lib.stride_tricks.sliding_window_view(x, 7)
    return windows[::3].max(), windows[:60:4].min(), windows[::5].sum(axis=1).max()


LOOPS = [window_extremes, extremes_of_columns, extremes_of_all_windows]


@pytest.mark.parametrize("options", TARGETS, ids=str)
@pytest.mark.parametrize("function", LOOPS)
def test_loops_of_extremes_are_as_in_numpy(function: Callable[..., Any], options: dict[str, Any]) -> None:
    check(function, options, [3.0, 1.0, -1.0, np.inf, -np.inf, 0.25, -0.5])
