"""`sort` and `argsort`, by merging.

Runs of 1, 2, 4, ... cells are merged until one is left: a fixed number of passes over each row, in which
every step chooses without a branch. Equal cells keep their order, which is one of those that NumPy allows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...ir.dtype import BOOL, I64
from ...ir.expr import Apply, Cast, Const, Expr, Index
from ...ir.index import Affine
from ...ir.ops import op
from ..indices.gathering import gather
from ..indices.indexing import require_assignable, setitem
from ..record.registry import implements, method
from ..record.trace import Trace, current_trace
from ..record.view import View
from ..values.array import SymbolicArray
from ..values.elementwise import as_array, copy
from ..values.extents import as_expr, most, product
from ..values.integer import number, python_int
from .creation import arange
from .finding import comes_before
from .operands import axis_of, refuse, require_real
from .reshaping import ravel, reshape
from .shaping import broadcast_to, moveaxis

__all__ = ["argsort", "sort"]

_ONE = Const(1, I64)
_NO_FIELDS = "sort arrays of numbers"


@implements(np.sort)
def sort(a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> SymbolicArray:
    refuse("np.sort", _NO_FIELDS, order=order)
    rows, array, along = _rows(a, axis)
    _merge_sort([rows])
    return _along(rows, array, along)


@method("sort")
def sort_in_place(
    self: SymbolicArray, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None
) -> None:
    require_assignable(self)
    setitem(self, Ellipsis, sort(self, axis, kind, order))


@implements(np.argsort)
@method("argsort")
def argsort(
    a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None
) -> SymbolicArray:
    refuse("np.argsort", _NO_FIELDS, order=order)
    rows, array, along = _rows(a, axis)
    extent = python_int(rows.cells.shape[1], rows.record)
    places = copy(broadcast_to(arange(extent), rows.cells.shape), "C")
    _merge_sort([rows, places])
    return _along(places, array, along)


def _rows(a: Any, axis: Any) -> tuple[SymbolicArray, SymbolicArray, int]:
    """A copy whose rows are the array along an axis; the array; and the axis."""
    array = require_real(as_array(a), "the order")
    if axis is None:
        array, axis = ravel(array), -1
    along = axis_of(axis, array.ndim)
    moved = moveaxis(array, along, -1)
    extents = (product(moved.cells.shape[:-1]), moved.cells.shape[-1])
    rows = reshape(moved, tuple(python_int(extent, array.record) for extent in extents))
    return copy(rows, "C"), array, along


def _along(rows: SymbolicArray, array: SymbolicArray, along: int) -> SymbolicArray:
    """The rows as an array of the given one's shape, along that axis of it."""
    shape = moveaxis(array, along, -1).cells.shape
    result = reshape(rows, tuple(python_int(extent, array.record) for extent in shape))
    return result if along == array.ndim - 1 else copy(moveaxis(result, -1, along), "C")


def _merge_sort(arrays: Sequence[SymbolicArray]) -> None:
    """Sort each row of the first array in place, and move the cells of the others along."""
    trace = current_trace()
    count, extent = arrays[0].cells.shape
    longest = most(extent)
    cells = number(extent, trace, "the length of what is sorted") if longest is None else longest
    spare = [trace.window((extent,), array.element_type, "spare") for array in arrays]
    merge = _Merge(trace, spare[0], extent)
    with trace.loop(0, count) as row:
        merge.put(merge.width, _ONE)
        with trace.loop(0, max(cells - 1, 0).bit_length()):
            for array, held in zip(arrays, spare, strict=True):
                trace.store(held, lambda at, array=array: array.load((row, *at)))  # type: ignore[misc]
            with trace.loop(0, extent) as place:
                merge.choose(place)
                for array, held in zip(arrays, spare, strict=True):
                    target = array.cells.remap((), (), (row, place))
                    merge.put(target, merge.chosen(held))
                merge.advance()
            merge.put(merge.width, _sum(merge.width.load(()), merge.width.load(())))


class _Merge:
    """Where a pass over `keys`, in runs of `width` cells, stands: the next cell of the left run and that of
    the right one."""

    def __init__(self, trace: Trace, keys: View, extent: Affine) -> None:
        self.trace, self.keys, self.extent = trace, keys, extent
        self.width, self.left, self.right = (
            trace.window((), I64, name) for name in ("width", "left", "right")
        )
        self.takes_right = trace.window((), BOOL, "takes_right")

    def put(self, cell: View, value: Expr) -> None:
        self.trace.store(cell, lambda _: value)

    def choose(self, place: Affine) -> None:
        """Decide from which run the cell for this place comes; at its start both runs begin anew."""
        here, width, end = Index(place), self.width.load(()), as_expr(self.extent)
        mask = Apply(op("subtract"), (_sum(width, width), _ONE), I64)
        inside = Apply(op("bitwise_and"), (here, mask), I64)
        begins = Apply(op("equal"), (inside, Const(0, I64)), BOOL)
        middle = _sum(Apply(op("subtract"), (here, inside), I64), width)
        self.put(self.left, Apply(op("where"), (begins, here, self.left.load(())), I64))
        self.put(self.right, Apply(op("where"), (begins, middle, self.right.load(())), I64))
        left, right = self.left.load(()), self.right.load(())
        stop = Apply(op("minimum"), (_sum(middle, width), end), I64)
        has_left = Apply(op("less"), (left, middle), BOOL)
        has_right = Apply(op("less"), (right, stop), BOOL)
        is_less = comes_before(self._cell(self.keys, right), self._cell(self.keys, left), "left")
        wins = Apply(op("logical_or"), (Apply(op("logical_not"), (has_left,), BOOL), is_less), BOOL)
        self.put(self.takes_right, Apply(op("logical_and"), (has_right, wins), BOOL))

    def chosen(self, held: View) -> Expr:
        """The cell of the run that was decided on."""
        left, right = (self._cell(held, state.load(())) for state in (self.left, self.right))
        return Apply(op("where"), (self.takes_right.load(()), right, left), held.tensor.dtype)

    def advance(self) -> None:
        step = Cast(self.takes_right.load(()), I64)
        self.put(self.right, _sum(self.right.load(()), step))
        self.put(self.left, _sum(self.left.load(()), Apply(op("subtract"), (_ONE, step), I64)))

    def _cell(self, held: View, at: Expr) -> Expr:
        """The cell, or the last one where the run has ended."""
        return gather(held, [Apply(op("minimum"), (at, as_expr(self.extent - 1)), I64)])


def _sum(one: Expr, other: Expr) -> Expr:
    return Apply(op("add"), (one, other), I64)
