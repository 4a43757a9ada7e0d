"""`x ** y`, by `e**(y log x)` with a logarithm that has more bits than the result.

float32 is computed in float64. In float64 the logarithm is the sum of two numbers (as in Tang, Table-driven
implementation of the logarithm function, 1990, but with a series instead of tables). What is not an everyday
power of a positive number goes another way, with all special cases of C's `pow`.
"""

from __future__ import annotations

import math

from .dtype import F32, F64
from .elementary import (
    WIDTHS,
    clamped,
    expm1_near_zero,
    exponent_and_mantissa,
    horner,
    is_unusual,
    log_specials,
    normal_parts,
    polynomial,
    rounded,
    scaled,
    short_exp2,
    times_power_of_two,
)
from .terms import Term, definition, fma, rarely, where

__all__ = ["power", "unusual_power"]


@definition
def power(x: Term, y: Term) -> Term:
    return _single(x, y) if x.dtype is F32 else _double(x, y)


@definition
def unusual_power(x: Term, y: Term) -> Term:
    """The same for any numbers: it is long, and called where there is none of an everyday power's."""
    return _general(x, y)


def _unusual(x: Term, y: Term) -> Term:
    """A call of it; of a known base the power itself, which is short where the logarithm is a number too."""
    return x.op("raw_unusual_power", y) if x.known is None else _general(x, y)


def _general(x: Term, y: Term) -> Term:
    return _general_single(x, y) if x.dtype is F32 else _general_double(x, y)


def _specials(x: Term, y: Term, size: Term) -> Term:
    """The result for any numbers, `|x| ** y` being `size`."""
    whole = y == y.op("floor")
    half = y * 0.5
    odd = whole & (half != half.op("floor"))
    result = where(odd, size.op("copysign", x), size)
    result = where((x < 0) & (x != -math.inf) & ~whole, math.nan, result)
    return where((y == 0) | (x == 1) | ((x == -1) & (abs(y) == math.inf)), 1.0, result)


# float32

# log2(m) is s P(s**2) with s = (m - 1) / (m + 1).
_LOG2 = (2.885390081790092, 0.9617966733334139, 0.5770835866723865, 0.4116726108014843, 0.3407322059458819)
_SINGLE_SPAN = 200.0


def _single(x: Term, y: Term) -> Term:
    usual = _exp2(y.cast(F64) * _log2(abs(x).cast(F64))).cast(F32)
    return rarely(~((x > 0) & (x < math.inf) & (abs(y) < math.inf)), _unusual(x, y), usual)


def _general_single(x: Term, y: Term) -> Term:
    size = abs(x).cast(F64)
    exponent = y.cast(F64) * log_specials(size, _log2(size))
    return _specials(x, y, where(exponent == exponent, _exp2(exponent), math.nan).cast(F32))


def _log2(x: Term) -> Term:
    k, m = normal_parts(x)
    s = (m - 1.0) / (m + 1.0)
    return fma(s, horner(s * s, _LOG2), k)


def _exp2(x: Term) -> Term:
    return short_exp2(clamped(x, -_SINGLE_SPAN, _SINGLE_SPAN))


# float64

_DOUBLE_SPAN = 700.0
"""So far from 0, e**x is far from overflow and from subnormal numbers."""


_TWO_THIRDS = (0.6666666666666666, 3.700743415417188e-17)
_ATANH_TAIL = (
    0.40000000000002256, 0.28571428570098484, 0.22222222520122167, 0.18181784349304972,
    0.15386758169264703, 0.13256797839687282, 0.1319651702115989,
)  # fmt: skip


def _double(x: Term, y: Term) -> Term:
    large, small = _product(y, *_log_in_parts(*normal_parts(x)))
    k, rest = _exp_of_parts(large, small)
    is_rare = is_unusual(x) | ~(abs(large) < _DOUBLE_SPAN)
    return rarely(is_rare, _unusual(x, y), times_power_of_two(rest, k))


def _product(y: Term, high: Term, low: Term) -> tuple[Term, Term]:
    large = y * high
    return large, fma(y, low, fma(y, high, -large))


def _general_double(x: Term, y: Term) -> Term:
    size = abs(x)
    high, low = _log_in_parts(*exponent_and_mantissa(size))
    large, small = _product(y, log_specials(size, high), low)
    # Where the result overflows or vanishes, the small part may be no number.
    small = where(abs(large) < 2 * _DOUBLE_SPAN, small, 0.0)
    k, rest = _exp_of_parts(clamped(large, -2 * _DOUBLE_SPAN, 2 * _DOUBLE_SPAN), small)
    return _specials(x, y, scaled(rest, k))


def _exp_of_parts(large: Term, small: Term) -> tuple[Term, Term]:
    """`k` and `e**(large + small) / 2**k`; `small` is at most a rounding of `large`, and what rounding `r`
    loses counts with it."""
    width = WIDTHS[large.dtype]
    whole, k = rounded(large, 1 / math.log(2))
    rest = fma(whole, -width.ln2_high, large)
    r = fma(whole, -width.ln2_low, rest)
    small = small + fma(whole, -width.ln2_low, rest - r)
    q = expm1_near_zero(r)
    return k, (q + fma(q, small, small)) + 1.0


def _log_in_parts(k: Term, m: Term) -> tuple[Term, Term]:
    """`log(2**k m)` as the sum of two, the second far smaller: right to 2**-65 or so. In float64 only.

    With `s = (m - 1) / (m + 1)`, in two parts like all that matters, it is `k log 2 + 2 s + s**3 (2/3 ...)`.
    """
    f, over = m - 1.0, m + 1.0
    lost = m - (over - 1.0)
    inverse = 1.0 / over
    s = f * inverse
    s_low = (fma(-s, over, f) - s * lost) * inverse
    z = s * s
    z_low = fma(s + s, s_low, fma(s, s, -z))
    tail = z * polynomial(z, _ATANH_TAIL)
    factor = tail + _TWO_THIRDS[0]
    factor_low = ((_TWO_THIRDS[0] - factor) + tail) + _TWO_THIRDS[1]
    cube = s * z
    cube_low = fma(s_low, z, fma(s, z_low, fma(s, z, -cube)))
    rest = cube * factor
    rest_low = fma(cube_low, factor, fma(cube, factor_low, fma(cube, factor, -rest)))
    twice = s + s
    large = twice + rest
    small = ((twice - large) + rest) + fma(s_low, 2.0, rest_low)
    width = WIDTHS[k.dtype]
    whole = k * width.ln2_high
    total = whole + large
    return total, ((whole - total) + large) + fma(k, width.ln2_low, small)
