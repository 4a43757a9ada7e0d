"""Heat and flow, stepped through time, for Numba."""

from __future__ import annotations

import numpy as np
from numba import njit, prange

__all__ = ["DIFFERENTIAL_EQUATIONS"]


R = 0.3


@njit(parallel=True)
def down_the_columns(half, u, slope):
    """Explicit along the rows, implicit down the columns."""
    n, m = u.shape
    half[:] = u
    for i in prange(1, n - 1):
        for j in range(1, m - 1):
            half[i, j] += R * (u[i, j - 1] - 2 * u[i, j] + u[i, j + 1])
    for i in range(1, n - 1):
        pivot = 1 + 2 * R - R * slope[i - 1]
        for j in range(1, m - 1):
            half[i, j] = (half[i, j] + R * half[i - 1, j]) / pivot
    for i in range(n - 2, 0, -1):
        for j in range(1, m - 1):
            half[i, j] += slope[i] * half[i + 1, j]


@njit(parallel=True)
def along_the_rows(u, half, slope):
    """Explicit down the columns, implicit along the rows."""
    n, m = u.shape
    for i in prange(1, n - 1):
        for j in range(1, m - 1):
            u[i, j] = half[i, j] + R * (half[i - 1, j] - 2 * half[i, j] + half[i + 1, j])
        for j in range(1, m - 1):
            u[i, j] = (u[i, j] + R * u[i, j - 1]) / (1 + 2 * R - R * slope[j - 1])
        for j in range(m - 2, 0, -1):
            u[i, j] += slope[j] * u[i, j + 1]


@njit
def adi(u, steps):
    slope, half = np.zeros(max(u.shape)), np.empty_like(u)
    for j in range(1, len(slope)):
        slope[j] = R / (1 + 2 * R - R * slope[j - 1])
    for _ in range(steps):
        down_the_columns(half, u, slope)
        along_the_rows(u, half, slope)


@njit
def divergence_rate(b, rho, dt, u, v, dx, dy):
    for i in range(1, u.shape[0] - 1):
        for j in range(1, u.shape[1] - 1):
            du_dx = (u[i, j + 1] - u[i, j - 1]) / (2 * dx)
            dv_dy = (v[i + 1, j] - v[i - 1, j]) / (2 * dy)
            du_dy = (u[i + 1, j] - u[i - 1, j]) / (2 * dy)
            dv_dx = (v[i, j + 1] - v[i, j - 1]) / (2 * dx)
            b[i, j] = rho * ((du_dx + dv_dy) / dt - du_dx**2 - 2 * du_dy * dv_dx - dv_dy**2)


@njit
def relax_pressure(p, pn, b, dx, dy, iterations):
    n, m = p.shape
    for _ in range(iterations):
        pn[:] = p
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                p[i, j] = (
                    (pn[i, j + 1] + pn[i, j - 1]) * dy**2
                    + (pn[i + 1, j] + pn[i - 1, j]) * dx**2
                    - b[i, j] * dx**2 * dy**2
                ) / (2 * (dx**2 + dy**2))
        for i in range(n):
            p[i, m - 1] = p[i, m - 2]
        for j in range(m):
            p[0, j] = p[1, j]
        for i in range(n):
            p[i, 0] = p[i, 1]
        for j in range(m):
            p[n - 1, j] = 0


@njit(inline="always")
def advance(w, u, v, i, j, dt, dx, dy, nu):
    along_x = u[i, j] * (w[i, j] - w[i, j - 1]) / dx
    along_y = v[i, j] * (w[i, j] - w[i - 1, j]) / dy
    viscous_x = (w[i, j + 1] - 2 * w[i, j] + w[i, j - 1]) / dx**2
    viscous_y = (w[i + 1, j] - 2 * w[i, j] + w[i - 1, j]) / dy**2
    return w[i, j] - dt * (along_x + along_y) + nu * dt * (viscous_x + viscous_y)


@njit
def cavity_flow(u, v, p, steps, iterations, dt, dx, dy):
    rho, nu = 1.0, 0.1
    b, pn = np.zeros_like(u), np.empty_like(p)
    un, vn = np.empty_like(u), np.empty_like(v)
    push = dt / (2 * rho)
    for _ in range(steps):
        un[:], vn[:] = u, v
        divergence_rate(b, rho, dt, u, v, dx, dy)
        relax_pressure(p, pn, b, dx, dy, iterations)
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                u[i, j] = advance(un, un, vn, i, j, dt, dx, dy, nu) - push / dx * (p[i, j + 1] - p[i, j - 1])
                v[i, j] = advance(vn, un, vn, i, j, dt, dx, dy, nu) - push / dy * (p[i + 1, j] - p[i - 1, j])
        for wall in (u, v):
            wall[0, :] = 0
            wall[:, 0] = 0
            wall[:, -1] = 0
            wall[-1, :] = 0
        u[-1, :] = 1


DIFFERENTIAL_EQUATIONS = {"adi": adi, "cavity_flow": cavity_flow}
