"""Prices of options, for Numba."""

from __future__ import annotations

import math

import numpy as np
from numba import njit, prange

__all__ = ["FINANCE"]


@njit
def normal_cdf(d):
    x = d / math.sqrt(2.0)
    t = 1 / (1 + 0.3275911 * abs(x))
    series = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))))
    return 0.5 * (1 + math.copysign(1 - series * math.exp(-x * x), x))


@njit(parallel=True)
def black_scholes(spot, strike, years, rate, volatility):
    call, put = np.empty_like(spot), np.empty_like(spot)
    for i in prange(len(spot)):
        spread = volatility[i] * math.sqrt(years[i])
        d1 = (math.log(spot[i] / strike[i]) + (rate + volatility[i] ** 2 / 2) * years[i]) / spread
        d2 = d1 - spread
        present = strike[i] * math.exp(-rate * years[i])
        call[i] = spot[i] * normal_cdf(d1) - present * normal_cdf(d2)
        put[i] = present * normal_cdf(-d2) - spot[i] * normal_cdf(-d1)
    return call, put


@njit
def american_put(spot, strike, rate, volatility, years, steps):
    dt = years / steps
    up = math.exp(volatility * math.sqrt(dt))
    discount = math.exp(-rate * dt)
    p = (1 / discount - 1 / up) / (up - 1 / up)
    prices = spot * up ** np.arange(-steps, steps + 1, 2.0)
    values = np.maximum(strike - prices, 0.0)
    for level in range(steps, 0, -1):
        for i in range(level):
            held = discount * (p * values[i + 1] + (1 - p) * values[i])
            prices[i] = prices[i + 1] / up
            values[i] = max(held, strike - prices[i])
    return values[0]


FINANCE = {"black_scholes": black_scholes, "american_put": american_put}
