"""Arrays from several arrays and parts of them: `concatenate`, `stack`, `split`, `roll`, `tile`, `repeat`.

The result is a fresh tensor whose parts are written one after another.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from ...errors import DTypeError, ShapeError, UnsupportedError
from ...ir.dtype import BOOL, DType
from ...ir.index import Affine, affine
from ..indices.indexing import getitem, setitem
from ..record.registry import implements, method
from ..record.trace import current_trace
from ..values.array import SymbolicArray, describe
from ..values.elementwise import as_array, as_operand, broadcast_view, copy, views_of
from ..values.extents import (
    ONE,
    ZERO,
    agree,
    divided,
    known_number,
    lesser,
    numbers,
    product,
    remainder,
    same_shape,
    shape_text,
)
from ..values.integer import number, python_int
from ..values.layout import copy_order, joined_order
from ..values.numbers import integer_of
from ..values.rows import Rows, rows_of
from .adopted import numpy_program
from .operands import (
    arrays_of,
    axis_of,
    common_dtype,
    deliver,
    element_type,
    is_given,
    remapped,
    require_cast,
    shape_of,
)
from .reshaping import flat, reshape
from .shaping import atleast_1d, insert_axes

__all__ = ["concatenate", "length_of", "slab", "stack", "stretch", "unwritten"]


_REARRANGED = "an extent that this line rearranges"
_UNEVEN = "operands could not be broadcast together with shape"
_NEGATIVE = "negative dimensions are not allowed"


def unwritten(
    shape: Sequence[Any], dtype: DType, label: str, order: Sequence[int] | None = None
) -> SymbolicArray:
    """A fresh array whose cells hold nothing yet, its axes in memory in `order` (None: C's)."""
    trace = current_trace()
    return SymbolicArray(trace.window(shape, dtype, label, order), trace)


def slab(axis: int, part: Any) -> tuple[Any, ...]:
    """The key that takes `part` of one axis and all of the others."""
    return (*[slice(None)] * axis, part)


def stretch(array: SymbolicArray, axis: int, start: Affine, extent: Affine) -> SymbolicArray:
    """The view of `extent` cells of one axis, from `start` on."""
    shape = (*array.cells.shape[:axis], extent, *array.cells.shape[axis + 1 :])
    return remapped(
        array, shape, lambda position: (*position[:axis], position[axis] + start, *position[axis + 1 :])
    )


@implements(np.concatenate)
def concatenate(
    arrays: Any, axis: Any = 0, out: Any = None, *, dtype: Any = None, casting: str = "same_kind"
) -> SymbolicArray:
    _require_one_of(out, dtype)
    operands = [as_operand(value) for value in arrays]  # of which Python numbers are weak
    parts = arrays_of(operands)
    if not parts:
        raise ShapeError("need at least one array to concatenate", fix="pass an array")
    if axis is None:
        parts, axis = [flat(part) for part in parts], 0
    if parts[0].ndim == 0:
        raise ShapeError(
            "zero-dimensional arrays cannot be concatenated",
            fix="give all arrays in one list, np.concatenate([x, y]); join numbers by np.array",
        )
    along = axis_of(axis, parts[0].ndim)
    _require_fitting(parts, along)
    kind = element_type(dtype, common_dtype(*operands))
    if is_given(dtype):
        for given in parts:
            require_cast(given, kind.numpy, casting)
    first = parts[0].cells.shape
    length = sum((part.cells.shape[along] for part in parts), ZERO)
    shape = (*first[:along], length, *first[along + 1 :])
    result = unwritten(shape, kind, "joined", joined_order(views_of(parts)))
    start = ZERO
    for part in (rows_of(parts) if length.is_constant else None) or parts:
        if isinstance(part, Rows):
            start = _join_rows(result, along, start, part)
            continue
        extent = part.cells.shape[along]
        setitem(stretch(result, along, start, extent), Ellipsis, part)
        start = start + extent
    return deliver(result, out, casting)


def _require_one_of(out: Any, dtype: Any) -> None:
    if is_given(out) and is_given(dtype):
        words = "concatenate() only takes `out` or `dtype` as an argument, but both were provided."
        raise DTypeError(words, fix="leave dtype out: it is that of out")


def _join_rows(result: SymbolicArray, axis: int, start: Affine, rows: Rows) -> Affine:
    """Write arrays that lie in rows into the result, from a place of an axis on. Returns where they end."""
    extent = rows.together.cells.shape[axis + 1]
    shape = rows.together.cells.shape

    def place(position: tuple[Affine, ...]) -> tuple[Affine, ...]:
        row, inner = position[0], position[1:]
        along = start + product((row, extent)) + inner[axis]
        return (*inner[:axis], along, *inner[axis + 1 :])

    setitem(remapped(result, shape, place), Ellipsis, rows.together)
    return start + product((shape[0], extent))


def _require_fitting(parts: Sequence[SymbolicArray], axis: int) -> None:
    first = parts[0]
    for position, part in enumerate(parts[1:], 1):
        if part.ndim != first.ndim:
            raise ShapeError(
                "all the input array dimensions except for the concatenation axis must match exactly, but "
                f"the array at index 0 has {first.ndim} dimension(s) and the array at index {position} has "
                f"{part.ndim} dimension(s)",
                fix="give the arrays the same number of dimensions",
            )
        for other, (one, two) in enumerate(zip(first.cells.shape, part.cells.shape, strict=True)):
            words = (
                "all the input array dimensions except for the concatenation axis must match exactly, "
                f"but along dimension {other}, the array at index 0 has size {one} and the array at "
                f"index {position} has size {two}"
            )
            if other != axis and not agree(one, two, words):
                raise ShapeError(words, fix="make the other dimensions equal")


@implements(np.stack)
def stack(
    arrays: Any, axis: int = 0, out: Any = None, *, dtype: Any = None, casting: str = "same_kind"
) -> SymbolicArray:
    parts = arrays_of(arrays)
    if not parts:
        raise ShapeError("need at least one array to stack", fix="pass an array")
    words = "all input arrays must have the same shape"
    if not all(same_shape(part.cells.shape, parts[0].cells.shape, words) for part in parts):
        raise ShapeError(
            words,
            details=tuple(shape_text(part.cells.shape) for part in parts[:8]),
            fix="make the shapes equal",
        )
    along = axis_of(axis, parts[0].ndim + 1)
    layers = [_layer(part, along) for part in rows_of(parts) or parts]
    return concatenate(layers, along, out, dtype=dtype, casting=casting)


def _layer(part: SymbolicArray | Rows, axis: int) -> SymbolicArray:
    """An array with one more axis, or arrays in rows with theirs in its place."""
    if not isinstance(part, Rows):
        return insert_axes(part, (axis,))
    cells = part.together.cells
    order = list(range(1, cells.rank))
    order.insert(axis, 0)
    return SymbolicArray(cells.transpose(order), part.together.record)


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


def length_of(array: SymbolicArray, axis: int) -> int:
    return number(array.cells.shape[axis], array.record, "the extent of an axis that is taken apart")


@implements(np.array_split)
def array_split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[SymbolicArray]:
    """Views, as in NumPy."""
    array = as_array(ary)
    along = axis_of(axis, array.ndim)
    if isinstance(indices_or_sections, (tuple, list, np.ndarray)):
        bounds: list[Any] = [0, *indices_or_sections, None]
    else:
        size, trace = array.cells.shape[along], current_trace()
        sections = operator.index(indices_or_sections)
        if sections <= 0:
            raise ShapeError("number sections must be larger than 0.", fix="use n >= 1")
        each = divided(size, sections)
        extra = size - each * sections
        ends = [each * n + lesser(Affine.of(n), extra) for n in range(sections + 1)]
        bounds = [python_int(end, trace) for end in ends]
    return [getitem(array, slab(along, slice(start, stop))) for start, stop in pairwise(bounds)]


@implements(np.roll)
def roll(a: Any, shift: Any, axis: Any = None) -> SymbolicArray:
    array = as_array(a)
    if axis is None:
        return reshape(roll(flat(array), shift, 0), array.cells.shape)
    axes = axis if isinstance(axis, (tuple, list)) else (axis,)
    shifts = list(shift) if isinstance(shift, (tuple, list)) or np.ndim(shift) else [shift]
    shifted = [ZERO] * array.ndim
    for one, by in zip(*_paired(list(axes), shifts), strict=True):
        along = axis_of(one, array.ndim)
        shifted[along] = shifted[along] + integer_of(by, array.record)
    choices = [_halves(by, extent) for by, extent in zip(shifted, array.cells.shape, strict=True)]
    order = copy_order(array.cells, "K")
    result = unwritten(array.cells.shape, array.element_type, "rolled", order)
    for choice in itertools.product(*choices):
        source, target = array, result
        for along, (origin, place, extent) in enumerate(choice):
            source, target = stretch(source, along, origin, extent), stretch(target, along, place, extent)
        setitem(target, Ellipsis, source)
    return result


def _paired(axes: list[Any], shifts: list[Any]) -> tuple[list[Any], list[Any]]:
    """One shift for each axis; one alone is repeated."""
    count = max(len(axes), len(shifts))
    return axes * count if len(axes) == 1 else axes, shifts * count if len(shifts) == 1 else shifts


def _halves(shift: Affine, extent: Affine) -> list[tuple[Affine, Affine, Affine]]:
    """The parts of a rolled axis: where each comes from, where it goes, and its extent."""
    by = remainder(shift, extent)
    if by == ZERO:
        return [(ZERO, ZERO, extent)]
    return [(ZERO, by, extent - by), (extent - by, ZERO, by)]


@implements(np.tile)
def tile(A: Any, reps: Any) -> Any:  # noqa: N803
    array = as_array(A)
    times = shape_of(reps)
    rank = max(array.ndim, len(times))
    times = (*(ONE,) * (rank - len(times)), *times)
    array = insert_axes(array, range(rank - array.ndim))
    extents = array.cells.shape
    if any(not extent.is_constant and known_number(extent, _REARRANGED) is None for extent in extents):
        return _in_slabs(array, numbers(times, "how often an array is repeated"))
    shape = [product(pair) for pair in zip(extents, times, strict=True)]
    if ZERO in extents and set(times) != {ONE}:
        return reshape(array, tuple(shape))
    result = unwritten(shape, array.element_type, "tiled")
    spread = tuple(part for pair in zip(times, extents, strict=True) for part in pair)
    setitem(reshape(result, spread), Ellipsis, insert_axes(array, range(0, 2 * rank, 2)))
    return result


@numpy_program
def _in_slabs(array: Any, times: tuple[int, ...]) -> Any:
    """`np.tile` of as many cells as only the run knows, one repetition after another."""
    for axis, often in enumerate(times):
        if often == 1:
            continue
        extent = array.shape[axis]
        tiled: Any = np.empty((*array.shape[:axis], extent * often, *array.shape[axis + 1 :]), array.dtype)
        for n in range(often):
            tiled[slab(axis, slice(n * extent, (n + 1) * extent))] = array
        array = tiled
    return array


@implements(np.repeat)
@method("repeat")
def repeat(a: Any, repeats: Any, axis: Any = None) -> SymbolicArray:
    array = atleast_1d(a)
    if axis is None:
        array, axis = flat(array), 0
    along = axis_of(axis, array.ndim)
    if type(repeats) is SymbolicArray and repeats.weak is int:
        repeats = operator.index(repeats)
    if isinstance(repeats, np.ndarray) and not np.can_cast(repeats.dtype, np.int64):
        words = (
            f"Cannot cast array data from {repeats.dtype!r} to dtype('int64') according to the rule 'safe'"
        )
        raise DTypeError(words, fix="give the counts as integers")
    known = current_trace().known(repeats.cells) if type(repeats) is SymbolicArray else None
    if type(repeats) is SymbolicArray and known is None:
        return _repeated_once(array, repeats, along)
    counts = np.array(repeats if known is None else known, np.int64)
    _require_counts(counts)
    if counts.size != 1:
        places = np.arange(length_of(array, along))
        if counts.shape != places.shape:
            raise _uneven(array, affine(counts.shape), along)
        return getitem(array, slab(along, np.repeat(places, counts)))
    count = int(counts.reshape(())[()])
    shape = array.cells.shape
    result = unwritten((*shape[:along], shape[along] * count, *shape[along + 1 :]), array.element_type, "t")
    if ZERO not in result.cells.shape:
        apart = reshape(result, (*shape[: along + 1], count, *shape[along + 1 :]))
        setitem(apart, Ellipsis, insert_axes(array, (along + 1,)))
    return result


def _repeated_once(array: SymbolicArray, counts: SymbolicArray, axis: int) -> SymbolicArray:
    """Parts where a mask, which counts to one at most, holds."""
    if counts.element_type is not BOOL or counts.ndim != 1:
        raise UnsupportedError(
            "np.repeat by counts that only the compiled function knows gives an array of no known size",
            details=(describe(counts),),
            fix="where the sum is known: np.take(x, np.searchsorted(np.cumsum(counts), np.arange(the_sum), "
            "'right'))",
        )
    given, extent = counts.cells.shape, array.cells.shape[axis]
    if given == (ONE,):
        counts = SymbolicArray(broadcast_view(counts.cells, (extent,)), counts.record)
    elif not agree(given[0], extent, f"{_UNEVEN} {shape_text((extent,))} {shape_text(given)}"):
        raise _uneven(array, given, axis)
    return getitem(array, slab(axis, counts))


def _require_counts(counts: np.ndarray) -> None:
    if counts.ndim > 1:
        raise ShapeError("object too deep for desired array", fix="give a row of counts")
    if np.any(counts < 0):
        what = "repeats may not contain negative values." if counts.size != 1 else _NEGATIVE
        raise ShapeError(what, fix="use counts >= 0")


def _uneven(array: SymbolicArray, counts: Sequence[Affine], axis: int) -> ShapeError:
    return ShapeError(
        f"{_UNEVEN} {shape_text((array.cells.shape[axis],))} {shape_text(counts)}",
        details=(describe(array),),
        fix="give one count, or one for each part",
    )
