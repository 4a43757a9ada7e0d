"""Heat and flow, stepped through time, for JAX."""

from __future__ import annotations

import jax
import jax.numpy as jnp

__all__ = ["DIFFERENTIAL_EQUATIONS"]


def solve_columns(r, rhs):
    """Solves (1 + 2r) x[j] - r (x[j-1] + x[j+1]) = rhs[j] between the first and the last row, which stay."""

    def forwards(state, right):
        x, slope = state
        pivot = 1 + 2 * r - r * slope
        after = (right + r * x) / pivot, r / pivot
        return after, after

    def backwards(x, state):
        right, slope = state
        x = right + slope * x
        return x, x

    _, (lower, slopes) = jax.lax.scan(forwards, (rhs[0], 0.0), rhs[1:-1])
    _, inner = jax.lax.scan(backwards, rhs[-1], (lower, slopes), reverse=True)
    return jnp.concatenate([rhs[:1], inner, rhs[-1:]])


def adi(u, steps, r=0.3):
    def step(_, u):
        half = u.at[1:-1, 1:-1].add(r * (u[1:-1, :-2] - 2 * u[1:-1, 1:-1] + u[1:-1, 2:]))
        half = half.at[:, 1:-1].set(solve_columns(r, half[:, 1:-1]))
        inner = half[1:-1, 1:-1] + r * (half[:-2, 1:-1] - 2 * half[1:-1, 1:-1] + half[2:, 1:-1])
        u = u.at[1:-1, 1:-1].set(inner)
        return u.at[1:-1, :].set(solve_columns(r, u[1:-1, :].T).T)

    return jax.lax.fori_loop(0, steps, step, u)


def divergence_rate(rho, dt, u, v, dx, dy):
    du_dx = (u[1:-1, 2:] - u[1:-1, :-2]) / (2 * dx)
    dv_dy = (v[2:, 1:-1] - v[:-2, 1:-1]) / (2 * dy)
    du_dy = (u[2:, 1:-1] - u[:-2, 1:-1]) / (2 * dy)
    dv_dx = (v[1:-1, 2:] - v[1:-1, :-2]) / (2 * dx)
    return rho * ((du_dx + dv_dy) / dt - du_dx**2 - 2 * du_dy * dv_dx - dv_dy**2)


def relax_pressure(p, b, dx, dy, iterations):
    def step(_, p):
        around = (p[1:-1, 2:] + p[1:-1, :-2]) * dy**2 + (p[2:, 1:-1] + p[:-2, 1:-1]) * dx**2
        p = p.at[1:-1, 1:-1].set((around - b * dx**2 * dy**2) / (2 * (dx**2 + dy**2)))
        p = p.at[:, -1].set(p[:, -2])
        p = p.at[0, :].set(p[1, :])
        p = p.at[:, 0].set(p[:, 1])
        return p.at[-1, :].set(0)

    return jax.lax.fori_loop(0, iterations, step, p)


def advance(w, u, v, dt, dx, dy, nu):
    inner = w[1:-1, 1:-1]
    along_x = u[1:-1, 1:-1] * (inner - w[1:-1, :-2]) / dx
    along_y = v[1:-1, 1:-1] * (inner - w[:-2, 1:-1]) / dy
    viscous_x = (w[1:-1, 2:] - 2 * inner + w[1:-1, :-2]) / dx**2
    viscous_y = (w[2:, 1:-1] - 2 * inner + w[:-2, 1:-1]) / dy**2
    return inner - dt * (along_x + along_y) + nu * dt * (viscous_x + viscous_y)


def walled(w, lid):
    w = w.at[0, :].set(0)
    w = w.at[:, 0].set(0)
    w = w.at[:, -1].set(0)
    return w.at[-1, :].set(lid)


def cavity_flow(u, v, p, steps, iterations, dt, dx, dy, rho=1.0, nu=0.1):
    push = dt / (2 * rho)

    def step(_, state):
        u, v, p = state
        p = relax_pressure(p, divergence_rate(rho, dt, u, v, dx, dy), dx, dy, iterations)
        across = advance(u, u, v, dt, dx, dy, nu) - push / dx * (p[1:-1, 2:] - p[1:-1, :-2])
        down = advance(v, u, v, dt, dx, dy, nu) - push / dy * (p[2:, 1:-1] - p[:-2, 1:-1])
        return walled(u.at[1:-1, 1:-1].set(across), 1), walled(v.at[1:-1, 1:-1].set(down), 0), p

    return jax.lax.fori_loop(0, steps, step, (u, v, p))


DIFFERENTIAL_EQUATIONS = {"adi": adi, "cavity_flow": cavity_flow}
