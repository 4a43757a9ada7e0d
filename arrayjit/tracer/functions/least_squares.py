"""What singular values tell of matrices: ranks, condition numbers, pseudo-inverses, least squares, and fits
of polynomials. Their shapes, thresholds and exceptions are NumPy's."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import DTypeError, LinearAlgebraError, ShapeError
from ..record.registry import implements
from ..values.array import describe
from ..values.extents import ZERO, agree, is_at_least, require_at_least
from .adopted import numpy_program
from .factorisations import inv, require_matrices, unchecked_inv
from .spectra import svd, wide_floats_of

__all__: list[str] = []


@implements(np.linalg.matrix_rank)
@numpy_program
def matrix_rank(A: Any, tol: Any = None, hermitian: bool = False, *, rtol: Any = None) -> Any:  # noqa: N803
    """How many singular values are greater than `tol`, or than `rtol` times the greatest."""
    if tol is not None and rtol is not None:
        raise ShapeError("`tol` and `rtol` can't be both set.", fix="pass one of them")
    matrices = np.asarray(A)
    if matrices.ndim < 2:
        return int(np.any(matrices != 0))
    sizes = svd(matrices, compute_uv=False, hermitian=hermitian)
    if tol is not None:
        return np.count_nonzero(sizes > np.asarray(tol)[..., np.newaxis], axis=-1)
    part = max(matrices.shape[-2:]) * np.finfo(sizes.dtype).eps if rtol is None else rtol
    least = np.max(sizes, axis=-1, keepdims=True, initial=0) * np.asarray(part)[..., np.newaxis]
    return np.count_nonzero(sizes > least, axis=-1)


@implements(np.linalg.pinv)
@numpy_program
def pinv(a: Any, rcond: Any = None, hermitian: bool = False, *, rtol: Any = np._NoValue) -> Any:
    """By the singular values that are greater than `rcond` times the greatest."""
    matrices = np.asarray(a)
    if rcond is None:
        rcond = 1e-15 if rtol is np._NoValue else rtol
    elif rtol is not np._NoValue:
        words = "`rtol` and `rcond` can't be both set."
        raise ShapeError(words, fix="pass one of them")
    if _has_no_cells(matrices):
        return np.empty(matrices.mT.shape, matrices.dtype)
    left, sizes, right = svd(matrices.conj(), full_matrices=False, hermitian=hermitian)
    if rcond is None:
        rcond = max(matrices.shape[-2:]) * np.finfo(matrices.dtype).eps
    least = np.asarray(rcond)[..., np.newaxis] * np.max(sizes, axis=-1, keepdims=True, initial=0)
    is_large = sizes > least
    inverted = np.where(is_large, 1 / np.where(is_large, sizes, 1), 0).astype(sizes.dtype)
    return right.mT @ (inverted[..., np.newaxis] * left.mT)


@implements(np.linalg.cond)
@numpy_program
def cond(x: Any, p: Any = None) -> Any:
    """The greatest singular value by the least, or the norm `p` of the matrix times that of its inverse."""
    matrices: Any = np.asarray(x)
    if _has_no_cells(matrices):
        raise LinearAlgebraError(
            "cond is not defined on empty arrays",
            details=(describe(matrices),),
            fix="pass matrices that have cells",
        )
    if p not in (None, 2, -2):
        require_matrices(matrices)
        axes = -2, -1
        quotient = np.linalg.norm(matrices, p, axes) * np.linalg.norm(unchecked_inv(matrices), p, axes)
    else:
        sizes = svd(matrices, compute_uv=False)
        first, last = (sizes[..., -1], sizes[..., 0]) if p == -2 else (sizes[..., 0], sizes[..., -1])
        is_zero = last == 0
        quotient = np.where(is_zero, np.inf, first / np.where(is_zero, 1, last)).astype(sizes.dtype)
    has_nan = np.isnan(matrices).any(axis=(-2, -1))
    return np.where(np.isnan(quotient) & ~has_nan, np.inf, quotient).astype(quotient.dtype)[()]


def _has_no_cells(matrices: Any) -> bool:
    """Whether matrices certainly have no cells."""
    return matrices.ndim > 1 and ZERO in matrices.cells.shape[-2:]


@implements(np.linalg.lstsq)
@numpy_program
def lstsq(a: Any, b: Any, rcond: Any = None) -> Any:
    """The shortest of the solutions that leave the least squares; the sums of these squares, none where they
    are zero or the rank is not full; the rank; the singular values, of which those count that are greater
    than `rcond` times the greatest."""
    given = np.asarray(b)
    matrix, right, result_dtype = wide_floats_of(a, given[:, np.newaxis] if given.ndim == 1 else given)
    _require_equations(matrix, right)
    high, wide = matrix.shape
    real_dtype = np.empty(0, result_dtype).real.dtype
    part = np.finfo(np.float64).eps * (max(high, wide) if rcond is None else 1)
    if rcond is not None:
        part = np.where(np.asarray(rcond) < 0, part, rcond)
    is_high = _is_high(matrix)
    left, sizes, rows = svd(matrix if is_high else _heightened(matrix), full_matrices=False)
    if not is_high:
        left = left[:high]
    is_large = sizes > part * np.max(sizes, initial=0)
    rank = np.count_nonzero(is_large).astype(np.int32)
    inverted = np.where(is_large, 1 / np.where(is_large, sizes, 1), 0)
    solution = rows.conj().T @ (inverted[:, np.newaxis] * (left.conj().T @ right))
    rest = right - matrix @ solution
    squares = np.sum(rest.real**2 + rest.imag**2 if np.iscomplexobj(rest) else rest**2, axis=0)
    kept = int(rank == wide) * int(high > wide) * right.shape[1]
    squares = squares.astype(real_dtype)[:kept]
    solution = solution.astype(result_dtype)
    if given.ndim == 1:
        solution = solution[:, 0].copy()
    return solution, squares, rank, sizes[: min(high, wide)].astype(real_dtype)


def _is_high(matrix: Any) -> bool:
    """Whether a matrix certainly has no fewer rows than columns."""
    rows, columns = matrix.cells.shape
    return is_at_least(rows - columns, 0)


@numpy_program
def _heightened(matrix: Any) -> Any:
    """The matrix with as many rows of zeros below as it has columns: its singular values, and zeros."""
    return np.concatenate([matrix, np.zeros((matrix.shape[1], matrix.shape[1]), matrix.dtype)])


def _require_equations(matrix: Any, right: Any) -> None:
    for array in (matrix, right):
        if array.ndim != 2:
            raise LinearAlgebraError(
                f"{array.ndim}-dimensional array given. Array must be two-dimensional",
                details=(describe(array),),
                fix="pass a matrix, and a row or columns of right sides",
            )
    words = "Incompatible dimensions"
    if not agree(matrix.cells.shape[0], right.cells.shape[0], words, "LinAlgError"):
        raise LinearAlgebraError(
            words,
            details=(describe(matrix), describe(right)),
            fix="give the right side as many rows as the matrix has",
        )


@implements(np.polyfit)
@numpy_program
def polyfit(
    x: Any, y: Any, deg: Any, rcond: Any = None, full: bool = False, w: Any = None, cov: Any = False
) -> Any:
    """The coefficients of the polynomial of least squares, highest powers first. Nothing warns where the rank
    is not full; `full=True` tells."""
    order = int(deg) + 1
    places, heights = np.asarray(x) + 0.0, np.asarray(y) + 0.0
    _require_samples(places, heights, deg)
    if rcond is None:
        rcond = len(places) * np.finfo(places.dtype).eps
    powers = np.vander(places, order)
    if w is not None:
        weights = np.asarray(w) + 0.0
        _require_weights(weights, heights)
        powers = powers * weights[:, np.newaxis]
        heights = heights * (weights[:, np.newaxis] if heights.ndim == 2 else weights)
    scale = np.sqrt((powers * powers).sum(axis=0))
    powers = powers / scale
    solution, squares, rank, sizes = np.linalg.lstsq(powers, heights, rcond)
    coefficients = (solution.T / scale).T
    if full:
        return coefficients, squares, rank, sizes, rcond
    if not cov:
        return coefficients
    variances = inv(powers.T @ powers) / np.outer(scale, scale)
    if isinstance(cov, str) and cov == "unscaled":
        return coefficients, variances if heights.ndim == 1 else variances[:, :, np.newaxis]
    if len(places) <= order:
        words = "the number of data points must exceed order to scale the covariance matrix"
        raise ShapeError(words, fix="use cov='unscaled', or more samples")
    rest = heights - powers @ solution
    factor = np.sum(rest**2, axis=0) / (len(places) - order)
    return coefficients, variances * factor if heights.ndim == 1 else variances[:, :, np.newaxis] * factor


@numpy_program
def _require_samples(places: Any, heights: Any, deg: Any) -> None:
    if deg < 0:
        raise ShapeError("expected deg >= 0", fix="use a degree of 0 or more")
    if places.ndim != 1:
        raise DTypeError("expected 1D vector for x", fix="pass a row of places")
    words = "expected non-empty vector for x"
    if not require_at_least(places.cells.shape[0], 1, "TypeError", words):
        raise DTypeError(words, fix="pass samples")
    if heights.ndim not in (1, 2):
        words = "expected 1D or 2D array for y"
        raise DTypeError(words, fix="pass a height for each place, or columns of them")
    words = "expected x and y to have same length"
    if not agree(places.cells.shape[0], heights.cells.shape[0], words, "TypeError"):
        raise DTypeError(words, fix="pass a height for each place")


def _require_weights(weights: Any, heights: Any) -> None:
    if weights.ndim != 1:
        raise DTypeError("expected a 1-d array for weights", fix="pass a row of weights")
    words = "expected w and y to have the same length"
    if not agree(weights.cells.shape[0], heights.cells.shape[0], words, "TypeError"):
        raise DTypeError(words, fix="pass a weight for each place")
