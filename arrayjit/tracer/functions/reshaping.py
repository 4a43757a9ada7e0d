"""`reshape`, `ravel`, `flatten`: a view wherever NumPy makes one, else a copy.

Splitting an axis and inserting or dropping axes of extent 1 are affine in the tensor's own index. Merging
axes is not; such a view addresses the tensor's flat form, the same memory as one row-major axis.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from ...errors import ShapeError
from ...ir.index import Affine, Symbol
from ..record.registry import implements, method
from ..record.trace import current_trace
from ..record.view import View
from ..values.array import SymbolicArray, describe
from ..values.elementwise import as_array, copy
from ..values.extents import ONE, ZERO, agree, divided, is_at_least, numbers, product, shape_text
from ..values.integer import number
from ..values.layout import is_laid_out, order_named
from ..values.numbers import integer_of
from .operands import refuse, shape_of
from .shaping import permuted

__all__ = ["flat", "flat_copy", "ravel", "reshape"]


@implements(np.reshape)
def reshape(a: Any, /, shape: Any, order: str = "C", *, copy: Any = None) -> SymbolicArray:
    array = as_array(a)
    wanted = _completed(array, shape)
    if array.is_scalar and not wanted:
        return array
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
    """A view where the cells lie one after another (for "K", the axes in any order), else a copy."""
    array, order = as_array(a), order_named(order)
    if order == "K":
        array, order = _from_the_farthest(array), "C"
    if is_laid_out(array.cells, order):
        return _one_axis(array, order)
    result = flat_copy(array, order)
    array.record.layouts.doubt(array.cells, result.cells)
    return result


@method("flatten")
def flatten(self: SymbolicArray, order: str = "C") -> SymbolicArray:
    """Always a copy."""
    return flat_copy(self, order)


def flat_copy(array: SymbolicArray, order: str = "C") -> SymbolicArray:
    """The cells in row-major (or another) order as a fresh array of one axis."""
    order = order_named(order)
    if order == "K":
        array, order = _from_the_farthest(array), "C"
    if all(extent.is_constant for extent in array.cells.shape):
        return copy(_one_axis(array, order))
    return _one_axis(copy(array, "F" if order == "F" else "C"), order)


def flat(array: SymbolicArray) -> SymbolicArray:
    """The cells in row-major order along one axis, to be read only."""
    if array.ndim == 1:
        return array
    return ravel(array) if all(extent.is_constant for extent in array.cells.shape) else flat_copy(array)


def _one_axis(array: SymbolicArray, order: str) -> SymbolicArray:
    if order == "A":
        array.record.layouts.require_numpys(array.cells)
    return reshape(array, -1, order)


def _from_the_farthest(array: SymbolicArray) -> SymbolicArray:
    """The view whose axes go from the one with the farthest neighbours to the one with the nearest."""
    array.record.layouts.require_numpys(array.cells)
    strides = _strides(array)
    return permuted(array, sorted(range(array.ndim), key=lambda axis: -abs(strides[axis])))


def _completed(array: SymbolicArray, shape: Any) -> tuple[Affine, ...]:
    """The new shape with its -1 filled in. Raises ShapeError with NumPy's words."""
    parts = tuple(shape) if isinstance(shape, (tuple, list, np.ndarray)) else (shape,)
    given = [integer_of(part, array.record) for part in parts]
    unknown = [n for n, extent in enumerate(given) if extent.is_constant and extent.offset < 0]
    if len(unknown) > 1:
        raise ShapeError("can only specify one unknown dimension", fix="keep one -1")
    known = list(shape_of([extent for n, extent in enumerate(given) if n not in unknown]))
    words = f"cannot reshape array of {_size_text(array.cells.shape)} into shape {shape_text(given)}"
    size, rest = _reduced(array.cells.shape, known)
    if unknown:
        quotient = _quotient(size, rest, words)
        fits = quotient is not None
        known[unknown[0] : unknown[0]] = [quotient or ZERO]
    else:
        fits = agree(size, rest, words)
    if not fits:
        raise ShapeError(
            words,
            details=(describe(array),),
            fix="choose a shape with the same number of elements, or use -1 for one extent",
        )
    return tuple(known)


def _size_text(shape: Sequence[Affine]) -> str:
    if all(extent.is_constant for extent in shape):
        return f"size {product(shape)}"
    return f"shape {shape_text(shape)}"


def _reduced(old: Sequence[Affine], new: Sequence[Affine]) -> tuple[Affine, Affine]:
    """The sizes of two shapes without the symbolic extents that both have."""
    left, right = list(old), list(new)
    for extent in old:
        if not extent.is_constant and extent in right:
            left.remove(extent)
            right.remove(extent)
    return product(left), product(right)


def _quotient(size: Affine, rest: Affine, words: str) -> Affine | None:
    """The extent that makes up a size with the rest of a shape; None where there is none."""
    divisor = number(rest, current_trace(), "the known part of the new shape")
    if divisor == 0:
        return None
    quotient = divided(size, divisor)
    return quotient if agree(quotient * divisor, size, words) else None


def _resolved_order(array: SymbolicArray, order: str) -> str:
    order = order_named(order)
    if order in ("C", "F"):
        return order
    if order != "A":
        refuse("reshape", "use order='C', 'F' or 'A'", order=order)
    array.record.layouts.require_numpys(array.cells)
    return "F" if is_laid_out(array.cells, "F") and not is_laid_out(array.cells, "C") else "C"


def _strides(array: SymbolicArray) -> tuple[int, ...]:
    strides = array.cells.element_strides()
    assert strides is not None, "tensors have constant shapes"
    return tuple(stride.constant for stride in strides)


def _reshaped(array: SymbolicArray, wanted: tuple[Affine, ...], may_copy: Any) -> SymbolicArray:
    if may_copy is True:
        array = copy(array, "C")
    layouts = array.record.layouts
    if may_copy is False:
        layouts.require_numpys(array.cells)
    result = _without_copy(array, wanted)
    if result is not None:
        if result.cells.tensor is not array.cells.tensor:
            layouts.doubt(array.cells, result.cells)
        return result
    if may_copy is False:
        raise ShapeError(
            "Unable to avoid creating a copy while reshaping.",
            details=(describe(array),),
            fix="leave copy= out",
        )
    result = _without_copy(copy(array, "C"), wanted)
    assert result is not None, "a fresh array is contiguous"
    layouts.doubt(array.cells, result.cells)
    return result


def _without_copy(array: SymbolicArray, wanted: tuple[Affine, ...]) -> SymbolicArray | None:
    """The view of another shape, or None where NumPy would copy."""
    symbols = tuple(Symbol("i") for _ in wanted)
    shape, strides = array.cells.shape, _strides(array)
    if ZERO in shape:
        nowhere = (ZERO,) * array.cells.tensor.rank
        view = View(array.cells.tensor, wanted, symbols, nowhere, array.cells.writeable)
        return SymbolicArray(view, array.record)
    groups = _groups(shape, wanted)
    answers = [_is_one_run(shape, strides, old) for old, _ in groups]
    if False in answers:
        return None
    inner = [wanted[axis] for _, new in groups for axis in new[1:]]
    if None in answers or not all(extent.is_constant for extent in inner):
        numbers((*shape, *wanted), "an extent that this line rearranges")
    if all(len(old) <= 1 for old, _ in groups):
        position = [ZERO] * array.ndim
        for old, new in groups:
            if old:
                position[old[0]] = _linear(symbols, wanted, new)
        return SymbolicArray(array.shown().remap(wanted, symbols, position), array.record)
    return _flat_view(array, wanted, symbols, groups, strides)


Groups = list[tuple[list[int], list[int]]]


def _groups(old: Sequence[Affine], new: Sequence[Affine]) -> Groups:
    """Axes other than of extent 1 of both shapes, in the smallest runs that are known to be of equal size."""
    olds = [axis for axis, extent in enumerate(old) if extent != ONE]
    news = [axis for axis, extent in enumerate(new) if extent != ONE]
    last: Groups = []
    while olds and news and old[olds[-1]] == new[news[-1]]:
        last.insert(0, ([olds.pop()], [news.pop()]))
    groups: Groups = []
    while olds or news:
        groups.append(_first_group(old, new, olds, news))
    return groups + last


def _first_group(
    old: Sequence[Affine], new: Sequence[Affine], olds: list[int], news: list[int]
) -> tuple[list[int], list[int]]:
    """The axes of the first run, taken from `olds` and `news`: all of them where sizes cannot be compared."""
    left, right = olds[:1], news[:1]
    while left and right:
        sizes = [_size(old, left), _size(new, right)]
        if sizes[0] == sizes[1]:
            del olds[: len(left)], news[: len(right)]
            return left, right
        gap = sizes[1] - sizes[0]
        if is_at_least(gap, 1) and len(left) < len(olds):
            left = olds[: len(left) + 1]
        elif is_at_least(-gap, 1) and len(right) < len(news):
            right = news[: len(right) + 1]
        else:
            break
    left, right = olds[:], news[:]
    olds.clear()
    news.clear()
    return left, right


def _size(shape: Sequence[Affine], axes: Sequence[int]) -> Affine:
    return product(shape[axis] for axis in axes)


def _is_one_run(shape: Sequence[Affine], strides: Sequence[int], axes: Sequence[int]) -> bool | None:
    """Whether the axes can be walked with one stride; None where that depends on extents."""
    answer: bool | None = True
    for outer, inner in pairwise(axes):
        extent = shape[inner]
        if not extent.is_constant:
            answer = None
        elif strides[outer] != strides[inner] * extent.offset:
            if all(is_at_least(shape[axis], 2) for axis in axes):
                return False
            answer = None
    return answer


def _linear(symbols: Sequence[Symbol], shape: Sequence[Affine], axes: Sequence[int]) -> Affine:
    """The row-major number of a position in these axes."""
    total = ZERO
    for axis in axes:
        total = total * (shape[axis].constant if total.terms else 1) + Affine.of(symbols[axis])
    return total


def _flat_view(
    array: SymbolicArray,
    wanted: tuple[Affine, ...],
    symbols: tuple[Symbol, ...],
    groups: Groups,
    strides: Sequence[int],
) -> SymbolicArray:
    view = array.cells
    offset = view.tensor.linear(view.at((0,) * view.rank))
    for old, new in groups:
        if old:  # else the cells are one: axes of extent 1, though this is known only when called
            offset = offset + _linear(symbols, wanted, new) * strides[old[-1]]
    whole = array.record.flat(view.tensor)
    return SymbolicArray(View(whole, wanted, symbols, (offset,), view.writeable), array.record)
