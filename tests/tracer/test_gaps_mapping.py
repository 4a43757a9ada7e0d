"""The user's functions of rows, parts and numbers: on both targets like NumPy, in one loop."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from refusing import assert_raises_like_numpy
from rolling import assert_kept, assert_like_numpy

Function = Callable[..., Any]
cube = np.random.default_rng(2).integers(-9, 10, (3, 4, 5)).astype("f8")


@np.vectorize
def hat(v: float) -> float:
    return max(1 - abs(v), 0.0)


ROWS: dict[str, Function] = {
    "to a number": lambda a: np.apply_along_axis(lambda row: row.sum(), 1, a),
    "to a row": lambda a: np.apply_along_axis(lambda row: row - row[0], 0, a),
    "to a shorter row": lambda a: np.apply_along_axis(lambda row: row[1:3] > 0, -1, a),
    "to a matrix": lambda a: np.apply_along_axis(lambda row: np.outer(row, row), 0, a[:, :, 0]),
    "with arguments": lambda a: np.apply_along_axis(lambda row, k, by: row[:2] * k + by, 1, a, 3, by=1),
    "a function of NumPy's": lambda a: (
        np.apply_along_axis(np.sort, 0, a),
        np.apply_along_axis(np.sum, 2, a),
    ),
    "of one row": lambda a: np.apply_along_axis(np.cumsum, 0, a[0, 0]),
}

NO_CELLS: dict[str, Function] = {
    "to a number": lambda a: np.apply_along_axis(np.sum, 1, a[:, :0]),
    "to a row": lambda a: np.apply_along_axis(lambda row: row * 2, 0, a[:0, 0, 0]),
}

PARTS: dict[str, Function] = {
    "functions": lambda a: np.piecewise(a, [a < 0, a >= 3], [lambda v: -v, lambda v: v * 2]),
    "numbers and a rest": lambda a: np.piecewise(a, [a < 0, a >= 3], [-1, 1, lambda v: v / 2]),
    "one condition": lambda a: np.piecewise(a[0, 0], a[0, 0] < 0, [0, lambda v: v + 1]),
    "arguments": lambda a: np.piecewise(a, [a < 0], [lambda v, k: v * k, 5], 3),
    "conditions that overlap": lambda a: np.piecewise(a, [a < 3, a < 0], [1, 2]),
}

NUMBERS: dict[str, Function] = {
    "of two": lambda a: np.vectorize(lambda v, w: v * v + w)(a, 2.0),
    "broadcast": lambda a: np.vectorize(lambda v, w: v - w)(a[:, :1, 0], a[0, :, 0]),
    "to bools": lambda a: np.vectorize(lambda v: v > 2)(a),
    "to a given type": lambda a: np.vectorize(lambda v: int(v), otypes=[float])(a),
    "of ints": lambda a: np.vectorize(lambda v: max(v, 1))(a.astype(int)),
    "of math": lambda a: np.vectorize(math.sqrt)(abs(a)),
    "of a number": lambda a: np.vectorize(lambda v: v * 2)(3.0),
    "a global": lambda a: hat(a / 10),
}


@pytest.mark.parametrize("program", [*ROWS.values(), *NO_CELLS.values(), *PARTS.values(), *NUMBERS.values()])
def test_functions_are_mapped(program: Function) -> None:
    assert_like_numpy(program, (cube,))


def test_in_one_loop() -> None:
    assert_kept(lambda x: np.apply_along_axis(lambda row: row.sum(), 0, np.stack([x, x, x])))
    assert_kept(lambda x: np.vectorize(lambda v: v * 2 + 1)(x))


def test_functions_and_conditions_are_as_many() -> None:
    words = "either 1 or 2 functions are expected"
    assert_raises_like_numpy(lambda a: np.piecewise(a, [a < 0], [1, 2, 3]), words, cube)
