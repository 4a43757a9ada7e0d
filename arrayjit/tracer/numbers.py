"""Python's and NumPy's integers as affine expressions, and back as scalars that arithmetic takes."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..ir.dtype import I64, Kind
from ..ir.expr import Cast, Index
from ..ir.index import Affine
from .array import SymbolicArray
from .integer import SymbolicInt
from .trace import Trace

__all__ = ["as_affine", "as_scalar"]


def as_affine(value: Any, trace: Trace) -> Affine | None:
    """The integer that `value` is or stands for; None for what is no integer. Traced scalars are bound to
    a symbol."""
    if type(value) is SymbolicInt:
        trace.require_alive(value.value.symbols)
        return value.value
    if type(value) is SymbolicArray:
        if value.ndim or value.element_type.kind not in (Kind.INT, Kind.UINT):
            return None
        known = trace.known(value.cells)
        if known is not None:
            return Affine.of(int(known[()]))
        cell = value.load(())
        return trace.bind(cell if value.element_type is I64 else Cast(cell, I64))
    if isinstance(value, (int, np.integer)) and type(value) is not bool:
        return Affine.of(int(value))
    return None


def as_scalar(value: SymbolicInt, trace: Trace) -> SymbolicArray:
    """The integer as a traced Python scalar, for arithmetic with floats and arrays."""
    trace.require_alive(value.value.symbols)
    view = trace.compute((), I64, lambda _: Index(value.value))
    return SymbolicArray(view, trace, weak=int)
