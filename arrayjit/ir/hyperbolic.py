"""Hyperbolic functions and their inverses, out of exponentials and logarithms of what is left beside one."""

from __future__ import annotations

import math

from .dtype import F32, F64
from .elementary import (
    NEGLIGIBLE,
    exp_in_span,
    expm1_half,
    in_span,
    less_logarithms_of_2,
    nearest,
    polynomial,
)
from .layout import largest_exponent, power_of_two
from .terms import Term, definition, fma, where

__all__ = ["arccosh", "arcsinh", "arctanh", "cosh", "sinh", "tanh"]


@definition
def sinh(x: Term) -> Term:
    half = expm1_half(abs(x))
    rest = where(half < 2.0**60, half / fma(half, 2.0, 1.0), 0.0)
    return where(abs(x) < NEGLIGIBLE, x, (half + rest).op("copysign", x))


@definition
def cosh(x: Term) -> Term:
    half = exp_in_span(in_span(abs(x)), halvings=1)
    return half + 0.25 / half


# 3/4 e**x is 3/4 + 3/4 x + x**2 times this, for x from 0 to log 2.
_GROWTH = {
    F32: (
        0.375, 0.12500013411045074, 0.031247785314917564, 0.006263477262109518, 0.0010049757547676563,
        0.0001937288325279951,
    ),
    F64: (
        0.375, 0.12499999999999953, 0.03125000000002706, 0.0062499999993922565, 0.001041666673658137,
        0.00014880947695662368, 1.8601385825534367e-05, 2.066277460849123e-06, 2.0756953170047345e-07,
        1.785624022938437e-08, 2.1045324641322773e-09,
    ),
}  # fmt: skip
# From here on the next number below 1 is nearer than the result.
_ONE_FROM = {F32: 10.0, F64: 22.0}


@definition
def tanh(x: Term) -> Term:
    """`t / (t + 2)` for t = e**2x - 1, both times 3/4: so their roundings are small where the units of
    the quotient are. With k rounded down no digits of t cancel."""
    size, top = abs(x), _ONE_FROM[x.dtype]
    twice = where(size > top, top, size) * 2.0
    whole, k = nearest(fma(twice, 1 / math.log(2), -0.5))
    r = fma(whole, -math.log(2), twice) if x.dtype is F32 else less_logarithms_of_2(twice, whole)
    scale = power_of_two(k + largest_exponent(x.dtype), x.dtype)
    grown = fma(r, 0.75, r * r * polynomial(r, _GROWTH[x.dtype]))
    t = fma(scale, grown, fma(scale, 0.75, -0.75))
    return (t / (t + 1.5)).op("copysign", x)


# Inverses. The square of a huge number would be infinite: there the logarithm of its double is as good.

_HUGE = 2.0**60


def _log_grown(size: Term, grown: Term) -> Term:
    """`log(1 + grown)`; `log(2 size)` for a huge size."""
    huge = size > _HUGE
    return where(huge, size, grown).op("log1p") + where(huge, size.const(math.log(2)), 0.0)


@definition
def arcsinh(x: Term) -> Term:
    size = abs(x)
    square = size * size
    grown = size + square / ((square + 1.0).op("sqrt") + 1.0)
    return _log_grown(size, grown).op("copysign", x)


@definition
def arccosh(x: Term) -> Term:
    above = x - 1.0
    grown = above + fma(above, above, above * 2.0).op("sqrt")
    return where(above < 0, math.nan, _log_grown(x, grown))


@definition
def arctanh(x: Term) -> Term:
    size = abs(x)
    return ((size * 2.0 / (1.0 - size)).op("log1p") * 0.5).op("copysign", x)
