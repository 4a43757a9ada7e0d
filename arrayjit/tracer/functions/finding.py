"""Where values stand: `nonzero` and what NumPy builds on it, membership, sorted positions, and counting."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ...errors import NumberError, ShapeError
from ...ir.conditions import both, compare, either, is_nan, one_of, opposite
from ...ir.dtype import BOOL, I64, from_numpy
from ...ir.expr import Apply, Const, Expr, convert, dtype_of
from ...ir.index import Affine
from ...ir.ops import op
from ..indices.compaction import nonzero
from ..indices.gathering import gather
from ..indices.indexing import getitem
from ..loops.control import cond
from ..record.registry import implements, method
from ..record.trace import current_trace
from ..values.array import SymbolicArray
from ..values.elementwise import as_array, cast, elementwise, laid, operand_at
from ..values.extents import as_expr, most, same_shape
from ..values.integer import number, python_int
from ..values.layout import shape_order
from .adopted import numpy_program
from .operands import axes_of, axis_of, put_back, require_cast, require_real, require_row
from .reductions import reduce_array
from .reshaping import flat
from .shaping import atleast_1d, insert_axes
from .sorting import sort

__all__: list[str] = []

_ZERO = Const(0, I64)
_SEARCHED = "iuf"
_FEW = 32
"""So many sorted cells are all compared with a value, in 0.5 to 0.9 of the time of a search by halving."""

_FEW_FOR_FLOATS = 6
"""So many with each of several floats: these go in vectors, and each comparison heeds NaN."""

_MOST_COMPARED = 100
"""Cells of 8 bytes that a processor compares with in the time of a search among so many."""

_MOST_BYTES_COMPARED = 240
"""Those of integers that it compares with in the time in which it looks one up in a table."""

_MANY, _PLACES_FOR_EACH = 4000, 4
"""So many places, and so many for each that is known, take 0.3 to 0.7 of the time if they are sorted; if they
are not, finding that out takes 0.03 more at most."""


@implements(np.nonzero)
@method("nonzero")
def nonzero_(a: Any) -> tuple[SymbolicArray, ...]:
    return nonzero(as_array(a))


@implements(np.compress)
def compress(condition: Any, a: Any, axis: Any = None, out: Any = None) -> SymbolicArray:
    chosen, array = as_array(condition), atleast_1d(a)
    require_row(chosen, "condition must be a 1-d array")
    if axis is None:
        array, axis = flat(array), 0
    along = axis_of(axis, array.ndim)
    return put_back(getitem(array, (*[slice(None)] * along, *nonzero(chosen))), out)


@method("compress")
def compress_method(self: SymbolicArray, condition: Any, axis: Any = None, out: Any = None) -> SymbolicArray:
    return compress(condition, self, axis, out)


@implements(np.trim_zeros)
@numpy_program
def trim_zeros(filt: Any, trim: str = "fb", axis: Any = None) -> Any:
    """The view of the array between the first and the last cells, along each of the axes, that differ from
    zero anywhere."""
    sides = trim.lower()
    if sides not in ("fb", "bf", "f", "b"):
        words = f"unexpected character(s) in `trim`: {sides!r}"
        raise ShapeError(words, fix="use 'f', 'b' or 'fb'")
    every = tuple(range(filt.ndim))
    key = [slice(None)] * filt.ndim
    for along in axes_of(axis, filt.ndim):
        is_kept = np.any(filt != 0, axis=every[:along] + every[along + 1 :])
        places = np.arange(len(is_kept))
        start = np.min(places, initial=len(is_kept), where=is_kept) if "f" in sides else 0
        stop = np.max(places + 1, initial=0, where=is_kept if "b" in sides else np.any(is_kept))
        key[along] = slice(int(start), int(stop))
    return filt[tuple(key)] if key else filt


@implements(np.isin)
def isin(
    element: Any, test_elements: Any, assume_unique: bool = False, invert: bool = False, *, kind: Any = None
) -> SymbolicArray:
    """Few cells are compared with one by one, many are sorted and searched: not integers that have no integer
    type in common, which NumPy compares exactly. Where the run finds that integers lie close together, it
    looks up in a table which of them there are."""
    if kind not in (None, "sort", "table"):
        words = f"Invalid kind: '{kind}'. Please use None, 'sort' or 'table'."
        raise NumberError(words, fix="leave kind out")
    array, wanted = as_array(element), flat(as_array(test_elements))
    dtype, longest = np.result_type(array.dtype, wanted.dtype), most(wanted.cells.shape[0])
    kinds = {array.dtype.kind, wanted.dtype.kind}
    is_exact = kinds <= set(_SEARCHED) and (dtype.kind != "f" or "f" in kinds)
    extents = (*array.cells.shape, *wanted.cells.shape)
    few = min(_MOST_COMPARED, _MOST_BYTES_COMPARED // dtype.itemsize) if dtype.kind != "f" else _MOST_COMPARED
    if not is_exact or (longest is not None and longest <= few):
        found = _compared(array, wanted)
    elif dtype.kind != "f" and all(extent.is_constant for extent in extents):
        found = _looked_up(cast(array, from_numpy(dtype)), cast(wanted, from_numpy(dtype)))
    else:
        found = _compared_or_searched(cast(array, from_numpy(dtype)), cast(wanted, from_numpy(dtype)))
    result = elementwise(op("logical_not"), found) if invert else found
    found = SymbolicArray(result.cells, result.record)
    return laid(found, shape_order(found.ndim, "C"))


def _compared(array: SymbolicArray, wanted: SymbolicArray) -> Any:
    return reduce_array(
        op("logical_or"), elementwise(op("equal"), insert_axes(array, (array.ndim,)), wanted), -1
    )


def _compared_or_searched(array: SymbolicArray, wanted: SymbolicArray) -> Any:
    longest = most(wanted.cells.shape[0])
    is_short = longest is not None and longest <= _MOST_COMPARED
    return _compared(array, wanted) if is_short else _among(array, sort(wanted))


@numpy_program
def _looked_up(array: Any, wanted: Any) -> Any:
    """By NumPy's rule for how large a table may be: the last cell is for what lies beyond its end. The
    differences are right modulo 2**64, and what wraps around comes to places where nothing is wanted."""
    room = 6 * (array.size + wanted.size)
    least = wanted.min().astype(np.uint64)
    places = wanted.astype(np.uint64) - least

    def by_table() -> Any:
        table = np.zeros(room + 1, bool)
        table[places] = True
        return table[np.minimum(array.astype(np.uint64) - least, np.uint64(room))]

    return cond(places.max() < room, by_table, lambda: _compared_or_searched(array, wanted))


def _among(array: SymbolicArray, ordered: SymbolicArray) -> SymbolicArray:
    """Which cells are among those of a sorted row of the same type."""
    (extent,) = ordered.cells.shape
    places, trace = searchsorted(ordered, array), current_trace()

    def is_there(at: tuple[Affine, ...]) -> Expr:
        found = gather(ordered.cells, [_within(places.cells.load(at), extent)])
        return both(compare("greater", as_expr(extent), _ZERO), compare("equal", found, array.cells.load(at)))

    return SymbolicArray(trace.compute(array.cells.shape, BOOL, is_there, label="found"), trace)


@implements(np.searchsorted)
@method("searchsorted")
def searchsorted(a: Any, v: Any, side: str = "left", sorter: Any = None) -> SymbolicArray:
    """Few cells are all compared. Others by halving: the position grows by each step that keeps it at or
    before the wanted one. Steps are halves of what is left, or powers of two, some of which lead beyond a row
    whose length is not known before."""
    array, values = (require_real(as_array(one), "np.searchsorted") for one in (a, v))
    require_row(array, "object too deep for desired array")
    if side not in ("left", "right"):
        words = f"search side must be 'left' or 'right' (got '{side}')"
        raise ShapeError(words, fix="use side='left' or side='right'")
    if sorter is not None:
        order = as_array(sorter)
        require_cast(order, np.int64, "safe")
        words = "sorter.size must equal a.size"
        if not same_shape(order.cells.shape, array.cells.shape, words):
            raise ShapeError(words, fix="pass sorter=np.argsort(a)")
        array = getitem(array, order)
    (extent,) = array.cells.shape
    are_floats = values.ndim > 0 and from_numpy(np.result_type(array.dtype, values.dtype)).is_float
    if extent.is_constant and extent.offset <= (_FEW_FOR_FLOATS if are_floats else _FEW):
        return _counted(array, values, side)
    trace = current_trace()
    position = SymbolicArray(trace.compute(values.cells.shape, I64, lambda _: _ZERO, label="position"), trace)
    for step in _steps(extent, array.record):
        position = _advanced(array, values, position, step, side)
    return SymbolicArray(position.cells, position.record, is_scalar=not values.ndim)


def _counted(array: SymbolicArray, values: SymbolicArray, side: str) -> SymbolicArray:
    """How many cells come before each value: no comparison waits for another one."""
    dtype, trace = from_numpy(np.result_type(array.dtype, values.dtype)), current_trace()

    def is_before(at: tuple[Affine, ...]) -> Expr:
        return _comes_before(operand_at(array, at[-1:], dtype), operand_at(values, at[:-1], dtype), side)

    shape = (*values.cells.shape, *array.cells.shape)
    before = SymbolicArray(trace.compute(shape, BOOL, is_before, label="before"), trace)
    return reduce_array(op("add"), before, -1, np.int64)


@numpy_program
def samples_before(places: Any, known: Any) -> Any:
    """How many of the sorted places that are known stand at or before each one. Where places are many and
    the run finds that these are sorted too, no search is done for each of them."""
    if not _are_many(places, known):
        return np.searchsorted(known, places, side="right")
    is_sorted = (places[:-1] <= places[1:]).all()
    return cond(
        is_sorted,
        lambda: _merged(places, known),
        lambda: np.searchsorted(known, places, side="right").astype(np.int32),
    )


def _are_many(places: SymbolicArray, known: SymbolicArray) -> bool:
    """And not so many that 32 bits do not count them, which take half the time of 64."""
    extents = (*places.cells.shape, *known.cells.shape)
    if len(extents) != 2 or not all(extent.is_constant for extent in extents):
        return False
    many, few = (extent.offset for extent in extents)
    return max(_MANY, _PLACES_FOR_EACH * few) <= many < 2**31


@numpy_program
def _merged(places: Any, known: Any) -> Any:
    """Each one that is known counts from the first place on that is not before it."""
    reached = np.zeros(len(places) + 1, np.int32)
    np.add.at(reached, np.searchsorted(places, known), 1)
    return np.cumsum(reached[:-1], dtype=np.int32)


def _steps(extent: Affine, record: Any) -> Iterator[int]:
    """Those of a search, whose sums are all positions in a row of that length."""
    if extent.is_constant:
        left = extent.offset
        while left:
            yield (step := max(1, left // 2))
            left -= step if left > 1 else left
        return
    highest = most(extent)
    count = number(extent, record, "the length of a sorted array") if highest is None else highest
    yield from (1 << power for power in reversed(range(count.bit_length())))


def _advanced(
    array: SymbolicArray, values: SymbolicArray, position: SymbolicArray, step: int, side: str
) -> SymbolicArray:
    """The positions, grown by the step where the cell before the new one belongs before the value."""
    (extent,) = array.cells.shape
    dtype = from_numpy(np.result_type(array.dtype, values.dtype))
    trace = current_trace()

    def grown(at: tuple[Affine, ...]) -> Expr:
        here = operand_at(position, at, I64)
        there, last = (Apply(op("add"), (here, Const(n, I64)), I64) for n in (step, step - 1))
        probed = gather(array.cells, [last if extent.is_constant else _within(last, extent)])
        moves = _comes_before(convert(probed, dtype), operand_at(values, at, dtype), side)
        if not extent.is_constant:
            moves = both(compare("less_equal", there, as_expr(extent)), moves)
        return one_of(moves, there, here)

    return SymbolicArray(trace.compute(values.cells.shape, I64, grown, label="position"), trace)


def _within(place: Expr, extent: Affine) -> Expr:
    """A place that is not negative, or the last one before it."""
    last = Apply(op("minimum"), (place, as_expr(extent - 1)), I64)
    return last if extent.is_constant and extent.offset else Apply(op("maximum"), (last, _ZERO), I64)


def _comes_before(cell: Expr, value: Expr, side: str) -> Expr:
    """Whether a sorted cell stands before the value: a lesser one, on the right an equal one too. NaN comes
    last."""
    if side == "right":
        return opposite(_comes_before(value, cell, "left"))
    less = compare("less", cell, value)
    if not dtype_of(value).is_float:
        return less
    return either(less, both(is_nan(value), opposite(is_nan(cell))))


@implements(np.digitize)
def digitize(x: Any, bins: Any, right: bool = False) -> SymbolicArray:
    edges, side = as_array(bins), "left" if right else "right"
    require_row(edges, "object too deep for desired array")
    later, earlier = getitem(edges, slice(1, None)), getitem(edges, slice(None, -1))
    rises = reduce_array(op("logical_or"), elementwise(op("less"), earlier, later))
    falls = reduce_array(op("logical_or"), elementwise(op("greater"), earlier, later))
    is_mixed = both(rises.load(()), falls.load(()))
    words = "bins must be monotonically increasing or decreasing"
    current_trace().check((), lambda _: opposite(is_mixed), "ValueError", words)
    upwards = searchsorted(edges, x, side)
    downwards = searchsorted(getitem(edges, slice(None, None, -1)), x, side)
    count = elementwise(op("subtract"), python_int(edges.cells.shape[0], edges.record), downwards)
    return elementwise(op("where"), falls, count, upwards)


@implements(np.ix_)
def ix_(*args: Any) -> tuple[SymbolicArray, ...]:
    return tuple(_open_axis(as_array(sequence), axis, len(args)) for axis, sequence in enumerate(args))


def _open_axis(sequence: SymbolicArray, axis: int, rank: int) -> SymbolicArray:
    require_row(sequence, "Cross index must be 1 dimensional")
    if sequence.element_type is BOOL:
        (sequence,) = nonzero(sequence)
    return insert_axes(sequence, [other for other in range(rank) if other != axis])
