"""`reshape`, `ravel`, `flatten`: a view wherever NumPy makes one, else a copy.

Splitting an axis and inserting or dropping axes of extent 1 are affine in the tensor's own index. Merging
axes is not; such a view addresses the tensor's flat form, the same memory as one row-major axis.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np

from ..errors import ShapeError, UnsupportedError
from ..ir.index import Affine, Symbol, affine, row_major_strides
from .array import SymbolicArray, describe
from .elementwise import as_array, copy
from .layout import is_laid_out
from .operands import refuse, shape_of
from .registry import implements, method
from .shaping import permuted
from .trace import user_location
from .view import View

__all__ = ["flat_copy", "ravel", "reshape"]


@implements(np.reshape)
def reshape(a: Any, /, shape: Any, order: str = "C", *, copy: Any = None) -> SymbolicArray:
    array = as_array(a)
    wanted = _completed(array, shape)
    order = _resolved_order(array, order)
    if order == "F":
        turned = _reshaped(permuted(array, range(array.ndim)[::-1]), wanted[::-1], copy)
        return permuted(turned, range(len(wanted))[::-1])
    return _reshaped(array, wanted, copy)


@method("reshape")
def reshape_method(self: SymbolicArray, *shape: Any, order: str = "C", copy: Any = None) -> SymbolicArray:
    wanted = shape[0] if len(shape) == 1 else shape
    return reshape(self, wanted, order, copy=copy)


@implements(np.ravel)
@method("ravel")
def ravel(a: Any, order: str = "C") -> SymbolicArray:
    """A view where the cells lie one after another (for "K", evenly spaced in any order), else a copy."""
    array = as_array(a)
    if order == "K" or is_laid_out(array.cells, order):
        return _one_axis(array, order)
    return flat_copy(array, order)


@method("flatten")
def flatten(self: SymbolicArray, order: str = "C") -> SymbolicArray:
    """Always a copy."""
    return flat_copy(self, order)


def flat_copy(array: SymbolicArray, order: str = "C") -> SymbolicArray:
    """The cells in row-major (or another) order as a fresh array of one axis."""
    return copy(_one_axis(array, order))


def _one_axis(array: SymbolicArray, order: str) -> SymbolicArray:
    if order == "K":
        strides = _strides(array)
        array = permuted(array, sorted(range(array.ndim), key=lambda axis: -abs(strides[axis])))
        order = "C"
    return reshape(array, -1, order)


@method("view")
def view(self: SymbolicArray, dtype: Any = None, type: Any = None) -> SymbolicArray:
    """Another view of the same cells."""
    fix = "use x.astype(dtype) for the numbers; bits are not reinterpreted"
    refuse("ndarray.view", fix, type=type)
    if dtype is not None and np.dtype(dtype) != self.dtype:
        refuse("ndarray.view", fix, dtype=dtype)
    return self if self.is_scalar else SymbolicArray(self.shown(), self.record)


def _completed(array: SymbolicArray, shape: Any) -> tuple[int, ...]:
    """The new shape with its -1 filled in. Raises ShapeError with NumPy's words."""
    given = tuple(shape) if isinstance(shape, (tuple, list, np.ndarray)) else (shape,)
    unknown = [n for n, extent in enumerate(given) if type(extent) is not SymbolicArray and extent == -1]
    known = shape_of([extent for n, extent in enumerate(given) if n not in unknown])
    size, rest = array.size, prod(known)
    if len(unknown) > 1:
        raise ShapeError("can only specify one unknown dimension", loc=user_location(), fix="keep one -1")
    if unknown and rest and size % rest == 0:
        return (*known[: unknown[0]], size // rest, *known[unknown[0] :])
    if unknown or rest != size:
        text = ",".join(str(extent) for extent in given) + ("," if len(given) == 1 else "")
        raise ShapeError(
            f"cannot reshape array of size {size} into shape ({text})",
            loc=user_location(),
            details=(describe(array),),
            fix="choose a shape with the same number of elements, or use -1 for one extent",
        )
    return known


def _resolved_order(array: SymbolicArray, order: str) -> str:
    if order in ("C", "F"):
        return order
    if order != "A":
        refuse("reshape", "use order='C', 'F' or 'A'", order=order)
    strides = [abs(stride) for stride in _strides(array)]
    is_fortran = strides == sorted(strides) and array.ndim > 1 and _merged(array.shape[::-1], strides[::-1])
    return "F" if is_fortran else "C"


def _merged(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether cells of this shape lie one after another."""
    return list(strides) == [stride.constant for stride in row_major_strides(affine(shape))]


def _strides(array: SymbolicArray) -> tuple[int, ...]:
    strides = array.cells.element_strides()
    if strides is None:
        raise UnsupportedError("reshaping an array of symbolic extents is not supported", loc=user_location())
    return tuple(stride.constant for stride in strides)


def _reshaped(array: SymbolicArray, wanted: tuple[int, ...], may_copy: Any) -> SymbolicArray:
    if may_copy is True:
        array = copy(array, "C")
    result = _without_copy(array, wanted)
    if result is not None:
        return result
    if may_copy is False:
        raise ShapeError(
            "Unable to avoid creating a copy while reshaping.",
            loc=user_location(),
            details=(describe(array),),
            fix="leave copy= out",
        )
    result = _without_copy(copy(array, "C"), wanted)
    assert result is not None, "a fresh array is contiguous"
    return result


def _without_copy(array: SymbolicArray, wanted: tuple[int, ...]) -> SymbolicArray | None:
    """The view of another shape, or None where NumPy would copy."""
    symbols = tuple(Symbol("i") for _ in wanted)
    if array.size == 0:
        nowhere = (Affine.of(0),) * array.cells.tensor.rank
        view = View(array.cells.tensor, affine(wanted), symbols, nowhere, array.cells.writeable)
        return SymbolicArray(view, array.record)
    groups = _groups(array.shape, wanted)
    strides = _strides(array)
    for old, _ in groups:
        if not _merged_like(array.shape, strides, old):
            return None
    if all(len(old) <= 1 for old, _ in groups):
        position = [Affine.of(0)] * array.ndim
        for old, new in groups:
            if old:
                position[old[0]] = _linear(symbols, wanted, new)
        return SymbolicArray(array.shown().remap(wanted, symbols, position), array.record)
    return _flat_view(array, wanted, symbols, groups, strides)


Groups = list[tuple[list[int], list[int]]]


def _groups(old: Sequence[int], new: Sequence[int]) -> Groups:
    """Axes longer than 1 of both shapes, in the smallest runs of equal size."""
    olds = [axis for axis, extent in enumerate(old) if extent != 1]
    news = [axis for axis, extent in enumerate(new) if extent != 1]
    groups: Groups = []
    while olds:
        left, right = [olds.pop(0)], [news.pop(0)]
        left_size, right_size = old[left[0]], new[right[0]]
        while left_size != right_size:
            if left_size < right_size:
                left.append(olds.pop(0))
                left_size *= old[left[-1]]
            else:
                right.append(news.pop(0))
                right_size *= new[right[-1]]
        groups.append((left, right))
    return groups


def _merged_like(shape: Sequence[int], strides: Sequence[int], axes: Sequence[int]) -> bool:
    """Whether the axes can be walked with one stride."""
    pairs = pairwise(axes)
    return all(strides[outer] == strides[inner] * shape[inner] for outer, inner in pairs)


def _linear(symbols: Sequence[Symbol], shape: Sequence[int], axes: Sequence[int]) -> Affine:
    """The row-major number of a position in these axes."""
    total = Affine.of(0)
    for axis in axes:
        total = total * shape[axis] + Affine.of(symbols[axis])
    return total


def _flat_view(
    array: SymbolicArray,
    wanted: tuple[int, ...],
    symbols: tuple[Symbol, ...],
    groups: Groups,
    strides: Sequence[int],
) -> SymbolicArray:
    view = array.cells
    offset = view.tensor.linear(view.at((0,) * view.rank))
    for old, new in groups:
        offset = offset + _linear(symbols, wanted, new) * strides[old[-1]]
    flat = array.record.flat(view.tensor)
    return SymbolicArray(View(flat, affine(wanted), symbols, (offset,), view.writeable), array.record)
