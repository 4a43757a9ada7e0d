"""Arrays of integers as indices: what is read, what is written, and in which order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from refusing import assert_raises_like_numpy
from rolling import assert_like_numpy

import arrayjit

ROW = np.arange(6.0) * 1.5 - 3
MATRIX = np.arange(20.0).reshape(4, 5)
CUBE = np.arange(60).reshape(3, 4, 5)
REPEATED = np.array([1, -1, 1, 3, 0, -4])
PLACES: list[Any] = [
    np.array([2, 0, 1]),
    REPEATED,
    np.array([], np.int64),
    np.array([[0, 1], [3, 3]]),
    np.array([0, 3], np.uint8),
    np.array([-1, 2], np.int32),
]
Program = Callable[..., Any]

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NumPy's, of empty means and the like


def tripled(value: Any) -> Any:
    return value * 3 + 1


READS: list[Program] = [
    lambda a, p: a[p],
    lambda a, p: a[p] + a[p][::-1],
    lambda a, p: a[p, ...],
    lambda a, p: a[p].sum(),
    lambda a, p: a[::-1][p],
    lambda a, p: np.take(a, p, axis=0),
    lambda a, p: a[p[::-1]] * 2,
    lambda a, p: a[(p + 1) % 3],
]


@pytest.mark.parametrize("places", PLACES)
@pytest.mark.parametrize("program", READS)
def test_reads_copy_the_cells_at_the_positions(program: Program, places: Any) -> None:
    assert_like_numpy(program, (ROW, places), (MATRIX, places))


MIXED: list[Program] = [
    lambda a, p: a[p, 1],
    lambda a, p: a[1, p],
    lambda a, p: a[p, 1:3],
    lambda a, p: a[:, p],
    lambda a, p: a[1:, p, 2],
    lambda a, p: a[0, :, p],
    lambda a, p: a[p, :, p],
    lambda a, p: a[p, p],
    lambda a, p: a[p[:, None], p],
    lambda a, p: a[p, None, 1],
    lambda a, p: a[None, p],
    lambda a, p: a[..., p],
    lambda a, p: a[1:, 1][:, p],
    lambda a, p: a[p][:, p[:1]],
    lambda a, p: a.T[p],
    lambda a, p: a[p, ::-2],
    lambda a, p: a[p, p, p],
    lambda a, p: a[:, [0, 2], p[:2]],
]


@pytest.mark.parametrize("program", MIXED)
def test_reads_mix_positions_with_points_slices_and_new_axes(program: Program) -> None:
    assert_like_numpy(program, (CUBE, np.array([2, 0, -1])), (CUBE.T.copy().T, np.array([1, 1])))


def put(a: Any, p: Any) -> Any:
    a[p] = -7
    return a


def put_values(a: Any, p: Any) -> Any:
    a[p] = np.arange(p.size * 1.0).reshape(p.shape + (1,) * (a.ndim - 1))
    return a


def put_itself(a: Any, p: Any) -> Any:
    a[p] = a[p][::-1] * 2
    return a


def put_overlapping(a: Any, p: Any) -> Any:
    a[p[:3]] = a[: len(p[:3])] if p.ndim == 1 else 0
    return a


def put_backwards(a: Any, p: Any) -> Any:
    a[::-1][p] = 1
    return a


def add(a: Any, p: Any) -> Any:
    a[p] += 10
    return a


def scale(a: Any, p: Any) -> Any:
    a[p] *= np.float64(0.5)
    return a.sum(), a


@pytest.mark.parametrize("places", PLACES)
@pytest.mark.parametrize("program", [put, put_values, put_itself, put_overlapping, put_backwards, add, scale])
def test_writes_go_one_position_after_another(program: Program, places: Any) -> None:
    assert_like_numpy(program, (ROW, places), (MATRIX, places))


def rows(a: Any, p: Any) -> Any:
    a[p, :] = np.arange(5)
    return a


def columns(a: Any, p: Any) -> Any:
    a[:, p] = a[:, :3] * 2
    return a


def corner(a: Any, p: Any) -> Any:
    a[p, 1:3] = a[p, 2:4] + 1
    return a


def point_and_positions(a: Any, p: Any) -> Any:
    a[2, p] += a[p, 1]
    return a


def pairs(a: Any, p: Any) -> Any:
    a[p, p[::-1]] = [[-1, -2, -3]]
    return a


def grid(a: Any, p: Any) -> Any:
    a[p[:, None], p[:2]] = np.arange(6).reshape(3, 2)
    return a


def grid_from_ix(a: Any, p: Any) -> Any:
    a[np.ix_(p, p)] *= 2
    return a


def transposed(a: Any, p: Any) -> Any:
    a.T[p] = 5
    return a


def read_old_rows(a: Any, p: Any) -> Any:
    old = a[p]
    a[p] = old[::-1]
    return old, a


@pytest.mark.parametrize(
    "program",
    [rows, columns, corner, point_and_positions, pairs, grid, grid_from_ix, transposed, read_old_rows],
)
def test_writes_mix_positions_with_points_and_slices(program: Program) -> None:
    assert_like_numpy(program, (MATRIX, np.array([2, 0, -1])), (MATRIX.T.copy().T, np.array([1, 1, 1])))


COUNTING: list[Any] = [
    np.arange(4),
    np.arange(3, -1, -1),
    [0, 2],
    [3, 1],
    [-1],
    [1, 1, 1],
    [[0, 1], [2, 3]],
    np.arange(4).reshape(4, 1, 1) * [[1], [1]],
]


def chosen(a: Any, rows: Any, columns: Any) -> Any:
    return a[rows], a[:, rows], a[rows, 2], a[rows, columns], a.T[columns, rows]


def counted_up(a: Any, rows: Any, columns: Any) -> Any:
    a[rows, columns] -= 1
    a[rows, 0] = np.arange(1.0 * np.size(rows)).reshape(np.shape(rows))
    a[:, rows] *= 2
    np.add.at(a, (rows, columns), 10)
    return a


@pytest.mark.parametrize("places", COUNTING, ids=str)
@pytest.mark.parametrize("program", [chosen, counted_up])
def test_positions_that_count_are_computed(program: Program, places: Any) -> None:
    others = np.random.default_rng(3).integers(0, 4, np.shape(places))
    places = np.array(places).tolist()
    jitted = assert_like_numpy(
        lambda a, p: program(a, places, p), (MATRIX, others), (MATRIX.T.copy().T, others)
    )
    assert "captured" not in jitted.lower(MATRIX, others).as_text("assignments")


@pytest.mark.parametrize("places", [[0, 1, 3], [2, 0, 1], [[0, 1], [2, 2]], [1, 1, 2]], ids=str)
def test_others_are_kept_in_memory(places: Any) -> None:
    jitted = assert_like_numpy(lambda a: (a[places], a[places, places]), (MATRIX,))
    assert "captured" in jitted.lower(MATRIX).as_text("assignments")


def test_what_each_row_has_at_a_position_is_looked_at_once() -> None:
    def program(p: Any, y: Any) -> Any:
        p[np.arange(len(p)), y] -= 1

    assert_like_numpy(program, (MATRIX, np.array([4, -5, 0, 2])))
    lines = arrayjit.jit(program).lower(MATRIX, np.arange(4)).as_text("optimized").splitlines()
    assert sum("raise_" in line for line in lines) == 1
    assert any("in parallel" in line for line in lines)


def positions_written(p: Any) -> Any:
    p[p] = p + 10
    return p


def positions_of_the_target(p: Any) -> Any:
    p[p[1:]] += p[:-1]
    return p


@pytest.mark.parametrize("program", [positions_written, positions_of_the_target])
def test_positions_are_read_before_anything_is_written(program: Program) -> None:
    assert_like_numpy(program, (np.array([3, 0, 2, 1]),), (np.array([0, 0, 0]),))


def integers(a: Any, p: Any) -> Any:
    a[p] = 2.75
    return a


def wrapped(a: Any, p: Any) -> Any:
    a[p] = p * 100
    return a


@pytest.mark.parametrize("dtype", ["i1", "u2", "i4", "f4", "?"])
@pytest.mark.parametrize("program", [integers, wrapped])
def test_values_are_converted_to_the_array_s_dtype(program: Program, dtype: str) -> None:
    assert_like_numpy(program, (np.ones(4, dtype), np.array([0, 2, -1])))


def scattered(a: Any, p: Any) -> Any:
    for i in range(len(p)):
        a[p[i]] += i
    return a


def rows_by_number(a: Any, p: Any) -> Any:
    for i in range(len(p)):
        a[p[i]] = a[p[i - 1]] * 0.5
    return a


def sums_of_chosen(a: Any, p: Any) -> Any:
    total = 0.0
    for i in range(len(p)):
        total = total + a[p].sum() * a[p[i]].sum()
        a[p] += 1
    return total


@pytest.mark.parametrize("program", [scattered, rows_by_number, sums_of_chosen])
def test_loops_read_and_write_by_position(program: Program) -> None:
    assert_like_numpy(program, (ROW, np.tile(REPEATED, 3)), (MATRIX, np.tile(REPEATED, 3)))


def product(data: Any, indices: Any, starts: Any, x: Any) -> Any:
    y = np.empty(len(starts) - 1)
    for row in range(len(starts) - 1):
        cells = slice(starts[row], starts[row + 1])
        y[row] = data[cells] @ x[indices[cells]]
    return y


def test_rows_of_a_sparse_matrix_are_slices_read_from_an_array() -> None:
    dense = np.array([[0, 2.0, 0, 1], [0, 0, 0, 0], [3, 0, 0, 4], [5, 6, 7, 8]])
    places = np.nonzero(dense)
    starts = np.searchsorted(places[0], np.arange(5))
    arguments = (dense[places], places[1], starts, np.array([1.0, 10, 100, 1000]))
    assert_like_numpy(product, arguments)


WRONG: list[tuple[Program, Any, str]] = [
    (lambda a, p: a[p], [6], "index is out of bounds for axis 0 with size 6"),
    (lambda a, p: a[p], [0, -7], "index is out of bounds for axis 0 with size 6"),
    (lambda a, p: a[None][:, p], [9], "index is out of bounds for axis 1 with size 6"),
    (put, [0, 1, 6], "index is out of bounds"),
    (add, [0, -7], "index is out of bounds"),
    (lambda a, p: a[p * 1.0], [1], "must be of integer (or boolean) type"),
    (lambda a, p: a[p, p], [1], "too many indices for array"),
    (lambda a, p: a[None][p[:, None], p[:3]] + a[p[:2], p], [0, 0, 0], "too many indices"),
    (lambda a, p: a[None][p[:2], p], [0, 0, 0], "shape mismatch: indexing arrays could not be broadcast"),
    (lambda a, p: a.__setitem__(p, a), [1, 2], "could not be broadcast to indexing result of shape (2,)"),
    (lambda a, p: np.add.at(a, p, a[:3]), [1, 2], "array is not broadcastable to correct shape"),
    (lambda a, p: np.add.at(a, p, 1), [1, 6], "index is out of bounds"),
    (lambda a, p: np.put(a, p, 1), [6], "index is out of bounds for axis 0 with size 6"),
    (lambda a, p: np.put(a, p, 1, mode="round"), [1], "clipmode must be one of"),
    (lambda a, p: np.take(a, p), [0, 6], "index is out of bounds for axis 0 with size 6"),
    (lambda a, p: np.take(a, p * 1.0), [0], "Cannot cast array data from dtype('float64') to dtype('int64')"),
    (lambda a, p: np.take(a[:0], p), [0], "cannot do a non-empty take from an empty axes"),
    (lambda a, p: np.take_along_axis(a, p[None], 0), [0], "must have the same number of dimensions"),
    (lambda a, p: np.put_along_axis(a, p, 1, 0), [7], "index is out of bounds"),
    (lambda a, p: np.put_along_axis(a, p * 1.0, 1, 0), [1], "must be an integer array"),
    (lambda a, p: np.put_along_axis(a, p[None], 1, 0), [1], "must have the same number of dimensions"),
    (lambda a, p: np.choose(p, [a[:1], a[1:2]]), [2], "invalid entry in choice array"),
    (lambda a, p: np.bincount(p, minlength=9), [1, -1], "must have no negative elements"),
    (lambda a, p: np.bincount(p, a, minlength=9), [1], "don't have the same length"),
    (lambda a, p: np.bincount(p[None], minlength=9), [1], "too deep"),
    (lambda a, p: np.histogram(a, 0), [1], "`bins` must be positive"),
    (lambda a, p: np.histogram(a, p[None]), [1], "`bins` must be 1d"),
    (lambda a, p: np.histogram(a, p), [1, 5, 2], "`bins` must increase monotonically"),
    (lambda a, p: np.histogram(a, range=(1, 0)), [1], "max must be larger than min"),
    (lambda a, p: np.histogram(a / 0), [1], "autodetected range"),
    (lambda a, p: np.histogram(a, weights=p), [1], "weights should have the same shape as a."),
    (lambda a, p: np.piecewise(a, [a > 0], [1, 2, 3]), [1], "either 1 or 2 functions are expected"),
    (lambda a, p: np.digitize(a, p), [1, 5, 2], "bins must be monotonically increasing or decreasing"),
    (lambda a, p: np.searchsorted(a, p, side="up"), [1], "search side must be 'left' or 'right'"),
    (lambda a, p: np.searchsorted(a[None], p), [1], "object too deep"),
]  # fmt: skip


@pytest.mark.parametrize(("program", "places", "words"), WRONG)
def test_mistakes_raise_as_in_numpy(program: Program, places: Any, words: str) -> None:
    assert_raises_like_numpy(program, words, ROW, np.array(places))


LONG = np.arange(200) * 7 % 90


@pytest.mark.parametrize("target", ["sync_llvm", "sync_c", "interp"])
@pytest.mark.parametrize(
    "places",
    [
        *(LONG, -LONG - 1, np.where(LONG == 14, -14, LONG), np.where(LONG == 14, 89, LONG)),
        *(LONG.astype("i4"), -LONG.astype("i4") - 1),
    ],
    ids=["from the start", "from the end", "one from the end", "the last", "32 bits", "32 bits from the end"],
)
def test_a_sum_is_the_same_from_whichever_end_its_cells_are_counted(target: str, places: Any) -> None:
    cells, weights = np.random.default_rng(0).random((2, 200))
    cells = cells[:90]

    @arrayjit.jit(target=target)
    def weighted(cells: Any, places: Any, weights: Any) -> Any:
        return (weights * cells[places]).sum()

    assert weighted(cells, places, weights) == weighted(cells, places % 90, weights)


@pytest.mark.parametrize("place", [90, -91, 2**63 - 1, -(2**63), 2**62, -(2**62)])
def test_one_position_far_outside_raises(place: int) -> None:
    places = np.where(LONG == 14, place, LONG)
    with pytest.raises(IndexError, match="index is out of bounds for axis 0 with size 90"):
        arrayjit.jit(lambda a, p: 2 * a[p])(np.zeros(90), places)


def test_nothing_is_written_where_one_position_is_wrong() -> None:
    a = np.zeros(3)
    with pytest.raises(IndexError):
        arrayjit.jit(put)(a, np.array([0, 1, 3]))
    assert not a.any()


def aligned(letters: Any, other: Any, scores: Any, table: Any) -> None:
    """The table of an alignment, whose cells look up how well two letters go together."""
    for i in range(1, table.shape[0]):
        for j in range(1, table.shape[1]):
            paired = table[i - 1, j - 1] + scores[letters[i - 1], other[j - 1]]
            table[i, j] = np.maximum(paired, np.maximum(table[i - 1, j], table[i, j - 1]) - 2)


def alignment(letters: dict[int, int], other: dict[int, int], dtype: Any = np.int64) -> tuple[Any, ...]:
    """Arguments of `aligned`, with some letters replaced."""
    random = np.random.default_rng(0)
    words = random.integers(0, 5, 11).astype(dtype), random.integers(0, 5, 43).astype(dtype)
    for word, replaced in zip(words, (letters, other), strict=True):
        for place, letter in replaced.items():
            word[place] = letter
    return (*words, random.integers(-3, 9, (5, 5)), np.zeros((12, 44), np.int64))


def test_steps_that_look_positions_up_again_and_again_count_them_from_either_end() -> None:
    calls = [alignment({}, {}), alignment({4: -5}, {}), alignment({}, {42: -1}), alignment({0: -2}, {0: -2})]
    jitted = assert_like_numpy(aligned, *calls, alignment({}, {7: -3}, np.int32))
    assert "skew: 4 rows" in jitted.lower(*calls[0]).explain()


@pytest.mark.parametrize(
    ("letters", "other"),
    [
        ({0: 5}, {}),
        ({3: 5}, {}),
        ({3: -6}, {}),
        ({}, {0: 5}),
        ({}, {42: -6}),
        ({9: 2**62}, {1: -1}),
        ({2: 5}, {40: 5}),
    ],
)
def test_steps_stop_where_they_come_to_a_position_outside(
    letters: dict[int, int], other: dict[int, int]
) -> None:
    assert_raises_like_numpy(aligned, "out of bounds", *alignment(letters, other))


def test_a_bincount_without_a_length_is_refused() -> None:
    with pytest.raises(arrayjit.UnsupportedError, match="pass minlength="):
        arrayjit.jit(lambda p: np.bincount(p))(REPEATED)


@pytest.mark.parametrize("dtype", [np.float64, np.int64])
def test_a_bincount_of_what_cannot_be_counted_is_what_it_is_in_numpy(dtype: Any) -> None:
    numbers = np.array([1, 2], dtype) if dtype is np.float64 else np.array([[1, 2]])
    with pytest.raises(Exception) as theirs:  # noqa: PT011
        np.bincount(numbers)
    with pytest.raises(theirs.type):
        arrayjit.jit(lambda p: np.bincount(p))(numbers)


def test_a_bincount_of_small_integers_has_none_that_is_negative() -> None:
    with pytest.raises(ValueError, match="no negative elements"):
        arrayjit.jit(lambda p: np.bincount(p))(np.array([1, -1], np.int8))


def test_a_bincount_beyond_its_length_raises() -> None:
    with pytest.raises(ValueError, match="not below minlength"):
        arrayjit.jit(lambda p: np.bincount(p, minlength=3))(np.array([1, 3]))


@pytest.mark.parametrize("target", ["llvm", "c", "interp"])
def test_a_position_that_is_no_int64_is_refused(target: str) -> None:
    """As the same number is in NumPy, though its bits are those of -1: the last cell's."""
    x, places = np.arange(5.0), np.array([3, 0], np.uint64)

    def before(x: np.ndarray, places: np.ndarray, n: int) -> np.ndarray:
        return x[places[n] - np.uint64(1)]

    jitted = arrayjit.jit(before, target=target)
    assert jitted(x, places, 0) == 2
    with np.errstate(over="ignore"), pytest.raises(OverflowError):
        before(x, places, 1)
    with pytest.raises(OverflowError, match="64 bits"):
        jitted(x, places, 1)
