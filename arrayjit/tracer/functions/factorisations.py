"""`np.linalg`: solving, inverting and factorising, as NumPy programs whose loops are recorded.

A few columns at a time are factorised, and then the rest is changed by all of them at once, as products of
matrices are: it passes through the caches once for these columns (Dongarra et al., A set of level 3 basic
linear algebra subprograms, 1990). Matrices of up to four rows are taken apart into their cells, so that many
of them go side by side. Results agree with LAPACK's to rounding.
"""

from __future__ import annotations

import operator
from math import prod
from typing import Any

import numpy as np

from ...errors import DTypeError, LinearAlgebraError, ShapeError
from ...ir.dtype import F16
from ..record.registry import implements
from ..record.trace import current_trace
from ..values.array import SymbolicArray, describe
from ..values.elementwise import as_array
from ..values.extents import agree
from .adopted import numpy_program
from .parts import squares

__all__ = [
    "floats_of",
    "inv",
    "is_nothing",
    "qr",
    "require",
    "require_matrices",
    "require_square",
    "scale_of",
    "stacked_to",
    "unchecked_inv",
]

_BLOCK = 8
"""Columns at a time. Determinants of 500 x 500 float64 numbers take 4.2 ms column by column, 1.2 ms by 8 of
them, and about as long by 16 or 32."""
_SMALL, _SMALL_ROOTS = 48, 150
"""Smaller matrices lie in the first cache, or the second: all columns at once take as long, and half the time
to compile."""

_FEW = 4
"""So many rows and columns at most are taken apart into their cells: 500 inverses of 4 x 4 take 0.08 of the
time, and as long to compile."""

_NOT_POSITIVE = "Matrix is not positive definite"

# NumPy keeps the types of its results to itself.
QRResult = type(np.linalg.qr(np.eye(1)))
SlogdetResult = type(np.linalg.slogdet(np.eye(1)))


@implements(np.linalg.solve)
@numpy_program
def solve(a: Any, b: Any) -> Any:
    return _solved(a, b, True)


@implements(np.linalg.tensorsolve)
@numpy_program
def tensorsolve(a: Any, b: Any, axes: Any = None) -> Any:
    a, b = np.asarray(a), np.asarray(b)
    if axes is not None:
        last = [axis % a.ndim for axis in axes]
        a = np.transpose(a, [axis for axis in range(a.ndim) if axis not in last] + last)
    shape = a.shape[b.ndim - a.ndim :] if a.ndim > b.ndim else a.shape
    count = prod(shape)
    if a.size != count**2:
        words = "Input arrays must satisfy the requirement prod(a.shape[b.ndim:]) == prod(a.shape[:b.ndim])"
        fix = "pass an array that stands for a square matrix"
        raise LinearAlgebraError(words, fix=fix)
    return np.linalg.solve(a.reshape(count, count), b.ravel()).reshape(shape)


@numpy_program
def _solved(a: Any, b: Any, must_be_regular: bool) -> Any:
    matrices, right = floats_of(a, b)
    require_square(matrices)
    _require_rows(matrices, right)
    columns = right[..., None] if right.ndim == 1 else right
    if _are_few(matrices.shape[-1]) and _are_few(columns.shape[-1]):
        result = _solved_cell_by_cell(matrices, columns, must_be_regular)
        return result[..., 0] if right.ndim == 1 else result
    lead = np.broadcast_shapes(matrices.shape[:-2], columns.shape[:-2])
    stacked = stacked_to(matrices, lead)
    result = stacked_to(columns, lead).copy()
    for k in range(len(stacked)):
        lower, order, _ = _factorised(stacked[k])
        if must_be_regular:
            _require_regular(np.diagonal(lower))
        _substitute(lower, order, result[k])
    result = result.reshape(lead + columns.shape[-2:])
    return result[..., 0] if right.ndim == 1 else result


@implements(np.linalg.inv)
@numpy_program
def inv(a: Any) -> Any:
    return _inverse(a, True)


def unchecked_inv(a: Any) -> Any:
    """The inverses of matrices; infinite or NaN in each column for those that have none."""
    return _inverse(a, False)


@numpy_program
def _inverse(a: Any, must_be_regular: bool) -> Any:
    (matrices,) = floats_of(a)
    require_square(matrices)
    return _solved(matrices, np.eye(matrices.shape[-1], dtype=matrices.dtype), must_be_regular)


@implements(np.linalg.matrix_power)
@numpy_program
def matrix_power(a: Any, n: int) -> Any:
    """By squaring, in the order of NumPy's products."""
    power: Any = np.asarray(a)
    require_square(power)
    left = operator.index(n)
    if left == 0:
        result = np.empty_like(power)
        result[...] = np.eye(power.shape[-1], dtype=power.dtype)
        return result
    if left < 0:
        power, left = inv(power), -left
    if left == 3:
        return power @ power @ power
    result = None
    while True:
        if left % 2:
            result = power if result is None else result @ power
        left //= 2
        if left == 0:
            return result
        power = power @ power


@implements(np.linalg.det)
@numpy_program
def det(a: Any) -> Any:
    return _determinants(a)[2]


@implements(np.linalg.slogdet)
@numpy_program
def slogdet(a: Any) -> Any:
    return SlogdetResult(*_determinants(a)[:2])


@numpy_program
def _determinants(a: Any) -> Any:
    """The sign of each determinant, the logarithm of its size, and the determinant itself."""
    (matrices,) = floats_of(a)
    require_square(matrices)
    if _are_few(matrices.shape[-1]):
        return _determinants_cell_by_cell(matrices)
    stacked = stacked_to(matrices, matrices.shape[:-2])
    results = np.empty((3, len(stacked)), matrices.dtype)
    for k in range(len(stacked)):
        factors, _, sign = _factorised(stacked[k])
        pivots = np.diagonal(factors)
        results[0, k] = sign * np.prod(np.sign(pivots))
        results[1, k] = np.sum(np.log(np.abs(pivots)))
        results[2, k] = sign * np.prod(pivots)
    shaped = results.reshape((3, *matrices.shape[:-2]))
    return shaped[0], shaped[1].real, shaped[2]


@numpy_program
def _solved_cell_by_cell(matrices: Any, columns: Any, must_be_regular: bool) -> Any:
    n, width = matrices.shape[-1], columns.shape[-1]
    lead = np.broadcast_shapes(matrices.shape[:-2], columns.shape[:-2])
    result = np.empty((*lead, n, width), columns.dtype)
    rows = [[columns[..., i, j] for j in range(width)] for i in range(n)]
    factors, _ = _upper(matrices, rows)
    for i in reversed(range(n)):
        for j in range(width):
            for k in range(i + 1, n):
                rows[i][j] = rows[i][j] - factors[i][k] * rows[k][j]
            rows[i][j] = rows[i][j] / factors[i][i]
            result[..., i, j] = rows[i][j]
    if must_be_regular:
        _require_regular(np.stack([row[i] for i, row in enumerate(factors)]))
    return result


@numpy_program
def _determinants_cell_by_cell(matrices: Any) -> Any:
    factors, sign = _upper(matrices, [[] for _ in range(matrices.shape[-1])])
    pivots = [row[k] for k, row in enumerate(factors)]
    size = sum(np.log(np.abs(pivot)) for pivot in pivots)
    return prod((np.sign(pivot) for pivot in pivots), start=sign), size, prod(pivots, start=sign)


@numpy_program
def _upper(matrices: Any, columns: Any) -> Any:
    """The upper factors of matrices, as rows of cells each of which is an array, and the signs of the orders
    that their rows take; the same is done to rows of columns. Rows change places by choosing each cell, so
    that it is known while tracing where they go."""
    n = matrices.shape[-1]
    rows = [[matrices[..., i, j] for j in range(n)] for i in range(n)]
    sign = np.ones((), matrices.dtype)
    for k in range(n):
        for i in range(k + 1, n):
            is_larger = np.abs(rows[i][k]) > np.abs(rows[k][k])
            sign = np.where(is_larger, -sign, sign)
            for table in (rows, columns):
                one, other = table[k], table[i]
                table[k] = [np.where(is_larger, b, a) for a, b in zip(one, other, strict=True)]
                table[i] = [np.where(is_larger, a, b) for a, b in zip(one, other, strict=True)]
        pivot = np.where(rows[k][k] == 0, 1, rows[k][k])
        for i in range(k + 1, n):
            factor = rows[i][k] / pivot
            for table in (rows, columns):
                table[i] = [a - factor * b for a, b in zip(table[i], table[k], strict=True)]
    return rows, sign


@numpy_program
def _factorised(matrix: Any) -> Any:
    """The factors of the matrix in one, lower without its diagonal of ones; the order that its rows take;
    and the sign of that order. A column without a pivot leaves a zero on the diagonal."""
    factors = matrix.copy()
    n = len(factors)
    order = np.arange(n)
    sign = np.ones((), factors.dtype)
    size = _block(n, _SMALL)
    whole = n - n % size
    for start in range(0, whole, size):
        _eliminate(factors, order, sign, start, start + size)
    _eliminate(factors, order, sign, whole, n)
    return factors, order, sign


@numpy_program
def _eliminate(factors: Any, order: Any, sign: Any, start: Any, stop: Any) -> None:
    """Factorise columns from `start` to `stop`, in which all before them is done; then do what they do to the
    rest, in the rows of the upper factor first."""
    for k in range(start, stop):
        factors[k:, k] -= factors[k:, start:k] @ factors[start:k, k]
        best = k + np.argmax(np.abs(factors[k:, k]))
        row, place = factors[best].copy(), order[best]
        factors[best], order[best] = factors[k], order[k]
        factors[k], order[k] = row, place
        sign *= np.where(best == k, 1, -1)
        factors[k, k + 1 : stop] -= factors[k, start:k] @ factors[start:k, k + 1 : stop]
        pivot = factors[k, k]
        factors[k + 1 :, k] /= np.where(pivot == 0, 1, pivot)
    for k in range(start + 1, stop):
        factors[k, stop:] -= factors[k, start:k] @ factors[start:k, stop:]
    factors[stop:, stop:] -= factors[stop:, start:stop] @ factors[start:stop, stop:]


@numpy_program
def _substitute(factors: Any, order: Any, columns: Any) -> None:
    """Solve in place for the columns."""
    n = len(factors)
    size = _block(n, _SMALL)
    whole = n - n % size
    columns[...] = columns[order]
    for start in range(0, whole, size):
        _substitute_down(factors, columns, start, start + size)
    _substitute_down(factors, columns, whole, n)
    _substitute_up(factors, columns, whole, n)
    for start in range(whole - size, -1, -size):
        _substitute_up(factors, columns, start, start + size)


@numpy_program
def _substitute_down(factors: Any, columns: Any, start: Any, stop: Any) -> None:
    """Some rows by the lower factor, after those above them."""
    columns[start:stop] -= factors[start:stop, :start] @ columns[:start]
    for k in range(start + 1, stop):
        columns[k] -= factors[k, start:k] @ columns[start:k]


@numpy_program
def _substitute_up(factors: Any, columns: Any, start: Any, stop: Any) -> None:
    """Some rows by the upper factor, after those below them."""
    columns[start:stop] -= factors[start:stop, stop:] @ columns[stop:]
    for k in range(stop - 1, start - 1, -1):
        columns[k] -= factors[k, k + 1 : stop] @ columns[k + 1 : stop]
        columns[k] /= factors[k, k]


@implements(np.linalg.cholesky)
@numpy_program
def cholesky(a: Any, /, *, upper: bool = False) -> Any:
    (matrices,) = floats_of(a)
    require_square(matrices)
    lower = matrices.mT if upper else matrices
    if _are_few(matrices.shape[-1]):
        result = _root_cell_by_cell(lower)
        return result.mT if upper else result
    stacked = stacked_to(lower, matrices.shape[:-2])
    factors = np.zeros(stacked.shape, matrices.dtype)
    for k in range(len(stacked)):
        _lower_root(stacked[k], factors[k])
    result = factors.reshape(matrices.shape)
    return result.mT if upper else result


@numpy_program
def _root_cell_by_cell(matrices: Any) -> Any:
    n = matrices.shape[-1]
    factors = np.zeros(matrices.shape, matrices.dtype)
    rows = [[matrices[..., i, j] for j in range(i + 1)] for i in range(n)]
    pivots = []
    for k in range(n):
        pivots.append(rows[k][k].real)
        root = np.sqrt(pivots[k])
        factors[..., k, k] = root
        for i in range(k + 1, n):
            factors[..., i, k] = rows[i][k] = rows[i][k] / root
            for j in range(k + 1, i + 1):
                rows[i][j] = rows[i][j] - rows[i][k] * rows[j][k].conj()
    require(np.logical_not(np.any(np.stack(pivots) <= 0)), _NOT_POSITIVE)
    return factors


@numpy_program
def _lower_root(matrix: Any, factor: Any) -> None:
    n = len(matrix)
    size = _block(n, _SMALL_ROOTS)
    whole = n - n % size
    for start in range(0, whole, size):
        _root_columns(matrix, factor, start, start + size)
    _root_columns(matrix, factor, whole, n)


@numpy_program
def _root_columns(matrix: Any, factor: Any, start: Any, stop: Any) -> None:
    """Some columns of the factor, after those before them."""
    factor[start:, start:stop] = matrix[start:, start:stop]
    factor[start:, start:stop] -= factor[start:, :start] @ factor[start:stop, :start].conj().T
    for k in range(start, stop):
        factor[k:, k] -= factor[k:, start:k] @ factor[k, start:k].conj()
        pivot = factor[k, k].real
        require(np.logical_not(pivot <= 0), _NOT_POSITIVE)
        root = np.sqrt(pivot)
        factor[k, k] = root
        factor[k + 1 :, k] /= root
        factor[start:k, k] = 0


@implements(np.linalg.qr)
@numpy_program
def qr(a: Any, mode: str = "reduced") -> Any:
    """By Householder's reflections, with LAPACK's signs."""
    (matrices,) = floats_of(a)
    if mode not in ("reduced", "complete", "r"):
        raise ShapeError(f"Unrecognized mode '{mode}'", fix="use mode='reduced'")
    require_matrices(matrices)
    rows, columns = matrices.shape[-2:]
    kept = rows if mode == "complete" else min(rows, columns)
    lead = matrices.shape[:-2]
    stacked = stacked_to(matrices, lead)
    scales = scale_of(stacked, 1)
    upper = stacked / scales
    basis = np.zeros((len(upper), rows, kept), matrices.dtype)
    for k in range(len(upper)):
        _reflected(upper[k], mode != "r", basis[k])
    factors = (np.triu(upper[:, :kept]) * scales).reshape((*lead, kept, columns))
    if mode == "r":
        return factors
    return QRResult(basis.reshape((*lead, rows, kept)), factors)


@numpy_program
def _reflected(matrix: Any, wants_basis: bool, basis: Any) -> None:
    """Reflect the columns of the matrix, one after another, onto the axes; `basis` gets what does so."""
    rows, columns = matrix.shape
    count = min(rows if np.iscomplexobj(matrix) else rows - 1, columns)
    scales = np.zeros(columns, matrix.dtype)
    for k in range(count):
        below = matrix[k + 1 :, k]
        size: Any = np.sum(squares(below))
        head = matrix[k, k]
        total = squares(head) + size
        is_done = is_nothing(total) | ((size == 0) & (head.imag == 0))
        length = -np.copysign(np.sqrt(np.where(is_done, 1, total)), head.real)
        scales[k] = np.where(is_done, 0, (length - head) / length)
        below /= np.where(is_done, 1, head - length)
        matrix[k, k] = np.where(is_done, head, length)
        projected = scales[k].conj() * (matrix[k, k + 1 :] + below.conj() @ matrix[k + 1 :, k + 1 :])
        matrix[k, k + 1 :] -= projected
        matrix[k + 1 :, k + 1 :] -= below[:, None] * projected
    if wants_basis:
        np.fill_diagonal(basis, 1)
        for k in range(count - 1, -1, -1):
            below = matrix[k + 1 :, k]
            projected = scales[k] * (basis[k] + below.conj() @ basis[k + 1 :])
            basis[k] -= projected
            basis[k + 1 :] -= below[:, None] * projected


@numpy_program
def scale_of(matrices: Any, axes: Any) -> Any:
    """The power of two at the largest cell along the axes, which are kept: cells divided by it have squares
    that do not overflow, nor vanish beside others."""
    sizes = np.abs(matrices)
    if np.iscomplexobj(matrices):
        sizes = np.maximum(np.abs(matrices.real), np.abs(matrices.imag))
    largest = np.max(sizes, axis=axes, keepdims=True, initial=0)
    is_plain = np.isfinite(largest) & (largest > 0)
    _, exponent = np.frexp(np.where(is_plain, largest, 1))
    return np.ldexp(np.ones((), largest.dtype), exponent - 1)


@numpy_program
def is_nothing(square: Any) -> Any:
    """Whether the square of a number is nothing beside one, and too small to have all its digits."""
    limits = np.finfo(square.dtype)
    return square <= float(limits.tiny) / float(limits.eps)


def _are_few(columns: Any) -> bool:
    return type(columns) is int and 0 < columns <= _FEW


def _block(columns: Any, small: int) -> int:
    """How many columns of a matrix are factorised at a time: of a small one more than it has."""
    return columns + 1 if type(columns) is int and columns < small else _BLOCK


def floats_of(*given: Any) -> tuple[SymbolicArray, ...]:
    """Arrays of the dtype that NumPy computes their factors in."""
    arrays = [as_array(value) for value in given]
    for array in arrays:
        if array.element_type is F16:
            raise DTypeError(
                "array type float16 is unsupported in linalg",
                details=(describe(array),),
                fix="convert it first: x.astype(np.float32)",
            )
    is_kept = [array.element_type.is_inexact and not array.element_type.is_small for array in arrays]
    kinds = [array.dtype if kept else np.dtype("f8") for array, kept in zip(arrays, is_kept, strict=True)]
    common = np.result_type(*kinds)
    return tuple(array if array.dtype == common else array.astype(common) for array in arrays)


@numpy_program
def stacked_to(matrices: Any, lead: tuple[int, ...]) -> Any:
    """The matrices along one axis, repeated to the shape `lead`."""
    inner = matrices.shape[-2:]
    return np.broadcast_to(matrices, lead + inner).reshape((prod(lead), *inner))


def require_matrices(matrices: SymbolicArray) -> None:
    if matrices.ndim < 2:
        raise LinearAlgebraError(
            f"{matrices.ndim}-dimensional array given. Array must be at least two-dimensional",
            details=(describe(matrices),),
            fix="pass a matrix",
        )


def require_square(matrices: SymbolicArray) -> None:
    require_matrices(matrices)
    words = "Last 2 dimensions of the array must be square"
    rows, columns = matrices.cells.shape[-2:]
    if not agree(rows, columns, words, "LinAlgError"):
        raise LinearAlgebraError(words, details=(describe(matrices),), fix="pass a square matrix")


def _require_rows(matrices: SymbolicArray, right: SymbolicArray) -> None:
    """The right sides of equations are as long as there are equations."""
    words = "solve: Input operand 1 has a mismatch in its core dimension 0"
    axis = right.ndim - 1 if right.ndim == 1 else right.ndim - 2
    if right.ndim == 0 or not agree(right.cells.shape[axis], matrices.cells.shape[-1], words):
        raise ShapeError(
            words,
            details=(describe(matrices), describe(right)),
            fix="give the right side as many rows as the matrix has",
        )


def _require_regular(pivots: Any) -> None:
    require(np.all(pivots != 0), "Singular matrix")


def require(condition: Any, words: str) -> None:
    current_trace().check((), lambda _: condition.load(()), "LinAlgError", words)
