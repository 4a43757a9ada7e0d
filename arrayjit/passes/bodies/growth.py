"""Tests of whether sums and differences of int64s stay within 64 bits, as they are written over numbers that
wrap around: such a result lies on the wrong side of an operand."""

from __future__ import annotations

from ...ir.dtype import I64
from ...ir.expr import Apply, Const, Expr
from ...ir.ops import OPS

__all__ = ["staying"]

ADD, SUBTRACT = OPS["add"], OPS["subtract"]
XOR, AND = OPS["bitwise_xor"], OPS["bitwise_and"]
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


def _is_sum(result: Apply) -> bool:
    return result.op in (ADD, SUBTRACT) and result.dtype is I64
