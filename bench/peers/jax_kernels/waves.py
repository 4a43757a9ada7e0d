"""Waves, as complex numbers, for JAX."""

from __future__ import annotations

import jax
import jax.numpy as jnp

__all__ = ["WAVES"]


def stockham_fft(x, radix, digits):
    row, column = jnp.mgrid[0:radix, 0:radix]
    butterfly = jnp.exp(-2j * jnp.pi * row * column / radix)
    y = x
    for i in range(digits):
        done, left = radix**i, radix ** (digits - i - 1)
        apart = jnp.transpose(y.reshape(done, radix, left), (1, 0, 2))
        row, column = jnp.mgrid[0:radix, 0:done]
        turns = jnp.exp(-2j * jnp.pi * row * column / radix ** (i + 1))
        y = (butterfly @ (apart * turns[:, :, None]).reshape(radix, -1)).reshape(-1)
    return y


def schrodinger(psi, potential, dt, steps):
    def energy(psi):
        around = psi[2:, 1:-1] + psi[:-2, 1:-1] + psi[1:-1, 2:] + psi[1:-1, :-2]
        return jnp.pad((2 + potential[1:-1, 1:-1]) * psi[1:-1, 1:-1] - 0.5 * around, 1)

    def step(_, state):
        before, now = state
        return now, before - 2j * dt * energy(now)

    return jax.lax.fori_loop(0, steps, step, (psi, psi - 1j * dt * energy(psi)))


def beamforming(signals, positions, directions):
    covariance = signals @ signals.conj().T / signals.shape[1]
    steering = jnp.exp(2j * jnp.pi * positions[:, None] * jnp.sin(directions))
    return jnp.sum((steering.conj() * (covariance @ steering)).real, axis=0)


WAVES = {"stockham_fft": stockham_fft, "schrodinger": schrodinger, "beamforming": beamforming}
