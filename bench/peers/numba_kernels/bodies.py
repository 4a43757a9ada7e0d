"""Bodies and waves, for Numba."""

from __future__ import annotations

import math

import numpy as np
from numba import njit, prange

from .flags import SUMS

__all__ = ["BODIES"]


@njit(fastmath=SUMS)
def accelerations(position, mass, pull):
    pull[:] = 0.0
    n = len(mass)
    for i in range(n):
        for j in range(i + 1, n):
            dx = position[j, 0] - position[i, 0]
            dy = position[j, 1] - position[i, 1]
            dz = position[j, 2] - position[i, 2]
            square = dx * dx + dy * dy + dz * dz + 0.01
            strength = 1 / (square * math.sqrt(square))
            pull[i, 0] += mass[j] * strength * dx
            pull[i, 1] += mass[j] * strength * dy
            pull[i, 2] += mass[j] * strength * dz
            pull[j, 0] -= mass[i] * strength * dx
            pull[j, 1] -= mass[i] * strength * dy
            pull[j, 2] -= mass[i] * strength * dz


@njit
def n_body(position, velocity, mass, dt, steps):
    pull = np.empty_like(position)
    accelerations(position, mass, pull)
    for _ in range(steps):
        for i in range(len(mass)):
            for k in range(3):
                velocity[i, k] += 0.5 * dt * pull[i, k]
                position[i, k] += dt * velocity[i, k]
        accelerations(position, mass, pull)
        for i in range(len(mass)):
            for k in range(3):
                velocity[i, k] += 0.5 * dt * pull[i, k]
    energy = 0.0
    for i in range(len(mass)):
        energy += mass[i] * (velocity[i, 0] ** 2 + velocity[i, 1] ** 2 + velocity[i, 2] ** 2)
    return 0.5 * energy


@njit(inline="always")
def lorenz(x, y, z):
    return 10.0 * (y - x), x * (28.0 - z) - y, x * y - 8 / 3 * z


@njit
def lorenz_trajectory(start, dt, steps):
    path = np.empty((steps + 1, 3))
    path[0] = start
    x, y, z = start[0], start[1], start[2]
    for t in range(steps):
        a1, b1, c1 = lorenz(x, y, z)
        a2, b2, c2 = lorenz(x + dt / 2 * a1, y + dt / 2 * b1, z + dt / 2 * c1)
        a3, b3, c3 = lorenz(x + dt / 2 * a2, y + dt / 2 * b2, z + dt / 2 * c2)
        a4, b4, c4 = lorenz(x + dt * a3, y + dt * b3, z + dt * c3)
        x += dt / 6 * (a1 + 2 * a2 + 2 * a3 + a4)
        y += dt / 6 * (b1 + 2 * b2 + 2 * b3 + b4)
        z += dt / 6 * (c1 + 2 * c2 + 2 * c3 + c4)
        path[t + 1, 0], path[t + 1, 1], path[t + 1, 2] = x, y, z
    return path


@njit(parallel=True, fastmath=SUMS)
def fourier_transform(signal):
    n = len(signal)
    real, imaginary = np.empty(n), np.empty(n)
    for k in prange(n):
        cosines, sines = 0.0, 0.0
        for t in range(n):
            angle = 2 * np.pi * k * t / n
            cosines += signal[t] * math.cos(angle)
            sines -= signal[t] * math.sin(angle)
        real[k] = cosines
        imaginary[k] = sines
    return real, imaginary


BODIES = {
    "n_body": n_body,
    "lorenz_trajectory": lorenz_trajectory,
    "fourier_transform": fourier_transform,
}
