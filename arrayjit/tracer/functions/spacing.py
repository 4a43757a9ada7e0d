"""`np.linspace`, of numbers of which how many there are is known while tracing, or in the run."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import ShapeError
from ...ir.ops import op
from ..indices.indexing import setitem
from ..record.registry import creates, implements
from ..record.trace import current_trace
from ..values.array import SymbolicArray
from ..values.elementwise import as_array, cast, constant_array, elementwise, is_traced
from ..values.extents import known_number
from ..values.numbers import integer_of
from .adopted import numpy_program
from .creation import arange
from .operands import common_dtype, element_type
from .reductions import reduce_array
from .shaping import insert_axes, moveaxis

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
    if count is None:
        return _counted_in_the_run(start, stop, num, endpoint, retstep, dtype, axis)
    if count < 0:
        raise ShapeError(f"Number of samples, {count}, must be non-negative.")
    intervals = count - 1 if endpoint else count
    computed = common_dtype(start, stop, 1.0)
    low, high = as_array(start), as_array(stop)
    kind = element_type(dtype, computed)
    low, high = cast(low, computed), cast(high, computed)
    delta = elementwise(op("subtract"), high, low)
    step = elementwise(op("divide"), delta, intervals) if intervals > 0 else as_array(np.nan)
    counted = insert_axes(cast(arange(count), computed), range(1, delta.ndim + 1))
    if intervals > 0:
        by_step = elementwise(op("multiply"), counted, step)
        by_part = elementwise(op("multiply"), elementwise(op("divide"), counted, intervals), delta)
        ahead = elementwise(op("where"), _any(elementwise(op("equal"), step, 0)), by_part, by_step)
    else:
        ahead = elementwise(op("multiply"), counted, delta)
    result = elementwise(op("add"), ahead, low)
    if endpoint and count > 1:
        setitem(result, (-1, ...), high)
    if kind.is_integer:
        result = elementwise(op("floor"), result)
    result = moveaxis(result if kind is result.element_type else cast(result, kind), 0, axis)
    return (result, step if intervals > 0 else np.nan) if retstep else result


@creates(np.linspace)
def linspace_here(start: Any, stop: Any, num: Any = 50, *args: Any, **kwargs: Any) -> Any:
    """Of numbers that are known while tracing, constants."""
    if is_traced([start, stop, num]):
        return linspace(start, stop, num, *args, **kwargs)
    found = np.linspace(start, stop, num, *args, **kwargs)
    return (constant_array(found[0]), found[1]) if isinstance(found, tuple) else constant_array(found)


def _any(flags: SymbolicArray) -> SymbolicArray:
    """Whether any number holds, as NumPy asks of the steps to all ends together."""
    return reduce_array(op("logical_or"), flags) if flags.ndim else flags


@numpy_program
def _counted_in_the_run(
    start: Any, stop: Any, num: Any, endpoint: bool, retstep: bool, dtype: Any, axis: int
) -> Any:
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
    return (result, np.where(np.greater(intervals, 0), step, np.nan)[()]) if retstep else result
