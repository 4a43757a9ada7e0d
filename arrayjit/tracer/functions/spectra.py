"""`np.linalg`: eigenvalues of Hermitian matrices and singular values of any, with their vectors, as NumPy
programs whose loops are recorded.

Hermitian matrices are reflected onto three diagonals (Householder), which rotations make one: implicit QL
steps with Wilkinson's shifts (Martin and Wilkinson, The implicit QL algorithm, 1968); of two rows by one
rotation. Matrices of more than a few columns have their singular values by way of two diagonals
(`bidiagonal`). Those of few columns are the lengths that the rows of a triangular factor have once rotations
of two of them at a time have made all orthogonal to one another (Hestenes, Inversion of matrices by
biorthogonalization, 1958), and keep their leading digits, however small. All go on until nothing is left but
rounding, and compute in float64 as NumPy does: values are LAPACK's to 100 units in the last place of the
largest. Vectors are unique but for their signs, or phases, which are not LAPACK's; where values coincide,
those of one are any basis of their space.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import ShapeError
from ..loops.control import cond, while_loop
from ..record.registry import implements
from ..values.elementwise import as_array
from .adopted import numpy_program
from .bidiagonal import diagonalised, reflection, rotation
from .factorisations import (
    floats_of,
    is_nothing,
    qr,
    require,
    require_matrices,
    require_square,
    scale_of,
    stacked_to,
)
from .parts import squares

__all__ = ["svd", "wide_floats_of"]

_FEW = 8
"""Columns up to which rotations of rows find singular values, and vectors in 0.7 of the time of LAPACK's."""

_STEPS, _SWEEPS = 30, 60
"""How many steps a row may take, and how many times every two rows may be rotated; LAPACK allows as many."""

# NumPy keeps the types of its results to itself.
EighResult = type(np.linalg.eigh(np.eye(1)))
SVDResult = type(np.linalg.svd(np.eye(1)))


@implements(np.linalg.eigh)
@numpy_program
def eigh(a: Any, UPLO: str = "L") -> Any:  # noqa: N803
    """Eigenvalues in ascending order, with eigenvectors as columns, from the `UPLO` triangles."""
    return EighResult(*_of_hermitian(a, UPLO, True))


@implements(np.linalg.eigvalsh)
@numpy_program
def eigvalsh(a: Any, UPLO: str = "L") -> Any:  # noqa: N803
    return _of_hermitian(a, UPLO, False)[0]


@numpy_program
def _of_hermitian(a: Any, uplo: str, wants_vectors: bool) -> Any:
    side = uplo.upper()
    if side not in ("L", "U"):
        words = "UPLO argument must be 'L' or 'U'"
        raise ShapeError(words, fix="use UPLO='L', which is the default")
    matrices, result_dtype = wide_floats_of(a)
    require_square(matrices)
    n, lead = matrices.shape[-1], matrices.shape[:-2]
    lower = np.tril(stacked_to(matrices if side == "L" else matrices.mT.conj(), lead))
    values = np.zeros(lower.shape[:2], np.float64)
    vectors = np.zeros(lower.shape, matrices.dtype)
    if type(n) is int and n == 2:
        _turned_once(lower, values, vectors)
    else:
        for k in range(len(lower) if n > 0 else 0):
            _diagonalised(lower[k], wants_vectors, values[k], vectors[k])
    values = values.reshape((*lead, n)).astype(np.empty(0, result_dtype).real.dtype, copy=False)
    return values, vectors.reshape(matrices.shape).astype(result_dtype, copy=False)


@numpy_program
def _turned_once(lower: Any, values: Any, vectors: Any) -> None:
    """The same of matrices of two rows, which one rotation makes diagonal (Jacobi): many go side by side."""
    first, beside, second = lower[:, 0, 0].real, lower[:, 1, 0], lower[:, 1, 1].real
    gap, size = second / 4 - first / 4, np.abs(beside)
    reach = np.abs(gap) + np.hypot(gap, size / 2)
    tangent = np.copysign(size / 2 / np.where(reach == 0, 1, reach), gap)
    first, second = first - tangent * size, second + tangent * size
    is_ascending = first <= second
    values[:, 0] = np.where(is_ascending, first, second)
    values[:, 1] = np.where(is_ascending, second, first)
    cosine = 1 / np.sqrt(1 + tangent * tangent)
    sine = tangent * cosine
    lifted = np.where(size < 1, beside * 2.0**60, beside)
    phase = np.where(size == 0, 1, lifted / np.where(size == 0, 1, np.abs(lifted)))
    vectors[:, 0, 0] = np.where(is_ascending, cosine, sine)
    vectors[:, 1, 0] = np.where(is_ascending, -sine, cosine) * phase
    vectors[:, 0, 1] = np.where(is_ascending, sine, cosine)
    vectors[:, 1, 1] = np.where(is_ascending, cosine, -sine) * phase
    require(np.all(np.isfinite(lower)), "Eigenvalues did not converge")


@numpy_program
def _diagonalised(lower: Any, wants_vectors: bool, values: Any, vectors: Any) -> None:
    """The eigenvalues of the matrix of which this is the lower triangle, and its eigenvectors as columns."""
    n = len(lower)
    require(np.all(np.isfinite(lower)), "Eigenvalues did not converge")
    scale = scale_of(lower, (0, 1))[0, 0]
    matrix = lower / scale
    if np.iscomplexobj(matrix):
        np.fill_diagonal(matrix.imag, 0)
    matrix += np.tril(matrix, -1).conj().T
    rows = np.zeros((n, n) if wants_vectors else (0, 0), matrix.dtype)
    diagonal, beside = np.zeros(n + 1), np.zeros(n)
    _tridiagonal(matrix, diagonal, beside, rows, wants_vectors)
    steps = np.zeros((), np.int64)

    def advance(start: Any) -> Any:
        sizes = np.abs(diagonal[start:-1]) + np.abs(diagonal[start + 1 :])
        is_settled = np.abs(beside[start:]) <= _EPS * sizes + _NOTHING
        stop = start + int(np.argmax(is_settled))
        _step(diagonal, beside, rows, wants_vectors, start, stop)
        steps[...] += 1
        return int(np.where(stop == start, start + 1, start))

    while_loop(lambda start: (start < n) & (steps < _STEPS * n + n), advance, 0)
    require(steps < _STEPS * n + n, "Eigenvalues did not converge")
    order = np.argsort(diagonal[:n])
    values[...] = diagonal[order] * scale
    if wants_vectors:
        vectors[...] = rows[order].T


_EPS = float(np.finfo(np.float64).eps)
_NOTHING = float(np.sqrt(np.finfo(np.float64).tiny))
"""What is nothing beside numbers about one."""


@numpy_program
def _tridiagonal(matrix: Any, diagonal: Any, beside: Any, rows: Any, wants_vectors: bool) -> None:
    """Reflect a Hermitian matrix onto its diagonal and the real one `beside` it; `rows` get the transposed
    basis in which it is so."""
    n = len(matrix)
    scales = np.zeros(n, matrix.dtype)
    for k in range(n - 1):
        beside[k], scales[k] = reflection(matrix[k + 1 :, k])
        column, rest = matrix[k + 1 :, k].copy(), matrix[k + 1 :, k + 1 :]
        image = scales[k] * (rest @ column)
        image -= (0.5 * scales[k] * (image.conj() @ column)) * column
        rest -= column[:, None] * image.conj() + image[:, None] * column.conj()
    diagonal[:n] = np.diagonal(matrix).real
    if wants_vectors:
        np.fill_diagonal(rows, 1)
        for k in range(n - 2, -1, -1):
            column, basis = matrix[k + 1 :, k].copy(), rows[k + 1 :, k + 1 :]
            basis -= scales[k] * (basis @ column.conj())[:, None] * column


@numpy_program
def _step(diagonal: Any, beside: Any, rows: Any, wants_vectors: bool, start: Any, stop: Any) -> None:
    """One implicit QL step for the rows from `start` to `stop`; none where that is one row."""
    is_one = np.asarray(stop == start)
    gap = (diagonal[start + 1] - diagonal[start]) / (2 * np.where(is_one, 1, beside[start]))
    root = np.copysign(np.hypot(gap, 1.0), gap)
    bulge = diagonal[stop] - diagonal[start] + beside[start] / (gap + root)
    sine: Any = 1.0
    cosine: Any = 1.0
    shift = 0.0
    for i in range(stop - 1, start - 1, -1):
        far, near = sine * beside[i], cosine * beside[i]
        cosine, sine, beside[i + 1] = rotation(bulge, far)
        bulge = diagonal[i + 1] - shift
        turned = (diagonal[i] - bulge) * sine + 2 * cosine * near
        shift = sine * turned
        diagonal[i + 1] = bulge + shift
        bulge = cosine * turned - near
        if wants_vectors:
            above = cosine * rows[i] - sine * rows[i + 1]
            rows[i + 1] = sine * rows[i] + cosine * rows[i + 1]
            rows[i] = above
    diagonal[start] -= np.where(is_one, 0, shift)
    beside[start] = np.where(is_one, 0, bulge)
    beside[stop] = 0


@implements(np.linalg.svd)
@numpy_program
def svd(a: Any, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False) -> Any:
    """Singular values in descending order, between unitary factors: `u @ diag(s) @ vh`."""
    if hermitian:
        return _svd_of_hermitian(a, compute_uv)
    matrices, result_dtype = wide_floats_of(a)
    require_matrices(matrices)
    rows, columns = matrices.shape[-2:]
    lead = matrices.shape[:-2]
    real_dtype = np.empty(0, result_dtype).real.dtype
    is_wide = rows < columns
    stacked = stacked_to(matrices.mT.conj() if is_wide else matrices, lead)
    high, low = max(rows, columns), min(rows, columns)
    values = np.zeros((len(stacked), low))
    left = np.zeros((len(stacked), high, high if full_matrices else low), matrices.dtype)
    right = np.zeros((len(stacked), low, low), matrices.dtype)
    for k in range(len(stacked)):
        _decomposed(stacked[k], full_matrices, compute_uv, left[k], values[k], right[k])
    sizes = values.reshape((*lead, low)).astype(real_dtype, copy=False)
    if not compute_uv:
        return sizes
    left = left.reshape((*lead, *left.shape[1:])).astype(result_dtype, copy=False)
    right = right.reshape((*lead, low, low)).astype(result_dtype, copy=False)
    if is_wide:
        return SVDResult(right.mT.conj(), sizes, left.mT.conj())
    return SVDResult(left, sizes, right)


@numpy_program
def _svd_of_hermitian(a: Any, compute_uv: bool) -> Any:
    """The sizes of eigenvalues; their signs go to the right factor."""
    if not compute_uv:
        return np.sort(np.abs(eigvalsh(a)))[..., ::-1]
    values, vectors = eigh(a)
    signs, sizes = np.copysign(1.0, values), np.abs(values)
    order = np.argsort(sizes)[..., ::-1]
    signs = np.take_along_axis(signs, order, axis=-1)
    left = np.take_along_axis(vectors, order[..., None, :], axis=-1)
    right = (left * signs[..., None, :]).astype(left.dtype).mT.conj()
    return SVDResult(left, np.take_along_axis(sizes, order, axis=-1), right)


@numpy_program
def _decomposed(matrix: Any, is_full: bool, wants_vectors: bool, left: Any, values: Any, right: Any) -> None:
    """The singular values of a matrix that is not wider than high, and its singular vectors."""
    require(np.logical_not(np.any(np.isnan(matrix))), "SVD did not converge")
    columns = matrix.shape[1]
    scale = scale_of(matrix, (0, 1))[0, 0]
    code = _orthogonalised if type(columns) is int and columns <= _FEW else _reduced
    code(matrix / scale, is_full, wants_vectors, left, values, right)
    values *= scale


@numpy_program
def _reduced(matrix: Any, is_full: bool, wants_vectors: bool, left: Any, values: Any, right: Any) -> None:
    """Those of a matrix, by way of two diagonals."""
    rows, n = matrix.shape
    if type(rows) is type(n) is int and rows == n:
        values[...], columns, right_rows = diagonalised(matrix, wants_vectors)
        if wants_vectors:
            left[...] = columns.T
    else:
        basis, upper = _factors(matrix, is_full, wants_vectors)
        values[...], columns, right_rows = diagonalised(upper[:n].copy(), wants_vectors)
        if wants_vectors:
            left[...] = basis
            left[:, :n] = basis[:, :n] @ columns.T
    if wants_vectors:
        right[...] = right_rows


@numpy_program
def _factors(matrix: Any, is_full: bool, wants_vectors: bool) -> Any:
    """An orthogonal basis, if anybody wants it, and the triangle that the matrix is in it."""
    if not wants_vectors:
        return np.zeros((0, 0), matrix.dtype), qr(matrix, "r")
    return tuple(qr(matrix, "complete" if is_full else "reduced"))


@numpy_program
def _orthogonalised(
    matrix: Any, is_full: bool, wants_vectors: bool, left: Any, values: Any, right: Any
) -> None:
    """Those of a matrix of few columns, to the last digits, by rotations of rows."""
    n = matrix.shape[1]
    basis, upper = _factors(matrix, is_full, wants_vectors)
    rows = upper[:n].copy()
    turns = np.eye(n if wants_vectors else 0, dtype=matrix.dtype)
    sweeps = np.zeros((), np.int64)

    def sweep(_: Any) -> Any:
        count = np.zeros((), np.int64)
        for p in range(n - 1):
            for q in range(p + 1, n):
                _turn(rows, turns, wants_vectors, p, q, count)
        sweeps[...] += 1
        return count

    left_over = while_loop(lambda count: (count > 0) & (sweeps < _SWEEPS), sweep, np.ones((), np.int64))
    require(left_over == 0, "SVD did not converge")
    sums = np.sum(squares(rows), axis=1)
    lengths = np.sqrt(sums)
    order = np.argsort(-lengths)
    values[...] = lengths[order]
    if wants_vectors:
        # Rows that are nothing, or no more than rounding, have no directions of their own: they get some.
        known = np.where(is_nothing(sums)[:, None], 0, rows / np.where(lengths == 0, 1, lengths)[:, None])
        directions, signs = qr(known[order].conj().T)
        flips = np.where(np.diagonal(signs).real < 0, -1, 1)
        right[...] = (directions * flips).conj().T
        left[...] = basis
        left[:, :n] = basis[:, :n] @ turns[order].conj().T


@numpy_program
def _turn(rows: Any, turns: Any, wants_vectors: bool, p: Any, q: Any, count: Any) -> None:
    """Rotate two rows until they are orthogonal, if they are not so but for rounding. What a rotation changes
    is added, so that many of them keep lengths (Rutishauser, The Jacobi method, 1966)."""
    one: Any = np.sum(squares(rows[p]))
    other: Any = np.sum(squares(rows[q]))
    inner = np.sum(rows[p] * rows[q].conj())
    size = np.abs(inner)
    limit = _EPS * np.sqrt(len(rows)) * np.sqrt(one) * np.sqrt(other)
    is_turned = (size > limit) & ~is_nothing(np.minimum(one, other))

    def rotate() -> None:
        phase = inner / size
        ratio = (other - one) / (2 * size)
        tangent = np.copysign(1.0, ratio) / (np.abs(ratio) + np.hypot(1.0, ratio))
        cosine = 1 / np.sqrt(1 + tangent * tangent)
        sine = cosine * tangent
        half = sine / (1 + cosine)
        for cells in (rows, turns) if wants_vectors else (rows,):
            first, second = cells[p].copy(), phase * cells[q]
            cells[p] -= sine * (second + half * first)
            cells[q] = second + sine * (first - half * second)
        count[...] += 1

    cond(is_turned, rotate, lambda: None)


def wide_floats_of(*given: Any) -> tuple[Any, ...]:
    """Arrays of float64 or complex128, in which NumPy computes, and the dtype that it gives results."""
    arrays = floats_of(*(as_array(value) for value in given))
    wide = np.result_type(arrays[0].dtype, np.float64)
    return (*(array.astype(wide, copy=False) for array in arrays), arrays[0].dtype)
