"""`np.delete` and `np.insert`: parts of what stays and of what is new, which are joined.

Many short parts are no parts: their cells are gathered by their positions.
Where only the compiled function knows the places, an argument or `x.argmin()`, the positions are computed;
what stays beside several is chosen by a mask. Where only it knows how many cells there are, those before a
known place and those behind it are joined.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import IndexOutOfRange, ShapeError
from ...ir.dtype import BOOL
from ...ir.index import Affine, affine
from ...ir.ops import op
from ..indices.compaction import nonzero
from ..indices.indexing import getitem
from ..record.registry import implements
from ..record.trace import current_trace
from ..values.array import SymbolicArray, describe
from ..values.elementwise import as_array, as_stored, cast, elementwise, is_traced, laid
from ..values.extents import require_at_least
from ..values.integer import SymbolicInt, python_int
from ..values.layout import copy_order
from ..values.numbers import integer_of
from .adopted import numpy_program
from .joining import concatenate, length_of, slab
from .operands import axis_of, require_between
from .reshaping import flat, reshape
from .shaping import broadcast_to, insert_axes, moveaxis

__all__: list[str] = []

PARTS = 16
"""So many at most are joined: a copy of neighbours takes less than a look at the position of each."""


@implements(np.delete)
def delete(arr: Any, obj: Any, axis: Any = None) -> SymbolicArray:
    array = as_array(arr)
    if axis is None:
        array, axis = flat(array), 0
    along = axis_of(axis, array.ndim)
    obj = _one_of(_places(obj))
    order = copy_order(array.cells, "A")
    if not isinstance(obj, (int, slice)) and not _is_known_late(obj):
        others = copy_order(array.cells, "K")
        order = (along, *(axis for axis in others if axis != along))
    return laid(_without(array, obj, along), order)


def _without(array: SymbolicArray, obj: Any, along: int) -> SymbolicArray:
    extent = array.cells.shape[along]
    if type(obj) is int and not extent.is_constant:
        return concatenate(_around(array, along, obj, 1), along)
    many = _many(obj, extent)
    if many is not None:
        return getitem(array, slab(along, _all_but_many(array.shape[along], _mask_of(many, extent))))
    length = length_of(array, along)
    if _is_known_late(obj):
        return getitem(array, slab(along, _all_but(length, _place(obj, length, along, length - 1))))
    return _in_order([array], along, np.delete(np.arange(length), obj))


@implements(np.insert)
def insert(arr: Any, obj: Any, values: Any, axis: Any = None) -> SymbolicArray:
    array = as_array(arr)
    given = as_array(as_stored(values, array.element_type, current_trace()))
    if axis is None:
        array, axis = flat(array), 0
    result = _with(array, obj, given, axis_of(axis, array.ndim))
    return laid(result, copy_order(array.cells, "A"))


def _with(array: SymbolicArray, obj: Any, given: SymbolicArray, along: int) -> SymbolicArray:
    given = insert_axes(given, range(array.ndim - given.ndim))
    obj = _places(obj)
    if type(obj) is np.ndarray and obj.dtype == bool:
        obj = np.flatnonzero(obj)
    if _is_known_late(obj) or (not isinstance(obj, slice) and np.ndim(obj) == 0):
        given = moveaxis(given, 0, along)
    obj = _one_of(obj)
    shape = array.cells.shape
    if type(obj) is int and not shape[along].is_constant:
        before, behind = _around(array, along, obj, 0)
        new = _spread(given, (*shape[:along], given.cells.shape[along], *shape[along + 1 :]), array)
        return concatenate((before, new, behind), along)
    many = _many(obj, shape[along])
    if many is not None:
        places = nonzero(many)[0] if many.element_type is BOOL else many
        new = _spread(given, (*shape[:along], *places.cells.shape, *shape[along + 1 :]), array)
        order = _with_many(array.shape[along], places)
        return getitem(concatenate((array, new), along), slab(along, order))
    length = length_of(array, along)
    known = 1 if _is_known_late(obj) else len(range(length)[obj]) if isinstance(obj, slice) else np.size(obj)
    count = length_of(given, along) if known == 1 else known
    new = _spread(given, (*shape[:along], Affine.of(count), *shape[along + 1 :]), array)
    if _is_known_late(obj):
        order = _with_more(length, _place(obj, length, along, length), count)
        return getitem(concatenate((array, new), along), slab(along, order))
    return _in_order([array, new], along, _order_with(length, obj, count))


def _in_order(arrays: list[SymbolicArray], axis: int, order: np.ndarray) -> SymbolicArray:
    """Cells of arrays that stand one behind the other, in a known order; neighbours together."""
    lengths = [length_of(array, axis) for array in arrays]
    fronts = np.cumsum([0, *lengths[:-1]])
    of = np.searchsorted(fronts, order, side="right") - 1
    cuts = np.flatnonzero((np.diff(order) != 1) | (np.diff(of) != 0)) + 1
    if not order.size or len(cuts) >= PARTS:
        whole = concatenate(arrays, axis) if len(arrays) > 1 else arrays[0]
        return getitem(whole, slab(axis, order))
    parts = []
    for first, behind in zip([0, *cuts], [*cuts, len(order)], strict=True):
        start = int(order[first] - fronts[of[first]])
        part = slice(start, start + int(behind - first))
        parts.append(getitem(arrays[of[first]], slab(axis, part)))
    return concatenate(parts, axis)


def _spread(values: SymbolicArray, shape: tuple[Affine, ...], array: SymbolicArray) -> SymbolicArray:
    """Values for all cells of a shape, of the array's dtype."""
    return cast(broadcast_to(values, shape), array.element_type)


def _places(obj: Any) -> Any:
    """Places, as a symbolic array only where no more is known while tracing."""
    places = as_array(obj) if is_traced(obj) and type(obj) is not SymbolicInt else obj
    known = current_trace().known(places.cells) if type(places) is SymbolicArray else None
    return places if known is None else known


def _one_of(places: Any) -> Any:
    """What is a number for NumPy: a row of one place is one."""
    if type(places) is SymbolicArray:
        is_one = places.cells.shape == affine((1,)) and places.element_type is not BOOL
        return reshape(places, ()) if is_one else places
    is_row = isinstance(places, (list, tuple, np.ndarray))
    is_one = is_row and np.size(places) == 1 and np.asarray(places).dtype.kind in "iu"
    return int(np.asarray(places).item()) if is_one else places


def _many(places: Any, extent: Affine) -> SymbolicArray | None:
    """A row of places, where only the compiled function knows them, or how many cells there are."""
    if type(places) is SymbolicArray:
        return places if places.ndim > 0 else None
    if extent.is_constant or not isinstance(places, (list, tuple, np.ndarray)):
        return None
    return as_array(np.asarray(places, None if np.size(places) else np.int64))


def _mask_of(places: SymbolicArray, extent: Affine) -> SymbolicArray:
    """The places; a mask must have as many cells as the array."""
    if places.element_type is BOOL and places.cells.shape != (extent,):
        words = "boolean array argument obj to delete must be one dimensional and match the axis length of"
        raise ShapeError(
            f"{words} {extent}",
            details=(describe(places),),
            fix="say which axis= the mask is for, or write x[~mask]",
        )
    return places


def _around(array: SymbolicArray, axis: int, place: int, gap: int) -> tuple[Any, Any]:
    """What stands before a place of an axis, and what does so many cells further on."""
    extent = array.cells.shape[axis]
    words = f"index {place} is out of bounds for axis {axis} with size {extent}"
    if not require_at_least(extent, place + gap if place >= 0 else -place, "IndexError", words):
        raise IndexOutOfRange(words, fix="use an index within the array")
    first = Affine.of(place) if place >= 0 else extent + place
    ends = slice(None, python_int(first, array.record)), slice(python_int(first + gap, array.record), None)
    before, behind = (getitem(array, slab(axis, part)) for part in ends)
    return before, behind


def _order_with(length: int, obj: Any, count: int) -> np.ndarray:
    """The order in which cells that stand behind an array come into it."""
    try:
        return np.insert(np.arange(length), obj, length + np.arange(count))
    except IndexError as error:
        raise IndexOutOfRange(str(error), fix=f"use an index up to {length}") from None


def _is_known_late(obj: Any) -> bool:
    """Whether one place is meant that only the compiled function knows."""
    return type(obj) is SymbolicInt or (type(obj) is SymbolicArray and obj.ndim == 0)


def _place(obj: Any, length: int, axis: int, last: int) -> SymbolicArray:
    """The place from the front; that it is one, up to the last, is checked when the function runs."""
    trace = current_trace()
    place = as_array(python_int(integer_of(obj, trace), trace))
    words = f"index is out of bounds for axis {axis} with size {length}"
    require_between(place, -length, last + 1, words, "IndexError")
    is_from_end = elementwise(op("less"), place, 0)
    return elementwise(op("where"), is_from_end, elementwise(op("add"), place, length), place)


@numpy_program
def _all_but(length: int, place: Any) -> Any:
    """All positions but one."""
    others = np.arange(max(length - 1, 0))
    return others + (others >= place)


@numpy_program
def _all_but_many(length: int, places: Any) -> Any:
    """A mask of all cells but those at places, or of another mask."""
    kept = np.ones(length, bool)
    kept[places] = False
    return kept


@numpy_program
def _with_more(length: int, place: Any, count: int) -> Any:
    """`length` positions with `count` further ones at a place."""
    here = np.arange(length + count)
    behind = np.where(here < place + count, length + here - place, here - count)
    return np.where(here < place, here, behind)


@numpy_program
def _with_many(length: int, places: Any) -> Any:
    """`length` positions with one further one before each of the places."""
    count = len(places)
    numbers = np.arange(count)
    fronts = np.where(places < 0, places + length, places)
    order = np.argsort(fronts, kind="stable")
    here = np.full(length + count, -1)
    here[fronts[order] + numbers] = length + order
    is_old = here < 0
    return np.where(is_old, np.cumsum(is_old) - 1, here)
