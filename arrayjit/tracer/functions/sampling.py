"""Functions of samples, as NumPy programs: `interp`, `gradient`, `convolve`, `correlate` of neighbours, and
`geomspace`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...errors import DTypeError, ShapeError
from ..loops.control import cond
from ..record.registry import implements
from ..values.array import describe
from ..values.elementwise import as_array
from ..values.extents import is_at_least, require_at_least, same_shape
from .adopted import numpy_program
from .finding import samples_before
from .operands import axes_of, require_all

__all__: list[str] = []


@implements(np.geomspace)
@numpy_program
def geomspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, dtype: Any = None, axis: int = 0
) -> Any:
    """By logarithms, between ends that are exact."""
    ends = np.asarray(start), np.asarray(stop)
    kind = np.result_type(*ends, float(num), np.zeros((), dtype))
    for end in ends:
        require_all(end != 0, "Geometric sequence cannot include zero")
    first, last = (end.astype(kind) for end in ends)
    sign = np.sign(first)
    first, last = first / sign, last / sign
    result = np.logspace(np.log10(first), np.log10(last), num, endpoint, dtype=kind)
    if num > 0:
        result[0] = first
    if num > 1 and endpoint:
        result[-1] = last
    return np.moveaxis(result * sign, 0, axis).astype(kind if dtype is None else dtype, copy=False)


@implements(np.interp)
@numpy_program
def interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None) -> Any:
    _require_real_places(x, xp)
    values = np.asarray(fp)
    if not np.iscomplexobj(values):
        return _interpolated(x, xp, ((values, left, right),), period, _quotient)[0][()]
    parts = [
        tuple(given if given is None else part(given) for given in (values, left, right))
        for part in (np.real, np.imag)
    ]
    result = np.empty(np.shape(x), np.complex128)
    result.real, imaginary = _interpolated(x, xp, parts, period, _by_reciprocal)
    result.imag = np.where(np.isnan(x) & np.not_equal(len(xp), 1), 0, imaginary)
    return result[()]


def _require_real_places(*given: Any) -> None:
    for places in given:
        array = as_array(places)
        if array.element_type.is_complex:
            cast = f"from {array.dtype!r} to dtype('float64')"
            raise DTypeError(
                f"Cannot cast array data {cast} according to the rule 'safe'",
                details=(describe(array),),
                fix="use the parts, x.real and x.imag",
            )


@numpy_program
def _interpolated(
    x: Any, xp: Any, samples: Sequence[tuple[Any, ...]], period: Any, divided: Callable[[Any, Any], Any]
) -> list[Any]:
    """On the lines through the two samples around each place, in the steps that NumPy takes. Several samples
    at the same places, each with what is to the left and to the right of them, are looked for once."""
    places, known = (np.asarray(given, dtype=np.float64) for given in (x, xp))
    rows = [np.asarray(values, dtype=np.float64) for values, _, _ in samples]
    for row in rows:
        _require_samples(known, row)
    if period is not None:
        require_all(np.asarray(period) != 0, "period must be a non-zero value")
        places, known = places % abs(period), known % abs(period)
        order = np.argsort(known)
        known, rows = known[order], [row[order] for row in rows]
        known = np.concatenate((known[-1:] - abs(period), known, known[:1] + abs(period)))
        rows = [np.concatenate((row[-1:], row, row[:1])) for row in rows]
    last = len(known) - 1
    before = np.clip(samples_before(places, known) - 1, 0, last)
    after = np.minimum(before + 1, last)
    start, end = known[before], known[after]
    is_between = (start < places) & (places < end)
    results = []
    for values, (_, left, right) in zip(rows, samples, strict=True):
        # Elsewhere, unseen, the line goes from (0, 0) to (1, 0): no NaN comes of infinite samples.
        given = (places, 0), (start, 0), (end, 1), (values[before], 0), (values[after], 0)
        line = _on_line(divided, *(np.where(is_between, each, otherwise) for each, otherwise in given))
        result = np.where(is_between, line, values[before])
        result = np.where(places < known[0], values[0] if left is None else left, result)
        result = np.where(places > known[-1], values[-1] if right is None else right, result)
        results.append(np.where(np.isnan(places) & np.not_equal(len(known), 1), places, result))
    return results


def _quotient(rise: Any, run: Any) -> Any:
    return rise / run


def _by_reciprocal(rise: Any, run: Any) -> Any:
    """As NumPy divides the rise of complex numbers."""
    return rise * (1.0 / run)


def _on_line(
    divided: Callable[[Any, Any], Any], place: Any, start: Any, end: Any, low: Any, high: Any
) -> Any:
    """Between `low` at the start and `high` at the end. NumPy goes from the start, where that gives NaN from
    the end, and where both do but the values are the same that is it. What would be NaN on the way is not
    computed."""
    is_same = low == high
    is_infinite = is_same & np.isinf(low)
    rise = np.where(is_infinite, 0, high) - np.where(is_infinite, 0, low)
    slope = divided(rise, end - start)
    step = place - start
    is_backwards = np.isinf(step) | np.isinf(low)
    step = np.where(is_backwards, place - end, step)
    is_endless = is_same & np.isinf(step)
    line = slope * np.where(is_endless, 0, step) + np.where(is_backwards, high, low)
    return np.where(is_endless, low, line)


@implements(np.gradient)
def gradient(f: Any, *varargs: Any, axis: Any = None, edge_order: Any = 1) -> Any:
    samples = as_array(f)
    axes = axes_of(axis, samples.ndim)
    given = varargs or (1.0,)
    if len(given) == 1 and np.ndim(given[0]) == 0:
        given *= len(axes)
    if len(given) != len(axes):
        words = "invalid number of arguments"
        raise DTypeError(words, fix="pass a distance or a row of places for each axis")
    if edge_order > 2:
        words = "'edge_order' greater than 2 not supported"
        raise ShapeError(words, fix="use edge_order=2")
    found = tuple(_along(samples, one, where, edge_order) for one, where in zip(axes, given, strict=True))
    return found[0] if len(found) == 1 else found


def _along(f: Any, axis: int, places: Any, edge_order: Any) -> Any:
    """The slopes between samples at places along an axis, or at one distance. Whether places are at one
    distance only the run can tell; NumPy then takes other steps."""
    known = as_array(places)
    if known.ndim > 1:
        words = "distances must be either scalars or 1d"
        raise ShapeError(words, fix="pass a number or a row for each axis")
    words = "when 1d, distances must match the length of the corresponding dimension"
    extent = f.cells.shape[axis]
    if known.ndim and not same_shape(known.cells.shape, (extent,), words):
        raise ShapeError(words, fix="pass a place for each sample along the axis")
    steps = _steps(known) if known.ndim else places
    first = steps[0] if known.ndim else places
    words = (
        "Shape of array too small to calculate a numerical gradient, "
        "at least (edge_order + 1) elements are required."
    )
    if not require_at_least(extent, edge_order + 1, "ValueError", words):
        raise ShapeError(words, details=(describe(f),), fix="pass more samples")
    if not known.ndim:
        return _slopes(f, axis, steps, edge_order)
    return cond(
        (steps == first).all(),
        lambda: _slopes(f, axis, first, edge_order),
        lambda: _slopes(f, axis, steps, edge_order),
    )


@numpy_program
def _steps(places: Any) -> Any:
    return np.diff(places.astype(np.float64) if np.issubdtype(places.dtype, np.integer) else places)


@numpy_program
def _slopes(f: Any, axis: int, steps: Any, edge_order: Any) -> Any:
    """The slopes of parabolas through three samples each, at the ends of lines if `edge_order` is 1, in the
    operations that NumPy takes for one step and for a row of them."""
    if np.issubdtype(f.dtype, np.integer):
        f = f.astype(np.float64)
    result = np.empty_like(f, dtype=f.dtype if np.issubdtype(f.dtype, np.inexact) else np.float64)
    y, slopes = np.moveaxis(f, axis, -1), np.moveaxis(result, axis, -1)
    is_even = np.ndim(steps) == 0
    if is_even:
        slopes[..., 1:-1] = (y[..., 2:] - y[..., :-2]) / (2.0 * steps)
    else:
        h, k = steps[:-1], steps[1:]
        before, here, after = -k / (h * (h + k)), (k - h) / (h * k), h / (k * (h + k))
        slopes[..., 1:-1] = before * y[..., :-2] + here * y[..., 1:-1] + after * y[..., 2:]
    if edge_order == 1:
        slopes[..., 0] = (y[..., 1] - y[..., 0]) / (steps if is_even else steps[0])
        slopes[..., -1] = (y[..., -1] - y[..., -2]) / (steps if is_even else steps[-1])
        return result
    if is_even:
        head = -1.5 / steps, 2.0 / steps, -0.5 / steps
        tail = 0.5 / steps, -2.0 / steps, 1.5 / steps
    else:
        h, k = steps[0], steps[1]
        head = -(2.0 * h + k) / (h * (h + k)), (h + k) / (h * k), -h / (k * (h + k))
        h, k = steps[-2], steps[-1]
        tail = k / (h * (h + k)), -(k + h) / (h * k), (2.0 * k + h) / (k * (h + k))
    slopes[..., 0] = head[0] * y[..., 0] + head[1] * y[..., 1] + head[2] * y[..., 2]
    slopes[..., -1] = tail[0] * y[..., -3] + tail[1] * y[..., -2] + tail[2] * y[..., -1]
    return result


@implements(np.convolve)
@numpy_program
def convolve(a: Any, v: Any, mode: Any = "full") -> Any:
    given = np.atleast_1d(a), np.atleast_1d(v)
    _require_rows(given, ("a", "v"))
    one, other, _ = _longer_first(*given)
    return _slid(one, other[::-1], mode)


@implements(np.correlate)
@numpy_program
def correlate(a: Any, v: Any, mode: Any = "valid") -> Any:
    first, second = np.asarray(a), np.asarray(v)
    _require_rows((first, second), ("first array argument", "second array argument"))
    if np.iscomplexobj(second):
        second = np.conj(second)
    one, other, is_swapped = _longer_first(first, second)
    result = _slid(one, other, mode)
    if isinstance(is_swapped, bool):
        return result[::-1].copy() if is_swapped else result
    return np.where(is_swapped, result[::-1], result)


def _require_rows(arrays: Sequence[Any], names: Sequence[str]) -> None:
    for name, array in zip(names, arrays, strict=True):
        if array.ndim != 1:
            how = "too deep" if array.ndim else "of too small depth"
            raise ShapeError(f"object {how} for desired array", fix="pass rows")
        words = f"{name} cannot be empty"
        if not require_at_least(array.cells.shape[0], 1, "ValueError", words):
            raise ShapeError(words, fix="pass numbers")


def _longer_first(one: Any, other: Any) -> tuple[Any, Any, Any]:
    """The longer row, the shorter one, and whether they have changed places, which of rows whose lengths are
    known only in the run is known only there."""
    first, second = one.cells.shape[0], other.cells.shape[0]
    if is_at_least(first - second, 0):
        return one, other, False
    if is_at_least(second - first, 1):
        return other, one, True
    return _chosen_by_length(one, other)


@numpy_program
def _chosen_by_length(one: Any, other: Any) -> tuple[Any, Any, Any]:
    kind = np.result_type(one, other)
    is_swapped = np.asarray(len(other) > len(one))
    pairs = (one, other, max(len(one), len(other))), (other, one, min(len(one), len(other)))
    longer, shorter = (
        np.where(
            is_swapped,
            np.take(second, np.arange(count), mode="clip"),
            np.take(first, np.arange(count), mode="clip"),
        ).astype(kind)
        for first, second, count in pairs
    )
    return longer, shorter, is_swapped


@numpy_program
def _slid(one: Any, other: Any, mode: Any) -> Any:
    """The inner product of `other` and what it lies over, at each place over `one` and those beyond its ends
    that the mode names. Only what lies over `one` is multiplied: infinity times nothing is no NaN."""
    ahead, behind = _margins(mode, other)
    kind = np.result_type(one, other)
    one, other = one.astype(kind), other.astype(kind)
    width, places = len(other), len(one) - len(other) + 1
    result = np.empty(ahead + places + behind, kind)
    result[ahead : ahead + places] = np.lib.stride_tricks.sliding_window_view(one, width) @ other
    for over in range(width - ahead, width):
        result[over - width + ahead] = one[:over] @ other[width - over :]
    for over in range(width - behind, width):
        result[-1 - (over - width + behind)] = one[len(one) - over :] @ other[:over]
    return result


@numpy_program
def _margins(mode: Any, other: Any) -> tuple[Any, Any]:
    """How many places there are before and after those where `other` lies over the
    longer array."""
    room = len(other) - 1
    if mode == "full":
        return room, room
    if mode == "same":
        return len(other) // 2, room - len(other) // 2
    if mode != "valid":
        words = f"mode must be one of 'valid', 'same', or 'full' (got {mode!r})"
        raise ShapeError(words, fix="use mode='full'")
    return 0, 0


def _require_samples(known: Any, values: Any) -> None:
    words = "array of sample points is empty"
    if known.ndim and not require_at_least(known.cells.shape[0], 1, "ValueError", words):
        raise ShapeError(words, fix="pass samples")
    words = "fp and xp are not of the same length."
    if known.ndim != 1 or not same_shape(known.cells.shape, values.cells.shape, words):
        raise ShapeError(words, fix="pass two rows of one length")
