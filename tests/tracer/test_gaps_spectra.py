"""`np.linalg`: eigenvalues, singular values and what is built on them, also of difficult matrices."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from likeness import assert_near_numpy
from rolling import TARGETS, length

import arrayjit

Function = Callable[..., Any]
ROOM = 100 * np.finfo(np.float64).eps
random = np.random.default_rng(8)


@pytest.fixture(autouse=True)
def drawn_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """A test draws the same matrices, whatever ran before it: how exact results are is a matter of these."""
    monkeypatch.setattr(sys.modules[__name__], "random", np.random.default_rng(8))


def numbers(*shape: int, dtype: str = "f8") -> np.ndarray:
    cells = random.standard_normal(shape)
    return (cells + 1j * random.standard_normal(shape) if dtype[0] == "c" else cells).astype(dtype)


def room_for(dtype: np.dtype[Any]) -> float:
    return 100 * float(np.finfo(dtype).eps)


def assert_unitary(columns: np.ndarray) -> None:
    room = room_for(columns.dtype)
    product = columns.mT.conj() @ columns
    np.testing.assert_allclose(product, np.broadcast_to(np.eye(product.shape[-1]), product.shape), atol=room)


def assert_decomposed(matrices: np.ndarray, target: str) -> None:
    """Both decompositions: values are NumPy's, vectors are orthogonal, and their product is the matrix."""
    sums = (matrices + matrices.mT.conj()) / 2
    values, vectors = arrayjit.jit(lambda a: np.linalg.eigh(a), target=target)(sums)
    left, sizes, right = arrayjit.jit(lambda a: np.linalg.svd(a), target=target)(matrices)
    wanted = np.linalg.eigh(sums), np.linalg.svd(matrices)
    for ours, theirs in ((values, wanted[0][0]), (sizes, wanted[1][1])):
        assert ours.dtype == theirs.dtype
        limit = room_for(ours.dtype) * np.max(np.abs(theirs), initial=np.finfo(ours.dtype).tiny)
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=limit)
    scale = np.max(np.abs(matrices), initial=0) or 1
    room = room_for(values.dtype) * max(1, *matrices.shape)
    np.testing.assert_allclose(
        vectors * (values / scale)[..., None, :] @ vectors.mT.conj(), sums / scale, atol=room
    )
    np.testing.assert_allclose(left * (sizes / scale)[..., None, :] @ right, matrices / scale, atol=room)
    for unitary in (vectors, left, right.mT):
        assert unitary.dtype == matrices.dtype
        assert_unitary(unitary)


@pytest.mark.parametrize("dtype", ["f8", "f4", "c16"])
def test_matrices_are_decomposed(dtype: str) -> None:
    for target in TARGETS:
        assert_decomposed(numbers(5, 5, dtype=dtype), target)
    assert_decomposed(numbers(2, 3, 12, 12, dtype=dtype), "sync_llvm")


@pytest.mark.parametrize("dtype", ["f8", "f4", "c16"])
def test_matrices_of_two_rows(dtype: str) -> None:
    """Their one rotation has values that coincide, or are in order already, and sizes that are all but too
    large or too small to be squared."""
    matrices = numbers(13, 2, 2, dtype=dtype)
    tiny, huge = float(np.finfo(dtype).tiny), float(np.finfo(dtype).max) / 4
    for place, cells in enumerate(
        ([0, 0, 0, 0], [1, 0, 0, 1], [1, 1, 1, 1], [2, 0, 0, 1], [1, 0, 0, 2], [-1, 5, 5, -1], [3, -1, -1, 3])
    ):
        matrices[place] = np.reshape(cells, (2, 2))
    matrices[7], matrices[8] = tiny * matrices[9], huge * matrices[2]
    matrices[10] = [[1, tiny / 8], [tiny / 8, 1]]
    for target in TARGETS:
        assert_decomposed(np.delete(matrices, [7, 8], axis=0), target)
    for extreme in matrices[7:9]:
        assert_decomposed(extreme, "sync_llvm")
    text = (
        arrayjit.jit(lambda a: np.linalg.eigh(a)).lower(numbers(64, 2, 2, dtype=dtype)).as_text("optimized")
    )
    assert "in vector(" in text


def orthogonal(size: int) -> np.ndarray:
    return np.linalg.qr(numbers(size, size))[0]


def difficult(size: int) -> dict[str, np.ndarray]:
    one, other = orthogonal(size), orthogonal(size)
    numbered = np.arange(size)
    return {
        "zeros": np.zeros((size, size)),
        "ones": np.ones((size, size)),
        "one": np.eye(size),
        "orthogonal": one,
        "of rank one": np.outer(one[0], other[0]),
        "of half the rank": one[:, : size // 2] @ other[: size // 2],
        "nearly of rank one": np.ones((size, size)) + 1e-15 * one,
        "graded": (one * 10.0 ** (-9 * numbered / size)) @ other,
        "graded rows": one * 10.0 ** (-180 * numbered / size)[:, None],
        "graded columns": one * 10.0 ** (180 * numbered / size),
        "repeated": (one * np.repeat([1, 2, 3], size // 3)) @ one.T,
        "Hilbert's": 1 / (numbered[:, None] + numbered + 1),
        "Kahan's": np.triu(-0.9 * np.ones((size, size)), 1) + np.diag(0.4**numbered),
        "diagonal": np.diag(numbered - 3.0),
        "reversed": np.eye(size)[::-1],
        "tridiagonal": np.diag(np.ones(size - 1), 1) + np.diag(np.ones(size - 1), -1),
        "with zeros on its diagonal": np.diag(numbered % 3.0) + np.eye(size, k=1),
        "Wilkinson's": np.diag(abs(numbered - size // 2.0)) + np.eye(size, k=1) + np.eye(size, k=-1),
        "integers": random.integers(-2, 3, (size, size)).astype(float),
        "sparse": (random.random((size, size)) < 0.1).astype(float),
        "equal rows": np.repeat(one[:1], size, 0),
        "a row of zeros": np.vstack([one[:-1], 0 * one[:1]]),
        "huge": one * 1e307,
        "tiny": one * 1e-308,
    }


@pytest.mark.parametrize("size", [6, 9, 24])
def test_difficult_matrices(size: int) -> None:
    """All of one shape, so that they are compiled once; few columns are rotated, more of them reflected."""
    room = ROOM * max(1, size / 9)
    eigh = arrayjit.jit(lambda a: np.linalg.eigh(a))
    eigvalsh = arrayjit.jit(lambda a: np.linalg.eigvalsh(a))
    svd = arrayjit.jit(lambda a: np.linalg.svd(a))
    svdvals = arrayjit.jit(lambda a: np.linalg.svdvals(a))
    for name, matrix in difficult(size).items():
        scale = np.abs(matrix).max() or 1.0
        sums = (matrix / scale + matrix.T / scale) * scale / 2
        wanted, wanted_sizes = np.linalg.eigvalsh(sums) / scale, np.linalg.svdvals(matrix) / scale
        (values, vectors), (left, sizes, right) = eigh(sums), svd(matrix)
        for ours in (values, eigvalsh(sums)):
            np.testing.assert_allclose(ours / scale, wanted, rtol=0, atol=room, err_msg=name)
        for ours in (sizes, svdvals(matrix)):
            np.testing.assert_allclose(ours / scale, wanted_sizes, rtol=0, atol=room, err_msg=name)
        np.testing.assert_allclose(vectors * (values / scale) @ vectors.T, sums / scale, atol=room)
        np.testing.assert_allclose(left * (sizes / scale) @ right, matrix / scale, atol=room, err_msg=name)
        for unitary in (vectors, left, right):
            assert_unitary(unitary)


def test_singular_values_keep_their_leading_digits() -> None:
    """Of a matrix whose columns are small by themselves; LAPACK finds the least to the largest's rounding."""
    scales = 10.0 ** (-5.0 * np.arange(4))
    matrix = orthogonal(4) * scales
    got = arrayjit.jit(lambda a: np.linalg.svdvals(a))(matrix)
    np.testing.assert_allclose(got, scales, rtol=1e-14)


@pytest.mark.parametrize("shape", [(6, 3), (3, 6), (1, 4), (4, 1), (2, 5, 2)], ids=str)
def test_oblong_matrices(shape: tuple[int, ...]) -> None:
    matrices = numbers(*shape)
    for is_full in (True, False):
        left, sizes, right = arrayjit.jit(lambda a, f=is_full: np.linalg.svd(a, f))(matrices)
        wanted = np.linalg.svd(matrices, is_full)
        assert (left.shape, sizes.shape, right.shape) == tuple(part.shape for part in wanted)
        np.testing.assert_allclose(sizes, wanted.S, rtol=ROOM, atol=ROOM)
        least = sizes.shape[-1]
        product = left[..., :least] * sizes[..., None, :] @ right[..., :least, :]
        np.testing.assert_allclose(product, matrices, atol=ROOM)
        assert_unitary(left)
        assert_unitary(right.mT)


def test_which_triangle_is_read() -> None:
    def program(a: np.ndarray) -> Any:
        return np.linalg.eigvalsh(a), np.linalg.eigvalsh(a, "U"), np.linalg.eigh(a, UPLO="u").eigenvalues

    assert_near_numpy(program, numbers(4, 4))
    assert_near_numpy(program, numbers(3, 3, dtype="c16"))
    assert_near_numpy(program, random.integers(-5, 5, (3, 3)))


def test_hermitian_matrices_have_singular_values_by_their_eigenvalues() -> None:
    def program(a: np.ndarray) -> Any:
        left, sizes, right = np.linalg.svd(a, hermitian=True)
        sizes_alone = np.linalg.svd(a, compute_uv=False, hermitian=True)
        return left * sizes @ right, sizes, sizes_alone, np.linalg.pinv(a, hermitian=True)

    matrix = numbers(4, 4, dtype="c16")
    assert_near_numpy(program, matrix + matrix.T.conj())


@pytest.mark.parametrize("shape", [(0, 0), (0, 3), (3, 0), (2, 0, 2), (0, 2, 2)], ids=str)
def test_of_nothing(shape: tuple[int, ...]) -> None:
    assert_near_numpy(lambda a: tuple(np.linalg.svd(a)), np.zeros(shape))
    assert_near_numpy(lambda a: (np.linalg.pinv(a), np.linalg.svdvals(a)), np.zeros(shape))
    if shape[-1] == shape[-2]:
        assert_near_numpy(lambda a: (*np.linalg.eigh(a), np.linalg.eigvalsh(a)), np.zeros(shape))


def test_loops_are_kept() -> None:
    for program in (np.linalg.eigh, np.linalg.svd, np.linalg.pinv):
        few, many = (length(lambda a, f=program: f(a), np.eye(size)) for size in (600, 900))
        assert few == many


BUILT_ON_THEM: dict[str, Function] = {
    "ranks": lambda a: (
        np.linalg.matrix_rank(a), np.linalg.matrix_rank(a, tol=2.0), np.linalg.matrix_rank(a, rtol=0.3)
    ),
    "pseudo-inverses": lambda a: (
        np.linalg.pinv(a), np.linalg.pinv(a, 0.3), np.linalg.pinv(a, rtol=None)
    ),
    "norms": lambda a: (
        np.linalg.norm(a, 2, axis=(-2, -1)), np.linalg.norm(a, -2, axis=(-1, -2)),
        np.linalg.norm(a, "nuc", axis=(0, -1), keepdims=True), np.linalg.matrix_norm(a, ord=2),
    ),
    "condition numbers": lambda a: (np.linalg.cond(a), np.linalg.cond(a, -2)),
}  # fmt: skip


@pytest.mark.parametrize("program", BUILT_ON_THEM.values(), ids=BUILT_ON_THEM)
def test_what_singular_values_tell(program: Function) -> None:
    assert_near_numpy(program, numbers(4, 3))
    assert_near_numpy(program, numbers(2, 3, 4, dtype="c8"))
    if program is not BUILT_ON_THEM["pseudo-inverses"]:  # NumPy has no least `rtol` for integers
        assert_near_numpy(program, np.array([[2, 0, 1], [0, 3, 4], [2, 3, 6]]))


def test_what_has_no_inverse_is_infinitely_ill_conditioned() -> None:
    def program(a: np.ndarray) -> Any:
        return (*(np.linalg.cond(a, p) for p in (1, -1, "fro")), np.linalg.matrix_rank(a[0]))

    stack = np.array([[[1.0, 2], [3, 4]], [[1, 2], [2, 4]], [[0, 0], [0, 0]], [[np.nan, 1], [1, 1]]])
    with np.errstate(invalid="ignore"):
        assert_near_numpy(lambda a: program(a), stack)
    assert_near_numpy(lambda a: np.linalg.matrix_rank(a.sum()), stack[0])


SYSTEMS = {
    "high": numbers(6, 3),
    "wide": numbers(3, 6),
    "square": numbers(3, 3),
    "of lesser rank": np.outer(numbers(5), [1, 2, 3]),
    "integers": random.integers(-4, 5, (4, 2)),
    "complex": numbers(5, 2, dtype="c16"),
    "short floats": numbers(5, 2, dtype="f4"),
    "nothing": np.zeros((0, 2)),
}


@pytest.mark.parametrize("matrix", SYSTEMS.values(), ids=SYSTEMS)
def test_least_squares(matrix: np.ndarray) -> None:
    right = numbers(len(matrix), 2)
    assert_near_numpy(lambda a, b: np.linalg.lstsq(a, b), matrix, right)
    assert_near_numpy(lambda a, b: np.linalg.lstsq(a, b[:, 0], rcond=0.4), matrix, right.astype("f4"))


def test_the_rank_decides_in_the_run_whether_there_are_residuals() -> None:
    fitted = arrayjit.jit(lambda a, b: np.linalg.lstsq(a, b, rcond=-1))
    for matrix in (SYSTEMS["high"], np.ones((6, 3)), 0 * SYSTEMS["high"]):
        wanted = np.linalg.lstsq(matrix, np.arange(6.0), rcond=1e-12)
        fitted = arrayjit.jit(lambda a, b: np.linalg.lstsq(a, b, rcond=1e-12))
        got = fitted(matrix, np.arange(6.0))
        assert got[1].shape == wanted[1].shape
        assert got[2] == wanted[2]
        np.testing.assert_allclose(got[0], wanted[0], atol=ROOM)


FITS: dict[str, Function] = {
    "a line": lambda x, y: np.polyfit(x, y, 1),
    "a number": lambda x, y: np.polyfit(x, y, 0),
    "a cubic": lambda x, y: np.polyval(np.polyfit(x, y, 3), x),
    "columns": lambda x, y: np.polyfit(x, np.stack([y, y * y], 1), 2),
    "weights": lambda x, y: np.polyfit(x, y, 2, w=1 + np.abs(y)),
    "all": lambda x, y: np.polyfit(x, y, 2, full=True)[:4],
    "covariances": lambda x, y: np.polyfit(x, y, 1, cov=True),
    "unscaled covariances": lambda x, y: np.polyfit(x, np.stack([y, y]).T, 1, cov="unscaled"),
}


@pytest.mark.parametrize("program", FITS.values(), ids=FITS)
def test_polynomials_are_fitted(program: Function) -> None:
    places = np.linspace(-1, 2, 12)
    assert_near_numpy(program, places, np.sin(places))


def test_fits_of_what_only_the_run_selects() -> None:
    def program(x: np.ndarray, y: np.ndarray) -> Any:
        slopes = np.empty(len(x))
        for i in range(len(x)):
            near = slice(max(0, i - 2), min(len(x), i + 3))
            slopes[i] = np.polyfit(x[near] - x[i], y[near], 1)[0]
        chosen = y > -0.5
        line = np.linalg.lstsq(np.vander(x[chosen], 2), y[chosen])[0]
        return slopes, np.polyfit(x[chosen], y[chosen], 2), line

    places = np.linspace(-1, 2, 12)
    assert_near_numpy(program, places, np.sin(places))
    assert length(program, places, places) == length(program, *2 * [np.linspace(0, 1, 120)])
    few = arrayjit.jit(lambda x, y: np.linalg.lstsq(np.vander(x[y > 0], 3), y[y > 0]))
    for heights in (places[::-1], places, places - 1.8):
        got, wanted = few(places, heights), few.__wrapped__(places, heights)
        assert [np.shape(part) for part in got] == [np.shape(part) for part in wanted]
        for ours, theirs in zip(got, wanted, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=ROOM)


MISTAKES: dict[str, tuple[Function, type[Exception], str]] = {
    "NaN": (lambda a: np.linalg.svd(a * np.nan), np.linalg.LinAlgError, "SVD did not converge"),
    "eigenvalues of NaN": (
        lambda a: np.linalg.eigh(a * np.nan), np.linalg.LinAlgError, "Eigenvalues did not converge"
    ),
    "a vector": (lambda a: np.linalg.svd(a[0]), np.linalg.LinAlgError, "must be at least two-dimensional"),
    "oblong": (lambda a: np.linalg.eigh(a[:2]), np.linalg.LinAlgError, "must be square"),
    "no triangle": (lambda a: np.linalg.eigh(a, "X"), ValueError, "UPLO argument must be 'L' or 'U'"),
    "two limits": (lambda a: np.linalg.pinv(a, 1.0, rtol=2.0), ValueError, "can't be both set"),
    "limits of ranks": (lambda a: np.linalg.matrix_rank(a, 1.0, rtol=2.0), ValueError, "can't be both set"),
    "no equations": (lambda a: np.linalg.lstsq(a, a[:2]), np.linalg.LinAlgError, "Incompatible dimensions"),
    "no matrix": (lambda a: np.linalg.lstsq(a[0], a), np.linalg.LinAlgError, "must be two-dimensional"),
    "no cells": (lambda a: np.linalg.cond(a[:0]), np.linalg.LinAlgError, "not defined on empty arrays"),
    "a norm": (lambda a: np.linalg.norm(a, 3), ValueError, "Invalid norm order for matrices"),
    "a degree": (lambda a: np.polyfit(a[0], a[0], -1), ValueError, "expected deg >= 0"),
    "places": (lambda a: np.polyfit(a, a, 1), TypeError, "expected 1D vector for x"),
    "heights": (lambda a: np.polyfit(a[0], a[0, :2], 1), TypeError, "x and y to have same length"),
    "weights": (lambda a: np.polyfit(a[0], a[0], 1, w=a[0, :2]), TypeError, "w and y to have"),
    "samples": (lambda a: np.polyfit(a[0, :0], a[0, :0], 1), TypeError, "expected non-empty vector for x"),
    "covariances": (lambda a: np.polyfit(a[0], a[0], 2, cov=True), ValueError, "must exceed order"),
}  # fmt: skip


@pytest.mark.parametrize(("program", "kind", "words"), MISTAKES.values(), ids=MISTAKES)
def test_mistakes_are_numpys(program: Function, kind: type[Exception], words: str) -> None:
    matrix = np.array([[2.0, 1, 0], [1, 3, 1], [0, 1, 5]])
    with pytest.raises(kind, match=words):
        program(matrix)
    with pytest.raises(kind, match=words) as raised:
        arrayjit.jit(program)(matrix)
    assert isinstance(raised.value, arrayjit.UserError)
    assert raised.value.loc is not None
    assert raised.value.loc.file == __file__
