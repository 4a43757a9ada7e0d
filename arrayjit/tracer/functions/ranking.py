"""What sorted cells tell: medians, quantiles, partitions, distinct values; NumPy programs over `np.sort`."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from math import prod
from operator import mul, or_
from typing import Any

import numpy as np

from ...errors import ConcretizationError, DTypeError, IndexOutOfRange, NumberError, ShapeError
from ...ir.index import Affine
from ...ir.ops import op
from ..indices.indexing import require_assignable, setitem
from ..record.registry import AnyCallable, implements, method
from ..record.trace import current_trace
from ..values.array import SymbolicArray
from ..values.elementwise import as_array, items_of
from ..values.integer import number
from ..values.rows import LISTS
from .adopted import numpy_program
from .exchanges import MOST_WRITTEN_OUT, ranked_by_exchanges
from .operands import axes_of, axis_of, deliver, is_true, refuse, require_all
from .quantile_places import is_a_cell, neighbours, place_in_the_run, require_method
from .reductions import require_room
from .reshaping import flat
from .shaping import atleast_1d
from .sorting import argsort, divided, pairs_at, ranked, require_axis, sort

__all__: list[str] = []

_SOME = "pass arrays that have values along the axis"
_NO_NAN = "select what is no NaN, x[~np.isnan(x)], for np.median and np.quantile"
_ONE_KIND = "leave kind out"
_FLOATS = "fV"
"""Kinds; bfloat16 is to NumPy of its own kind."""


@implements(np.partition)
def partition(
    a: Any, kth: Any, axis: Any = -1, kind: str = "introselect", order: Any = None
) -> SymbolicArray:
    """Where there are several places, or few cells, sorted wholly: one of the orders that NumPy allows."""
    _require_kind(kind)
    found = divided(a, kth, axis, places=False) if order is None else None
    return sort(a, axis, order=order) if found is None else found


@implements(np.argpartition)
@method("argpartition")
def argpartition(
    a: Any, kth: Any, axis: Any = -1, kind: str = "introselect", order: Any = None
) -> SymbolicArray:
    _require_kind(kind)
    array = atleast_1d(a)
    found = divided(array, kth, axis, places=True) if order is None else None
    return argsort(array, axis, order=order) if found is None else found


def _require_kind(kind: Any) -> None:
    try:
        np.partition(np.zeros(1), 0, kind=kind)
    except ValueError as error:
        raise NumberError(str(error), fix=_ONE_KIND) from None
    except TypeError as error:
        raise DTypeError(str(error), fix=_ONE_KIND) from None


@method("partition")
def partition_in_place(
    self: SymbolicArray, kth: Any, axis: Any = -1, kind: str = "introselect", order: Any = None
) -> None:
    require_assignable(self)
    require_axis(axis)
    setitem(self, Ellipsis, partition(self, kth, axis, kind, order))


@implements(np.lexsort)
@numpy_program
def lexsort(keys: Any, axis: int = -1) -> Any:
    """By the last key; where that is equal, by the one before it, and so on."""
    first, *others = map(np.asarray, _keys(keys))
    if first.ndim == 0:
        axis_of(axis, first.ndim) if axis not in (0, -1) else None
        return np.int64(0)
    order = np.argsort(first, axis)
    for key in others:
        again = np.argsort(np.take_along_axis(key, order, axis), axis)
        order = np.take_along_axis(order, again, axis)
    return order


def _keys(keys: Any) -> list[Any]:
    """The keys, of which there is one at least."""
    given = [] if isinstance(keys, np.ndarray) and not keys.ndim else list(keys)
    if not given:
        raise DTypeError("need sequence of keys with len > 0 in lexsort", fix="pass a tuple of keys")
    return given


@implements(np.unique)
@numpy_program
def unique(
    ar: Any,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: Any = None,
    *,
    equal_nan: bool = True,
    sorted: bool = True,
) -> Any:
    """What is sorted comes in one of the orders that NumPy allows where it need not be."""
    rows: Any = _as_row(ar) if axis is None else np.moveaxis(ar, axis, 0)
    wants_places = return_index or return_inverse or axis is not None
    order: Any = _order(rows) if wants_places else None
    rows = rows[order] if wants_places else np.sort(rows)
    is_new = np.ones(rows.shape[0], bool)
    differs: Any = rows[1:] != rows[:-1]
    if rows.ndim > 1:
        is_new[1:] = np.any(_as_table(differs), axis=1)
    elif equal_nan and rows.dtype.kind in _FLOATS + "c":
        is_new[1:] = differs & (rows[:-1] == rows[:-1])
    else:
        is_new[1:] = differs
    results = [rows[is_new] if axis is None else np.moveaxis(rows[is_new], 0, axis)]
    if return_index:
        results.append(order[is_new])
    if return_inverse:
        inverse = np.empty(rows.shape[0], np.intp)
        inverse[order] = np.cumsum(is_new) - 1
        results.append(inverse.reshape(np.shape(ar)) if axis is None else inverse)
    if return_counts:
        counts = np.zeros(rows.shape[0], np.intp)
        np.add.at(counts, np.cumsum(is_new) - 1, 1)
        results.append(counts[: is_new.sum()])
    return tuple(results) if len(results) > 1 else results[0]


def _as_row(array: Any) -> Any:
    """All cells, to be read: whether they are copied does not matter."""
    return flat(as_array(array))


@implements(np.unique_values)
@numpy_program
def unique_values(x: Any) -> Any:
    return np.unique(x, equal_nan=False)


def _as_table(rows: Any) -> Any:
    """Rows of any rank, each as one row of cells."""
    return rows.reshape(rows.shape[0], reduce(mul, rows.shape[1:], 1))


@numpy_program
def _order(rows: Any) -> Any:
    """The order of rows by their first cells; where these are equal, by the second ones, and so on."""
    if rows.ndim == 1:
        return np.argsort(rows)
    cells, order = _as_table(rows), np.arange(rows.shape[0])
    for column in range(cells.shape[1] - 1, -1, -1):
        order = order[np.argsort(cells[order, column])]
    return order


@implements(np.setdiff1d)
@numpy_program
def setdiff1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> Any:
    cells = _as_row(ar1) if assume_unique else np.unique(ar1)
    return cells[np.isin(cells, ar2, invert=True)]


@implements(np.setxor1d)
@numpy_program
def setxor1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> Any:
    """What stands once in both together: it equals neither of its neighbours."""
    parts = (ar1, ar2) if assume_unique else (np.unique(ar1), np.unique(ar2))
    cells: Any = np.sort(np.concatenate(parts, axis=None))
    is_single = np.ones(cells.shape, bool)
    is_single[1:] &= cells[1:] != cells[:-1]
    is_single[:-1] &= cells[1:] != cells[:-1]
    return cells[is_single]


@implements(np.median)
def median(
    a: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False, keepdims: bool = False
) -> Any:
    middle = _median(a, axis, keepdims)
    require_room(op("add"), middle.element_type, out)
    return deliver(middle, out, "unsafe")


@numpy_program
def _median(a: Any, axis: Any, keepdims: bool) -> Any:
    rows: Any = _in_rows(a, axis)
    count = _known_count(rows)
    if count is None:
        count = rows.shape[-1]
        around: Any = np.sort(rows, axis=-1)[..., (count - 1) // 2 : count // 2 + 1]
        return _kept(_nan_where_any(np.mean(around, axis=-1), rows), a, axis, keepdims)
    if count == 0:
        return _kept(np.mean(rows, axis=-1), a, axis, keepdims)
    few, places = _few_cells(a, axis), range((count - 1) // 2, count // 2 + 1)
    middle: Any = np.mean(ranked_by_exchanges(few, places) if few else ranked(rows, places), axis=-1)
    return _kept(_nan_where_any(middle, rows, few), a, axis, keepdims)


@implements(np.nanmedian)
def nanmedian(
    a: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False, keepdims: Any = np._NoValue
) -> Any:
    return deliver(_median_of_numbers(a, axis, is_true(keepdims)), out, "unsafe")


@numpy_program
def _median_of_numbers(a: Any, axis: Any, keepdims: bool) -> Any:
    rows: Any = _in_rows(a, axis)
    if _is_empty(rows):
        return _kept(np.mean(rows, axis=-1), a, axis, keepdims)
    last: Any = _last_number(rows)
    pairs: Any = pairs_at(rows, [last // 2])[0]
    middle: Any = np.where(last % 2 == 0, np.mean(pairs[..., :1], axis=-1), np.mean(pairs, axis=-1))
    return _kept(middle[()], a, axis, keepdims)


@numpy_program
def _quantiles_of_numbers(
    a: Any, fractions: Any, method: str, is_weak: bool, axis: Any, keepdims: bool
) -> Any:
    rows: Any = _in_rows(a, axis)
    if _is_empty(rows):  # NumPy does not ask how many are wanted.
        return _kept(np.mean(rows, axis=-1), a, axis, keepdims)
    last: Any = _last_number(rows)
    places = [place_in_the_run(method, last, fraction) for fraction in fractions.flat]
    before: Any = [np.clip(np.floor(place), 0, last) for place in places]
    pairs = pairs_at(rows, [one.astype(np.intp) for one in before])
    found: list[Any] = []
    for pair, place, first in zip(pairs, places, before, strict=True):
        low: Any = pair[..., 0]
        if not is_a_cell(method, fractions):
            after = np.where((first < last) & (place >= 0), pair[..., 1], low)
            low = _between(low, after, place - first, _weighed_in(rows, place, is_weak))
        found.append(_kept(low, a, axis, keepdims))
    return _as_wanted(found, fractions)


@numpy_program
def _quantiles_of_sorted(rows: Any, fractions: Any, method: str, is_weak: bool) -> Any:
    """Those of which only a run knows how many the rows have, or where in these they lie."""
    ordered, last = np.sort(rows, axis=-1), np.asarray(rows.shape[-1] - 1)
    places = place_in_the_run(method, last, fractions)
    before = np.clip(np.floor(places), 0, last)
    first = before.astype(np.intp)
    found = ordered[..., first]
    if not is_a_cell(method, fractions):
        after = ordered[..., np.where(places >= 0, np.minimum(first + 1, last), first)]
        found = _between(found, after, places - before, _weighed_in(rows, places, is_weak))
    return found


def _weighed_in(rows: Any, weights: Any, is_weak: bool) -> Any:
    """The dtype of the weights of neighbours, for a quantile that is one of Python's numbers (`is_weak`)."""
    if not is_weak:
        return weights.dtype
    return rows.dtype if rows.dtype.kind in _FLOATS else np.dtype(float)


@numpy_program
def _as_wanted(found: Any, fractions: Any) -> Any:
    """Quantiles in the shape in which they are asked for."""
    return np.stack(found).reshape(fractions.shape + found[0].shape) if fractions.ndim else found[0][()]


@numpy_program
def _last_number(rows: Any) -> Any:
    """Where the last number of each row stands in its order, NaN being last: 0 if there is none."""
    return np.maximum(np.sum(rows == rows, axis=-1) - 1, 0)


def _is_empty(rows: SymbolicArray) -> bool:
    """Whether there are no cells, as far as is known before the run."""
    _count(rows)
    return any(extent == Affine.of(0) for extent in rows.cells.shape)


def _fractions(q: Any, whole: int) -> Any:
    """Which quantiles are wanted, as NumPy divides them: integers are 0 or 1. They are known before the
    run, as Python's numbers are made to be; or it computes them and asks whether they lie in their range."""
    if isinstance(q, LISTS) and any(_is_computed(part) and part.weak is None for part in items_of(q)):
        q = as_array(q)
    known = current_trace().known(q.cells) if _is_computed(q) else None
    is_computed = known is None and _is_computed(q) and q.weak is None
    fractions = q if is_computed else np.asarray(q if known is None else known)
    fractions = fractions if whole == 1 else fractions / whole
    words = f"{'Quantiles' if whole == 1 else 'Percentiles'} must be in the range [0, {whole}]"
    if is_computed:
        holds: Any = (fractions >= 0) & (fractions <= 1)
        require_all(holds, words)
    elif not np.all((fractions >= 0) & (fractions <= 1)):
        raise ShapeError(words, fix=f"use numbers from 0 to {whole}")
    return fractions


def _is_computed(fractions: Any) -> bool:
    return type(fractions) is SymbolicArray


@numpy_program
def _quantiles(a: Any, fractions: Any, method: str, is_weak: bool, axis: Any, keepdims: bool) -> Any:
    rows: Any = _in_rows(a, axis)
    count = _known_count(rows)
    if count == 0 and fractions.size:
        raise IndexOutOfRange("there is no quantile of no values", fix=_SOME)
    few = None if _is_computed(fractions) else _few_cells(a, axis)
    if count is None or _is_computed(fractions):
        found: Any = _quantiles_of_sorted(rows, fractions, method, is_weak)
    else:
        found = _quantiles_at(rows, few, fractions, method, is_weak, count)
    rank = np.ndim(fractions)
    if rank:
        found = np.moveaxis(found, list(range(-rank, 0)), list(range(rank)))
    return _kept(_nan_where_any(found, rows, few), a, axis, keepdims)


@numpy_program
def _quantiles_at(
    rows: Any, few: list[Any] | None, fractions: Any, method: str, is_weak: bool, count: int
) -> Any:
    """Those of rows of so many cells, of which the wanted ones alone are sorted out."""
    before, after, part = neighbours(method, fractions, count)
    places = [int(place) % count for place in (*before.flat, *after.flat)]
    cells: Any = ranked_by_exchanges(few, places) if few else ranked(rows, places)
    low, high = (
        cells[..., first : first + before.size].reshape(*cells.shape[:-1], *before.shape)
        for first in (0, before.size)
    )
    if is_a_cell(method, fractions):
        return low
    return _between(low, high, part, _weighed_in(rows, part, is_weak))


def _taking(name: str, whole: int, found: Callable[..., Any]) -> AnyCallable:
    """A function that takes what `np.quantile` takes, with fractions of `whole`."""

    def function(
        a: Any,
        q: Any,
        axis: Any = None,
        out: Any = None,
        overwrite_input: bool = False,
        method: str = "linear",
        keepdims: Any = False,
        *,
        weights: Any = None,
    ) -> Any:
        fractions = _fractions(q, whole)
        refuse(f"np.{name}", "leave the weights out", weights=weights)
        require_method(method)
        is_weak = type(q) in (int, float)
        casting = "unsafe" if name.startswith("nan") else "same_kind"
        return deliver(found(a, fractions, method, is_weak, axis, is_true(keepdims)), out, casting)

    function.__name__ = function.__qualname__ = name
    return function


for _of_numpy, _whole, _found in (
    (np.quantile, 1, _quantiles),
    (np.percentile, 100, _quantiles),
    (np.nanquantile, 1, _quantiles_of_numbers),
    (np.nanpercentile, 100, _quantiles_of_numbers),
):
    implements(_of_numpy)(_taking(_of_numpy.__name__, _whole, _found))


@numpy_program
def _between(low: Any, high: Any, weight: Any, dtype: Any) -> Any:
    """What lies so far on from one to another, with weights of a dtype, each rounded once."""
    step = high - low
    left, right = (np.asarray(one).astype(dtype) for one in (weight, 1 - weight))
    return np.where(np.greater_equal(weight, 0.5), high - step * right, low + step * left)


def _in_rows(a: Any, axis: Any) -> Any:
    """The array with the axes of a reduction made one, the last."""
    array = as_array(a)
    axes = axes_of(axis, array.ndim)
    kept = [one for one in range(array.ndim) if one not in axes]
    moved: Any = array.transpose(*kept, *axes)
    return moved if len(axes) == 1 else moved.reshape(*(array.shape[one] for one in kept), -1)


def _few_cells(a: Any, axis: Any) -> list[Any] | None:
    """What a reduction takes together, each as an array of its own; None if that is much, or complex."""
    array = as_array(a)
    axes = axes_of(axis, array.ndim)
    extents = [array.cells.shape[one] for one in axes]
    is_known = all(extent.is_constant for extent in extents) and not array.element_type.is_complex
    if not is_known or not 0 < prod(extent.constant for extent in extents) <= MOST_WRITTEN_OUT:
        return None
    moved: Any = array.transpose(*axes, *(one for one in range(array.ndim) if one not in axes))
    return [moved[place] for place in np.ndindex(*(extent.constant for extent in extents))]


def _kept(result: Any, a: Any, axis: Any, keepdims: bool) -> Any:
    """The result, with the reduced axes kept as ones if so wanted."""
    if not keepdims:
        return result
    array = as_array(a)
    axes = axes_of(axis, array.ndim)
    first = result.ndim - (array.ndim - len(axes))
    return np.expand_dims(result, tuple(first + one for one in axes))


def _count(rows: SymbolicArray) -> int:
    return number(rows.cells.shape[-1], rows.record, "the number of values of a quantile", _NO_NAN)


def _known_count(rows: SymbolicArray) -> int | None:
    """The length of rows; None if only a run knows it, as of what a mask selects."""
    try:
        return _count(rows)
    except ConcretizationError:
        return None


@numpy_program
def _nan_where_any(result: Any, rows: Any, few: list[Any] | None = None) -> Any:
    """NaN where a row has any; where there are few cells in each, these are looked at in one line."""
    if rows.dtype.kind in _FLOATS:
        lost = reduce(or_, map(np.isnan, few)) if few else np.isnan(rows).any(axis=-1)
        result = np.where(lost, rows.dtype.type(np.nan), result)
    return result[()]
