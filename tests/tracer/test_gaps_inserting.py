"""`np.insert` and `np.delete`, and the positions of triangles and diagonals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from refusing import assert_raises_like_numpy
from rolling import assert_like_numpy

Function = Callable[..., Any]
row = np.arange(6.0)
matrix = np.arange(12.0).reshape(4, 3)

INSERTED: dict[str, Function] = {
    "a number": lambda x, m: (np.insert(x, 2, 5), np.insert(x, -1, 5.0), np.insert(x, 6, x[0])),
    "numbers": lambda x, m: (np.insert(x, 2, [7, 8]), np.insert(x, [2], [7, 8])),
    "at many places": lambda x, m: (np.insert(x, [4, 1, 1], [7, 8, 9]), np.insert(x, [0, 5], 1)),
    "at a slice": lambda x, m: np.insert(x, slice(1, 5, 2), [-1, -2]),
    "a row": lambda x, m: (np.insert(m, 1, x[:3], axis=0), np.insert(m, 0, 9, axis=0)),
    "a column": lambda x, m: (np.insert(m, 1, x[:4], axis=1), np.insert(m, [1], x[:4, None], axis=1)),
    "columns": lambda x, m: np.insert(m, [1, 3], m[:, :2], axis=1),
    "flat": lambda x, m: np.insert(m, 5, x[:2]),
    "at one place of a slice": lambda x, m: (
        np.insert(x, slice(2, 3), [7, 8]),
        np.insert(x, slice(-1, None), [7, 8]),
    ),
    "in more parts than are joined": lambda x, m: (
        np.insert(np.tile(x, 8), range(0, 40, 2), 1),
        np.delete(np.tile(x, 8), range(0, 40, 2)),
    ),
    "of another dtype": lambda x, m: np.insert(x.astype(int), 1, 2.75),
}

PLACES: dict[str, Function] = {
    "upper": lambda m: (m[np.triu_indices_from(m)], np.triu_indices_from(m, 1)),
    "lower": lambda m: (m[np.tril_indices_from(m)], np.tril_indices_from(m, -1)),
    "diagonal": lambda m: (m[:3][np.diag_indices_from(m[:3])], np.diag_indices_from(m[1:])),
}


@pytest.mark.parametrize("program", INSERTED.values(), ids=INSERTED)
def test_insert(program: Function) -> None:
    assert_like_numpy(program, (row, matrix))


@pytest.mark.parametrize("place", [np.int64(2), np.array(1)], ids=str)
def test_places_of_every_kind(place: Any) -> None:
    assert_like_numpy(lambda m, k: (np.delete(m, k, 1), np.insert(m, k, 7, axis=0)), (matrix, place))


def test_one_compilation_serves_every_place() -> None:
    def program(x: np.ndarray, m: np.ndarray, k: int) -> Any:
        without = np.delete(x, k), np.delete(m, k, 0), np.delete(np.delete(m, k, axis=0), k, axis=1)
        return without, np.insert(x, k, [7, 8]), np.insert(m, k, m[0], axis=0), np.insert(m, k, 1, axis=1)

    jitted = assert_like_numpy(program, *((row, matrix, k) for k in (0, 1, 2, -1, -2, -3)))
    assert jitted.stats().compiles == 2  # one for each target
    for k in (3, 6, -4, -5, -7):
        assert_raises_like_numpy(lambda m, k: np.delete(m, k, 1), "out of bounds for axis 1", matrix, k)


def test_places_that_are_computed() -> None:
    def program(x: np.ndarray, m: np.ndarray) -> Any:
        for i in range(len(m)):
            m[i, :2] = np.delete(m[i], i % 3)
        return np.delete(x, x.argmax()), np.insert(x, np.searchsorted(x, 2.5), 2.5), m

    assert_like_numpy(program, (row, matrix))


DELETED: dict[str, Function] = {
    "of the function's own": lambda x, m, k: (
        np.delete(x, np.array([0, 0, 1])),
        np.delete(m, np.arange(2), 0),
    ),
    "from an argument": lambda x, m, k: (np.delete(x, k), np.delete(m, k, axis=0), np.delete(m, k, 1)),
    "in a list": lambda x, m, k: (np.delete(x, [k[0], k[2]]), np.delete(x, [k[1]])),
    "a mask": lambda x, m, k: (np.delete(x, x > 2), np.delete(m, m[:, 0] > 3, axis=0)),
    "what a mask chooses": lambda x, m, k: np.delete(x, np.where(x > 2)[0]),
    "one in a row": lambda x, m, k: np.delete(x, k[:1]),
    "of what a mask chose": lambda x, m, k: (np.delete(x[x > 1], [0, -1]), np.delete(x[x > 1], k)),
}

INSERTED_LATE: dict[str, Function] = {
    "of the function's own": lambda x, m, k: np.insert(x, np.array([0, 0, 1]), 7),
    "from an argument": lambda x, m, k: (
        np.insert(x, k, x[:3]),
        np.insert(m, k, 9, 1),
        np.insert(m, k, m[:3], 0),
    ),
    "in a list": lambda x, m, k: (np.insert(x, [k[0], k[2]], 7), np.insert(x, [k[1]], [7, 8])),
    "before what a mask chooses": lambda x, m, k: (
        np.insert(x, x > 2, 7),
        np.insert(x, np.where(x > 2)[0], 7),
    ),
    "one in a row": lambda x, m, k: (np.insert(x, k[:1], [3, 4]), np.insert(m, k[:1], x[:4, None], axis=1)),
    "into what a mask chose": lambda x, m, k: (
        np.insert(x[x > 1], [1, 0], 3),
        np.insert(x[x > 1], [1], [3, 4]),
    ),
}


@pytest.mark.parametrize("program", [*DELETED.values(), *INSERTED_LATE.values()])
def test_rows_of_places(program: Function) -> None:
    for places in ([0, 0, 1], [-1, 2, 0], [2, 0, -3]):
        assert_like_numpy(program, (row, matrix, np.array(places)))


def test_rows_of_places_that_are_none() -> None:
    for places in ([9, 1, 1], [-7, 1, 1]):
        assert_raises_like_numpy(
            lambda x, k: np.delete(x, k), "out of bounds for axis 0", row, np.array(places)
        )
    assert_raises_like_numpy(lambda x, k: np.insert(x, k, 1), "out of bounds", row, np.array([1, 9, 9]))
    assert_raises_like_numpy(
        lambda m: np.delete(m, m > 3), "one dimensional and match the axis length of 12", matrix
    )


@pytest.mark.parametrize("program", PLACES.values(), ids=PLACES)
def test_places(program: Function) -> None:
    assert_like_numpy(program, (matrix,))


def test_triangles_are_written() -> None:
    def mirrored(m: np.ndarray) -> np.ndarray:
        square = m[:3]
        square[np.tril_indices_from(square, -1)] = square.T[np.tril_indices_from(square, -1)]
        return square

    assert_like_numpy(mirrored, (matrix,))


def test_mistakes() -> None:
    assert_raises_like_numpy(lambda x: np.insert(x, 9, 0), "out of bounds for axis 0 with size 6", row)
    assert_raises_like_numpy(lambda m: np.diag_indices_from(m), "must be of equal length", matrix)
