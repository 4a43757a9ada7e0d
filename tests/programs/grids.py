"""Programs on images and other grids."""

from __future__ import annotations

from functools import partial

import numpy as np
from catalogue import Draw, Program, program

GRIDS: list[Program] = []
on_grids = partial(program, GRIDS)


def image(draw: Draw) -> tuple[np.ndarray]:
    return (draw.uniform(0, 1, draw.n, draw.n + 3),)


@on_grids(image, exact=True)
def box_blur(x):
    padded = np.pad(x, 1, mode="edge")
    total = np.zeros_like(x)
    for i in range(3):
        for j in range(3):
            total += padded[i : i + x.shape[0], j : j + x.shape[1]]
    return total / 9


@on_grids(image, exact=True)
def sobel(x):
    across = x[:-2, 2:] + 2 * x[1:-1, 2:] + x[2:, 2:] - x[:-2, :-2] - 2 * x[1:-1, :-2] - x[2:, :-2]
    down = x[2:, :-2] + 2 * x[2:, 1:-1] + x[2:, 2:] - x[:-2, :-2] - 2 * x[:-2, 1:-1] - x[:-2, 2:]
    edges = np.zeros_like(x)
    edges[1:-1, 1:-1] = np.sqrt(across**2 + down**2)
    return edges


@on_grids(image, exact=True)
def jacobi_in_place(x):
    for _ in range(4):
        x[1:-1, 1:-1] = 0.25 * (x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:])


@on_grids(image, exact=True)
def smooth_rows_one_by_one(x):
    for i in range(1, 6):
        x[i] += 0.5 * x[i - 1]
        x[i, 0] = x[i, -1]
    return x[1:6].sum(axis=0)


@on_grids(lambda draw: (draw.integers(2, draw.n, draw.n + 1).astype(np.uint8),), exact=True)
def game_of_life(cells):
    shifts = [(i, j) for i in (-1, 0, 1) for j in (-1, 0, 1) if (i, j) != (0, 0)]
    neighbours = sum(np.roll(cells, shift, axis=(0, 1)) for shift in shifts)
    return ((neighbours == 3) | ((cells == 1) & (neighbours == 2))).astype(np.uint8)


@on_grids(
    lambda draw: (draw.uniform(-2, 1, draw.n, draw.n), draw.uniform(-1.5, 1.5, draw.n, draw.n)), exact=True
)
def mandelbrot(real, imaginary):
    x, y = np.zeros_like(real), np.zeros_like(real)
    steps = np.zeros(real.shape, np.int32)
    for _ in range(10):
        inside = x * x + y * y <= 4
        steps += inside
        x, y = np.where(inside, x * x - y * y + real, x), np.where(inside, 2 * x * y + imaginary, y)
    return steps, x


@on_grids(lambda draw: (*image(draw), *image(draw)))
def structural_similarity(x, y):
    def windows(z):
        sums = np.cumsum(np.cumsum(np.pad(z, ((1, 0), (1, 0))), axis=0), axis=1)
        return (sums[7:, 7:] - sums[:-7, 7:] - sums[7:, :-7] + sums[:-7, :-7]) / 49

    mean_x, mean_y = windows(x), windows(y)
    variance_x, variance_y = windows(x * x) - mean_x**2, windows(y * y) - mean_y**2
    covariance = windows(x * y) - mean_x * mean_y
    brightness = (2 * mean_x * mean_y + 1e-4) / (mean_x**2 + mean_y**2 + 1e-4)
    return (brightness * (2 * covariance + 9e-4) / (variance_x + variance_y + 9e-4)).mean()


@on_grids(image)
def gamma_and_stretch(x):
    low, high = x.min(), x.max()
    stretched = (x - low) / (high - low)
    return np.clip(stretched ** (1 / 2.2), 0, 1), (stretched * 255).astype(np.uint8)


@on_grids(lambda draw: (*image(draw), draw.normal(9)), exact=True)
def filter_along_rows(signal, weights):
    length = signal.shape[1] - len(weights) + 1
    filtered = np.zeros((signal.shape[0], length), signal.dtype)
    for k in range(len(weights)):
        filtered += weights[k] * signal[:, k : k + length]
    return filtered


@on_grids(lambda draw: (draw.uniform(0, 1, draw.n, draw.n), 0.1), exact=True)
def wave_equation(height, speed):
    before, now = height.copy(), height
    for _ in range(3):
        slope = np.roll(now, 1, 0) + np.roll(now, -1, 0) + np.roll(now, 1, 1) + np.roll(now, -1, 1) - 4 * now
        before, now = now, 2 * now - before + speed * slope
    return now


@on_grids(lambda draw: (draw.integers(256, draw.n, draw.n, 3).astype(np.uint8),), exact=True)
def luminance(rgb):
    red, green, blue = np.moveaxis(rgb.astype(np.uint32), -1, 0)
    grey = (77 * red + 150 * green + 29 * blue) >> 8
    return grey.astype(np.uint8), rgb[::-1, ::-1].max(axis=2)
