"""Programs of physics, finance, signals and numerical methods."""

from __future__ import annotations

from functools import partial

import numpy as np
from catalogue import Draw, Program, program

SCIENCES: list[Program] = []
on_numbers = partial(program, SCIENCES)


def options(draw: Draw) -> tuple[np.ndarray, ...]:
    n = draw.n
    return draw.uniform(50, 150, n), draw.uniform(50, 150, n), draw.uniform(0.1, 2, n), 0.02, 0.3


@on_numbers(options)
def black_scholes(spot, strike, years, rate, volatility):
    def normal_cdf(x):
        k = 1 / (1 + 0.2316419 * np.abs(x))
        series = k * (
            0.319381530 + k * (-0.356563782 + k * (1.781477937 + k * (-1.821255978 + k * 1.330274429)))
        )
        tail = np.exp(-0.5 * x * x) / np.sqrt(2 * np.pi) * series
        return np.where(x > 0, 1 - tail, tail)

    spread = volatility * np.sqrt(years)
    d1 = (np.log(spot / strike) + (rate + 0.5 * volatility**2) * years) / spread
    discounted = strike * np.exp(-rate * years)
    call = spot * normal_cdf(d1) - discounted * normal_cdf(d1 - spread)
    return call, call - spot + discounted


@on_numbers(lambda draw: tuple(draw.uniform(-1.5, 1.5, draw.n) for _ in range(4)))
def haversine(latitude, longitude, latitude2, longitude2):
    half = np.sin((latitude2 - latitude) / 2) ** 2
    half = half + np.cos(latitude) * np.cos(latitude2) * np.sin((longitude2 - longitude) / 2) ** 2
    return 2 * 6371 * np.arcsin(np.sqrt(half))


@on_numbers(lambda draw: (draw.normal(draw.n), draw.normal(6)), exact=True)
def horner(x, coefficients):
    value = np.zeros_like(x)
    for k in range(len(coefficients)):
        value = value * x + coefficients[k]
    return value


@on_numbers(lambda draw: (draw.normal(3, draw.n),))
def rolling_mean(x):
    width = 5
    sums = np.cumsum(np.concatenate([np.zeros((3, 1), x.dtype), x], axis=1), axis=1)
    return (sums[:, width:] - sums[:, :-width]) / width


@on_numbers(lambda draw: (draw.uniform(0, 1, draw.n, draw.n), draw.uniform(0, 1, draw.n)))
def page_rank_step(links, rank):
    outgoing = links.sum(axis=0)
    moved = links @ (rank / np.where(outgoing > 0, outgoing, 1))
    new = 0.15 / len(rank) + 0.85 * moved
    return new / new.sum(), np.abs(new - rank).sum()


@on_numbers(lambda draw: (draw.normal(4), np.eye(4, dtype=draw.dtype), draw.normal(2)))
def kalman_step(state, spread, measured):
    moves = np.eye(4, dtype=state.dtype)
    moves[0, 2] = moves[1, 3] = 0.1
    sees = np.zeros((2, 4), state.dtype)
    sees[[0, 1], [0, 1]] = 1
    state = moves @ state
    spread = moves @ spread @ moves.T + 0.01 * np.eye(4, dtype=state.dtype)
    s = sees @ spread @ sees.T + 0.1 * np.eye(2, dtype=state.dtype)
    inverse = np.array([[s[1, 1], -s[0, 1]], [-s[1, 0], s[0, 0]]]) / (s[0, 0] * s[1, 1] - s[0, 1] * s[1, 0])
    gain = spread @ sees.T @ inverse
    return state + gain @ (measured - sees @ state), spread - gain @ sees @ spread


def lorenz(state):
    x, y, z = state
    return np.stack([10 * (y - x), x * (28 - z) - y, x * y - 8 / 3 * z])


@on_numbers(lambda draw: (draw.normal(3, draw.n), 0.01), exact=True)
def runge_kutta_step(state, step):
    k1 = lorenz(state)
    k2 = lorenz(state + 0.5 * step * k1)
    k3 = lorenz(state + 0.5 * step * k2)
    k4 = lorenz(state + step * k3)
    return state + step / 6 * (k1 + 2 * k2 + 2 * k3 + k4)


@on_numbers(lambda draw: (draw.normal(draw.n, 3), draw.normal(draw.n, 3), draw.uniform(1, 2, draw.n)))
def gravity_step(position, velocity, mass):
    apart = position[None] - position[:, None]
    strength = mass / ((apart * apart).sum(axis=-1) + 0.01) ** 1.5
    velocity += 0.001 * (apart * strength[..., None]).sum(axis=1)
    position += 0.001 * velocity
    return 0.5 * (mass[:, None] * velocity**2).sum()


@on_numbers(
    lambda draw: (draw.uniform(1, 2, draw.n), draw.normal(draw.n), draw.uniform(4, 5, draw.n)), exact=True
)
def thomas_solver(lower, right, diagonal):
    """A tridiagonal system of seven unknowns, eliminated in place."""
    for k in range(1, 7):
        factor = lower[k] / diagonal[k - 1]
        diagonal[k] -= factor * lower[k - 1]
        right[k] -= factor * right[k - 1]
    right[6] /= diagonal[6]
    for k in range(5, -1, -1):
        right[k] = (right[k] - lower[k] * right[k + 1]) / diagonal[k]
    return right[:7]


@on_numbers(lambda draw: (draw.normal(draw.n), draw.normal(draw.n)))
def discrete_fourier_transform(real, imaginary):
    n = real.shape[0]
    angles = -2 * np.pi / n * np.outer(np.arange(n), np.arange(n))
    cosines, sines = np.cos(angles).astype(real.dtype), np.sin(angles).astype(real.dtype)
    return cosines @ real - sines @ imaginary, cosines @ imaginary + sines @ real


@on_numbers(lambda draw: (draw.uniform(0.5, 1.5, draw.n), draw.uniform(-1, 1, draw.n)))
def newton_roots(guess, target):
    for _ in range(5):
        guess = guess - (np.exp(guess) * guess - target) / (np.exp(guess) * (guess + 1) + 1e-3)
    return guess


@on_numbers(lambda draw: (draw.integers(1 << 30, draw.n).astype(np.uint32),), exact=True)
def xorshift_and_hash(state):
    for left, right in ((13, 17), (5, 3)):
        state ^= state << left
        state ^= state >> right
    mixed = (state.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(32)
    return mixed, np.bitwise_xor.reduce(state), (mixed % 97).astype(np.int16)


@on_numbers(lambda draw: (draw.normal(draw.n, 5),), exact=True)
def bubble_sort_columns(x):
    for last in range(4, 0, -1):
        for k in range(last):
            low, high = np.minimum(x[:, k], x[:, k + 1]), np.maximum(x[:, k], x[:, k + 1])
            x[:, k], x[:, k + 1] = low, high
    return x[:, 2]
