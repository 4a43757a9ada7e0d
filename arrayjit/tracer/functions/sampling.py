"""Functions of neighbouring samples, as NumPy programs: `interp`, `convolve`, `correlate`."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import ShapeError
from ..record.registry import implements
from ..record.trace import user_location
from ..values.extents import require_at_least, same_shape
from .adopted import numpy_program

__all__: list[str] = []


@implements(np.interp)
@numpy_program
def interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None) -> Any:
    """On the line through the two samples around each place, in the steps that NumPy takes."""
    places, known, values = (np.asarray(given, dtype=np.float64) for given in (x, xp, fp))
    if period is not None:
        places, known = places % abs(period), known % abs(period)
        order = np.argsort(known)
        known, values = known[order], values[order]
        known = np.concatenate((known[-1:] - abs(period), known, known[:1] + abs(period)))
        values = np.concatenate((values[-1:], values, values[:1]))
    _require_samples(known, values)
    last = len(known) - 1
    before = np.clip(np.searchsorted(known, places, side="right") - 1, 0, last)
    after = np.minimum(before + 1, last)
    start, end = known[before], known[after]
    is_between = (start < places) & (places < end)
    # Elsewhere, where nobody sees it, the line goes from (0, 0) to (1, 0): no NaN comes of infinite samples.
    given = (places, 0), (start, 0), (end, 1), (values[before], 0), (values[after], 0)
    line = _on_line(*(np.where(is_between, each, otherwise) for each, otherwise in given))
    result = np.where(is_between, line, values[before])
    result = np.where(places < known[0], values[0] if left is None else left, result)
    result = np.where(places > known[-1], values[-1] if right is None else right, result)
    return np.where(np.isnan(places) & np.not_equal(len(known), 1), places, result)[()]


def _on_line(place: Any, start: Any, end: Any, low: Any, high: Any) -> Any:
    """Between `low` at the start and `high` at the end. NumPy goes from the start, where that gives NaN from
    the end, and where both do but the values are the same that is it. What would be NaN on the way is not
    computed."""
    is_same = low == high
    is_infinite = is_same & np.isinf(low)
    rise = np.where(is_infinite, 0, high) - np.where(is_infinite, 0, low)
    slope = rise / (end - start)
    step = place - start
    is_backwards = np.isinf(step) | np.isinf(low)
    step = np.where(is_backwards, place - end, step)
    is_endless = is_same & np.isinf(step)
    line = slope * np.where(is_endless, 0, step) + np.where(is_backwards, high, low)
    return np.where(is_endless, low, line)


@implements(np.convolve)
@numpy_program
def convolve(a: Any, v: Any, mode: Any = "full") -> Any:
    one, other = np.atleast_1d(a), np.atleast_1d(v)
    if len(other) > len(one):
        one, other = other, one
    return np.correlate(one, other[::-1], mode)


@implements(np.correlate)
@numpy_program
def correlate(a: Any, v: Any, mode: Any = "valid") -> Any:
    """Each place of the shorter array over the longer one, with zeros around it, gives an inner product."""
    one, other = np.atleast_1d(a), np.atleast_1d(v)
    is_swapped = len(other) > len(one)
    if is_swapped:
        one, other = other, one
    ahead, behind = _margins(mode, one, other)
    kind = np.result_type(one, other)
    padded = np.pad(one.astype(kind), (ahead, behind))
    windows = np.lib.stride_tricks.sliding_window_view(padded, len(other))
    result = windows @ other.astype(kind)
    return result[::-1] if is_swapped else result


def _margins(mode: Any, one: Any, other: Any) -> tuple[Any, Any]:
    """How many zeros stand before and after the longer array."""
    for name, array in (("a", one), ("v", other)):
        if array.ndim != 1:
            raise ShapeError("object too deep for desired array", loc=user_location(), fix="pass rows")
        if array.shape == (0,):
            raise ShapeError(f"{name} cannot be empty", loc=user_location(), fix="pass numbers")
    room = len(other) - 1
    if mode == "full":
        return room, room
    if mode == "same":
        return len(other) // 2, room - len(other) // 2
    if mode != "valid":
        words = f"mode must be one of 'valid', 'same', or 'full' (got {mode!r})"
        raise ShapeError(words, loc=user_location(), fix="use mode='full'")
    return 0, 0


def _require_samples(known: Any, values: Any) -> None:
    words = "array of sample points is empty"
    if known.ndim and not require_at_least(known.cells.shape[0], 1, "ValueError", words):
        raise ShapeError(words, loc=user_location(), fix="pass samples")
    words = "fp and xp are not of the same length."
    if known.ndim != 1 or not same_shape(known.cells.shape, values.cells.shape, words):
        raise ShapeError(words, loc=user_location(), fix="pass two rows of one length")
