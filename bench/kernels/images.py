"""Images and other grids: filters, comparisons, cellular automata, transforms in stages."""

from __future__ import annotations

import numpy as np
from numpy import exp, zeros, zeros_like
from numpy.testing import assert_allclose, assert_array_equal

from .registry import EXACT, Kernel


def gaussian_weights(sigma=1.5, radius=5):
    offsets = np.arange(-radius, radius + 1)
    weights = exp(-(offsets**2) / (2 * sigma**2))
    return weights / weights.sum()


def smooth(image, weights):
    """Windows that fit into the image, weighted along both axes."""
    size = len(weights)
    rows, columns = image.shape[0] - size + 1, image.shape[1] - size + 1
    down = zeros((rows, image.shape[1]))
    for i in range(size):
        down += weights[i] * image[i : i + rows]
    out = zeros((rows, columns))
    for j in range(size):
        out += weights[j] * down[:, j : j + columns]
    return out


def structural_similarity(x, y, peak=1.0):
    """How alike two images look, from local means, variances and covariance."""
    weights = gaussian_weights()
    steady, tiny = (0.01 * peak) ** 2, (0.03 * peak) ** 2
    mean_x, mean_y = smooth(x, weights), smooth(y, weights)
    variance_x = smooth(x * x, weights) - mean_x**2
    variance_y = smooth(y * y, weights) - mean_y**2
    covariance = smooth(x * y, weights) - mean_x * mean_y
    similar = (2 * mean_x * mean_y + steady) * (2 * covariance + tiny)
    similar /= (mean_x**2 + mean_y**2 + steady) * (variance_x + variance_y + tiny)
    return similar.mean(), similar


def make_structural_similarity(random, rows, columns):
    x = random.uniform(0, 1, (rows, columns))
    return x, np.clip(x + random.normal(0, 0.2, x.shape), 0, 1)


def check_structural_similarity(arguments, results):
    x, y = arguments
    mean, similar = results[:2]
    assert 0.4 < mean < 0.95
    assert similar.max() <= 1
    assert_allclose(structural_similarity(y, x)[1], similar)
    assert_allclose(structural_similarity(x, x)[0], 1)


def bilateral_filter(image, radius=2, spatial=1.5, tonal=0.2):
    """The mean of the neighbours, weighted by distance and by likeness: edges stay sharp."""
    rows, columns = image.shape
    padded = np.pad(image, radius, mode="reflect")
    total, weight_sum = zeros_like(image), zeros_like(image)
    for dy in range(-radius, radius + 1):
        for dx in range(-radius, radius + 1):
            y, x = radius + dy, radius + dx
            neighbour = padded[y : y + rows, x : x + columns]
            near = exp(-(dx * dx + dy * dy) / (2 * spatial**2))
            weight = near * exp(-((neighbour - image) ** 2) / (2 * tonal**2))
            total += weight * neighbour
            weight_sum += weight
    return total / weight_sum


def make_bilateral_filter(random, rows, columns):
    step = np.where(np.arange(columns) < columns // 2, 0.0, 1.0)
    return (step + random.normal(0, 0.05, (rows, columns)),)


def check_bilateral_filter(arguments, results):
    (image,) = arguments
    filtered, edge = results[0], image.shape[1] // 2
    assert filtered.min() > image.min()
    assert filtered[:, :edge].std() < 0.7 * image[:, :edge].std()
    assert (filtered[:, edge] - filtered[:, edge - 1]).mean() > 0.9


def game_of_life(board, steps):
    """Conway's rules on a board whose edges meet."""
    for _ in range(steps):
        neighbours = np.zeros_like(board)
        for dy in (-1, 0, 1):
            for dx in (-1, 0, 1):
                if dy or dx:
                    neighbours += np.roll(board, (dy, dx), axis=(0, 1))
        board[:] = (neighbours == 3) | ((board == 1) & (neighbours == 2))
    return board.sum()


def make_game_of_life(random, rows, columns, steps):
    board = (random.uniform(0, 1, (rows, columns)) < 0.3).astype(np.int8)
    board[:6, :6] = 0
    board[[1, 2, 3, 3, 3], [2, 3, 1, 2, 3]] = 1
    return board, steps


def check_game_of_life(arguments, results):
    board, steps = arguments
    after = results[1]
    assert set(np.unique(after)) == {0, 1}
    for _ in range(steps):
        around = sum(np.roll(np.roll(board, dy, 0), dx, 1) for dy in (-1, 0, 1) for dx in (-1, 0, 1)) - board
        board = np.isin(around + 10 * board, (3, 12, 13)).astype(np.int8)
    assert_array_equal(after, board)


def ising_sweep(spins, uniform, beta, sweeps):
    """Metropolis' rule at one site after the other, by random numbers that were drawn before."""
    n, m = spins.shape
    for sweep in range(sweeps):
        for i in range(n):
            for j in range(m):
                around = spins[i - 1, j] + spins[(i + 1) % n, j] + spins[i, j - 1] + spins[i, (j + 1) % m]
                cost = 2 * spins[i, j] * around
                spins[i, j] *= np.where(uniform[sweep, i, j] < exp(-beta * cost), -1, 1)
    return spins.mean()


def make_ising_sweep(random, rows, columns, sweeps):
    spins = random.choice([-1, 1], (rows, columns))
    return spins, random.uniform(0, 1, (sweeps, rows, columns)), 0.44, sweeps


def check_ising_sweep(arguments, results):
    before, after = arguments[0], results[1]

    def energy(spins):
        return -(spins * np.roll(spins, 1, 0) + spins * np.roll(spins, 1, 1)).sum()

    assert set(np.unique(after)) == {-1, 1}
    assert energy(after) < energy(before)


def haar_wavelet(signal):
    """Means and differences of neighbours; then the same of the means, down to one."""
    out = signal.copy()
    n = len(out)
    while n > 1:
        pairs = out[:n].reshape(n // 2, 2)
        means = (pairs[:, 0] + pairs[:, 1]) / np.sqrt(2)
        details = (pairs[:, 0] - pairs[:, 1]) / np.sqrt(2)
        out[: n // 2] = means
        out[n // 2 : n] = details
        n //= 2
    return out


def make_haar_wavelet(random, levels):
    return (random.standard_normal(2**levels) + np.linspace(0, 3, 2**levels),)


def check_haar_wavelet(arguments, results):
    (signal,) = arguments
    transformed = results[0]
    assert_allclose((transformed**2).sum(), (signal**2).sum())
    assert_allclose(transformed[0], signal.sum() / np.sqrt(len(signal)))
    assert_allclose(transformed[-1], (signal[-2] - signal[-1]) / np.sqrt(2))


def walsh_hadamard(x):
    """Sums and differences over all pairs of halves, at every scale."""
    n = len(x)
    h = 1
    while h < n:
        x = x.reshape(n // (2 * h), 2, h)
        x = np.stack([x[:, 0] + x[:, 1], x[:, 0] - x[:, 1]], axis=1)
        h *= 2
    return x.reshape(n) / np.sqrt(n)


def make_walsh_hadamard(random, levels):
    return (random.standard_normal(2**levels),)


def check_walsh_hadamard(arguments, results):
    (x,) = arguments
    transformed = results[0]
    assert_allclose(walsh_hadamard(transformed), x, atol=1e-9)
    bits = np.array([bin(k & 5).count("1") % 2 for k in range(len(x))])
    assert_allclose(transformed[5], (x * (1 - 2 * bits)).sum() / np.sqrt(len(x)), atol=1e-9)


def gray_scott(u, v, feed, kill, steps, dt=1.0):
    """Two substances that react and diffuse, on a plane whose edges meet."""

    def laplacian(field):
        around = np.roll(field, 1, axis=0) + np.roll(field, -1, axis=0)
        around += np.roll(field, 1, axis=1) + np.roll(field, -1, axis=1)
        return around - 4 * field

    for _ in range(steps):
        reaction = u * v**2
        u, v = (
            u + dt * (0.16 * laplacian(u) - reaction + feed * (1 - u)),
            v + dt * (0.08 * laplacian(v) + reaction - (feed + kill) * v),
        )
    return u, v


def make_gray_scott(random, rows, columns, steps):
    u, v = np.ones((rows, columns)), np.zeros((rows, columns))
    u[2 : rows // 2, 3 : columns // 2] = 0.5
    v[2 : rows // 2, 3 : columns // 2] = 0.25
    return u + random.normal(0, 0.02, u.shape), v + random.uniform(0, 0.04, v.shape), 0.035, 0.06, steps


def check_gray_scott(arguments, results):
    u, v, feed, kill, steps = arguments
    for _ in range(steps):
        reaction = (u * v * v).mean()
        next_u, next_v = gray_scott(u, v, feed, kill, 1)
        assert_allclose(next_u.mean(), u.mean() - reaction + feed * (1 - u.mean()))
        assert_allclose(next_v.mean(), v.mean() + reaction - (feed + kill) * v.mean())
        u, v = next_u, next_v
    assert_array_equal(results[0], u)
    assert_array_equal(results[2], arguments[0])


IMAGES = (
    Kernel(
        "structural_similarity",
        structural_similarity,
        make_structural_similarity,
        {
            "small": {"rows": 15, "columns": 19},
            "medium": {"rows": 256, "columns": 300},
            "large": {"rows": 1000, "columns": 1200},
        },
        "own",
        check_structural_similarity,
    ),
    Kernel(
        "bilateral_filter",
        bilateral_filter,
        make_bilateral_filter,
        {
            "small": {"rows": 14, "columns": 18},
            "medium": {"rows": 160, "columns": 200},
            "large": {"rows": 1000, "columns": 1600},
        },
        "own",
        check_bilateral_filter,
    ),
    Kernel(
        "game_of_life",
        game_of_life,
        make_game_of_life,
        {
            "small": {"rows": 11, "columns": 13, "steps": 5},
            "medium": {"rows": 200, "columns": 300, "steps": 40},
            "large": {"rows": 1500, "columns": 2000, "steps": 100},
        },
        "own",
        check_game_of_life,
        tolerance=EXACT,
    ),
    Kernel(
        "ising_sweep",
        ising_sweep,
        make_ising_sweep,
        {
            "small": {"rows": 7, "columns": 9, "sweeps": 3},
            "medium": {"rows": 40, "columns": 50, "sweeps": 8},
            "large": {"rows": 100, "columns": 100, "sweeps": 30},
        },
        "own",
        check_ising_sweep,
        tolerance=EXACT,
    ),
    Kernel(
        "haar_wavelet",
        haar_wavelet,
        make_haar_wavelet,
        {"small": {"levels": 5}, "medium": {"levels": 20}, "large": {"levels": 24}},
        "own",
        check_haar_wavelet,
        tolerance=EXACT,
    ),
    Kernel(
        "walsh_hadamard",
        walsh_hadamard,
        make_walsh_hadamard,
        {"small": {"levels": 5}, "medium": {"levels": 17}, "large": {"levels": 23}},
        "own",
        check_walsh_hadamard,
        tolerance=EXACT,
    ),
    Kernel(
        "gray_scott",
        gray_scott,
        make_gray_scott,
        {
            "small": {"rows": 9, "columns": 12, "steps": 6},
            "medium": {"rows": 128, "columns": 160, "steps": 50},
            "large": {"rows": 900, "columns": 1000, "steps": 80},
        },
        "own",
        check_gray_scott,
        tolerance=EXACT,
    ),
)
