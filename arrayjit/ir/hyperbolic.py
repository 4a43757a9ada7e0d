"""Hyperbolic functions and their inverses, out of exponentials and logarithms of what is left beside one."""

from __future__ import annotations

import math

from .dtype import F32, F64
from .elementary import (
    NEGLIGIBLE,
    WIDTHS,
    exp_in_span,
    expm1_half,
    in_span,
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


# 3/4 e**2x is 3/4 + 3/2 x + x**2 times this, for x from 0 to half of log 2.
_GROWTH = {
    F32: (
        1.5, 1.000001072883606, 0.49996456503868103, 0.20043127238750458, 0.06431844830513,
        0.024797290563583374,
    ),
    F64: (
        1.5, 0.9999999999999962, 0.500000000000433, 0.1999999999805522, 0.06666666711412077,
        0.01904761305044783, 0.004761954771336798, 0.001057934059954751, 0.0002125512004612848,
        3.656957998977919e-05, 8.620164973085808e-06,
    ),
}  # fmt: skip
# From here on the next number below 1 is nearer than the result.
_ONE_FROM = {F32: 10.0, F64: 22.0}


@definition
def tanh(x: Term) -> Term:
    """`t / (t + 2)` for t = e**2x - 1, both times 3/4: so their roundings are small where the units of
    the quotient are. With k rounded down no digits of t cancel."""
    size, top = abs(x), _ONE_FROM[x.dtype]
    near = where(size > top, top, size)
    whole, k = nearest(fma(near, 2 / math.log(2), -0.5))
    r = _less_halves(near, whole)
    scale = power_of_two(k + largest_exponent(x.dtype), x.dtype)
    grown = fma(r, 1.5, r * r * polynomial(r, _GROWTH[x.dtype]))
    t = fma(scale, grown, fma(scale, 0.75, -0.75))
    return (t / (t + 1.5)).op("copysign", x)


def _less_halves(x: Term, whole: Term) -> Term:
    """`x` less so many times half of log 2."""
    if x.dtype is F32:
        return fma(whole, -math.log(2) / 2, x)
    width = WIDTHS[x.dtype]
    return fma(whole, -width.ln2_low / 2, fma(whole, -width.ln2_high / 2, x))


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
