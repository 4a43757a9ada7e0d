"""The key of an index expression, taken apart: one item per axis of the array and per new axis.

Integers and slices are checked and normalised here, with NumPy's words for mistakes; integer arrays that
the program computes are checked when it runs.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Union

import numpy as np

from ...errors import IndexOutOfRange, ShapeError, UnsupportedError
from ...frozen import frozen, frozen_by_identity
from ...ir.assign import Assign
from ...ir.conditions import compare, one_of
from ...ir.dtype import BOOL, I64
from ...ir.expr import Apply, Const, Expr, Index, Load
from ...ir.index import Affine, Extent, affine
from ...ir.ops import Op, op
from ..record.retrace import Origin
from ..record.trace import Trace, tensor_like
from ..record.view import View
from ..values.array import SymbolicArray, describe
from ..values.elementwise import as_operand, constant_array, is_traced, operand_at
from ..values.extents import ZERO, agree, as_expr, is_at_least, most, require_at_least, steps_between
from ..values.integer import number
from ..values.numbers import as_affine, integer_of
from .bounds import require_integers, within
from .compaction import nonzero

__all__ = [
    "Item",
    "Many",
    "New",
    "Point",
    "Span",
    "Steps",
    "parse_key",
    "require_mask_shape",
    "too_many_indices",
]

_VALID = (
    "only integers, slices (`:`), ellipsis (`...`), numpy.newaxis (`None`) and integer or boolean arrays "
    "are valid indices"
)


@frozen
class Span:
    """An axis that indexing keeps: cells `start + step * p` for `p` below `extent`."""

    start: Affine
    step: int
    extent: Affine


@frozen
class New:
    """A new axis of extent 1."""


@frozen
class Point:
    """One cell of an axis, which disappears."""

    at: Affine


@frozen
class Steps:
    """As `Span`, of a positive step that is known when the compiled function runs: no affine view."""

    start: Affine
    step: Affine
    extent: Affine


@frozen_by_identity
class Many:
    """Cells of an axis chosen by an array of integers in range: `at` has the one at a place of the shape that
    all such arrays of a key broadcast to. `cells` are those of the array, if it is one."""

    shape: tuple[Affine, ...]
    at: Callable[[tuple[Affine, ...]], Expr]
    cells: View | None = None

    @staticmethod
    def computed(positions: SymbolicArray) -> Many:
        """Positions that the program computes."""
        shape, cells = positions.cells.shape, positions.cells
        return Many(shape, lambda place: operand_at(positions, place, I64), cells)

    @staticmethod
    def constant(positions: np.ndarray, trace: Trace) -> Many:
        """Positions known now. Where they count along their axes, as `np.arange` does, they are computed, so
        that passes see which cells are chosen."""
        counting = _counting(positions)
        if counting is None:
            return Many.computed(SymbolicArray(View.whole(trace.constant(positions)), trace))
        start, steps = counting

        def at(place: tuple[Affine, ...]) -> Expr:
            own = place[len(place) - len(steps) :]
            return Index(sum((part * step for part, step in zip(own, steps, strict=True)), Affine.of(start)))

        return Many(affine(positions.shape), at, View.whole(tensor_like(positions, "positions")))


def _counting(positions: np.ndarray) -> tuple[int, list[int]] | None:
    """The first of some numbers, and the steps by which they count along each axis, if they do."""
    if positions.size == 0:
        return None
    start = int(positions.flat[0])
    steps = []
    rest = positions - start
    for axis, extent in enumerate(positions.shape):
        step = int(rest.take(1, axis).flat[0]) if extent > 1 else 0
        rest = rest - step * np.arange(extent).reshape([-1] + [1] * (positions.ndim - axis - 1))
        steps.append(step)
    return None if rest.any() else (start, steps)


Item = Union[Span, Steps, New, Point, Many]


def parse_key(
    array: SymbolicArray, key: Any, trace: Trace, *, counts: bool = False
) -> tuple[list[Item], bool]:
    """The items of a key, and whether it had an Ellipsis. Slices of computed steps are `Steps` where the
    caller `counts` through them; else their steps must be known while tracing."""
    parts = [_part(part, trace) for part in (key if isinstance(key, tuple) else (key,))]
    ellipses = sum(1 for part in parts if part is Ellipsis)
    if ellipses > 1:
        raise IndexOutOfRange("an index can only have a single ellipsis ('...')")
    if not ellipses:
        parts.append(Ellipsis)
    used = sum(_width(part) for part in parts)
    if used > array.ndim:
        raise too_many_indices(array, used)
    items: list[Item] = []
    axis = 0
    for part in parts:
        if part is None:
            items.append(New())
        elif part is Ellipsis:
            rest = range(axis, axis + array.ndim - used)
            items += [Span(Affine.of(0), 1, array.cells.shape[place]) for place in rest]
            axis = rest.stop
        else:
            items += _items(array, axis, part, trace, counts)
            axis += _width(part)
    return items, ellipses == 1


def too_many_indices(array: SymbolicArray, used: int) -> IndexOutOfRange:
    """The error of an index with more entries than the array has axes."""
    return IndexOutOfRange(
        f"too many indices for array: array is {array.ndim}-dimensional, but {used} were indexed",
        details=(describe(array),),
        fix="remove an index, or add axes with np.newaxis",
    )


def _part(part: Any, trace: Trace) -> Any:
    """One entry of the key; lists and ranges as arrays, constant where they can be."""
    if type(part) is SymbolicArray and not part.is_scalar and part.weak is None:
        known = trace.known(part.cells)
        return part if known is None else known
    if isinstance(part, range):
        part = np.array(part if type(part) is range else part.numbers(), np.int64)
    if type(part) is SymbolicArray or not isinstance(part, (list, tuple, np.ndarray, bool, np.bool_)):
        return part
    if is_traced(part):
        return as_operand(part, trace)
    constant = np.asarray(part)
    if constant.dtype == np.bool_ and constant.ndim == 0:
        raise UnsupportedError(
            "indexing with a single bool beside other indices is not supported",
            fix="index with the others first: x[0][True]",
        )
    return constant


def _width(part: Any) -> int:
    """How many axes of the array an entry of the key takes."""
    if part is None or part is Ellipsis:
        return 0
    return part.ndim if _is_mask(part) else 1


def _is_mask(part: Any) -> bool:
    if type(part) is SymbolicArray:
        return part.element_type is BOOL and part.ndim > 0
    return type(part) is np.ndarray and part.dtype == np.bool_


def _items(array: SymbolicArray, axis: int, part: Any, trace: Trace, counts: bool) -> list[Item]:
    extent = array.cells.shape[axis]
    if isinstance(part, slice):
        return [(_steps(part, extent, trace) if counts else None) or _span(part, extent, trace)]
    if _is_mask(part):
        if type(part) is SymbolicArray:
            require_mask_shape(part.cells.shape, array, axis)
            return [Many.computed(positions) for positions in nonzero(part)]
        require_mask_shape(part.shape, array, axis)
        return [Many.constant(positions, trace) for positions in np.nonzero(part)]
    if type(part) is np.ndarray:
        return [_constant_positions(part, extent, axis, trace)]
    if type(part) is SymbolicArray and not part.is_scalar and part.weak is None:
        require_integers(part, _VALID)
        return [replace(Many.computed(within(part, extent, axis)), cells=part.cells)]
    position = as_affine(part, trace)
    if position is not None:
        return [_point(position, extent, axis, trace)]
    if type(part) is SymbolicArray:
        require_integers(part, _VALID)
    try:
        number = operator.index(part)
    except TypeError:
        raise IndexOutOfRange(_VALID, details=(f"got {part!r}",), fix="use an integer or a slice") from None
    return [_point(Affine.of(number), extent, axis, trace)]


def require_mask_shape(shape: Sequence[Extent], array: SymbolicArray, axis: int) -> None:
    """A mask has the shape of the axes that it selects from."""
    for place, (extent, room) in enumerate(zip(affine(shape), array.cells.shape[axis:], strict=False), axis):
        words = (
            f"boolean index did not match indexed array along axis {place}; size of axis is {room} but size "
            f"of corresponding boolean axis is {extent}"
        )
        if not agree(extent, room, words, "IndexError"):
            raise IndexOutOfRange(words, fix="use a mask of the array's own shape")


def _span(part: slice, extent: Affine, trace: Trace) -> Span:
    """As `slice.indices`: bounds count from the end where negative and stop at the ends of the axis."""
    start, stop, step = (None if one is None else integer_of(one, trace) for one in _parts(part))
    stride = 1 if step is None else number(step, trace, "the step of a slice")
    if stride == 0:
        raise ShapeError("slice step cannot be zero", fix="use a step of 1 or more")
    if all(one is None or one.is_constant for one in (start, stop, extent)):
        numbers = slice(start and start.offset, stop and stop.offset, stride).indices(extent.offset)
        return Span(Affine.of(numbers[0]), stride, Affine.of(len(range(*numbers))))
    # Cells of the axis from `low` to below `high`; a backward slice names the cell before its last one.
    first, last = (start, stop) if stride > 0 else (stop, start)
    past = 0 if stride > 0 else 1
    low = ZERO if first is None else _bound(first, extent, past, trace, is_low=True)
    high = extent if last is None else _bound(last, extent, past, trace, is_low=False)
    width = (
        None if first is None or last is None or abs(stride) > 1 else _most_between(part, first, last, trace)
    )
    if width is None or is_at_least(Affine.of(width) - (high - low), 0):
        cells = steps_between(low, high, Affine.of(abs(stride)))
    else:
        longest = Apply(op("maximum"), (as_expr(high - low), Const(0, I64)), I64)
        cells = trace.bind(longest, 0, width + 1)
    return Span(low if stride > 0 else high - 1, stride, cells)


def _most_between(part: slice, first: Affine, last: Affine, trace: Trace) -> int | None:
    """How many cells lie from one number to another at most, where their difference tells: in
    `x[p[i] : p[i] + 8]` 8. Counting from the end leaves as many or none if the first number does alone; the
    last one does alone only where integers wrap around, which leaves none."""
    if is_at_least(last - first, 0):
        return most(last - first)
    starts, stops = (dict(_ways_to(end, trace)) for end in (part.start, part.stop))
    widths = [stops[cell] - starts[cell] for cell in starts if cell in stops]
    return widths[0] if widths and widths[0] >= 0 else None


def _ways_to(value: Any, trace: Trace) -> Iterator[tuple[Load, int]]:
    """Cells that an int64 was made of in the body that is recorded, which holds no store in them since, each
    with what was added to it."""
    if type(value) is not SymbolicArray or value.ndim or value.element_type is not I64:
        return
    made_here = {stmt.into for stmt in trace.statements if isinstance(stmt, Assign) and not stmt.index}
    found: Expr | Origin | None = value.load(())
    added = 0
    while True:
        match found:
            case Load(tensor=tensor) if tensor in made_here:
                yield found, added
                found = trace.origin(tensor)
            case Load(tensor=tensor):
                if not trace.is_written(tensor):
                    yield found, added
                return
            case Apply(op=Op(name="add"), args=(cell, Const(value=int() as number))):
                found, added = cell, added + number
            case Apply(op=Op(name="subtract"), args=(cell, Const(value=int() as number))):
                found, added = cell, added - number
            case _:
                return


def _steps(part: slice, extent: Affine, trace: Trace) -> Steps | None:
    """A slice of a computed step; None for one whose step is known, or may be negative."""
    step = None if part.step is None else as_affine(part.step, trace)
    if step is None or step.is_constant or not is_at_least(step, 1):
        return None
    first, last = (None if one is None else integer_of(one, trace) for one in (part.start, part.stop))
    low = ZERO if first is None else _bound(first, extent, 0, trace, is_low=True)
    high = extent if last is None else _bound(last, extent, 0, trace, is_low=False)
    return Steps(low, step, steps_between(low, high, step))


def _parts(part: slice) -> tuple[Any, Any, Any]:
    return part.start, part.stop, part.step


def _bound(value: Affine, extent: Affine, past: int, trace: Trace, *, is_low: bool) -> Affine:
    """A bound of a slice, `past` cells on, counted from the start of the axis. A low one is 0 or more, a
    high one at most the extent; one that needs a symbol of its own is both, for the sake of its range."""
    counted = _from_front(value, extent)
    lowest, highest = Affine.of(-past), extent - past
    if counted is not None:
        room, end = (counted - lowest, lowest) if is_low else (highest - counted, highest)
        if is_at_least(room, 0):
            return counted + past
        if is_at_least(-room, 0):
            return end + past
    expr = _wrapped(value, extent) if counted is None else as_expr(counted)
    raised = Apply(op("maximum"), (expr, as_expr(lowest)), I64)
    largest = most(highest)
    kept = Apply(op("minimum"), (raised, as_expr(highest)), I64)
    bound = trace.bind(kept, -past, None if largest is None else largest + 1)
    trace.limits.note(bound.symbols[0], lowest, highest + 1)
    return bound + past


def _from_front(value: Affine, extent: Affine) -> Affine | None:
    """A number that counts from the end where it is negative; None when its sign is not known."""
    if is_at_least(value, 0):
        return value
    return value + extent if is_at_least(-value, 1) else None


def _wrapped(value: Affine, extent: Affine) -> Expr:
    negative = compare("less", Index(value), Const(0, I64))
    return one_of(negative, Index(value + extent), Index(value))


def _point(value: Affine, extent: Affine, axis: int, trace: Trace) -> Point:
    """One position, checked now or when the program runs, counted from the front. One that is surely out of
    range is the first where what is recorded may not run: the program raises where it does."""
    ends = (value + extent, extent - 1 - value)
    if not all(is_at_least(end, 0) for end in ends):
        shown = f" {value}" if value.is_constant else ""
        words = f"index{shown} is out of bounds for axis {axis} with size {extent}"
        if not all(require_at_least(end, 0, "IndexError", words) for end in ends):
            if trace.may_not_run and not trace.unchecked and is_at_least(extent, 1):
                trace.check((), lambda _: Const(False, BOOL), "IndexError", words)
                return Point(ZERO)
            fix = f"use an index from {-extent} to {extent - 1}"
            raise IndexOutOfRange(words, fix=fix)
    counted = _from_front(value, extent)
    if counted is None:
        counted = trace.bind(_wrapped(value, extent), 0, most(extent))
        trace.limits.note(counted.symbols[0], ZERO, extent)
    return Point(counted)


def _constant_positions(positions: np.ndarray, extent: Affine, axis: int, trace: Trace) -> Many:
    """Positions known while tracing, checked now and counted from the front."""
    if positions.size == 0:
        positions = positions.astype(np.int64)
    if positions.dtype.kind not in "iu":
        raise IndexOutOfRange(_VALID, fix="convert the index with .astype(int)")
    if not extent.is_constant:
        return Many.computed(within(constant_array(positions), extent, axis))
    cells = extent.constant
    outside = (positions < -cells) | (positions >= cells)
    if outside.any():
        _point(Affine.of(int(positions[outside][0])), extent, axis, trace)
    counted = np.where(outside, 0, positions).astype(np.int64)
    return Many.constant(np.where(counted < 0, counted + cells, counted), trace)
