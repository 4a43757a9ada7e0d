"""Loops over several axes at once, and cells counted through all axes: on both targets like NumPy."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest
from refusing import assert_raises_like_numpy
from rolling import assert_kept, assert_like_numpy, length

import arrayjit

Function = Callable[..., Any]
matrix = np.arange(42.0).reshape(6, 7) - 9
cube = np.arange(60.0).reshape(3, 4, 5)


def enumerated(a: np.ndarray) -> np.ndarray:
    out = np.zeros_like(a)
    for (i, j), v in np.ndenumerate(a):
        out[i, j] = v * i + a[j % 2, i % 2]
    return out


def indexed(a: np.ndarray) -> np.ndarray:
    out = np.zeros_like(a)
    for place in np.ndindex(a.shape):
        out[place] = a[place] + len(place)
    for i, j in np.ndindex(*a.shape):
        out[i, j] -= i * a[i, j]
    return out


def multiplied(a: np.ndarray) -> np.ndarray:
    n, m = a.shape
    for i, j in itertools.product(range(n), range(1, m)):
        a[i, j] += a[i, j - 1]
    for i, j in product(range(n - 1, -1, -1), range(0, m, 2)):
        a[i, j] *= i - j
    return a


def rows_by_rows(a: np.ndarray) -> Any:
    total = 0.0
    for row, column in product(a, a.T):
        total += row[0] * column[1]
    return total


def numbered(a: np.ndarray) -> Any:
    best = -np.inf
    for k, v in enumerate(a.flat):
        best = np.maximum(best, v - k)
    return best


@pytest.mark.parametrize("program", [enumerated, indexed, multiplied, rows_by_rows, numbered])
def test_loops_over_all_axes(program: Function) -> None:
    assert_like_numpy(program, (matrix,), (matrix[::2, 1:5],), (matrix[:2, :3],))


def test_they_are_kept() -> None:
    for program in (enumerated, indexed, multiplied, rows_by_rows, numbered):
        assert length(program, matrix) == length(program, np.ones((60, 70)))


def test_they_are_like_nested_loops_unrolled_where_these_are() -> None:
    taps = [0.5, -1.0, 2.0]

    def program(a: np.ndarray) -> np.ndarray:
        out = np.zeros_like(a[2:, 2:])
        for i, j in product(range(3), repeat=2):
            out += taps[i] * taps[j] * a[i : i + 4, j : j + 5]
        return out

    assert_like_numpy(program, (matrix,))


def test_arguments_bound_them() -> None:
    def program(a: np.ndarray, n: int, m: int) -> Any:
        count = 0
        for i, j in product(range(n), range(m)):
            a[i, j] = count
            count += 1
        for i, j in np.ndindex(n, m):
            a[i, j] -= i
        return count

    jitted = assert_like_numpy(program, (matrix, 6, 7), (matrix, 2, 5), (matrix, 5, 1), (matrix, 0, 4))
    assert jitted.stats().compiles <= 4


def test_lists_are_taken_one_by_one() -> None:
    def program(a: np.ndarray) -> Any:
        return [a[i, j] for i, j in product([0, 2], range(2))] + [a[i] for (i,) in product((1, 2))]

    assert_like_numpy(program, (matrix,))


def test_arrays_of_other_ranks() -> None:
    def program(a: np.ndarray) -> Any:
        out = np.zeros_like(a)
        for (i, j, k), v in np.ndenumerate(a):
            out[i, j, k] = v - a[i, j, 0]
        for (i,), v in np.ndenumerate(a[0, 0]):
            out[0, 0, i] += v
        return out, [(place, v) for place, v in np.ndenumerate(a[0, 0, 0])]

    assert_like_numpy(program, (cube,))


def flat_cells(a: np.ndarray) -> Any:
    a.flat[3] = 9
    a.flat[[5, 7]] = [1, 2]
    a.flat[::6] = -1.5
    a.T.flat[2:9:3] = [4, 5]
    total = 0.0
    for v in a.flat:
        total += v
    copied = a.flat[2:5]
    copied += 1
    return total, a.flat[7], a.flat[-1], copied, a.flat[[1, 2]], len(a.flat), a.T.flat[4], a.flat.copy()


def filled(a: np.ndarray) -> np.ndarray:
    a[1:, ::2].flat = 7
    a[0].flat = a[2]
    return a


@pytest.mark.parametrize("program", [flat_cells, filled])
def test_flat(program: Function) -> None:
    assert_like_numpy(program, (matrix,), (matrix[:, ::-1],))


ONE_CELL = [1, -2, np.array(3), np.int8(1)]
MANY_CELLS = [slice(1, 4, 2), [1, 3], np.array([2])]
STORED = [
    300, -1, 2.5, np.inf, np.nan, 1j, np.int64(300), np.float64(np.inf), np.int8(-3), np.array(300),
    [300], np.array([300]), np.array([1e9]), [300, 2],
]  # fmt: skip


@pytest.mark.parametrize("key", [*ONE_CELL, *MANY_CELLS], ids=repr)
@pytest.mark.parametrize("value", STORED, ids=repr)
@pytest.mark.filterwarnings("ignore")
def test_flat_takes_and_refuses_what_numpy_does(key: Any, value: Any) -> None:
    def stored(a: np.ndarray, v: Any) -> np.ndarray:
        a.flat[key] = v
        return a

    def compiled_in(a: np.ndarray, v: Any) -> np.ndarray:
        a.T.flat[key] = value
        return a

    for dtype, program in product(("i1", "u1", "f4"), (stored, compiled_in)):
        array = np.arange(6).astype(dtype).reshape(2, 3)
        try:
            program(array.copy(), value)
        except (OverflowError, TypeError, ValueError) as error:
            words = str(error) if "single item" in str(error) else ""
            assert_raises_like_numpy(program, words, array, value)
        else:
            assert_like_numpy(program, (array, value))


def test_flat_in_a_loop() -> None:
    def program(x: np.ndarray) -> np.ndarray:
        a = x[:12].reshape(3, 4)
        for i in range(len(x)):
            a.flat[i % 12] += a.flat[(i + 5) % 12]
        return a

    assert_like_numpy(program, (np.arange(20.0),))
    assert_kept(program)


POSITIONS: dict[str, Function] = {
    "arrays": lambda i, j: np.ravel_multi_index((i, j), (4, 5)),
    "numbers": lambda i, j: np.ravel_multi_index((i[0], j[1]), (4, 5)),
    "of several shapes": lambda i, j: (
        np.ravel_multi_index((i, 2), (4, 5)),
        np.ravel_multi_index((i[:, np.newaxis], j), (4, 5)),
    ),
    "stacked": lambda i, j: np.ravel_multi_index(np.stack([i, j]), (4, 5)),
    "wrapped": lambda i, j: np.ravel_multi_index((i + 4, j - 5), (4, 5), mode="wrap"),
    "clipped": lambda i, j: np.ravel_multi_index((i + 2, j - 3), (4, 5), mode=("clip", "wrap")),
    "columns": lambda i, j: np.ravel_multi_index((i, j, i), (4, 5, 6), order="F"),
    "back": lambda i, j: np.unravel_index(np.ravel_multi_index((i, j), (4, 5)), (4, 5)),
}


@pytest.mark.parametrize("program", POSITIONS.values(), ids=POSITIONS)
def test_positions_through_all_axes(program: Function) -> None:
    assert_like_numpy(program, (np.array([3, 0, 1]), np.array([4, 2, 0])))


def test_positions_are_integers() -> None:
    assert_like_numpy(lambda a, p: np.unravel_index(p, a.shape), (matrix, np.array([True, False])))
    for places in (1.0, np.array([1.0, 2.0])):
        assert_raises_like_numpy(lambda p: np.unravel_index(p, (2, 3)), "only int indices permitted", places)


def test_mistakes() -> None:
    positions = np.array([3, 0, 1])
    for program in (
        lambda i: np.ravel_multi_index((i, i), (4, 3)),
        lambda i: np.ravel_multi_index((i, i - 1), (4, 3)),
    ):
        assert_raises_like_numpy(program, "invalid entry in coordinates array", positions)
    with pytest.raises(NotImplementedError, match=r"np\.nditer is not supported"):
        arrayjit.jit(lambda x: [v for v in np.nditer(x)])(matrix)
