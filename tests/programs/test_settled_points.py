"""Points that are moved on until they escape: vectors of which all have are left, and nothing changes."""

from __future__ import annotations

import numpy as np
import pytest

import arrayjit


def counted(x, y, steps, kind=np.int64):
    zr, zi, count = np.zeros(x.shape), np.zeros(x.shape), np.zeros(x.shape, dtype=kind)
    for _ in range(steps):
        inside = zr * zr + zi * zi <= 4.0
        zr, zi = np.where(inside, zr * zr - zi * zi + x, zr), np.where(inside, 2 * zr * zi + y, zi)
        count += inside
    return count, zr, zi


def counted_in_floats(x, y, steps):
    return counted(x, y, steps, np.float64)


def active(x, y, steps):
    c = x + 1j * y
    z, count, alive = np.zeros_like(c), np.zeros(c.shape, dtype=np.int32), np.ones(c.shape, dtype=bool)
    for _ in range(steps):
        z = np.where(alive, z * z + c, z)
        alive = alive & (np.abs(z) <= 2.0)
        count += alive
    return count, z


def done(x, y, steps):
    zr, zi = np.zeros(x.shape), np.zeros(x.shape)
    count, gone = np.full(x.shape, steps), np.zeros(x.shape, dtype=bool)
    for k in range(steps):
        moved = zr * zr - zi * zi + x
        zi = np.where(gone, zi, 2 * zr * zi + y)
        zr = np.where(gone, zr, moved)
        escapes = (zr * zr + zi * zi > 4.0) & ~gone
        count = np.where(escapes, k, count)
        gone |= escapes
    return count, zr, zi


def masked(x, y, steps):
    c = x + 1j * y
    z, count = np.zeros_like(c), np.zeros(c.shape, dtype=np.int64)
    for _ in range(steps):
        near = np.abs(z) < 2
        z[near] = z[near] * z[near] + c[near]
        count[near] += 1
    return count, z


def put_back(x, y, steps):
    c = x + 1j * y
    z, count = c.copy(), steps + np.zeros(c.shape, dtype=np.int64)
    for k in range(steps):
        z = z * z + c
        far = z.real * z.real + z.imag * z.imag > 4
        count[far & (count == steps)] = k
        z[far] = 2
    return count, z


def counted_again(x, y, steps):
    c = x + 1j * y
    z, count = np.zeros_like(c), np.zeros(c.shape, dtype=np.int64)
    for _ in range(steps):
        z = np.where(np.abs(z) <= 2, z * z + c, z)
        count += np.abs(z) <= 2
    return count, z


PROGRAMS = [counted, counted_in_floats, active, done, masked, put_back, counted_again]


def grid(rows, columns):
    y, x = np.meshgrid(np.linspace(-1.5, 1.5, rows), np.linspace(-2, 1, columns), indexing="ij")
    x[0, 0], y[1, 1], x[2, 2] = np.nan, np.inf, -0.0
    return x, y


@pytest.mark.parametrize("steps", [0, 1, 3, 50])
@pytest.mark.parametrize("function", PROGRAMS)
def test_points_that_have_escaped_stay_as_they_are(function, steps):
    expected = arrayjit.jit(function, target="interp")(*grid(9, 23), steps)
    for one, other in zip(arrayjit.jit(function)(*grid(9, 23), steps), expected, strict=True):
        np.testing.assert_array_equal(one, other, strict=True)


@pytest.mark.parametrize("function", PROGRAMS)
def test_steps_end_with_the_last_point_of_a_vector(function):
    assert "stay(" in arrayjit.jit(function).lower(*grid(9, 23), 50).as_text("optimized")
