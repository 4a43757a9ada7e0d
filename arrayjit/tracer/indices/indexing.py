"""Reading and writing by index, as NumPy does.

Integers, slices, Ellipsis and newaxis give views: affine maps, no copy. Arrays of integers and masks read
into a fresh array, and write one position after another.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from ...errors import DTypeError, ReadOnlyError, ShapeError
from ...ir.conditions import one_of
from ...ir.dtype import BOOL
from ...ir.expr import Expr, convert
from ...ir.index import Affine
from ..record.registry import method
from ..record.trace import Body, Trace, current_trace
from ..record.view import View, same_cells
from ..values.array import SymbolicArray, describe
from ..values.elementwise import as_array, as_operand, as_stored, operand_at, shape_of
from ..values.extents import ONE, ZERO, is_repeatable, shape_text, shape_texts
from ..values.fitting import Operand, check_stored
from .compaction import compacted
from .gathering import chosen_shape, gathered, part
from .keys import Item, Many, New, Point, Span, Steps, parse_key, require_mask_shape, too_many_indices
from .masked import where_selected
from .scatter import scatter, scatter_steps, stepped_shape

__all__ = ["assign_chosen", "element_or_part", "getitem", "require_assignable", "setitem"]


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
    if _is_truth(key):
        return getitem(*_on_new_axis(array, key))
    mask = _whole_mask(array, key)
    if mask is not None and mask.ndim == array.ndim and trace.known(mask.cells) is None:
        return compacted(mask, array.element_type, [array.load])[0]
    items, has_ellipsis = parse_key(array, key, trace)
    if any(isinstance(item, Many) for item in items):
        return gathered(array, items, trace)
    view = part(array.cells, items)
    if view.rank == 0 and not has_ellipsis:
        known = trace.known(view)
        view = trace.compute((), array.element_type, view.load)
        if known is not None:
            trace.knowledge.know(view.tensor, known)
        return SymbolicArray(view, trace, is_scalar=True)
    return SymbolicArray(part(array.shown(), items) if array.is_scalar else view, trace)


@method("__setitem__")
def setitem(array: SymbolicArray, key: Any, value: Any) -> None:
    """`array[key] = value`: the right side is wholly read first."""
    trace = current_trace()
    as_operand(array, trace)
    require_assignable(array)
    if _is_truth(key):
        setitem(*_on_new_axis(array, key), value)
        return
    operand = as_stored(value, array.element_type, trace)
    mask = _whole_mask(array, key)
    if mask is not None and mask.ndim == array.ndim:
        _require_row(shape_of(operand))
    if mask is not None and _is_same_for_all(operand, array.ndim - mask.ndim):
        _assign_where(array, mask, _one_for_all(array, mask, operand), trace)
        return
    if mask is not None and mask.ndim == array.ndim and type(operand) is SymbolicArray:
        selected = where_selected(operand.cells, mask.cells, trace)
        if selected is not None:
            _assign_where(array, mask, selected, trace)
            return
    items, has_ellipsis = parse_key(array, key, trace, counts=True)
    if not any(isinstance(item, Many) and item.shape for item in items):
        _require_few_axes(value, operand, array, sum(map(_is_kept, items)), has_ellipsis)
    if sum(isinstance(item, Steps) for item in items) == 1 and not any(
        isinstance(item, Many) for item in items
    ):
        check_stored(operand, array.element_type, trace)
        shape = stepped_shape(items)
        scatter_steps(array, items, _fitted(operand, shape, _unfit(operand, shape)), _write, trace)
        return
    if any(isinstance(item, Steps) for item in items):
        items, _ = parse_key(array, key, trace)
    if not any(isinstance(item, Many) for item in items):
        check_stored(operand, array.element_type, trace)
        _assign(part(array.cells, items), operand, trace)
        return
    if not any(isinstance(item, Many) and item.shape for item in items):
        check_stored(operand, array.element_type, trace)  # arrays without axes are numbers to NumPy
    covers = mask is not None and mask.ndim == array.ndim
    assign_chosen(array, items, operand, _wrong_count(shape_of(operand)) if covers else None)


def assign_chosen(
    array: SymbolicArray, items: Sequence[Item], operand: Operand, words: str | None = None
) -> None:
    """Write an operand into the cells that arrays choose; `words` say that it does not fit."""
    _, _, shape = chosen_shape(items)
    fitted = _fitted(operand, shape, words or _mismatch(shape_of(operand), shape))
    scatter(array, items, fitted, _write, array.record)


def require_assignable(array: SymbolicArray) -> None:
    """Raises where NumPy refuses to write the array."""
    if array.is_scalar or array.weak is not None:
        raise DTypeError(
            f"'{array.__class__.__name__}' object does not support item assignment",
            details=(describe(array),),
        )
    if not array.cells.writeable:
        raise ReadOnlyError(
            "assignment destination is read-only",
            details=(describe(array),),
            fix="write into a copy: x = x.copy()",
        )


def _assign(target: View, operand: Operand, trace: Trace) -> None:
    """Write an operand into every cell of a view, broadcast as assignment broadcasts."""
    if type(operand) is SymbolicArray and same_cells(operand.cells, target):
        return
    fitted = _fitted(operand, target.shape, _unfit(operand, target.shape))
    dtype = target.tensor.dtype
    trace.store(target, lambda position: operand_at(fitted, position, dtype))


def _write(cells: SymbolicArray, value: Operand) -> None:
    dtype = cells.element_type
    cells.record.store(cells.cells, lambda position: operand_at(value, position, dtype))


def _is_kept(item: Item) -> bool:
    """Whether the part has an axis for this; those of arrays without axes disappear as those of integers."""
    return not isinstance(item, (Point, Many))


def _require_few_axes(
    value: Any, operand: Operand, array: SymbolicArray, room: int, has_ellipsis: bool
) -> None:
    """A part with so many axes takes no lists with more, and a cell no array with axes."""
    rank = len(shape_of(operand))
    kind = next((kind for kind in (list, tuple) if isinstance(value, kind)), np.array)
    error = _refused(array.element_type.numpy, room, has_ellipsis, rank, kind) if rank > room else None
    if error is not None:
        ours = DTypeError if isinstance(error, TypeError) else ShapeError
        fix = "take what has fewer axes out of it: x[0] = values[0]"
        raise ours(str(error).rstrip("."), details=(describe(array),), fix=fix)


@lru_cache(1000)
def _refused(
    dtype: np.dtype, room: int, has_ellipsis: bool, rank: int, kind: Callable[[Any], Any]
) -> Exception | None:
    """What NumPy says of one number with `rank` axes, as an array, a list or a tuple, in place of a part with
    `room` of them."""
    given: Any = dtype.type(1)
    for _ in range(rank):
        given = kind((given,))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            np.zeros((1,) * room, dtype)[... if has_ellipsis or room else ()] = given
    except (TypeError, ValueError) as error:
        return error
    return None


def _is_same_for_all(operand: Operand, rank: int) -> bool:
    """Whether a value is one of this rank, repeated for every position that a mask selects."""
    shape = shape_of(operand)
    return all(extent == ONE for extent in shape[: max(len(shape) - rank, 0)])


def _one_for_all(array: SymbolicArray, mask: SymbolicArray, operand: Operand) -> Body:
    rest = array.cells.shape[mask.ndim :]
    fitted = _fitted(operand, rest, _mismatch(shape_of(operand), rest))
    return lambda position: operand_at(fitted, position[mask.ndim :], array.element_type)


def _assign_where(array: SymbolicArray, mask: SymbolicArray, value: Body, trace: Trace) -> None:
    """`array[mask] = value` for a value that is known at every position of the array."""
    dtype = array.element_type

    def chosen(position: tuple[Affine, ...]) -> Expr:
        selected = mask.load(position[: mask.ndim])
        return one_of(selected, convert(value(position), dtype), array.load(position))

    trace.store(array.cells, chosen)


def _fitted(operand: Operand, wanted: Sequence[Affine], words: str) -> Operand:
    """A value that broadcasts to a part, its extra axes of extent 1 in front dropped."""
    given = shape_of(operand)
    extra = max(len(given) - len(wanted), 0)
    ones, rest = given[:extra], given[extra:]
    pairs = zip(rest[::-1], wanted[::-1], strict=False)
    if not all(extent == ONE for extent in ones) or not all(is_repeatable(*pair, words) for pair in pairs):
        fix = "give the value the shape of the assigned part, or one that broadcasts to it"
        raise ShapeError(words, fix=fix)
    if not extra or type(operand) is not SymbolicArray:
        return operand
    spans = [Span(ZERO, 1, extent) for extent in rest]
    return SymbolicArray(part(operand.cells, [*[Point(ZERO)] * extra, *spans]), operand.record)


def _unfit(operand: Operand, wanted: Sequence[Affine]) -> str:
    given, into = shape_texts(shape_of(operand), wanted)
    return f"could not broadcast input array from shape {given} into shape {into}"


def _mismatch(given: Sequence[Affine], wanted: Sequence[Affine]) -> str:
    return (
        f"shape mismatch: value array of shape {shape_text(given)} could not be broadcast to indexing result "
        f"of shape {shape_text(wanted)}"
    )


def _wrong_count(given: Sequence[Affine]) -> str:
    """What NumPy says of a value whose length is not the number of cells that a mask selects."""
    return (
        f"NumPy boolean array indexing assignment cannot assign {given[0]} input values to the output values "
        "where the mask is true"
    )


def _require_row(given: Sequence[Affine]) -> None:
    """What a mask of the whole array assigns is a number or one row of them."""
    if len(given) > 1:
        raise DTypeError(
            "NumPy boolean array indexing assignment requires a 0 or 1-dimensional input, input has "
            f"{len(given)} dimensions",
            fix="write x[mask] = values[mask]",
        )


def _is_truth(key: Any) -> bool:
    """Whether the key is a single bool, which chooses all of the array or nothing."""
    if type(key) is SymbolicArray:
        return key.element_type is BOOL and key.ndim == 0
    return isinstance(key, (bool, np.bool_))


def _on_new_axis(array: SymbolicArray, key: Any) -> tuple[SymbolicArray, SymbolicArray]:
    """The array behind an axis of extent 1, and a single bool as the mask of that axis."""
    mask, axes = as_array(key), [Span(ZERO, 1, extent) for extent in array.cells.shape]
    behind = SymbolicArray(part(array.cells, [New(), *axes]), array.record)
    return behind, SymbolicArray(part(mask.cells, [New()]), mask.record)


def _whole_mask(array: SymbolicArray, key: Any) -> SymbolicArray | None:
    """The key, if it is a traced bool array; its shape must lead the array's shape."""
    if type(key) is not SymbolicArray or key.element_type is not BOOL or key.ndim == 0:
        return None
    as_operand(key)
    if key.ndim > array.ndim:
        raise too_many_indices(array, key.ndim)
    require_mask_shape(key.cells.shape, array, 0)
    return key
