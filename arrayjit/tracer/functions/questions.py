"""What NumPy tells of an array without looking at its numbers: its shape, its dtype."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..record.registry import implements
from ..values.elementwise import as_array
from ..values.extents import product
from ..values.integer import python_int
from .operands import axes_of, kind_of

__all__ = ["ndim", "result_type", "shape", "size"]


@implements(np.shape)
def shape(a: Any) -> tuple[int, ...]:
    return as_array(a).shape


@implements(np.ndim)
def ndim(a: Any) -> int:
    return as_array(a).ndim


@implements(np.size)
def size(a: Any, axis: Any = None) -> int:
    array = as_array(a)
    count = product(array.cells.shape[one] for one in axes_of(axis, array.ndim))
    return python_int(count, array.record)  # type: ignore[return-value]


@implements(np.result_type)
def result_type(*arrays_and_dtypes: Any) -> np.dtype[Any]:
    return np.result_type(*map(kind_of, arrays_and_dtypes))
