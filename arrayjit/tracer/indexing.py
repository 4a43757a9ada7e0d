"""Reading and writing by index, as NumPy does.

Integers, slices, Ellipsis and newaxis give views: affine maps, no copy. Integer arrays read by gathering
into a fresh array; a bool mask of the array's own shape selects where a value is written.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Union

import numpy as np

from ..errors import ConcretizationError, IndexOutOfRange, ReadOnlyError, ShapeError, UnsupportedError
from ..ir.dtype import BOOL, I64, Kind
from ..ir.expr import Apply, Const, Expr, Gather, Index
from ..ir.index import Affine, Extent, Symbol
from ..ir.ops import OPS
from .array import SymbolicArray, describe
from .elementwise import Operand, as_operand, broadcast, convert, operand_at
from .registry import method
from .trace import Trace, current_trace, user_location
from .view import View

__all__ = ["gather", "getitem", "setitem"]

_VALID = (
    "only integers, slices (`:`), ellipsis (`...`), numpy.newaxis (`None`) and integer or boolean arrays "
    "are valid indices"
)
_SCATTER_LIMIT = 64


@dataclass(frozen=True, slots=True)
class _Axis:
    """One axis of a view that indexing keeps: `start + step * p` for p below `extent`."""

    start: Affine
    step: int
    extent: Affine


@dataclass(frozen=True, slots=True)
class _New:
    """A new axis of extent 1."""


@dataclass(frozen=True, slots=True)
class _Point:
    """One cell of an axis, which disappears."""

    at: Affine


@dataclass(frozen=True, slots=True)
class _Many:
    """Integer array as index: a gathered axis."""

    positions: SymbolicArray


_Item = Union[_Axis, _New, _Point, _Many]


@method("__getitem__")
def getitem(array: SymbolicArray, key: Any) -> SymbolicArray:
    """`array[key]`: a view, a scalar (a copy), or a gathered copy."""
    trace = current_trace()
    as_operand(array, trace)
    if (mask := _whole_mask(array, key)) is not None:
        raise UnsupportedError(
            "selecting by a mask gives an array whose shape depends on values",
            loc=user_location(),
            details=(describe(array), describe(mask)),
            fix="use np.where(mask, x, 0), a reduction with where=mask, or np.add(x, y, out=x, where=mask)",
        )
    items, has_ellipsis = _parsed(array, key, trace)
    if any(isinstance(item, _Many) for item in items):
        return _gathered(array, items, trace)
    view = _basic(array.view, items)
    if view.rank == 0 and not (has_ellipsis and not array.is_scalar):
        return SymbolicArray(trace.compute((), array.element_type, view.load), trace, is_scalar=True)
    return SymbolicArray(view, trace)


@method("__setitem__")
def setitem(array: SymbolicArray, key: Any, value: Any) -> None:
    """`array[key] = value`: one assignment whose right side is wholly read first."""
    trace = current_trace()
    as_operand(array, trace)
    if array.is_scalar or array.weak is not None:
        raise UnsupportedError(
            f"'{array.__class__.__name__}' object does not support item assignment",
            loc=user_location(),
            details=(describe(array),),
        )
    if not array.view.writeable:
        raise ReadOnlyError(
            "assignment destination is read-only",
            loc=user_location(),
            details=(describe(array),),
            fix="write into a copy: x = x.copy()",
        )
    operand = as_operand(value, trace)
    if (mask := _whole_mask(array, key)) is not None:
        _assign_masked(array, mask, operand, trace)
        return
    items, _ = _parsed(array, key, trace, writing=True)
    if any(isinstance(item, _Many) for item in items):
        raise UnsupportedError(
            "writing to positions given by a traced integer array is not supported",
            loc=user_location(),
            details=(describe(array),),
            fix="write slices, or build the array with np.where",
        )
    _assign(_basic(array.view, items), operand, trace)


def gather(view: View, index: Sequence[Expr]) -> Gather:
    """The view's cell at an index that the program computes (int64, in bounds)."""
    terms = dict(zip(view.axes, index, strict=True))
    return Gather(view.tensor, tuple(_evaluated(part, terms) for part in view.index))


def _evaluated(part: Affine, terms: dict[Symbol, Expr]) -> Expr:
    """An affine expression as a number, some of whose symbols are computed."""
    fixed = Affine(tuple((c, s) for c, s in part.terms if s not in terms), part.offset)
    total: Expr | None = None if fixed == Affine.of(0) else Index(fixed)
    for coefficient, symbol in part.terms:
        if symbol not in terms:
            continue
        term = terms[symbol]
        if coefficient != 1:
            term = Apply(OPS["multiply"], (term, Const(coefficient, I64)), I64)
        total = term if total is None else Apply(OPS["add"], (total, term), I64)
    return Index(Affine.of(0)) if total is None else total


def _assign(target: View, operand: Operand, trace: Trace) -> None:
    """Write an operand into every cell of a view, broadcast as assignment broadcasts."""
    if type(operand) is SymbolicArray and _same_cells(operand.view, target):
        return
    given = operand.view.shape if type(operand) is SymbolicArray else ()
    trimmed = given[max(0, len(given) - target.rank) :]
    extra = given[: len(given) - len(trimmed)]
    fits = all(extent == Affine.of(1) for extent in extra) and all(
        extent in (Affine.of(1), wanted)
        for extent, wanted in zip(trimmed, target.shape[target.rank - len(trimmed) :], strict=True)
    )
    if not fits:
        shapes = [tuple(str(extent) for extent in shape) for shape in (given, target.shape)]
        texts = ["(" + ",".join(shape) + ("," if len(shape) == 1 else "") + ")" for shape in shapes]
        raise ShapeError(
            f"could not broadcast input array from shape {texts[0]} into shape {texts[1]}",
            loc=user_location(),
            fix="give the value the shape of the assigned part, or one that broadcasts to it",
        )
    dtype = target.tensor.dtype
    leading = (Affine.of(0),) * len(extra)
    trace.store(target, lambda position: operand_at(operand, (*leading, *position), dtype))


def _same_cells(left: View, right: View) -> bool:
    """Whether two views are cell for cell the same: what `x[1:] += y` assigns after its addition."""
    return (
        left.tensor is right.tensor
        and left.shape == right.shape
        and left.at(right.axes) == right.at(right.axes)
    )


def _assign_masked(array: SymbolicArray, mask: SymbolicArray, operand: Operand, trace: Trace) -> None:
    """`array[mask] = value` for a value that does not depend on how many cells the mask selects."""
    rest = array.view.shape[mask.ndim :]
    given = operand.view.shape if type(operand) is SymbolicArray else ()
    if len(given) > len(rest):
        raise UnsupportedError(
            "writing an array through a mask needs to know how many cells the mask selects",
            loc=user_location(),
            details=(describe(array), describe(mask)),
            fix="write x[...] = np.where(mask, values, x) with values of the shape of x",
        )
    broadcast(given, rest)
    dtype = array.element_type

    def chosen(position: tuple[Affine, ...]) -> Expr:
        selected = mask.load(position[: mask.ndim])
        cell = operand_at(operand, position[mask.ndim :], dtype)
        return Apply(OPS["where"], (selected, cell, array.load(position)), dtype)

    trace.store(array.view, chosen)


def _whole_mask(array: SymbolicArray, key: Any) -> SymbolicArray | None:
    """The key, if it is a traced bool array; its shape must lead the array's shape."""
    if type(key) is not SymbolicArray or key.element_type is not BOOL:
        return None
    as_operand(key)
    for axis, (extent, wanted) in enumerate(zip(key.shape, array.shape, strict=False)):
        if extent != wanted:
            raise IndexOutOfRange(
                f"boolean index did not match indexed array along axis {axis}; size of axis is {wanted} "
                f"but size of corresponding boolean axis is {extent}",
                loc=user_location(),
                fix="use a mask of the array's own shape",
            )
    if key.ndim > array.ndim:
        raise _too_many(array, key.ndim)
    return key


def _basic(view: View, items: Sequence[_Item]) -> View:
    """The view that points, slices and new axes make of a view."""
    shape: list[Extent] = []
    axes: list[Symbol] = []
    position: list[Affine] = []
    for item in items:
        match item:
            case _New():
                shape.append(1)
                axes.append(Symbol("i"))
            case _Point(at=at):
                position.append(at)
            case _Axis(start=start, step=step, extent=extent):
                shape.append(extent)
                axes.append(Symbol("i"))
                position.append(start + Affine.of(axes[-1]) * step)
            case _Many():
                raise AssertionError("gathered axes have no view")
    return view.remap(shape, tuple(axes), position)


def _gathered(array: SymbolicArray, items: Sequence[_Item], trace: Trace) -> SymbolicArray:
    """Indexing with integer arrays: they are broadcast together and replace their axes where these are
    neighbours, else they come first; the result is a copy."""
    advanced = [n for n, item in enumerate(items) if isinstance(item, (_Many, _Point))]
    arrays = [item.positions for item in items if isinstance(item, _Many)]
    try:
        common = broadcast(*(positions.view.shape for positions in arrays))
    except ShapeError as error:
        words = error.what.replace("operands could not", "shape mismatch: indexing arrays could not")
        raise IndexOutOfRange(
            words, loc=error.loc, fix="give the index arrays shapes that broadcast"
        ) from None
    adjacent = advanced[-1] - advanced[0] + 1 == len(advanced)
    kept = [n for n, item in enumerate(items) if isinstance(item, (_Axis, _New))]
    before = sum(1 for n in kept if n < advanced[0]) if adjacent else 0
    extents = [item.extent if isinstance(item, _Axis) else Affine.of(1) for n in kept for item in [items[n]]]
    shape = (*extents[:before], *common, *extents[before:])

    def cell(position: tuple[Affine, ...]) -> Expr:
        picked = position[before : before + len(common)]
        free = iter((*position[:before], *position[before + len(common) :]))
        index: list[Expr] = []
        for item in items:
            match item:
                case _New():
                    next(free)
                case _Point(at=at):
                    index.append(Index(at))
                case _Axis(start=start, step=step):
                    index.append(Index(start + next(free) * step))
                case _Many(positions=positions):
                    index.append(operand_at(positions, picked, I64))
        return gather(array.view, index)

    return SymbolicArray(trace.compute(shape, array.element_type, cell), trace, is_scalar=not shape)


def _parsed(
    array: SymbolicArray, key: Any, trace: Trace, *, writing: bool = False
) -> tuple[list[_Item], bool]:
    """The key as one item per axis of the array (and per new axis); whether it had an Ellipsis."""
    parts = list(key) if isinstance(key, tuple) else [key]
    expanded = [expanded for part in parts for expanded in _without_bools(part)]
    ellipses = sum(1 for part in expanded if part is Ellipsis)
    if ellipses > 1:
        raise IndexOutOfRange("an index can only have a single ellipsis ('...')", loc=user_location())
    used = sum(1 for part in expanded if part is not None and part is not Ellipsis)
    if used > array.ndim:
        raise _too_many(array, used)
    rest = [slice(None)] * (array.ndim - used)
    if not ellipses:
        expanded.append(Ellipsis)
    items: list[_Item] = []
    axis = 0
    for part in expanded:
        if part is None:
            items.append(_New())
            continue
        for single in rest if part is Ellipsis else [part]:
            items.append(_item(array, axis, single, trace, writing))
            axis += 1
    return items, ellipses == 1


def _item(array: SymbolicArray, axis: int, part: Any, trace: Trace, writing: bool) -> _Item:
    extent = array.view.shape[axis]
    if isinstance(part, slice):
        return _sliced(part, extent)
    if type(part) is SymbolicArray:
        return _Many(_traced_positions(part, array, axis, trace, writing))
    if isinstance(part, (list, tuple, np.ndarray)):
        return _Many(_constant_positions(np.asarray(part), array, axis, trace))
    try:
        number = operator.index(part)
    except TypeError:
        raise IndexOutOfRange(
            _VALID, loc=user_location(), details=(f"got {part!r}",), fix="use an integer or a slice"
        ) from None
    return _Point(Affine.of(_in_range(number, extent, axis)))


def _without_bools(part: Any) -> list[Any]:
    """A constant bool array as its `nonzero()`; anything else as it is."""
    if type(part) is SymbolicArray or not isinstance(part, (list, np.ndarray, bool, np.bool_)):
        return [part]
    concrete = _concrete(part)
    if concrete is None or concrete.dtype != np.bool_:
        return [part]
    if concrete.ndim == 0:
        raise UnsupportedError(
            "indexing with a single bool is not supported",
            loc=user_location(),
            fix="use x[np.newaxis] for True",
        )
    return list(np.nonzero(concrete))


def _concrete(part: Any) -> np.ndarray | None:
    try:
        return np.asarray(part)
    except ConcretizationError:
        return None


def _sliced(part: slice, extent: Affine) -> _Axis:
    if not extent.is_constant:
        if part == slice(None):
            return _Axis(Affine.of(0), 1, extent)
        raise UnsupportedError("slicing an axis of symbolic extent is not supported", loc=user_location())
    if part.step is not None and type(part.step) is not SymbolicArray and part.step == 0:
        raise ShapeError("slice step cannot be zero", loc=user_location(), fix="use a step of 1 or more")
    start, stop, step = part.indices(extent.constant)
    return _Axis(Affine.of(start), step, Affine.of(len(range(start, stop, step))))


def _in_range(number: int, extent: Affine, axis: int) -> int:
    size = extent.constant
    if not -size <= number < size:
        raise IndexOutOfRange(
            f"index {number} is out of bounds for axis {axis} with size {size}",
            loc=user_location(),
            fix=f"use an index from {-size} to {size - 1}",
        )
    return number % size


def _constant_positions(
    positions: np.ndarray, array: SymbolicArray, axis: int, trace: Trace
) -> SymbolicArray:
    """Positions known while tracing, checked now and captured as a constant of the program."""
    if positions.size == 0:
        positions = positions.astype(np.int64)
    if positions.dtype.kind not in "iu":
        raise IndexOutOfRange(_VALID, loc=user_location(), fix="convert the index with .astype(int)")
    checked = [_in_range(int(number), array.view.shape[axis], axis) for number in positions.flat]
    constant = np.array(checked, np.int64).reshape(positions.shape)
    return SymbolicArray(View.whole(trace.capture(constant)), trace)


def _traced_positions(
    positions: SymbolicArray, array: SymbolicArray, axis: int, trace: Trace, writing: bool
) -> SymbolicArray:
    """Positions computed by the program: checked when it runs, counted from the end where negative."""
    as_operand(positions, trace)
    if positions.element_type.kind not in (Kind.INT, Kind.UINT):
        raise IndexOutOfRange(
            _VALID, loc=user_location(), details=(describe(positions),), fix="use .astype(int)"
        )
    if positions.ndim == 0 and (writing or array.ndim > 1):
        raise UnsupportedError(
            "a traced integer as an index of an axis is supported only where it reads one number",
            loc=user_location(),
            details=(describe(array), describe(positions)),
            fix="read with np.take(x, i, axis=...), or name the argument in static_argnames",
        )
    size = Const(array.view.shape[axis].constant, I64)
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
    trace.check(positions.view.shape, in_bounds, "IndexError", words)
    return SymbolicArray(trace.compute(positions.view.shape, I64, counted), trace)


def _too_many(array: SymbolicArray, used: int) -> IndexOutOfRange:
    return IndexOutOfRange(
        f"too many indices for array: array is {array.ndim}-dimensional, but {used} were indexed",
        loc=user_location(),
        details=(describe(array),),
        fix="remove an index, or add axes with np.newaxis",
    )
