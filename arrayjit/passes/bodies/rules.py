"""The rewrite rules of `simplify`: each takes one op applied to simple operands and gives the simpler
expression, or None.

Every rule holds bit for bit under strict IEEE arithmetic (a NaN stays some NaN) and under wrapping
integers: `x + (-0.0)` and `x - 0.0` are `x`, but `x + 0.0` and `0.0 * x` stay. A rule stands in `RULES`
under the ops that it is for.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Union

import numpy as np

from ...ir.conditions import compare, one_of
from ...ir.definitions.layout import mantissa_bits
from ...ir.dtype import BOOL, I64, DType, Kind
from ...ir.expr import Apply, Cast, Const, Expr, Index, Load, Local, constant, dtype_of
from ...ir.ops import OPS

__all__ = ["RULES", "fold", "multiply_bit", "simpler", "simpler_cast"]

Rule = Callable[[Apply], Union[Expr, None]]

# Index arithmetic is exact in the compiler and wraps in int64: fold only far from the edge.
SMALL = 2**31


def simpler(expr: Expr) -> Expr:
    """The expression after every rule for it, its operands being simple already."""
    match expr:
        case Apply():
            for rule in (fold, *_rules_of(expr)):
                if (found := rule(expr)) is not None:
                    return simpler(found)
            return expr
        case Cast():
            found = simpler_cast(expr)
            return expr if found is None else simpler(found)
        case Index(value=value) if value.is_constant and abs(value.offset) < SMALL:
            return Const(value.offset, I64)
        case _:
            return expr


def _rules_of(expr: Apply) -> tuple[Rule, ...]:
    """By name, but only for the table's own ops: a user's op may bear any name."""
    return RULES.get(expr.op.name, ()) if OPS.get(expr.op.name) is expr.op else ()


def fold(expr: Apply) -> Expr | None:
    """An op of constants is a constant."""
    values: list[Const] = []
    for arg in expr.args:
        if type(arg) is not Const:
            return None
        values.append(arg)
    with np.errstate(all="ignore"):
        result = expr.op.ref(*(np.full(1, value.value, value.dtype.numpy) for value in values))
    return constant(result[0], expr.dtype) if result.dtype == expr.dtype.numpy else None


def simpler_cast(expr: Cast) -> Expr | None:
    """Casts to the same type, of constants and choices between them, and through a type that holds every
    value."""
    source, dtype = dtype_of(expr.arg), expr.dtype
    if source is dtype:
        return expr.arg
    match expr.arg:
        case Const(value=value) if not _out_of_range(value, dtype):
            return constant(value, dtype)
        case Cast(arg=inner) if _casts_alike(dtype_of(inner), source, dtype):
            return Cast(inner, dtype)
        case Apply(op=op, args=(condition, Const() as x, Const() as y)) if op is OPS["where"]:
            chosen = simpler(Cast(x, dtype)), simpler(Cast(y, dtype))
            known = all(isinstance(value, Const) for value in chosen)
            return Apply(op, (condition, *chosen), dtype) if known else None
        case _:
            return None


def _out_of_range(value: float, dtype: DType) -> bool:
    """Is the integer that a float would become left open by C, and so to the target?"""
    if not isinstance(value, float) or not dtype.is_integer:
        return False
    smallest, largest = _limits(dtype)
    return not (math.isfinite(value) and smallest <= math.trunc(value) <= largest)


def _limits(dtype: DType) -> tuple[int, int]:
    """The smallest and the largest integer of an integer type."""
    if dtype.kind is Kind.INT:
        return -(2 ** (dtype.bits - 1)), 2 ** (dtype.bits - 1) - 1
    return 0, 2**dtype.bits - 1


def _casts_alike(first: DType, middle: DType, last: DType) -> bool:
    """Is `first -> middle -> last` the same as `first -> last` for every value?"""
    if not _holds(middle, first):
        return False
    return not middle.is_float or not last.is_integer or _holds(last, first)


def _holds(wide: DType, narrow: DType) -> bool:
    """Is every value of `narrow` one of `wide`?"""
    if narrow is wide or narrow.kind is Kind.BOOL:
        return True
    if wide.kind is Kind.BOOL or (narrow.is_float and not wide.is_float):
        return False
    if wide.is_float:
        return wide.bits > narrow.bits if narrow.is_float else narrow.bits <= mantissa_bits(wide) + 1
    inner, outer = _limits(narrow), _limits(wide)
    return outer[0] <= inner[0] and inner[1] <= outer[1]


def _is(expr: Expr, value: float) -> bool:
    """Is it this very constant? Zeros of floats must agree in sign."""
    if not isinstance(expr, Const) or expr.value != value:
        return False
    return not expr.dtype.is_float or math.copysign(1.0, expr.value) == math.copysign(1.0, value)


def _other(expr: Apply, value: float) -> Expr | None:
    """The operand of a commutative op, of the result's type, that stands beside the constant."""
    first, second = expr.args
    other = first if _is(second, value) else second if _is(first, value) else None
    return other if other is not None and dtype_of(other) is expr.dtype else None


def _same_leaf(expr: Apply) -> Expr | None:
    """The operand that an op of two gets twice; leaves only, since trees are not compared."""
    first, second = expr.args
    return first if isinstance(first, (Local, Load, Index)) and first == second else None


def add_zero(expr: Apply) -> Expr | None:
    """x + 0 for integers, x + (-0.0) for floats."""
    return _other(expr, -0.0 if expr.dtype.is_float else 0)


def subtract_zero(expr: Apply) -> Expr | None:
    """x - 0, for floats x - 0.0."""
    return expr.args[0] if _is(expr.args[1], 0.0 if expr.dtype.is_float else 0) else None


def subtract_itself(expr: Apply) -> Expr | None:
    """x - x of integers."""
    return Const(0, expr.dtype) if expr.dtype.is_integer and _same_leaf(expr) else None


def multiply_one(expr: Apply) -> Expr | None:
    """x * 1."""
    return _other(expr, 1)


def multiply_bit(expr: Apply, is_bit: Callable[[Expr], bool]) -> Expr | None:
    """x * b of integers where b is 0 or 1: a choice takes less time than a product."""
    if expr.op is not OPS["multiply"] or not expr.dtype.is_integer:
        return None
    x, bit = expr.args if is_bit(expr.args[1]) else expr.args[::-1]
    if not is_bit(bit):
        return None
    zero = Const(0, expr.dtype)
    is_set = bit.arg if isinstance(bit, Cast) else compare("not_equal", bit, zero)
    return one_of(is_set, x, zero)


def multiply_zero(expr: Apply) -> Expr | None:
    """x * 0 of integers and bools."""
    if expr.dtype.is_float or _other(expr, 0) is None:
        return None
    return constant(0, expr.dtype)


def fma_nothing(expr: Apply) -> Expr | None:
    """x * y + (-0.0), rounded once."""
    *factors, addend = expr.args
    return Apply(OPS["multiply"], tuple(factors), expr.dtype) if _is(addend, -0.0) else None


def divide_by_power_of_two(expr: Apply) -> Expr | None:
    """x / c = x * (1 / c) where both are exact, as for powers of two (and one)."""
    x, c = expr.args
    if not isinstance(c, Const) or not expr.dtype.is_float or abs(math.frexp(c.value)[0]) != 0.5:
        return None
    if c.value == 1:
        return x
    inverse = constant(1.0 / c.value, c.dtype)
    exact = float(inverse.value) * c.value == 1.0
    return Apply(OPS["multiply"], (x, inverse), expr.dtype) if exact else None


def negate_twice(expr: Apply) -> Expr | None:
    """-(-x)."""
    match expr.args[0]:
        case Apply(op=inner, args=(x,)) if inner is expr.op:
            return x
        case _:
            return None


def absolute_of_sign(expr: Apply) -> Expr | None:
    """|-x| and ||x|| of floats."""
    match expr.args[0]:
        case Apply(op=inner, args=(x,)) if expr.dtype.is_float and inner.name in ("negative", "absolute"):
            return Apply(expr.op, (x,), expr.dtype)
        case _:
            return None


def bits_and_zero(expr: Apply) -> Expr | None:
    """x & 0, False and x."""
    return constant(0, expr.dtype) if _other(expr, 0) is not None else None


def bits_and_ones(expr: Apply) -> Expr | None:
    """x & ~0, True and x."""
    return _other(expr, _ones(expr.dtype))


def bits_or_zero(expr: Apply) -> Expr | None:
    """x | 0, x ^ 0, False or x."""
    return _other(expr, 0)


def bits_or_ones(expr: Apply) -> Expr | None:
    """x | ~0, True or x."""
    ones = _ones(expr.dtype)
    return constant(ones, expr.dtype) if _other(expr, ones) is not None else None


def _ones(dtype: DType) -> int:
    """The value with every bit set."""
    return 1 if dtype is BOOL else -1 if dtype.kind is Kind.INT else 2**dtype.bits - 1


def twice_the_same(expr: Apply) -> Expr | None:
    """x & x, x | x, max(x, x), min(x, x)."""
    leaf = _same_leaf(expr)
    return leaf if leaf is not None and dtype_of(leaf) is expr.dtype else None


def exclusive_of_itself(expr: Apply) -> Expr | None:
    """x ^ x."""
    return constant(0, expr.dtype) if _same_leaf(expr) else None


def shift_by_zero(expr: Apply) -> Expr | None:
    """x << 0, x >> 0."""
    return expr.args[0] if _is(expr.args[1], 0) else None


def compare_itself(expr: Apply) -> Expr | None:
    """x == x and the like, for types without NaN."""
    leaf = _same_leaf(expr)
    if leaf is None or dtype_of(leaf).is_float:
        return None
    return Const(expr.op.name in ("equal", "less_equal", "greater_equal"), BOOL)


def choose_known(expr: Apply) -> Expr | None:
    """where(True, x, y)."""
    condition, x, y = expr.args
    return (x if condition.value else y) if isinstance(condition, Const) else None


def choose_same(expr: Apply) -> Expr | None:
    """where(c, x, x)."""
    _, x, y = expr.args
    return x if isinstance(x, (Local, Load, Index, Const)) and x == y else None


def choose_truth(expr: Apply) -> Expr | None:
    """where(c, True, False)."""
    condition, x, y = expr.args
    return condition if expr.dtype is BOOL and _is(x, 1) and _is(y, 0) else None


def affine_index(expr: Apply) -> Expr | None:
    """Index arithmetic with small constants stays an index."""
    match expr.op.name, expr.args:
        case "add", (Index(value=value), Const(value=c)) | (Const(value=c), Index(value=value)):
            found = value + int(c)
        case "subtract", (Index(value=value), Const(value=c)):
            found = value - int(c)
        case "multiply", (Index(value=value), Const(value=c)) | (Const(value=c), Index(value=value)):
            found = value * int(c)
        case "add", (Index(value=value), Index(value=other)):
            found = value + other
        case _:
            return None
    small = all(abs(number) < SMALL for number in (found.offset, *(c for c, _ in found.terms)))
    return Index(found) if small and expr.dtype is I64 else None


RULES: Mapping[str, tuple[Rule, ...]] = {
    "add": (add_zero, affine_index),
    "subtract": (subtract_zero, subtract_itself, affine_index),
    "multiply": (multiply_one, multiply_zero, affine_index),
    "fma": (fma_nothing,),
    "divide": (divide_by_power_of_two,),
    "negative": (negate_twice,),
    "absolute": (absolute_of_sign,),
    "bitwise_and": (bits_and_zero, bits_and_ones, twice_the_same),
    "bitwise_or": (bits_or_zero, bits_or_ones, twice_the_same),
    "bitwise_xor": (bits_or_zero, exclusive_of_itself),
    "logical_and": (bits_and_zero, bits_and_ones, twice_the_same),
    "logical_or": (bits_or_zero, bits_or_ones, twice_the_same),
    "logical_xor": (bits_or_zero, exclusive_of_itself),
    "raw_left_shift": (shift_by_zero,),
    "raw_right_shift": (shift_by_zero,),
    "equal": (compare_itself,),
    "not_equal": (compare_itself,),
    "less": (compare_itself,),
    "less_equal": (compare_itself,),
    "greater": (compare_itself,),
    "greater_equal": (compare_itself,),
    "maximum": (twice_the_same,),
    "minimum": (twice_the_same,),
    "where": (choose_known, choose_same, choose_truth),
    "rarely": (choose_known, choose_same),
}
