"""Grids whose points are computed from their neighbours, for Numba."""

from __future__ import annotations

import numpy as np
from numba import njit, prange

__all__ = ["STENCILS"]


@njit(parallel=True)
def cross(A, B):
    """Each inner point of B becomes the mean of A's cross around it."""
    for i in prange(1, A.shape[0] - 1):
        for j in range(1, A.shape[1] - 1):
            B[i, j] = 0.2 * (A[i, j] + A[i, j - 1] + A[i, j + 1] + A[i + 1, j] + A[i - 1, j])


@njit
def jacobi_2d(steps, A, B):
    for _ in range(steps):
        cross(A, B)
        cross(B, A)


@njit(parallel=True)
def fdtd_2d(ex, ey, hz, fict):
    nx, ny = ex.shape
    for t in range(fict.shape[0]):
        for i in prange(nx):
            if i == 0:
                for j in range(ny):
                    ey[0, j] = fict[t]
            else:
                for j in range(ny):
                    ey[i, j] -= 0.5 * (hz[i, j] - hz[i - 1, j])
            for j in range(1, ny):
                ex[i, j] -= 0.5 * (hz[i, j] - hz[i, j - 1])
        for i in prange(nx - 1):
            for j in range(ny - 1):
                hz[i, j] -= 0.7 * (ex[i, j + 1] - ex[i, j] + ey[i + 1, j] - ey[i, j])


@njit(inline="always")
def laplacian(field, i, j, k):
    return 4 * field[i, j, k] - (
        field[i + 1, j, k] + field[i - 1, j, k] + field[i, j + 1, k] + field[i, j - 1, k]
    )


@njit(inline="always")
def flux(field, i, j, ni, nj, k):
    """From one point to another one."""
    value = laplacian(field, ni, nj, k) - laplacian(field, i, j, k)
    return 0.0 if value * (field[ni, nj, k] - field[i, j, k]) > 0 else value


@njit(parallel=True)
def horizontal_diffusion(field, coefficient):
    nx, ny, nz = coefficient.shape
    out = np.empty_like(coefficient)
    for x in prange(nx):
        i = x + 2
        for y in range(ny):
            j = y + 2
            for k in range(nz):
                along_x = flux(field, i, j, i + 1, j, k) - flux(field, i - 1, j, i, j, k)
                along_y = flux(field, i, j, i, j + 1, k) - flux(field, i, j - 1, i, j, k)
                out[x, y, k] = field[i, j, k] - coefficient[x, y, k] * (along_x + along_y)
    return out


STENCILS = {"jacobi_2d": jacobi_2d, "fdtd_2d": fdtd_2d, "horizontal_diffusion": horizontal_diffusion}
