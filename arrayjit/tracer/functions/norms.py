"""`np.linalg.norm` and its kin, in NumPy's own steps."""

from __future__ import annotations

from functools import partial, reduce
from typing import Any

import numpy as np

from ...errors import ShapeError
from ...ir.dtype import BF16, F64
from ...ir.ops import op
from ..record.registry import implements
from ..values.array import SymbolicArray
from ..values.elementwise import as_array, cast, elementwise
from .contractions import contract, dot
from .operands import axes_of
from .parts import parts, squares
from .reductions import reduce_array
from .reshaping import flat, ravel
from .shaping import insert_axes, moveaxis
from .spectra import svd

__all__ = ["norm"]


@implements(np.linalg.norm)
def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> SymbolicArray:
    array = _inexact(as_array(x))
    if axis is None and (
        ord is None or (ord in ("f", "fro") and array.ndim == 2) or (ord == 2 and array.ndim == 1)
    ):
        result = elementwise(op("sqrt"), _squares(array))
        return insert_axes(result, range(array.ndim)) if keepdims else result
    axes = axes_of(axis, array.ndim)
    if len(axes) == 1:
        return _vector_norm(array, ord, axes, keepdims)
    if len(axes) == 2:
        return _matrix_norm(array, ord, axes, keepdims)
    raise ShapeError("Improper number of dimensions to norm.", fix="pass axis= with one or two axes")


@implements(np.linalg.vector_norm)
def vector_norm(x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> SymbolicArray:
    array = as_array(x)
    if axis is not None and not isinstance(axis, tuple):
        return norm(array, ord, axis, keepdims)
    if axis is None:
        result = norm(flat(array), ord)
        return insert_axes(result, range(array.ndim)) if keepdims else result
    return _vector_norm(_inexact(array), ord, axes_of(axis, array.ndim), keepdims)


def _inexact(array: SymbolicArray) -> SymbolicArray:
    """The array as numbers that have norms; the others become float64s."""
    is_kept = array.element_type.is_inexact and array.element_type is not BF16
    return array if is_kept else cast(array, F64)


def _squares(array: SymbolicArray) -> SymbolicArray:
    """The sum of the squares of all cells."""
    if all(extent.is_constant for extent in array.cells.shape):
        cells = ravel(array, "K")
        products = [dot(part, part) for part in parts(cells)]
    else:
        labels = range(array.ndim)
        products = [contract((x, x), (labels, labels), (), x.element_type) for x in parts(array)]
    return reduce(partial(elementwise, op("add")), products)


def _vector_norm(array: SymbolicArray, ord: Any, axes: tuple[int, ...], keepdims: bool) -> SymbolicArray:
    sizes = elementwise(op("absolute"), array)
    if ord is None or ord == 2:
        return elementwise(op("sqrt"), reduce_array(op("add"), squares(array), axes, keepdims=keepdims))
    if ord == np.inf:
        return reduce_array(op("maximum"), sizes, axes, keepdims=keepdims, initial=0)
    if ord == -np.inf:
        return reduce_array(op("minimum"), sizes, axes, keepdims=keepdims)
    if ord == 0:
        nonzero = cast(elementwise(op("not_equal"), array, 0), array.element_type.part)
        return reduce_array(op("add"), nonzero, axes, keepdims=keepdims)
    if ord == 1:
        return reduce_array(op("add"), sizes, axes, keepdims=keepdims)
    if isinstance(ord, str):
        raise ShapeError(f"Invalid norm order '{ord}' for vectors", fix="use a number as ord=")
    powers = elementwise(op("power"), sizes, ord)
    total = reduce_array(op("add"), powers, axes, keepdims=keepdims)
    return elementwise(op("power"), total, 1.0 / ord)


def _matrix_norm(array: SymbolicArray, ord: Any, axes: tuple[int, ...], keepdims: bool) -> SymbolicArray:
    rows, columns = axes
    sizes = elementwise(op("absolute"), array)
    if ord in (None, "f", "fro"):
        result = elementwise(op("sqrt"), reduce_array(op("add"), squares(array), axes))
    elif ord in (1, -1, np.inf, -np.inf):
        summed, chosen = (rows, columns) if abs(ord) == 1 else (columns, rows)
        total = reduce_array(op("add"), sizes, summed, keepdims=True)
        is_largest = ord > 0
        operation, initial = op("maximum" if is_largest else "minimum"), 0 if is_largest else np._NoValue
        result = reduce_array(operation, total, (summed, chosen), initial=initial)
    elif ord in (2, -2, "nuc"):
        values = svd(moveaxis(array, axes, (-2, -1)), compute_uv=False)
        name = {2: "maximum", -2: "minimum", "nuc": "add"}[ord]
        result = reduce_array(op(name), values, -1, initial=np._NoValue if ord == -2 else 0)
    else:
        raise ShapeError("Invalid norm order for matrices.", fix="use ord=None, 'fro', 1, 2 or inf")
    return insert_axes(result, axes) if keepdims else result
