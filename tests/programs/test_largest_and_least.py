"""Largest and least numbers of rows, columns, windows and whole arrays: NaN wherever one is among them, and
of zeros the same one on every target and any number of threads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view

import arrayjit

TARGETS = [{"threads": 1}, {"threads": 2}, {"target": "c"}]


def of_rows(x):
    return x.max(axis=-1), x.min(axis=-1)


def of_columns(x):
    return x.max(axis=0), x.min(axis=0)


def of_all(x):
    return x.max(), x.min()


def of_windows(x):
    return sliding_window_view(x, 9, axis=1).max(axis=-1)


def of_what_is_computed(x):
    return (x * 2 + 1).max(axis=-1), np.abs(x).min(axis=-1)


PROGRAMS = [of_rows, of_columns, of_all, of_windows, of_what_is_computed]


def results(program: Callable[..., Any], x: np.ndarray, options: dict[str, Any]) -> list[np.ndarray]:
    found = arrayjit.jit(program, **options)(x)
    return [np.asarray(one) for one in (found if isinstance(found, tuple) else (found,))]


@pytest.mark.parametrize("columns", [9, 100, 1000, 1024])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("program", PROGRAMS)
def test_a_nan_is_found_wherever_it_is(program: Callable[..., Any], dtype: str, columns: int) -> None:
    random = np.random.default_rng(columns)
    x = random.normal(size=(80, columns)).astype(dtype)
    x[np.arange(70), random.integers(0, columns, 70)] = np.nan
    x[70:75, : columns // 2] = np.inf
    x[75:77] = np.nan
    for options in TARGETS:
        wanted = program(x)
        wanted = wanted if isinstance(wanted, tuple) else (wanted,)
        for ours, theirs in zip(results(program, x, options), wanted, strict=True):
            np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("columns", [9, 100, 1000, 1024])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("program", PROGRAMS[:4])
def test_of_equal_zeros_it_is_the_same_one_everywhere(
    program: Callable[..., Any], dtype: str, columns: int
) -> None:
    x = np.random.default_rng(1).choice([0.0, -0.0], (80, columns)).astype(dtype)
    first, *others = (results(program, x, options) for options in TARGETS)
    for other in others:
        for one, another in zip(first, other, strict=True):
            np.testing.assert_array_equal(np.signbit(one), np.signbit(another))
