"""Arrays made inside a traced function, and the functions that choose among values."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from harness import assert_like_numpy, trace_and_interpret

import arrayjit

Function = Callable[..., Any]


def grid(*shape: int, dtype: str = "f8") -> np.ndarray:
    return np.arange(np.prod(shape), dtype="i8").reshape(shape).astype(dtype)


MADE: dict[str, Function] = {
    "zeros": lambda x: (np.zeros(3), np.zeros((2, 0)), np.zeros(x.shape, x.dtype), np.zeros((), "i4")),
    "ones": lambda x: (np.ones(3), np.ones((2, 2), dtype=bool), np.ones(x.shape[0], np.uint8)),
    "full": lambda x: (np.full(3, 7), np.full((2, 2), 1.5), np.full(2, x[0, 0]), np.full((2, 4), x[0])),
    "full dtype": lambda x: (np.full(3, 7, "f4"), np.full((), True)),
    "arange of ints": lambda x: (np.arange(5), np.arange(2, 9), np.arange(9, 2, -3), np.arange(5, 2)),
    "arange of floats": lambda x: (np.arange(0.1, 1.0, 0.1), np.arange(5.0), np.arange(0, 1, 0.3, "f4")),
    "arange of complex numbers": lambda x: (
        np.arange(4 + 4j),
        np.arange(1, 8 + 3j, 1 + 0.5j),
        np.arange(3 + 5j, dtype="c8"),
    ),
    "arange by keywords": lambda x: (np.arange(stop=3), np.arange(stop=3, step=2)),
    "arange dtype": lambda x: (
        np.arange(5, dtype="u1"),
        np.arange(0, 3, 0.5, dtype=int),
        np.arange(3, dtype="f4"),
    ),
    "linspace": lambda x: (np.linspace(0, 1, 7), np.linspace(3, -2, 5, endpoint=False), np.linspace(1, 2, 1)),
    "linspace traced": lambda x: (
        np.linspace(0, x[0, 1], 7),
        np.linspace(x[0], x[1] + 0.3, 5),
        np.linspace(x[0], 1, 3, axis=1),
    ),
    "linspace of one": lambda x: (
        np.linspace(x[0, 0], 9, 1),
        np.linspace(x[0, 1], 9, 0),
        np.linspace(x[0], 9.7, 4, dtype=int),
    ),
    "linspace step": lambda x: np.linspace(0, x[0, 1], 4, retstep=True),
    "linspace of narrow numbers": lambda x: [
        np.linspace(0, start, 4, retstep=True) for start in (x[0, 1].astype("f4"), x[1].astype("f2"))
    ],
    "linspace without steps": lambda x: np.linspace(x[0, 0], 9, 1, retstep=True),
    "fromiter": lambda x: (
        np.fromiter((2 * v for v in x[0]), float),
        np.fromiter(x[1], np.float32, count=2),
        np.fromiter((i * i for i in range(5)), dtype=np.int16),
        np.fromiter({1: x[0, 0], 3: 4}.values(), int, count=-1),
    ),
    "types of lists": lambda x: (np.float32([x[0, 0], 1]), np.int64((x[0, 1], x[1, 1]))),
    "queues": lambda x: (
        np.array(deque(x[0], maxlen=3)),
        np.stack(deque([x[0], x[1]])),
        np.asarray([deque([x[0, 0], 1]), (2, x[0, 1])]),
        np.mean(deque(x[1])) + x[0] * deque(x[1]),
    ),
    "eye": lambda x: (
        np.eye(3),
        np.eye(2, 4, 1),
        np.eye(3, k=-1, dtype="i4"),
        np.identity(2),
        np.eye(3, dtype=bool),
    ),
    "tri": lambda x: (np.tri(3), np.tri(2, 4, 1, dtype=int)),
    "diag": lambda x: (np.diag(x[0]), np.diag(x[0], 2), np.diag(x[:, 0], -1), np.diagflat(x)),
    "like": lambda x: (
        np.zeros_like(x),
        np.ones_like(x, dtype="i2"),
        np.full_like(x, 3),
        np.zeros_like(x, shape=5),
    ),
    "array": lambda x: (np.array([1, 2, 3]), np.array([[1.5], [2]]), np.array(3), np.array([]), np.array(x)),
    "array of traced": lambda x: (
        np.array([x[0], x[1]]),
        np.array([[x[0, 0], 1.0], [2, x[1, 1]]]),
        np.array([x[0]], "i4"),
    ),
    "array ndmin": lambda x: (np.array(x[0], ndmin=2), np.array(5, ndmin=1)),
    "asarray": lambda x: (np.asarray(x), np.asarray(x, "i4"), np.asarray([1, 2]), np.ascontiguousarray(x)),
    "meshgrid": lambda x: (np.meshgrid(x[0], x[:, 0]), np.meshgrid(x[0], x[1], indexing="ij", sparse=True)),
    "meshgrid of constants": lambda x: np.meshgrid(np.arange(3), np.arange(2)),
    "indices": lambda x: (
        np.indices((2, 3)),
        np.indices((2,), dtype="f4"),
        np.mgrid[0:2, 0:3],
        np.ogrid[0:2, 0:3],
    ),
    "r_ and c_": lambda x: (
        np.r_[x[0], 0, [1.5, 2]],
        np.r_[0:3, x[0, 0], -1:1:5j],
        np.r_[1, 2, 3],
        np.c_[x[0], [1, 2, 3, 4]],
        np.c_[x, x[:, 1] > 2],
        x[np.r_[0:2, 0]],
    ),
    "r_ of narrow numbers": lambda x: (
        np.r_[x.astype("f4")[0], 0, 1.5],
        np.r_[np.float32(3), x[0] > 1],
        np.r_[x.astype("u1")[0], 200, x.shape[0]],
    ),
    "r_ with directions": lambda x: (
        np.r_["1", x, x],
        np.r_["0,2", x[0], x],
        np.r_["1,2,0", x[0], x[1]],
        np.r_["0,3,-2", x[0], x[0]],
        np.r_["0,2", 1:3],
    ),
    "fromfunction": lambda x: np.fromfunction(lambda i, j: i * 10 + j, (2, 3)),
    "geomspace": lambda x: (np.geomspace(1, 256, 9), np.logspace(0, 2, 3), np.hanning(5)),
}


@pytest.mark.parametrize("make", MADE.values(), ids=MADE)
def test_made_arrays(make: Function) -> None:
    assert_like_numpy(make, lambda: (grid(3, 4),))


@pytest.mark.parametrize("number", [256, -1])
def test_numbers_beside_narrower_arrays_must_fit(number: int) -> None:
    for program in (lambda x: np.r_[x, number], lambda x, n=number: np.r_[x, n]):
        with pytest.raises(OverflowError, match="out of bounds for uint8"):
            arrayjit.jit(program)(np.arange(3, dtype="u1"))


def test_a_matrix_object_is_refused() -> None:
    with pytest.raises(arrayjit.UnsupportedError, match="matrix objects"):
        arrayjit.jit(lambda x: np.r_["r", x])(grid(3))


def test_made_arrays_take_traced_values() -> None:
    def fill(x: np.ndarray) -> Any:
        table = np.zeros((2, 3))
        table[0] = x[0]
        matrix = np.ndarray((2, 2), dtype=float)
        matrix[:] = np.array([1, 2])
        matrix[0, 1] = x[0, 1]
        row = np.empty_like(x[0])
        row[:] = 5
        weights = np.array([0.25, 0.5, 0.25])
        weights[1] = x[0, 2]
        np.fill_diagonal(matrix, x[1, 1])
        np.copyto(table[1], x[1], where=x[1] > 4)
        np.copyto(row, [[1.0, 2.0, 3.0]], where=x[0] > 1)
        return table, matrix, row, weights

    for _ in range(2):
        assert_like_numpy(fill, lambda: (grid(2, 3),))


CHOSEN: dict[str, Function] = {
    "where": lambda x, y: (
        np.where(x > 3, x, y),
        np.where(x > 3, x, 0),
        np.where(x[0], 1, 0),
        np.where(x > 2, 1.5, y),
    ),
    "where broadcast": lambda x, y: (
        np.where(x[:, :1] > 3, x, y[0]),
        np.where(True, x, y),
        np.where(x[0, 1], 1, x),
    ),
    "clip": lambda x, y: (
        np.clip(x, 2, 7),
        x.clip(3),
        x.clip(max=4),
        np.clip(x, y[0], None),
        np.clip(x, 5, 2),
    ),
    "take": lambda x, y: (np.take(x, [1, -1]), x.take(2, axis=1), np.take(x, [[0, 1]], 0), np.take(x, 7)),
    "take mode": lambda x, y: (np.take(x, [9, -9], 1, mode="wrap"), np.take(x, [9, -9], 0, mode="clip")),
    "take traced": lambda x, y: (np.take(x, (x[0] // 2).astype("i4"), 1), np.take(x, np.argmax(y))),
    "take_along_axis": lambda x, y: (
        np.take_along_axis(x, np.argmax(y, axis=1, keepdims=True), 1),
        np.take_along_axis(x, np.array([[0, 2, 1, 0]]), 0),
    ),
    "select": lambda x, y: (np.select([x > 6, x > 3], [x, y]), np.select([x > 6], [1], -1)),
    "choose": lambda x, y: np.choose(np.array([[0, 1, 1, 0]]), [x, y]),
    "triangles": lambda x, y: (np.tril(x), np.triu(y, 1), np.tril(x, -1), np.triu(x[0])),
    "nan_to_num": lambda x, y: (
        np.nan_to_num(x / y[::-1]),
        np.nan_to_num(x),
        np.nan_to_num(y / x, nan=1, posinf=2),
        np.nan_to_num(y / x, nan=np.float64(1), posinf=x.max()),
    ),
    "isclose": lambda x, y: (
        np.isclose(x, y),
        np.isclose(x / y[::-1], x / y[::-1], equal_nan=True),
        np.isclose(x, 3),
    ),
    "isposinf": lambda x, y: (np.isposinf(x / y), np.isneginf(x / y)),
    "round": lambda x, y: (
        np.round(x / 7, 2),
        (y / 3).round(),
        np.round(x * 13, -1),
        np.around(y / 3, 1),
        np.fix(x / 2),
    ),
    "shape": lambda x, y: (np.shape(x), np.ndim(y), np.size(x, 0)),
}


@pytest.mark.parametrize("choose", CHOSEN.values(), ids=CHOSEN)
@pytest.mark.parametrize("dtypes", [("f8", "f8"), ("i4", "f4"), ("u1", "i8"), ("i8", "i8")], ids=str)
def test_choices(choose: Function, dtypes: tuple[str, str]) -> None:
    assert_like_numpy(choose, lambda: (grid(3, 4, dtype=dtypes[0]), grid(3, 4, dtype=dtypes[1])[::-1].copy()))


def test_rounding_of_bools() -> None:
    truth = np.array([True, False])
    assert_like_numpy(lambda x: (np.round(x), x.round(), np.round(x[0])), lambda: (truth.copy(),))
    for decimals in (-1, 2):
        with pytest.raises(TypeError, match=r"Cannot cast ufunc '(divide|multiply)' output"):
            trace_and_interpret(lambda x, d=decimals: np.round(x, d), truth)


def test_functions_over_ufuncs_fill_a_wider_out() -> None:
    def fill(x: np.ndarray, truth: np.ndarray, out: np.ndarray) -> Any:
        return np.isneginf(x, out=truth), np.isposinf(-x, out), np.fix(x[:1] / 2, out=out[1])

    assert_like_numpy(fill, lambda: (np.array([-np.inf, 5]), np.zeros((3, 2), "?"), grid(3, 2)))


def test_realness_of_numbers_is_a_python_bool() -> None:
    def ask(whole: int, number: complex, scalar: np.float64) -> Any:
        return np.isreal(whole), np.isreal(number), np.isreal(scalar), np.iscomplex(number)

    assert_like_numpy(ask, lambda: (3, 3j, np.float64(3)))


def test_angles_of_real_numbers() -> None:
    def angles(x: np.ndarray) -> Any:
        return np.angle(x), np.angle(x, deg=True), np.angle(x[0])

    for dtype in ("i1", "u1", "i2", "u2", "i4", "?", "f2", "f4", "f8"):
        assert_like_numpy(angles, lambda dtype=dtype: (grid(5, dtype=dtype),))  # type: ignore[misc]


def test_places_of_a_number() -> None:
    def places(x: np.ndarray) -> Any:
        return np.argwhere(x[0]), np.argwhere(x[1]), np.argwhere(x.sum()), np.argwhere(x[:0])

    assert_like_numpy(places, lambda: (np.array([0.0, 2.0]),))


@pytest.mark.parametrize("dtype", ["f8", "f4", "c8", "i8", "i1", "?"])
def test_results_of_ufuncs_are_cast_into_out(dtype: str) -> None:
    def into(x: np.ndarray) -> Any:
        out, other = np.ones(x.shape, dtype), np.ones(x.shape, dtype)
        np.multiply(x, 1.5, out=out, casting="unsafe", where=x > 0)
        np.divmod(x, 2.5, out=(other, None), casting="unsafe")
        return out, other, np.add(x, 1, casting="unsafe")

    assert_like_numpy(into, lambda: (grid(3, 4, dtype="i4"),))


def test_truth_of_comparisons_is_a_python_bool() -> None:
    def compare(x: np.ndarray, y: np.ndarray) -> Any:
        return np.array_equal(x, y), np.array_equal(x, x), np.allclose(x, x + 1e-12), np.array_equal(x, y[:1])

    assert_like_numpy(compare, lambda: (grid(2, 3), grid(2, 3) + 1))


@pytest.mark.parametrize("number", [3, -4, 99])
def test_taking_outside_the_array_raises_when_it_runs(number: int) -> None:
    with pytest.raises(IndexError, match="out of bounds for axis 0 with size 3"):
        trace_and_interpret(lambda x, i: np.take(x, i), grid(3), np.array([0, number]))


@pytest.mark.parametrize(
    ("function", "error"),
    [
        (lambda x: np.arange(x[0, 0]), TypeError),
        (lambda x: np.arange(step=2), TypeError),
        (lambda x: np.zeros(*x.shape), TypeError),
        (lambda x: np.zeros(3, x), TypeError),
        (lambda x: np.zeros(x[0, 0]), TypeError),
        (lambda x: np.zeros(-1), ValueError),
        (lambda x: np.take(x, 1.5), TypeError),
        (lambda x: np.select([x > 1], []), ValueError),
        (lambda x: np.ndarray((2,), buffer=b"0123456789abcdef"), NotImplementedError),
        (lambda x: np.random.normal(size=3), NotImplementedError),
        (lambda x: np.r_[x[0], "0,2"], ValueError),
    ],
)
def test_mistakes(function: Function, error: type[Exception]) -> None:
    with pytest.raises(error, match=r"test_functions_make\.py"):
        trace_and_interpret(function, grid(3, 4))


@pytest.mark.parametrize(
    "function",
    [
        lambda x, n: np.zeros(3, n),
        lambda x, n: np.arange(0, n, 1, n),
        lambda x, n: np.array([1, 2], n),
        lambda x, n: np.ones_like(x, n),
        lambda x, n: x.astype(n),
        lambda x, n: x.sum(dtype=n),
    ],
)
def test_numbers_name_no_dtype(function: Function) -> None:
    for number in (4, 4.5):
        with pytest.raises(TypeError, match=r"Cannot interpret .* as a data type"):
            trace_and_interpret(function, grid(3), number)


def test_scalars_of_numpys_stand_for_their_dtype() -> None:
    def like(x: np.ndarray) -> Any:
        return np.zeros(3, x[0]), np.full(2, 1, x.dtype), np.ones(2, x.dtype.type)

    assert_like_numpy(like, lambda: (grid(3, dtype="f4"),))


@pytest.mark.parametrize("dtype", ["?", "i1", "u1", "i4", "f4", "f8"])
def test_clip_computes_in_the_dtype_of_all_three(dtype: str) -> None:
    x = np.array([0, 1, 3, 2], dtype)
    for low in (x, np.array([1, 1, 1, 1], "i1"), np.array([0.5, 0, 2, 2], "f4"), -1, 300, 0.5):
        for high in (x, np.array([2, 2, 2, 2], "u1"), np.array([1.5, 2, 2, 1], "f4"), 2, 300, 1.5):
            try:
                np.clip(x, low, high)
            except OverflowError:
                with pytest.raises(OverflowError):
                    trace_and_interpret(lambda x: np.clip(x, low, high), x)  # noqa: B023
            else:
                assert_like_numpy(lambda x: np.clip(x, low, high), lambda: (x.copy(),))  # noqa: B023


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("length", [5, 5000])
@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.uint32, np.uint64, np.int64])
def test_numbers_that_fall_below_zero_and_those_without_a_sign(dtype: type, length: int) -> None:
    last = max(0, 5 - length) if np.iinfo(dtype).min == 0 else -min(length, 90)

    def falling(x: np.ndarray) -> np.ndarray:
        return x + np.arange(5, last, -1, dtype=dtype)

    x = np.arange(5 - last).astype(dtype)
    np.testing.assert_array_equal(arrayjit.jit(falling)(x), falling(x))


@pytest.mark.parametrize("first", [2**64 - 9, 5000])
def test_large_numbers_without_a_sign(first: int) -> None:
    def falling(x: np.ndarray) -> np.ndarray:
        return x + np.arange(first, first - 4000, -4, dtype=np.uint64)

    x = np.arange(1000, dtype=np.uint64)
    np.testing.assert_array_equal(arrayjit.jit(falling)(x), falling(x))
