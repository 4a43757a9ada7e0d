"""Python's and NumPy's integers as affine expressions, and back as scalars that arithmetic takes."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from ...ir.conditions import compare
from ...ir.dtype import I64, Kind
from ...ir.expr import Apply, Cast, Const, Expr, Index, Load, dtype_of
from ...ir.index import Affine
from ...ir.ops import Op
from ..record.facts import Argument
from ..record.retrace import Site
from ..record.trace import Trace
from .array import SymbolicArray
from .integer import BEYOND, LARGEST, SymbolicInt

__all__ = ["as_affine", "as_scalar", "integer_of", "require_int64"]


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
        if value.weak is int and (parts := _sum(cell, trace)) is not None:
            return parts
        require_int64(cell, trace)
        return trace.bind(cell if value.element_type is I64 else Cast(cell, I64))
    if isinstance(value, (int, np.integer)) and type(value) is not bool:
        return Affine.of(int(value))
    return None


def integer_of(value: Any, trace: Trace) -> Affine:
    """As `as_affine`, of what must be an integer. Raises TypeError, as Python does."""
    known = value if type(value) is Affine else as_affine(value, trace)
    return Affine.of(operator.index(value)) if known is None else known


def require_int64(number: Expr, trace: Trace) -> None:
    """Stop a run whose integer is too large for an int64, as only a uint64 can be."""
    dtype = dtype_of(number)
    if dtype.kind is Kind.UINT and dtype.bits == I64.bits:
        fits = compare("less_equal", number, Const(LARGEST, dtype))
        trace.check((), lambda _: fits, "OverflowError", BEYOND)


def _sum(expr: Expr, trace: Trace) -> Affine | None:
    """The expression as a sum of numbers that do not change; None where it is something else."""
    match expr:
        case Const(value=int() as number):
            return Affine.of(number)
        case Index(value=value):
            return value
        case Load(tensor=tensor, index=()) if tensor.dtype is I64:
            origin = trace.origin(tensor)
            if isinstance(origin, Argument):
                return trace.bind(expr)
            return None if origin is None or isinstance(origin, Site) else _sum(origin, trace)
        case Apply(op=Op(name="negative"), args=(arg,)):
            negated = _sum(arg, trace)
            return None if negated is None else -negated
        case Apply(op=Op(name="add" | "subtract" | "multiply" as name), args=(left, right)):
            return _joined(name, _sum(left, trace), _sum(right, trace))
        case _:
            return None


def _joined(name: str, left: Affine | None, right: Affine | None) -> Affine | None:
    if left is None or right is None:
        return None
    if name == "add":
        return left + right
    if name == "subtract":
        return left - right
    if left.is_constant:
        return right * left.offset
    return left * right.offset if right.is_constant else None


def as_scalar(value: SymbolicInt, trace: Trace) -> SymbolicArray:
    """The integer as a traced Python scalar, for arithmetic with floats and arrays."""
    trace.require_alive(value.value.symbols)
    view = trace.compute((), I64, lambda _: Index(value.value))
    return SymbolicArray(view, trace, weak=int)
