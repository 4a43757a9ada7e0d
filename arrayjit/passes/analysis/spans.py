"""Between which ends numbers lie: integers, and float64s that are surely finite.

    t: i32 = cast(image[i, j], i32)                 0 to 255
    t1: f64 = cast(t * t, f64)                      0.0 to 65025.0
    t2: f64 = sqrt(t1)                              0.0 to 255.0

Rounding keeps the order of numbers, so that the rounded ends of a result are ends of the rounded result
(Moore, Interval analysis, 1966). Integers that would wrap around lie anywhere.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Union

from ...ir.dtype import F64, DType, Kind
from ...ir.expr import Apply, Cast, Expr, dtype_of
from ...ir.ops import OPS, Op

__all__ = ["Span", "around", "comparison", "computed", "converted", "held", "is_always", "result"]

WHERE = OPS["where"]

Number = Union[int, float]
Span = tuple[Number, Number]
"""The least and the greatest value."""


def held(dtype: DType) -> tuple[int, int] | None:
    """The integers that a type narrower than int64 holds."""
    if dtype.kind is Kind.BOOL:
        return 0, 1
    if not dtype.is_integer or dtype.bits == 64:
        return None
    is_signed = dtype.kind is Kind.INT
    return (-(2 ** (dtype.bits - 1)), 2 ** (dtype.bits - 1) - 1) if is_signed else (0, 2**dtype.bits - 1)


def converted(span: Span, dtype: DType) -> Span | None:
    """Numbers between these ends as another type."""
    low, high = span
    if dtype is F64:
        return float(low), float(high)
    return _fitting((int(low), int(high)), dtype) if dtype.is_integer else None


def result(op: Op, spans: list[Span], dtype: DType) -> Span | None:
    """What an operation gives for operands between such ends, all of the type of the result."""
    rule = _RULES.get(op)
    if rule is None or (op in _FLOAT and dtype is not F64) or (op in _WHOLE and not dtype.is_integer):
        return None
    try:
        found = rule(*spans)
    except OverflowError:
        return None
    return None if found is None else _fitting(found, dtype)


def computed(expr: Expr, ends: Callable[[Expr], Span | None]) -> Span | None:
    """Between which ends a value lies that is computed, by those of its operands; None where they do not
    tell."""
    dtype = dtype_of(expr)
    match expr:
        case Cast(arg=arg):
            known = ends(arg)
            return None if known is None else converted(known, dtype)
        case Apply(op=op, args=(_, *choices)) if op is WHERE:
            spans = [span for span in map(ends, choices) if span is not None]
            return around(spans) if len(spans) == len(choices) else None
        case Apply(op=op, args=args) if all(dtype_of(arg) is dtype for arg in args):
            spans = [span for span in map(ends, args) if span is not None]
            return result(op, spans, dtype) if len(spans) == len(args) else None
        case _:
            return None


def around(spans: Sequence[Span]) -> Span:
    """The ends of numbers that lie between any of these."""
    return min(low for low, _ in spans), max(high for _, high in spans)


def comparison(op: Op, left: Span, right: Span) -> bool | None:
    """How two numbers compare, where their ends tell."""
    if op in _TURNED:
        known = comparison(_TURNED[op], left, right)
        return None if known is None else not known
    if op in (OPS["greater"], OPS["greater_equal"]):
        return comparison(OPS["less" if op is OPS["greater"] else "less_equal"], right, left)
    if op is OPS["less"]:
        return True if left[1] < right[0] else False if left[0] >= right[1] else None
    if op is OPS["less_equal"]:
        return True if left[1] <= right[0] else False if left[0] > right[1] else None
    if left[1] < right[0] or right[1] < left[0]:
        return False
    return True if left[0] == left[1] == right[0] == right[1] else None


def is_always(op: Op) -> bool | None:
    """What a question about a finite number comes out as; None for other questions."""
    return _QUESTIONS.get(op)


def _fitting(span: Span, dtype: DType) -> Span | None:
    """The ends, if what lies between them is of the type: a finite number, or an integer that it holds."""
    low, high = span
    if dtype is F64:
        return span if math.isfinite(low) and math.isfinite(high) else None
    known = (-(2**63), 2**63 - 1) if dtype.bits == 64 and dtype.kind is Kind.INT else held(dtype)
    return span if known is not None and known[0] <= low and high <= known[1] else None


def _products(left: Span, right: Span) -> Span:
    ends = [one * other for one in left for other in right]
    return min(ends), max(ends)


def _quotients(left: Span, right: Span) -> Span | None:
    if right[0] <= 0 <= right[1]:
        return None
    ends = [one / other for one in left for other in right]
    return min(ends), max(ends)


def _rests(left: Span, right: Span) -> Span | None:
    """Of divisors that are positive."""
    return (0, right[1] - 1) if right[0] > 0 else None


def _whole_quotients(left: Span, right: Span) -> Span | None:
    """By divisors that are positive."""
    if right[0] <= 0:
        return None
    ends = [one // other for one in left for other in right]
    return min(ends), max(ends)


def _common_bits(left: Span, right: Span) -> Span | None:
    """A number without a sign has no more bits in common with another one than it has."""
    plain = [span[1] for span in (left, right) if span[0] >= 0]
    return (0, min(plain)) if plain else None


def _all_bits(left: Span, right: Span) -> Span | None:
    """Numbers without a sign have no bits together that neither has."""
    bits = int(max(left[1], right[1])).bit_length()
    return (0, 2**bits - 1) if left[0] >= 0 and right[0] >= 0 else None


def _shifted(left: Span, right: Span) -> Span | None:
    """Shifts by negative numbers leave nothing of a number without a sign."""
    if right[0] < 0:
        return (0, left[1]) if left[0] >= 0 else None
    ends = [int(one) >> min(int(other), 64) for one in left for other in right]
    return min(ends), max(ends)


def _shifted_up(left: Span, right: Span) -> Span | None:
    """What a shift moves out of a number is lost, and so are numbers that do not fit."""
    if right[0] < 0 or right[1] >= 64:
        return None
    ends = [int(one) << int(other) for one in left for other in right]
    return min(ends), max(ends)


def _sizes(span: Span) -> Span:
    return max(0, span[0], -span[1]), max(span[1], -span[0])


def _roots(span: Span) -> Span | None:
    return (math.sqrt(span[0]), math.sqrt(span[1])) if span[0] >= 0 else None


def _rounded(function: Callable[[float], int]) -> Callable[[Span], Span]:
    return lambda span: (float(function(span[0])), float(function(span[1])))


_RULES: Mapping[Op, Callable[..., Span | None]] = {
    OPS["add"]: lambda left, right: (left[0] + right[0], left[1] + right[1]),
    OPS["subtract"]: lambda left, right: (left[0] - right[1], left[1] - right[0]),
    OPS["multiply"]: _products,
    OPS["divide"]: _quotients,
    OPS["negative"]: lambda span: (-span[1], -span[0]),
    OPS["absolute"]: _sizes,
    OPS["fabs"]: _sizes,
    OPS["square"]: lambda span: (_sizes(span)[0] * _sizes(span)[0], _sizes(span)[1] * _sizes(span)[1]),
    OPS["sqrt"]: _roots,
    OPS["floor"]: _rounded(math.floor),
    OPS["ceil"]: _rounded(math.ceil),
    OPS["trunc"]: _rounded(math.trunc),
    OPS["rint"]: _rounded(round),
    OPS["minimum"]: lambda left, right: (min(left[0], right[0]), min(left[1], right[1])),
    OPS["maximum"]: lambda left, right: (max(left[0], right[0]), max(left[1], right[1])),
    OPS["remainder"]: _rests,
    OPS["floor_divide"]: _whole_quotients,
    OPS["bitwise_and"]: _common_bits,
    OPS["bitwise_or"]: _all_bits,
    OPS["bitwise_xor"]: _all_bits,
    OPS["left_shift"]: _shifted_up,
    OPS["right_shift"]: _shifted,
}
_FLOAT = {OPS[name] for name in ("divide", "fabs", "sqrt", "floor", "ceil", "trunc", "rint")}
_WHOLE = {
    *(OPS[name] for name in ("remainder", "floor_divide", "bitwise_and", "bitwise_or", "bitwise_xor")),
    *(OPS[name] for name in ("left_shift", "right_shift")),
}
_TURNED = {OPS["not_equal"]: OPS["equal"]}
_QUESTIONS = {OPS["isnan"]: False, OPS["isinf"]: False, OPS["isfinite"]: True}
