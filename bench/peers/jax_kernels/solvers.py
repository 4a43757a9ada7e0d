"""Solvers, for JAX. What runs over ever longer slices in NumPy runs over whole arrays with masks here."""

from __future__ import annotations

import jax
import jax.numpy as jnp

__all__ = ["SOLVERS"]


def conjugate_gradients(a, b, x):
    def unsolved(state):
        return jnp.sqrt(state[3]) > 1e-8

    def advance(state):
        x, residual, direction, before, steps = state
        moved = a @ direction
        step = before / (direction @ moved)
        residual = residual - step * moved
        size = residual @ residual
        return x + step * direction, residual, residual + size / before * direction, size, steps + 1

    residual = b - a @ x
    x, _, _, _, steps = jax.lax.while_loop(unsolved, advance, (x, residual, residual, residual @ residual, 0))
    return x, steps


def kepler_equation(mean_anomaly, eccentricity):
    m, e = jnp.meshgrid(mean_anomaly, eccentricity)

    def step(_, state):
        angle, steps, active = state
        change = (angle - e * jnp.sin(angle) - m) / (1 - e * jnp.cos(angle))
        steps = steps + active
        return jnp.where(active, angle - change, angle), steps, active & (jnp.abs(change) > 1e-12)

    start = m + e * jnp.sin(m), jnp.zeros(m.shape, jnp.int32), jnp.ones(m.shape, bool)
    angle, steps, _ = jax.lax.fori_loop(0, 12, step, start)
    return angle, steps


def householder_qr(a):
    m, n = a.shape
    rows, columns = jnp.arange(m), jnp.arange(n)

    def reflect(k, state):
        q, r = state
        v = jnp.where(rows >= k, r[:, k], 0)
        v = v.at[k].add(jnp.copysign(jnp.linalg.norm(v), v[k]))
        v = v / jnp.linalg.norm(v)
        along = jnp.where(columns >= k, v @ r, 0)
        return q - 2 * jnp.outer(q @ v, v), r - 2 * jnp.outer(v, along)

    return jax.lax.fori_loop(0, n, reflect, (jnp.eye(m), a))


def gaussian_elimination(a, b):
    n = len(b)
    rows = jnp.arange(n)

    def eliminate(k, state):
        a, b = state
        pivot = jnp.argmax(jnp.where(rows >= k, jnp.abs(a[:, k]), -1))
        pair = jnp.array([k, pivot])
        a = a.at[pair].set(a[pair[::-1]])
        b = b.at[pair].set(b[pair[::-1]])
        factors = jnp.where(rows > k, a[:, k] / a[k, k], 0)
        changed = factors[:, None] * jnp.where(rows >= k, a[k], 0)
        return a - changed, b - factors * b[k]

    a, b = jax.lax.fori_loop(0, n - 1, eliminate, (a, b))
    return jax.scipy.linalg.solve_triangular(a, b), a, b


def from_the_end(vector):
    """A function of k: the vector of vector[k - i] for every i up to k, then zeros."""
    n = len(vector)
    padded = jnp.concatenate([vector[::-1], jnp.zeros_like(vector)])
    return lambda k: jax.lax.dynamic_slice(padded, (n - 1 - k,), (n,))


def levinson_durbin(r, order):
    place, backwards = jnp.arange(order + 1), from_the_end(r)

    def extend(k, state):
        a, error, reflections = state
        reflection = -(a @ jnp.where(place < k, backwards(k), 0)) / error
        a = a + reflection * jnp.where(place > 0, from_the_end(a)(k), 0)
        return a, error * (1 - reflection**2), reflections.at[k - 1].set(reflection)

    start = jnp.zeros(order + 1).at[0].set(1.0), r[0], jnp.zeros(order)
    return jax.lax.fori_loop(1, order + 1, extend, start)


def renewal_equation(weights, births):
    backwards = from_the_end(weights)

    def step(t, total):
        return total.at[t].set(births[t] + backwards(t) @ total)

    return jax.lax.fori_loop(1, len(births), step, jnp.zeros_like(births).at[0].set(births[0]))


def crank_nicolson(u, conductivity, dt, dx, steps):
    ratio = conductivity * dt / (2 * dx**2)
    ends = jnp.array([0, -1])
    lower = upper = (-ratio).at[ends].set(0)
    diagonal = (1 + 2 * ratio).at[ends].set(1)

    def step(_, u):
        right = u.at[1:-1].add(ratio[1:-1] * (u[2:] - 2 * u[1:-1] + u[:-2]))
        return jax.lax.linalg.tridiagonal_solve(lower, diagonal, upper, right[:, None])[:, 0]

    return jax.lax.fori_loop(0, steps, step, u)


def red_black_gauss_seidel(u, f, h, sweeps):
    n, m = u.shape
    odd = (jnp.arange(1, n - 1)[:, None] + jnp.arange(1, m - 1)) % 2 == 1

    def relax(u, chosen):
        around = u[:-2, 1:-1] + u[2:, 1:-1] + (u[1:-1, :-2] + u[1:-1, 2:])
        inner = 0.25 * (around - h * h * f[1:-1, 1:-1])
        return u.at[1:-1, 1:-1].set(jnp.where(chosen, inner, u[1:-1, 1:-1]))

    return jax.lax.fori_loop(0, sweeps, lambda _, u: relax(relax(u, odd), ~odd), u)


def poisson(source, h):
    def step(_, state):
        old, _ = state
        cross = old[1:-1, 2:] + old[1:-1, :-2] + old[2:, 1:-1] + old[:-2, 1:-1]
        p = old.at[1:-1, 1:-1].set((cross - h**2 * source[1:-1, 1:-1]) / 4)
        p = p.at[0, :].set(p[1, :])
        p = p.at[-1, :].set(p[-2, :])
        p = p.at[:, 0].set(0.0)
        return p.at[:, -1].set(1.0), old

    p, old = jax.lax.fori_loop(0, 50, step, (jnp.zeros_like(source), jnp.zeros_like(source)))
    return p, jnp.abs(p - old).max()


def lagrange_interpolation(x, y, at):
    value = jnp.zeros_like(at)
    for i in range(len(x)):
        basis = jnp.ones_like(at)
        for j in range(len(x)):
            if i != j:
                basis *= (at - x[j]) / (x[i] - x[j])
        value += y[i] * basis
    return value


def page_rank(links):
    n = len(links)
    outgoing = links.sum(axis=0)
    step = jnp.where(outgoing > 0, links / jnp.maximum(outgoing, 1), 1 / n)

    def moving(state):
        return state[1] > 1e-10

    def advance(state):
        before, _, rounds = state
        rank = 0.85 * (step @ before) + (1 - 0.85) / n
        return rank, jnp.abs(rank - before).sum(), rounds + 1

    rank, _, rounds = jax.lax.while_loop(moving, advance, (jnp.full(n, 1 / n), 1.0, 0))
    return rank, rounds


SOLVERS = {
    "conjugate_gradients": conjugate_gradients,
    "kepler_equation": kepler_equation,
    "householder_qr": householder_qr,
    "gaussian_elimination": gaussian_elimination,
    "levinson_durbin": levinson_durbin,
    "renewal_equation": renewal_equation,
    "crank_nicolson": crank_nicolson,
    "red_black_gauss_seidel": red_black_gauss_seidel,
    "poisson": poisson,
    "lagrange_interpolation": lagrange_interpolation,
    "page_rank": page_rank,
}
