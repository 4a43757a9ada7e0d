"""Reductions over axes: `sum`, `prod`, `min`, `max`, `any`, `all`, `count_nonzero` and
`ufunc.reduce`. Each is one Assign with an accumulating op."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from ...errors import DTypeError, ShapeError, UnsupportedError
from ...ir.conditions import one_of
from ...ir.dtype import BOOL, F32, I64, DType, Kind, from_numpy
from ...ir.expr import Apply, Expr, convert, dtype_of, literal
from ...ir.index import Affine, Symbol, affine
from ...ir.ops import Op, op
from ...ir.resolve import resolve
from ..indices.indexing import getitem
from ..indices.masked import before_selection
from ..record.registry import AnyCallable, implements, method
from ..record.trace import Body, current_trace
from ..record.view import View
from ..values.array import SymbolicArray, describe
from ..values.elementwise import (
    as_array,
    as_stored,
    broadcast_view,
    broadcasts_to,
    cast,
    elementwise,
    operand_at,
)
from ..values.extents import product, require_at_least, shape_text
from ..values.layout import kept_order
from ..values.rows import LISTS
from .operands import deliver, is_given, is_true, named_dtype, reduced_axes, require_cast, result_of
from .parts import imag, real
from .shaping import insert_axes

__all__ = [
    "accumulate_over",
    "computing_dtype",
    "extreme_number",
    "extremes",
    "reduce_array",
    "require_room",
    "split_last",
    "totals",
]

_WIDENED = (op("add"), op("multiply"))
_EXTREMES = ("minimum", "maximum", "fmin", "fmax")
# NumPy 2.2 and earlier count all of an array as a Python int.
_COUNTS_IN_PYTHON = type(np.count_nonzero(np.zeros(1))) is int
_OF_BOOLS = {op("maximum"): op("logical_or"), op("minimum"): op("logical_and")}
_OF_BOOLS |= {op("fmax"): op("logical_or"), op("fmin"): op("logical_and")}
_ROUNDED = (op("logaddexp"), op("logaddexp2"))
_MODULAR = ("add", "subtract", "multiply", "bitwise_and", "bitwise_or", "bitwise_xor")
_TRUTH = ("logical_and", "logical_or", "logical_xor")

ROW = 64
"""Extremes of so many complex numbers are found side by side with those of others, and then compared."""

ROWS = 8
"""From how many rows on that pays."""


def _summing_dtype(dtype: DType) -> DType:
    """NumPy sums and multiplies bools and small integers in 64 bits."""
    if dtype.kind is Kind.UINT:
        return from_numpy(np.uint64)
    return I64 if dtype.kind in (Kind.BOOL, Kind.INT) else dtype


def combining_dtype(operation: Op, dtype: DType) -> DType:
    """The dtype in which an operation combines cells of a dtype with one another, where NumPy has one."""
    if operation.name in _TRUTH:
        _require_loop(operation, dtype, BOOL)
        return dtype
    inputs, output = resolve(operation, (dtype, dtype))
    if inputs != (output, output):
        raise UnsupportedError(f"combining {dtype.name} by {operation.name} is not supported")
    return output


def computing_dtype(operation: Op, dtype: DType, wanted: Any, out: Any) -> DType:
    """The dtype in which cells are combined: the one asked for, or NumPy's choice by those of both sides."""
    if is_given(wanted):
        found = _wanted_dtype(operation, from_numpy(named_dtype(wanted)))
    else:
        found = combining_dtype(operation, _default_dtype(operation, dtype, out))
    require_room(operation, found, out)
    return found


def require_room(operation: Op, computed: DType, out: Any) -> None:
    """NumPy combines cells in the memory of `out`. Raises UnsupportedError where this cannot hold what was
    combined so far, so that the result would depend on how many cells are combined at a time."""
    target = _dtype_of(out)
    if target is None or np.can_cast(computed.numpy, target, "safe"):
        return
    if computed.is_integer and target.kind in "iu":
        is_same = operation.name in _MODULAR
    else:
        is_wide = operation.name in _EXTREMES or from_numpy(target).part.bits >= F32.bits
        is_same = is_wide and np.can_cast(computed.numpy, target, "same_kind")
    if is_same:
        return
    raise UnsupportedError(
        f"combining {computed.name} by {operation.name} in an out= array of {target} is not supported",
        fix=f"pass an out= array of {computed.name}, and convert it with .astype(np.{target})",
    )


def _wanted_dtype(operation: Op, dtype: DType) -> DType:
    """The same for a dtype that the program asks for: NumPy computes in no other."""
    found = combining_dtype(operation, dtype)
    _require_loop(operation, dtype, found)
    return found


def _require_loop(operation: Op, wanted: DType, found: DType) -> None:
    if wanted is not found:
        words = "No loop matching the specified signature and casting was found for ufunc"
        raise DTypeError(f"{words} {operation.ufunc}", fix=f"pass dtype=np.{found.name}, or none")


def accumulate_over(
    operation: Op,
    array: SymbolicArray,
    axes: tuple[int, ...],
    dtype: DType,
    *,
    initial: Any = np._NoValue,
    where: Any = True,
) -> SymbolicArray:
    """The array with `axes` combined by `operation`, computed in `dtype`; a scalar when none are left. Small
    floats are combined in float32, as NumPy does it, but for logarithms, which it rounds after each."""
    if dtype.is_small and operation not in _ROUNDED:
        wide = accumulate_over(operation, array, axes, F32, initial=initial, where=where)
        return cast(wide, dtype)
    memory = kept_order(array.ndim, [array.cells])
    kept = tuple(axis for axis in memory if axis not in axes)
    order = (*kept, *(axis for axis in memory if axis in axes))
    neutral = _neutral(operation, dtype)
    if initial is None or (operation.name in _EXTREMES and initial is np._NoValue):
        _require_cells(operation, array, axes, where)
        start = neutral
    elif initial is np._NoValue:
        start = _start(operation, dtype)
    else:
        start = operand_at(as_stored(initial, dtype, current_trace()), (), dtype)
    selected = before_selection(array.cells, array.record) if where is True and axes else None
    if selected is not None:
        return _over_selected(operation, *selected, neutral, start)
    if dtype.is_complex and operation.name in _EXTREMES and where is True and _are_few_of_many(array, axes):
        return _by_rows(operation, array, order[len(kept) :], dtype, initial)
    mask = None if where is True else _mask(where, array, order)
    moved = SymbolicArray(array.cells.transpose(order), array.record)

    def cell(position: tuple[Affine, ...]) -> Expr:
        value = operand_at(moved, position, dtype)
        if mask is None:
            return value
        return one_of(operand_at(mask, position, BOOL), value, neutral)

    view = current_trace().compute(
        moved.cells.shape[: len(kept)],
        dtype,
        cell,
        label=operation.name,
        over=moved.cells.shape[len(kept) :],
        accum=_among_bools(operation) if dtype is BOOL else operation,
        initial=start,
    )
    return result_of(view.transpose([kept.index(axis) for axis in sorted(kept)]))


def _are_few_of_many(array: SymbolicArray, axes: tuple[int, ...]) -> bool:
    """Whether there are few results, each of many cells."""
    extents = dict(enumerate(array.cells.shape))
    many = product(extents.pop(axis) for axis in axes)
    few = product(extents.values())
    is_known = many.is_constant and few.is_constant
    return is_known and many.constant >= ROW * ROWS and few.constant < ROWS


def _by_rows(
    operation: Op, array: SymbolicArray, axes: Sequence[int], dtype: DType, initial: Any
) -> SymbolicArray:
    """An extreme of complex numbers: those of rows, which go side by side where the numbers of one row wait
    for one another, and then the one of these. The first of equals comes from the first row that has it.
    `axes` are in their order in memory."""
    *others, last = axes
    if others:
        rows = accumulate_over(operation, array, (last,), dtype)
        left = tuple(axis - (axis > last) for axis in others)
        return accumulate_over(operation, rows, left, dtype, initial=initial)
    end = array.ndim - 1
    kept = (axis for axis in range(array.ndim) if axis != last)
    moved = SymbolicArray(array.cells.transpose((*kept, last)), array.record)
    count = moved.cells.shape[end].constant
    whole = SymbolicArray(split_last(moved.cells, count // ROW, ROW), array.record)
    rows = accumulate_over(operation, whole, (end + 1,), dtype)
    best = accumulate_over(operation, rows, (end,), dtype, initial=initial)
    if count % ROW:
        rest = getitem(moved, (..., slice(count // ROW * ROW, None)))
        best = elementwise(operation, best, accumulate_over(operation, rest, (end,), dtype))
    return result_of(best.cells)


def split_last(cells: View, blocks: int, size: int) -> View:
    """The whole blocks of the last axis, as two axes."""
    *outer, _ = cells.shape
    symbols = tuple(Symbol("i") for _ in range(cells.rank + 1))
    *before, block, inside = affine(symbols)
    return cells.remap((*outer, blocks, size), symbols, (*before, block * size + inside))


def _along_rows(array: SymbolicArray, axes: tuple[int, ...]) -> bool:
    """Whether neighbours in memory lie along these axes."""
    return kept_order(array.ndim, [array.cells])[-1:] in [(axis,) for axis in axes]


def extreme_number(operation: Op, array: SymbolicArray, axes: tuple[int, ...]) -> SymbolicArray:
    """What equals the extreme of the cells over `axes`, or is NaN if one of them is. Which of equal numbers
    it is does not matter, so that of complex ones real parts are compared first, then the imaginary parts of
    those that have the extreme one: none waits for another. Columns go side by side anyway."""
    dtype = array.element_type
    if not (dtype.is_complex and _along_rows(array, axes)):
        return accumulate_over(operation, array, axes, dtype)
    assert operation.identity is not None
    x, y = real(array), imag(array)
    over = partial(accumulate_over, operation, axes=axes, dtype=dtype.part)
    first = over(elementwise(op("where"), elementwise(op("equal"), y, y), x, np.nan))
    is_first = elementwise(op("equal"), x, insert_axes(first, axes))
    second = over(elementwise(op("where"), is_first, y, operation.identity(dtype.part)))

    def cell(position: tuple[Affine, ...]) -> Expr:
        return Apply(op("complex"), (first.load(position), second.load(position)), dtype)

    return result_of(current_trace().compute(first.cells.shape, dtype, cell))


def _mask(where: Any, array: SymbolicArray, order: Sequence[int]) -> SymbolicArray:
    """What says which cells take part, with the axes of the array in this order."""
    given = cast(as_array(where), BOOL) if isinstance(where, LISTS) else as_array(where)
    require_cast(given, np.bool_, "safe")
    words = f"where= of shape {shape_text(given.cells.shape)} does not broadcast to the array"
    if not broadcasts_to(given.cells.shape, array.cells.shape, words):
        raise ShapeError(words, details=(describe(array),), fix="fit the mask to it")
    return SymbolicArray(broadcast_view(given.cells, array.cells.shape).transpose(order), given.record)


def _among_bools(operation: Op) -> Op:
    """Extremes of bools are whether any holds, and whether all do."""
    return _OF_BOOLS.get(operation, operation)


def _over_selected(operation: Op, mask: View, value: Body, neutral: Expr, start: Expr) -> SymbolicArray:
    """The values combined where the mask holds, without collecting them."""
    dtype, order = dtype_of(neutral), kept_order(mask.rank, [mask])
    axes = [order.index(axis) for axis in range(mask.rank)]

    def cell(at: tuple[Affine, ...]) -> Expr:
        position = tuple(at[axis] for axis in axes)
        return one_of(mask.load(position), convert(value(position), dtype), neutral)

    extents = [mask.shape[axis] for axis in order]
    trace = current_trace()
    return result_of(
        trace.compute((), dtype, cell, label=operation.name, over=extents, accum=operation, initial=start)
    )


def _neutral(operation: Op, dtype: DType) -> Expr:
    if operation.identity is None:
        raise UnsupportedError(
            f"np.{operation.ufunc or operation.name}.reduce is not supported in a jitted function",
            fix="reduce with add, multiply, minimum, maximum, logical_* or bitwise_*",
        )
    part = operation.identity(dtype.part)
    if not dtype.is_complex:
        return literal(part, dtype)
    return literal(complex(part, 0.0 if operation is op("multiply") else part), dtype)


def _start(operation: Op, dtype: DType) -> Expr:
    """What NumPy starts from: the neutral element, but sums of floats from 0.0, not -0.0."""
    return literal(0, dtype) if operation is op("add") else _neutral(operation, dtype)


def _require_cells(operation: Op, array: SymbolicArray, axes: tuple[int, ...], where: Any) -> None:
    """The least and the greatest of nothing are undefined. Raises ShapeError with NumPy's words."""
    if where is not True:
        raise ShapeError(
            f"reduction operation '{operation.name}' does not have an identity, so to use a where mask "
            "one has to specify 'initial'",
            fix="pass initial=",
        )
    words = f"zero-size array to reduction operation {operation.name} which has no identity"
    if not all(require_at_least(array.cells.shape[axis], 1, "ValueError", words) for axis in axes):
        raise ShapeError(words, details=(describe(array),), fix="pass initial=")


def reduce_array(
    operation: Op,
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = False,
    initial: Any = np._NoValue,
    where: Any = True,
) -> SymbolicArray:
    """`ufunc.reduce` with NumPy's rules for the dtype it computes in."""
    array = as_array(a)
    axes = reduced_axes(axis, array.ndim)
    computed = computing_dtype(operation, array.element_type, dtype, out)
    where = True if where is np._NoValue else where
    result = accumulate_over(operation, array, axes, computed, initial=initial, where=where)
    if is_true(keepdims):
        result = insert_axes(result, axes)
    return deliver(result, out, "unsafe")


def _default_dtype(operation: Op, dtype: DType, out: Any) -> DType:
    if operation.name in _TRUTH:
        return BOOL
    target = _dtype_of(out)
    if target is not None:
        return from_numpy(np.result_type(dtype.numpy, target))
    return _summing_dtype(dtype) if operation in _WIDENED else dtype


def _dtype_of(out: Any) -> np.dtype[Any] | None:
    given = out[0] if isinstance(out, tuple) else out
    return given.dtype if is_given(given) else None


def totals(name: str, operation: Op, of: Callable[[Any], Any] = as_array) -> AnyCallable:
    """A function that takes what `np.sum` takes, and combines what `of` makes of the array."""

    def function(
        a: Any,
        axis: Any = None,
        dtype: Any = None,
        out: Any = None,
        keepdims: Any = False,
        initial: Any = np._NoValue,
        where: Any = True,
    ) -> SymbolicArray:
        return reduce_array(operation, of(a), axis, dtype, out, keepdims, initial, where)

    function.__name__ = function.__qualname__ = name
    return function


def extremes(name: str, operation: Op) -> AnyCallable:
    """A function that takes what `np.min` takes."""

    def function(
        a: Any,
        axis: Any = None,
        out: Any = None,
        keepdims: Any = False,
        initial: Any = np._NoValue,
        where: Any = True,
    ) -> SymbolicArray:
        return reduce_array(operation, a, axis, None, out, keepdims, initial, where)

    function.__name__ = function.__qualname__ = name
    return function


def _truths(name: str, operation: Op) -> AnyCallable:
    """A function that takes what `np.any` takes."""

    def function(
        a: Any, axis: Any = None, out: Any = None, keepdims: Any = False, *, where: Any = True
    ) -> SymbolicArray:
        return reduce_array(operation, a, axis, None, out, keepdims, where=where)

    function.__name__ = function.__qualname__ = name
    return function


implements(np.sum)(method("sum")(totals("sum", op("add"))))
implements(np.prod)(method("prod")(totals("prod", op("multiply"))))
implements(np.min, np.amin)(method("min")(extremes("min", op("minimum"))))
implements(np.max, np.amax)(method("max")(extremes("max", op("maximum"))))
implements(np.any)(method("any")(_truths("any", op("logical_or"))))
implements(np.all)(method("all")(_truths("all", op("logical_and"))))


@implements(np.count_nonzero)
def count_nonzero(a: Any, axis: Any = None, *, keepdims: Any = False) -> SymbolicArray:
    truth = cast(as_array(a), BOOL)
    count = reduce_array(op("add"), truth, axis, np.int64, None, keepdims)
    is_number = axis is None and not keepdims and _COUNTS_IN_PYTHON
    return SymbolicArray(count.cells, count.record, weak=int) if is_number else count
