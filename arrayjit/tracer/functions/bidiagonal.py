"""Singular values and vectors of square matrices of more than a few columns, as NumPy programs whose loops
are recorded: reflections leave the diagonal and the one above it (Golub and Kahan, Calculating the singular
values and pseudo-inverse of a matrix, 1965), rotations the diagonal (Golub and Reinsch, Singular value
decomposition and least squares solutions, 1970). Where a diagonal cell is nothing, steps go without a shift,
which leaves nothing beside the last one (Demmel and Kahan, Accurate singular values of bidiagonal matrices,
1990).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..loops.control import while_loop
from .adopted import numpy_program
from .factorisations import is_nothing, require
from .parts import squares

__all__ = ["diagonalised", "reflection", "rotation"]

_STEPS = 30
"""How many steps a row may take; LAPACK allows as many."""

_EPS = float(np.finfo(np.float64).eps)


@numpy_program
def diagonalised(matrix: Any, wants_vectors: bool) -> Any:
    """The singular values of a square matrix of numbers up to one, which is overwritten, in descending order;
    the left singular vectors as rows, and the right ones' conjugates."""
    n = len(matrix)
    left = np.eye(n if wants_vectors else 0, dtype=matrix.dtype)
    right = left.copy()
    diagonal, beside = np.zeros(n), np.zeros(n)
    _bidiagonal(matrix, diagonal, beside, left, right, wants_vectors)
    nothing = _EPS * np.max(np.abs(diagonal) + np.abs(beside), initial=0)
    positions, steps = np.arange(n), np.zeros((), np.int64)

    def advance(stop: Any) -> Any:
        is_start = (np.abs(beside) <= nothing) & (positions <= stop)
        start = int(np.max(np.where(is_start, positions, 0)))
        within = (positions >= start) & (positions <= stop)
        is_shifted = ~np.any(within & (np.abs(diagonal) <= nothing))
        _step(diagonal, beside, left, right, wants_vectors, start, stop, is_shifted)
        steps[...] += 1
        return int(np.where(start == stop, stop - 1, stop))

    while_loop(lambda stop: (stop >= 0) & (steps < _STEPS * n + n), advance, n - 1)
    require(steps < _STEPS * n + n, "SVD did not converge")
    sizes = np.abs(diagonal)
    order = np.argsort(-sizes)
    if wants_vectors:
        left, right = left[order], (right * np.copysign(1.0, diagonal)[:, None])[order]
    return sizes[order], left, right


@numpy_program
def reflection(cells: Any) -> Any:
    """What the first cell becomes, a real number, when the others are reflected onto it, and the factor of
    the reflection; its vector takes the cells' place."""
    head, below = cells[0], cells[1:]
    size: Any = np.sum(squares(below))
    total = squares(head) + size
    is_done = is_nothing(total) | ((size == 0) & (np.imag(head) == 0))
    length = -np.copysign(np.sqrt(np.where(is_done, 1, total)), np.real(head))
    factor = np.where(is_done, 0, (length - head) / length)
    below /= np.where(is_done, 1, head - length)
    end = np.where(is_done, np.real(head), length)
    cells[0] = 1
    return end, factor


@numpy_program
def _bidiagonal(matrix: Any, diagonal: Any, beside: Any, left: Any, right: Any, wants_vectors: bool) -> None:
    """Reflect columns and rows, one after the other, onto the diagonal and `beside` it: above each cell, from
    the second on. `left` and `right` get the bases in which the matrix is so, of rows."""
    n = len(matrix)
    of_columns, of_rows = np.zeros(n, matrix.dtype), np.zeros(n, matrix.dtype)
    for k in range(n - 1):
        diagonal[k], of_columns[k] = reflection(matrix[k:, k])
        column, row = matrix[k + 1 :, k].copy(), matrix[k, k + 1 :]
        rest = matrix[k + 1 :, k + 1 :]
        image = of_columns[k].conj() * (row + column.conj() @ rest)
        row[...] = (row - image).conj()
        beside[k + 1], of_rows[k] = reflection(row)
        turned = of_rows[k] * (rest @ row - column * (image @ row))
        rest -= column[:, None] * image + turned[:, None] * row.conj()
    for k in range(n - 1, n):
        diagonal[k], of_columns[k] = reflection(matrix[k:, k])
    if wants_vectors:
        for k in range(n - 1, -1, -1):
            column, basis = matrix[k:, k].copy(), left[k:, k:]
            basis -= of_columns[k] * (basis @ column.conj())[:, None] * column
        for k in range(n - 2, -1, -1):
            row, basis = matrix[k, k + 1 :], right[k + 1 :, k + 1 :]
            basis -= of_rows[k].conj() * (basis @ row)[:, None] * row.conj()


@numpy_program
def _step(
    diagonal: Any,
    beside: Any,
    left: Any,
    right: Any,
    wants_vectors: bool,
    start: Any,
    stop: Any,
    is_shifted: Any,
) -> None:
    """One implicit QR step for the rows from `start` to `stop`; none where that is one row."""
    is_one = np.asarray(start == stop)
    is_shifted = is_shifted & ~is_one
    head, tail, before = diagonal[start], diagonal[stop], diagonal[stop - 1]
    last, other = beside[stop], np.where(np.asarray(start == stop - 1), 0, beside[stop - 1])
    gap = (before - tail) * (before + tail) + (other - last) * (other + last)
    gap /= np.where(is_shifted, 2 * last * before, 1)
    root = gap + np.copysign(np.hypot(gap, 1.0), gap)
    shifted = (head - tail) * (head + tail) + last * (before / root - last)
    bulge = np.where(is_shifted, shifted / np.where(is_shifted, head, 1), head)[()]
    cosine: Any = 1.0
    sine: Any = 1.0
    for j in range(start, stop):
        near, far = cosine * beside[j + 1], sine * beside[j + 1]
        cosine, sine, beside[j] = rotation(bulge, far)
        bulge, near = cosine * head + sine * near, cosine * near - sine * head
        if wants_vectors:
            _turn(right, j, cosine, sine)
        far, below = sine * diagonal[j + 1], cosine * diagonal[j + 1]
        cosine, sine, diagonal[j] = rotation(bulge, far)
        bulge, head = cosine * near + sine * below, cosine * below - sine * near
        if wants_vectors:
            _turn(left, j, cosine, sine)
    beside[stop] = np.where(is_one, 0, bulge)
    beside[start] = 0
    diagonal[stop] = head


@numpy_program
def rotation(one: Any, other: Any) -> Any:
    """Cosine and sine of what turns two numbers into their length and nothing, and the length. Numbers are
    not far above one; those whose squares lose digits are nothing."""
    square = one * one + other * other
    is_zero = is_nothing(square)
    length = np.sqrt(np.where(is_zero, 1, square))
    cosine, sine = np.where(is_zero, 1, one / length), np.where(is_zero, 0, other / length)
    return cosine, sine, np.where(is_zero, 0, length)


@numpy_program
def _turn(rows: Any, first: Any, cosine: Any, sine: Any) -> None:
    above = cosine * rows[first] + sine * rows[first + 1]
    rows[first + 1] = cosine * rows[first + 1] - sine * rows[first]
    rows[first] = above
