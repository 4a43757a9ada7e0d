"""Elementary functions of float32 computed in float64: right but for the last rounding.

Angles are reduced exactly, whatever their size. float64 itself has no wider type to lean on, so there
these functions stay the C library's.
"""

from __future__ import annotations

import math

from .dtype import F32, F64
from .elementary import clamped, exp_in_span, horner, log_specials, logarithm, natural, rounded
from .terms import Term, definition, fma, where

__all__ = [
    "arccos",
    "arccosh",
    "arcsin",
    "arcsinh",
    "arctan",
    "arctan2",
    "arctanh",
    "cbrt",
    "cos",
    "hypot",
    "power",
    "sin",
    "tan",
]

# 1 / 2 pi in pieces of 28 bits: the product of each with a float32 is exact.
_TURNS = tuple(
    float.fromhex(piece)
    for piece in (
        "0x1.45f306cp-3", "0x1.c9c882ap-31", "0x1.4fe13aap-61", "0x1.e8fa9a6p-89", "0x1.dc0db62p-118",
        "0x1.2b32788p-147", "0x1.c820ff2p-177",
    )
)  # fmt: skip
_SIN_TAIL = (-0.1666666666383839, 0.008333331867597785, -0.0001984008271995345, 2.7249390373707137e-06)
_COS_TAIL = (0.04166666666430764, -0.001388888766604295, 2.4800596992487034e-05, -2.7300507935455277e-07)


# From here on the product with any float32 is below one turn.
_SMALL_TURNS = 5


def _quarters(x: Term) -> tuple[Term, Term]:
    """The nearest number of quarter turns, as a float, and the rest of the angle in radians.

    Whole turns are dropped from each exact product before they are added, so no argument is too large.
    """
    wide = x.cast(F64)
    turns = wide.const(0.0)
    for piece in _TURNS[:_SMALL_TURNS]:
        product = wide * piece
        turns = turns + (product - product.op("rint"))
    for piece in _TURNS[_SMALL_TURNS:]:
        turns = fma(wide, piece, turns)
    quarters = turns * 4.0
    whole = quarters.op("rint")
    return whole.cast(F32), (quarters - whole) * (math.pi / 2)


def _sin_and_cos(r: Term) -> tuple[Term, Term]:
    """For |r| <= pi / 4."""
    square = r * r
    sine = fma(square * r, horner(square, _SIN_TAIL), r)
    cosine = fma(square * square, horner(square, _COS_TAIL), fma(square, -0.5, 1.0))
    return sine, cosine


def _wave(x: Term, ahead: int) -> Term:
    """The sine of x, so many quarter turns ahead."""
    whole, r = _quarters(x)
    count = rounded(whole, 1.0)[1] + ahead
    sine, cosine = _sin_and_cos(r.cast(F32))
    value = where((count & 1) == 0, sine, cosine)
    return where((count & 2) == 0, value, -value)


@definition
def sin(x: Term) -> Term:
    return where(x == 0, x, _wave(x, 0))


@definition
def cos(x: Term) -> Term:
    return _wave(x, 1)


@definition
def tan(x: Term) -> Term:
    whole, r = _quarters(x)
    sine, cosine = _sin_and_cos(r)
    even = (rounded(whole, 1.0)[1] & 1) == 0
    value = where(even, sine, -cosine) / where(even, cosine, sine)
    return where(x == 0, x, value.cast(F32))


# Inverses of the trigonometric functions

_ARCTAN_TAIL = (
    -0.33333333145426575, 0.19999959524513689, -0.14284271567572765, 0.11090976710330429,
    -0.08945650884937206, 0.0707152296510581, -0.049628041666257824, 0.02696133374488506,
    -0.00949291160856497, 0.0015657487863198394,
)  # fmt: skip


def _angle(y: Term, x: Term) -> Term:
    """That of the point (x, y), in float64."""
    across, up = abs(x), abs(y)
    steep = up > across
    shorter, longer = where(steep, across, up), where(steep, up, across)
    ratio = shorter / where(longer == 0, 1.0, longer)
    ratio = where(shorter == math.inf, 1.0, ratio)
    square = ratio * ratio
    angle = fma(ratio * square, horner(square, _ARCTAN_TAIL), ratio)
    angle = where(steep, math.pi / 2 - angle, angle)
    angle = where(x.op("signbit"), math.pi - angle, angle)
    return where((x != x) | (y != y), math.nan, angle).op("copysign", y)


@definition
def arctan(x: Term) -> Term:
    wide = x.cast(F64)
    return _angle(wide, wide.const(1.0)).cast(F32)


@definition
def arctan2(y: Term, x: Term) -> Term:
    return _angle(y.cast(F64), x.cast(F64)).cast(F32)


def _other_leg(x: Term) -> Term:
    """Of a right triangle with hypotenuse 1."""
    return ((1.0 - x) * (x + 1.0)).op("sqrt")


@definition
def arcsin(x: Term) -> Term:
    wide = x.cast(F64)
    return _angle(wide, _other_leg(wide)).cast(F32)


@definition
def arccos(x: Term) -> Term:
    wide = x.cast(F64)
    return _angle(_other_leg(wide), wide).cast(F32)


# Inverses of the hyperbolic functions, roots and powers


@definition
def arcsinh(x: Term) -> Term:
    size = abs(x).cast(F64)
    square = size * size
    grown = size + square / ((square + 1.0).op("sqrt") + 1.0)
    return where(size == math.inf, size, grown.op("log1p")).cast(F32).op("copysign", x)


@definition
def arccosh(x: Term) -> Term:
    above = x.cast(F64) - 1.0
    grown = above + fma(above, above, above * 2.0).op("sqrt")
    return where(above < 0, math.nan, grown.op("log1p")).cast(F32)


@definition
def arctanh(x: Term) -> Term:
    size = abs(x).cast(F64)
    return ((size * 2.0 / (1.0 - size)).op("log1p") * 0.5).cast(F32).op("copysign", x)


@definition
def hypot(x: Term, y: Term) -> Term:
    wide, other = x.cast(F64), y.cast(F64)
    length = fma(wide, wide, other * other).op("sqrt").cast(F32)
    return where((abs(x) == math.inf) | (abs(y) == math.inf), math.inf, length)


@definition
def cbrt(x: Term) -> Term:
    wide = abs(x).cast(F64)
    root = exp_in_span(natural(logarithm(wide)) * (1 / 3))
    return where((wide > 0) & (wide < math.inf), root, wide).cast(F32).op("copysign", x)


@definition
def power(x: Term, y: Term) -> Term:
    """`e**(y log |x|)` in float64, which leaves one rounding, and the special cases of C's `pow`."""
    base = abs(x).cast(F64)
    exponent = y.cast(F64) * log_specials(base, natural(logarithm(base)))
    size = exp_in_span(clamped(exponent, -150.0, 150.0)).cast(F32)
    whole = y == y.op("floor")
    half = y * 0.5
    odd = whole & (half != half.op("floor"))
    result = where(odd, size.op("copysign", x), size)
    result = where((x < 0) & (x != -math.inf) & ~whole, math.nan, result)
    return where((y == 0) | (x == 1) | ((x == -1) & (abs(y) == math.inf)), 1.0, result)
