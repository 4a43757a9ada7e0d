"""Rounding to decimals, by NumPy's own steps."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import DTypeError
from ...ir.dtype import BOOL
from ...ir.ops import op
from ..record.registry import implements, method
from ..record.trace import user_location
from ..values.array import SymbolicArray
from ..values.elementwise import as_array, cast, elementwise
from .operands import deliver

__all__ = ["round_"]


@implements(np.round, np.around)
@method("round")
def round_(a: Any, decimals: int = 0, out: Any = None) -> SymbolicArray:
    array = as_array(a)
    dtype = array.element_type
    if dtype is BOOL and decimals:
        operation = "multiply" if decimals > 0 else "divide"
        raise DTypeError(
            f"Cannot cast ufunc '{operation}' output from dtype('float64') to dtype('bool')",
            loc=user_location(),
            fix="convert it first: x.astype(float)",
        )
    if not dtype.is_inexact and dtype is not BOOL:
        if decimals >= 0:
            return deliver(elementwise(op("positive"), array), out)
        array = elementwise(op("divide"), array, float(10**-decimals))
        scaled = elementwise(op("multiply"), elementwise(op("rint"), array), float(10**-decimals))
        return deliver(cast(scaled, dtype), out)
    if decimals == 0:
        return deliver(elementwise(op("rint"), array), out)
    before, after = ("multiply", "divide") if decimals > 0 else ("divide", "multiply")
    factor = float(10 ** abs(decimals))
    scaled = elementwise(op("rint"), elementwise(op(before), array, factor))
    return deliver(elementwise(op(after), scaled, factor), out)


@implements(np.fix)
def fix(x: Any, out: Any = None) -> SymbolicArray:
    return deliver(elementwise(op("trunc"), x), out)
