"""Arrays from nothing and from Python values: `zeros`, `full`, `arange`, `array`, the `_like` forms.

A traced function gets these instead of NumPy's, so that it can write traced values into them. Numbers
that follow a rule are computed in place; others are constants of the program, copied on creation.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import wraps
from itertools import islice
from typing import Any, TypeVar

import numpy as np

from ...errors import DivisionByZero, DTypeError, ShapeError, UserError
from ...ir.conditions import compare, one_of
from ...ir.dtype import BOOL, F64, I64, DType, from_numpy
from ...ir.expr import Apply, Cast, Expr, Index, constant, convert, literal
from ...ir.index import Affine
from ...ir.ops import op
from ..indices.indexing import getitem, require_assignable, setitem
from ..record.registry import creates, implements
from ..record.retrace import number_needed
from ..record.trace import current_trace, user_location
from ..values.array import SymbolicArray
from ..values.elementwise import (
    as_array,
    as_operand,
    cast,
    constant_array,
    elementwise,
    is_traced,
    items_of,
    operand_at,
)
from ..values.extents import ONE, ZERO, steps_between
from ..values.fitting import check_fits, check_stored
from ..values.integer import LARGEST, SymbolicInt, number, python_int
from ..values.layout import Order, copy_order, is_laid_out, order_named, shape_order
from ..values.numbers import as_affine
from .joining import unwritten
from .operands import (
    arrays_of,
    common_dtype,
    element_type,
    is_given,
    named_dtype,
    refuse,
    require_cast,
    shape_of,
)
from .reshaping import flat
from .shaping import broadcast_to, insert_axes

__all__ = ["arange", "array", "constant_of", "counted", "filled", "full", "makes", "zeros"]

Function = TypeVar("Function", bound=Callable[..., Any])
# Ranges up to this length are also known while tracing, so that their elements can be indices.
_KNOWN_LENGTH = 1 << 16


def makes(*functions: Any) -> Callable[[Function], Function]:
    """Register a function that makes arrays for calls of NumPy's. `device=` and `like=` are not traced."""
    name = f"np.{functions[0].__name__}"

    def register(function: Function) -> Function:
        @wraps(function)
        def making(*args: Any, device: Any = None, like: Any = None, **options: Any) -> Any:
            refuse(name, "leave the argument out", device=device, like=like)
            return function(*args, **options)

        return creates(*functions)(making)  # type: ignore[return-value]

    return register


def filled(
    shape: Sequence[Any], value: Any, dtype: DType, order: Sequence[int] | None = None
) -> SymbolicArray:
    """An array of one number, its axes in memory in `order` (None: C's)."""
    number = literal(value, dtype)
    trace = current_trace()
    view = trace.compute(shape, dtype, lambda _: number, label="filled", order=order)
    return SymbolicArray(view, trace)


@makes(np.zeros)
def zeros(shape: Any, dtype: Any = float, order: str = "C") -> SymbolicArray:
    extents = shape_of(shape)
    return filled(extents, 0, element_type(dtype, F64), shape_order(len(extents), order))


@makes(np.ones)
def ones(shape: Any, dtype: Any = None, order: str = "C") -> SymbolicArray:
    extents = shape_of(shape)
    return filled(extents, 1, element_type(dtype, F64), shape_order(len(extents), order))


@makes(np.empty)
def empty(shape: Any, dtype: Any = float, order: str = "C") -> SymbolicArray:
    extents = shape_of(shape)
    return unwritten(extents, element_type(dtype, F64), "empty", shape_order(len(extents), order))


@creates(np.ndarray)
def ndarray(
    shape: Any,
    dtype: Any = float,
    buffer: Any = None,
    offset: Any = 0,
    strides: Any = None,
    order: Any = None,
) -> SymbolicArray:
    refuse("np.ndarray", "make it from an array by slicing and reshaping", buffer=buffer, strides=strides)
    return empty(shape, dtype, order or "C")


@implements(np.full)
@makes(np.full)
def full(shape: Any, fill_value: Any, dtype: Any = None, order: str = "C") -> SymbolicArray:
    extents = shape_of(shape)
    return _full(extents, fill_value, dtype, shape_order(len(extents), order))


def _full(shape: Sequence[Any], fill_value: Any, dtype: Any, order: Sequence[int]) -> SymbolicArray:
    value = as_array(fill_value)
    result = unwritten(shape, element_type(dtype, value.element_type), "filled", order)
    copyto(result, fill_value, "unsafe")
    return result


@implements(np.zeros_like)
def zeros_like(
    a: Any, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None, *, device: Any = None
) -> SymbolicArray:
    return _like(a, dtype, order, shape, lambda extents, kind, memory: filled(extents, 0, kind, memory))


@implements(np.ones_like)
def ones_like(
    a: Any, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None, *, device: Any = None
) -> SymbolicArray:
    return _like(a, dtype, order, shape, lambda extents, kind, memory: filled(extents, 1, kind, memory))


@implements(np.empty_like)
def empty_like(
    prototype: Any,
    /,
    dtype: Any = None,
    order: str = "K",
    subok: bool = True,
    shape: Any = None,
    *,
    device: Any = None,
) -> SymbolicArray:
    def empty_array(extents: tuple[Affine, ...], kind: DType, memory: Order) -> SymbolicArray:
        return unwritten(extents, kind, "empty", memory)

    return _like(prototype, dtype, order, shape, empty_array)


@implements(np.full_like)
def full_like(
    a: Any,
    fill_value: Any,
    dtype: Any = None,
    order: str = "K",
    subok: bool = True,
    shape: Any = None,
    *,
    device: Any = None,
) -> SymbolicArray:
    def full_array(extents: tuple[Affine, ...], kind: DType, memory: Order) -> SymbolicArray:
        return _full(extents, fill_value, kind.numpy, memory)

    return _like(a, dtype, order, shape, full_array)


def _like(
    a: Any,
    dtype: Any,
    order: str,
    shape: Any,
    make: Callable[[tuple[Affine, ...], DType, Order], SymbolicArray],
) -> SymbolicArray:
    """What a `_like` form makes of a shape, a dtype and a memory order."""
    array = as_array(a)
    extents = array.cells.shape if shape is None else shape_of(shape)
    memory = copy_order(array.cells, order)
    if len(extents) != array.ndim:
        memory = shape_order(len(extents), order)
    result = make(extents, element_type(dtype, array.element_type), memory)
    array.record.layouts.follow(result.cells, array.cells)
    return result


@makes(np.arange)
def arange(start: Any = None, stop: Any = None, step: Any = None, dtype: Any = None) -> SymbolicArray:
    if start is None and stop is None:
        raise DTypeError("arange() requires stop to be specified.", fix="pass stop")
    first, last = (0 if start is None else start, stop) if stop is not None else (0, start)
    stride = 1 if step is None else step
    if is_traced((first, last, stride)):
        return _traced_range(first, last, stride, dtype)
    if stride == 0:
        raise _no_range(first, last, stride)
    kind = element_type(dtype, _number_dtype(first, last, stride))
    length = _length_of((last - first) / stride, first == last)
    if kind is BOOL and length > 2:
        words = "arange() is only supported for booleans when the result has at most length 2."
        raise DTypeError(words, fix="use np.arange(n) != 0")
    # NumPy stores the first two numbers in the dtype and continues by their difference.
    numbers = np.array([first, first + (stride if length > 1 else 0)]).astype(kind.numpy)
    return _progression(length, kind, numbers)


def _length_of(steps: Any, is_empty: bool) -> int:
    """How many numbers there are in so many steps, which may be 0 although there is a way to go: steps that
    are infinite, or far greater than it. NumPy counts complex ones by the part that ends first."""
    if np.iscomplexobj(steps):
        steps = min(steps.real, steps.imag)
    elif steps == 0 and not is_empty:
        return 1 if math.copysign(1, steps) > 0 else 0
    if math.isnan(steps):
        raise ShapeError("arange: cannot compute length", fix="use numbers that are not NaN")
    if abs(steps) > LARGEST:
        raise ShapeError("Maximum allowed size exceeded", fix="use fewer steps")
    return int(max(0, math.ceil(steps)))


def _no_range(*numbers: Any) -> UserError:
    """NumPy divides by the step, which raises an exception if none of the numbers is its own."""
    fix = "use a step that is not 0"
    if any(isinstance(number, np.generic) for number in numbers):
        return ShapeError("Maximum allowed size exceeded", fix=fix)
    return DivisionByZero("division by zero", fix=fix)


def _traced_range(first: Any, last: Any, stride: Any, dtype: Any) -> SymbolicArray:
    """Whole numbers between such as are known when the compiled function runs."""
    trace = current_trace()
    *ends, step = (as_affine(_whole(value), trace) for value in (first, last, stride))
    if step is None or None in ends:
        given = [as_operand(value, trace) for value in (first, last, stride)]
        needed = [value.load(()) for value in given if type(value) is SymbolicArray]
        words = "the numbers that np.arange counts floats between must be known while tracing"
        number_needed(trace, needed, words, user_location(), fix="use np.arange(n) * step")
    by = number(step, trace, "the step of np.arange")
    if by == 0:
        raise _no_range(first, last, stride)
    begin, end = ends
    assert begin is not None
    assert end is not None
    kind = element_type(dtype, _number_dtype(first, last, stride))
    low, high = (begin, end) if by > 0 else (end, begin)
    length = steps_between(low, high, Affine.of(abs(by)))

    def cell(position: tuple[Affine, ...]) -> Expr:
        return convert(Index(position[0] * by + begin), kind)

    return SymbolicArray(trace.compute((length,), kind, cell, label="range"), trace)


def _whole(value: Any) -> Any:
    """A float that is an integer as that; anything else as it is, and -0.0, which no integer is."""
    is_float = type(value) in (float, np.float32, np.float64) and abs(value) < 2.0**53
    return int(value) if is_float and value == int(value) and not _is_negative_zero(value) else value


def _is_negative_zero(value: float) -> bool:
    return value == 0 and math.copysign(1.0, value) < 0


def _number_dtype(*numbers: Any) -> DType:
    """The dtype of an array of numbers, in which Python's count as NumPy's defaults."""
    return from_numpy(np.result_type(*map(_default_dtype, numbers)))


def _default_dtype(value: Any) -> np.dtype[Any]:
    if type(value) is SymbolicArray:
        return value.dtype
    return np.dtype(np.int64) if type(value) is SymbolicInt else np.asarray(value).dtype


def _progression(length: int, dtype: DType, numbers: np.ndarray) -> SymbolicArray:
    if dtype.is_integer:
        begin, second = (_wrapped(int(value)) for value in numbers[:2])
        step = _wrapped(second - begin)
    else:
        begin, step = numbers[0].item(), (numbers[1] - numbers[0] if dtype is not BOOL else numbers[1]).item()

    def cell(position: tuple[Affine, ...]) -> Expr:
        if not dtype.is_inexact:
            return convert(Index(position[0] * step + begin), dtype)
        first = _ahead(position[0], begin.real, step.real, dtype.part)
        if not dtype.is_complex:
            return first
        return Apply(op("complex"), (first, _ahead(position[0], begin.imag, step.imag, dtype.part)), dtype)

    trace = current_trace()
    view = trace.compute((length,), dtype, cell, label="range")
    if dtype.is_integer and length <= _KNOWN_LENGTH:
        trace.knowledge.know(view.tensor, (np.arange(length) * step + begin).astype(dtype.numpy))
    return SymbolicArray(view, trace)


def _wrapped(value: int) -> int:
    """The int64 of the same bits: without a sign, or with fewer bits, it comes to the same numbers."""
    return (value + 2**63) % 2**64 - 2**63


def _ahead(count: Affine, begin: float, step: float, dtype: DType) -> Expr:
    """`begin + count * step`, but for the first number `begin` itself: -0.0 plus 0.0 would be 0.0."""
    distance = Apply(op("multiply"), (Cast(Index(count), dtype), constant(step, dtype)), dtype)
    number = Apply(op("add"), (constant(begin, dtype), distance), dtype)
    if not _is_negative_zero(begin):
        return number
    is_first = compare("equal", Index(count), constant(0, I64))
    return one_of(is_first, constant(begin, dtype), number)


@makes(np.array)
def array(
    object: Any,
    dtype: Any = None,
    *,
    copy: Any = True,
    order: str = "K",
    subok: bool = False,
    ndmin: int = 0,
    ndmax: int = 0,
) -> SymbolicArray:
    order = order_named(order, "K")
    result = _as_typed(object, dtype, order)
    is_fit, asked = is_laid_out(result.cells, order), result
    if order == "A" or copy is False:
        result.record.layouts.require_numpys(result.cells)
    if copy is False and not (is_fit and result is object):
        raise ShapeError("Unable to avoid copy while creating an array as requested.", fix="use np.asarray")
    is_users = result is object or type(object) in (np.ndarray, np.memmap)
    if not is_fit or (copy is True and is_users):
        result = _fresh(result, result.element_type, order)
    if order != "K" and copy is not True:
        result.record.layouts.doubt(asked.cells, result.cells)
    return insert_axes(result, range(ndmin - result.ndim)) if ndmin > result.ndim else result


@makes(np.asarray, np.asanyarray)
def asarray(a: Any, dtype: Any = None, order: Any = None, *, copy: Any = None) -> SymbolicArray:
    """The array itself where it is one of that dtype: no copy, as in NumPy."""
    return array(a, dtype, copy=copy, order=order)


@creates(np.asarray_chkfinite)
def asarray_chkfinite(a: Any, dtype: Any = None, order: Any = None) -> SymbolicArray:
    result = asarray(a, dtype, order)
    is_finite, words = elementwise(op("isfinite"), result), "array must not contain infs or NaNs"
    current_trace().check(result.cells.shape, is_finite.load, "ValueError", words)
    return result


@makes(np.ascontiguousarray)
def ascontiguousarray(a: Any, dtype: Any = None) -> SymbolicArray:
    return array(a, dtype, copy=None, order="C", ndmin=1)


@makes(np.asfortranarray)
def asfortranarray(a: Any, dtype: Any = None) -> SymbolicArray:
    return array(a, dtype, copy=None, order="F", ndmin=1)


def _as_typed(value: Any, dtype: Any, order: str) -> SymbolicArray:
    """A value as an array of a dtype: itself, a cast, a stack of its items, or a constant."""
    if not _holds_array(value):
        return constant_of(value, dtype)
    result = as_array(value)
    kind = element_type(dtype, result.element_type)
    for item in items_of(value):
        operand = as_operand(item)
        check_fits(operand, kind, result.record)
        if item is not value:
            check_stored(operand, kind, result.record)
    is_number = result.is_scalar or result.weak is not None
    return _fresh(result, kind, order) if is_number or kind is not result.element_type else result


def _holds_array(value: Any) -> bool:
    return any(is_traced(item) or isinstance(item, np.ndarray) for item in items_of(value))


def _fresh(array: SymbolicArray, dtype: DType, order: str) -> SymbolicArray:
    """A copy that is an array, also of a scalar."""
    return SymbolicArray(cast(array, dtype, order).cells, array.record)


def constant_of(value: Any, dtype: Any = None) -> SymbolicArray:
    """A fresh array of a Python value that is known while tracing."""
    numbers = np.array(value, named_dtype(dtype) if is_given(dtype) else None)
    kind = from_numpy(numbers.dtype)
    if numbers.size == 0 or numbers.ndim == 0:
        return filled(numbers.shape, numbers[()] if numbers.ndim == 0 else 0, kind)
    return constant_array(numbers)


@implements(np.copy)
def copy_of(a: Any, order: str = "K", subok: bool = False) -> SymbolicArray:
    array = as_array(a)
    return _fresh(array, array.element_type, order)


@implements(np.copyto)
def copyto(dst: Any, src: Any, casting: str = "same_kind", where: Any = True) -> None:
    target, source = as_array(dst), as_operand(src)
    require_assignable(target)
    given: Any = common_dtype(target, source).numpy  # Python scalars adapt
    if type(source) is SymbolicArray and source.weak is None:
        given = source.dtype
    if not np.can_cast(given, target.dtype, casting):  # type: ignore[arg-type]
        raise DTypeError(
            f"Cannot cast array data from {given!r} to {target.dtype!r} according to the rule '{casting}'",
            fix="pass casting='unsafe'",
        )
    if type(source) in (float, complex):
        source = as_array(source)
    if type(source) is SymbolicArray and source.weak is not int and given != target.dtype:
        source = cast(source, target.element_type)
    if where is True:
        setitem(target, Ellipsis, source)
        return
    while type(source) is SymbolicArray and source.ndim > target.ndim and source.cells.shape[0] == ONE:
        source = getitem(source, 0)
    require_cast(as_array(where), np.bool_, "safe")
    mask = broadcast_to(as_array(where), target.cells.shape)
    kind = target.element_type
    new = source if type(source) is not SymbolicArray else broadcast_to(source, target.cells.shape)

    def cell(position: tuple[Affine, ...]) -> Expr:
        cases = (operand_at(mask, position, BOOL), operand_at(new, position, kind), target.load(position))
        return Apply(op("where"), cases, kind)

    current_trace().store(target.cells, cell)


@implements(np.meshgrid)
@creates(np.meshgrid)
def meshgrid(*xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> Any:
    if indexing not in ("xy", "ij"):
        raise ShapeError("Valid values for `indexing` are 'xy' and 'ij'.", fix="use 'xy' or 'ij'")
    parts = [flat(part) for part in arrays_of(xi)]
    order = list(range(len(parts)))
    if indexing == "xy" and len(parts) > 1:
        order[0], order[1] = 1, 0
    shape = [ZERO] * len(parts)
    for axis, part in zip(order, parts, strict=True):
        shape[axis] = part.cells.shape[0]
    grids = []
    for axis, part in zip(order, parts, strict=True):
        spread = insert_axes(part, [other for other in range(len(parts)) if other != axis])
        grids.append(spread if sparse else broadcast_to(spread, tuple(shape)))
    return tuple(_fresh(grid, grid.element_type, "C") if copy else grid for grid in grids)


def counted(length: Affine) -> SymbolicArray:
    """`np.arange(length)`."""
    return arange(python_int(length, current_trace()))


@creates(np.indices)
def indices(dimensions: Any, dtype: Any = int, sparse: bool = False) -> Any:
    shape = shape_of(dimensions)
    kind = element_type(dtype, I64)
    ranges = [
        insert_axes(cast(counted(extent), kind), [other for other in range(len(shape)) if other != axis])
        for axis, extent in enumerate(shape)
    ]
    if sparse:
        return tuple(ranges)
    result = unwritten((len(shape), *shape), kind, "indices")
    for axis, places in enumerate(ranges):
        setitem(result, axis, places)
    return result


@makes(np.fromiter)
def fromiter(iter: Any, dtype: Any, count: int = -1) -> SymbolicArray:
    items = list(iter if count < 0 else islice(iter, count))
    if len(items) < count:
        raise ShapeError(
            f"iterator too short: Expected {count} but iterator had only {len(items)} items.",
            fix="leave out the count, or lower it",
        )
    return array(items, dtype)
