"""Tests of whether sums, differences and products of int64s stay within 64 bits, as they are written over
numbers that wrap around: a sum then lies on the wrong side of an operand, a product of float64s is larger."""

from __future__ import annotations

from ...ir.dtype import I64
from ...ir.expr import Apply, Cast, Const, Expr, dtype_of
from ...ir.ops import OPS

__all__ = ["multiplied", "staying"]

ADD, SUBTRACT = OPS["add"], OPS["subtract"]
XOR, AND = OPS["bitwise_xor"], OPS["bitwise_and"]
MULTIPLY, ABSOLUTE, LESS = OPS["multiply"], OPS["absolute"], OPS["less"]
SURELY = 2.0**63 - 2.0**12
"""Smaller products of float64s are those of int64s that fit: three roundings change less than 2**-51."""

MOST, LEAST = OPS["less_equal"], OPS["greater_equal"]


def staying(condition: Expr) -> Apply | None:
    """The sum or difference that does not wrap around where a condition holds, and does where it does not."""
    match condition:
        case Apply(
            op=op,
            args=(
                Apply(
                    op=both,
                    args=(
                        Apply(op=turned, args=(left, Apply() as result)),
                        Apply(op=across, args=(right, other)),
                    ),
                ),
                Const(value=0),
            ),
        ) if op is LEAST and both is AND and turned is across is XOR:
            is_tested = result.args == (left, right) and other == (result if result.op is ADD else left)
            return result if is_tested and _is_sum(result) else None
        case Apply(op=op, args=(Apply(args=(one, other)) as result, operand)) if op in (MOST, LEAST):
            constant = other if operand == one else one if operand == other and result.op is ADD else None
            if not isinstance(constant, Const) or not _is_sum(result):
                return None
            return result if (op is LEAST) == ((constant.value >= 0) == (result.op is ADD)) else None
        case _:
            return None


def multiplied(condition: Expr) -> Apply | None:
    """The product that does not wrap around where a condition holds."""
    match condition:
        case Apply(
            op=less,
            args=(
                Apply(op=size, args=(Apply(op=product, args=(Cast(arg=one), Cast(arg=other))),)),
                Const(value=most),
            ),
        ) if less is LESS and size is ABSOLUTE and product is MULTIPLY and 0 <= most <= SURELY:
            is_whole = dtype_of(one) is dtype_of(other) is I64
            return Apply(MULTIPLY, (one, other), I64) if is_whole else None
        case _:
            return None


def _is_sum(result: Apply) -> bool:
    return result.op in (ADD, SUBTRACT) and result.dtype is I64
