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


def of_both(x):
    return x.max(axis=-1), x.min(axis=-1), x.sum(axis=-1)


def of_steps(x, first):
    found = first.copy()
    for row in x:
        found = np.maximum(found, row)
    return found


@pytest.mark.parametrize("columns", [64, 200, 1000, 4096])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_a_nan_in_any_lane_of_any_vector_is_found_and_no_other_row_changes(dtype: str, columns: int) -> None:
    x = np.random.default_rng(columns).normal(size=(40, columns)).astype(dtype)
    compiled = [arrayjit.jit(of_both, **options) for options in TARGETS]
    plain = [program(x) for program in compiled]
    for column in np.unique([*range(16), columns // 2, *range(columns - 40, columns)]):
        y = x.copy()
        y[7, column] = np.nan
        for program, before in zip(compiled, plain, strict=True):
            for one, another in zip(before, program(y), strict=True):
                assert np.isnan(another[7])
                np.testing.assert_array_equal(np.delete(one, 7), np.delete(another, 7))


@pytest.mark.parametrize("options", TARGETS)
def test_steps_begin_with_a_nan(options: dict[str, Any]) -> None:
    x, first = np.random.default_rng(2).normal(size=(30, 100)), np.zeros(100)
    first[[0, 40, 99]] = np.nan
    np.testing.assert_array_equal(arrayjit.jit(of_steps, **options)(x, first), of_steps(x, first))


def test_the_nan_that_is_kept_is_the_first_of_its_lane() -> None:
    x = np.zeros(4096)
    x.view(np.int64)[[100, 4000]] = 0x7FF8000000000001, 0x7FF8000000000002
    wanted = arrayjit.jit(of_all, target="interp")(x)
    for options in TARGETS:
        for one, another in zip(arrayjit.jit(of_all, **options)(x), wanted, strict=True):
            assert np.float64(one).tobytes() == np.float64(another).tobytes()
