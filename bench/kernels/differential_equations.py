"""Heat and flow, stepped through time."""

from __future__ import annotations

import numpy as np
from numpy.testing import assert_allclose

from .registry import Kernel


def solve_columns(r, rhs):
    """Solves (1 + 2r) x[j] - r (x[j-1] + x[j+1]) = rhs[j] between the first and the last row, which stay."""
    n = rhs.shape[0]
    slope = np.zeros(n)
    x = rhs.copy()
    for j in range(1, n - 1):
        pivot = 1 + 2 * r - r * slope[j - 1]
        slope[j] = r / pivot
        x[j] = (rhs[j] + r * x[j - 1]) / pivot
    for j in range(n - 2, 0, -1):
        x[j] += slope[j] * x[j + 1]
    return x


def adi(u, steps, r=0.3):
    """Heat in a plate, implicit in one direction and explicit in the other, by turns."""
    for _ in range(steps):
        half = u.copy()
        half[1:-1, 1:-1] += r * (u[1:-1, :-2] - 2 * u[1:-1, 1:-1] + u[1:-1, 2:])
        half[:, 1:-1] = solve_columns(r, half[:, 1:-1])
        u[1:-1, 1:-1] = half[1:-1, 1:-1] + r * (half[:-2, 1:-1] - 2 * half[1:-1, 1:-1] + half[2:, 1:-1])
        u.T[:, 1:-1] = solve_columns(r, u.T[:, 1:-1])


def make_adi(random, n, steps):
    return random.uniform(-1, 1, (n, n + 3)), steps


def check_adi(arguments, results):
    u, steps = arguments
    heat = u.copy()
    down, across = (second_difference(n) for n in heat.shape)
    implicit_down = np.linalg.inv(np.eye(len(down)) - 0.3 * down)
    implicit_across = np.linalg.inv(np.eye(len(across)) - 0.3 * across)
    for _ in range(steps):
        half = heat.copy()
        half[1:-1] += 0.3 * (heat @ across.T)[1:-1]
        half[:, 1:-1] = (implicit_down @ half)[:, 1:-1]
        heat = half.copy()
        heat[:, 1:-1] += 0.3 * (down @ half)[:, 1:-1]
        heat[1:-1] = (heat @ implicit_across.T)[1:-1]
    assert_allclose(results[1], heat, atol=1e-10)


def second_difference(n):
    """Of n points, as a matrix; none at the ends."""
    matrix = np.diag(np.ones(n - 1), 1) - 2 * np.eye(n) + np.diag(np.ones(n - 1), -1)
    matrix[[0, -1]] = 0
    return matrix


def divergence_rate(rho, dt, u, v, dx, dy):
    """The right side of the equation of the pressure."""
    du_dx = (u[1:-1, 2:] - u[1:-1, :-2]) / (2 * dx)
    dv_dy = (v[2:, 1:-1] - v[:-2, 1:-1]) / (2 * dy)
    du_dy = (u[2:, 1:-1] - u[:-2, 1:-1]) / (2 * dy)
    dv_dx = (v[1:-1, 2:] - v[1:-1, :-2]) / (2 * dx)
    b = np.zeros_like(u)
    b[1:-1, 1:-1] = rho * ((du_dx + dv_dy) / dt - du_dx**2 - 2 * du_dy * dv_dx - dv_dy**2)
    return b


def relax_pressure(p, b, dx, dy, iterations):
    """Iterates on Poisson's equation; the walls have no gradient, the open top has no pressure."""
    for _ in range(iterations):
        pn = p.copy()
        p[1:-1, 1:-1] = (
            (pn[1:-1, 2:] + pn[1:-1, :-2]) * dy**2
            + (pn[2:, 1:-1] + pn[:-2, 1:-1]) * dx**2
            - b[1:-1, 1:-1] * dx**2 * dy**2
        ) / (2 * (dx**2 + dy**2))
        p[:, -1] = p[:, -2]
        p[0, :] = p[1, :]
        p[:, 0] = p[:, 1]
        p[-1, :] = 0


def advance(w, u, v, dt, dx, dy, nu):
    """What convection and viscosity make of the component `w` of the velocity (u, v) in a step."""
    inner = w[1:-1, 1:-1]
    along_x = u[1:-1, 1:-1] * (inner - w[1:-1, :-2]) / dx
    along_y = v[1:-1, 1:-1] * (inner - w[:-2, 1:-1]) / dy
    viscous_x = (w[1:-1, 2:] - 2 * inner + w[1:-1, :-2]) / dx**2
    viscous_y = (w[2:, 1:-1] - 2 * inner + w[:-2, 1:-1]) / dy**2
    return inner - dt * (along_x + along_y) + nu * dt * (viscous_x + viscous_y)


def cavity_flow(u, v, p, steps, iterations, dt, dx, dy, rho=1.0, nu=0.1):
    """A fluid in a box, dragged along by its moving lid."""
    for _ in range(steps):
        un = u.copy()
        vn = v.copy()
        b = divergence_rate(rho, dt, u, v, dx, dy)
        relax_pressure(p, b, dx, dy, iterations)
        push = dt / (2 * rho)
        u[1:-1, 1:-1] = advance(un, un, vn, dt, dx, dy, nu) - push / dx * (p[1:-1, 2:] - p[1:-1, :-2])
        v[1:-1, 1:-1] = advance(vn, un, vn, dt, dx, dy, nu) - push / dy * (p[2:, 1:-1] - p[:-2, 1:-1])
        for wall in (u, v):
            wall[0, :] = 0
            wall[:, 0] = 0
            wall[:, -1] = 0
            wall[-1, :] = 0
        u[-1, :] = 1


def make_cavity_flow(random, n, steps, iterations):
    dx, dy = 2 / (n - 1), 2 / (n + 1)
    u, v, p = 0.01 * random.standard_normal((3, n + 2, n))
    return u, v, p, steps, iterations, 0.1 * dx * dy, dx, dy


def check_cavity_flow(_, results):
    _, u, v, p = results[:4]
    assert np.all(u[-1] == 1)
    assert not u[0].any()
    assert not u[1:-1, [0, -1]].any()
    assert not v[[0, -1]].any()
    assert not v[:, [0, -1]].any()
    assert np.array_equal(p[:-1, 0], p[:-1, 1])
    # The lid drags the fluid beneath it along, and what it pushes into the wall comes back below.
    assert u[-2, 1:-1].mean() > 0.01
    assert abs(u[-2, 1:-1]).max() < 1
    assert p[-2, -2] > p[-2, 1]


DIFFERENTIAL_EQUATIONS = (
    Kernel(
        "adi",
        adi,
        make_adi,
        {
            "small": {"n": 8, "steps": 2},
            "medium": {"n": 300, "steps": 10},
            "large": {"n": 1000, "steps": 30},
        },
        source="PolyBench",
        check=check_adi,
    ),
    Kernel(
        "cavity_flow",
        cavity_flow,
        make_cavity_flow,
        {
            "small": {"n": 9, "steps": 6, "iterations": 5},
            "medium": {"n": 81, "steps": 20, "iterations": 50},
            "large": {"n": 161, "steps": 100, "iterations": 50},
        },
        source="NPBench",
        check=check_cavity_flow,
    ),
)
