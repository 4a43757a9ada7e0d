"""`np.linspace`, of numbers of which how many there are is known while tracing, or in the run."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import ShapeError
from ..record.registry import creates, implements
from ..record.trace import current_trace
from ..values.elementwise import constant_array, is_traced
from ..values.extents import known_number
from ..values.numbers import integer_of
from .adopted import numpy_program

__all__ = ["linspace"]


@implements(np.linspace)
def linspace(
    start: Any,
    stop: Any,
    num: Any = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: Any = None,
    axis: int = 0,
    *,
    device: Any = None,
) -> Any:
    """NumPy's steps, for ends that are traced; constant ends give a constant."""
    count = known_number(integer_of(num, current_trace()), "how many numbers np.linspace makes")
    if count is not None and count < 0:
        raise ShapeError(f"Number of samples, {count}, must be non-negative.")
    return _spaced(start, stop, num if count is None else count, endpoint, retstep, dtype, axis)


@creates(np.linspace)
def linspace_here(start: Any, stop: Any, num: Any = 50, *args: Any, **kwargs: Any) -> Any:
    """Of numbers that are known while tracing, constants."""
    if is_traced([start, stop, num]):
        return linspace(start, stop, num, *args, **kwargs)
    found = np.linspace(start, stop, num, *args, **kwargs)
    return (constant_array(found[0]), found[1]) if isinstance(found, tuple) else constant_array(found)


@numpy_program
def _spaced(start: Any, stop: Any, num: Any, endpoint: bool, retstep: bool, dtype: Any, axis: int) -> Any:
    computed: Any = np.result_type(start, stop, 1.0)
    low, high = np.asarray(start).astype(computed), np.asarray(stop).astype(computed)
    intervals = num - 1 if endpoint else num
    parts, delta = max(intervals, 1), high - low
    step = delta / parts
    counted: Any = np.arange(num).astype(computed).reshape(-1, *[1] * delta.ndim)
    result: Any = np.where(np.any(step == 0), counted / parts * delta, counted * step) + low
    if endpoint:
        result = np.where((counted == num - 1) & np.greater(num, 1), high, result)
    kind = np.dtype(computed if dtype is None else dtype)
    result = np.moveaxis((np.floor(result) if kind.kind in "iu" else result).astype(kind), 0, axis)
    if not retstep:
        return result
    if type(intervals) is int:
        return result, step if intervals > 0 else np.nan
    return result, np.where(np.greater(intervals, 0), step, np.nan)[()]
