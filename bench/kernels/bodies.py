"""Bodies and waves: gravity, chaos, spectra by their definition."""

from __future__ import annotations

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal

from .registry import EXACT, Kernel


def accelerations(position, mass, softening=0.1):
    """The pull of every body on every other; what one feels, the other feels too."""
    pull = np.zeros_like(position)
    for i in range(len(mass)):
        for j in range(i + 1, len(mass)):
            apart = position[j] - position[i]
            strength = (apart @ apart + softening**2) ** -1.5
            pull[i] += mass[j] * strength * apart
            pull[j] -= mass[i] * strength * apart
    return pull


def n_body(position, velocity, mass, dt, steps):
    """Bodies under their own gravity, by leaps that keep the energy."""
    pull = accelerations(position, mass)
    for _ in range(steps):
        velocity += 0.5 * dt * pull
        position += dt * velocity
        pull = accelerations(position, mass)
        velocity += 0.5 * dt * pull
    return 0.5 * (mass * (velocity**2).sum(axis=1)).sum()


def make_n_body(random, bodies, steps):
    position, velocity = random.standard_normal((2, bodies, 3))
    return position, 0.2 * velocity, random.uniform(0.5, 1.5, bodies) / bodies, 0.01, steps


def check_n_body(arguments, results):
    position, velocity, mass, dt, steps = arguments
    assert_allclose(mass @ results[2], mass @ velocity, atol=1e-12)
    assert_allclose(mass @ results[1], mass @ (position + dt * steps * velocity), atol=1e-12)

    def energy(position, velocity):
        apart = position[:, None] - position
        distance = np.sqrt((apart**2).sum(axis=-1) + 0.01)
        pairs = np.triu(np.outer(mass, mass) / distance, 1).sum()
        return 0.5 * (mass * (velocity**2).sum(axis=1)).sum() - pairs

    assert_allclose(energy(results[1], results[2]), energy(position, velocity), rtol=1e-2)


def lorenz(state, sigma=10.0, rho=28.0, beta=8 / 3):
    x, y, z = state
    return np.array([sigma * (y - x), x * (rho - z) - y, x * y - beta * z])


def lorenz_trajectory(start, dt, steps):
    """Lorenz' attractor by Runge and Kutta's rule of order four."""
    path = np.empty((steps + 1, 3))
    path[0] = start
    for t in range(steps):
        k1 = lorenz(path[t])
        k2 = lorenz(path[t] + dt / 2 * k1)
        k3 = lorenz(path[t] + dt / 2 * k2)
        k4 = lorenz(path[t] + dt * k3)
        path[t + 1] = path[t] + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return path


def make_lorenz_trajectory(random, steps):
    return random.normal([0, 0, 25], 5), 0.005, steps


def check_lorenz_trajectory(arguments, results):
    start, dt, _ = arguments
    path = results[0]
    assert_array_equal(path[0], start)
    assert np.abs(path).max() < 100
    slopes = np.array([lorenz(state) for state in path[1:-1]])
    assert_allclose((path[2:] - path[:-2]) / (2 * dt), slopes, atol=1e-2 * np.abs(slopes).max())


def fourier_transform(signal):
    """The discrete Fourier transform, frequency by frequency, sample by sample."""
    n = len(signal)
    real, imaginary = np.zeros(n), np.zeros(n)
    for k in range(n):
        cosines, sines = 0.0, 0.0
        for t in range(n):
            angle = 2 * np.pi * k * t / n
            cosines += signal[t] * np.cos(angle)
            sines -= signal[t] * np.sin(angle)
        real[k] = cosines
        imaginary[k] = sines
    return real, imaginary


def make_fourier_transform(random, samples):
    return (random.standard_normal(samples),)


def check_fourier_transform(arguments, results):
    spectrum = np.fft.fft(arguments[0])
    assert_allclose(results[0], spectrum.real, atol=1e-9)
    assert_allclose(results[1], spectrum.imag, atol=1e-9)


BODIES = (
    Kernel(
        "n_body",
        n_body,
        make_n_body,
        {
            "small": {"bodies": 6, "steps": 3},
            "medium": {"bodies": 40, "steps": 10},
            "large": {"bodies": 100, "steps": 40},
        },
        "own",
        check_n_body,
    ),
    Kernel(
        "lorenz_trajectory",
        lorenz_trajectory,
        make_lorenz_trajectory,
        {"small": {"steps": 30}, "medium": {"steps": 3000}, "large": {"steps": 60000}},
        "own",
        check_lorenz_trajectory,
        tolerance=EXACT,
    ),
    Kernel(
        "fourier_transform",
        fourier_transform,
        make_fourier_transform,
        {"small": {"samples": 17}, "medium": {"samples": 150}, "large": {"samples": 700}},
        "own",
        check_fourier_transform,
    ),
)
