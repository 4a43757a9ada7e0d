"""What NumPy's functions take and give: arrays in any guise, axes, shapes, `out=`, and the options that
are not traced. Mistakes raise NumPy's exception at the user's line."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from ...errors import DTypeError, IndexOutOfRange, ShapeError, UnsupportedError
from ...ir.dtype import DType, from_numpy
from ...ir.index import Affine, Symbol, affine
from ...ir.ops import op
from ..indices.indexing import setitem
from ..record.trace import current_trace
from ..record.view import View
from ..values.array import SymbolicArray, describe
from ..values.elementwise import as_array, as_operand, cast, elementwise
from ..values.extents import require_at_least, same_shape, shape_texts
from ..values.integer import SymbolicInt
from ..values.numbers import integer_of

__all__ = [
    "AxisError",
    "alone",
    "arrays_of",
    "axes_of",
    "axis_of",
    "common_dtype",
    "deliver",
    "element_type",
    "is_given",
    "is_true",
    "kind_of",
    "named_dtype",
    "no_axis",
    "only_axis",
    "put_back",
    "reduced_axes",
    "refuse",
    "remapped",
    "require_all",
    "require_between",
    "require_cast",
    "require_integers",
    "require_real",
    "require_row",
    "result_of",
    "shape_of",
]


class AxisError(IndexOutOfRange, np.exceptions.AxisError):
    """An axis that the array does not have."""


def alone(value: Any) -> SymbolicArray:
    """The array that NumPy makes of an operand by itself, in which Python numbers are not weak."""
    array = as_array(value)
    return array if array.weak is None else SymbolicArray(array.cells, array.record, is_scalar=True)


def arrays_of(values: Iterable[Any]) -> list[SymbolicArray]:
    return [as_array(value) for value in values]


def result_of(view: View) -> SymbolicArray:
    """The result of a function that gives a NumPy scalar where no axes are left."""
    return SymbolicArray(view, current_trace(), is_scalar=view.rank == 0)


def is_given(option: Any) -> bool:
    """Whether an option was passed: neither None nor NumPy's mark for absence."""
    return option is not None and option is not np._NoValue


def is_true(flag: Any) -> bool:
    """A boolean option that may be absent."""
    return is_given(flag) and bool(flag)


def axis_of(axis: Any, ndim: int, name: str = "axis") -> int:
    """One axis, counted from the front."""
    number = operator.index(axis)
    if not -ndim <= number < ndim:
        raise no_axis(f"{name} {number} is out of bounds for array of dimension {ndim}", ndim)
    return number % ndim


def no_axis(words: str, ndim: int) -> AxisError:
    """The exception where an array has only so many axes."""
    return AxisError(words, fix=f"use an axis from {-ndim} to {ndim - 1}" if ndim else "use axis=None")


def axes_of(axis: Any, ndim: int, name: str = "axis") -> tuple[int, ...]:
    """Distinct axes in the order given; None means all of them."""
    if axis is None:
        return tuple(range(ndim))
    given = [axis[n] for n in range(len(axis))] if isinstance(axis, (tuple, list, range)) else [axis]
    axes = tuple(axis_of(one, ndim, name) for one in given)
    if len(set(axes)) != len(axes):
        raise ShapeError(f"duplicate value in '{name}'", fix="name each axis once")
    return axes


def reduced_axes(axis: Any, ndim: int) -> tuple[int, ...]:
    """The axes of a reduction; NumPy lets axis 0 or -1 stand for none where there are none."""
    return () if ndim == 0 and axis in (0, -1) else axes_of(axis, ndim)


def shape_of(shape: Any) -> tuple[Affine, ...]:
    """A shape given as an integer or as a sequence of them."""
    is_row = isinstance(shape, (tuple, list)) or (isinstance(shape, np.ndarray) and shape.ndim > 0)
    extents = tuple(_extent_of(extent) for extent in (tuple(shape) if is_row else (shape,)))
    if math.prod(extent.offset for extent in extents if extent.is_constant) > np.iinfo(np.int64).max:
        words = "array is too big; `arr.size * arr.dtype.itemsize` is larger than the maximum possible size."
        raise ShapeError(words, fix="use smaller sizes")
    return extents


def _extent_of(value: Any) -> Affine:
    extent = integer_of(value, current_trace())
    words = "negative dimensions are not allowed"
    if not require_at_least(extent, 0, "ValueError", words):
        raise ShapeError(words, fix="use sizes >= 0")
    return extent


def element_type(dtype: Any, default: DType) -> DType:
    """The row of a `dtype=` argument."""
    return from_numpy(named_dtype(dtype)) if is_given(dtype) else default


def named_dtype(dtype: Any) -> np.dtype[Any]:
    """The dtype that an argument names. A traced number or array is none, though it has one: only scalars of
    NumPy's stand for their own."""
    if type(dtype) is SymbolicInt or (type(dtype) is SymbolicArray and not dtype.is_scalar):
        words = f"Cannot interpret {describe(as_array(dtype))} as a data type"
    else:
        try:
            named: np.dtype[Any] = np.dtype(dtype)
            return named
        except TypeError as error:
            words = str(error)
    fix = "name one, as np.float32 or x.dtype; the sizes of several axes are one argument: np.zeros((n, m))"
    raise DTypeError(words, fix=fix)


def common_dtype(*operands: Any) -> DType:
    """NumPy's `result_type` of operands, in which Python scalars are weak."""
    return from_numpy(np.result_type(*(kind_of(as_operand(operand)) for operand in operands)))


def kind_of(operand: Any) -> Any:
    """What `np.result_type` takes for an operand: an array's dtype, a number for a Python scalar."""
    if type(operand) is not SymbolicArray:
        return operand
    return operand.dtype if operand.weak is None else operand.weak(0)


def refuse(function: str, fix: str, **options: Any) -> None:
    """Raise UnsupportedError for the first of these options that was passed."""
    for name, value in options.items():
        if is_given(value):
            raise UnsupportedError(
                f"{function} with {name}={value!r} is not supported in a jitted function", fix=fix
            )


def require_real(array: SymbolicArray, function: str) -> SymbolicArray:
    """The array. Raises UnsupportedError for a complex one."""
    if array.element_type.is_complex:
        raise UnsupportedError(
            f"{function} of complex numbers is not supported in a jitted function",
            details=(describe(array),),
            fix="use the parts, x.real and x.imag, or the sizes, np.abs(x)",
        )
    return array


def require_all(holds: SymbolicArray, words: str, exception: str = "ValueError") -> None:
    """The compiled function raises the exception, with NumPy's words, where any of these cells is false."""
    current_trace().check(holds.cells.shape, holds.load, exception, words)


def require_between(numbers: Any, low: Any, end: Any, words: str, exception: str = "ValueError") -> None:
    """The compiled function raises where a number is less than `low`, or not less than `end`."""
    for relation, limit in (("greater_equal", low), ("less", end)):
        require_all(elementwise(op(relation), numbers, limit), words, exception)


def require_cast(array: SymbolicArray, dtype: Any, rule: str) -> None:
    """Raises DTypeError, with NumPy's words, where the array may not become one of `dtype` by the rule."""
    target = named_dtype(dtype)
    if not np.can_cast(array.dtype, target, rule):  # type: ignore[arg-type]
        raise DTypeError(
            f"Cannot cast array data from {array.dtype!r} to {target!r} according to the rule '{rule}'",
            details=(describe(array),),
            fix=f"convert it with .astype(np.{target})",
        )


def require_integers(positions: SymbolicArray) -> SymbolicArray:
    """The positions. Raises DTypeError, with NumPy's words, for floats and complex numbers."""
    if positions.element_type.is_inexact:
        raise DTypeError(
            "only int indices permitted",
            details=(describe(positions),),
            fix="convert them first: x.astype(int)",
        )
    return positions


def require_row(array: SymbolicArray, words: str) -> None:
    """Raises ShapeError, with NumPy's words, for an array that has not one axis."""
    if array.ndim != 1:
        details = (describe(array),)
        raise ShapeError(words, details=details, fix="pass an array of one axis: x.ravel()")


def remapped(
    array: SymbolicArray,
    shape: Sequence[Any],
    position: Callable[[tuple[Affine, ...]], Sequence[Any]],
) -> SymbolicArray:
    """The view of `shape` whose cell `p` is the array's cell `position(p)`."""
    symbols = tuple(Symbol("i") for _ in shape)
    return SymbolicArray(array.shown().remap(shape, symbols, position(affine(symbols))), array.record)


def only_axis(axis: Any, ndim: int, function: str) -> int:
    """The axis of a function that goes along one: None names it where there is no other."""
    axes = axes_of(axis, ndim)
    if len(axes) != 1:
        words = f"{function} does not allow multiple axes"
        raise ShapeError(words, fix="name one axis")
    return axes[0]


def deliver(result: SymbolicArray, out: Any, casting: str = "same_kind") -> SymbolicArray:
    """The result, written into `out=` if one is given, by NumPy's rules of shape and casting. A number is
    converted as arrays are: it need not fit."""
    if isinstance(out, tuple):
        (out,) = out
    if not is_given(out):
        return result
    target = as_array(out)
    shapes = target.cells.shape, result.cells.shape
    words = "output array has shape {}, the result has shape {}".format(*shape_texts(*shapes))
    if not same_shape(*shapes, words):
        raise ShapeError(words, details=(describe(target),), fix="pass an out= array of the result's shape")
    if not np.can_cast(result.dtype, target.dtype, casting):  # type: ignore[arg-type]
        raise DTypeError(
            f"Cannot cast output from {result.dtype!r} to {target.dtype!r} with casting rule '{casting}'",
            details=(describe(target),),
            fix="pass an out= array of the result's dtype",
        )
    if result.element_type is not target.element_type:
        result = cast(result, target.element_type)
    setitem(target, Ellipsis, result)
    return target


def put_back(result: SymbolicArray, out: Any) -> SymbolicArray:
    """`deliver` for functions that compute in a copy of `out=` in the result's dtype: the array must become
    one of it, not the other way round."""
    if not is_given(out):
        return result
    require_cast(as_array(out), result.dtype, "safe")
    return deliver(result, out, "unsafe")
