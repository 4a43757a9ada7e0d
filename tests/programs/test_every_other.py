"""Programs that go over the cells of one colour, then over the others, have NumPy's bits on threads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import arrayjit


def by_rows(u: Any, f: Any, sweeps: int) -> None:
    n = len(u)
    for _ in range(sweeps):
        for colour in (0, 1):
            for i in range(1, n - 1):
                start = 1 + (i + colour) % 2
                around = u[i - 1, start:-1:2] + u[i + 1, start:-1:2]
                beside = u[i, start - 1 : -2 : 2] + u[i, start + 1 :: 2]
                u[i, start:-1:2] = (around + beside - f[i, start:-1:2]) / 4


def by_cells(u: Any, f: Any, sweeps: int) -> None:
    n, m = u.shape
    for _ in range(sweeps):
        for colour in range(2):
            for i in range(1, n - 1):
                for j in range(1 + (i + colour) % 2, m - 1, 2):
                    u[i, j] = (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] - f[i, j]) / 4


def by_strides(u: Any, f: Any, sweeps: int) -> None:
    for _ in range(sweeps):
        for i, j in ((1, 1), (2, 2), (1, 2), (2, 1)):
            around = u[i - 1 : -2 : 2, j:-1:2] + u[i + 1 :: 2, j:-1:2]
            beside = u[i:-1:2, j - 1 : -2 : 2] + u[i:-1:2, j + 1 :: 2]
            u[i:-1:2, j:-1:2] = (around + beside - f[i:-1:2, j:-1:2]) / 4


def in_four_colours(u: Any, f: Any, sweeps: int) -> None:
    n, m = u.shape
    for _ in range(sweeps):
        for colour in range(4):
            for i in range(2, n - 2):
                for j in range(2 + (i + colour) % 4, m - 2, 4):
                    u[i, j] = u[i - 2, j] - u[i + 1, j] + u[i - 1, j] / 2 - f[i, j]


def with_rows_of_its_own_colour(u: Any, f: Any, sweeps: int) -> None:
    n, m = u.shape
    for _ in range(sweeps):
        for i in range(2, n):
            for j in range(1 + i % 2, m - 1, 2):
                u[i, j] = u[i - 2, j] + u[i - 1, j] - f[i, j]


PROGRAMS = [by_rows, by_cells, by_strides, in_four_colours, with_rows_of_its_own_colour]


@pytest.mark.parametrize("target", ["sync_llvm", "llvm", "sync_c", "cuda-sim", "interp"])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_colours_have_numpy_s_bits(program: Callable[..., None], dtype: str, target: str) -> None:
    u, f = np.random.default_rng(8).integers(-9, 9, (2, 21, 40)).astype(dtype)
    expected, result = u.copy(), u.copy()
    program(expected, f, 2)
    options = {"threads": 2} if target == "llvm" else {}
    arrayjit.jit(program, target=target, **options)(result, f, 2)
    np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("program", [by_rows, by_cells])
def test_rows_of_one_colour_are_shared(program: Callable[..., None]) -> None:
    u, f = np.ones((2, 300, 300))
    assert arrayjit.jit(program, threads=2).lower(u, f, 2).as_text("optimized").count("grain=") == 2
