"""Python's operators on symbolic arrays: the rows of the op table that have a `dunder`.

Arrays are written in place by `+=` and its kin; scalars, which are immutable, are rebound. Python
scalars among themselves follow Python, not NumPy: see `scalars.py`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...ir.ops import OPS, Op
from ..record.registry import FUNCTIONS, METHODS, AnyCallable, implements, method
from .array import SymbolicArray
from .elementwise import elementwise
from .scalars import is_python_scalar, python_operator

__all__ = ["power"]

_SHORT_CUTS = {-1: "reciprocal", 0.5: "sqrt", 1: "positive", 2: "square"}


def _applied(op: Op, *operands: Any) -> SymbolicArray:
    if all(is_python_scalar(operand) for operand in operands):
        return python_operator(op, *operands)
    return _raised(*operands) if op.dunder == "pow" else elementwise(op, *operands)


def power(base: Any, exponent: Any, out: SymbolicArray | None = None) -> SymbolicArray:
    """`np.power`, with NumPy's short cuts for float arrays and constant exponents."""
    if _is_array(base) and base.element_type.is_inexact:
        short_cut = _SHORT_CUTS.get(exponent) if type(exponent) in (int, float) else None
        if short_cut is not None:
            return elementwise(OPS[short_cut], base, out=out)
    return elementwise(OPS["power"], base, exponent, out=out)


def _raised(base: Any, exponent: Any, out: SymbolicArray | None = None) -> SymbolicArray:
    """`base ** exponent`, where NumPy squares arrays of any dtype: of bools that gives int8."""
    if _is_array(base) and type(exponent) is int and exponent == 2:
        return elementwise(OPS["square"], base, out=out)
    return power(base, exponent, out)


def _is_array(value: Any) -> bool:
    return type(value) is SymbolicArray and not value.is_scalar and value.weak is None


@implements(np.power)
def power_function(
    x1: Any, x2: Any, /, out: Any = None, *, where: Any = None, dtype: Any = None
) -> SymbolicArray:
    plain = where is None and dtype is None
    return (
        power(x1, x2, out) if plain else elementwise(OPS["power"], x1, x2, out=out, where=where, dtype=dtype)
    )


def _forward_operator(op: Op) -> AnyCallable:
    def apply(self: SymbolicArray, *others: Any) -> SymbolicArray:
        return _applied(op, self, *others)

    return apply


def _reflected_operator(op: Op) -> AnyCallable:
    def apply(self: SymbolicArray, other: Any) -> SymbolicArray:
        return _applied(op, other, self)

    return apply


def _in_place_operator(op: Op) -> AnyCallable:
    def apply(self: SymbolicArray, other: Any) -> SymbolicArray:
        if self.is_scalar or self.weak is not None:
            return _applied(op, self, other)
        return (
            _raised(self, other, out=self) if op.dunder == "pow" else elementwise(op, self, other, out=self)
        )

    return apply


for _row in OPS.values():
    if _row.dunder:
        METHODS[f"__{_row.dunder}__"] = _forward_operator(_row)
        METHODS[f"__r{_row.dunder}__"] = _reflected_operator(_row)
        METHODS[f"__i{_row.dunder}__"] = _in_place_operator(_row)


@method("__divmod__")
def divide_with_remainder(left: Any, right: Any) -> tuple[SymbolicArray, SymbolicArray]:
    """`divmod(left, right)`."""
    return _applied(OPS["floor_divide"], left, right), _applied(OPS["remainder"], left, right)


@method("__rdivmod__")
def reflected_divmod(right: SymbolicArray, left: Any) -> tuple[SymbolicArray, SymbolicArray]:
    """`divmod(left, right)` for a left operand that is no symbolic array."""
    return divide_with_remainder(left, right)


@method("__matmul__")
def matmul(left: Any, right: Any) -> Any:
    """`left @ right`."""
    return FUNCTIONS[np.matmul](left, right)


@method("__rmatmul__")
def reflected_matmul(right: SymbolicArray, left: Any) -> Any:
    """`left @ right` for a left operand that is no symbolic array."""
    return FUNCTIONS[np.matmul](left, right)


@method("__imatmul__")
def in_place_matmul(left: SymbolicArray, right: Any) -> Any:
    """`left @= right`."""
    return FUNCTIONS[np.matmul](left, right, out=left)
