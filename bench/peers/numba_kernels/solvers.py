"""Solvers, for Numba: products with matrices are left to BLAS, the rest are loops."""

from __future__ import annotations

import math

import numpy as np
from numba import njit, prange

from .flags import SUMS

__all__ = ["SOLVERS"]


@njit
def conjugate_gradients(a, b, x):
    x = x.copy()
    residual = b - a @ x
    direction = residual.copy()
    size = residual @ residual
    steps = 0
    while math.sqrt(size) > 1e-8:
        moved = a @ direction
        step = size / (direction @ moved)
        for i in range(len(x)):
            x[i] += step * direction[i]
            residual[i] -= step * moved[i]
        before, size = size, residual @ residual
        for i in range(len(x)):
            direction[i] = residual[i] + size / before * direction[i]
        steps += 1
    return x, steps


@njit(parallel=True)
def kepler_equation(mean_anomaly, eccentricity):
    rows, columns = len(eccentricity), len(mean_anomaly)
    angles = np.empty((rows, columns))
    steps = np.zeros((rows, columns), dtype=np.int32)
    for i in prange(rows):
        e = eccentricity[i]
        for j in range(columns):
            m = mean_anomaly[j]
            angle = m + e * math.sin(m)
            for _ in range(12):
                change = (angle - e * math.sin(angle) - m) / (1 - e * math.cos(angle))
                angle -= change
                steps[i, j] += 1
                if abs(change) <= 1e-12:
                    break
            angles[i, j] = angle
    return angles, steps


@njit(fastmath=SUMS)
def householder_qr(a):
    m, n = a.shape
    r, q = a.copy(), np.eye(m)
    v, along = np.empty(m), np.empty(n)
    for k in range(n):
        size = 0.0
        for i in range(k, m):
            v[i] = r[i, k]
            size += v[i] * v[i]
        before = v[k]
        v[k] += math.copysign(math.sqrt(size), before)
        size += v[k] * v[k] - before * before
        for i in range(k, m):
            v[i] /= math.sqrt(size)
        along[k:] = 0.0
        for i in range(k, m):
            for j in range(k, n):
                along[j] += v[i] * r[i, j]
        for i in range(k, m):
            for j in range(k, n):
                r[i, j] -= 2 * v[i] * along[j]
        for i in range(m):
            total = 0.0
            for j in range(k, m):
                total += q[i, j] * v[j]
            for j in range(k, m):
                q[i, j] -= 2 * total * v[j]
    return q, r


@njit
def gaussian_elimination(a, b):
    n = len(b)
    for k in range(n - 1):
        pivot = k
        for i in range(k + 1, n):
            if abs(a[i, k]) > abs(a[pivot, k]):
                pivot = i
        for j in range(n):
            a[k, j], a[pivot, j] = a[pivot, j], a[k, j]
        b[k], b[pivot] = b[pivot], b[k]
        for i in range(k + 1, n):
            factor = a[i, k] / a[k, k]
            for j in range(k, n):
                a[i, j] -= factor * a[k, j]
            b[i] -= factor * b[k]
    x = np.zeros(n)
    for k in range(n - 1, -1, -1):
        total = b[k]
        for j in range(k + 1, n):
            total -= a[k, j] * x[j]
        x[k] = total / a[k, k]
    return x


@njit(fastmath=SUMS)
def levinson_durbin(r, order):
    a = np.zeros(order + 1)
    a[0] = 1.0
    error = r[0]
    reflections = np.zeros(order)
    old = np.empty(order + 1)
    for k in range(1, order + 1):
        total = 0.0
        for i in range(k):
            old[i] = a[i]
            total += a[i] * r[k - i]
        reflection = -total / error
        for i in range(1, k + 1):
            a[i] += reflection * old[k - i]
        error *= 1 - reflection**2
        reflections[k - 1] = reflection
    return a, error, reflections


@njit(fastmath=SUMS)
def renewal_equation(weights, births):
    total = np.zeros_like(births)
    total[0] = births[0]
    for t in range(1, len(births)):
        born = 0.0
        for k in range(1, t + 1):
            born += weights[k] * total[t - k]
        total[t] = births[t] + born
    return total


@njit
def crank_nicolson(u, conductivity, dt, dx, steps):
    n = len(u)
    ratio = conductivity * dt / (2 * dx**2)
    lower, upper = -ratio, -ratio
    lower[0] = lower[-1] = upper[0] = upper[-1] = 0.0
    diagonal = 1 + 2 * ratio
    diagonal[0] = diagonal[-1] = 1.0
    right, c, d = np.empty(n), np.empty(n), np.empty(n)
    for _ in range(steps):
        right[0], right[n - 1] = u[0], u[n - 1]
        for i in range(1, n - 1):
            right[i] = u[i] + ratio[i] * (u[i + 1] - 2 * u[i] + u[i - 1])
        c[0] = upper[0] / diagonal[0]
        d[0] = right[0] / diagonal[0]
        for i in range(1, n):
            pivot = diagonal[i] - lower[i] * c[i - 1]
            c[i] = upper[i] / pivot
            d[i] = (right[i] - lower[i] * d[i - 1]) / pivot
        u[n - 1] = d[n - 1]
        for i in range(n - 2, -1, -1):
            u[i] = d[i] - c[i] * u[i + 1]


@njit(parallel=True)
def red_black_gauss_seidel(u, f, h, sweeps):
    n, m = u.shape
    for _ in range(sweeps):
        for colour in range(2):
            for i in prange(1, n - 1):
                for j in range(1 + (i + colour) % 2, m - 1, 2):
                    around = u[i - 1, j] + u[i + 1, j]
                    beside = u[i, j - 1] + u[i, j + 1]
                    u[i, j] = 0.25 * (around + beside - h * h * f[i, j])


@njit(parallel=True)
def poisson(source, h):
    n, m = source.shape
    p, old = np.zeros_like(source), np.zeros_like(source)
    for _ in range(50):
        p, old = old, p
        for i in prange(1, n - 1):
            for j in range(1, m - 1):
                cross = old[i, j + 1] + old[i, j - 1] + old[i + 1, j] + old[i - 1, j]
                p[i, j] = (cross - h**2 * source[i, j]) / 4
        for j in range(m):
            p[0, j] = p[1, j]
            p[n - 1, j] = p[n - 2, j]
        for i in range(n):
            p[i, 0] = 0.0
            p[i, m - 1] = 1.0
    change = 0.0
    for i in range(n):
        for j in range(m):
            change = max(change, abs(p[i, j] - old[i, j]))
    return p, change


@njit(parallel=True)
def lagrange_interpolation(x, y, at):
    value = np.zeros_like(at)
    for k in prange(len(at)):
        for i in range(len(x)):
            basis = 1.0
            for j in range(len(x)):
                if i != j:
                    basis *= (at[k] - x[j]) / (x[i] - x[j])
            value[k] += y[i] * basis
    return value


@njit
def page_rank(links):
    n = len(links)
    outgoing = links.sum(axis=0)
    step = np.empty_like(links)
    for i in range(n):
        for j in range(n):
            step[i, j] = links[i, j] / outgoing[j] if outgoing[j] > 0 else 1 / n
    rank = np.full(n, 1 / n)
    change, rounds = 1.0, 0
    while change > 1e-10:
        before = rank
        rank = 0.85 * (step @ rank) + (1 - 0.85) / n
        change = np.abs(rank - before).sum()
        rounds += 1
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
