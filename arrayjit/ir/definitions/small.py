"""Conversions of small floats, of which targets know but the bits: into float32, which has all their values,
and back, rounded to the nearest, of two to the even one."""

from __future__ import annotations

from typing import Any

from ..dtype import F16, F32, F64, I32, DType, named
from .layout import from_bits, largest_exponent, mantissa_bits
from .terms import Builder, Term, where

__all__ = ["converted"]

MAGNITUDE = 0x7FFFFFFF
INFINITE = 0x7F800000
"""Bits of a float32."""


def converted(builder: Builder, value: Any, dtype: DType) -> Any:
    """`value.astype(dtype)`, where either is a small float. From float64 to bfloat16 is by way of float32, as
    ml_dtypes has it."""
    number = Term(builder, value)
    if number.dtype.is_small:
        return (_widened(number) if dtype is F32 else number.cast(F32).cast(dtype)).value
    if number.dtype is F32:
        return _narrowed(number, dtype).value
    is_rounded_once = number.dtype is F64 and dtype is F16
    return (_to_odd(number) if is_rounded_once else number.cast(F32)).cast(dtype).value


def _widened(x: Term) -> Term:
    """A small float as a float32. Moved up, its bits are those of a number that is too small by what the
    exponents' biases differ in, whether it is subnormal or not; but for infinities and what is no number. The
    latter signals nothing any more once it is multiplied, as after the instruction for it."""
    dtype = x.dtype
    beyond = mantissa_bits(F32) - mantissa_bits(dtype)
    sign = 1 << (dtype.bits - 1)
    bits = x.op("bits").cast(I32)
    magnitude = (bits & (sign - 1)).op("raw_left_shift", beyond)
    scale = 2.0 ** (largest_exponent(F32) - largest_exponent(dtype))
    number = magnitude
    if scale != 1:
        is_finite = magnitude < (2 * largest_exponent(dtype) + 1) << mantissa_bits(F32)
        number = (where(is_finite, magnitude, magnitude | INFINITE).op("from_bits") * scale).op("bits")
    return (number | (bits & sign).op("raw_left_shift", 32 - dtype.bits)).op("from_bits")


def _narrowed(x: Term, dtype: DType) -> Term:
    """A float32 as a small float. Normal numbers are rounded by adding to their bits, and what is too large
    becomes infinite by the same carry; subnormal ones by adding a number whose last place is theirs."""
    beyond = mantissa_bits(F32) - mantissa_bits(dtype)
    bias = largest_exponent(F32) - largest_exponent(dtype)
    infinite = (2 * largest_exponent(dtype) + 1) << mantissa_bits(dtype)
    bits = x.op("bits")
    magnitude = bits & MAGNITUDE
    even = magnitude.op("raw_right_shift", beyond) & 1
    rounded = (magnitude + (even + ((1 << (beyond - 1)) - 1))).op("raw_right_shift", beyond)
    normal = (rounded - (bias << mantissa_bits(dtype))).op("minimum", infinite)
    rounder = 2.0 ** (beyond - largest_exponent(dtype) + 1)
    subnormal = (magnitude.op("from_bits") + rounder).op("bits") - x.const(rounder).op("bits")
    finite = where(magnitude < (bias + 1) << mantissa_bits(F32), subnormal, normal)
    number = where(magnitude > INFINITE, magnitude.const(infinite | infinite >> 1), finite)
    sign = bits.op("raw_right_shift", 32 - dtype.bits) & (1 << (dtype.bits - 1))
    return from_bits((number | sign).cast(named(f"i{dtype.bits}")), dtype)


def _to_odd(x: Term) -> Term:
    """A float64 as the float32 next to it, or, between two, that of odd bits: rounded once more, to fewer
    bits, it is what rounding once would have given (Boldo and Melquiond, Emulation of FMA and correctly
    rounded sums, 2008)."""
    near = x.cast(F32)
    back, bits = near.cast(F64), near.op("bits")
    inward = where(abs(back) > abs(x), bits - 1, bits)
    return where((back == x) | (x != x), near, (inward | 1).op("from_bits"))
