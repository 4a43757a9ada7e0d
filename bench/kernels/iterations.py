"""The same step over a whole array, again and again."""

from __future__ import annotations

import numpy as np

from .registry import EXACT, Kernel


def floyd_warshall(path):
    """Lengths of roads become the lengths of shortest ways, in place."""
    for k in range(path.shape[0]):
        path[:] = np.minimum(path[:], np.add.outer(path[:, k], path[k, :]))


def make_floyd_warshall(random, n):
    path = random.integers(1, 1000, (n, n))
    path[random.uniform(size=(n, n)) < 0.6] = 999_999
    path[np.diag_indices(n)] = 0
    return (path,)


def check_floyd_warshall(arguments, results):
    (roads,) = arguments
    ways = results[1]
    best = np.minimum.reduce([ways[:, [k]] + ways[[k], :] for k in range(len(ways))])
    assert np.array_equal(ways, best)
    # Every way is a road, or a shorter way and then a road.
    last = np.min(ways[:, :, None] + np.where(np.eye(len(ways)), roads.max(), roads), axis=1)
    assert np.array_equal(np.where(np.eye(len(ways)), 0, np.minimum(roads, last)), ways)
    assert np.any(ways < roads)


def mandelbrot(xmin, xmax, ymin, ymax, nx, ny, limit, horizon=2.0):
    """After how many steps each point of a window escapes; the real and imaginary parts are two arrays."""
    real, imaginary = np.meshgrid(np.linspace(xmin, xmax, nx), np.linspace(ymin, ymax, ny))
    x = np.zeros_like(real)
    y = np.zeros_like(real)
    escape = np.zeros(real.shape, dtype=np.int64)
    for n in range(limit):
        inside = x * x + y * y < horizon * horizon
        escape[inside] = n
        x[inside], y[inside] = (
            x[inside] ** 2 - y[inside] ** 2 + real[inside],
            2 * x[inside] * y[inside] + imaginary[inside],
        )
    escape[escape == limit - 1] = 0
    return x, y, escape


def make_mandelbrot(random, nx, ny, limit):
    left, bottom = random.uniform(-0.01, 0.01, 2)
    return -2.0 + left, 0.5, -1.25 + bottom, 1.25, nx, ny, limit


def check_mandelbrot(arguments, results):
    xmin, xmax, ymin, ymax, nx, ny, limit = arguments
    for row, im in enumerate(np.linspace(ymin, ymax, ny)):
        for column, re in enumerate(np.linspace(xmin, xmax, nx)):
            z, steps = 0j, 0
            while abs(z) < 2 and steps < limit:
                z = z * z + complex(re, im)
                steps += 1
            assert results[2][row, column] == (0 if steps == limit else steps - 1)
            assert abs(complex(results[0][row, column], results[1][row, column]) - z) < 1e-9


ITERATIONS = (
    Kernel(
        "floyd_warshall",
        floyd_warshall,
        make_floyd_warshall,
        {"small": {"n": 11}, "medium": {"n": 200}, "large": {"n": 700}},
        source="PolyBench",
        check=check_floyd_warshall,
        tolerance=EXACT,
    ),
    Kernel(
        "mandelbrot",
        mandelbrot,
        make_mandelbrot,
        {
            "small": {"nx": 13, "ny": 11, "limit": 12},
            "medium": {"nx": 150, "ny": 160, "limit": 60},
            "large": {"nx": 500, "ny": 550, "limit": 150},
        },
        source="NPBench",
        check=check_mandelbrot,
        tolerance=EXACT,
    ),
)
