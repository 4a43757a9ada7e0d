"""`ufunc.reduce` of every ufunc of two operands, and `ufunc.reduceat`, which reduces parts of an axis.

Where the order of the cells makes a difference, as for `subtract`, they are combined from left to right: the
result is the last cell of the scan.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from ...errors import DTypeError, ShapeError, UnsupportedError
from ...ir.dtype import I64
from ...ir.ops import OPS, Op
from ..record.registry import ufunc_method
from ..values.array import SymbolicArray, describe
from ..values.elementwise import as_array, cast
from ..values.extents import require_at_least
from .adopted import numpy_program
from .operands import (
    deliver,
    is_true,
    only_axis,
    reduced_axes,
    refuse,
    require_between,
    require_cast,
    require_row,
)
from .reductions import computing_dtype, reduce_array
from .shaping import insert_axes

__all__: list[str] = []


@ufunc_method("reduce")
def reduce(
    ufunc: np.ufunc,
    array: Any,
    axis: Any = 0,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = False,
    initial: Any = np._NoValue,
    where: Any = True,
) -> SymbolicArray:
    row, name = _row(ufunc, "reduce"), f"np.{ufunc.__name__}.reduce"
    if row.identity is not None:
        return reduce_array(row, array, axis, dtype, out, keepdims, initial, where)
    refuse(name, "reduce what np.where gives", where=None if where is True else where)
    given = as_array(array)
    kind = computing_dtype(row, given.element_type, dtype, out)
    return deliver(_folded(ufunc, given, axis, kind.numpy, is_true(keepdims), initial), out, "unsafe")


def _row(ufunc: np.ufunc, function: str) -> Op:
    """The op of a ufunc that combines two cells."""
    row = OPS.get(ufunc.__name__)
    if row is None or row.arity != 2:
        raise UnsupportedError(
            f"np.{ufunc.__name__}.{function} is not supported in a jitted function",
            fix="reduce with add, multiply, minimum, maximum or another ufunc of two operands",
        )
    return row


@numpy_program
def _folded(
    ufunc: np.ufunc, array: SymbolicArray, axis: Any, dtype: Any, keepdims: bool, initial: Any
) -> Any:
    axes = reduced_axes(axis, array.ndim)
    start = ufunc.identity if initial is np._NoValue else initial
    _require_one_order(ufunc, array, axes, start)
    kept = [one for one in range(array.ndim) if one not in axes]
    inner = [array.shape[one] for one in kept]
    rows = array.transpose(*axes, *kept).reshape(prod(array.shape[one] for one in axes), *inner)
    if start is not None:
        rows = np.concatenate([np.full((1, *inner), start, dtype), rows.astype(dtype)])
    result = ufunc.accumulate(rows, 0, dtype)[-1]
    return insert_axes(result, axes) if keepdims else result


def _require_one_order(ufunc: np.ufunc, array: SymbolicArray, axes: tuple[int, ...], start: Any) -> None:
    """Raise unless the cells have an order, and there is something to begin with."""
    name = ufunc.__name__
    if ufunc.identity is None and len(axes) > 1:
        raise ShapeError(
            f"reduction operation '{name}' is not reorderable, so at most one axis may be specified",
            fix="name one axis",
        )
    words = f"zero-size array to reduction operation {name} which has no identity"
    extents = [array.cells.shape[one] for one in axes]
    if start is None and not all(require_at_least(one, 1, "ValueError", words) for one in extents):
        raise ShapeError(words, details=(describe(array),), fix="pass initial=")


@ufunc_method("reduceat")
def reduceat(
    ufunc: np.ufunc, array: Any, indices: Any, axis: Any = 0, dtype: Any = None, out: Any = None
) -> SymbolicArray:
    """Each part begins at an index and ends before the next one; if that is no greater, it has one cell."""
    row, whole, starts = _row(ufunc, "reduceat"), as_array(array), as_array(indices)
    if whole.ndim == 0:
        raise DTypeError("cannot reduceat on a scalar", fix="use np.atleast_1d(x)")
    if isinstance(indices, (list, tuple)) and not indices:
        starts = cast(starts, I64)
    require_row(starts, "object of too small depth for desired array")
    require_cast(starts, np.intp, "safe")
    along = only_axis(axis, whole.ndim, "reduceat")
    kind = computing_dtype(row, whole.element_type, dtype, out)
    return deliver(_reduced_parts(ufunc, whole, cast(starts, I64), along, kind.numpy), out, "unsafe")


@numpy_program
def _reduced_parts(ufunc: np.ufunc, whole: Any, starts: Any, axis: int, dtype: Any) -> Any:
    rows = np.moveaxis(whole, axis, 0)
    words = f"index out-of-bounds in {ufunc.__name__}.reduceat"
    require_between(starts, 0, len(rows), words, "IndexError")
    ends = np.empty_like(starts)
    ends[:-1] = starts[1:]
    ends[-1:] = len(rows)
    ends = np.maximum(ends, starts + 1)
    result = np.empty((len(starts), *rows.shape[1:]), dtype)
    for part in range(len(starts)):
        result[part] = ufunc.reduce(rows[starts[part] : ends[part]], dtype=dtype, initial=None)
    return np.moveaxis(result, 0, axis)
