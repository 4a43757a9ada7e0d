"""`np.linalg.norm`: the root of the squares of all cells; others by NumPy's own code."""

from __future__ import annotations

import inspect
from functools import partial, reduce
from typing import Any

import numpy as np

from ...ir.dtype import BF16, F64
from ...ir.ops import op
from ..record.registry import implements
from ..values.array import SymbolicArray
from ..values.elementwise import as_array, cast, elementwise
from .adopted import adopted
from .contractions import contract, dot
from .parts import parts
from .reshaping import ravel
from .shaping import insert_axes

__all__ = ["norm"]


@implements(np.linalg.norm)
def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    array = _inexact(as_array(x))
    if axis is None and (
        ord is None or (ord in ("f", "fro") and array.ndim == 2) or (ord == 2 and array.ndim == 1)
    ):
        result = elementwise(op("sqrt"), _squares(array))
        return insert_axes(result, range(array.ndim)) if keepdims else result
    return _along_axes(array, ord, axis, keepdims)


_along_axes = adopted(inspect.unwrap(np.linalg.norm))


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
