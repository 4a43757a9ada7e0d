"""Rearranging axes without copying: transposes, new and dropped axes, broadcasts, flips, diagonals.

Each is a view: an affine map onto the same tensor, writeable exactly where NumPy's is.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ...errors import ShapeError
from ...ir.index import Affine
from ..indices.indexing import getitem
from ..record.registry import implements, method
from ..record.trace import current_trace
from ..values.array import SymbolicArray, describe
from ..values.elementwise import as_array, broadcast, broadcast_view, broadcasts_to
from ..values.extents import ONE, ZERO, agree, greater, is_at_least, lesser, require_at_least, shape_text
from ..values.integer import number
from .operands import arrays_of, axes_of, axis_of, remapped, shape_of

__all__ = [
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "broadcast_to",
    "diagonal",
    "insert_axes",
    "moveaxis",
    "permuted",
    "read_only",
    "swapaxes",
]


def permuted(array: SymbolicArray, order: Sequence[int]) -> SymbolicArray:
    """The view whose axis `n` is the array's axis `order[n]`."""
    return array if array.is_scalar else SymbolicArray(array.shown().transpose(order), array.record)


def read_only(array: SymbolicArray) -> SymbolicArray:
    """The same view, not writeable."""
    return SymbolicArray(replace(array.cells, writeable=False), array.record)


def insert_axes(array: SymbolicArray, axes: Sequence[int]) -> SymbolicArray:
    """The view with axes of extent 1 at these positions of the result."""
    if not axes:
        return array
    kept = [axis for axis in range(array.ndim + len(axes)) if axis not in axes]
    shape: list[Any] = [1] * (array.ndim + len(axes))
    for axis, extent in zip(kept, array.cells.shape, strict=True):
        shape[axis] = extent
    return remapped(array, shape, lambda position: [position[axis] for axis in kept])


def drop_axes(array: SymbolicArray, axes: Sequence[int]) -> SymbolicArray:
    """The view without these axes, each of extent 1."""
    kept = [axis for axis in range(array.ndim) if axis not in axes]

    def place(position: tuple[Affine, ...]) -> list[Affine]:
        full = [ZERO] * array.ndim
        for axis, part in zip(kept, position, strict=True):
            full[axis] = part
        return full

    return remapped(array, [array.cells.shape[axis] for axis in kept], place)


@implements(np.transpose, np.permute_dims)
def transpose(a: Any, axes: Any = None) -> SymbolicArray:
    array = as_array(a)
    if axes is None:
        return permuted(array, range(array.ndim)[::-1])
    order = axes_of(axes, array.ndim)
    if len(order) != array.ndim:
        raise ShapeError("axes don't match array", details=(describe(array),), fix="name every axis")
    return permuted(array, order)


@method("transpose")
def transpose_method(self: SymbolicArray, *axes: Any) -> SymbolicArray:
    if len(axes) == 1 and (axes[0] is None or isinstance(axes[0], (tuple, list, range))):
        return transpose(self, axes[0])
    return transpose(self, axes or None)


@method("mT")
@implements(np.matrix_transpose, np.linalg.matrix_transpose)
def matrix_transpose(x: Any, /) -> SymbolicArray:
    array = as_array(x)
    if array.ndim < 2:
        raise ShapeError(
            f"Input array must be at least 2-dimensional, but it is {array.ndim}", fix="use np.atleast_2d(x)"
        )
    return swapaxes(array, -1, -2)


@implements(np.swapaxes)
@method("swapaxes")
def swapaxes(a: Any, axis1: Any, axis2: Any) -> SymbolicArray:
    array = as_array(a)
    first, second = axis_of(axis1, array.ndim, "axis1"), axis_of(axis2, array.ndim, "axis2")
    order = list(range(array.ndim))
    order[first], order[second] = second, first
    return permuted(array, order)


@implements(np.moveaxis)
def moveaxis(a: Any, source: Any, destination: Any) -> SymbolicArray:
    array = as_array(a)
    sources = axes_of(source, array.ndim, "source")
    targets = axes_of(destination, array.ndim, "destination")
    if len(sources) != len(targets):
        raise ShapeError(
            "`source` and `destination` arguments must have the same number of elements",
            fix="give one destination for each source",
        )
    order = [axis for axis in range(array.ndim) if axis not in sources]
    for target, origin in sorted(zip(targets, sources, strict=True)):
        order.insert(target, origin)
    return permuted(array, order)


@implements(np.expand_dims)
def expand_dims(a: Any, axis: Any) -> SymbolicArray:
    array = as_array(a)
    added = axis if isinstance(axis, (tuple, list)) else (axis,)
    return SymbolicArray(insert_axes(array, axes_of(added, array.ndim + len(added))).cells, array.record)


@implements(np.squeeze)
@method("squeeze")
def squeeze(a: Any, axis: Any = None) -> SymbolicArray:
    array = as_array(a)
    if axis is None:
        axes = tuple(n for n, extent in enumerate(array.cells.shape) if _is_one(extent))
    else:
        axes = axes_of(axis, array.ndim)
    words = "cannot select an axis to squeeze out which has size not equal to one"
    if not all(agree(array.cells.shape[one], ONE, words) for one in axes):
        raise ShapeError(words, details=(describe(array),), fix="squeeze axes of size 1 only")
    if array.is_scalar or (axis is None and not axes):
        return array
    return drop_axes(array, axes)


def _is_one(extent: Affine) -> bool:
    if is_at_least(extent, 2):
        return False
    return number(extent, current_trace(), "an extent that is squeezed out if it is 1") == 1


@implements(np.broadcast_to)
def broadcast_to(array: Any, shape: Any, subok: bool = False) -> SymbolicArray:
    given, wanted = as_array(array), shape_of(shape)
    words = (
        "operands could not be broadcast together with remapped shapes [original->remapped]: "
        f"{shape_text(given.cells.shape)} and requested shape {shape_text(wanted)}"
    )
    if not broadcasts_to(given.cells.shape, wanted, words):
        raise ShapeError(words, fix="every extent of the array must be 1 or equal that of the shape")
    return SymbolicArray(broadcast_view(given.cells, wanted), given.record)


@implements(np.broadcast_arrays)
def broadcast_arrays(*args: Any, subok: bool = False) -> tuple[SymbolicArray, ...]:
    arrays = arrays_of(args)
    shape = broadcast(*(array.cells.shape for array in arrays))

    def spread(array: SymbolicArray) -> SymbolicArray:
        if array.cells.shape != shape:
            return SymbolicArray(broadcast_view(array.cells, shape), array.record)
        return SymbolicArray(array.shown(), array.record) if array.is_scalar else array

    return tuple(map(spread, arrays))


def _at_least(arys: tuple[Any, ...], ndim: int) -> Any:
    results = [_raised(array, ndim) for array in arrays_of(arys)]
    return results[0] if len(results) == 1 else tuple(results)


def _raised(array: SymbolicArray, ndim: int) -> SymbolicArray:
    """The view with at least `ndim` axes; NumPy's three-dimensional form puts rows first."""
    missing = ndim - array.ndim
    if missing <= 0:
        return array
    if ndim < 3 or array.ndim == 0:
        return insert_axes(array, range(missing))
    return insert_axes(array, (2,) if array.ndim == 2 else (0, 2))


@implements(np.atleast_1d)
def atleast_1d(*arys: Any) -> Any:
    return _at_least(arys, 1)


@implements(np.atleast_2d)
def atleast_2d(*arys: Any) -> Any:
    return _at_least(arys, 2)


@implements(np.atleast_3d)
def atleast_3d(*arys: Any) -> Any:
    return _at_least(arys, 3)


@implements(np.flip)
def flip(m: Any, axis: Any = None) -> SymbolicArray:
    array = as_array(m)
    axes = axes_of(axis, array.ndim)
    backwards, forwards = slice(None, None, -1), slice(None)
    return getitem(array, tuple(backwards if n in axes else forwards for n in range(array.ndim)))


def _of_rank(m: Any, least: int) -> SymbolicArray:
    array = as_array(m)
    if array.ndim < least:
        raise ShapeError(f"Input must be >= {least}-d.", details=(describe(array),))
    return array


@implements(np.rot90)
def rot90(m: Any, k: int = 1, axes: Any = (0, 1)) -> SymbolicArray:
    array = as_array(m)
    if len(axes) != 2:
        raise ShapeError("len(axes) must be 2.", fix="name two axes")
    first, second = (axis_of(axis, array.ndim, "axes") for axis in axes)
    if first == second:
        raise ShapeError("Axes must be different.", fix="name two axes")
    turns = operator.index(k) % 4
    if turns == 0:
        return remapped(array, array.cells.shape, lambda position: position)
    if turns == 2:
        return flip(array, (first, second))
    if turns == 1:
        return swapaxes(flip(array, second), first, second)
    return flip(swapaxes(array, first, second), second)


@implements(np.diagonal)
@method("diagonal")
def diagonal(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> SymbolicArray:
    """A read-only view, as in NumPy."""
    return read_only(_diagonal(_of_rank(a, 2), offset, axis1, axis2))


def _diagonal(array: SymbolicArray, offset: int, axis1: int, axis2: int) -> SymbolicArray:
    rows, columns = axis_of(axis1, array.ndim, "axis1"), axis_of(axis2, array.ndim, "axis2")
    if rows == columns:
        raise ShapeError("axis1 and axis2 cannot be the same", fix="name two axes")
    others = [axis for axis in range(array.ndim) if axis not in (rows, columns)]
    offset = operator.index(offset)
    down, right = max(0, -offset), max(0, offset)
    extents = array.cells.shape
    length = greater(lesser(extents[rows] - down, extents[columns] - right), ZERO)

    def place(position: tuple[Affine, ...]) -> list[Affine]:
        full = [ZERO] * array.ndim
        for axis, part in zip(others, position[:-1], strict=True):
            full[axis] = part
        full[rows], full[columns] = position[-1] + down, position[-1] + right
        return full

    return remapped(array, [*(extents[axis] for axis in others), length], place)


@implements(np.lib.stride_tricks.sliding_window_view)
def sliding_window_view(
    x: Any, window_shape: Any, axis: Any = None, *, subok: bool = False, writeable: bool = False
) -> SymbolicArray:
    array, windows = as_array(x), shape_of(window_shape)
    given = range(array.ndim) if axis is None else axis if isinstance(axis, (tuple, list)) else (axis,)
    axes = [axis_of(one, array.ndim) for one in given]  # of which one may occur again
    if len(axes) != len(windows):
        raise ShapeError(
            f"Must provide window_shape for all dimensions of `x`; got {len(windows)} window_shape elements "
            f"and `x.ndim` is {array.ndim}.",
            fix="pass axis= with one axis for each extent of the window",
        )
    shape = list(array.cells.shape)
    words = "window shape cannot be larger than input array shape"
    for one, extent in zip(axes, windows, strict=True):
        shape[one] = shape[one] - extent + 1
        if not require_at_least(shape[one], 1, "ValueError", words):
            raise ShapeError(words, fix="shrink it")

    def place(position: tuple[Affine, ...]) -> list[Affine]:
        index = list(position[: array.ndim])
        for one, within in zip(axes, position[array.ndim :], strict=True):
            index[one] = index[one] + within
        return index

    view = remapped(array, (*shape, *windows), place)
    return view if writeable else read_only(view)
