"""Bodies and waves, for JAX."""

from __future__ import annotations

import jax
import jax.numpy as jnp

__all__ = ["BODIES"]


def accelerations(position, mass):
    apart = position[None] - position[:, None]
    strength = ((apart**2).sum(axis=-1) + 0.01) ** -1.5
    return jnp.einsum("j,ij,ijk->ik", mass, strength, apart)


def n_body(position, velocity, mass, dt, steps):
    def step(_, state):
        position, velocity, pull = state
        velocity = velocity + 0.5 * dt * pull
        position = position + dt * velocity
        pull = accelerations(position, mass)
        return position, velocity + 0.5 * dt * pull, pull

    start = position, velocity, accelerations(position, mass)
    position, velocity, _ = jax.lax.fori_loop(0, steps, step, start)
    return 0.5 * (mass * (velocity**2).sum(axis=1)).sum(), position, velocity


def lorenz(state):
    x, y, z = state
    return jnp.array([10.0 * (y - x), x * (28.0 - z) - y, x * y - 8 / 3 * z])


def lorenz_trajectory(start, dt, steps):
    def step(state, _):
        k1 = lorenz(state)
        k2 = lorenz(state + dt / 2 * k1)
        k3 = lorenz(state + dt / 2 * k2)
        k4 = lorenz(state + dt * k3)
        state = state + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        return state, state

    return jnp.concatenate([start[None], jax.lax.scan(step, start, length=steps)[1]])


def fourier_transform(signal):
    n = len(signal)
    angle = 2 * jnp.pi * jnp.outer(jnp.arange(n), jnp.arange(n)) / n
    return jnp.cos(angle) @ signal, -jnp.sin(angle) @ signal


BODIES = {
    "n_body": n_body,
    "lorenz_trajectory": lorenz_trajectory,
    "fourier_transform": fourier_transform,
}
