"""Prices of options, for JAX."""

from __future__ import annotations

import jax
import jax.numpy as jnp

__all__ = ["FINANCE"]


def normal_cdf(d):
    x = d / jnp.sqrt(2)
    t = 1 / (1 + 0.3275911 * jnp.abs(x))
    series = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))))
    return 0.5 * (1 + jnp.sign(x) * (1 - series * jnp.exp(-x * x)))


def black_scholes(spot, strike, years, rate, volatility):
    spread = volatility * jnp.sqrt(years)
    d1 = (jnp.log(spot / strike) + (rate + volatility**2 / 2) * years) / spread
    d2 = d1 - spread
    present = strike * jnp.exp(-rate * years)
    call = spot * normal_cdf(d1) - present * normal_cdf(d2)
    return call, present * normal_cdf(-d2) - spot * normal_cdf(-d1)


def american_put(spot, strike, rate, volatility, years, steps):
    """Whole levels at every step: what is beyond the level is never used."""
    dt = years / steps
    up = jnp.exp(volatility * jnp.sqrt(dt))
    discount = jnp.exp(-rate * dt)
    p = (1 / discount - 1 / up) / (up - 1 / up)
    prices = spot * up ** jnp.arange(-steps, steps + 1, 2.0)

    def step(_, state):
        prices, values = state
        held = discount * (p * jnp.roll(values, -1) + (1 - p) * values)
        prices = jnp.roll(prices, -1) / up
        return prices, jnp.maximum(held, strike - prices)

    return jax.lax.fori_loop(0, steps, step, (prices, jnp.maximum(strike - prices, 0.0)))[1][0]


FINANCE = {"black_scholes": black_scholes, "american_put": american_put}
