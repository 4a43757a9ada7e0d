"""Floating-point operations that round once, in any of PTX's rounding modes.

An exact result is a pair `high + low` of float64s, where `high` is the nearest float64. To round it again to
a shorter format, it is first rounded to odd (Boldo and Melquiond, "Emulation of a FMA and correctly rounded
sums", IEEE Transactions on Computers 2008): the last bit remembers that something was cut off.

Modes: rn (to nearest, ties to even), rz (towards zero), rm (down), rp (up).
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np

from .encoding import bfloat_bits, bfloat_values
from .types import TYPES, Array, Type

__all__ = [
    "MODES",
    "added",
    "divided",
    "flushed",
    "fused",
    "multiplied",
    "odd",
    "rounded",
    "saturated",
    "square_root",
    "subtracted",
    "two_sum",
]

MODES = ("rn", "rz", "rm", "rp")

_SPLIT = float((1 << 27) + 1)
_F32_TIE = np.uint64((1 << 29) - 1), np.uint64(1 << 28)
_F32_TINY = 2.0**-126


def flushed(values: Array) -> Array:
    """Subnormal float32s as zeros of their sign."""
    return np.where(np.abs(values) < np.float32(_F32_TINY), np.copysign(np.float32(0), values), values)


def saturated(values: Array) -> Array:
    """Clamped to 0 ... 1; NaN is 0."""
    result: Array = np.where(values > 0, np.minimum(values, values.dtype.type(1)), values.dtype.type(0))
    return result


def two_sum(x: Array, y: Array) -> tuple[Array, Array]:
    """The nearest float64 of `x + y` and what it lacks (Knuth), if it overflows as well."""
    high = x + y
    part = high - x
    low = (x - (high - part)) + (y - part)
    finite = np.isfinite(high)
    return high, low if finite.all() else np.where(finite, low, _beyond(high, x, y))


def two_product(x: Array, y: Array) -> tuple[Array, Array]:
    """The nearest float64 of `x * y` and what it lacks (Dekker); exact while nothing under- or overflows."""
    high = x * y
    x_high, y_high = _leading(x), _leading(y)
    x_low, y_low = x - x_high, y - y_high
    low = ((x_high * y_high - high) + x_high * y_low + x_low * y_high) + x_low * y_low
    return high, low


def _leading(x: Array) -> Array:
    scaled = _SPLIT * x
    return scaled - (scaled - x)


def _beyond(high: Array, *operands: Array) -> Array:
    """What an infinite result of finite operands lacks: the sign tells that it was rounded up."""
    finite = np.isfinite(operands[0])
    for each in operands[1:]:
        finite = finite & np.isfinite(each)
    return np.where(np.isinf(high) & finite, -np.copysign(1.0, high), 0.0)


def odd(high: Array, low: Array) -> Array:
    """`high + low` as a float64 whose last bit is one if anything is cut off."""
    bits = high.view(np.int64)
    step = np.where(np.signbit(high) == np.signbit(low), 1, -1)
    inexact = (low != 0) & (bits & 1 == 0) & np.isfinite(high)
    return np.where(inexact, bits + step, bits).view(np.float64)


def rounded(high: Array, low: Array, kind: Type, mode: str = "rn") -> Array:
    """`high + low` in the type's own precision, as `kind.dtype`."""
    if kind.name == "f64":
        return _stepped(high, np.sign(low), mode)
    exact = odd(high, low)
    if np.isinf(high).any():
        greatest = np.finfo(np.float64).max
        exact = np.where(np.isinf(high) & (low != 0), np.copysign(greatest, high), exact)
    if kind.significand == 8:
        return _bfloat(exact, mode)
    nearest = exact.astype(kind.dtype)
    return _stepped(nearest, np.sign(exact - nearest), mode) if mode != "rn" else nearest


def _stepped(nearest: Array, rest: Array, mode: str) -> Array:
    """The nearest value made the one that the mode wants; `rest` is the sign of what the nearest lacks."""
    dtype = nearest.dtype.type
    if mode == "rz":
        return np.where(rest * np.sign(nearest) < 0, np.nextafter(nearest, dtype(0)), nearest)
    if mode == "rm":
        return np.where(rest < 0, np.nextafter(nearest, dtype(-np.inf)), nearest)
    if mode == "rp":
        return np.where(rest > 0, np.nextafter(nearest, dtype(np.inf)), nearest)
    return nearest


def _bfloat(exact: Array, mode: str) -> Array:
    """float64s as bfloat16s, which are float32s with eight leading bits."""
    nearest = exact.astype(np.float32)
    cut = _stepped(nearest, np.sign(exact - nearest), "rz")
    bits = cut.view(np.uint32) | (cut != exact)
    rest = bits & np.uint32(0xFFFF)
    is_odd = bits >> np.uint32(16) & np.uint32(1)
    up = {
        "rn": rest + is_odd > 0x8000,
        "rz": np.zeros(rest.shape, bool),
        "rm": (rest != 0) & np.signbit(cut),
        "rp": (rest != 0) & ~np.signbit(cut),
    }[mode]
    kept = (bits - rest) + (up.astype(np.uint32) << np.uint32(16))
    return np.where(np.isfinite(exact), kept.view(np.float32), exact.astype(np.float32))


def _signed_zero(result: Array, x: Array, y: Array, mode: str) -> Array:
    """Zero as the sum of numbers of different sign is negative when rounding down."""
    if mode != "rm":
        return result
    return np.where((result == 0) & (np.signbit(x) != np.signbit(y)), -np.abs(result), result)


def added(x: Array, y: Array, kind: Type, mode: str) -> Array:
    """`x + y`."""
    if mode == "rn":
        return _as_kind(x + y, kind)
    high, low = two_sum(x.astype(np.float64), y.astype(np.float64))
    return _signed_zero(rounded(high, low, kind, mode), x, y, mode)


def subtracted(x: Array, y: Array, kind: Type, mode: str) -> Array:
    """`x - y`."""
    return added(x, np.negative(y), kind, mode)


def multiplied(x: Array, y: Array, kind: Type, mode: str) -> Array:
    """`x * y`."""
    if mode == "rn":
        return _as_kind(x * y, kind)
    wide_x, wide_y = x.astype(np.float64), y.astype(np.float64)
    if kind.name != "f64":
        product = wide_x * wide_y
        return rounded(product, np.zeros_like(product), kind, mode)
    high, low = two_product(wide_x, wide_y)
    hard = _is_hard(wide_x, wide_y, high)
    result = _stepped(high, np.sign(np.where(hard, 0.0, low)), mode)
    return _exactly(result, hard, lambda a, b: a * b, (wide_x, wide_y), mode)


def divided(x: Array, y: Array, kind: Type, mode: str) -> Array:
    """`x / y`."""
    if mode == "rn":
        return _as_kind(x / y, kind)
    wide_x, wide_y = x.astype(np.float64), y.astype(np.float64)
    if kind.name == "f64":
        nearest = wide_x / wide_y
        proper = np.isfinite(wide_x) & np.isfinite(wide_y) & (wide_x != 0) & (wide_y != 0)
        return _exactly(nearest, proper, lambda a, b: a / b, (wide_x, wide_y), mode)
    quotient = _as_kind(x / y, kind)
    rest = np.sign(wide_x - quotient.astype(np.float64) * wide_y) * np.sign(wide_y)
    rest = np.where(np.isfinite(quotient), rest, _beyond(quotient, wide_x, 1 / wide_y))
    return _stepped(quotient, rest, mode)


def square_root(x: Array, kind: Type, mode: str) -> Array:
    """The square root of `x`."""
    root = _as_kind(np.sqrt(x), kind)
    if mode == "rn":
        return root
    wide = root.astype(np.float64)
    if kind.name == "f64":
        hard = (x > 0) & np.isfinite(x) & ((x < 1e-280) | (x > 1e300))
        high, low = two_product(wide, wide)
        rest = np.where(hard | ~np.isfinite(high), 0.0, (x - high) - low)
        result = _stepped(root, np.sign(rest), mode)
        return _rooted(result, root, hard, x, mode)
    return _stepped(root, np.sign(np.where(np.isfinite(wide), x - wide * wide, 0.0)), mode)


def _rooted(result: Array, root: Array, where: Array, x: Array, mode: str) -> Array:
    """Square roots of extreme float64s, compared exactly."""
    for at in np.flatnonzero(where):
        rest = Fraction(float(x[at])) - Fraction(float(root[at])) ** 2
        sign = np.array([(rest > 0) - (rest < 0)])
        result[at] = _stepped(root[at : at + 1], sign, mode)[0]
    return result


def fused(x: Array, y: Array, z: Array, kind: Type, mode: str) -> Array:
    """`x * y + z`, rounded once."""
    wide_x, wide_y, wide_z = (each.astype(np.float64) for each in np.broadcast_arrays(x, y, z))
    if kind.name == "f64":
        return _fused_double(wide_x, wide_y, wide_z, kind, mode)
    product = wide_x * wide_y
    if kind.name == "f32" and mode == "rn":
        return _fused_single(product, wide_z)
    high, low = two_sum(product, wide_z)
    return _signed_zero(rounded(high, low, kind, mode), product, wide_z, mode)


def _fused_single(product: Array, z: Array) -> Array:
    """The sum in float64 is rounded again: wrong only where it seems to lie in the middle of two float32s."""
    total = product + z
    mask, tie = _F32_TIE
    close = total.view(np.uint64) & mask == tie
    close |= (np.abs(total) < _F32_TINY) & (total != 0)
    result = total.astype(np.float32)
    if close.any():
        result[close] = rounded(*two_sum(product[close], z[close]), TYPES["f32"])
    return result


def _fused_double(x: Array, y: Array, z: Array, kind: Type, mode: str) -> Array:
    product, rest = two_product(x, y)
    hard = _is_hard(x, y, product) | (np.abs(z) > 2.0**1000) & np.isfinite(z)
    simple = (product == 0) | ~np.isfinite(product) | ~np.isfinite(z)
    part, part_low = two_sum(z, rest)
    high, high_low = two_sum(product, part)
    total, low = two_sum(high, odd(*two_sum(part_low, high_low)))
    result = rounded(total, low, kind, mode)
    direct = simple & ~hard
    if direct.any():
        result = np.where(direct, product + z, result)
    result = _signed_zero(result, product, z, mode)
    return _exactly(result, hard, lambda a, b, c: a * b + c, (x, y, z), mode)


def _is_hard(x: Array, y: Array, product: Array) -> Array:
    """Is a product of finite numbers beyond what its two parts can hold?"""
    size = np.abs(product)
    beyond: Array = (size < 2.0**-900) | (size > 2.0**1000) | (np.maximum(np.abs(x), np.abs(y)) > 2.0**990)
    if beyond.any():
        beyond &= np.isfinite(x) & np.isfinite(y) & (x != 0) & (y != 0)
    return beyond


def _exactly(
    result: Array, where: Array, function: Callable[..., Fraction], operands: tuple[Array, ...], mode: str
) -> Array:
    """The result, computed with rational numbers where asked; for float64s."""
    for at in np.flatnonzero(where):
        values = [float(each[at if len(each) > 1 else 0]) for each in operands]
        if all(np.isfinite(values)):
            result[at] = _from_fraction(function(*map(Fraction, values)), mode)
        else:
            result[at] = function(*map(np.float64, values))
    return result


def _from_fraction(exact: Fraction, mode: str) -> float:
    if exact == 0:
        return -0.0 if mode == "rm" else 0.0
    sign = -1 if exact < 0 else 1
    try:
        nearest = sign * abs(float(exact))
    except OverflowError:
        nearest = sign * np.inf
    rest = -sign if np.isinf(nearest) else (exact > nearest) - (exact < nearest)
    return float(_stepped(np.array([nearest]), np.array([rest]), mode)[0])


def _as_kind(values: Array, kind: Type) -> Array:
    """Results computed in `kind.dtype` as values of the type: a bfloat16 is rounded from float32."""
    if not kind.is_widened:
        return values.astype(kind.dtype, copy=False)
    return bfloat_values(bfloat_bits(values))
