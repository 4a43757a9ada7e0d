"""`x ** y`, by `e**(y log x)` with a logarithm that has more bits than the result.

The logarithm is the sum of three numbers; it and the exponential are taken around numbers of small tables (as
in Tang, Table-driven implementation of the logarithm function, 1990). Negative numbers have the power of
their size with a sign, or none. What is not an everyday power goes another way, with all special cases of
C's `pow`, and float32s by float64.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from ...frozen import frozen
from ..dtype import F32, F64, DType
from .elementary import (
    WIDTHS,
    changed,
    clamped,
    doublings,
    exponent_unit,
    horner,
    lifted_if_tiny,
    normal_parts,
    parts_from,
    polynomial,
    rounded,
    scaled,
    short_exp2,
)
from .layout import largest_exponent, mantissa_bits, shifted_right
from .logarithms import is_unusual, log_specials
from .tables import POWERS, RECIPROCALS
from .terms import Term, definition, fma, rarely, where

__all__ = ["power", "unusual_power"]


@definition
def power(x: Term, y: Term) -> Term:
    if x.known == -1:
        return _alternating(y)
    size = abs(x) if x.known is None else x
    exponent, steps, change = _exp_of_product(y, _log_in_parts(*_around_centre(size)))
    result = _changed(steps, steps, change)
    is_beyond = ~(abs(exponent) < WIDTHS[x.dtype].usual_exponent)
    others = _unusual(x, y)
    if x.known is None:
        is_edge = (size == 0) | ~(size < math.inf)
        signed = _specials(x, y, where(is_edge, _of_edge(size, y), result))
        others = rarely(~is_edge & (is_beyond | is_unusual(size)), others, signed)
    return rarely(is_unusual(x) | is_beyond, others, result)


def _of_edge(size: Term, y: Term) -> Term:
    """Powers of 0, infinity and NaN, but those by 0."""
    inverse = where(size == 0, size.const(math.inf), where(size == math.inf, 0.0, size))
    return where(y < 0, inverse, where(y > 0, size, y))


def _alternating(y: Term) -> Term:
    """(-1) ** y: half of an even number is whole, and what is not whole has no power."""
    half, one = y * 0.5, y.const(1.0)
    sign = where(half.op("floor") == half, one, -1.0)
    return where(y.op("floor") == y, sign, math.nan)


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


# With tables


@frozen
class _Width:
    """What depends on the float's width: the terms of `log(1 + r)` from the third power on, the part of a
    doubling that a step of the exponential is, in two parts, the first with so few bits that all its
    multiples are exact, and the terms of `e**r` from the square on."""

    log_tail: tuple[float, ...]
    step: tuple[float, float]
    exp_tail: tuple[float, ...]


_WIDTHS: Mapping[DType, _Width] = {
    F32: _Width(
        log_tail=(0.33333325386047363, -0.24999989569187164, 0.20023231208324432, -0.16690443456172943),
        step=(0.0433197021484375, 1.9966364561696537e-06),
        exp_tail=(0.5000162124633789, 0.16667024791240692),
    ),
    F64: _Width(
        log_tail=(
            0.3333333333333333, -0.2499999999999832, 0.1999999999999381, -0.1666666667832876,
            0.1428571430915458, -0.1249997313477408, 0.11111072969227896, -0.10025235671109872,
            0.09118993546762363,
        ),
        step=(0.043321698785007356, -1.0774652828509272e-14),
        exp_tail=(
            0.5000000000000006, 0.1666666666441556, 0.04166666665965708, 0.008333471990783815,
            0.0013889128971116182,
        ),
    ),
}  # fmt: skip


def _around_centre(x: Term) -> tuple[Term, Term, Term]:
    """A usual number as `2**k m`, k in units of an exponent, m from half a centre's distance below 1 on, and
    which centre m is near."""
    mantissa, bias = mantissa_bits(x.dtype), largest_exponent(x.dtype)
    beyond = mantissa + 1 - len(RECIPROCALS[x.dtype]).bit_length()
    k, m, bits = parts_from(x, (bias << mantissa) - (1 << (beyond - 1)))
    return k, m, shifted_right(bits, beyond)


def _log_in_parts(k: Term, m: Term, centre: Term) -> tuple[Term, Term, Term]:
    """`log(2**k m)` as the sum of three: right to 2**-34 or 2**-63 of it.

    With `r = m/c - 1`, which is exact, these are `k log 2 + log c` to a few bits, which is exact too and 0 or
    twice as large as the next; `r - r**2 / 2`, rounded; and all that is left, `r**3 (1/3 ...)` above all.
    """
    r = fma(m, centre.op("raw_centre_reciprocal"), -1.0)
    half = r * -0.5
    near = fma(half, r, r)
    lost = fma(half, r, r - near)
    width, unit = WIDTHS[k.dtype], exponent_unit(k.dtype)
    whole = fma(k, width.ln2_high * unit, centre.op("raw_centre_log"))
    rest = fma(k, width.ln2_low * unit, centre.op("raw_centre_log_rest"))
    tail = fma(r * r * r, polynomial(r, _WIDTHS[r.dtype].log_tail), lost + rest)
    return whole, near, tail


def _exp_of_product(y: Term, logarithm: tuple[Term, Term, Term]) -> tuple[Term, Term, Term]:
    """`y log x`; and of `e` to that, how many steps up the nearest power of the table is, in the lowest bits
    of an integer, and how much it differs from that power, relative to it.

    The parts of the logarithm are multiplied one by one: the first one's product less whole steps is exact,
    and what is left of it and the second one's is small, so that hardly anything is lost in their sum.
    """
    whole, near, tail = logarithm
    high, low = _WIDTHS[y.dtype].step
    large = y * whole
    exponent = fma(y, near + tail, large)
    count, steps = rounded(exponent, 1 / (high + low))
    lost = fma(y, whole, -large) + fma(count, -low, steps.op("raw_power_rest"))
    r = fma(y, tail, fma(y, near, fma(count, -high, large))) + lost
    return exponent, steps, fma(r * r, polynomial(r, _WIDTHS[r.dtype].exp_tail), r)


def _changed(entry: Term, steps: Term, change: Term) -> Term:
    """The power of the table at `entry`, so many `steps` up and changed by so much."""
    return changed(entry.op("raw_power_bits"), steps, change, len(POWERS[change.dtype]))


# For any numbers

# log2(m) is s P(s**2) with s = (m - 1) / (m + 1).
_LOG2 = (2.885390081790092, 0.9617966733334139, 0.5770835866723865, 0.4116726108014843, 0.3407322059458819)
_SINGLE_SPAN = 200.0
_DOUBLE_SPAN = 1400.0
"""So far from 0, all powers are infinite or vanish."""


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


def _general_double(x: Term, y: Term) -> Term:
    size = abs(x)
    lifted, lift = lifted_if_tiny(size)
    k, m, centre = _around_centre(lifted)
    whole, near, tail = _log_in_parts(k - lift, m, centre)
    far = y * log_specials(size, whole + near)
    is_inside = abs(far) < _DOUBLE_SPAN
    # No infinity may come into sums of which nothing is needed.
    _, steps, change = _exp_of_product(where(is_inside, y, 0.0), (whole, near, tail))
    left, k = doublings(steps, x.dtype, len(POWERS[x.dtype]))
    inside = scaled(_changed(left, left, change), k)
    beyond = where(far > 0, far.const(math.inf), where(far < 0, 0.0, far))
    return _specials(x, y, where(is_inside, inside, beyond))
