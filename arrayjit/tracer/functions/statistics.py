"""Reductions made of several steps: `mean`, `var`, `std`, `average` and the NaN-ignoring family.

The steps are NumPy's own, in NumPy's dtypes: a mean is a sum divided by a count, a variance takes two
passes.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from ...errors import DivisionByZero, DTypeError, ShapeError
from ...ir.dtype import BF16, BOOL, C128, F32, F64, I64, DType, from_numpy
from ...ir.index import Affine
from ...ir.ops import op
from ..record.registry import AnyCallable, implements, method
from ..record.trace import current_trace
from ..values.array import SymbolicArray, describe
from ..values.elementwise import as_array, cast, copy, elementwise
from ..values.extents import ONE, agree, as_expr, product, require_at_least, same_shape
from .adopted import numpy_program
from .operands import (
    axes_of,
    common_dtype,
    deliver,
    element_type,
    is_given,
    is_true,
    require_all,
    require_cast,
)
from .parts import squares
from .reductions import accumulate_over, extremes, reduce_array, require_room, totals
from .shaping import broadcast_to, insert_axes

_NO_CELLS = "division by zero"

__all__ = ["mean", "without_nan"]


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
    is_small = array.element_type.is_small and not is_given(dtype)
    if is_small:
        dtype = F32.numpy
    elif not (array.element_type.is_inexact or is_given(dtype)):
        dtype = F64.numpy
    result = _quotient(array, axes, dtype, _mask(where), _count(array, axes, where), out)
    if is_small and not is_given(out):
        result = _as_dtype(result, array.element_type)
    return deliver(insert_axes(result, axes) if is_true(keepdims) else result, out)


def _quotient(
    array: SymbolicArray, axes: tuple[int, ...], dtype: Any, where: Any, count: Any, out: Any
) -> SymbolicArray:
    """A sum divided by a count. Where `out` is given NumPy has the sum there first, and divides it there."""
    kind = element_type(dtype, array.element_type)
    if not is_given(out):
        return _divided(accumulate_over(op("add"), array, axes, kind, where=where), count)
    target = as_array(out).element_type
    if not is_given(dtype):
        kind = common_dtype(array, out)
    require_room(op("add"), kind, out)
    total = accumulate_over(op("add"), array, axes, kind, where=where)
    return _divided(_as_dtype(total, target), count)


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
    array: SymbolicArray, axes: tuple[int, ...], dtype: Any, out: Any, ddof: Any, where: Any, mean: Any
) -> SymbolicArray:
    mask, count = _mask(where), _count(array, axes, where)
    deviation = elementwise(op("subtract"), array, _center(array, axes, dtype, mask, count, mean))
    is_plain = array.element_type.is_integer or array.element_type.is_float
    squared = elementwise(op("square"), deviation) if is_plain else squares(deviation)
    return _quotient(squared, axes, dtype, mask, _freedom(count, ddof), out)


def _center(
    array: SymbolicArray, axes: tuple[int, ...], dtype: Any, mask: Any, count: Any, mean: Any
) -> SymbolicArray:
    """The means that cells deviate from: those given, or those of the cells."""
    if is_given(mean):
        return as_array(mean)
    total = accumulate_over(op("add"), array, axes, element_type(dtype, _mean_dtype(array)), where=mask)
    return insert_axes(_divided(total, count), axes)


def _lost(ddof: Any, correction: Any) -> Any:
    """How many degrees of freedom are lost, under either name."""
    if not is_given(correction):
        return ddof
    if ddof != 0:
        words = "ddof and correction can't be provided simultaneously."
        raise ShapeError(words, fix="pass one of them")
    return correction


def _freedom(count: SymbolicArray | int, ddof: Any) -> Any:
    """The degrees of freedom that are left, none being the least."""
    if type(count) is int and type(ddof) in (int, float):
        return max(count - ddof, 0)
    return elementwise(op("maximum"), elementwise(op("subtract"), as_array(count), ddof), 0)


def _root(variance: SymbolicArray, out: Any) -> SymbolicArray:
    """The root as NumPy takes it: in place, or of one number in the dtype of the number."""
    kind, root = variance.element_type, elementwise(op("sqrt"), variance)
    if root.element_type is kind or is_given(out):
        return root
    if root.ndim:
        raise DTypeError(
            f"Cannot cast ufunc 'sqrt' output from {root.dtype!r} to {variance.dtype!r}",
            details=(describe(variance),),
            fix="pass a dtype= of floats",
        )
    return cast(root, kind)


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
            raise DivisionByZero(_NO_CELLS, details=(describe(array),))
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
    words = "Weights sum to zero, can't be normalized"
    require_all(elementwise(op("not_equal"), scale, 0), words, "ZeroDivisionError")
    products = elementwise(op("multiply"), array, weights, dtype=kind.numpy)
    total = reduce_array(op("add"), products, axes, keepdims=keepdims)
    return elementwise(op("divide"), total, scale), scale


def _aligned_weights(
    array: SymbolicArray, axis: Any, axes: tuple[int, ...], weights: SymbolicArray
) -> SymbolicArray:
    if axis is None:
        raise DTypeError("Axis must be specified when shapes of a and weights differ.", fix="pass axis=")
    words = "Shape of weights must be consistent with shape of a along specified axis."
    if not same_shape(weights.cells.shape, [array.cells.shape[one] for one in axes], words):
        raise ShapeError(
            words,
            details=(describe(weights), describe(array)),
            fix="give one weight for each position of the axes",
        )
    order = sorted(range(len(axes)), key=lambda n: axes[n])
    turned = SymbolicArray(weights.cells.transpose(order), weights.record)
    return insert_axes(turned, [axis for axis in range(array.ndim) if axis not in axes])


def without_nan(array: SymbolicArray, instead: float) -> SymbolicArray:
    """The array with another number where it is NaN."""
    if not _may_be_nan(array):
        return array
    return elementwise(op("where"), elementwise(op("isnan"), array), instead, array)


def _may_be_nan(array: SymbolicArray) -> bool:
    """NumPy knows no NaN of bfloat16."""
    return array.element_type.is_inexact and array.element_type is not BF16


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
    if not _may_be_nan(array):
        return mean(array, axis, dtype, out, keepdims, where=where)
    _require_inexact(dtype, out)
    axes, numbers = axes_of(axis, array.ndim), _finite_mask(array, where)
    result = _quotient(array, axes, dtype, numbers, _count(array, axes, numbers), out)
    return deliver(insert_axes(result, axes) if is_true(keepdims) else result, out)


def _require_inexact(dtype: Any, out: Any) -> None:
    for name, asked in (("dtype", dtype), ("out", out)):
        if is_given(asked) and not from_numpy(asked if name == "dtype" else asked.dtype).is_inexact:
            words = f"If a is inexact, then {name} must be inexact"
            raise DTypeError(words, fix=f"pass {name}= of floats")


def _finite_mask(array: SymbolicArray, where: Any) -> SymbolicArray:
    """Where the array is a number (and `where` holds)."""
    numbers = elementwise(op("equal"), array, array)
    if _mask(where) is True:
        return numbers
    require_cast(as_array(where), np.bool_, "safe")
    return elementwise(op("logical_and"), numbers, where)


def _variance_of_numbers(
    array: SymbolicArray, axes: tuple[int, ...], dtype: Any, out: Any, ddof: Any, where: Any, mean: Any
) -> SymbolicArray:
    """Of what is no NaN. Deviations have the dtype of the array, whatever their sum is asked in; where no
    degrees of freedom are left, it is NaN."""
    if not _may_be_nan(array):
        return _variance(array, axes, dtype, out, ddof, where, mean)
    _require_inexact(dtype, out)
    numbers = _finite_mask(array, where)
    count = as_array(_count(array, axes, numbers))
    center = _center(array, axes, dtype, numbers, count, mean)
    deviation = _as_dtype(elementwise(op("subtract"), array, center), array.element_type)
    freedom = elementwise(op("subtract"), count, ddof)
    result = _quotient(squares(deviation), axes, dtype, numbers, freedom, out)
    is_left = elementwise(op("greater"), freedom, 0)
    return _as_dtype(elementwise(op("where"), is_left, result, np.nan), result.element_type)


def _spread(name: str, variance: Callable[..., SymbolicArray], is_root: bool) -> AnyCallable:
    """A function that takes what `np.var` takes, and gives a variance or its root."""

    def function(
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
        result = variance(array, axes, dtype, out, _lost(ddof, correction), where, mean)
        result = insert_axes(result, axes) if is_true(keepdims) else result
        return deliver(_root(result, out) if is_root else result, out)

    function.__name__ = function.__qualname__ = name
    return function


implements(np.var)(method("var")(_spread("var", _variance, is_root=False)))
implements(np.std)(method("std")(_spread("std", _variance, is_root=True)))
implements(np.nanvar)(_spread("nanvar", _variance_of_numbers, is_root=False))
implements(np.nanstd)(_spread("nanstd", _variance_of_numbers, is_root=True))


_of_known_extent: Any = numpy_program(inspect.unwrap(np.cov))


@implements(np.cov)
def cov(
    m: Any,
    y: Any = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: Any = None,
    fweights: Any = None,
    aweights: Any = None,
    *,
    dtype: Any = None,
) -> Any:
    """By NumPy's own program, which has to know how many observations there are; where only the run does, or
    they have weights, by one of ours, which does not warn where no degrees of freedom are left."""
    array = as_array(m)
    count = array.cells.shape[0 if array.ndim == 2 and not rowvar else -1] if array.ndim else ONE
    is_weighted = fweights is not None or aweights is not None
    if array.ndim > 2 or (count.is_constant and not is_weighted):
        return _of_known_extent(m, y, rowvar, bias, ddof, dtype=dtype)
    if ddof is not None and ddof != int(ddof):
        raise ShapeError("ddof must be integer", fix="pass a whole number")
    lost = (0 if bias else 1) if ddof is None else ddof
    often, much = _weights_of("fweights", fweights, count), _weights_of("aweights", aweights, count)
    return _covariances(m, y, rowvar, lost, dtype, often, much)


def _weights_of(name: str, given: Any, count: Affine) -> SymbolicArray | None:
    """The weights of so many observations, which are not negative, and whole if they say how often each was
    made."""
    if given is None:
        return None
    weights = cast(as_array(given), F64)
    words = f"incompatible numbers of samples and {name}"
    if weights.ndim != 1 or not agree(weights.cells.shape[0], count, words):
        raise ShapeError(words, fix="pass a row with a weight for each observation")
    if name == "fweights":
        is_whole = elementwise(op("equal"), weights, elementwise(op("rint"), weights))
        require_all(is_whole, f"{name} must be integer", "TypeError")
    is_right = elementwise(op("logical_not"), elementwise(op("less"), weights, 0))
    require_all(is_right, f"{name} cannot be negative")
    return weights


@numpy_program
def _covariances(m: Any, y: Any, rowvar: bool, lost: Any, dtype: Any, often: Any, much: Any) -> Any:
    if dtype is None:
        dtype = np.result_type(m, m if y is None else y, np.float64)
    rows = np.array(m, ndmin=2, dtype=dtype)
    rows = rows if rowvar or np.ndim(m) == 1 else rows.T
    if y is not None:
        others = np.array(y, ndmin=2, dtype=dtype)
        rows = np.concatenate((rows, others if rowvar or np.ndim(y) == 1 else others.T))
    weights = much if often is None else often if much is None else often * much
    if weights is None:
        rows = rows - rows.mean(axis=1)[:, np.newaxis]
        freedom, weighted = np.asarray(rows.shape[1] - lost, float), rows
    else:
        total = weights.sum()
        rows = rows - np.average(rows, axis=1, weights=weights)[:, np.newaxis]
        freedom = total - lost * (1.0 if much is None else (weights * much).sum() / total)
        weighted = rows * weights
    return (rows @ weighted.T.conj() * (1 / np.maximum(freedom, 0.0))).squeeze()
