"""`np.delete` and `np.insert`: positions of what stays and what is new, by which cells are gathered.

Where only the compiled function knows the place, an argument or `x.argmin()`, the positions are computed.
Where only it knows how many cells there are, those before a known place and those behind it are joined.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import IndexOutOfRange
from ...ir.index import Affine
from ...ir.ops import op
from ..indices.indexing import getitem
from ..record.registry import implements
from ..record.trace import current_trace, user_location
from ..values.array import SymbolicArray
from ..values.elementwise import as_array, as_stored, cast, elementwise
from ..values.extents import require_at_least
from ..values.integer import SymbolicInt, python_int
from ..values.numbers import integer_of
from .adopted import numpy_program
from .joining import concatenate, length_of, slab
from .operands import axis_of
from .reshaping import flat
from .shaping import broadcast_to, insert_axes, moveaxis

__all__: list[str] = []


@implements(np.delete)
def delete(arr: Any, obj: Any, axis: Any = None) -> SymbolicArray:
    array = as_array(arr)
    if axis is None:
        array, axis = flat(array), 0
    along = axis_of(axis, array.ndim)
    if type(obj) is int and not array.cells.shape[along].is_constant:
        return concatenate(_around(array, along, obj, 1), along)
    length = length_of(array, along)
    if _is_known_late(obj):
        kept = _all_but(length, _place(obj, length, along, length - 1))
    else:
        kept = np.delete(np.arange(length), obj)
    return getitem(array, slab(along, kept))


@implements(np.insert)
def insert(arr: Any, obj: Any, values: Any, axis: Any = None) -> SymbolicArray:
    array = as_array(arr)
    given = as_array(as_stored(values, array.element_type, current_trace()))
    if axis is None:
        array, axis = flat(array), 0
    along = axis_of(axis, array.ndim)
    given = insert_axes(given, range(array.ndim - given.ndim))
    is_late = _is_known_late(obj)
    if is_late or (not isinstance(obj, slice) and np.ndim(obj) == 0):
        given = moveaxis(given, 0, along)
    shape = array.cells.shape
    if type(obj) is int and not shape[along].is_constant:
        before, behind = _around(array, along, obj, 0)
        new = broadcast_to(given, (*shape[:along], given.cells.shape[along], *shape[along + 1 :]))
        return concatenate((before, cast(new, array.element_type), behind), along)
    length = length_of(array, along)
    is_one = is_late or (not isinstance(obj, slice) and np.size(obj) == 1)
    count = length_of(given, along) if is_one else len(range(length)[obj] if isinstance(obj, slice) else obj)
    if is_late:
        order = _with_more(length, _place(obj, length, along, length), count)
    else:
        order = _order_with(length, obj, count)
    room = (*shape[:along], Affine.of(count), *shape[along + 1 :])
    new = cast(broadcast_to(given, room), array.element_type)
    return getitem(concatenate((array, new), along), slab(along, order))


def _around(array: SymbolicArray, axis: int, place: int, gap: int) -> tuple[Any, Any]:
    """What stands before a place of an axis, and what does so many cells further on."""
    extent = array.cells.shape[axis]
    words = f"index {place} is out of bounds for axis {axis} with size {extent}"
    if not require_at_least(extent, place + gap if place >= 0 else -place, "IndexError", words):
        raise IndexOutOfRange(words, loc=user_location(), fix="use an index within the array")
    first = Affine.of(place) if place >= 0 else extent + place
    ends = slice(None, python_int(first, array.record)), slice(python_int(first + gap, array.record), None)
    before, behind = (getitem(array, slab(axis, part)) for part in ends)
    return before, behind


def _order_with(length: int, obj: Any, count: int) -> np.ndarray:
    """The order in which cells that stand behind an array come into it."""
    try:
        return np.insert(np.arange(length), obj, length + np.arange(count))
    except IndexError as error:
        raise IndexOutOfRange(str(error), loc=user_location(), fix=f"use an index up to {length}") from None


def _is_known_late(obj: Any) -> bool:
    """Whether one place is meant that only the compiled function knows."""
    return type(obj) is SymbolicInt or (type(obj) is SymbolicArray and obj.ndim == 0)


def _place(obj: Any, length: int, axis: int, last: int) -> SymbolicArray:
    """The place from the front; that it is one, up to the last, is checked when the function runs."""
    trace = current_trace()
    place = as_array(python_int(integer_of(obj, trace), trace))
    words = f"index is out of bounds for axis {axis} with size {length}"
    for relation, limit in (("greater_equal", -length), ("less_equal", last)):
        trace.check((), elementwise(op(relation), place, limit).load, "IndexError", words)
    is_from_end = elementwise(op("less"), place, 0)
    return elementwise(op("where"), is_from_end, elementwise(op("add"), place, length), place)


@numpy_program
def _all_but(length: int, place: Any) -> Any:
    """All positions but one."""
    others = np.arange(max(length - 1, 0))
    return others + (others >= place)


@numpy_program
def _with_more(length: int, place: Any, count: int) -> Any:
    """`length` positions with `count` further ones at a place."""
    here = np.arange(length + count)
    behind = np.where(here < place + count, length + here - place, here - count)
    return np.where(here < place, here, behind)
