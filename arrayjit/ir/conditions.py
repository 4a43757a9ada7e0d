"""Conditions of scalars as expressions, and what is chosen by them."""

from __future__ import annotations

from .dtype import BOOL, DType
from .expr import Apply, Expr, dtype_of
from .ops import OPS, Op

__all__ = ["BEYOND", "both", "compare", "either", "is_compared", "is_nan", "one_of", "opposite"]

BEYOND = {OPS["maximum"]: "greater", OPS["minimum"]: "less"}
"""How an extreme compares with what it is chosen over: of equal ones, zeros with signs among them, the last
is taken, as NumPy does it down columns. Where such an extreme is a primitive, it is the target's to say."""


def is_compared(op: Op, dtype: DType) -> bool:
    """Is it an extreme that is found by comparing?"""
    return op in BEYOND and op.definition((dtype, dtype)) is not None


def compare(op: str, one: Expr, other: Expr) -> Expr:
    """Two values of one dtype compared, as in `compare("less", i, n)`."""
    return Apply(OPS[op], (one, other), BOOL)


def is_nan(value: Expr) -> Expr:
    return Apply(OPS["isnan"], (value,), BOOL)


def both(one: Expr, other: Expr) -> Expr:
    return Apply(OPS["logical_and"], (one, other), BOOL)


def either(one: Expr, other: Expr) -> Expr:
    return Apply(OPS["logical_or"], (one, other), BOOL)


def opposite(condition: Expr) -> Expr:
    """Whether a condition does not hold."""
    return Apply(OPS["logical_not"], (condition,), BOOL)


def one_of(condition: Expr, value: Expr, other: Expr) -> Apply:
    """The one value or the other, which have one dtype."""
    return Apply(OPS["where"], (condition, value, other), dtype_of(value))
