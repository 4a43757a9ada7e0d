"""Reading and writing by index, as NumPy does.

Integers, slices, Ellipsis and newaxis give views: affine maps, no copy. Arrays of integers and masks read
into a fresh array, and write one position after another.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..errors import ReadOnlyError, ShapeError, UnsupportedError
from ..ir.dtype import BOOL
from ..ir.expr import Apply, Expr
from ..ir.index import Affine
from ..ir.ops import op
from .array import SymbolicArray, describe
from .compaction import compacted
from .elementwise import Operand, as_operand, check_fits, operand_at, shape_text
from .extents import ONE, ZERO, agree
from .gathering import chosen_shape, gathered, part
from .keys import Item, Many, parse_key, require_mask_shape, too_many_indices
from .registry import method
from .scatter import Position, scatter, unaliased
from .trace import Trace, current_trace, user_location
from .view import View

__all__ = ["getitem", "setitem"]


@method("__getitem__")
def element_or_part(array: SymbolicArray, key: Any) -> Any:
    """What the user's `array[key]` gives: elements of constants are numbers, which may be indices."""
    result = getitem(array, key)
    known = array.record.known(result.cells) if result.is_scalar else None
    return result if known is None else known[()]


def getitem(array: SymbolicArray, key: Any) -> SymbolicArray:
    """`array[key]`: a view, a scalar (a copy), or a copy of the cells chosen by arrays."""
    trace = current_trace()
    as_operand(array, trace)
    mask = _whole_mask(array, key)
    if mask is not None and mask.ndim == array.ndim:
        return compacted(mask, array.element_type, [array.load])[0]
    items, has_ellipsis = parse_key(array, key, trace)
    if any(isinstance(item, Many) for item in items):
        return gathered(array, items, trace)
    view = part(array.cells, items)
    if view.rank == 0 and not has_ellipsis:
        known = trace.known(view)
        view = trace.compute((), array.element_type, view.load)
        if known is not None:
            trace.know(view.tensor, known)
        return SymbolicArray(view, trace, is_scalar=True)
    return SymbolicArray(part(array.shown(), items) if array.is_scalar else view, trace)


@method("__setitem__")
def setitem(array: SymbolicArray, key: Any, value: Any) -> None:
    """`array[key] = value`: the right side is wholly read first."""
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
    mask = _whole_mask(array, key)
    if mask is not None and _is_same_for_all(operand, array.ndim - mask.ndim):
        _assign_where(array, mask, operand, trace)
        return
    items, _ = parse_key(array, key, trace)
    if any(isinstance(item, Many) for item in items):
        _assign_many(array, items, operand, trace)
    else:
        _assign(part(array.cells, items), operand, trace)


def _assign(target: View, operand: Operand, trace: Trace) -> None:
    """Write an operand into every cell of a view, broadcast as assignment broadcasts."""
    if type(operand) is SymbolicArray and _same_cells(operand.cells, target):
        return
    given = _shape(operand)
    words = f"could not broadcast input array from shape {shape_text(given)} into shape "
    _require_fit(given, target.shape, words + shape_text(target.shape))
    dtype = target.tensor.dtype
    leading = (ZERO,) * (len(given) - target.rank)
    trace.store(target, lambda position: operand_at(operand, (*leading, *position), dtype))


def _require_fit(given: Sequence[Affine], wanted: Sequence[Affine], words: str) -> None:
    """A value fits a part if it broadcasts to it, axes of extent 1 in front not counted."""
    padded = (*[ONE] * (len(wanted) - len(given)), *given)
    target = (*[ONE] * (len(given) - len(wanted)), *wanted)
    pairs = zip(padded, target, strict=True)
    if not all(extent == ONE or agree(extent, room, words) for extent, room in pairs):
        fix = "give the value the shape of the assigned part, or one that broadcasts to it"
        raise ShapeError(words, loc=user_location(), fix=fix)


def _same_cells(left: View, right: View) -> bool:
    """Whether two views are cell for cell the same: what `x[1:] += y` assigns after its addition."""
    return (
        left.tensor is right.tensor
        and left.shape == right.shape
        and left.at(right.axes) == right.at(right.axes)
    )


def _is_same_for_all(operand: Operand, rank: int) -> bool:
    """Whether a value is one of this rank, repeated for every position that a mask selects."""
    shape = _shape(operand)
    return all(extent == ONE for extent in shape[: max(len(shape) - rank, 0)])


def _assign_where(array: SymbolicArray, mask: SymbolicArray, operand: Operand, trace: Trace) -> None:
    """`array[mask] = value` for a value that is the same wherever the mask holds."""
    rest = array.cells.shape[mask.ndim :]
    given = _shape(operand)
    _require_fit(given, rest, _mismatch(given, f"(n,{shape_text(rest)[1:]}"))
    leading = (ZERO,) * (len(given) - len(rest))
    dtype = array.element_type

    def chosen(position: Position) -> Expr:
        selected = mask.load(position[: mask.ndim])
        cell = operand_at(operand, (*leading, *position[mask.ndim :]), dtype)
        return Apply(op("where"), (selected, cell, array.load(position)), dtype)

    trace.store(array.cells, chosen)


def _assign_many(array: SymbolicArray, items: Sequence[Item], operand: Operand, trace: Trace) -> None:
    """Write an operand into the cells that arrays choose, one position after another."""
    given, (_, _, shape) = _shape(operand), chosen_shape(items)
    _require_fit(given, shape, _mismatch(given, shape_text(shape)))
    held = unaliased(operand, array)
    leading = (ZERO,) * (len(given) - len(shape))
    dtype = array.element_type

    def write(target: View, within: Callable[[Position], Position]) -> None:
        trace.store(target, lambda position: operand_at(held, (*leading, *within(position)), dtype))

    scatter(array, items, write, trace)


def _mismatch(given: Sequence[Affine], wanted: str) -> str:
    return (
        f"shape mismatch: value array of shape {shape_text(given)} could not be broadcast to indexing result "
        f"of shape {wanted}"
    )


def _shape(operand: Operand) -> tuple[Affine, ...]:
    return operand.cells.shape if type(operand) is SymbolicArray else ()


def _whole_mask(array: SymbolicArray, key: Any) -> SymbolicArray | None:
    """The key, if it is a traced bool array; its shape must lead the array's shape."""
    if type(key) is not SymbolicArray or key.element_type is not BOOL or key.ndim == 0:
        return None
    as_operand(key)
    if key.ndim > array.ndim:
        raise too_many_indices(array, key.ndim)
    require_mask_shape(key.cells.shape, array, 0)
    return key
