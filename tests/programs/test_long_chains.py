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
@pytest.mark.parametrize("threads", [1, 2])
def test_a_value_does_not_depend_on_those_beside_it(dtype, cells, threads):
    x = uniform(cells, -60, 60, cells, dtype)
    x[cells // 2] = np.nan
    x[3] = -np.inf
    prices = [
        uniform(n, *ends, cells, dtype) for n, ends in enumerate(((50, 150), (50, 150), (0.1, 2), (0.1, 1)))
    ]
    prices[0][-2] = 0
    for function, arguments in ((softplus_gate, [x]), (price, prices), (in_place, [x])):
        native = arrayjit.jit(function, threads=threads)(*(argument.copy() for argument in arguments))
        meant = arrayjit.jit(function, target="interp")(*(argument.copy() for argument in arguments))
        np.testing.assert_array_equal(native, meant, strict=True)
        from_fifth = (
            native if function is in_place else arrayjit.jit(function)(*(one[5:] for one in arguments))
        )
        np.testing.assert_array_equal(native[-40:], from_fifth[-40:])
