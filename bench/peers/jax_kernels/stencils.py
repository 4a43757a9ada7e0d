"""Grids whose points are computed from their neighbours, for JAX."""

from __future__ import annotations

import jax
import jax.numpy as jnp

__all__ = ["STENCILS"]


def cross(A, B):
    """B, whose inner points become the means of A's crosses."""
    inner = 0.2 * (A[1:-1, 1:-1] + A[1:-1, :-2] + A[1:-1, 2:] + A[2:, 1:-1] + A[:-2, 1:-1])
    return B.at[1:-1, 1:-1].set(inner)


def jacobi_2d(steps, A, B):
    def step(_, grids):
        A, B = grids
        B = cross(A, B)
        return cross(B, A), B

    return jax.lax.fori_loop(0, steps, step, (A, B))


def fdtd_2d(ex, ey, hz, fict):
    def step(fields, value):
        ex, ey, hz = fields
        ey = ey.at[0, :].set(value)
        ey = ey.at[1:, :].add(-0.5 * (hz[1:, :] - hz[:-1, :]))
        ex = ex.at[:, 1:].add(-0.5 * (hz[:, 1:] - hz[:, :-1]))
        curl = ex[:-1, 1:] - ex[:-1, :-1] + ey[1:, :-1] - ey[:-1, :-1]
        return (ex, ey, hz.at[:-1, :-1].add(-0.7 * curl)), None

    return jax.lax.scan(step, (ex, ey, hz), fict)[0]


def horizontal_diffusion(field, coefficient):
    laplacian = 4 * field[1:-1, 1:-1, :] - (
        field[2:, 1:-1, :] + field[:-2, 1:-1, :] + field[1:-1, 2:, :] + field[1:-1, :-2, :]
    )
    flux_x = laplacian[1:, 1:-1, :] - laplacian[:-1, 1:-1, :]
    flux_x = jnp.where(flux_x * (field[2:-1, 2:-2, :] - field[1:-2, 2:-2, :]) > 0, 0, flux_x)
    flux_y = laplacian[1:-1, 1:, :] - laplacian[1:-1, :-1, :]
    flux_y = jnp.where(flux_y * (field[2:-2, 2:-1, :] - field[2:-2, 1:-2, :]) > 0, 0, flux_y)
    divergence = flux_x[1:, :, :] - flux_x[:-1, :, :] + flux_y[:, 1:, :] - flux_y[:, :-1, :]
    return field[2:-2, 2:-2, :] - coefficient * divergence


STENCILS = {"jacobi_2d": jacobi_2d, "fdtd_2d": fdtd_2d, "horizontal_diffusion": horizontal_diffusion}
