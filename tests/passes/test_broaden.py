"""Steps that wait for one another go in more lanes, and programs keep their results."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import arrayjit


def logistic(x: np.ndarray) -> np.ndarray:
    for _ in range(100):
        x = 3.7 * x * (1 - x)
    return x


def escape(x: np.ndarray) -> np.ndarray:
    z, count = np.zeros_like(x), np.zeros(x.shape, np.int64)
    for _ in range(100):
        z = np.where(np.abs(z) <= 2, z * z + x, z)
        count += np.abs(z) <= 2
    return count


def powers(x: np.ndarray) -> np.ndarray:
    for _ in range(30):
        x = np.exp(-x * x)
    return x


@pytest.mark.parametrize("program", [logistic, escape, powers])
@pytest.mark.parametrize("length", [1, 5, 31, 64, 203, 700])
def test_results_do_not_depend_on_lanes(program: Callable[..., np.ndarray], length: int) -> None:
    x = np.random.default_rng(length).random(length)
    found = arrayjit.jit(program)(x)
    np.testing.assert_array_equal(found, arrayjit.jit(program, target="interp")(x))
    np.testing.assert_array_equal(found, arrayjit.jit(program, target="c")(x))
    for place in (0, length // 2, length - 1):
        np.testing.assert_array_equal(arrayjit.jit(program)(x[place : place + 1]), found[place : place + 1])
    if program is not powers:
        np.testing.assert_array_equal(found, program(x))
