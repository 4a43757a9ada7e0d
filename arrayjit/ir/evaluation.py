"""Definitions run on NumPy arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .dtype import DType, from_numpy
from .ops import OPS

__all__ = ["Evaluation"]

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
        return value.astype(dtype.numpy)

    def dtype(self, value: Values) -> DType:
        return from_numpy(value.dtype)

    def known(self, value: Values) -> bool | int | float | None:
        return None if np.ndim(value) else value.item()
