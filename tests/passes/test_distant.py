"""Recurrences that look far back, by a number that is computed, leave what they leave step by step."""

from __future__ import annotations

import numpy as np
import pytest

import arrayjit


def fewest(x, coins):
    for coin in coins:
        for total in range(coin, len(x)):
            x[total] = min(x[total], x[total - coin] + 1)
    return x


def greatest(x, weights):
    for weight in weights:
        for room in range(len(x) - 1, weight - 1, -1):
            x[room] = max(x[room], x[room - weight] + 7)
    return x


def echo(x, delays):
    """Of a number from ahead, where the delay is negative."""
    for delay in delays:
        for t in range(120, len(x) - 120):
            x[t] = x[t] + 0.5 * x[t - delay]
    return x


def two_arrays(x, delays):
    """What a step stores, a later one reads after it has stored."""
    y = np.zeros(len(x))
    for delay in delays:
        for t in range(120, len(x) - 120):
            x[t] = 0.5 * y[t - 3] + t
            y[t] = x[t - delay] - 1.0
    return x + y


def season(x, _):
    for t in range(15, len(x)):
        x[t] = x[t - 12] - 0.5 * x[t - 15]
    return x


def comb(x, _):
    """By as many steps as fill one register and part of another, for every dtype."""
    for distance in (20, 47):
        for t in range(distance, len(x)):
            x[t] = x[t] + x[t - distance]
    return x


NEAR = [1, 2, 3, 7, 8, 9, 12, 15, 16, 17, 31, 33, 64, 100, 5]


@pytest.mark.parametrize("options", [{}, {"threads": 2}, {"target": "c"}], ids=str)
@pytest.mark.parametrize(
    ("function", "numbers", "dtypes"),
    [
        (fewest, NEAR, "fdlh"),
        (fewest, [0, 399, 400, 401, 1000], "fdlh"),
        (greatest, NEAR, "fdlh"),
        (greatest, [0, 399, 400, 401, 1000], "fdlh"),
        (echo, [*NEAR, 0, *(-number for number in NEAR)], "fd"),
        (two_arrays, [*NEAR, 0, *(-number for number in NEAR)], "fd"),
        (season, [0], "fd"),
        (comb, [0], "fdlh"),
    ],
)
def test_cells_are_as_step_by_step(function, numbers, dtypes, options):
    numbers, jitted = np.array(numbers), arrayjit.jit(function, **options)
    for dtype in dtypes:
        x = np.random.default_rng(1).integers(0, 100, 400).astype(dtype)
        assert jitted(x.copy(), numbers).tobytes() == function(x.copy(), numbers).tobytes()


@pytest.mark.parametrize("function", [fewest, greatest, echo, season])
def test_they_go_side_by_side(function):
    lowered = arrayjit.jit(function).lower(np.zeros(400), np.array([20, 30]))
    assert "distant:" in str(lowered.explain())
    assert "lockstep" in lowered.as_text()


@pytest.mark.parametrize("numbers", [[-5], [3, -400]])
def test_positions_before_the_first_cell_are_those_of_numpy(numbers):
    x, numbers = np.arange(400.0), np.array(numbers)
    with pytest.raises(IndexError):
        fewest(x.copy(), numbers)
    with pytest.raises(IndexError):
        arrayjit.jit(fewest)(x.copy(), numbers)
