"""Prices of options."""

from __future__ import annotations

import numpy as np
from numpy import abs, exp, log, sqrt
from numpy.testing import assert_allclose

from .registry import Kernel


def erf(x):
    """The error function to seven digits, by Abramowitz and Stegun's formula 7.1.26."""
    t = 1 / (1 + 0.3275911 * abs(x))
    series = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))))
    return np.sign(x) * (1 - series * exp(-x * x))


def normal_cdf(x):
    return 0.5 * (1 + erf(x / sqrt(2)))


def black_scholes(spot, strike, years, rate, volatility):
    """The prices of European calls and puts."""
    spread = volatility * sqrt(years)
    d1 = (log(spot / strike) + (rate + volatility**2 / 2) * years) / spread
    d2 = d1 - spread
    present = strike * exp(-rate * years)
    call = spot * normal_cdf(d1) - present * normal_cdf(d2)
    put = present * normal_cdf(-d2) - spot * normal_cdf(-d1)
    return call, put


def make_black_scholes(random, options):
    spot, strike = random.uniform(50, 150, (2, options))
    return spot, strike, random.uniform(0.1, 2, options), 0.03, random.uniform(0.1, 0.6, options)


def check_black_scholes(arguments, results):
    spot, strike, years, rate, _ = arguments
    call, put = results[:2]
    assert_allclose(call - put, spot - strike * np.exp(-rate * years), atol=1e-9)
    assert (call > spot - strike * np.exp(-rate * years) - 1e-4).all()


def american_put(spot, strike, rate, volatility, years, steps):
    """An option to sell that may be used at any time, on a tree of prices."""
    dt = years / steps
    up = np.exp(volatility * np.sqrt(dt))
    discount = np.exp(-rate * dt)
    p = (1 / discount - 1 / up) / (up - 1 / up)
    prices = spot * up ** np.arange(-steps, steps + 1, 2.0)
    values = np.maximum(strike - prices, 0.0)
    for level in range(steps, 0, -1):
        held = discount * (p * values[1 : level + 1] + (1 - p) * values[:level])
        prices[:level] = prices[1 : level + 1] / up
        values[:level] = np.maximum(held, strike - prices[:level])
    return values[0]


def make_american_put(random, steps):
    return random.uniform(80, 100), 100.0, 0.05, 0.3, 1.5, steps


def check_american_put(arguments, results):
    spot, strike, rate, volatility, years, _ = arguments
    european = black_scholes(spot, strike, years, rate, volatility)[1]
    assert european < results[0] < 1.2 * european


FINANCE = (
    Kernel(
        "black_scholes",
        black_scholes,
        make_black_scholes,
        {"small": {"options": 37}, "medium": {"options": 200_000}, "large": {"options": 4_000_000}},
        "own",
        check_black_scholes,
    ),
    Kernel(
        "american_put",
        american_put,
        make_american_put,
        {"small": {"steps": 12}, "medium": {"steps": 1500}, "large": {"steps": 12000}},
        "own",
        check_american_put,
    ),
)
