"""The same step over a whole array, again and again, for JAX."""

from __future__ import annotations

import jax
import jax.numpy as jnp

__all__ = ["ITERATIONS"]


def floyd_warshall(path):
    def through(k, path):
        return jnp.minimum(path, path[:, k, None] + path[k, :])

    return jax.lax.fori_loop(0, len(path), through, path)


def mandelbrot(xmin, xmax, ymin, ymax, nx, ny, limit):
    real, imaginary = jnp.meshgrid(jnp.linspace(xmin, xmax, nx), jnp.linspace(ymin, ymax, ny))

    def step(n, state):
        x, y, escape = state
        inside = x * x + y * y < 4
        return (
            jnp.where(inside, x * x - y * y + real, x),
            jnp.where(inside, 2 * x * y + imaginary, y),
            jnp.where(inside, n, escape),
        )

    start = jnp.zeros_like(real), jnp.zeros_like(real), jnp.zeros(real.shape, dtype=int)
    x, y, escape = jax.lax.fori_loop(0, limit, step, start)
    return x, y, jnp.where(escape == limit - 1, 0, escape)


ITERATIONS = {"floyd_warshall": floyd_warshall, "mandelbrot": mandelbrot}
