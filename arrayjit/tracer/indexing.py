"""Reading and writing by index, as NumPy does.

Integers, slices, Ellipsis and newaxis give views: affine maps, no copy. Integer arrays read by gathering
into a fresh array; a bool mask of the array's own shape selects where a value is written.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import IndexOutOfRange, ReadOnlyError, ShapeError, UnsupportedError
from ..ir.dtype import BOOL, I64
from ..ir.expr import Apply, Const, Expr, Gather, Index
from ..ir.index import Affine, Extent, Symbol
from ..ir.ops import OPS
from .array import SymbolicArray, describe
from .elementwise import Operand, as_operand, broadcast, check_fits, copy, operand_at, shape_text
from .keys import Item, Many, New, Point, Span, parse_key, require_mask_shape, too_many_indices
from .registry import method
from .trace import Trace, current_trace, user_location
from .view import View

__all__ = ["gather", "getitem", "setitem"]

_MOST_WRITES = 64


@method("__getitem__")
def element_or_part(array: SymbolicArray, key: Any) -> Any:
    """What the user's `array[key]` gives: elements of constants are numbers, which may be indices."""
    result = getitem(array, key)
    known = array.record.known(result.cells) if result.is_scalar else None
    return result if known is None else known[()]


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
    items, has_ellipsis = parse_key(array, key, trace)
    if any(isinstance(item, Many) for item in items):
        return _gathered(array, items, trace)
    view = _basic(array.cells, items)
    if view.rank == 0 and not has_ellipsis:
        known = trace.known(view)
        view = trace.compute((), array.element_type, view.load)
        if known is not None:
            trace.know(view.tensor, known)
        return SymbolicArray(view, trace, is_scalar=True)
    return SymbolicArray(_basic(array.shown(), items) if array.is_scalar else view, trace)


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
    if not array.cells.writeable:
        raise ReadOnlyError(
            "assignment destination is read-only",
            loc=user_location(),
            details=(describe(array),),
            fix="write into a copy: x = x.copy()",
        )
    operand = as_operand(value, trace)
    check_fits(operand, array.element_type, trace)
    if (mask := _whole_mask(array, key)) is not None:
        _assign_masked(array, mask, operand, trace)
        return
    items, _ = parse_key(array, key, trace)
    if any(isinstance(item, Many) for item in items):
        _assign_many(array, items, operand, trace)
    else:
        _assign(_basic(array.cells, items), operand, trace)


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
    if type(operand) is SymbolicArray and _same_cells(operand.cells, target):
        return
    given = operand.cells.shape if type(operand) is SymbolicArray else ()
    _require_fit(given, target.shape)
    dtype = target.tensor.dtype
    leading = (Affine.of(0),) * (len(given) - target.rank)
    trace.store(target, lambda position: operand_at(operand, (*leading, *position), dtype))


def _require_fit(given: tuple[Affine, ...], wanted: tuple[Affine, ...]) -> None:
    """A value fits a part if it broadcasts to it, axes of extent 1 in front not counted."""
    padded = (*[Affine.of(1)] * (len(wanted) - len(given)), *given)
    target = (*[Affine.of(1)] * (len(given) - len(wanted)), *wanted)
    if any(extent not in (Affine.of(1), room) for extent, room in zip(padded, target, strict=True)):
        raise ShapeError(
            f"could not broadcast input array from shape {shape_text(given)} into shape {shape_text(wanted)}",
            loc=user_location(),
            fix="give the value the shape of the assigned part, or one that broadcasts to it",
        )


def _same_cells(left: View, right: View) -> bool:
    """Whether two views are cell for cell the same: what `x[1:] += y` assigns after its addition."""
    return (
        left.tensor is right.tensor
        and left.shape == right.shape
        and left.at(right.axes) == right.at(right.axes)
    )


def _assign_masked(array: SymbolicArray, mask: SymbolicArray, operand: Operand, trace: Trace) -> None:
    """`array[mask] = value` for a value that does not depend on how many cells the mask selects."""
    rest = array.cells.shape[mask.ndim :]
    given = operand.cells.shape if type(operand) is SymbolicArray else ()
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

    trace.store(array.cells, chosen)


def _assign_many(array: SymbolicArray, items: Sequence[Item], operand: Operand, trace: Trace) -> None:
    """`array[[0, 2]] = value`: one write for each constant position, in their order, as in NumPy."""
    constants = [item.constant for item in items if isinstance(item, Many)]
    common, before, shape = _gathered_shape(items)
    positions = tuple(extent.constant for extent in common)
    if any(constant is None for constant in constants) or np.prod(positions) > _MOST_WRITES:
        raise UnsupportedError(
            f"writing to positions given by an integer array is supported for up to {_MOST_WRITES} constants",
            loc=user_location(),
            details=(describe(array),),
            fix="write slices, or build the array with np.where",
        )
    given = operand.cells.shape if type(operand) is SymbolicArray else ()
    _require_fit(given, shape)
    held = copy(operand) if type(operand) is SymbolicArray and operand.weak is None else operand
    leading = (Affine.of(0),) * (len(given) - len(shape))
    for place in np.ndindex(*positions):
        fixed = tuple(map(Affine.of, place))

        def cell(position: tuple[Affine, ...], fixed: tuple[Affine, ...] = fixed) -> Expr:
            whole = (*leading, *position[:before], *fixed, *position[before:])
            return operand_at(held, whole, array.element_type)

        points = [_point(item, positions, place) if isinstance(item, Many) else item for item in items]
        trace.store(_basic(array.cells, points), cell)


def _point(item: Many, extents: tuple[int, ...], place: tuple[int, ...]) -> Point:
    assert item.constant is not None
    return Point(Affine.of(int(np.broadcast_to(item.constant, extents)[place])))


def _whole_mask(array: SymbolicArray, key: Any) -> SymbolicArray | None:
    """The key, if it is a traced bool array; its shape must lead the array's shape."""
    if type(key) is not SymbolicArray or key.element_type is not BOOL:
        return None
    as_operand(key)
    if key.ndim > array.ndim:
        raise too_many_indices(array, key.ndim)
    require_mask_shape(key.shape, array, 0)
    return key


def _basic(view: View, items: Sequence[Item]) -> View:
    """The view that points, slices and new axes make of a view."""
    shape: list[Extent] = []
    axes: list[Symbol] = []
    position: list[Affine] = []
    for item in items:
        match item:
            case New():
                shape.append(1)
                axes.append(Symbol("i"))
            case Point(at=at):
                position.append(at)
            case Span(start=start, step=step, extent=extent):
                shape.append(extent)
                axes.append(Symbol("i"))
                position.append(start + Affine.of(axes[-1]) * step)
            case Many():
                raise AssertionError("cells chosen by an array are no view")
    return view.remap(shape, tuple(axes), position)


def _gathered_shape(items: Sequence[Item]) -> tuple[tuple[Affine, ...], int, tuple[Affine, ...]]:
    """The shape that the integer arrays broadcast to, the axis where it stands in the result, and the
    result's shape: it replaces the arrays' axes where these are neighbours and comes first otherwise."""
    chosen = [n for n, item in enumerate(items) if isinstance(item, (Many, Point))]
    try:
        common = broadcast(*(item.shape for item in items if isinstance(item, Many)))
    except ShapeError as error:
        words = error.what.replace("operands could not", "shape mismatch: indexing arrays could not")
        raise IndexOutOfRange(
            words, loc=error.loc, fix="give the index arrays shapes that broadcast"
        ) from None
    kept = [(n, item) for n, item in enumerate(items) if isinstance(item, (Span, New))]
    neighbours = chosen[-1] - chosen[0] + 1 == len(chosen)
    before = sum(1 for n, _ in kept if n < chosen[0]) if neighbours else 0
    extents = [item.extent if isinstance(item, Span) else Affine.of(1) for _, item in kept]
    return common, before, (*extents[:before], *common, *extents[before:])


def _gathered(array: SymbolicArray, items: Sequence[Item], trace: Trace) -> SymbolicArray:
    """Indexing with integer arrays: a fresh array."""
    common, before, shape = _gathered_shape(items)
    arrays = {n: item.symbolic(trace) for n, item in enumerate(items) if isinstance(item, Many)}

    def cell(position: tuple[Affine, ...]) -> Expr:
        picked = position[before : before + len(common)]
        free = iter((*position[:before], *position[before + len(common) :]))
        index: list[Expr] = []
        for n, item in enumerate(items):
            match item:
                case New():
                    next(free)
                case Point(at=at):
                    index.append(Index(at))
                case Span(start=start, step=step):
                    index.append(Index(start + next(free) * step))
                case Many():
                    index.append(operand_at(arrays[n], picked, I64))
        return gather(array.cells, index)

    return SymbolicArray(trace.compute(shape, array.element_type, cell), trace, is_scalar=not shape)
