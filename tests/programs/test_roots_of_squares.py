"""Roots that always are numbers keep no loop in order; others raise as in Python."""

from __future__ import annotations

import math

import numpy as np
import pytest

import arrayjit


def forces(x, y):
    pulls = np.zeros(len(x))
    for i in range(len(x)):
        pull = 0.0
        for j in range(len(x)):
            dx, dy = x[i] - x[j], y[i] - y[j]
            distance = math.sqrt(dx * dx + dy**2 + 0.01)
            pull += dx / (distance * distance * distance)
        pulls[i] = pull
    return pulls


def directions(x, y):
    out = np.zeros(len(x))
    for i in range(len(x)):
        length = math.sqrt(x[i] * x[i] + y[i] * y[i])
        out[i] = x[i] / length
    return out


def of_a_product(x, y):
    out = np.zeros(len(x))
    for i in range(len(x)):
        out[i] = math.sqrt(x[i] * y[i])
    return out


def of_the_positive_part(x, y):
    out = np.zeros(len(x))
    for i in range(len(x)):
        out[i] = math.sqrt(max(x[i], 0.0)) * y[i]
    return out


def of_what_is_no_less_than_a_square(x, y):
    out = np.zeros(len(x))
    for i in range(len(x)):
        square = x[i] * x[i]
        out[i] = math.sqrt(np.where(-y[i] < square, square, -y[i]))
    return out


def quotient_of_a_root(x, y):
    out = np.zeros(len(x))
    for i in range(len(x)):
        out[i] = 1 / float(math.sqrt(x[i] * x[i]))
    return out


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("special", [1.5, -2.0, 0.0, -0.0, 1e200, 1e-200, np.inf, -np.inf, np.nan])
@pytest.mark.parametrize(
    "function",
    [
        forces, directions, of_a_product, of_the_positive_part, of_what_is_no_less_than_a_square,
        quotient_of_a_root,
    ],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore")
def test_outcomes_are_those_of_python(function, special, threads):
    random = np.random.default_rng(7)
    x, y = random.uniform(0.1, 1, 50), random.uniform(0.1, 1, 50)
    x[23] = special
    x[24] = y[24] = 0.0 if special == 0 else x[24]
    try:
        expected = function(x, y)
    except (ValueError, ZeroDivisionError) as error:
        with pytest.raises(type(error)):
            arrayjit.jit(function, threads=threads)(x, y)
    else:
        np.testing.assert_array_equal(arrayjit.jit(function, threads=threads)(x, y), expected)


def test_a_root_of_squares_goes_in_vectors():
    x = np.linspace(0, 1, 64)
    assert "in vectors of" in arrayjit.jit(forces, threads=1).explain(x, x)
