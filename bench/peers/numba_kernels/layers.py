"""Layers of neural networks, for Numba."""

from __future__ import annotations

import math

import numpy as np
from numba import njit, prange

from .flags import SUMS

__all__ = ["LAYERS"]


@njit(parallel=True, fastmath=SUMS)
def convolution(images, weights, bias):
    n, height, width, inputs = images.shape
    k, outputs = weights.shape[0], weights.shape[3]
    out = np.empty((n, height - k + 1, width - k + 1, outputs), dtype=images.dtype)
    for line in prange(n * (height - k + 1)):
        image, i = line // (height - k + 1), line % (height - k + 1)
        for j in range(width - k + 1):
            for o in range(outputs):
                out[image, i, j, o] = bias[o]
            for di in range(k):
                for dj in range(k):
                    for c in range(inputs):
                        pixel = images[image, i + di, j + dj, c]
                        for o in range(outputs):
                            out[image, i, j, o] += pixel * weights[di, dj, c, o]
    return out


@njit(parallel=True, fastmath=SUMS)
def softmax(x):
    out = np.empty_like(x)
    lines, results = x.reshape(-1, x.shape[-1]), out.reshape(-1, x.shape[-1])
    for i in prange(lines.shape[0]):
        largest = lines[i, 0]
        for j in range(1, lines.shape[1]):
            largest = max(largest, lines[i, j])
        total = np.float32(0)
        for j in range(lines.shape[1]):
            results[i, j] = math.exp(lines[i, j] - largest)
            total += results[i, j]
        for j in range(lines.shape[1]):
            results[i, j] /= total
    return out


LAYERS = {"convolution": convolution, "softmax": softmax}
