"""Grids whose points are computed from their neighbours."""

from __future__ import annotations

import numpy as np
from numpy.testing import assert_allclose

from .registry import EXACT, Kernel


def jacobi_2d(steps, A, B):
    """Each point becomes the mean of its cross, back and forth between two grids."""
    for _ in range(steps):
        B[1:-1, 1:-1] = 0.2 * (A[1:-1, 1:-1] + A[1:-1, :-2] + A[1:-1, 2:] + A[2:, 1:-1] + A[:-2, 1:-1])
        A[1:-1, 1:-1] = 0.2 * (B[1:-1, 1:-1] + B[1:-1, :-2] + B[1:-1, 2:] + B[2:, 1:-1] + B[:-2, 1:-1])


def make_jacobi_2d(random, steps, n):
    return steps, random.uniform(-1, 1, (n, n)), random.uniform(-1, 1, (n, n))


def check_jacobi_2d(arguments, results):
    steps, A, B = arguments
    n = len(A)
    # The same as a matrix on all points; those of the border keep their values.
    step = np.kron(np.eye(n), np.eye(n))
    inner = np.zeros((n, n), bool)
    inner[1:-1, 1:-1] = True
    for point in np.flatnonzero(inner):
        step[point] = 0
        step[point, [point, point - 1, point + 1, point - n, point + n]] = 0.2
    a, b = A.ravel(), B.ravel()
    for _ in range(steps):
        b = np.where(inner.ravel(), step @ a, b)
        a = np.where(inner.ravel(), step @ b, a)
    assert_allclose(results[2].ravel(), a, atol=1e-12)
    assert_allclose(results[3].ravel(), b, atol=1e-12)


def fdtd_2d(ex, ey, hz, fict):
    """Maxwell's equations in the plane: electric fields on edges, the magnetic one in the cells."""
    for t in range(fict.shape[0]):
        ey[0, :] = fict[t]
        ey[1:, :] -= 0.5 * (hz[1:, :] - hz[:-1, :])
        ex[:, 1:] -= 0.5 * (hz[:, 1:] - hz[:, :-1])
        hz[:-1, :-1] -= 0.7 * (ex[:-1, 1:] - ex[:-1, :-1] + ey[1:, :-1] - ey[:-1, :-1])


def make_fdtd_2d(random, steps, nx, ny):
    return *random.standard_normal((3, nx, ny)), random.standard_normal(steps)


def check_fdtd_2d(arguments, results):
    ex, ey, hz, fict = (field.copy() for field in arguments)
    nx, ny = ex.shape
    for value in fict:
        for i in range(nx):
            for j in range(ny):
                ey[i, j] = value if i == 0 else ey[i, j] - 0.5 * (hz[i, j] - hz[i - 1, j])
                ex[i, j] = ex[i, j] if j == 0 else ex[i, j] - 0.5 * (hz[i, j] - hz[i, j - 1])
        for i in range(nx - 1):
            for j in range(ny - 1):
                hz[i, j] -= 0.7 * (ex[i, j + 1] - ex[i, j] + ey[i + 1, j] - ey[i, j])
    for ours, theirs in zip(results[1:4], (ex, ey, hz), strict=True):
        assert_allclose(ours, theirs, atol=1e-12)


def horizontal_diffusion(field, coefficient):
    """One step of the fourth-order diffusion of a weather model, with limited fluxes."""
    laplacian = 4 * field[1:-1, 1:-1, :] - (
        field[2:, 1:-1, :] + field[:-2, 1:-1, :] + field[1:-1, 2:, :] + field[1:-1, :-2, :]
    )

    flux_x = laplacian[1:, 1:-1, :] - laplacian[:-1, 1:-1, :]
    uphill = flux_x * (field[2:-1, 2:-2, :] - field[1:-2, 2:-2, :]) > 0
    flux_x = np.where(uphill, 0, flux_x)

    flux_y = laplacian[1:-1, 1:, :] - laplacian[1:-1, :-1, :]
    uphill = flux_y * (field[2:-2, 2:-1, :] - field[2:-2, 1:-2, :]) > 0
    flux_y = np.where(uphill, 0, flux_y)

    divergence = flux_x[1:, :, :] - flux_x[:-1, :, :] + flux_y[:, 1:, :] - flux_y[:, :-1, :]
    return field[2:-2, 2:-2, :] - coefficient * divergence


def make_horizontal_diffusion(random, nx, ny, nz):
    return random.standard_normal((nx, ny, nz)), random.uniform(0, 0.05, (nx - 4, ny - 4, nz))


def check_horizontal_diffusion(arguments, results):
    field, coefficient = arguments

    def laplacian(i, j):
        return 4 * field[i, j] - field[i + 1, j] - field[i - 1, j] - field[i, j + 1] - field[i, j - 1]

    def flux(i, j, k, m):
        """From point (i, j) to point (k, m)."""
        value = laplacian(k, m) - laplacian(i, j)
        return value * (value * (field[k, m] - field[i, j]) <= 0)

    for i in range(2, field.shape[0] - 2):
        for j in range(2, field.shape[1] - 2):
            net = flux(i, j, i + 1, j) - flux(i - 1, j, i, j) + flux(i, j, i, j + 1) - flux(i, j - 1, i, j)
            assert_allclose(
                results[0][i - 2, j - 2], field[i, j] - coefficient[i - 2, j - 2] * net, atol=1e-12
            )


STENCILS = (
    Kernel(
        "jacobi_2d",
        jacobi_2d,
        make_jacobi_2d,
        {
            "small": {"steps": 5, "n": 9},
            "medium": {"steps": 50, "n": 300},
            "large": {"steps": 200, "n": 700},
        },
        source="PolyBench",
        check=check_jacobi_2d,
        tolerance=EXACT,
    ),
    Kernel(
        "fdtd_2d",
        fdtd_2d,
        make_fdtd_2d,
        {
            "small": {"steps": 5, "nx": 9, "ny": 11},
            "medium": {"steps": 50, "nx": 300, "ny": 350},
            "large": {"steps": 150, "nx": 700, "ny": 800},
        },
        source="PolyBench",
        check=check_fdtd_2d,
        tolerance=EXACT,
    ),
    Kernel(
        "horizontal_diffusion",
        horizontal_diffusion,
        make_horizontal_diffusion,
        {
            "small": {"nx": 9, "ny": 8, "nz": 5},
            "medium": {"nx": 128, "ny": 128, "nz": 60},
            "large": {"nx": 384, "ny": 384, "nz": 80},
        },
        source="NPBench",
        check=check_horizontal_diffusion,
        tolerance=EXACT,
    ),
)
