"""Matrices by their diagonals: `eye`, `identity`, `tri`, `diag`, `fill_diagonal`."""

from __future__ import annotations

import operator
from functools import reduce
from typing import Any

import numpy as np

from ...errors import ShapeError
from ...ir.dtype import BOOL, F64
from ...ir.expr import Apply, Expr, Index, convert
from ...ir.index import Affine
from ...ir.ops import op
from ..indices.indexing import getitem, setitem
from ..record.registry import implements
from ..record.trace import current_trace
from ..values.array import SymbolicArray, describe
from ..values.elementwise import as_array, elementwise
from ..values.extents import ONE, agree, is_at_least, lesser, numbers
from ..values.integer import python_int
from ..values.numbers import integer_of
from .creation import counted, filled, makes
from .operands import element_type, remapped, shape_of
from .reshaping import flat
from .shaping import diagonal

__all__: list[str] = []


@makes(np.eye)
def eye(N: Any, M: Any = None, k: int = 0, dtype: Any = float, order: str = "C") -> SymbolicArray:  # noqa: N803
    return _by_diagonal("equal", N, M, k, dtype)


@makes(np.identity)
def identity(n: Any, dtype: Any = None) -> SymbolicArray:
    return _by_diagonal("equal", n, n, 0, dtype)


@makes(np.tri)
def tri(N: Any, M: Any = None, k: int = 0, dtype: Any = float) -> SymbolicArray:  # noqa: N803
    return _by_diagonal("less_equal", N, M, k, dtype)


def _by_diagonal(relation: str, rows: Any, columns: Any, k: Any, dtype: Any) -> SymbolicArray:
    """One where `column relation row + k`, else zero."""
    kind = element_type(dtype, F64)
    offset = integer_of(k, current_trace())

    def cell(position: tuple[Affine, ...]) -> Expr:
        row, column = position
        return convert(Apply(op(relation), (Index(column), Index(row + offset)), BOOL), kind)

    shape = shape_of((rows, rows if columns is None else columns))
    trace = current_trace()
    return SymbolicArray(trace.compute(shape, kind, cell, label="diagonal"), trace)


@implements(np.diag)
def diag(v: Any, k: int = 0) -> SymbolicArray:
    """The diagonal of a matrix (a read-only view), or a matrix with this diagonal."""
    given = as_array(v)
    if given.ndim == 2:
        return diagonal(given, k)
    if given.ndim != 1:
        raise ShapeError("Input must be 1- or 2-d.", fix="use np.diagonal")
    k = operator.index(k)
    size = given.cells.shape[0] + abs(k)
    result = filled((size, size), 0, given.element_type)
    down, right = max(0, -k), max(0, k)
    target = remapped(result, given.cells.shape, lambda position: (position[0] + down, position[0] + right))
    setitem(target, Ellipsis, given)
    return result


@implements(np.diagflat)
def diagflat(v: Any, k: int = 0) -> SymbolicArray:
    return diag(flat(as_array(v)), k)


@implements(np.fill_diagonal)
def fill_diagonal(a: Any, val: Any, wrap: bool = False) -> None:
    """Numbers of an array are taken in turns, as `a.flat` does."""
    target = as_array(a)
    if target.ndim < 2:
        raise ShapeError("array must be at least 2-d", fix="use a matrix")
    first, *others = target.cells.shape
    words = "All dimensions of input must be of equal length"
    if target.ndim > 2 and not all(agree(first, other, words) for other in others):
        raise ShapeError(words, details=(describe(target),), fix="use a matrix")
    size = reduce(lesser, others, first)
    if wrap and target.ndim == 2 and not is_at_least(others[0] - first, 0):
        rows, columns = numbers(target.cells.shape, "a shape whose diagonal is wrapped")
        places = np.arange(0, rows * columns, columns + 1)
        setitem(target, np.divmod(places, columns), _in_turns(val, Affine.of(len(places))))
        return
    cells = remapped(target, (size,), lambda position: position * target.ndim)
    setitem(cells, Ellipsis, _in_turns(val, size))


def _in_turns(values: Any, count: Affine) -> Any:
    """So many numbers: one, or those of an array from the first one on, again and again."""
    given = flat(as_array(values))
    (extent,) = given.cells.shape
    if extent in (ONE, count):
        return given
    places = elementwise(op("remainder"), counted(count), python_int(extent, current_trace()))
    return getitem(given, places)
