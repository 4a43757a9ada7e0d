"""NumPy's functions that write where arrays say: `ufunc.at`, `put`, `place`, `putmask`, `put_along_axis`,
`piecewise`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...errors import IndexOutOfRange, ShapeError
from ...ir.conditions import one_of
from ...ir.dtype import BOOL, I64
from ...ir.expr import Apply, Expr, Index, convert, literal
from ...ir.index import Affine, affine, row_major_strides
from ...ir.ops import op
from ..indices.bounds import require_integers, within
from ..indices.compaction import nonzero
from ..indices.gathering import chosen_shape, gather
from ..indices.indexing import assign_chosen, getitem, require_assignable, setitem
from ..indices.keys import Item, Many, parse_key
from ..indices.scatter import scatter
from ..record.registry import implements, method, ufunc_method
from ..record.trace import current_trace
from ..values.array import SymbolicArray, describe
from ..values.elementwise import (
    as_array,
    as_stored,
    broadcasts_to,
    cast,
    elementwise,
    operand_at,
)
from ..values.extents import ONE, ZERO, agree, as_expr, numbers, product, require_at_least
from ..values.fitting import Operand
from ..values.layout import is_laid_out
from ..values.protocols import ops_of
from .operands import axis_of, require_all, require_cast
from .reshaping import ravel, reshape
from .shaping import atleast_1d

__all__: list[str] = []


@ufunc_method("at")
def at(ufunc: np.ufunc, a: Any, indices: Any, b: Any = None, /) -> None:
    """`a[indices] = ufunc(a[indices], b)` for one index after another, so that repeated ones accumulate. As
    in NumPy, a number `b` has a dtype of its own, and results are converted as `astype` converts."""
    trace, array, (row,) = current_trace(), as_array(a), ops_of(ufunc)
    require_assignable(array)
    items, _ = parse_key(array, indices, trace)
    _, _, shape = chosen_shape(items)
    operand: Operand = 0
    if b is not None:
        given = as_array(b)
        operand = SymbolicArray(given.cells, given.record)
        words = "array is not broadcastable to correct shape"
        if not broadcasts_to(given.cells.shape, shape, words):
            fix = "give the second operand the shape of the chosen cells, or one that broadcasts to it"
            raise ShapeError(words, details=(describe(given),), fix=fix)

    def write(cells: SymbolicArray, value: Operand) -> None:
        result = elementwise(row, cells, value) if row.arity == 2 else elementwise(row, cells)
        trace.store(cells.cells, lambda position: convert(result.load(position), cells.element_type))

    scatter(array, items, operand, write, trace)


@implements(np.put)
@method("put")
def put(a: Any, ind: Any, v: Any, mode: str = "raise") -> None:
    array, wanted = atleast_1d(a), ravel(as_array(ind))
    size, words = product(array.cells.shape), "cannot replace elements of an empty array"
    if wanted.cells.shape != (ZERO,) and not require_at_least(size, 1, "IndexError", words):
        raise IndexOutOfRange(words, fix="put numbers into an array that has cells")
    positions = within(wanted, size, 0, mode)
    _put(array, positions, v)


@implements(np.place)
def place(arr: Any, mask: Any, vals: Any) -> None:
    array, chosen = atleast_1d(arr), as_array(mask)
    _require_same_size("place", array, chosen)
    _require_safe(vals, array)
    if ZERO in as_array(vals).cells.shape:
        require_all(elementwise(op("logical_not"), chosen), "Cannot insert from an empty array!")
        return
    (positions,) = nonzero(ravel(chosen))
    _put(array, positions, vals)


def _put(array: SymbolicArray, positions: SymbolicArray, v: Any) -> None:
    """Write the values, repeated as often as needed, at positions of the array's cells in row-major order."""
    require_assignable(array)
    values = _values(array, v)
    (given,), (wanted,) = values.cells.shape, positions.cells.shape
    trace = current_trace()
    if given == ZERO:
        return
    if given not in (ONE, wanted):
        require_at_least(given, 1, "ValueError", "Cannot insert from an empty array!")

        def repeated(position: tuple[Affine, ...]) -> Expr:
            place = Apply(op("remainder"), (Index(position[0]), as_expr(given)), I64)
            return gather(values.cells, [place])

        values = SymbolicArray(trace.compute((wanted,), values.element_type, repeated), trace)
    _assign_flat(array, positions, values)


def _values(array: SymbolicArray, v: Any) -> SymbolicArray:
    """Values in a row, each of which fits the dtype of the array that takes them."""
    return ravel(as_array(as_stored(v, array.element_type, current_trace())))


def _assign_flat(array: SymbolicArray, positions: SymbolicArray, values: Operand) -> None:
    """Write at positions among the array's cells in row-major order."""
    if is_laid_out(array.cells, "C"):
        assign_chosen(ravel(array), [Many.computed(positions)], values)
    else:
        places = [_coordinate(array, axis, positions) for axis in range(array.ndim)]
        assign_chosen(array, [Many.computed(place) for place in places], values)


def _coordinate(array: SymbolicArray, axis: int, positions: SymbolicArray) -> SymbolicArray:
    extents = array.cells.shape
    step = as_expr(product(extents[axis + 1 :]))

    def coordinate(position: tuple[Affine, ...]) -> Expr:
        rows = Apply(op("floor_divide"), (positions.load(position), step), I64)
        return Apply(op("remainder"), (rows, as_expr(extents[axis])), I64)

    trace = current_trace()
    return SymbolicArray(trace.compute(positions.cells.shape, I64, coordinate, label="positions"), trace)


@implements(np.putmask)
def putmask(a: Any, /, mask: Any, values: Any) -> None:
    """Each cell where the mask holds gets the value of its own place, counted on from the start of the values
    where these are fewer."""
    array = as_array(a)
    require_assignable(array)
    _require_safe(values, array)
    given = _values(array, values)
    chosen = as_array(mask)
    _require_same_size("putmask", array, chosen)
    (length,) = given.cells.shape
    if length == ZERO:
        return
    extents = numbers(array.cells.shape, "the shape of an array that np.putmask writes")
    strides = row_major_strides(affine(extents))
    held, kind = reshape(chosen, extents), array.element_type

    def cell(position: tuple[Affine, ...]) -> Expr:
        place = ZERO
        for part, stride in zip(position, strides, strict=True):
            place = place + part * stride.offset
        within_values = Apply(op("remainder"), (Index(place), as_expr(length)), I64)
        value = convert(gather(given.cells, [within_values]), kind)
        return one_of(operand_at(held, position, BOOL), value, array.load(position))

    current_trace().store(array.cells, cell)


def _require_safe(values: Any, array: SymbolicArray) -> None:
    """Arrays of values must fit the dtype of the array that takes them; numbers and lists are converted."""
    if isinstance(values, np.ndarray):
        require_cast(as_array(values), array.dtype, "safe")


def _require_same_size(function: str, array: SymbolicArray, mask: SymbolicArray) -> None:
    words = f"{function}: mask and data must be the same size"
    if not agree(product(array.cells.shape), product(mask.cells.shape), words):
        details = (describe(array), describe(mask))
        raise ShapeError(words, details=details, fix="use a mask of the array's own shape")


@implements(np.put_along_axis)
def put_along_axis(arr: Any, indices: Any, values: Any, axis: Any) -> None:
    array, positions = as_array(arr), as_array(indices)
    require_assignable(array)
    require_integers(positions, "`indices` must be an integer array")
    given = as_stored(values, array.element_type, current_trace())
    if positions.ndim != (1 if axis is None else array.ndim):
        words = "`indices` and `arr` must have the same number of dimensions"
        raise ShapeError(words, fix="insert axes with np.newaxis")
    if axis is None:
        _assign_flat(array, within(positions, product(array.cells.shape), 0), given)
        return
    extents, along = array.cells.shape, axis_of(axis, array.ndim)
    items: list[Item] = [_along(axis, extents) for axis in range(array.ndim)]
    items[along] = Many.computed(within(positions, extents[along], along))
    assign_chosen(array, items, given)


def _along(axis: int, extents: Sequence[Affine]) -> Many:
    """The positions along an axis, of the rank of the whole array."""
    shape = tuple(extent if other == axis else ONE for other, extent in enumerate(extents))
    return Many(shape, lambda place: Index(place[axis]))


@implements(np.piecewise)
def piecewise(x: Any, condlist: Any, funclist: Any, *args: Any, **kw: Any) -> SymbolicArray:
    """For each condition in turn, its function of the values where it holds; a last function is for the
    rest. Functions are called even where nothing is selected."""
    array, trace = as_array(x), current_trace()
    is_list = isinstance(condlist, (list, tuple, np.ndarray)) and np.ndim(condlist[0]) > 0
    parts = list(condlist) if is_list else [condlist]
    conditions = [cast(as_array(part), BOOL) for part in parts]
    if len(funclist) == len(conditions) + 1:
        either = conditions[0]
        for condition in conditions[1:]:
            either = elementwise(op("logical_or"), either, condition)
        conditions.append(elementwise(op("logical_not"), either))
    if len(funclist) != len(conditions):
        count = len(conditions)
        raise ShapeError(
            f"with {count} condition(s), either {count} or {count + 1} functions are expected",
            fix="give a function or a number for each condition, and perhaps one for the rest",
        )
    zero = literal(0, array.element_type)
    result = SymbolicArray(trace.compute(array.cells.shape, array.element_type, lambda _: zero), trace)
    for condition, value in zip(conditions, funclist, strict=True):
        setitem(
            result, condition, value(getitem(array, condition), *args, **kw) if callable(value) else value
        )
    return result
