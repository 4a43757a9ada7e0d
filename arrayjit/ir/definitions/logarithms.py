"""Logarithms: x = 2**k m with m around 1, f = m - 1, and log(1 + f) by a polynomial; of `f / (2 + f)` in
float64; or, `log` of float32s, around the numbers of a table."""

from __future__ import annotations

import math
from collections.abc import Callable

from ...frozen import frozen_by_identity
from ..dtype import F32
from .elementary import (
    NEGLIGIBLE,
    WIDTHS,
    exponent_and_mantissa,
    exponent_unit,
    horner,
    lifted_if_tiny,
    normal_parts,
    parts_from,
    polynomial,
)
from .layout import largest_exponent, mantissa_bits, shifted_right
from .terms import Term, definition, fma, rarely, where

__all__ = ["is_unusual", "log", "log1p", "log2", "log10", "log_specials"]


@frozen_by_identity
class Logarithm:
    """Of a positive number: `log x = k ln 2 + f + low`; `lost` is what the rounding of low took from it."""

    k: Term
    f: Term
    low: Term
    lost: Term

    def split(self) -> tuple[Term, Term]:
        """`f + low + lost` as its rounded sum and the small rest."""
        high = self.f + self.low
        return high, (self.f - high) + self.low + self.lost


def logarithm(x: Term) -> Logarithm:
    k, m = exponent_and_mantissa(x)
    return _log1p_parts(k, m - 1.0)


def _log1p_parts(k: Term, f: Term) -> Logarithm:
    width = WIDTHS[f.dtype]
    square = f * f
    if f.dtype is F32:
        tail = fma(f, polynomial(f, width.log_tail), -0.5)
        low = square * tail
        lost = fma(square, tail, -low)
    else:
        s = f / (f + 2.0)
        z = s * s
        half = square * 0.5
        tail = fma(z, polynomial(z, width.log_tail), half)
        low = fma(s, tail, -half)
        lost = fma(s, tail, -half - low)
    return Logarithm(k, f, low, lost)


def _with_exponent(k: Term, high: Term, low: Term) -> Term:
    """`k ln 2 + high + low`."""
    width = WIDTHS[k.dtype]
    return fma(k, width.ln2_high, high + fma(k, width.ln2_low, low))


def log_specials(x: Term, result: Term) -> Term:
    """0 and infinity; NaN for negative numbers and NaN."""
    outside = where(x == 0, x.const(-math.inf), math.nan)
    return where(x > 0, where(x == math.inf, x, result), outside)


def is_unusual(x: Term) -> Term:
    """Neither positive, finite and not subnormal."""
    mantissa, bias = mantissa_bits(x.dtype), largest_exponent(x.dtype)
    # Moved to the bottom of all integers, the bits of usual numbers are the smallest.
    return x.op("bits") + ((2 * bias + 1) << mantissa) >= (2 * bias << mantissa) - (1 << (x.dtype.bits - 1))


def _of_usual(x: Term, form: Callable[[Logarithm], Term]) -> Term:
    k, m = normal_parts(x)
    usual = form(_log1p_parts(k, m - 1.0))
    is_tiny = (x > 0) & (x < 2.0 ** (1 - largest_exponent(x.dtype)))
    others = log_specials(x, rarely(is_tiny, form(logarithm(x)), x))
    return rarely(is_unusual(x), others, usual)


@definition
def log(x: Term) -> Term:
    if x.dtype is F32:
        return _single_log(x)
    usual = _double_log(*normal_parts(x))
    return rarely(is_unusual(x), log_specials(x, _double_log(*exponent_and_mantissa(x))), usual)


def _double_log(k: Term, m: Term) -> Term:
    """`k log 2 + f - s (f - s**2 (2/3 + ...))` for `f = m - 1` and `s = f / (2 + f)`: right to a unit, unlike
    `Logarithm` not to more."""
    width, f = WIDTHS[m.dtype], m - 1.0
    s = f / (m + 1.0)
    z = s * s
    low = fma(s, fma(z, horner(z, width.log_tail), -f), k * width.ln2_low)
    return fma(k, width.ln2_high, f + low)


_SINGLE_TAIL = (-0.5, 0.33334434032440186, -0.25007495284080505, 0.18867410719394684)
"""The terms of `log(1 + r)` from the square on, for r from -1/32 to 1/16."""


def _single_log(x: Term) -> Term:
    """Around the middles of a table, which registers hold: `k log 2 + log c + log(1 + r)` for `r = m/c - 1`.
    Doubles are as fast with a division."""
    lifted, lift = lifted_if_tiny(x)
    k, m = _from_eleven_sixteenths(lifted)
    general = log_specials(x, _around_middle(k - lift / exponent_unit(x.dtype), m, lifted))
    return rarely(is_unusual(x), general, _around_middle(*_from_eleven_sixteenths(x), x))


def _from_eleven_sixteenths(x: Term) -> tuple[Term, Term]:
    k, m, _ = parts_from(x, 0x3F300000)
    return k, m


def _around_middle(k: Term, m: Term, x: Term) -> Term:
    width, unit = WIDTHS[m.dtype], exponent_unit(m.dtype)
    middle = shifted_right(x.op("bits"), mantissa_bits(x.dtype) - 4)
    r = fma(m, middle.op("raw_middle_reciprocal"), -1.0)
    near = fma(r * r, polynomial(r, _SINGLE_TAIL), r)
    whole = fma(k, width.ln2_high * unit, middle.op("raw_middle_log"))
    return whole + fma(k, width.ln2_low * unit, near)


@definition
def log1p(x: Term) -> Term:
    total = x + 1.0
    lost = where(abs(x) < 1.0, x - (total - 1.0), 1.0 - (total - x))
    k, m = normal_parts(total)
    high, low = _log1p_parts(k, m - 1.0).split()
    result = _with_exponent(k, high, low + lost / total)
    return where(abs(x) < NEGLIGIBLE, x, log_specials(total, result))


def _in_base(parts: Logarithm, factor: tuple[float, float], log_2: tuple[float, float]) -> Term:
    """The logarithm times `factor`, each a number in two parts, rounded once at the end."""
    high, low = parts.split()
    product = high * factor[0]
    rest = fma(high, factor[0], -product)
    rest = fma(low, factor[0], fma(high, factor[1], rest))
    whole = parts.k * log_2[0]
    total = whole + product
    # |whole| is 0 or exceeds |product|, so their sum loses exactly this.
    lost = (whole - total) + product
    return total + (lost + fma(parts.k, log_2[1], rest))


@definition
def log2(x: Term) -> Term:
    return _of_usual(x, lambda parts: _in_base(parts, WIDTHS[x.dtype].log2_e, (1.0, 0.0)))


@definition
def log10(x: Term) -> Term:
    width = WIDTHS[x.dtype]
    return _of_usual(x, lambda parts: _in_base(parts, width.log10_e, width.log10_2))
