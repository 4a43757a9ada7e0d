"""The key of an index expression, taken apart: one item per axis of the array and per new axis.

Integers and slices are checked and normalised here, with NumPy's words for mistakes; integer arrays that
the program computes are checked when it runs.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Union

import numpy as np

from ..errors import ConcretizationError, IndexOutOfRange, ShapeError, UnsupportedError
from ..ir.dtype import BOOL, I64, Kind
from ..ir.expr import Apply, Const, Expr
from ..ir.index import Affine
from ..ir.ops import OPS
from .array import SymbolicArray, describe
from .elementwise import as_operand, convert
from .trace import Trace, user_location
from .view import View

__all__ = ["Item", "Many", "New", "Point", "Span", "parse_key", "require_mask_shape", "too_many_indices"]

_VALID = (
    "only integers, slices (`:`), ellipsis (`...`), numpy.newaxis (`None`) and integer or boolean arrays "
    "are valid indices"
)


@dataclass(frozen=True, slots=True)
class Span:
    """An axis that indexing keeps: cells `start + step * p` for `p` below `extent`."""

    start: Affine
    step: int
    extent: Affine


@dataclass(frozen=True, slots=True)
class New:
    """A new axis of extent 1."""


@dataclass(frozen=True, slots=True)
class Point:
    """One cell of an axis, which disappears."""

    at: Affine


@dataclass(frozen=True, slots=True, eq=False)
class Many:
    """Cells of an axis chosen by integers in range: known now (`constant`), or computed (`traced`)."""

    traced: SymbolicArray | None = None
    constant: np.ndarray | None = None

    @property
    def shape(self) -> tuple[Affine, ...]:
        if self.traced is not None:
            return self.traced.cells.shape
        assert self.constant is not None
        return tuple(Affine.of(extent) for extent in self.constant.shape)

    def symbolic(self, trace: Trace) -> SymbolicArray:
        """The positions as an array of the program."""
        if self.traced is not None:
            return self.traced
        assert self.constant is not None
        return SymbolicArray(View.whole(trace.capture(self.constant)), trace)


Item = Union[Span, New, Point, Many]


def parse_key(array: SymbolicArray, key: Any, trace: Trace) -> tuple[list[Item], bool]:
    """The items of a key, and whether it had an Ellipsis."""
    parts = [_part(part, trace) for part in (key if isinstance(key, tuple) else (key,))]
    ellipses = sum(1 for part in parts if part is Ellipsis)
    if ellipses > 1:
        raise IndexOutOfRange("an index can only have a single ellipsis ('...')", loc=user_location())
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
            items += _items(array, axis, part, trace)
            axis += _width(part)
    return items, ellipses == 1


def too_many_indices(array: SymbolicArray, used: int) -> IndexOutOfRange:
    """The error of an index with more entries than the array has axes."""
    return IndexOutOfRange(
        f"too many indices for array: array is {array.ndim}-dimensional, but {used} were indexed",
        loc=user_location(),
        details=(describe(array),),
        fix="remove an index, or add axes with np.newaxis",
    )


def _part(part: Any, trace: Trace) -> Any:
    """One entry of the key; lists as arrays, constant where they can be."""
    if type(part) is SymbolicArray and not part.is_scalar and part.weak is None:
        known = trace.known(part.cells)
        return part if known is None else known
    if type(part) is SymbolicArray or not isinstance(part, (list, tuple, np.ndarray, bool, np.bool_)):
        return part
    try:
        constant = np.asarray(part)
    except ConcretizationError:
        return as_operand(part, trace)
    if constant.dtype == np.bool_ and constant.ndim == 0:
        raise UnsupportedError(
            "indexing with a single bool is not supported",
            loc=user_location(),
            fix="use x[np.newaxis] for True",
        )
    return constant


def _width(part: Any) -> int:
    """How many axes of the array an entry of the key takes."""
    if part is None or part is Ellipsis:
        return 0
    return part.ndim if _is_mask(part) else 1


def _is_mask(part: Any) -> bool:
    return type(part) is np.ndarray and part.dtype == np.bool_


def _items(array: SymbolicArray, axis: int, part: Any, trace: Trace) -> list[Item]:
    extent = array.cells.shape[axis]
    if isinstance(part, slice):
        return [_span(part, extent)]
    if type(part) is SymbolicArray:
        return [Many(traced=_traced_positions(part, array, axis, trace))]
    if _is_mask(part):
        require_mask_shape(part.shape, array, axis)
        return [Many(constant=positions) for positions in np.nonzero(part)]
    if type(part) is np.ndarray:
        return [Many(constant=_constant_positions(part, array, axis))]
    try:
        number = operator.index(part)
    except TypeError:
        raise IndexOutOfRange(
            _VALID, loc=user_location(), details=(f"got {part!r}",), fix="use an integer or a slice"
        ) from None
    return [Point(Affine.of(_in_range(number, extent, axis)))]


def require_mask_shape(shape: Sequence[int], array: SymbolicArray, axis: int) -> None:
    """A mask has the shape of the axes that it selects from."""
    for place, extent in enumerate(shape, axis):
        if extent != array.shape[place]:
            raise IndexOutOfRange(
                f"boolean index did not match indexed array along axis {place}; size of axis is "
                f"{array.shape[place]} but size of corresponding boolean axis is {extent}",
                loc=user_location(),
                fix="use a mask of the array's own shape",
            )


def _span(part: slice, extent: Affine) -> Span:
    if not extent.is_constant:
        if part == slice(None):
            return Span(Affine.of(0), 1, extent)
        raise UnsupportedError("slicing an axis of symbolic extent is not supported", loc=user_location())
    if part.step is not None and type(part.step) is not SymbolicArray and part.step == 0:
        raise ShapeError("slice step cannot be zero", loc=user_location(), fix="use a step of 1 or more")
    start, stop, step = part.indices(extent.constant)
    return Span(Affine.of(start), step, Affine.of(len(range(start, stop, step))))


def _in_range(number: int, extent: Affine, axis: int) -> int:
    size = extent.constant
    if not -size <= number < size:
        raise IndexOutOfRange(
            f"index {number} is out of bounds for axis {axis} with size {size}",
            loc=user_location(),
            fix=f"use an index from {-size} to {size - 1}",
        )
    return number % size


def _constant_positions(positions: np.ndarray, array: SymbolicArray, axis: int) -> np.ndarray:
    """Positions known while tracing, checked now and counted from the front."""
    if positions.size == 0:
        positions = positions.astype(np.int64)
    if positions.dtype.kind not in "iu":
        raise IndexOutOfRange(_VALID, loc=user_location(), fix="convert the index with .astype(int)")
    extent = array.cells.shape[axis]
    checked = [_in_range(int(number), extent, axis) for number in positions.flat]
    return np.array(checked, np.int64).reshape(positions.shape)


def _traced_positions(
    positions: SymbolicArray, array: SymbolicArray, axis: int, trace: Trace
) -> SymbolicArray:
    """Positions computed by the program: checked when it runs, counted from the end where negative."""
    as_operand(positions, trace)
    if positions.element_type.kind not in (Kind.INT, Kind.UINT):
        raise IndexOutOfRange(
            _VALID, loc=user_location(), details=(describe(positions),), fix="use .astype(int)"
        )
    if positions.ndim == 0 and array.ndim > 1:
        raise UnsupportedError(
            "a traced integer as an index of an axis is supported only where it reads one number",
            loc=user_location(),
            details=(describe(array), describe(positions)),
            fix="read with np.take(x, i, axis=...), or name the argument in static_argnames",
        )
    size = Const(array.cells.shape[axis].constant, I64)
    lowest = Const(-size.value, I64)

    def in_bounds(position: tuple[Affine, ...]) -> Expr:
        value = convert(positions.load(position), I64)
        above = Apply(OPS["greater_equal"], (value, lowest), BOOL)
        below = Apply(OPS["less"], (value, size), BOOL)
        return Apply(OPS["logical_and"], (above, below), BOOL)

    def counted(position: tuple[Affine, ...]) -> Expr:
        value = convert(positions.load(position), I64)
        negative = Apply(OPS["less"], (value, Const(0, I64)), BOOL)
        return Apply(OPS["where"], (negative, Apply(OPS["add"], (value, size), I64), value), I64)

    words = f"index is out of bounds for axis {axis} with size {size.value}"
    trace.check(positions.cells.shape, in_bounds, "IndexError", words)
    return SymbolicArray(trace.compute(positions.cells.shape, I64, counted), trace)
