"""Waves, as complex numbers: their spectra, matter waves, waves that antennas receive."""

from __future__ import annotations

import numpy as np
from numpy.testing import assert_allclose

from .registry import Kernel


def stockham_fft(x, radix, digits):
    """The discrete Fourier transform of radix**digits numbers, which sorts itself."""
    row, column = np.mgrid[0:radix, 0:radix]
    butterfly = np.exp(-2j * np.pi * row * column / radix)
    y = x.copy()
    for i in range(digits):
        done, left = radix**i, radix ** (digits - i - 1)
        apart = np.transpose(np.reshape(y, (done, radix, left)), (1, 0, 2))
        row, column = np.mgrid[0:radix, 0:done]
        turns = np.exp(-2j * np.pi * row * column / radix ** (i + 1))
        twiddled = apart * np.repeat(np.reshape(turns, (radix, done, 1)), left, axis=2)
        y[:] = np.reshape(butterfly @ np.reshape(twiddled, (radix, done * left)), y.shape)
    return y


def make_stockham_fft(random, radix, digits):
    real, imaginary = random.standard_normal((2, radix**digits))
    return real + 1j * imaginary, radix, digits


def check_stockham_fft(arguments, results):
    x = arguments[0]
    assert_allclose(results[0], np.fft.fft(x), atol=1e-10 * np.abs(x).sum())


def schrodinger(psi, potential, dt, steps):
    """A wave packet in a box, by the leapfrog scheme of Askar and Cakmak; the last two steps of it."""

    def energy(psi):
        out = np.zeros_like(psi)
        around = psi[2:, 1:-1] + psi[:-2, 1:-1] + psi[1:-1, 2:] + psi[1:-1, :-2]
        out[1:-1, 1:-1] = (2 + potential[1:-1, 1:-1]) * psi[1:-1, 1:-1] - 0.5 * around
        return out

    before, now = psi, psi - 1j * dt * energy(psi)
    for _ in range(steps):
        before, now = now, before - 2j * dt * energy(now)
    return before, now


def make_schrodinger(random, n, steps):
    y, x = np.mgrid[0:n, 0:n] / n
    psi = np.exp(-50 * ((x - 0.4) ** 2 + (y - 0.5) ** 2) + 0.8j * n * x)
    psi[[0, -1]] = psi[:, [0, -1]] = 0
    return psi, random.uniform(0, 0.2, (n, n)), 0.1, steps


def check_schrodinger(arguments, results):
    psi, *_ = arguments
    before, now = results[:2]
    # The scheme keeps the real part of the product of a step with the next.
    assert_allclose(np.vdot(before, now).real, np.vdot(psi, psi).real, rtol=1e-12)
    columns = np.arange(len(psi))
    moved = np.sum(np.abs(now) ** 2 * columns) / np.sum(np.abs(now) ** 2)
    assert moved > np.sum(np.abs(psi) ** 2 * columns) / np.sum(np.abs(psi) ** 2) + 0.1


def beamforming(signals, positions, directions):
    """The power that a row of antennas, at positions in wavelengths, receives from each direction."""
    covariance = signals @ signals.conj().T / signals.shape[1]
    steering = np.exp(2j * np.pi * positions[:, None] * np.sin(directions))
    return np.sum((steering.conj() * (covariance @ steering)).real, axis=0)


SOURCES = np.array([-0.5, 0.3])


def make_beamforming(random, antennas, times, directions):
    positions = 0.5 * np.arange(antennas) + random.uniform(-0.05, 0.05, antennas)
    arriving = np.exp(2j * np.pi * positions[:, None] * np.sin(SOURCES))
    sent = random.standard_normal((2, times)) + 1j * random.standard_normal((2, times))
    noise = random.standard_normal((antennas, times)) + 1j * random.standard_normal((antennas, times))
    return arriving @ sent + 0.3 * noise, positions, np.linspace(-1.5, 1.5, directions)


def check_beamforming(arguments, results):
    signals, positions, directions = arguments
    power = results[0]
    steering = np.exp(-2j * np.pi * np.outer(np.sin(directions), positions))
    assert_allclose(power, np.mean(np.abs(steering @ signals) ** 2, axis=1))
    peaks = directions[1:-1][(power[1:-1] > power[:-2]) & (power[1:-1] > power[2:])]
    assert np.abs(np.subtract.outer(SOURCES, peaks)).min(axis=1).max() < 0.15


WAVES = (
    Kernel(
        "stockham_fft",
        stockham_fft,
        make_stockham_fft,
        {
            "small": {"radix": 3, "digits": 4},
            "medium": {"radix": 8, "digits": 5},
            "large": {"radix": 8, "digits": 7},
        },
        source="NPBench",
        check=check_stockham_fft,
    ),
    Kernel(
        "schrodinger",
        schrodinger,
        make_schrodinger,
        {
            "small": {"n": 21, "steps": 9},
            "medium": {"n": 250, "steps": 20},
            "large": {"n": 1000, "steps": 60},
        },
        source="own",
        check=check_schrodinger,
    ),
    Kernel(
        "beamforming",
        beamforming,
        make_beamforming,
        {
            "small": {"antennas": 9, "times": 40, "directions": 60},
            "medium": {"antennas": 96, "times": 4000, "directions": 2000},
            "large": {"antennas": 256, "times": 12000, "directions": 6000},
        },
        source="own",
        check=check_beamforming,
    ),
)
