"""Solvers: linear systems, orthogonalisation, recursions on Toeplitz systems, roots, ranks, diffusion."""

from __future__ import annotations

import numpy as np
import numpy.linalg as la
from numpy.testing import assert_allclose, assert_array_equal

import arrayjit

from .registry import EXACT, Kernel


def conjugate_gradients_with_while(a, b, x, tolerance=1e-8):
    """Solve a x = b for a symmetric positive definite matrix, from a first guess."""
    residual = b - a @ x
    direction = residual.copy()
    size = residual @ residual
    steps = 0
    while np.sqrt(size) > tolerance:
        moved = a @ direction
        step = size / (direction @ moved)
        x = x + step * direction
        residual = residual - step * moved
        before, size = size, residual @ residual
        direction = residual + size / before * direction
        steps += 1
    return x, steps


def conjugate_gradients(a, b, x, tolerance=1e-8):
    """Solve a x = b for a symmetric positive definite matrix, from a first guess."""

    def unsolved(state):
        _, _, _, size, _ = state
        return np.sqrt(size) > tolerance

    def advance(state):
        x, residual, direction, before, steps = state
        moved = a @ direction
        step = before / (direction @ moved)
        x = x + step * direction
        residual = residual - step * moved
        size = residual @ residual
        direction = residual + size / before * direction
        return x, residual, direction, size, steps + 1

    residual = b - a @ x
    start = (x, residual, residual.copy(), residual @ residual, 0)
    x, _, _, _, steps = arrayjit.while_loop(unsolved, advance, start)
    return x, steps


def make_conjugate_gradients(random, n):
    skew = random.standard_normal((n, n)) / np.sqrt(n)
    a = skew @ skew.T + np.diag(random.uniform(1, 3, n))
    return a, random.standard_normal(n), random.standard_normal(n)


def check_conjugate_gradients(arguments, results):
    a, b, _ = arguments
    x, steps = results[:2]
    assert_allclose(a @ x, b, atol=1e-7)
    assert 5 <= steps < 200


def kepler_equation(mean_anomaly, eccentricity, tolerance=1e-12, rounds=12):
    """Newton's iteration at every point of a grid, for as long as that point needs it."""
    m, e = np.meshgrid(mean_anomaly, eccentricity)
    angle = m + e * np.sin(m)
    steps = np.zeros(angle.shape, dtype=np.int32)
    active = np.ones(angle.shape, dtype=bool)
    for _ in range(rounds):
        change = (angle - e * np.sin(angle) - m) / (1 - e * np.cos(angle))
        angle[active] -= change[active]
        steps[active] += 1
        active &= np.abs(change) > tolerance
    return angle, steps


def make_kepler_equation(random, rows, columns):
    return np.sort(random.uniform(0, 2 * np.pi, columns)), np.sort(random.uniform(0, 0.9, rows))


def check_kepler_equation(arguments, results):
    anomaly, eccentricity = arguments
    angle, steps = results[:2]
    assert_allclose(
        angle - eccentricity[:, None] * np.sin(angle), np.tile(anomaly, (len(angle), 1)), atol=1e-11
    )
    assert 2 <= steps.min() < steps.max() <= 12


def householder_qr(a):
    """Reflections clear the columns below the diagonal, one after the other."""
    m, n = a.shape
    r = a.copy()
    q = np.eye(m)
    for k in range(n):
        v = r[k:, k].copy()
        v[0] += np.copysign(la.norm(v), v[0])
        v /= la.norm(v)
        r[k:, k:] -= 2 * np.outer(v, v @ r[k:, k:])
        q[:, k:] -= 2 * np.outer(q[:, k:] @ v, v)
    return q, r


def make_householder_qr(random, m, n):
    return (random.standard_normal((m, n)),)


def check_householder_qr(arguments, results):
    (a,) = arguments
    q, r = results[:2]
    assert_allclose(q @ r, a, atol=1e-10)
    assert_allclose(q.T @ q, np.eye(len(a)), atol=1e-10)
    assert_allclose(np.tril(r, -1), 0, atol=1e-10)


def gaussian_elimination(a, b):
    """Solve a x = b; the row with the largest pivot is swapped up."""
    n = len(b)
    for k in range(n - 1):
        pivot = k + np.argmax(np.abs(a[k:, k]))
        a[[k, pivot]] = a[[pivot, k]]
        b[[k, pivot]] = b[[pivot, k]]
        factors = a[k + 1 :, k] / a[k, k]
        a[k + 1 :, k:] -= factors[:, None] * a[k, k:]
        b[k + 1 :] -= factors * b[k]
    x = np.zeros(n)
    for k in range(n - 1, -1, -1):
        x[k] = (b[k] - a[k, k + 1 :] @ x[k + 1 :]) / a[k, k]
    return x


def make_gaussian_elimination(random, n):
    return random.standard_normal((n, n)), random.standard_normal(n)


def check_gaussian_elimination(arguments, results):
    a, b = arguments
    assert_allclose(a @ results[0], b, atol=1e-8)
    assert np.abs(np.triu(results[1])).min(axis=1).max() > 0


def levinson_durbin(r, order):
    """The coefficients that predict a signal from its autocorrelation, by order-recursion."""
    a = np.zeros(order + 1)
    a[0] = 1.0
    error = r[0]
    reflections = np.zeros(order)
    for k in range(1, order + 1):
        reflection = -(a[:k] @ r[k:0:-1]) / error
        a[1 : k + 1] += reflection * a[:k][::-1]
        error *= 1 - reflection**2
        reflections[k - 1] = reflection
    return a, error, reflections


def make_levinson_durbin(random, order):
    signal = random.standard_normal(8 * order + 50)
    for t in range(2, len(signal)):
        signal[t] += 0.6 * signal[t - 1] - 0.3 * signal[t - 2]
    full = np.correlate(signal, signal, "full")[len(signal) - 1 :]
    return full[: order + 1] / len(signal), order


def check_levinson_durbin(arguments, results):
    r, order = arguments
    a, error, reflections = results[:3]
    toeplitz = r[np.abs(np.subtract.outer(np.arange(order + 1), np.arange(order + 1)))]
    assert_allclose(toeplitz @ a, np.r_[error, np.zeros(order)], atol=1e-10)
    assert np.abs(reflections).max() < 1


def renewal_equation(weights, births):
    """Births of a population: each time's own, and those whose parents were born k times ago."""
    total = np.zeros_like(births)
    total[0] = births[0]
    for t in range(1, len(births)):
        total[t] = births[t] + weights[1 : t + 1] @ total[:t][::-1]
    return total


def make_renewal_equation(random, times):
    weights = random.uniform(0, 1, times) * 0.97 ** np.arange(times)
    return 0.9 * weights / weights.sum(), random.uniform(0, 2, times)


def check_renewal_equation(arguments, results):
    weights, births = arguments
    total = results[0]
    lone = np.r_[0.0, weights[1:]]
    assert_allclose(total, births + np.convolve(lone, total)[: len(births)])


def solve_tridiagonal(lower, diagonal, upper, right):
    """Elimination forwards, substitution backwards."""
    n = len(right)
    c, d = np.empty(n), np.empty(n)
    c[0] = upper[0] / diagonal[0]
    d[0] = right[0] / diagonal[0]
    for i in range(1, n):
        pivot = diagonal[i] - lower[i] * c[i - 1]
        c[i] = upper[i] / pivot
        d[i] = (right[i] - lower[i] * d[i - 1]) / pivot
    x = np.empty(n)
    x[-1] = d[-1]
    for i in range(n - 2, -1, -1):
        x[i] = d[i] - c[i] * x[i + 1]
    return x


def crank_nicolson(u, conductivity, dt, dx, steps):
    """Heat in a rod of changing material whose ends are held, implicit in time."""
    ratio = conductivity * dt / (2 * dx**2)
    lower, upper = -ratio, -ratio
    lower[0] = lower[-1] = upper[0] = upper[-1] = 0.0
    diagonal = 1 + 2 * ratio
    diagonal[0] = diagonal[-1] = 1.0
    for _ in range(steps):
        right = u.copy()
        right[1:-1] += ratio[1:-1] * (u[2:] - 2 * u[1:-1] + u[:-2])
        u[:] = solve_tridiagonal(lower, diagonal, upper, right)


def make_crank_nicolson(random, cells, steps):
    return random.uniform(0, 4, cells), random.uniform(0.5, 1.5, cells), 0.4, 1.0, steps


def check_crank_nicolson(arguments, results):
    before, after = arguments[0], results[1]
    assert after[0] == before[0]
    assert after[-1] == before[-1]
    assert before.min() <= after.min() < after.max() <= before.max()
    assert np.abs(np.diff(after, 2)).sum() < np.abs(np.diff(before, 2)).sum()


def red_black_gauss_seidel(u, f, h, sweeps):
    """Laplace's operator applied to u is f; the points of one colour, then those of the other."""
    n = len(u)
    for _ in range(sweeps):
        for colour in (0, 1):
            for i in range(1, n - 1):
                start = 1 + (i + colour) % 2
                around = u[i - 1, start:-1:2] + u[i + 1, start:-1:2]
                beside = u[i, start - 1 : -2 : 2] + u[i, start + 1 :: 2]
                u[i, start:-1:2] = 0.25 * (around + beside - h * h * f[i, start:-1:2])


def make_red_black_gauss_seidel(random, rows, columns, sweeps):
    return *random.standard_normal((2, rows, columns)), 1 / rows, sweeps


def residual_of(u, f, h):
    inside = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4 * u[1:-1, 1:-1]
    return np.abs(inside / h**2 - f[1:-1, 1:-1])


def check_red_black_gauss_seidel(arguments, results):
    u, f, h, _ = arguments
    after = results[1]
    assert_array_equal(after[:, 0], u[:, 0])
    assert residual_of(after, f, h).sum() < 0.3 * residual_of(u, f, h).sum()
    latest = (np.add.outer(np.arange(len(u)), np.arange(len(u[0]))) % 2)[1:-1, 1:-1] == 0
    assert_allclose(residual_of(after, f, h)[latest], 0, atol=1e-12 / h**2)


def poisson(source, h, iterations=50):
    """Jacobi's iteration for a potential: held at the sides, free at the top and the bottom."""
    p = np.zeros_like(source)
    for _ in range(iterations):
        old = p.copy()
        p[1:-1, 1:-1] = (
            old[1:-1, 2:] + old[1:-1, :-2] + old[2:, 1:-1] + old[:-2, 1:-1] - h**2 * source[1:-1, 1:-1]
        ) / 4
        p[0, :] = p[1, :]
        p[-1, :] = p[-2, :]
        p[:, 0] = 0.0
        p[:, -1] = 1.0
    return p, np.abs(p - old).max()


def make_poisson(random, n):
    return random.normal(0, 4, (n, n)), 1 / n


def check_poisson(arguments, results):
    source, h = arguments
    p, change = results[:2]
    assert_array_equal(p[0], p[1])
    assert_array_equal(p[1:-1, -1], 1)
    flat = np.zeros_like(p)
    flat[:, -1] = 1
    assert 0 < change < 0.1
    assert residual_of(p, source, h).sum() < residual_of(flat, source, h).sum()


def lagrange_interpolation(x, y, at):
    """The polynomial through points, at other points."""
    value = np.zeros_like(at)
    for i in range(len(x)):
        basis = np.ones_like(at)
        for j in range(len(x)):
            if i != j:
                basis *= (at - x[j]) / (x[i] - x[j])
        value += y[i] * basis
    return value


def make_lagrange_interpolation(random, points, at):
    return np.linspace(-1, 1, points), random.standard_normal(points), random.uniform(-1, 1, at)


def check_lagrange_interpolation(arguments, results):
    x, y, at = arguments
    assert_allclose(results[0], np.polyval(np.polyfit(x, y, len(x) - 1), at), atol=1e-6)


def page_rank_with_while(links, damping=0.85, tolerance=1e-10):
    """The share of time that a random reader spends on each page; pages without links lead anywhere."""
    n = len(links)
    outgoing = links.sum(axis=0)
    step = np.where(outgoing > 0, links / np.maximum(outgoing, 1), 1 / n)
    rank = np.full(n, 1 / n)
    change, rounds = 1.0, 0
    while change > tolerance:
        before = rank
        rank = damping * (step @ rank) + (1 - damping) / n
        change = np.abs(rank - before).sum()
        rounds += 1
    return rank, rounds


def page_rank(links, damping=0.85, tolerance=1e-10):
    """The share of time that a random reader spends on each page; pages without links lead anywhere."""
    n = len(links)
    outgoing = links.sum(axis=0)
    step = np.where(outgoing > 0, links / np.maximum(outgoing, 1), 1 / n)

    def moving(state):
        _, change, _ = state
        return change > tolerance

    def advance(state):
        before, _, rounds = state
        rank = damping * (step @ before) + (1 - damping) / n
        return rank, np.abs(rank - before).sum(), rounds + 1

    rank, _, rounds = arrayjit.while_loop(moving, advance, (np.full(n, 1 / n), 1.0, 0))
    return rank, rounds


def make_page_rank(random, pages):
    links = (random.uniform(0, 1, (pages, pages)) < 5 / pages).astype(float)
    links[:, 3] = 0
    return (links,)


def check_page_rank(arguments, results):
    rank, rounds = results[:2]
    assert_allclose(rank.sum(), 1)
    assert rank.min() >= 0.15 / len(rank)
    assert 10 < rounds < 200
    assert_allclose(page_rank_with_while(*arguments)[0], rank, rtol=1e-9)


SOLVERS = (
    Kernel(
        "conjugate_gradients",
        conjugate_gradients,
        make_conjugate_gradients,
        {"small": {"n": 12}, "medium": {"n": 2000}, "large": {"n": 6000}},
        "own",
        check_conjugate_gradients,
        tolerance=1e-10,
        changed="its `while` is on a value computed from arrays: arrayjit.while_loop",
        plain=conjugate_gradients_with_while,
    ),
    Kernel(
        "kepler_equation",
        kepler_equation,
        make_kepler_equation,
        {
            "small": {"rows": 7, "columns": 9},
            "medium": {"rows": 250, "columns": 300},
            "large": {"rows": 1000, "columns": 1200},
        },
        "own",
        check_kepler_equation,
    ),
    Kernel(
        "householder_qr",
        householder_qr,
        make_householder_qr,
        {"small": {"m": 11, "n": 7}, "medium": {"m": 220, "n": 150}, "large": {"m": 600, "n": 400}},
        "own",
        check_householder_qr,
    ),
    Kernel(
        "gaussian_elimination",
        gaussian_elimination,
        make_gaussian_elimination,
        {"small": {"n": 9}, "medium": {"n": 250}, "large": {"n": 900}},
        "own",
        check_gaussian_elimination,
        tolerance=1e-10,
    ),
    Kernel(
        "levinson_durbin",
        levinson_durbin,
        make_levinson_durbin,
        {"small": {"order": 12}, "medium": {"order": 2000}, "large": {"order": 20000}},
        "own",
        check_levinson_durbin,
    ),
    Kernel(
        "renewal_equation",
        renewal_equation,
        make_renewal_equation,
        {"small": {"times": 25}, "medium": {"times": 5000}, "large": {"times": 40000}},
        "own",
        check_renewal_equation,
    ),
    Kernel(
        "crank_nicolson",
        crank_nicolson,
        make_crank_nicolson,
        {
            "small": {"cells": 20, "steps": 5},
            "medium": {"cells": 500, "steps": 50},
            "large": {"cells": 5000, "steps": 100},
        },
        "own",
        check_crank_nicolson,
        tolerance=EXACT,
    ),
    Kernel(
        "red_black_gauss_seidel",
        red_black_gauss_seidel,
        make_red_black_gauss_seidel,
        {
            "small": {"rows": 9, "columns": 11, "sweeps": 4},
            "medium": {"rows": 150, "columns": 171, "sweeps": 20},
            "large": {"rows": 700, "columns": 801, "sweeps": 60},
        },
        "own",
        check_red_black_gauss_seidel,
        tolerance=EXACT,
    ),
    Kernel(
        "poisson",
        poisson,
        make_poisson,
        {"small": {"n": 13}, "medium": {"n": 250}, "large": {"n": 1200}},
        "own",
        check_poisson,
        tolerance=EXACT,
    ),
    Kernel(
        "lagrange_interpolation",
        lagrange_interpolation,
        make_lagrange_interpolation,
        {
            "small": {"points": 6, "at": 15},
            "medium": {"points": 12, "at": 40000},
            "large": {"points": 15, "at": 1000000},
        },
        "own",
        check_lagrange_interpolation,
        tolerance=EXACT,
    ),
    Kernel(
        "page_rank",
        page_rank,
        make_page_rank,
        {"small": {"pages": 15}, "medium": {"pages": 1500}, "large": {"pages": 5000}},
        "own",
        check_page_rank,
        changed="its `while` is on a value computed from arrays: arrayjit.while_loop",
        plain=page_rank_with_while,
    ),
)
