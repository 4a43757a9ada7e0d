"""Slices that follow one another, whatever they hold: results and exceptions are NumPy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import arrayjit

TARGETS = ("interp", "sync_llvm", "sync_c")

ROWS = 75


def multiply(data: Any, columns: Any, ends: Any, x: Any, y: Any) -> None:
    for i in range(len(y)):
        y[i] = data[ends[i] : ends[i + 1]] @ x[columns[ends[i] : ends[i + 1]]]


def add_neighbours(data: Any, columns: Any, ends: Any, x: Any, y: Any) -> None:
    for i in range(len(y)):
        y[i] = x[columns[ends[i] : ends[i + 1]]].sum()


def every_other(data: Any, columns: Any, ends: Any, x: Any, y: Any) -> None:
    for i in range(0, len(y) - 1, 2):
        y[i] = x[columns[ends[i] : ends[i + 1]]].sum()


def overwrite_ends(data: Any, columns: Any, ends: Any, x: Any, y: Any) -> None:
    for i in range(len(y)):
        y[i] = x[columns[ends[i] : ends[i + 1]]].sum()
        ends[i + 1] = ends[i + 1] - 1


def _matrix(longest: int, dtype: Any = np.int64) -> dict[str, np.ndarray]:
    """Rows of up to so many columns of 40."""
    rng = np.random.default_rng(3)
    ends = np.concatenate([[0], np.cumsum(rng.integers(0, longest + 1, ROWS))]).astype(dtype)
    columns = rng.integers(0, 40, ends[-1]).astype(dtype)
    whole = {"data": rng.integers(1, 9, ends[-1]).astype(float), "columns": columns, "ends": ends}
    return {**whole, "x": rng.integers(1, 9, 40).astype(float), "y": np.full(ROWS, -1.0)}


def _same(function: Any, target: str, matrix: dict[str, np.ndarray]) -> None:
    """Do both end alike, and leave the same in what they write?"""
    ours, theirs = [{name: array.copy() for name, array in matrix.items()} for _ in range(2)]
    raised: Exception | None = None
    try:
        function(**theirs)
    except (IndexError, ValueError) as error:
        raised = error
    if raised is None:
        arrayjit.jit(function, target=target)(**ours)
    else:
        with pytest.raises(type(raised)):
            arrayjit.jit(function, target=target)(**ours)
    for name in matrix:
        np.testing.assert_array_equal(ours[name], theirs[name])


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("function", [multiply, add_neighbours, every_other, overwrite_ends])
def test_rows_of_a_matrix(function: Any, target: str) -> None:
    for longest in (1, 5, 50):
        for dtype in (np.int64, np.int32):
            _same(function, target, _matrix(longest, dtype))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("function", [multiply, add_neighbours])
@pytest.mark.parametrize("column", [-1, -40, 40, -41, 2**31 - 1, -(2**31)])
def test_a_column_that_counts_from_the_end_or_is_none(function: Any, target: str, column: int) -> None:
    for place in (0, 100, -1):
        for dtype in (np.int64, np.int32):
            matrix = _matrix(5, dtype)
            matrix["columns"][place] = column
            _same(function, target, matrix)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("end", [-3, -1000, 7, 10**6, 2**63 - 1, -(2**63), -(2**63) + 5])
def test_rows_that_do_not_follow_one_another(target: str, end: int) -> None:
    for place in (0, 1, 16, 40, -1):
        matrix = _matrix(5)
        matrix["ends"][place] = end
        _same(add_neighbours, target, matrix)


@pytest.mark.parametrize("target", TARGETS)
def test_ends_so_far_apart_that_their_difference_wraps_around(target: str) -> None:
    matrix = _matrix(5)
    matrix |= {"ends": matrix["ends"][:18], "y": matrix["y"][:17]}
    matrix["ends"][-2:] = 2**62, -(2**62) - 10
    _same(add_neighbours, target, matrix)


@pytest.mark.parametrize("target", TARGETS)
def test_columns_that_no_row_has_are_not_looked_at(target: str) -> None:
    matrix = _matrix(5)
    matrix["columns"] = np.concatenate([[99, 99], matrix["columns"], [-99]])
    matrix["data"] = np.concatenate([[0.0, 0.0], matrix["data"], [0.0]])
    matrix["ends"] += 2
    _same(multiply, target, matrix)


def test_rows_are_looked_through_a_few_at_once() -> None:
    matrix = _matrix(5)
    lowered = arrayjit.jit(multiply, target="sync_llvm").lower(**matrix)
    assert "for block" in lowered.as_text("optimized")
