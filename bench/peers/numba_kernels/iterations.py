"""The same step over a whole array, again and again, for Numba."""

from __future__ import annotations

import numpy as np
from numba import njit, prange

__all__ = ["ITERATIONS"]


@njit(parallel=True)
def floyd_warshall(path):
    n = path.shape[0]
    for k in range(n):
        for i in prange(n):
            for j in range(n):
                path[i, j] = min(path[i, j], path[i, k] + path[k, j])


@njit(parallel=True)
def mandelbrot(xmin, xmax, ymin, ymax, nx, ny, limit):
    real = np.arange(nx) * ((xmax - xmin) / (nx - 1)) + xmin
    imaginary = np.arange(ny) * ((ymax - ymin) / (ny - 1)) + ymin
    x, y = np.zeros((ny, nx)), np.zeros((ny, nx))
    escape = np.zeros((ny, nx), dtype=np.int64)
    for i in prange(ny):
        for j in range(nx):
            a, b, n = 0.0, 0.0, 0
            while n < limit and a * a + b * b < 4.0:
                a, b = a * a - b * b + real[j], 2 * a * b + imaginary[i]
                n += 1
            x[i, j], y[i, j] = a, b
            escape[i, j] = 0 if n == limit else n - 1
    return x, y, escape


ITERATIONS = {"floyd_warshall": floyd_warshall, "mandelbrot": mandelbrot}
