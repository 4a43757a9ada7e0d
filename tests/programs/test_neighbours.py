"""Loops over pairs of neighbours, each of which changes both, have NumPy's bits however they overlap."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import arrayjit


def exchanges(x, bounds):
    for lo, hi in bounds:
        for j in range(lo, hi):
            x[j], x[j + 1] = min(x[j], x[j + 1]), max(x[j], x[j + 1])


def downwards(x, bounds):
    for lo, hi in bounds:
        for j in range(hi, lo, -1):
            x[j - 1], x[j] = x[j - 1] + x[j], x[j - 1] - x[j]


def read_after_it_is_written(x, bounds):
    total = 0.0
    for lo, hi in bounds:
        for j in range(lo, hi):
            t = x[j]
            x[j + 1] = t * 0.5
            total += x[j + 1] + x[j]
            x[j] = total + 1
            total -= x[j]
    return total


def two_on(x, bounds):
    for lo, hi in bounds:
        for j in range(lo, hi, 2):
            x[j], x[j + 2] = x[j + 2] - x[j], x[j] * 2


def three(x, bounds):
    for lo, hi in bounds:
        for j in range(lo, hi):
            t = x[j]
            x[j] = x[j + 2]
            x[j + 1] = t
            x[j + 2] += t


def beside_a_lookup(x, bounds):
    total = 0.0
    for lo, hi in bounds:
        for j in range(lo, hi):
            t = x[j]
            x[j] = t + 1
            x[j + 1] = t * 2
            total += x[lo]
    return total


def beside_the_cell_in_front(x, bounds):
    total = 0.0
    for _, hi in bounds:
        for j in range(2, hi):
            x[j] = x[j + 1] * 0.5
            x[1] += x[j]
            x[j - 1] -= 0.25
            total += x[j - 1]
    return total


PROGRAMS = [
    exchanges,
    downwards,
    read_after_it_is_written,
    two_on,
    three,
    beside_a_lookup,
    beside_the_cell_in_front,
]
BOUNDS = np.array([[0, 12], [7, 3], [5, 5], [11, 12], [2, 9], [12, 0], [0, 1]])


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("target", ["sync_llvm", "cuda-sim"])
def test_pairs_have_numpy_s_bits(program: Callable[..., Any], target: str) -> None:
    wanted = np.random.default_rng(0).uniform(-1, 1, 15)
    ours = wanted.copy()
    result = arrayjit.jit(program, target=target)(ours, BOUNDS)
    assert program(wanted, BOUNDS) == result
    assert np.array_equal(ours, wanted)


@pytest.mark.parametrize("lengths", [(0, 1, 9), (1, 2, 14)])
def test_bounds_that_are_known(lengths: tuple[int, ...]) -> None:
    def triangle(x, n):
        for k in range(n):
            for j in range(2 * k, n):
                x[j], x[j + 1] = x[j] + x[j + 1], x[j] - x[j + 1]

    jitted = arrayjit.jit(triangle)
    for n in lengths:
        wanted = np.arange(15.0) - 3
        ours = wanted.copy()
        triangle(wanted, n)
        jitted(ours, n)
        assert np.array_equal(ours, wanted)
