"""`sort` and `argsort`: of the cells' keys: very long rows by digits, others by exchanges of many at once.

Equal cells keep their order where it shows: in `argsort`, and in stable sorts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from ...errors import DTypeError, NumberError, ShapeError
from ...frozen import frozen_by_identity
from ...ir.dtype import I64, DType
from ...ir.expr import Apply, Const, Expr, Index
from ...ir.index import Affine
from ...ir.ops import op
from ..indices.gathering import gather
from ..indices.indexing import require_assignable, setitem
from ..record.portions import Portion, made, portion
from ..record.registry import implements, method
from ..record.trace import Body, current_trace
from ..record.view import View
from ..values.array import SymbolicArray
from ..values.elementwise import as_array, copy, laid
from ..values.extents import most, product
from ..values.integer import python_int
from ..values.layout import copy_order
from .adopted import numpy_program
from .digits import sort_by_digits, work_of_digits
from .exchanges import places_by_exchanges, sort_by_exchanges, work_of_exchanges
from .keys import cell_of, key, key_of_equals, type_of_keys
from .leading import leading_places, work_of_leading
from .networks import places_by_network, sort_by_network, work_of_network
from .operands import axis_of, refuse, require_between, require_real
from .parts import parts
from .reshaping import ravel, reshape
from .selection import divide, select, select_pairs, work_of_division, work_of_selection
from .shaping import atleast_1d, moveaxis

__all__ = ["argsort", "divided", "pairs_at", "ranked", "require_axis", "sort"]

_PLACES = "name places that rows have, as integers"
_NO_FIELDS = "sort arrays of numbers"
_STABLE = ("s", "S", "m", "M", b"s", b"S", b"m", b"M")  # of "stable" and "mergesort"
_KINDS = "pass kind='quicksort' or kind='stable', or no kind and stable=True or stable=False"
_MOST_EXCHANGED = 1024
"""Longer rows would need long tables of pairs, 24,000 for so many cells, or long programs. 200 rows of so
many float64 numbers take a third of the time that digits take."""


@implements(np.sort)
def sort(a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> SymbolicArray:
    refuse("np.sort", _NO_FIELDS, order=order)
    is_stable = _is_stable(kind, stable)
    if as_array(a).element_type.is_complex:
        return _laid_like(_sorted_by_parts(a, axis), as_array(a))
    rows, array, along = _rows(a, axis)
    dtype = array.element_type
    by_places = is_stable and dtype.is_float

    def whole() -> SymbolicArray:
        if by_places:
            places = _sorted_places(rows)
            return _of_rows(rows, dtype, lambda at: gather(rows.cells, [Index(at[0]), places.cells.load(at)]))
        keys = _sort(_keys(rows, key))
        return _of_rows(rows, dtype, lambda at: cell_of(keys.cells.load(at), dtype))

    def cell(row: Affine, place: Expr) -> Expr:
        return gather(rows.cells, [Index(row), place])

    work = partial(_work_of_sorting, rows, by_places)
    order = _Order(rows, key_of_equals if by_places else key, dtype, cell, work)
    return _laid_like(_in_part(order, array, along, whole), array)


def _laid_like(result: SymbolicArray, array: SymbolicArray) -> SymbolicArray:
    """NumPy sorts a copy of the array, which lies as that does."""
    return result if result.ndim < 2 else laid(result, copy_order(array.cells, "K"))


@method("sort")
def sort_in_place(
    self: SymbolicArray, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None
) -> None:
    require_assignable(self)
    require_axis(axis)
    setitem(self, Ellipsis, sort(self, axis, kind, order, stable=stable))


def require_axis(axis: Any) -> None:
    """Raise DTypeError where a method that works in place is given no axis."""
    if axis is None:
        words = "'NoneType' object cannot be interpreted as an integer"
        raise DTypeError(words, fix="make a sorted copy: np.sort(x, axis=None)")


@implements(np.argsort)
@method("argsort")
def argsort(
    a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None
) -> SymbolicArray:
    refuse("np.argsort", _NO_FIELDS, order=order)
    _is_stable(kind, stable)
    if as_array(a).element_type.is_complex:
        by_parts: SymbolicArray = _places_by_parts(a, axis)
        return by_parts
    rows, array, along = _rows(atleast_1d(a), axis)
    work = partial(_work_of_sorting, rows, with_places=True)
    order = _Order(rows, key_of_equals, I64, lambda _, place: place, work)
    return _in_part(order, array, along, lambda: _sorted_places(rows))


@frozen_by_identity
class _Order:
    """Rows in the order of their cells' keys: what stands in each place of it, an element of a type, is
    `cell(row, place in the row)`. `work` tells the cycles that it takes to put a whole row in order, or as
    much in order as need be."""

    rows: SymbolicArray
    key_of: Callable[[Expr], Expr]
    dtype: DType
    cell: Callable[[Affine, Expr], Expr]
    work: Callable[[], float]

    def pays(self, part: Portion) -> bool:
        """Whether the cells in some places are found faster than that."""
        _, extent = self.rows.cells.shape
        wanted = min(part[1], extent.constant - part[0])
        return work_of_leading(extent.constant, wanted) < self.work()

    def store(self, target: View, part: Portion) -> None:
        """Store the cells in those places into rows that are as long as the order. Those from an end are the
        leading ones of the rows read backwards, by the complements of their keys."""
        trace, (count, extent), (low, high) = current_trace(), self.rows.cells.shape, part
        last, dtype = extent.constant - 1, type_of_keys(self.rows.element_type)
        is_first = high <= extent.constant - low

        def key_at(row: Affine, at: Affine) -> Expr:
            if is_first:
                return self.key_of(self.rows.cells.load((row, at)))
            own = self.key_of(self.rows.cells.load((row, last - at)))
            return Apply(op("invert"), (own,), dtype)

        found = leading_places(count, last + 1, dtype, key_at, high if is_first else last + 1 - low)

        def cell(at: tuple[Affine, ...]) -> Expr:
            row, place = at[0], at[1] + low
            if is_first:
                return self.cell(row, found.load((row, place)))
            there = found.load((row, last - place))
            return self.cell(row, Apply(op("subtract"), (Const(last, I64), there), I64))

        axes = target.axes
        trace.store(target.remap((count, high - low), axes, (axes[0], axes[1] + low)), cell)


def _in_part(
    order: _Order, array: SymbolicArray, along: int, whole: Callable[[], SymbolicArray]
) -> SymbolicArray:
    """The cells in order along an axis of an array; if the program is known to read those in some places
    alone, these."""
    trace, rows = current_trace(), order.rows
    start, part = len(trace.statements), portion(trace)
    if not all(extent.is_constant for extent in array.cells.shape):
        return _along(whole(), array, along)
    if part is None or part == (0, rows.cells.shape[1].constant):
        result = _along(whole(), array, along)
    else:
        cells = trace.window(rows.cells.shape, order.dtype, "order")
        order.store(cells, part)
        result = _along(SymbolicArray(cells, trace), array, along)
    made(trace, result.cells, along, start, order.pays)
    return result


@numpy_program
def _sorted_by_parts(a: Any, axis: Any) -> Any:
    array: Any = np.ravel(a) if axis is None else np.asarray(a)
    along = -1 if axis is None else axis
    return np.take_along_axis(array, _places_by_parts(array, along), along)


@numpy_program
def _places_by_parts(a: Any, axis: Any) -> Any:
    """Complex numbers are ordered by their real parts, equal ones by their imaginary parts; behind them come
    those with NaN in the one, in the other, and in both parts."""
    array: Any = np.ravel(a) if axis is None else np.atleast_1d(a)
    along = -1 if axis is None else axis
    kinds = np.isnan(array.real) * np.uint8(2) + np.isnan(array.imag)
    return np.lexsort((array.imag, array.real, kinds), along)


def _is_stable(kind: Any, stable: Any) -> bool:
    """Whether equal cells are asked to keep their order: NumPy looks at a kind's first letter, and what it
    refuses is refused in its words."""
    try:
        np.sort(np.empty(0), kind=kind, stable=stable)
    except ValueError as error:
        raise NumberError(str(error), fix=_KINDS) from None
    except TypeError as error:
        raise DTypeError(str(error), fix=_KINDS) from None
    return bool(stable) or (kind is not None and kind[:1] in _STABLE)


def _sorted_places(rows: SymbolicArray) -> SymbolicArray:
    """For each row, where its cells stand, in their order."""
    keys = _keys(rows, key_of_equals)
    match _way(keys, with_places=True):
        case "exchanges":
            return places_by_exchanges(keys)
        case "network":
            return places_by_network(keys)
    places = _of_rows(rows, I64, lambda at: Index(at[1]))
    if _may_be_out_of_order(keys):
        sort_by_digits([keys, places])
    return places


def divided(a: Any, kth: Any, axis: Any, *, places: bool) -> SymbolicArray | None:
    """The array along an axis, or the places of its cells there: the cell that belongs at `kth` is there, no
    greater one before it and no lesser one after it. None where that is slower than sorting, and for complex
    numbers."""
    real, *imaginary = parts(as_array(a))
    rows, array, along = _rows(real, axis)
    extent = rows.cells.shape[1]
    ranks = _ranks(kth, most(rows.cells.shape[0]), extent)
    if imaginary or len(ranks) != 1 or not extent.is_constant:
        return None
    work = work_of_division(type_of_keys(array.element_type), extent.offset)
    if work > _work_of_sorting(rows):
        return None

    def place_itself(row: Affine, place: Expr) -> Expr:
        return place

    def cell_there(row: Affine, place: Expr) -> Expr:
        return gather(rows.cells, [Index(row), place])

    def whole() -> SymbolicArray:
        keys = _keys(rows, key)
        if places:
            return divide(keys, ranks[0], I64, lambda at: Index(at[1]))
        dtype = array.element_type
        return divide(keys, ranks[0], dtype, rows.cells.load, lambda key: cell_of(key, dtype))

    dtype, cell = (I64, place_itself) if places else (array.element_type, cell_there)
    result = _in_part(_Order(rows, key, dtype, cell, lambda: work), array, along, whole)
    return result if places else _laid_like(result, array)


def ranked(a: Any, ranks: Sequence[int]) -> SymbolicArray:
    """The cells that stand at given places of the order along the last axis, whose extent is known."""
    rows, array, _ = _rows(a, -1)
    extent = rows.cells.shape[1]
    places = [rank % extent.constant for rank in ranks]
    keys = _keys(rows, key)
    if work_of_selection(keys.element_type, extent.constant, places) < _work_of_sorting(keys):
        found = select(keys, places)
    else:
        keys = _sort(keys)
        found = _columns(keys, places)
    return _cells_of(found, array)


def pairs_at(a: Any, places: Sequence[Any]) -> list[SymbolicArray]:
    """For each array of places, one for each row along the last axis, the cells that stand there and at the
    next places of the order, in a last axis of two. After the last place stands anything."""
    rows, array, _ = _rows(a, -1)
    keys, extent = _keys(rows, key), rows.cells.shape[1]
    ranks = [ravel(as_array(place)) for place in places]
    few = work_of_selection(keys.element_type, extent.constant, range(0, 2 * len(ranks), 2))
    if few < _work_of_sorting(keys):
        return [_cells_of(select_pairs(keys, rank), array) for rank in ranks]
    keys = _sort(keys)
    return [_cells_of(_pairs(keys, rank), array) for rank in ranks]


def _cells_of(keys: SymbolicArray, array: SymbolicArray) -> SymbolicArray:
    """The cells that some keys of each row belong to, in the shape of the array without its last axis."""
    dtype = array.element_type
    cells = _of_rows(keys, dtype, lambda at: cell_of(keys.cells.load(at), dtype))
    shape = (*array.cells.shape[:-1], keys.cells.shape[-1])
    return reshape(cells, tuple(python_int(part, array.record) for part in shape))


def _pairs(keys: SymbolicArray, ranks: SymbolicArray) -> SymbolicArray:
    """Of rows in order, those at each row's own place and at the next."""
    trace = current_trace()
    count, extent = keys.cells.shape

    def pair(at: tuple[Affine, ...]) -> Expr:
        place = Apply(op("add"), (ranks.cells.load(at[:1]), Index(at[1])), I64)
        there = Apply(op("minimum"), (place, Const(extent.constant - 1, I64)), I64)
        return gather(keys.cells, [Index(at[0]), there])

    return SymbolicArray(trace.compute((count, Affine.of(2)), keys.element_type, pair), trace)


def _ranks(kth: Any, count: int | None, extent: Affine) -> list[int]:
    """The places in rows that are asked for, from the front; none if they are known only at run time. Raises
    ShapeError for one that no row has, and for bools, and DTypeError for what is no integer."""
    given = list(kth) if type(kth) in (tuple, list) else [kth]
    types = [type(place) for place in given]
    if any(issubclass(each, (bool, np.bool_)) for each in types):
        raise ShapeError("Booleans unacceptable as partition index", fix=_PLACES)
    if not given or any(issubclass(each, (float, np.inexact)) for each in types):
        raise DTypeError("Partition index must be integer", fix=_PLACES)
    is_known = all(issubclass(each, (int, np.integer)) for each in types)
    if not (extent.is_constant and extent.offset and count != 0):
        return []
    size = extent.offset
    if not is_known:
        for place in map(as_array, given):
            _require_place(place, size)
        return []
    for place in given:
        if not -size <= place < size:
            raise ShapeError(f"kth(={place}) out of bounds ({size})", fix=_PLACES)
    return [int(place) % size for place in given]


def _require_place(place: SymbolicArray, size: int) -> None:
    """The compiled function raises where there is no such place."""
    if place.element_type.is_inexact:
        raise DTypeError("Partition index must be integer", fix=_PLACES)
    require_between(place, -size, size, f"kth out of bounds ({size})")


def _rows(a: Any, axis: Any) -> tuple[SymbolicArray, SymbolicArray, int]:
    """A view or a copy whose rows are the array along an axis; the array; and the axis."""
    array = require_real(as_array(a), "the order")
    if axis is None:
        array, axis = ravel(array), -1
    along = axis_of(axis, array.ndim)
    moved = moveaxis(array, along, -1)
    extents = (product(moved.cells.shape[:-1]), moved.cells.shape[-1])
    rows = reshape(moved, tuple(python_int(extent, array.record) for extent in extents))
    return rows, array, along


def _of_rows(rows: SymbolicArray, dtype: DType, body: Body) -> SymbolicArray:
    """A fresh array of the shape of the rows."""
    trace = current_trace()
    return SymbolicArray(trace.compute(rows.cells.shape, dtype, body), trace)


def _keys(rows: SymbolicArray, key_of: Callable[[Expr], Expr]) -> SymbolicArray:
    return _of_rows(rows, type_of_keys(rows.element_type), lambda at: key_of(rows.cells.load(at)))


def _along(rows: SymbolicArray, array: SymbolicArray, along: int) -> SymbolicArray:
    """The rows as an array of the given one's shape, along that axis of it."""
    shape = moveaxis(array, along, -1).cells.shape
    result = reshape(rows, tuple(python_int(extent, array.record) for extent in shape))
    return result if along == array.ndim - 1 else copy(moveaxis(result, -1, along), "C")


def _sort(keys: SymbolicArray) -> SymbolicArray:
    """The rows of keys in order. Those given may be overwritten."""
    match _way(keys):
        case "exchanges":
            return sort_by_exchanges(keys)
        case "network":
            return sort_by_network(keys)
    if _may_be_out_of_order(keys):
        sort_by_digits([keys])
    return keys


def _may_be_out_of_order(rows: SymbolicArray) -> bool:
    """Are there perhaps rows, of two cells or more?"""
    count, extent = (most(part) for part in rows.cells.shape)
    return count != 0 and (extent is None or extent >= 2)


def _way(rows: SymbolicArray, with_places: bool = False) -> str:
    """By what rows, or keys, are sorted fastest."""
    if not all(extent.is_constant for extent in rows.cells.shape) or not _may_be_out_of_order(rows):
        return "digits"
    works = _works(rows, with_places)
    return min(works, key=works.__getitem__)


def _works(rows: SymbolicArray, with_places: bool) -> dict[str, float]:
    """The cycles that each way takes to sort a row, or keys, whose length is known, roughly."""
    keys, count, length = type_of_keys(rows.element_type), rows.cells.shape[0], rows.cells.shape[1].constant
    found = {"digits": work_of_digits(keys, length)}
    if count.is_constant and count.constant:
        found["network"] = work_of_network(keys, length, with_places)
        if length <= _MOST_EXCHANGED:
            work = work_of_exchanges(keys, count.constant, length, with_places)
            found["exchanges"] = work / count.constant
    return found


def _work_of_sorting(rows: SymbolicArray, with_places: bool = False) -> float:
    """The cycles that it takes to sort a row, or keys, whose length is known, roughly."""
    return min(_works(rows, with_places).values())


def _columns(keys: SymbolicArray, places: Sequence[int]) -> SymbolicArray:
    trace = current_trace()
    count = keys.cells.shape[0]
    found = trace.window((count, len(places)), keys.element_type, "found")
    row = found.axes[0]
    for column, place in enumerate(places):
        source = keys.cells.remap((count,), (row,), (row, place))
        trace.store(found.remap((count,), (row,), (row, column)), source.load)
    return SymbolicArray(found, trace)
