"""`np.linalg`: solutions and factors, LAPACK's to rounding, of programs as long for any large matrix."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import likeness
import numpy as np
import pytest
from refusing import assert_raises_like_numpy
from rolling import TARGETS, length

import arrayjit

Function = Callable[..., Any]
assert_near_numpy = partial(likeness.assert_near_numpy, units=200)


def numbers(*shape: int, dtype: str = "f8") -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(dtype)


def positive(*shape: int) -> np.ndarray:
    given = numbers(*shape)
    return given @ np.swapaxes(given, -1, -2) + np.eye(shape[-1])


@pytest.mark.parametrize("size", [1, 7, 47, 48, 53])
def test_square_matrices(size: int) -> None:
    """Large ones by a few columns at a time, of which some may be left over."""
    matrix, right = numbers(size, size), numbers(size, 3)
    assert_near_numpy(lambda a, b: np.linalg.solve(a, b), matrix, right)
    assert_near_numpy(lambda a, b: np.linalg.solve(a, b[:, 0]), matrix, right)
    assert_near_numpy(lambda a: np.linalg.inv(a), matrix)
    assert_near_numpy(lambda a: np.linalg.det(a), matrix)
    assert_near_numpy(lambda a: np.linalg.slogdet(a), matrix)


@pytest.mark.parametrize("size", [2, 3, 4])
@pytest.mark.parametrize("dtype", ["f4", "f8", "c16"])
def test_matrices_of_few_cells(size: int, dtype: str) -> None:
    """Alone, in stacks, and with right sides that are repeated or repeat them."""
    stack = numbers(5, size, size).astype(dtype)
    stack = stack + 1j * stack[::-1].mT if dtype == "c16" else stack
    for given in (stack, stack[1]):
        assert_near_numpy(lambda a: np.linalg.inv(a), given)
        assert_near_numpy(lambda a: np.linalg.det(a), given)
        assert_near_numpy(lambda a: np.linalg.slogdet(a), given)
        squares = given @ given.conj().mT + np.eye(size, dtype=dtype)
        assert_near_numpy(lambda a: np.linalg.cholesky(a), squares)
        assert_near_numpy(lambda a: np.linalg.cholesky(a, upper=True), squares)
        assert_near_numpy(lambda a, b: np.linalg.solve(a, b), given, stack[0, 0])
        assert_near_numpy(lambda a, b: np.linalg.solve(a, b), given, stack[..., :1])


def test_a_stack_of_matrices_of_few_cells_goes_in_vectors() -> None:
    matrices = positive(64, 4, 4)
    for function in (np.linalg.inv, np.linalg.det, np.linalg.cholesky):
        assert "in vector(" in arrayjit.jit(function).lower(matrices).as_text("optimized")
        assert_near_numpy(lambda a, function=function: function(a), matrices)
    several = arrayjit.jit(lambda a: np.linalg.inv(a), any_length="a")
    for length_ in (3, 11, 64):
        np.testing.assert_allclose(several(matrices[:length_]), np.linalg.inv(matrices[:length_]), rtol=1e-9)
    matrices[7, 2, 2] = 0
    with pytest.raises(np.linalg.LinAlgError, match="not positive definite"):
        arrayjit.jit(np.linalg.cholesky)(matrices)


def test_what_is_no_number_is_no_pivot() -> None:
    """As LAPACK compares: the zero above it is one."""
    with pytest.raises(np.linalg.LinAlgError, match="Singular matrix"):
        arrayjit.jit(np.linalg.inv)(np.array([[0.0, 1.0], [np.nan, 1.0]]))


def test_powers() -> None:
    for power in (-3, -1, 6, 7):
        assert_near_numpy(lambda a, power=power: np.linalg.matrix_power(a, power), numbers(4, 4))


def test_float16_is_refused() -> None:
    words = "array type float16 is unsupported in linalg"
    for function in (np.linalg.inv, np.linalg.det, np.linalg.cholesky, np.linalg.qr):
        assert_raises_like_numpy(lambda a, function=function: function(a), words, numbers(3, 3, dtype="f2"))


@pytest.mark.parametrize("size", [1, 7, 152, 155])
def test_roots(size: int) -> None:
    assert_near_numpy(lambda a: np.linalg.cholesky(a), positive(size, size))
    assert_near_numpy(lambda a: np.linalg.cholesky(a, upper=True), positive(size, size))


def test_a_large_stack_of_complex_matrices() -> None:
    matrices = numbers(2, 50, 50) + 1j * numbers(50, 50, 2).T
    assert_near_numpy(lambda a: np.linalg.inv(a), matrices)
    assert_near_numpy(lambda a: np.linalg.slogdet(a), matrices)


def test_large_matrices_without_an_inverse_or_a_root() -> None:
    singular = numbers(60, 60)
    singular[55] = 2 * singular[3]
    singular[:, 20] = 0
    with pytest.raises(np.linalg.LinAlgError, match="Singular matrix"):
        arrayjit.jit(np.linalg.inv)(singular)
    assert arrayjit.jit(np.linalg.det)(singular) == 0
    indefinite = positive(160, 160)
    indefinite[157, 157] = -1
    with pytest.raises(np.linalg.LinAlgError, match="not positive definite"):
        arrayjit.jit(np.linalg.cholesky)(indefinite)


@pytest.mark.parametrize("cell", [np.nan, np.inf])
@pytest.mark.parametrize("place", [(0, 0), (3, 1), (6, 6)])
@pytest.mark.filterwarnings("ignore:invalid value")
def test_roots_of_what_is_no_number(place: tuple[int, int], cell: float) -> None:
    matrix = 9 * np.eye(7)
    matrix[place] = cell
    np.testing.assert_array_equal(arrayjit.jit(np.linalg.cholesky)(matrix), np.linalg.cholesky(matrix))


@pytest.mark.parametrize("mode", ["reduced", "complete", "r"])
@pytest.mark.parametrize("shape", [(7, 3), (3, 7), (1, 1)])
@pytest.mark.parametrize("dtype", ["f8", "c16"])
def test_orthogonal_factors(shape: tuple[int, int], mode: str, dtype: str) -> None:
    matrix = numbers(*shape)
    assert_near_numpy(
        lambda a: np.linalg.qr(a, mode), matrix + 1j * matrix[::-1] if dtype == "c16" else matrix
    )


@pytest.mark.parametrize("dtype", ["f8", "c16"])
def test_orthogonal_factors_of_columns_whose_squares_no_float_holds(dtype: str) -> None:
    matrix = (numbers(5, 5) + 1j * numbers(5, 5).T if dtype == "c16" else numbers(5, 5)) * [
        1e-300,
        1e-160,
        1,
        1e160,
        1e300,
    ]
    factors = arrayjit.jit(lambda a: np.linalg.qr(a))(matrix)
    wanted = np.linalg.qr(matrix)
    np.testing.assert_allclose(factors.Q, wanted.Q, atol=1e-14)
    np.testing.assert_allclose(factors.R, wanted.R, rtol=1e-12)


STACKS: dict[str, Function] = {
    "solve": lambda a, b: np.linalg.solve(a, b),
    "solve with one matrix": lambda a, b: np.linalg.solve(a[0], b),
    "solve for one right side": lambda a, b: np.linalg.solve(a, b[0]),
    "solve for a vector": lambda a, b: np.linalg.solve(a, b[0, :, 0]),
    "inv": lambda a, b: np.linalg.inv(a),
    "tensorinv": lambda a, b: np.linalg.tensorinv(a[0].reshape(2, 2, 4)),
    "det": lambda a, b: np.linalg.det(a),
    "slogdet": lambda a, b: np.linalg.slogdet(a),
    "cholesky": lambda a, b: np.linalg.cholesky(a @ np.swapaxes(a, 1, 2) + np.eye(4)),
    "qr": lambda a, b: np.linalg.qr(b),
}


@pytest.mark.parametrize("program", STACKS.values(), ids=STACKS)
@pytest.mark.parametrize("count", [7])
def test_stacks_of_matrices(program: Function, count: int) -> None:
    assert_near_numpy(program, numbers(count, 4, 4), numbers(count, 4, 2))


@pytest.mark.parametrize("shape", [(0, 0), (0, 3, 3), (2, 0, 0)], ids=str)
def test_nothing_to_solve(shape: tuple[int, ...]) -> None:
    def program(a: np.ndarray) -> Any:
        factors = np.linalg.qr(a)
        return np.linalg.inv(a), np.linalg.det(a), np.linalg.solve(a, a), np.linalg.cholesky(a), factors.Q

    assert_near_numpy(program, np.zeros(shape))


def test_dtypes() -> None:
    whole = np.array([[2, 1, 0], [1, 3, 1], [0, 1, 4]])
    # After a reflection no cell of their diagonal is so small that rounding decides its sign.
    flags = np.array([[True, False, True], [True, True, False], [False, True, True]])
    for matrix in (whole, whole.astype("f4"), whole.astype("i4"), flags):
        assert_near_numpy(lambda a: np.linalg.solve(a.astype("f4"), a[0]), matrix)
        assert_near_numpy(lambda a: np.linalg.det(a), matrix)
        assert_near_numpy(lambda a: np.linalg.qr(a), matrix)
    assert_near_numpy(lambda a: np.linalg.cholesky(a), whole)


def test_pivots() -> None:
    """Without exchanges of rows the first of these divides by zero."""
    swapped = np.array([[0.0, 2, 1], [3, 0, 1], [1, 1, 0]])
    assert_near_numpy(lambda a: np.linalg.inv(a), swapped)
    assert_near_numpy(lambda a: np.linalg.slogdet(a), -swapped)


def test_a_determinant_may_be_zero() -> None:
    singular = np.array([[1.0, 2, 3], [2, 4, 6], [0, 1, 0]])
    assert_near_numpy(lambda a: np.linalg.det(a), singular)
    assert_near_numpy(lambda a: np.linalg.slogdet(a), np.zeros((5, 5)))


@pytest.mark.parametrize("sizes", [(6, 40), (153, 601)], ids=["small", "by a few columns"])
def test_loops_are_kept(sizes: tuple[int, int]) -> None:
    def solve(a: np.ndarray) -> Any:
        return np.linalg.solve(a, a[0])

    for program in (solve, np.linalg.det, np.linalg.qr, np.linalg.cholesky):
        few, many = (length(lambda a, f=program: f(a), np.eye(size)) for size in sizes)
        assert few == many


def test_views_of_the_factors_are_written() -> None:
    def corner(a: np.ndarray) -> Any:
        a[:3, :3] = np.linalg.inv(a[:3, :3])
        return a

    matrix = positive(5, 5)
    wanted = corner(matrix.copy())
    for target in TARGETS:
        ours = matrix.copy()
        assert arrayjit.jit(corner, target=target)(ours) is ours
        np.testing.assert_allclose(ours, wanted, rtol=1e-12)


MISTAKES: dict[str, tuple[Function, np.ndarray, str]] = {
    "singular": (lambda a: np.linalg.inv(a), np.ones((3, 3)), "Singular matrix"),
    "negative": (lambda a: np.linalg.cholesky(a), -np.eye(6), "Matrix is not positive definite"),
    "oblong": (lambda a: np.linalg.det(a), np.ones((3, 4)), "Last 2 dimensions of the array must be square"),
    "a vector": (lambda a: np.linalg.inv(a), np.ones(3), "Array must be at least two-dimensional"),
}


@pytest.mark.parametrize(("program", "matrix", "words"), MISTAKES.values(), ids=MISTAKES)
def test_mistakes_are_numpys(program: Function, matrix: np.ndarray, words: str) -> None:
    with pytest.raises(np.linalg.LinAlgError, match=words):
        program(matrix)
    for target in TARGETS:
        with pytest.raises(np.linalg.LinAlgError, match=words) as raised:
            arrayjit.jit(program, target=target)(matrix)
        assert isinstance(raised.value, arrayjit.UserError)
        assert raised.value.loc is not None
        assert raised.value.loc.file == __file__


def test_right_sides_have_a_row_for_each_equation() -> None:
    for target in TARGETS:
        with pytest.raises(ValueError, match="mismatch in its core dimension"):
            arrayjit.jit(lambda a, b: np.linalg.solve(a, b), target=target)(np.eye(3), np.ones(4))
