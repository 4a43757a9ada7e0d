"""Reductions made of several steps: `mean`, `var`, `std`, `average`, `ptp` and the NaN-ignoring family.

The steps are NumPy's own, in NumPy's dtypes: a mean is a sum divided by a count, a variance takes two
passes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import DivisionByZero, DTypeError, ShapeError
from ...ir.dtype import BF16, BOOL, C128, F32, F64, I64, DType
from ...ir.index import Affine
from ...ir.ops import op
from ..record.registry import implements, method
from ..record.trace import current_trace, user_location
from ..values.array import SymbolicArray, describe
from ..values.elementwise import as_array, cast, copy, elementwise
from ..values.extents import as_expr, product, require_at_least, same_shape
from .operands import axes_of, common_dtype, deliver, element_type, is_given, is_true
from .parts import squares
from .reductions import accumulate_over, extremes, reduce_array, totals
from .shaping import broadcast_to, insert_axes

_NO_CELLS = "division by zero"

__all__ = ["mean", "std", "var", "without_nan"]


@implements(np.mean)
@method("mean")
def mean(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = False,
    *,
    where: Any = True,
) -> SymbolicArray:
    array = as_array(a)
    axes = axes_of(axis, array.ndim)
    kind = element_type(dtype, F32 if array.element_type.is_small else _mean_dtype(array))
    total = accumulate_over(op("add"), array, axes, kind, where=_mask(where))
    result = _divided(total, _count(array, axes, where))
    if array.element_type.is_small and dtype is None:
        result = _as_dtype(result, array.element_type)
    return deliver(insert_axes(result, axes) if is_true(keepdims) else result, out)


@implements(np.var)
@method("var")
def var(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    ddof: Any = 0,
    keepdims: Any = False,
    *,
    where: Any = True,
    mean: Any = None,
    correction: Any = None,
) -> SymbolicArray:
    array = as_array(a)
    axes = axes_of(axis, array.ndim)
    result = _variance(array, axes, dtype, correction if is_given(correction) else ddof, where, mean)
    return deliver(insert_axes(result, axes) if is_true(keepdims) else result, out)


@implements(np.std)
@method("std")
def std(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    ddof: Any = 0,
    keepdims: Any = False,
    *,
    where: Any = True,
    mean: Any = None,
    correction: Any = None,
) -> SymbolicArray:
    variance = var(a, axis, dtype, None, ddof, keepdims, where=where, mean=mean, correction=correction)
    return deliver(elementwise(op("sqrt"), variance), out)


def _mean_dtype(array: SymbolicArray) -> DType:
    return array.element_type if array.element_type.is_inexact else F64


def _mask(where: Any) -> Any:
    return True if where is np._NoValue else where


def _count(array: SymbolicArray, axes: tuple[int, ...], where: Any) -> SymbolicArray | int:
    """How many cells a reduction over `axes` combines."""
    if _mask(where) is True:
        count = product(array.cells.shape[axis] for axis in axes)
        return count.offset if count.is_constant else _number(count)
    chosen = broadcast_to(cast(as_array(where), BOOL), array.cells.shape)
    return accumulate_over(op("add"), chosen, axes, I64)


def _number(value: Affine) -> SymbolicArray:
    """The number as an int64 scalar."""
    view = current_trace().compute((), I64, lambda _: as_expr(value))
    return SymbolicArray(view, current_trace(), is_scalar=True)


def _divided(total: SymbolicArray, count: SymbolicArray | int | float) -> SymbolicArray:
    """The quotient as NumPy takes it: in 64 bits a part, then back in the dtype of the sum."""
    divisor = count if type(count) is SymbolicArray else float(count)
    wide = C128 if total.element_type.is_complex else F64
    return _as_dtype(elementwise(op("divide"), _as_dtype(total, wide), divisor), total.element_type)


def _as_dtype(array: SymbolicArray, dtype: DType) -> SymbolicArray:
    return array if array.element_type is dtype else cast(array, dtype)


def _variance(
    array: SymbolicArray, axes: tuple[int, ...], dtype: Any, ddof: Any, where: Any, mean: Any
) -> SymbolicArray:
    kind = element_type(dtype, _mean_dtype(array))
    mask = _mask(where)
    count = _count(array, axes, where)
    if is_given(mean):
        center = as_array(mean)
    else:
        total = accumulate_over(op("add"), array, axes, kind, where=mask)
        center = insert_axes(_divided(total, count), axes)
    deviation = elementwise(op("subtract"), array, center)
    total = accumulate_over(op("add"), squares(deviation), axes, kind.part, where=mask)
    if type(count) is int and type(ddof) in (int, float):
        return _divided(total, max(count - ddof, 0))
    return _divided(total, elementwise(op("maximum"), elementwise(op("subtract"), as_array(count), ddof), 0))


@implements(np.ptp)
def ptp(a: Any, axis: Any = None, out: Any = None, keepdims: Any = False) -> SymbolicArray:
    high = reduce_array(op("maximum"), a, axis, keepdims=keepdims)
    low = reduce_array(op("minimum"), a, axis, keepdims=keepdims)
    return deliver(elementwise(op("subtract"), high, low), out)


@implements(np.average)
def average(
    a: Any, axis: Any = None, weights: Any = None, returned: bool = False, *, keepdims: Any = False
) -> Any:
    array = as_array(a)
    axes = axes_of(axis, array.ndim)
    if weights is None:
        result = mean(array, axes, keepdims=keepdims)
        kept = [array.cells.shape[axis] for axis in range(array.ndim) if axis not in axes]
        if not all(require_at_least(extent, 1, "ZeroDivisionError", _NO_CELLS) for extent in kept):
            raise DivisionByZero(_NO_CELLS, loc=user_location(), details=(describe(array),))
        count = _count(array, axes, True)
        scale = as_array(np.float64(count)) if type(count) is int else _as_dtype(as_array(count), F64)
    else:
        result, scale = _weighted(array, axis, axes, as_array(weights), keepdims)
    if not returned:
        return result
    scale = _as_dtype(scale, result.element_type)
    shape = result.cells.shape
    return result, scale if scale.cells.shape == shape else copy(broadcast_to(scale, shape))


def _weighted(
    array: SymbolicArray, axis: Any, axes: tuple[int, ...], weights: SymbolicArray, keepdims: Any
) -> tuple[SymbolicArray, SymbolicArray]:
    words = "Axis must be specified when shapes of a and weights differ."
    if not same_shape(weights.cells.shape, array.cells.shape, words):
        weights = _aligned_weights(array, axis, axes, weights)
    kind = common_dtype(array, weights)
    if not (array.element_type.is_inexact or weights.element_type.is_inexact):
        kind = F64
    scale = reduce_array(op("add"), weights, axes, kind.numpy, keepdims=keepdims)
    message = "Weights sum to zero, can't be normalized"

    defined = elementwise(op("not_equal"), scale, 0)
    current_trace().check(scale.cells.shape, defined.load, "ZeroDivisionError", message)
    products = elementwise(op("multiply"), array, weights, dtype=kind.numpy)
    total = reduce_array(op("add"), products, axes, keepdims=keepdims)
    return elementwise(op("divide"), total, scale), scale


def _aligned_weights(
    array: SymbolicArray, axis: Any, axes: tuple[int, ...], weights: SymbolicArray
) -> SymbolicArray:
    if axis is None:
        raise DTypeError(
            "Axis must be specified when shapes of a and weights differ.",
            loc=user_location(),
            fix="pass axis=",
        )
    words = "Shape of weights must be consistent with shape of a along specified axis."
    if not same_shape(weights.cells.shape, [array.cells.shape[one] for one in axes], words):
        raise ShapeError(
            words,
            loc=user_location(),
            details=(describe(weights), describe(array)),
            fix="give one weight for each position of the axes",
        )
    order = sorted(range(len(axes)), key=lambda n: axes[n])
    turned = SymbolicArray(weights.cells.transpose(order), weights.record)
    return insert_axes(turned, [axis for axis in range(array.ndim) if axis not in axes])


def without_nan(array: SymbolicArray, instead: float) -> SymbolicArray:
    """The array with another number where it is NaN; NumPy knows none of bfloat16."""
    if not array.element_type.is_inexact or array.element_type is BF16:
        return array
    return elementwise(op("where"), elementwise(op("isnan"), array), instead, array)


implements(np.nansum)(totals("nansum", op("add"), lambda a: without_nan(as_array(a), 0.0)))
implements(np.nanprod)(totals("nanprod", op("multiply"), lambda a: without_nan(as_array(a), 1.0)))
implements(np.nanmin)(extremes("nanmin", op("fmin")))
implements(np.nanmax)(extremes("nanmax", op("fmax")))


@implements(np.nanmean)
def nanmean(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = False,
    *,
    where: Any = True,
) -> SymbolicArray:
    array = as_array(a)
    if not array.element_type.is_inexact:
        return mean(array, axis, dtype, out, keepdims, where=where)
    return mean(array, axis, dtype, out, keepdims, where=_finite_mask(array, where))


def _finite_mask(array: SymbolicArray, where: Any) -> SymbolicArray:
    """Where the array is a number (and `where` holds)."""
    numbers = elementwise(op("equal"), array, array)
    if _mask(where) is True:
        return numbers
    return elementwise(op("logical_and"), numbers, where)


@implements(np.nanvar)
def nanvar(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    ddof: Any = 0,
    keepdims: Any = False,
    *,
    where: Any = True,
) -> SymbolicArray:
    return var(a, axis, dtype, out, ddof, keepdims, where=_finite_mask(as_array(a), where))


@implements(np.nanstd)
def nanstd(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    ddof: Any = 0,
    keepdims: Any = False,
    *,
    where: Any = True,
) -> SymbolicArray:
    return std(a, axis, dtype, out, ddof, keepdims, where=_finite_mask(as_array(a), where))
