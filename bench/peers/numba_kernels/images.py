"""Images and other grids, for Numba."""

from __future__ import annotations

import math

import numpy as np
from numba import njit, prange

__all__ = ["IMAGES"]


@njit(parallel=True)
def structural_similarity(x, y):
    offsets = np.arange(-5, 6)
    weights = np.exp(-(offsets**2) / 4.5)
    weights /= weights.sum()
    size = len(weights)
    rows, columns = x.shape[0] - size + 1, x.shape[1] - size + 1
    similar = np.empty((rows, columns))
    for i in prange(rows):
        down = np.zeros((5, x.shape[1]))
        for k in range(size):
            for j in range(x.shape[1]):
                a, b = x[i + k, j], y[i + k, j]
                down[0, j] += weights[k] * a
                down[1, j] += weights[k] * b
                down[2, j] += weights[k] * a * a
                down[3, j] += weights[k] * b * b
                down[4, j] += weights[k] * a * b
        smooth = np.zeros((5, columns))
        for field in range(5):
            for k in range(size):
                for j in range(columns):
                    smooth[field, j] += weights[k] * down[field, j + k]
        for j in range(columns):
            a, b = smooth[0, j], smooth[1, j]
            variance_x, variance_y = smooth[2, j] - a * a, smooth[3, j] - b * b
            alike = (2 * a * b + 1e-4) * (2 * (smooth[4, j] - a * b) + 9e-4)
            similar[i, j] = alike / ((a * a + b * b + 1e-4) * (variance_x + variance_y + 9e-4))
    return similar.mean(), similar


@njit(inline="always")
def reflected(i, n):
    return -i if i < 0 else 2 * (n - 1) - i if i >= n else i


@njit(parallel=True)
def bilateral_filter(image):
    radius = 2
    rows, columns = image.shape
    padded = np.empty((rows + 2 * radius, columns + 2 * radius))
    for i in range(padded.shape[0]):
        for j in range(padded.shape[1]):
            padded[i, j] = image[reflected(i - radius, rows), reflected(j - radius, columns)]
    near = np.empty((5, 5))
    for dy in range(5):
        for dx in range(5):
            near[dy, dx] = math.exp(-((dx - radius) ** 2 + (dy - radius) ** 2) / 4.5)
    out = np.empty_like(image)
    for i in prange(rows):
        for j in range(columns):
            total, weights = 0.0, 0.0
            for dy in range(5):
                for dx in range(5):
                    neighbour = padded[i + dy, j + dx]
                    weight = near[dy, dx] * math.exp(-((neighbour - image[i, j]) ** 2) / 0.08)
                    total += weight * neighbour
                    weights += weight
            out[i, j] = total / weights
    return out


@njit(parallel=True)
def game_of_life(board, steps):
    rows, columns = board.shape
    old = np.empty_like(board)
    for _ in range(steps):
        old[:] = board
        for i in prange(rows):
            up, down = (i - 1) % rows, (i + 1) % rows
            for j in range(columns):
                left = j - 1 if j > 0 else columns - 1
                right = j + 1 if j < columns - 1 else 0
                neighbours = old[up, left] + old[up, j] + old[up, right] + old[i, left] + old[i, right]
                neighbours += old[down, left] + old[down, j] + old[down, right]
                board[i, j] = neighbours == 3 or (old[i, j] == 1 and neighbours == 2)
    return board.sum()


@njit
def ising_sweep(spins, uniform, beta, sweeps):
    n, m = spins.shape
    for sweep in range(sweeps):
        for i in range(n):
            for j in range(m):
                around = spins[i - 1, j] + spins[(i + 1) % n, j] + spins[i, j - 1] + spins[i, (j + 1) % m]
                cost = 2 * spins[i, j] * around
                if uniform[sweep, i, j] < math.exp(-beta * cost):
                    spins[i, j] = -spins[i, j]
    return spins.mean()


@njit
def haar_wavelet(signal):
    out, pairs = signal.copy(), signal.copy()
    n, root = len(out), math.sqrt(2)
    while n > 1:
        for i in range(n // 2):
            a, b = pairs[2 * i], pairs[2 * i + 1]
            out[i] = (a + b) / root
            out[n // 2 + i] = (a - b) / root
        n //= 2
        pairs[:n] = out[:n]
    return out


@njit
def walsh_hadamard(x):
    x = x.copy()
    n, h = len(x), 1
    while h < n:
        for start in range(0, n, 2 * h):
            for i in range(start, start + h):
                x[i], x[i + h] = x[i] + x[i + h], x[i] - x[i + h]
        h *= 2
    return x / math.sqrt(n)


@njit(parallel=True)
def gray_scott(u, v, feed, kill, steps):
    rows, columns = u.shape
    u, v = u.copy(), v.copy()
    next_u, next_v = np.empty_like(u), np.empty_like(v)
    for _ in range(steps):
        for i in prange(rows):
            up, down = (i - 1) % rows, (i + 1) % rows
            for j in range(columns):
                left = j - 1 if j > 0 else columns - 1
                right = j + 1 if j < columns - 1 else 0
                reaction = u[i, j] * v[i, j] ** 2
                around_u = u[up, j] + u[down, j] + u[i, left] + u[i, right] - 4 * u[i, j]
                around_v = v[up, j] + v[down, j] + v[i, left] + v[i, right] - 4 * v[i, j]
                next_u[i, j] = u[i, j] + 0.16 * around_u - reaction + feed * (1 - u[i, j])
                next_v[i, j] = v[i, j] + 0.08 * around_v + reaction - (feed + kill) * v[i, j]
        u, next_u = next_u, u
        v, next_v = next_v, v
    return u, v


IMAGES = {
    "structural_similarity": structural_similarity,
    "bilateral_filter": bilateral_filter,
    "game_of_life": game_of_life,
    "ising_sweep": ising_sweep,
    "haar_wavelet": haar_wavelet,
    "walsh_hadamard": walsh_hadamard,
    "gray_scott": gray_scott,
}
