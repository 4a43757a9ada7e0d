"""`argmax` and `argmin` along axes long enough to be searched block by block, and of columns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from harness import assert_same

import arrayjit
from arrayjit.tracer.functions.positions import BLOCK, MANY

RANDOM = np.random.default_rng(0)
COUNT = MANY + 3 * BLOCK // 2


def values(*shape: int) -> np.ndarray:
    return RANDOM.standard_normal(shape).astype(np.float32)


def with_cell(position: int, value: float, count: int = COUNT) -> np.ndarray:
    x = np.zeros(count)
    x[position] = value
    return x


@pytest.mark.parametrize("position", [0, 1, BLOCK - 1, BLOCK, MANY, COUNT - BLOCK, COUNT - 1])
@pytest.mark.parametrize("value", [1.0, np.inf, np.nan])
def test_the_greatest_value_is_found_wherever_it_stands(position: int, value: float) -> None:
    assert arrayjit.jit(lambda x: np.argmax(x))(with_cell(position, value)) == position


def test_of_equal_values_the_first_counts() -> None:
    tied = with_cell(BLOCK + 1, 1.0)
    tied[[BLOCK + 2, 5 * BLOCK, COUNT - 1]] = 1.0
    for x in (tied, np.zeros(COUNT), np.full(COUNT, -0.0), np.full(COUNT, -np.inf), np.full(COUNT, np.nan)):
        assert arrayjit.jit(lambda x: (np.argmax(x), np.argmin(-x)))(x) == (np.argmax(x), np.argmin(-x))


def test_the_first_nan_counts_before_all_numbers() -> None:
    x = with_cell(BLOCK + 1, np.inf)
    x[[3 * BLOCK, COUNT - 1]] = np.nan
    assert arrayjit.jit(lambda x: (np.argmax(x), np.argmin(x)))(x) == (3 * BLOCK, 3 * BLOCK)


@pytest.mark.parametrize(
    ("program", "x"),
    [
        (lambda x: np.argmax(x), values(70, COUNT // 60)),
        (lambda x: np.argmin(x.T), values(70, COUNT // 60)),
        (lambda x: np.argmin(x[::-2]), values(2 * COUNT)),
        (lambda x: np.argmax(x, axis=1), values(3, COUNT)),
        (lambda x: np.argmax(x, axis=0, keepdims=True), values(COUNT, 3)),
        (lambda x: np.argmax(x * x), values(MANY)),
        (lambda x: np.argmin(x), np.arange(COUNT) % 1000 - 7 * (np.arange(COUNT) > COUNT - 5)),
        (lambda x: np.argmax(x), np.arange(COUNT) > COUNT - 5),
    ],
    ids=["matrix", "transposed", "strided", "rows", "columns", "expression", "int64", "bool"],
)
def test_positions_are_numpys(program: Callable[[np.ndarray], np.ndarray], x: np.ndarray) -> None:
    got, wanted = arrayjit.jit(program)(x), program(x)
    assert np.array_equal(got, wanted)
    assert np.asarray(got).dtype == np.asarray(wanted).dtype


@pytest.mark.parametrize("dtype", ["f8", "f4", "i8"])
def test_positions_among_numbers(dtype: str) -> None:
    def program(x: np.ndarray) -> Any:
        return np.nanargmax(x), np.nanargmin(x, axis=0), np.nanargmax(x, 1, keepdims=True), np.nanargmin(x[0])

    x = values(5, 7).astype(dtype)
    if dtype != "i8":
        x[values(5, 7) > 0.5] = np.nan
    x[:, 3] = 0
    for got, wanted in zip(arrayjit.jit(program)(x), program(x), strict=True):
        assert np.array_equal(got, wanted)


@pytest.mark.parametrize("axis", [None, 0])
def test_positions_where_there_is_no_number(axis: int | None) -> None:
    x = np.full((2, 3), np.nan)
    if axis is not None:
        x[:, 1:] = 1
    with pytest.raises(ValueError, match="All-NaN slice encountered"):
        arrayjit.jit(lambda x: np.nanargmin(x, axis))(x)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("shape", [(3, 4), (12,), (2, 3, 2), 12], ids=str)
@pytest.mark.parametrize(
    "counted",
    [5, np.int64(7), np.array([0, 3, 11]), np.array([[1, 2], [3, 4]], np.uint8)],
    ids=["int", "int64", "vector", "uint8 matrix"],
)
def test_positions_along_axes(counted: int | np.ndarray, shape: int | tuple[int, ...], order: str) -> None:
    def program(indices: int | np.ndarray) -> tuple[np.ndarray, ...]:
        return np.unravel_index(indices, shape, order)

    assert_same(arrayjit.jit(program)(counted), program(counted))


@pytest.mark.parametrize("beyond", [-1, 12])
def test_positions_beyond_the_last(beyond: int) -> None:
    with pytest.raises(ValueError, match="index is out of bounds for array with size 12"):
        arrayjit.jit(lambda i: np.unravel_index(i, (3, 4)))(np.array([3, beyond]))


def test_the_position_of_the_greatest_value() -> None:
    table = values(6, 7)
    found = arrayjit.jit(lambda x: np.unravel_index(x.argmax(), x.shape))(table)
    assert table[found] == table.max()


@pytest.mark.parametrize("number", [np.array(3.5), np.array(True), np.array(7, "i4")], ids=str)
def test_the_position_in_an_array_of_no_axes(number: np.ndarray) -> None:
    def positions(x: np.ndarray) -> tuple[np.int64, ...]:
        return np.argmax(x), x.argmin(), np.argmin(x, keepdims=True)

    for target in ("interp", "sync_llvm"):
        assert_same(arrayjit.jit(positions)(number, target=target), positions(number))


CELLS = np.array([-np.inf, -0.0, 0.0, 1.0, 2.0, np.nan])


def extremes(x: np.ndarray) -> tuple[np.ndarray, ...]:
    return x.argmax(axis=0), x.max(axis=0), (x + x).argmin(axis=0), x.min(axis=0)


@pytest.mark.filterwarnings("ignore:invalid value encountered in cast")
@pytest.mark.parametrize("dtype", ["f8", "f4", "i8", "u1"])
@pytest.mark.parametrize("rows", [12, 1000])
@pytest.mark.parametrize("kinds", [1, 3, 5, 6])
def test_extremes_of_columns_are_found_with_where_they_stand(dtype: str, rows: int, kinds: int) -> None:
    cells = np.random.default_rng(rows).choice(CELLS[:kinds], (rows, 37)).astype(dtype)
    jitted = arrayjit.jit(extremes)
    assert "foremost: " in jitted.lower(cells).explain()
    assert_same(jitted(cells), extremes(cells))
