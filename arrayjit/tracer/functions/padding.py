"""`np.pad`: the array in the middle, then the margins axis by axis, each over what is already filled."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ...errors import ShapeError
from ...ir.index import Affine
from ..indices.indexing import getitem, setitem
from ..record.registry import implements
from ..record.trace import user_location
from ..values.array import SymbolicArray
from ..values.elementwise import as_array, as_operand
from ..values.extents import ZERO, numbers
from ..values.integer import SymbolicInt
from .joining import stretch, unwritten
from .operands import is_given, refuse

__all__ = ["pad"]

_COPYING = ("edge", "reflect", "symmetric", "wrap")


@implements(np.pad)
def pad(
    array: Any,
    pad_width: Any,
    mode: Any = "constant",
    *,
    constant_values: Any = 0,
    reflect_type: Any = None,
    stat_length: Any = None,
    end_values: Any = None,
) -> SymbolicArray:
    inner = as_array(array)
    if reflect_type == "even":
        reflect_type = None
    fix = f"use one of the modes constant, empty, {', '.join(_COPYING)}"
    refuse("np.pad", fix, reflect_type=reflect_type, stat_length=stat_length, end_values=end_values)
    if mode not in ("constant", "empty", *_COPYING):
        refuse("np.pad", fix, mode=mode)
    widths = _pairs(pad_width, inner.ndim)
    shape = [
        extent + (before + after) for (before, after), extent in zip(widths, inner.cells.shape, strict=True)
    ]
    result = unwritten(shape, inner.element_type, "padded")
    middle = result
    for axis, ((before, _), extent) in enumerate(zip(widths, inner.cells.shape, strict=True)):
        middle = stretch(middle, axis, Affine.of(before), extent)
    setitem(middle, Ellipsis, inner)
    if mode == "constant":
        _fill_margins(result, widths, constant_values)
    elif mode != "empty":
        extents = numbers(inner.cells.shape, f"an extent that is padded with mode={mode!r}")
        parts = [slice(before, before + n) for (before, _), n in zip(widths, extents, strict=True)]
        _copy_margins(result, parts, mode)
    return result


def _pairs(pad_width: Any, ndim: int) -> list[tuple[int, int]]:
    """The widths before and after each axis."""
    if isinstance(pad_width, dict):
        given: list[Any] = [(0, 0)] * ndim
        for axis, width in pad_width.items():
            given[axis] = tuple(np.broadcast_to(width, 2))
        pad_width = given
    widths = np.asarray(_numbered(pad_width))
    if widths.dtype.kind not in "iu":
        raise ShapeError("`pad_width` must be of integral type.", loc=user_location(), fix="use integers")
    pairs = [(int(before), int(after)) for before, after in np.broadcast_to(widths, (ndim, 2))]
    if any(width < 0 for pair in pairs for width in pair):
        raise ShapeError(
            "index can't contain negative values", loc=user_location(), fix="slice to cut an array"
        )
    return pairs


def _numbered(width: Any) -> Any:
    """Nested widths with numbers in place of traced integers."""
    if isinstance(width, (tuple, list)):
        return [_numbered(part) for part in width]
    return operator.index(width) if type(width) in (SymbolicInt, SymbolicArray) else width


def _fill_margins(result: SymbolicArray, widths: Sequence[tuple[int, int]], values: Any) -> None:
    """Write the margins of each axis, along the middle of the axes that follow and all of those before."""
    for axis, margins in enumerate(widths):
        region = result
        for later, (before, after) in enumerate(widths[axis + 1 :], axis + 1):
            inner = region.cells.shape[later] - (before + after)
            region = stretch(region, later, Affine.of(before), inner)
        ends = (ZERO, region.cells.shape[axis] - margins[1])
        for start, width, value in zip(ends, margins, _fill_values(values, axis, result.ndim), strict=True):
            if width:
                setitem(stretch(region, axis, start, Affine.of(width)), Ellipsis, value)


def _fill_values(values: Any, axis: int, ndim: int) -> tuple[Any, Any]:
    """`constant_values` for one axis: a number, (before, after), or such a pair for each axis."""
    if not isinstance(values, (tuple, list)):
        if type(values) is SymbolicArray or not is_given(values) or np.ndim(values) == 0:
            return as_operand(values), as_operand(values)
        values = values.tolist()
    rows = [row if isinstance(row, (tuple, list)) else None for row in values]
    if all(row is None for row in rows):
        pair = values * 2 if len(values) == 1 else values
    else:
        pair = rows[0 if len(rows) == 1 else axis] or values
        pair = pair * 2 if len(pair) == 1 else pair
    before, after = pair
    return as_operand(before), as_operand(after)


def _copy_margins(result: SymbolicArray, middle: list[slice], mode: str) -> None:
    for axis, part in enumerate(middle):
        start, stop = part.start, part.stop
        region = [*[slice(None)] * axis, *middle[axis:]]
        extent, total = stop - start, result.cells.shape[axis].constant
        if extent == 0:
            if total:
                raise ShapeError(
                    f"can't extend empty axis {axis} using modes other than 'constant' or 'empty'",
                    loc=user_location(),
                    fix="use mode='constant'",
                )
            continue
        positions = np.arange(start, stop, dtype=np.int64)
        sources = np.pad(positions, (start, total - stop), mode=mode)  # type: ignore[call-overload]
        for first, last in ((0, start), (stop, total)):
            for lo, hi, source in _runs(sources, first, last):
                piece = getitem(result, tuple([*region[:axis], source, *region[axis + 1 :]]))
                setitem(result, tuple([*region[:axis], slice(lo, hi), *region[axis + 1 :]]), piece)


def _runs(sources: np.ndarray, first: int, last: int) -> Iterator[tuple[int, int, slice]]:
    """The margin in runs whose sources step by 1, -1 or 0: bounds and the slice to copy from."""
    lo = first
    while lo < last:
        hi = lo + 1
        step = int(sources[hi] - sources[lo]) if hi < last else 1
        step = step if step in (-1, 0, 1) else 1
        while hi < last and sources[hi] - sources[hi - 1] == step:
            hi += 1
        start, count = int(sources[lo]), 1 if step == 0 else hi - lo
        stop = start + (step or 1) * count
        yield lo, hi, slice(start, None if stop < 0 else stop, step or 1)
        lo = hi
