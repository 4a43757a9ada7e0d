"""Programs of which each number takes a long chain of operations: its bits are those of a number alone."""

from __future__ import annotations

import numpy as np
import pytest

import arrayjit


def softplus_gate(x):
    return x * np.tanh(np.log1p(np.exp(x)))


def price(spot, strike, years, volatility):
    spread = volatility * np.sqrt(years)
    d = (np.log(spot / strike) + (0.03 + 0.5 * volatility * volatility) * years) / spread
    return spot / (1 + np.exp(-1.6 * d)) - strike * np.exp(-0.03 * years) / (1 + np.exp(1.6 * (spread - d)))


def in_place(x):
    for _ in range(3):
        x[1:-1] = np.arctan(np.log1p(np.exp(x[1:-1]))) / 3 - 0.1
    return x


def uniform(seed, low, high, cells, dtype):
    return np.random.default_rng(seed).uniform(low, high, cells).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("cells", [700, 1024, 1031])
def test_a_value_does_not_depend_on_those_beside_it(dtype, cells):
    x = uniform(cells, -60, 60, cells, dtype)
    x[cells // 2] = np.nan
    x[3] = -np.inf
    prices = [
        uniform(n, *ends, cells, dtype) for n, ends in enumerate(((50, 150), (50, 150), (0.1, 2), (0.1, 1)))
    ]
    prices[0][-2] = 0
    for function, arguments in ((softplus_gate, [x]), (price, prices), (in_place, [x])):
        meant = arrayjit.jit(function, target="interp")(*(argument.copy() for argument in arguments))
        for threads in (1, 2):
            native = arrayjit.jit(function, threads=threads)(*(argument.copy() for argument in arguments))
            np.testing.assert_array_equal(native, meant, strict=True)
        if function is not in_place:
            from_fifth = arrayjit.jit(function)(*(one[5:] for one in arguments))
            np.testing.assert_array_equal(from_fifth[-40:], meant[-40:])


SPECIAL = (np.nan, np.inf, -np.inf, -1.5, -2.0, 0.0, -0.0, 1.0, 1e30, -1e30, 3e38, 1e-40)
"""What powers and angles are seldom."""


def powers(x, y):
    return x**y


def sines(x, y):
    return np.sin(x) + np.cos(y)


def gated(x, y):
    return np.where(y > 1, np.tanh(x) ** y, x)


def powers_in_place(x, y):
    x[:] = x**y
    return x


def powers_beside_themselves(x, y):
    x[1:] = x[:-1] ** y[1:]
    return x


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("often", [0.0, 0.002, 0.05, 1.0])
def test_what_is_seldom_needed_is_done_wherever_it_is(dtype, often):
    cells, random = 1543, np.random.default_rng(round(1000 * often) + 1)
    x, y = random.uniform(0.1, 3, (2, cells)).astype(dtype)
    for numbers in (x, y):
        here = random.random(cells) < often
        numbers[here] = random.choice(SPECIAL, here.sum())
    x[[0, -1]] = SPECIAL[3:5]
    for function in (powers, sines, gated, powers_in_place, powers_beside_themselves):
        meant = arrayjit.jit(function, target="interp")(x.copy(), y.copy())
        for threads in (1, 2, 3):
            native = arrayjit.jit(function, threads=threads)(x.copy(), y.copy())
            np.testing.assert_array_equal(native, meant, strict=True)
            np.testing.assert_array_equal(np.signbit(native[native == 0]), np.signbit(meant[meant == 0]))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_what_is_seldom_needed_at_each_place(dtype):
    x, y = np.random.default_rng(5).uniform(0.1, 3, (2, 1100)).astype(dtype)
    native, meant = arrayjit.jit(powers, threads=1), arrayjit.jit(powers, target="interp")
    usual, seldom = meant(x, y), meant(np.full_like(x, -2.5), y)
    for place in (*range(70), *range(500, 530), *range(1030, 1100)):
        base = x.copy()
        base[place] = -2.5
        np.testing.assert_array_equal(native(base, y), np.where(np.arange(1100) == place, seldom, usual))
