"""Hyperbolic functions and their inverses, out of exponentials and logarithms of what is left beside one."""

from __future__ import annotations

import math

from ..dtype import F32, F64
from .elementary import (
    NEGLIGIBLE,
    WIDTHS,
    expm1_half,
    half_exp,
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
    half = half_exp(abs(x))
    return half + 0.25 / half


# The hyperbolic tangent of r is r + r**3 times this polynomial in r**2, for r from -0.1 to 0.26.
_NEAR_ZERO = {
    F32: (-0.3333321584051053, 0.13322730408360947, -0.051230416687352134),
    F64: (
        -0.3333333333333242, 0.1333333333298818, -0.05396825352630282, 0.0218694616727577,
        -0.008862360355498254, 0.0035763907860907013, -0.001307581898705707,
    ),
}  # fmt: skip
# From here on the next number below 1 is nearer than the result.
_ONE_FROM = {F32: 10.0, F64: 22.0}


@definition
def tanh(x: Term) -> Term:
    """With x = k log 2 / 2 + r and 2**k = s, by the tangent T of r: `t / (t + 2 (1 - T))` for
    t = s - 1 + (s + 1) T, whose rounding counts little where it is large. That k is rounded up from 0.75 on
    keeps t from being the small difference of these."""
    size, top = abs(x), _ONE_FROM[x.dtype]
    near = where(size > top, top, size)
    whole, k = nearest(fma(near, 2 / math.log(2), -0.25))
    r = _less_halves(near, whole)
    scale = power_of_two(k + largest_exponent(x.dtype), x.dtype)
    square = r * r
    tangent = fma(square * r, polynomial(square, _NEAR_ZERO[x.dtype]), r)
    t = fma(scale + 1.0, tangent, scale - 1.0)
    return (t / (t + fma(tangent, -2.0, 2.0))).op("copysign", x)


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
