"""Forces between pairs within a cutoff, added to both: several pairs at a time, with the sums in order."""

from __future__ import annotations

import numpy as np
import pytest

import arrayjit


def forces(x, y, cutoff):
    fx, fy = np.zeros(len(x)), np.zeros(len(x))
    for i in range(len(x)):
        for j in range(i + 1, len(x)):
            dx, dy = x[i] - x[j], y[i] - y[j]
            square = dx * dx + dy * dy
            inverse = np.where(square < cutoff, 1 / square, 0.0)
            cube = inverse * inverse * inverse
            strength = 48 * inverse * cube * (cube - 0.5)
            fx[i] += strength * dx
            fy[i] += strength * dy
            fx[j] -= strength * dx
            fy[j] -= strength * dy
    return fx, fy


def energy(x, y, cutoff):
    total, count = 0.0, 0
    for i in range(len(x)):
        for j in range(i + 1, len(x)):
            square = (x[i] - x[j]) ** 2 + (y[i] - y[j]) ** 2
            cube = 1 / (square * square * square)
            total += np.where(square < cutoff, 4 * (cube * cube - cube), 0.0)
            count += square < cutoff
    return total, count


@pytest.mark.parametrize("function", [forces, energy])
@pytest.mark.parametrize("count", [1, 2, 19, 70])
def test_pairs_are_added_up_in_order(function, count):
    x, y = np.random.default_rng(count).random((2, count)) * 3
    for one, other in zip(arrayjit.jit(function)(x, y, 2.0), function(x, y, 2.0), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("function", [forces, energy])
def test_pairs_go_several_at_a_time(function):
    x, y = np.random.default_rng(0).random((2, 70))
    assert "in lockstep(" in arrayjit.jit(function).lower(x, y, 2.0).as_text("optimized")
