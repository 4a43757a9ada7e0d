"""Hyperbolic functions and their inverses, out of exponentials and logarithms of what is left beside one."""

from __future__ import annotations

import math

from .dtype import F32
from .elementary import NEGLIGIBLE, exp_in_span, expm1_half, horner, in_span, short_exp2
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


_TANH32_SMALL = (
    -0.333331948721815, 0.13329202445034805, -0.05356410522796861, 0.020103738700115868,
    -0.005147717958264399,
)  # fmt: skip
_TANH64_NUMERATOR = (-1614.6876844170845, -99.28772310019186, -0.9643991794250523)
_TANH64_DENOMINATOR = (4844.063053251255, 2235.4883906010045, 112.81167849163293, 1.0)


@definition
def tanh(x: Term) -> Term:
    return _tanh_single(x) if x.dtype is F32 else _tanh_double(x)


def _tanh_single(x: Term) -> Term:
    """Near zero a polynomial, else 1 - 2 / (e**2x + 1)."""
    size, square = abs(x), x * x
    near = fma(size * square, horner(square, _TANH32_SMALL), size)
    growth = short_exp2(where(size > 10.0, 10.0, size) * (2 / math.log(2)))
    return where(size >= 0.7, 1.0 - 2.0 / (growth + 1.0), near).op("copysign", x)


def _tanh_double(x: Term) -> Term:
    """Near zero x + x**3 P(x**2) / Q(x**2), else 1 - 2 / (e**2x + 1): one division serves both."""
    size = abs(x)
    square = x * x
    small = size < 0.625
    growth = exp_in_span(where(size > 22.0, 22.0, size) * 2.0)
    numerator = where(small, square * horner(square, _TANH64_NUMERATOR), 2.0)
    denominator = where(small, horner(square, _TANH64_DENOMINATOR), growth + 1.0)
    fraction = numerator / denominator
    return where(small, fma(size, fraction, size), 1.0 - fraction).op("copysign", x)


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
