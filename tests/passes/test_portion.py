"""Steps that stride through arrays larger than the nearest cache leave what they leave step by step."""

from __future__ import annotations

from math import isqrt

import numpy as np
import pytest

import arrayjit


def primes(n):
    prime = np.ones(n, dtype=bool)
    for p in range(2, isqrt(n) + 1):
        prime[p * p :: p] = False
    return prime


def smallest_factors(n):
    """Steps downwards: the last one that reaches a cell stays."""
    factor = np.zeros(n, dtype=np.int64)
    for p in range(isqrt(n), 1, -1):
        factor[p * p :: p] = p
    return factor


def weights_of_rows(n):
    """Of each row the weight of the last step that reached it, which ends before the array does."""
    weight = np.linspace(0, 1, 40)
    rows = np.zeros((n // 4, 3))
    for k in range(1, 40):
        rows[k : n // 4 - 7 * k : k] = weight[k]
    return rows


def as_another_cell_says(n):
    """Steps depend on what steps before them stored: they stay whole."""
    cells = np.arange(n)
    for k in range(1, 40):
        cells[5 * k :: k] = cells[k] + k
    return cells


@pytest.mark.parametrize("options", [{}, {"threads": 2}, {"target": "c"}], ids=str)
@pytest.mark.parametrize(
    ("function", "is_cut"),
    [(primes, True), (smallest_factors, True), (weights_of_rows, True), (as_another_cell_says, False)],
)
@pytest.mark.parametrize("n", [50_000, 196_608, 300_001])
def test_cells_are_as_without_portions(function, is_cut, n, options):
    jitted = arrayjit.jit(function, **options)
    np.testing.assert_array_equal(jitted(n), function(n))
    is_large = function(n).nbytes >= 4 * 32 * 1024
    assert ("portion:" in jitted.lower(n).explain()) == (is_cut and is_large)
