"""Counting values: `bincount`, `histogram` and its kin."""

from __future__ import annotations

import builtins
import math
import operator
from typing import Any

import numpy as np

from ...errors import ShapeError, UnsupportedError
from ...ir.dtype import BOOL, F64, I64, DType, from_numpy
from ...ir.expr import literal
from ...ir.ops import op
from ..indices.indexing import setitem
from ..indices.keys import Many
from ..indices.scatter import scatter
from ..record.registry import implements
from ..record.trace import current_trace
from ..values.array import SymbolicArray, describe
from ..values.elementwise import as_array, cast, elementwise
from ..values.extents import ZERO, is_at_least, numbers, same_shape
from ..values.fitting import Operand
from ..values.integer import SymbolicInt, python_int
from .adopted import numpy_program
from .creation import arange
from .finding import searchsorted
from .joining import stack, unwritten
from .operands import arrays_of, common_dtype, refuse, require_all, require_cast, require_real, require_row
from .parts import parts
from .reductions import reduce_array
from .reshaping import flat, reshape
from .spacing import linspace

__all__: list[str] = []

_MOST_COUNTED = 2**16 - 1
"""Up to which number all are counted where nothing says how many there are."""

_APART = 8
"""Cells for what is not counted: successive ones add to different ones."""


@implements(np.bincount)
def bincount(x: Any, /, weights: Any = None, minlength: Any = 0) -> SymbolicArray:
    """The length of the result is `minlength`, which the numbers must stay below. Without it all numbers are
    counted that the dtype has, if it has few, and the result is as long as the run finds."""
    array, length = as_array(x), operator.index(minlength)
    require_row(array, "object too deep for desired array")
    if array.dtype != np.uint64:
        require_cast(array, np.int64, "safe")
    held = np.iinfo(np.uint8) if array.element_type is BOOL else np.iinfo(array.dtype)
    if length < 0:
        raise ShapeError("'minlength' must not be negative", fix="give 0 or more")
    is_open = length == 0
    length = held.max + 1 if is_open else length
    if is_open and held.max > _MOST_COUNTED:
        raise UnsupportedError(
            "np.bincount without minlength= gives an array whose length depends on values",
            details=(describe(array),),
            fix="pass minlength=, the length of the result",
        )
    if array.cells.shape[0] == ZERO:
        weights = None  # NumPy does not look at them
    added, number = _counted(array, weights), cast(array, I64)
    if held.min < 0 or held.max > np.iinfo(np.int64).max:
        words = "'list' argument must have no negative elements"
        require_all(elementwise(op("greater_equal"), number, 0), words)
    if held.max >= length:
        words = "np.bincount in a jitted function: a number is not below minlength"
        require_all(elementwise(op("less"), number, length), words)
    counts: SymbolicArray = _tally(number, added, length)
    return _up_to_largest(counts, number) if is_open else counts


@numpy_program
def _up_to_largest(counts: Any, numbers: Any) -> Any:
    return counts[: int(numbers.max(initial=-1)) + 1].copy()


def _counted(array: SymbolicArray, weights: Any) -> SymbolicArray:
    """What each number adds to its count."""
    if weights is None:
        return as_array(1)
    added = as_array(weights)
    require_cast(added, np.float64, "safe")
    _require_same_shape(added, array, "The weights and list don't have the same length.")
    return cast(added, F64)


def _require_same_shape(weights: SymbolicArray, array: SymbolicArray, words: str) -> None:
    if not same_shape(weights.cells.shape, array.cells.shape, words):
        details = (describe(array), describe(weights))
        raise ShapeError(words, details=details, fix="give one weight for each number")


def _tally(numbers: Any, added: SymbolicArray, length: int) -> Any:
    """For each number below `length` the sum of what its occurrences add, in their order."""
    trace, zero = current_trace(), literal(0, added.element_type)
    counts = SymbolicArray(
        trace.compute((length,), added.element_type, lambda _: zero, label="counts"), trace
    )

    def add(cells: SymbolicArray, value: Operand) -> None:
        trace.store(cells.cells, elementwise(op("add"), cells, value).load)

    scatter(counts, [Many.computed(numbers)], added, add, trace)
    return counts


def _tally_inside(places: Any, inside: Any, added: SymbolicArray, length: int) -> Any:
    """As `_tally`, of those that lie inside. Others add to cells that nobody looks at, for which a step need
    not ask, and where few of them wait for one another."""
    (count,) = places.cells.shape
    order: Any = arange(python_int(count, places.record))
    cells = elementwise(op("where"), inside, places, order % _APART + length)
    return _tally(cells, added, length + _APART)[:length]


@implements(np.histogram)
def histogram(a: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None) -> Any:
    """The bin of a value is computed where all are equally wide, as NumPy does, and else looked up."""
    if isinstance(bins, str):
        refuse("np.histogram", "give the number of bins, or their edges", bins=bins)
    array = require_real(as_array(a), "np.histogram")
    values = flat(array if array.element_type is not BOOL else cast(array, from_numpy(np.uint8)))
    if np.ndim(bins) == 0:
        edges, places, inside = _equal_bins(values, operator.index(bins), range)
    else:
        edges, places, inside = _bins_between(values, as_array(bins))
    kind, added = I64, [as_array(1)]
    if weights is not None:
        given = as_array(weights)
        _require_same_shape(given, array, "weights should have the same shape as a.")
        require_cast(given, np.complex128, "safe")
        kind, added = given.element_type, [cast(part, F64) for part in parts(flat(given))]
    (bins,) = numbers(edges.cells.shape, "the number of bins")
    sums = [_tally_inside(places, inside, part, bins - 1) for part in added]
    counts: Any = _with_parts(sums, kind) if kind.is_complex else cast(sums[0], kind)
    return (counts / cast(edges[1:] - edges[:-1], F64) / counts.sum() if density else counts), edges


def _with_parts(sums: list[SymbolicArray], kind: DType) -> SymbolicArray:
    """The complex numbers with these real and imaginary parts."""
    result = unwritten(sums[0].cells.shape, kind, "counts")
    for part, values in zip(parts(result), sums, strict=True):
        setitem(part, Ellipsis, values)
    return result


@implements(np.histogram_bin_edges)
def histogram_bin_edges(a: Any, bins: Any = 10, range: Any = None, weights: Any = None) -> Any:
    return histogram(a, bins, range, None, weights)[1]


@implements(np.histogram2d)
def histogram2d(
    x: Any, y: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None
) -> Any:
    rows_of = [require_real(as_array(part), "np.histogram2d") for part in (x, y)]
    for part in rows_of:
        require_row(part, "x and y must be 1d")
    _require_same_shape(rows_of[1], rows_of[0], "x and y must have the same length.")
    is_pair = isinstance(bins, (list, tuple)) and len(bins) == 2
    counts, (first, second) = _joint(rows_of, bins if is_pair else (bins, bins), range, density, weights)
    return counts, first, second


@implements(np.histogramdd)
def histogramdd(
    sample: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None
) -> Any:
    rows_of = _values_of(sample)
    for part in rows_of:
        require_real(part, "np.histogramdd")
    each = bins if hasattr(bins, "__len__") else [bins] * len(rows_of)
    words = "{} must have one entry per dimension of the sample"
    for name, entries in (("bins", each), ("range", rows_of if range is None else range)):
        if len(entries) != len(rows_of):
            raise ShapeError(words.format(name), fix=f"give {len(rows_of)} of them")
    return _joint(rows_of, each, range, density, weights)


def _values_of(sample: Any) -> list[SymbolicArray]:
    """The values of all samples in each dimension: the columns of a matrix, or what a list holds."""
    is_listed = isinstance(sample, (list, tuple))
    array = stack(arrays_of(sample)) if is_listed else as_array(sample)
    if array.ndim < 2:
        array, is_listed = reshape(array, (1, -1)), True
    if array.ndim > 2:
        words = "too many values to unpack (expected 2)"
        fix = "pass a row for each sample, or a list of an array for each dimension"
        raise ShapeError(words, details=(describe(array),), fix=fix)
    rows: Any = array if is_listed else array.T
    (count,) = numbers(rows.cells.shape[:1], "the number of values that each sample has")
    return [rows[axis] for axis in builtins.range(count)]


def _joint(rows_of: list[SymbolicArray], bins: Any, range: Any, density: Any, weights: Any) -> Any:
    """How many samples, of a value from each row, lie in each combination of bins; and the edges. Values are
    looked up among the edges of their bins, as NumPy does, of whatever width these are."""
    kind = common_dtype(*rows_of)
    columns = [cast(part, kind) for part in rows_of]
    ranges = (None,) * len(columns) if range is None else range
    axes = [_looked_up(*parts) for parts in zip(columns, bins, ranges, strict=True)]
    every_edge = [edges for edges, _, _ in axes]
    extents = [numbers(edges.cells.shape, "the number of bins")[0] - 1 for edges in every_edge]
    _, place, inside = axes[0]
    for extent, (_, further, is_in) in zip(extents[1:], axes[1:], strict=True):
        place, inside = place * extent + further, elementwise(op("logical_and"), inside, is_in)
    added = as_array(1.0) if weights is None else _counted(columns[0], weights)
    counts: Any = reshape(_tally_inside(place, inside, added, math.prod(extents)), tuple(extents))
    if density:
        total = reduce_array(op("add"), counts)
        for axis, edges in enumerate(every_edge):
            widths = cast(edges[1:] - edges[:-1], F64)
            counts = counts / reshape(widths, (extents[axis], *[1] * (len(extents) - axis - 1)))
        counts = counts / total
    return counts, every_edge


def _looked_up(values: SymbolicArray, bins: Any, range: Any) -> tuple[Any, Any, Any]:
    """The edges of bins, the bin of each value (0 for others), and whether it lies in one."""
    if np.ndim(bins):
        return _bins_between(values, as_array(bins))
    count = operator.index(bins)
    if count < 1:
        raise ShapeError("`bins` must be positive, when an integer", fix="use bins=10")
    first, last = _outer_edges(values, range)
    return _bins_between(values, linspace(first, last, count + 1))


def _equal_bins(values: Any, count: int, range: Any) -> tuple[Any, SymbolicArray, SymbolicArray]:
    """The edges of bins of one width, the bin of each value (0 for others), and whether it lies in one."""
    if count < 1:
        raise ShapeError("`bins` must be positive, when an integer", fix="use bins=10")
    first, last = _outer_edges(values, range)
    kind = common_dtype(first, last, values)
    kind = F64 if kind.is_integer else kind
    edges, step = linspace(first, last, count + 1, retstep=True, dtype=kind.numpy)
    words = f"Too many bins for data range. Cannot create {count} finite-sized bins."
    require_all(edges[1:] > edges[:-1], words)
    inside: Any = as_array(True) if range is None else (values >= first) & (values <= last)
    exact: Any = cast(values, kind)
    share = (exact - first) / elementwise(op("subtract"), as_array(last), as_array(first))
    places: Any = cast(elementwise(op("where"), inside, share * count, 0), I64)
    places = places - (places == count)

    def edge(place: Any) -> Any:
        """One that is not the last, as `linspace` makes it: looked up in vectors, it would take longer."""
        computed = step.element_type
        return cast(cast(place, computed) * step + cast(as_array(first), computed), kind)

    places = places - (exact < edge(places)) * inside
    places = places + (exact >= edge(places + 1)) * (places != count - 1) * inside
    return edges, places, inside


def _outer_edges(values: SymbolicArray, range: Any) -> tuple[Any, ...]:
    """The ends of the range that is given, or of the values; half a unit on each side of a single point."""
    if range is None and ZERO in values.cells.shape:
        return 0, 1
    first, last = _extremes(values) if range is None else range
    words = "autodetected range is not finite"
    if range is not None:
        words = "max must be larger than min in range parameter."
    least, most = as_array(first), as_array(last)
    are_finite = elementwise(op("logical_and"), *(elementwise(op("isfinite"), end) for end in (least, most)))
    holds = elementwise(op("logical_and"), are_finite, elementwise(op("less_equal"), least, most))
    require_all(holds, words)
    if not any(type(end) in (SymbolicArray, SymbolicInt) for end in (first, last)):
        return (first - 0.5, last + 0.5) if first == last else (first, last)
    is_point = elementwise(op("equal"), least, most)
    wider = elementwise(op("subtract"), least, 0.5), elementwise(op("add"), most, 0.5)
    return tuple(elementwise(op("where"), is_point, *ends) for ends in zip(wider, (least, most), strict=True))


def _extremes(values: SymbolicArray) -> tuple[Any, Any]:
    """The least and the greatest value, of a row; of none 0 and 1."""
    names = ("minimum", "maximum")
    (extent,) = values.cells.shape
    if is_at_least(extent, 1):
        return reduce_array(op(names[0]), values), reduce_array(op(names[1]), values)
    kind: Any = values.element_type.numpy
    is_integer = values.element_type.is_integer
    ends = (np.iinfo(kind).max, np.iinfo(kind).min) if is_integer else (np.inf, -np.inf)
    is_empty = elementwise(op("equal"), python_int(extent, values.record), 0)
    found = [reduce_array(op(name), values, initial=end) for name, end in zip(names, ends, strict=True)]
    least, most = (elementwise(op("where"), is_empty, of_none, end) for of_none, end in enumerate(found))
    return least, most


def _bins_between(values: Any, edges: Any) -> tuple[Any, SymbolicArray, SymbolicArray]:
    """The bin of each value between edges (0 for others), and whether it lies in one."""
    require_row(edges, "`bins` must be 1d, when an array")
    require_all(edges[1:] >= edges[:-1], "`bins` must increase monotonically, when an array")
    after: Any = searchsorted(edges, values, "right")
    inside = (values >= edges[0]) & (values <= edges[-1])
    before_last: Any = elementwise(op("minimum"), after, python_int(edges.cells.shape[0] - 1, edges.record))
    places = elementwise(op("where"), inside, before_last - 1, 0)
    return edges, places, inside
