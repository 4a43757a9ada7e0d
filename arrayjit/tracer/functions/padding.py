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
from ..record.trace import current_trace
from ..values.array import SymbolicArray
from ..values.elementwise import as_array, as_operand
from ..values.extents import ZERO, known_number, require_at_least
from ..values.integer import SymbolicInt
from ..values.layout import copy_order
from ..values.numbers import integer_of
from .adopted import numpy_program
from .joining import slab, stretch, unwritten
from .operands import is_given, refuse

__all__ = ["pad"]

_COPYING = ("edge", "reflect", "symmetric", "wrap")
_MIRRORING = ("reflect", "symmetric")
_COMPUTING = ("linear_ramp", "maximum", "mean", "median", "minimum")
_EMPTY = "can't extend empty axis {} using modes other than 'constant' or 'empty'"


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
) -> Any:
    inner = as_array(array)
    fix = f"use one of the modes constant, empty, {', '.join((*_COPYING, *_COMPUTING))}"
    is_odd = reflect_type == "odd" and mode in _MIRRORING
    refuse("np.pad", fix, reflect_type=None if is_odd or reflect_type == "even" else reflect_type)
    if mode not in ("constant", "empty", *_COPYING, *_COMPUTING):
        refuse("np.pad", fix, mode=mode)
    widths = _pairs(pad_width, inner.ndim)
    if mode in ("constant", "empty") or not any(map(any, widths)):
        return _with_margins(inner, widths, constant_values if mode == "constant" else None)
    what = f"an extent that is padded with mode={mode!r}"
    extents = [known_number(extent, what) for extent in inner.cells.shape]
    known = [extent for extent in extents if extent is not None]
    if 0 in known:
        _require_cells(known, widths)
        return _with_margins(inner, widths, None)
    if mode in _COMPUTING:
        lengths = [(None, None)] * inner.ndim if stat_length is None else _pairs(stat_length, inner.ndim)
        ends = [_fill_values(0 if end_values is None else end_values, n) for n in range(inner.ndim)]
        return _computed(inner, mode, widths, lengths, ends)
    if is_odd and len(known) == inner.ndim:
        return _mirrored(inner, mode, widths)
    refuse("np.pad", "pad arrays of known shapes so", reflect_type=reflect_type if is_odd else None)
    if len(known) < inner.ndim:
        return _taken(inner, mode, widths)
    result = _with_margins(inner, widths, None)
    _copy_margins(result, [slice(b, b + n) for (b, _), n in zip(widths, known, strict=True)], mode)
    return result


def _with_margins(inner: SymbolicArray, widths: Sequence[tuple[int, int]], values: Any) -> SymbolicArray:
    """The array in the middle of a larger one, with these values around it; None leaves them out."""
    shape = [
        extent + (before + after) for (before, after), extent in zip(widths, inner.cells.shape, strict=True)
    ]
    result = unwritten(shape, inner.element_type, "padded", copy_order(inner.cells, "A"))
    middle = result
    for axis, ((before, _), extent) in enumerate(zip(widths, inner.cells.shape, strict=True)):
        middle = stretch(middle, axis, Affine.of(before), extent)
    setitem(middle, Ellipsis, inner)
    if values is not None:
        _fill_margins(result, widths, values)
    return result


def _require_cells(extents: Sequence[int], widths: Sequence[tuple[int, int]]) -> None:
    """Raise where an axis without cells is to be extended."""
    for axis, (extent, margins) in enumerate(zip(extents, widths, strict=True)):
        if extent == 0 and any(margins):
            raise ShapeError(_EMPTY.format(axis), fix="use mode='constant'")


@numpy_program
def _taken(cells: Any, mode: str, widths: Sequence[tuple[int, int]]) -> Any:
    """Cells are repeated of which only the run knows how many there are."""
    for axis, (before, after) in enumerate(widths):
        if before or after:
            count = _some(cells, axis)
            cells = np.take(cells, _sources(np.arange(-before, count + after), count, mode), axis)
    return cells


def _some(cells: Any, axis: int) -> Any:
    """How many cells the axis has, which are one at least."""
    count = cells.shape[axis]
    require_at_least(integer_of(count, current_trace()), 1, "ValueError", _EMPTY.format(axis))
    return count


@numpy_program
def _sources(places: Any, count: Any, mode: str) -> Any:
    """Which of so many cells stands at each place, as they go on beyond both ends."""
    match mode:
        case "edge":
            return np.clip(places, 0, count - 1)
        case "wrap":
            return places % count
        case "symmetric":
            around = places % (2 * count)
            return np.minimum(around, 2 * count - 1 - around)
    around = places % max(2 * count - 2, 1)
    return np.minimum(around, 2 * count - 2 - around)


@numpy_program
def _computed(
    cells: Any,
    mode: str,
    widths: Sequence[tuple[int, int]],
    lengths: Sequence[tuple[Any, Any]],
    ends: Sequence[tuple[Any, Any]],
) -> Any:
    """Margins axis by axis, of numbers that the cells at each end tell."""
    dtype: Any = cells.dtype
    for axis, (margins, of, values) in enumerate(zip(widths, lengths, ends, strict=True)):
        if not any(margins):
            continue
        _some(cells, axis)
        first, last = slab(axis, slice(0, 1)), slab(axis, slice(-1, None))
        if mode == "linear_ramp":
            steps = {"endpoint": False, "dtype": dtype, "axis": axis}
            left = np.linspace(values[0], cells[first].squeeze(axis), margins[0], **steps)
            right = np.flip(np.linspace(values[1], cells[last].squeeze(axis), margins[1], **steps), axis)
        else:
            left, right = (
                _stat(mode, cells[slab(axis, part)], axis, margin, dtype)
                for part, margin in zip(
                    (slice(0, of[0]), slice(_from_end(of[1]), None)), margins, strict=True
                )
            )
        cells = np.concatenate([left, cells, right], axis)
    return cells


@numpy_program
def _mirrored(cells: Any, mode: str, widths: Sequence[tuple[int, int]]) -> Any:
    """Margins axis by axis, of which each cell is as far from the edge as the one in the mirror, on the other
    side. Those wider than the array are mirrored again."""
    dtype: Any = cells.dtype
    for axis, (before, after) in enumerate(widths):
        extent = cells.shape[axis]
        with_edge = int(mode == "symmetric")
        period = max(extent - 1 + with_edge, 1)
        while before or after:
            length = cells.shape[axis]
            wide = (length - 1 + with_edge) // period * period if extent > 1 else max(before, after)
            counts = min(wide, before), min(wide, after)
            chunks = []
            for count, edge, start in zip(
                counts,
                (0, length - 1),
                (1 - with_edge, length - 1 + with_edge - counts[1]),
                strict=True,
            ):
                here = cells[slab(axis, slice(edge, edge + 1))]
                mirror = cells[slab(axis, slice(start, start + count))]
                chunk = np.repeat(here, count, axis) if extent == 1 else 2 * here - np.flip(mirror, axis)
                chunks.append(chunk.astype(dtype))
            parts = [chunks[0]] * bool(counts[0]) + [cells] + [chunks[1]] * bool(counts[1])
            cells = np.concatenate(parts, axis)
            before, after = before - counts[0], after - counts[1]
    return cells


def _from_end(count: int | None) -> int | None:
    """Where the last so many cells begin, which are one at least."""
    if count == 0:
        words = "stat_length of 0 yields no value for padding"
        raise ShapeError(words, fix="use stat_length=1")
    return None if count is None else -count


@numpy_program
def _stat(mode: str, cells: Any, axis: int, margin: int, dtype: Any) -> Any:
    """What is computed of cells along an axis, as often as the margin is wide."""
    functions: Any = {"maximum": np.max, "minimum": np.min, "mean": np.mean, "median": np.median}
    found = functions[mode](cells, axis=axis, keepdims=True)
    found = np.round(found) if dtype.kind in "iu" else found
    return np.repeat(found.astype(dtype), margin, axis)


def _pairs(pad_width: Any, ndim: int) -> list[tuple[int, int]]:
    """The widths before and after each axis."""
    if isinstance(pad_width, dict):
        given: list[Any] = [(0, 0)] * ndim
        for axis, width in pad_width.items():
            given[axis] = tuple(np.broadcast_to(width, 2))
        pad_width = given
    widths = np.asarray(_numbered(pad_width))
    if widths.dtype.kind not in "iu":
        raise ShapeError("`pad_width` must be of integral type.", fix="use integers")
    pairs = [(int(before), int(after)) for before, after in np.broadcast_to(widths, (ndim, 2))]
    if any(width < 0 for pair in pairs for width in pair):
        raise ShapeError("index can't contain negative values", fix="slice to cut an array")
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
        for start, width, value in zip(ends, margins, _fill_values(values, axis), strict=True):
            if width:
                setitem(stretch(region, axis, start, Affine.of(width)), Ellipsis, value)


def _fill_values(values: Any, axis: int) -> tuple[Any, Any]:
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
        total = result.cells.shape[axis].constant
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
