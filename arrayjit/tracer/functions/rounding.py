"""Rounding to decimals, by NumPy's own steps."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import DTypeError
from ...ir.dtype import BOOL
from ...ir.ops import op
from ..record.registry import implements, method
from ..values.array import SymbolicArray
from ..values.elementwise import as_array, cast, elementwise, laid
from ..values.layout import copy_order
from .operands import deliver

__all__ = ["round_"]


@implements(np.round, np.around)
@method("round")
def round_(a: Any, decimals: int = 0, out: Any = None) -> SymbolicArray:
    """To decimals, into an array that lies as Fortran's do if the given one does, else as C's do."""
    array = as_array(a)
    is_scaled = decimals < 0 or (decimals > 0 and array.element_type.is_inexact)
    order = copy_order(array.cells, "A" if is_scaled else "K")
    return deliver(laid(_rounded(array, decimals), order), out)


def _rounded(array: SymbolicArray, decimals: int) -> SymbolicArray:
    dtype = array.element_type
    if dtype is BOOL and decimals:
        operation = "multiply" if decimals > 0 else "divide"
        raise DTypeError(
            f"Cannot cast ufunc '{operation}' output from dtype('float64') to dtype('bool')",
            fix="convert it first: x.astype(float)",
        )
    if not dtype.is_inexact and dtype is not BOOL:
        if decimals >= 0:
            return elementwise(op("positive"), array)
        array = elementwise(op("divide"), array, float(10**-decimals))
        scaled = elementwise(op("multiply"), elementwise(op("rint"), array), float(10**-decimals))
        return cast(scaled, dtype)
    if decimals == 0:
        return elementwise(op("rint"), array)
    before, after = ("multiply", "divide") if decimals > 0 else ("divide", "multiply")
    factor = float(10 ** abs(decimals))
    scaled = elementwise(op("rint"), elementwise(op(before), array, factor))
    return elementwise(op(after), scaled, factor)


@implements(np.fix)
def fix(x: Any, out: Any = None) -> Any:
    return np.trunc(as_array(x), out=out)
