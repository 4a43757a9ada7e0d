"""Arrays from several arrays and parts of them: `concatenate`, `stack`, `split`, `roll`, `tile`, `repeat`.

The result is a fresh tensor whose parts are written one after another.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from itertools import pairwise, product
from typing import Any

import numpy as np

from ..errors import ShapeError, UnsupportedError
from ..ir.dtype import DType
from .array import SymbolicArray
from .elementwise import as_array, copy, views_of
from .indexing import getitem, setitem
from .layout import copy_order, joined_order
from .operands import arrays_of, axis_of, common_dtype, deliver, element_type, refuse, shape_of
from .registry import implements, method
from .reshaping import ravel, reshape
from .shaping import atleast_1d, atleast_2d, atleast_3d, insert_axes
from .trace import current_trace, user_location
from .view import View

__all__ = ["concatenate", "slab", "stack", "unwritten"]


def unwritten(
    shape: Sequence[Any], dtype: DType, label: str = "t", order: Sequence[int] | None = None
) -> SymbolicArray:
    """A fresh array whose cells hold nothing yet, its axes in memory in `order` (None: C's)."""
    return SymbolicArray(View.fresh(label, shape, dtype, order), current_trace())


def slab(axis: int, part: Any) -> tuple[Any, ...]:
    """The key that takes `part` of one axis and all of the others."""
    return (*[slice(None)] * axis, part)


@implements(np.concatenate)
def concatenate(
    arrays: Any, axis: Any = 0, out: Any = None, *, dtype: Any = None, casting: str = "same_kind"
) -> SymbolicArray:
    parts = arrays_of(arrays)
    if not parts:
        raise ShapeError("need at least one array to concatenate", loc=user_location(), fix="pass an array")
    if axis is None:
        parts, axis = [ravel(part) for part in parts], 0
    if parts[0].ndim == 0:
        raise ShapeError(
            "zero-dimensional arrays cannot be concatenated", loc=user_location(), fix="use np.stack"
        )
    along = axis_of(axis, parts[0].ndim)
    _require_fitting(parts, along)
    kind = element_type(dtype, common_dtype(*parts))
    total = sum(part.shape[along] for part in parts)
    shape = (*parts[0].shape[:along], total, *parts[0].shape[along + 1 :])
    result = unwritten(shape, kind, "joined", joined_order(views_of(parts)))
    start = 0
    for part in parts:
        stop = start + part.shape[along]
        setitem(result, slab(along, slice(start, stop)), part)
        start = stop
    return deliver(result, out)


def _require_fitting(parts: Sequence[SymbolicArray], axis: int) -> None:
    first = parts[0]
    for number, part in enumerate(parts[1:], 1):
        if part.ndim != first.ndim:
            raise ShapeError(
                "all the input array dimensions except for the concatenation axis must match exactly, but "
                f"the array at index 0 has {first.ndim} dimension(s) and the array at index {number} has "
                f"{part.ndim} dimension(s)",
                loc=user_location(),
                fix="give the arrays the same number of dimensions",
            )
        for other, (one, two) in enumerate(zip(first.shape, part.shape, strict=True)):
            if other != axis and one != two:
                raise ShapeError(
                    "all the input array dimensions except for the concatenation axis must match exactly, "
                    f"but along dimension {other}, the array at index 0 has size {one} and the array at "
                    f"index {number} has size {two}",
                    loc=user_location(),
                    fix="make the other dimensions equal",
                )


@implements(np.stack)
def stack(
    arrays: Any, axis: int = 0, out: Any = None, *, dtype: Any = None, casting: str = "same_kind"
) -> SymbolicArray:
    parts = arrays_of(arrays)
    if not parts:
        raise ShapeError("need at least one array to stack", loc=user_location(), fix="pass an array")
    if any(part.shape != parts[0].shape for part in parts):
        raise ShapeError(
            "all input arrays must have the same shape",
            loc=user_location(),
            details=tuple(str(part.shape) for part in parts[:8]),
            fix="make the shapes equal",
        )
    along = axis_of(axis, parts[0].ndim + 1)
    return concatenate([insert_axes(part, (along,)) for part in parts], along, out, dtype=dtype)


def _each(function: Any, arrays: Any) -> list[SymbolicArray]:
    return [function(array) for array in arrays]


@implements(np.vstack)
def vstack(tup: Any, *, dtype: Any = None, casting: str = "same_kind") -> SymbolicArray:
    return concatenate(_each(atleast_2d, tup), 0, dtype=dtype)


@implements(np.hstack)
def hstack(tup: Any, *, dtype: Any = None, casting: str = "same_kind") -> SymbolicArray:
    parts = _each(atleast_1d, tup)
    return concatenate(parts, 0 if parts and parts[0].ndim == 1 else 1, dtype=dtype)


@implements(np.dstack)
def dstack(tup: Any) -> SymbolicArray:
    return concatenate(_each(atleast_3d, tup), 2)


@implements(np.column_stack)
def column_stack(tup: Any) -> SymbolicArray:
    parts = [part if part.ndim > 1 else insert_axes(atleast_1d(part), (1,)) for part in arrays_of(tup)]
    return concatenate(parts, 1)


@implements(np.block)
def block(arrays: Any) -> SymbolicArray:
    depth = _depth(arrays)
    rank = max(depth, *(leaf.ndim for leaf in _leaves(arrays)))
    result = _block(arrays, depth, rank)
    return copy(result) if depth == 0 else result


def _depth(arrays: Any) -> int:
    return 1 + _depth(arrays[0]) if isinstance(arrays, list) and arrays else 0


def _leaves(arrays: Any) -> list[SymbolicArray]:
    if isinstance(arrays, list):
        return [leaf for part in arrays for leaf in _leaves(part)]
    return [as_array(arrays)]


def _block(arrays: Any, depth: int, rank: int) -> SymbolicArray:
    if depth == 0:
        leaf = as_array(arrays)
        return insert_axes(leaf, range(rank - leaf.ndim))
    return concatenate([_block(part, depth - 1, rank) for part in arrays], rank - depth)


@implements(np.append)
def append(arr: Any, values: Any, axis: Any = None) -> SymbolicArray:
    return concatenate((as_array(arr), as_array(values)), axis)


@implements(np.delete)
def delete(arr: Any, obj: Any, axis: Any = None) -> SymbolicArray:
    array = as_array(arr)
    if axis is None:
        array, axis = ravel(array), 0
    along = axis_of(axis, array.ndim)
    kept = np.delete(np.arange(array.shape[along]), obj)
    return getitem(array, slab(along, kept))


@implements(np.array_split)
def array_split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[SymbolicArray]:
    """Views, as in NumPy."""
    array = as_array(ary)
    along = axis_of(axis, array.ndim)
    size = array.shape[along]
    if isinstance(indices_or_sections, (tuple, list, np.ndarray)):
        cuts = [operator.index(cut) for cut in indices_or_sections]
        bounds: list[int | None] = [0, *cuts, None]
    else:
        sections = operator.index(indices_or_sections)
        if sections <= 0:
            raise ShapeError("number sections must be larger than 0.", loc=user_location(), fix="use n >= 1")
        each, extra = divmod(size, sections)
        bounds = [n * each + min(n, extra) for n in range(sections + 1)]
    return [getitem(array, slab(along, slice(start, stop))) for start, stop in pairwise(bounds)]


@implements(np.split)
def split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[SymbolicArray]:
    array = as_array(ary)
    if not isinstance(indices_or_sections, (tuple, list, np.ndarray)):
        size = array.shape[axis_of(axis, array.ndim)]
        if indices_or_sections <= 0 or size % indices_or_sections:
            raise ShapeError(
                "array split does not result in an equal division",
                loc=user_location(),
                details=(f"{size} into {indices_or_sections}",),
                fix="use np.array_split",
            )
    return array_split(array, indices_or_sections, axis)


@implements(np.hsplit)
def hsplit(ary: Any, indices_or_sections: Any) -> list[SymbolicArray]:
    array = as_array(ary)
    return split(array, indices_or_sections, 1 if array.ndim > 1 else 0)


@implements(np.vsplit)
def vsplit(ary: Any, indices_or_sections: Any) -> list[SymbolicArray]:
    return split(ary, indices_or_sections, 0)


@implements(np.dsplit)
def dsplit(ary: Any, indices_or_sections: Any) -> list[SymbolicArray]:
    return split(ary, indices_or_sections, 2)


@implements("unstack")
def unstack(x: Any, /, *, axis: int = 0) -> tuple[SymbolicArray, ...]:
    array = as_array(x)
    along = axis_of(axis, array.ndim)
    return tuple(getitem(array, (*slab(along, n), ...)) for n in range(array.shape[along]))


@implements(np.roll)
def roll(a: Any, shift: Any, axis: Any = None) -> SymbolicArray:
    array = as_array(a)
    if axis is None:
        return reshape(roll(ravel(array), shift, 0), array.shape)
    axes = axis if isinstance(axis, (tuple, list)) else (axis,)
    shifts = shift if isinstance(shift, (tuple, list)) else (shift,)
    total = [0] * array.ndim
    for one, by in np.broadcast(axes, shifts):
        total[axis_of(one, array.ndim)] += int(by)
    choices = [_halves(by, extent) for by, extent in zip(total, array.shape, strict=True)]
    order = copy_order(array.cells, "K")
    result = unwritten(array.cells.shape, array.element_type, "rolled", order)
    for choice in product(*choices):
        source, target = tuple(pair[0] for pair in choice), tuple(pair[1] for pair in choice)
        setitem(result, (*target, ...), getitem(array, (*source, ...)))
    return result


def _halves(shift: int, extent: int) -> list[tuple[slice, slice]]:
    """Where the two parts of a rolled axis come from and where they go."""
    shift = shift % extent if extent else 0
    if not shift:
        return [(slice(None), slice(None))]
    return [
        (slice(None, extent - shift), slice(shift, None)),
        (slice(extent - shift, None), slice(None, shift)),
    ]


@implements(np.tile)
def tile(A: Any, reps: Any) -> SymbolicArray:  # noqa: N803
    array = as_array(A)
    times = shape_of(reps)
    rank = max(array.ndim, len(times))
    times = (*(1,) * (rank - len(times)), *times)
    array = insert_axes(array, range(rank - array.ndim))
    shape = [extent * count for extent, count in zip(array.shape, times, strict=True)]
    if not array.size and set(times) != {1}:
        return reshape(array, shape)
    result = unwritten(shape, array.element_type, "tiled")
    spread = [part for pair in zip(times, array.shape, strict=True) for part in pair]
    setitem(reshape(result, spread), Ellipsis, insert_axes(array, range(0, 2 * rank, 2)))
    return result


@implements(np.repeat)
@method("repeat")
def repeat(a: Any, repeats: Any, axis: Any = None) -> SymbolicArray:
    array = atleast_1d(a)
    if axis is None:
        array, axis = ravel(array), 0
    along = axis_of(axis, array.ndim)
    if type(repeats) is SymbolicArray:
        raise UnsupportedError(
            "np.repeat with counts that are traced gives an array whose shape depends on values",
            loc=user_location(),
            fix="give the counts as integers, or name the argument in static_argnames",
        )
    counts = np.asarray(repeats)
    if counts.size != 1:
        return getitem(array, slab(along, np.repeat(np.arange(array.shape[along]), counts)))
    count = int(counts.reshape(())[()])
    refuse("np.repeat", "use a count >= 0", repeats=None if count >= 0 else count)
    shape = list(array.shape)
    result = unwritten((*shape[:along], shape[along] * count, *shape[along + 1 :]), array.element_type, "t")
    if result.size:
        apart = reshape(result, (*shape[: along + 1], count, *shape[along + 1 :]))
        setitem(apart, Ellipsis, insert_axes(array, (along + 1,)))
    return result
