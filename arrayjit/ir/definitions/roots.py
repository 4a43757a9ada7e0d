"""Cube roots and lengths."""

from __future__ import annotations

import math

from ..dtype import F32, F64
from .elementary import exponent_and_mantissa, horner, rounded
from .layout import from_bits, largest_exponent, mantissa_bits, power_of_two
from .terms import Term, definition, fma, where

__all__ = ["cbrt", "hypot", "length_is_infinite", "square_below", "square_of_length", "square_within"]

# m**(-1/3) for m from sqrt(1/2) to sqrt(2), to 12 bits.
_INVERSE_ROOT = (1.7336763806125637, -1.2940448990395408, 0.7209332757622688, -0.16080538250708723)
_ROOT_OF_2 = 1.2599210498948732


@definition
def cbrt(x: Term) -> Term:
    """Of `2**(3 k + j) m`: a rough inverse root of the mantissa, made better by a step of third order (two in
    float64), then the root by one of Newton's with the residue computed exactly."""
    size = abs(x)
    exponent, mantissa = exponent_and_mantissa(size)
    whole, k = rounded(exponent, 1 / 3)
    rest = fma(whole, -3.0, exponent)
    up, down = rest > 0, rest < 0
    inverse = horner(mantissa, _INVERSE_ROOT)
    inverse = inverse * where(up, inverse.const(1 / _ROOT_OF_2), where(down, inverse.const(_ROOT_OF_2), 1.0))
    number = mantissa * where(up, inverse.const(2.0), where(down, inverse.const(0.5), 1.0))
    for _ in range(1 if x.dtype is F32 else 2):
        missing = fma(number * inverse, -(inverse * inverse), 1.0)
        inverse = fma(inverse * missing, fma(missing, 2 / 9, 1 / 3), inverse)
    square = inverse * inverse
    root = number * square
    product = root * root
    residue = fma(-product, root, number) - fma(root, root, -product) * root
    root = fma(residue * square, 1 / 3, root) * power_of_two(k + largest_exponent(x.dtype), x.dtype)
    return where((size > 0) & (size < math.inf), root, size).op("copysign", x)


@definition
def hypot(x: Term, y: Term) -> Term:
    in_float32 = x.dtype is F32
    length = _square_of_float32s(x, y).op("sqrt").cast(F32) if in_float32 else _length(abs(x), abs(y))
    return where(_is_infinite(x, y), math.inf, length)


@definition
def square_of_length(x: Term, y: Term) -> Term:
    """What `hypot` takes the root of, in float64, where nothing is scaled."""
    if x.dtype is F32:
        return _square_of_float32s(x, y)
    longer, shorter = _sorted(abs(x), abs(y))
    return fma(longer, longer, shorter * shorter)


@definition
def length_is_infinite(x: Term, y: Term) -> Term:
    """Whether it is, though the other coordinate may be no number."""
    return _is_infinite(x, y)


def _is_infinite(x: Term, y: Term) -> Term:
    return (abs(x) == math.inf) | (abs(y) == math.inf)


def _square_of_float32s(x: Term, y: Term) -> Term:
    wide, other = x.cast(F64), y.cast(F64)
    return fma(wide, wide, other * other)


def _sorted(x: Term, y: Term) -> tuple[Term, Term]:
    """The longer one first."""
    swap = y > x
    return where(swap, y, x), where(swap, x, y)


def _length(x: Term, y: Term) -> Term:
    """In float64, scaled so that the larger square neither overflows nor vanishes."""
    longer, shorter = _sorted(x, y)
    huge, tiny = longer > 2.0**500, longer < 2.0**-450
    scale = where(huge, x.const(2.0**-600), where(tiny, x.const(2.0**600), 1.0))
    back = where(huge, x.const(2.0**600), where(tiny, x.const(2.0**-600), 1.0))
    longer, shorter = longer * scale, shorter * scale
    return fma(longer, longer, shorter * shorter).op("sqrt") * back


@definition
def square_below(x: Term) -> Term:
    return _last_square(x, "less")


@definition
def square_within(x: Term) -> Term:
    return _last_square(x, "less_equal")


def _last_square(x: Term, compares: str) -> Term:
    """The last number whose root compares so with x: at most four numbers before its square, or two after."""
    near = (x * x).op("bits")
    found = x.const(-(2.0 ** (1 - largest_exponent(x.dtype) - mantissa_bits(x.dtype))))
    for distance in range(-4, 3):
        number = from_bits((near + distance).op("maximum", 0), x.dtype)
        found = where(number.op("sqrt").op(compares, x), number, found)
    return where(x == x, found, x)
