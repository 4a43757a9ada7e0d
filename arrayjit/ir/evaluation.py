"""Definitions run on NumPy arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..processor import is_arm
from .dtype import DType, from_numpy
from .ops import OPS

__all__ = ["Evaluation", "converted"]

Values = NDArray[Any]


class Evaluation:
    """A `Builder` whose values are arrays: ops that are derived are their definitions, primitives their
    references."""

    def op(self, name: str, *args: Values) -> Values:
        row = OPS[name]
        definition = row.definition([self.dtype(arg) for arg in args])
        return np.asarray(row.ref(*args) if definition is None else definition(self, *args))

    def const(self, value: bool | int | float, dtype: DType) -> Values:
        return np.asarray(value, dtype.numpy)

    def cast(self, value: Values, dtype: DType) -> Values:
        return converted(value, dtype)

    def dtype(self, value: Values) -> DType:
        return from_numpy(value.dtype)

    def known(self, value: Values) -> bool | int | float | None:
        return None if np.ndim(value) else value.item()


def converted(values: Values, dtype: DType) -> Values:
    """`astype` of each number alone. Of floats that do not fit NumPy's loops on ARM64 give the same only at
    the ends of arrays, which they do not convert a register at a time."""
    if not (is_arm() and dtype.is_integer and from_numpy(values.dtype).is_float):
        return values.astype(dtype.numpy)
    values = np.trunc(values if values.itemsize > 2 else values.astype(np.float32))
    wide = np.iinfo(f"{dtype.kind.value}{max(dtype.bits, 32)}")
    above, below = values >= float(wide.max + 1), values < float(wide.min)
    fits = ~(above | below | np.isnan(values))
    whole = np.where(fits, values, 0).astype(wide.dtype)
    whole = np.where(above, wide.max, np.where(below, wide.min, whole))
    return whole.astype(dtype.numpy)
