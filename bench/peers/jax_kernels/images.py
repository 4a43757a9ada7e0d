"""Images and other grids, for JAX."""

from __future__ import annotations

import jax
import jax.numpy as jnp

__all__ = ["IMAGES"]


def smooth(image, weights):
    size = len(weights)
    rows, columns = image.shape[0] - size + 1, image.shape[1] - size + 1
    down = sum(weights[i] * image[i : i + rows] for i in range(size))
    return sum(weights[j] * down[:, j : j + columns] for j in range(size))


def structural_similarity(x, y):
    offsets = jnp.arange(-5, 6)
    weights = jnp.exp(-(offsets**2) / 4.5)
    weights = weights / weights.sum()
    mean_x, mean_y = smooth(x, weights), smooth(y, weights)
    variance_x = smooth(x * x, weights) - mean_x**2
    variance_y = smooth(y * y, weights) - mean_y**2
    covariance = smooth(x * y, weights) - mean_x * mean_y
    similar = (2 * mean_x * mean_y + 1e-4) * (2 * covariance + 9e-4)
    similar /= (mean_x**2 + mean_y**2 + 1e-4) * (variance_x + variance_y + 9e-4)
    return similar.mean(), similar


def bilateral_filter(image):
    radius = 2
    rows, columns = image.shape
    padded = jnp.pad(image, radius, mode="reflect")
    total, weight_sum = jnp.zeros_like(image), jnp.zeros_like(image)
    for dy in range(-radius, radius + 1):
        for dx in range(-radius, radius + 1):
            neighbour = padded[radius + dy : radius + dy + rows, radius + dx : radius + dx + columns]
            near = jnp.exp(-(dx * dx + dy * dy) / 4.5)
            weight = near * jnp.exp(-((neighbour - image) ** 2) / 0.08)
            total += weight * neighbour
            weight_sum += weight
    return total / weight_sum


def game_of_life(board, steps):
    def step(_, board):
        neighbours = sum(
            jnp.roll(board, (dy, dx), axis=(0, 1)) for dy in (-1, 0, 1) for dx in (-1, 0, 1) if dy or dx
        )
        return ((neighbours == 3) | ((board == 1) & (neighbours == 2))).astype(board.dtype)

    board = jax.lax.fori_loop(0, steps, step, board)
    return board.sum(), board


def ising_sweep(spins, uniform, beta, sweeps):
    n, m = spins.shape

    def site(k, spins):
        sweep, i, j = k // (n * m), k // m % n, k % m
        around = spins[i - 1, j] + spins[(i + 1) % n, j] + spins[i, j - 1] + spins[i, (j + 1) % m]
        cost = 2 * spins[i, j] * around
        turned = jnp.where(uniform[sweep, i, j] < jnp.exp(-beta * cost), -1, 1)
        return spins.at[i, j].multiply(turned)

    spins = jax.lax.fori_loop(0, sweeps * n * m, site, spins)
    return spins.mean(), spins


def haar_wavelet(signal):
    parts = []
    while len(signal) > 1:
        pairs = signal.reshape(-1, 2)
        parts.append((pairs[:, 0] - pairs[:, 1]) / jnp.sqrt(2))
        signal = (pairs[:, 0] + pairs[:, 1]) / jnp.sqrt(2)
    return jnp.concatenate([signal, *parts[::-1]])


def walsh_hadamard(x):
    n, h = len(x), 1
    while h < n:
        x = x.reshape(n // (2 * h), 2, h)
        x = jnp.stack([x[:, 0] + x[:, 1], x[:, 0] - x[:, 1]], axis=1)
        h *= 2
    return x.reshape(n) / jnp.sqrt(n)


def gray_scott(u, v, feed, kill, steps):
    def laplacian(field):
        around = jnp.roll(field, 1, axis=0) + jnp.roll(field, -1, axis=0)
        around += jnp.roll(field, 1, axis=1) + jnp.roll(field, -1, axis=1)
        return around - 4 * field

    def step(_, state):
        u, v = state
        reaction = u * v**2
        return (
            u + 0.16 * laplacian(u) - reaction + feed * (1 - u),
            v + 0.08 * laplacian(v) + reaction - (feed + kill) * v,
        )

    return jax.lax.fori_loop(0, steps, step, (u, v))


IMAGES = {
    "structural_similarity": structural_similarity,
    "bilateral_filter": bilateral_filter,
    "game_of_life": game_of_life,
    "ising_sweep": ising_sweep,
    "haar_wavelet": haar_wavelet,
    "walsh_hadamard": walsh_hadamard,
    "gray_scott": gray_scott,
}
