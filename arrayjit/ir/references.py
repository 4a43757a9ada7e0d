"""What the ops mean that NumPy itself has not, on NumPy arrays."""

from __future__ import annotations

import ctypes
import math
import sys
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .dtype import BF16, DType, named

__all__ = [
    "bits",
    "chosen",
    "erf",
    "erfc",
    "fma",
    "from_bits",
    "popcount",
    "power",
    "recip_sqrt",
    "relu",
    "relu_gate",
    "satur01",
    "satur01_gate",
    "sine",
    "square_below",
    "square_within",
    "truncated_quotient",
    "upper_half",
]

Values = NDArray[Any]

_erf = np.frompyfunc(math.erf, 1, 1)
_erfc = np.frompyfunc(math.erfc, 1, 1)


def chosen(tables: Mapping[DType, tuple[float, ...]], index: Values) -> Values:
    """Entries of the table of floats as wide as the index, of which the lowest bits count."""
    dtype = named(f"f{8 * np.asarray(index).dtype.itemsize}")
    table = np.array(tables[dtype], dtype.numpy)
    return np.asarray(table[index & (len(table) - 1)])


def erf(x: Values) -> Values:
    return np.asarray(_erf(x)).astype(np.asarray(x).dtype)


def erfc(x: Values) -> Values:
    return np.asarray(_erfc(x)).astype(np.asarray(x).dtype)


def _library_fma() -> Any:
    # The C library that Python itself is linked with.
    function = ctypes.CDLL("ucrtbase" if sys.platform == "win32" else None).fma
    function.restype = ctypes.c_double
    function.argtypes = [ctypes.c_double] * 3
    return np.frompyfunc(function, 3, 1)


_fma64 = _library_fma()


def _fma32(x: Values, y: Values, z: Values) -> Values:
    """The float64 product is exact; the sum is rounded to odd, so that rounding it again to float32 is
    as good as rounding once."""
    product, addend = np.multiply(x, y, dtype=np.float64), np.asarray(z, np.float64)
    total = np.asarray(product + addend)
    shift = total - product
    error = (product - (total - shift)) + (addend - shift)
    even = (total.view(np.int64) & 1) == 0
    inexact = np.isfinite(total) & (error != 0) & even
    outward = np.where((error > 0) == (total > 0), 1, -1)
    odd = (total.view(np.int64) + outward).view(np.float64)
    return np.where(inexact, odd, total).astype(np.float32)


def fma(x: Values, y: Values, z: Values) -> Values:
    """`x * y + z` rounded once."""
    with np.errstate(all="ignore"):
        if np.result_type(x) == np.float32:
            return _fma32(x, y, z)
        return np.asarray(_fma64(x, y, z)).astype(np.float64)


def power(x: Values, y: Values) -> Values:
    """`np.power`, but integers with negative exponents give what unsigned exponents would, where NumPy
    raises: raising is the program's affair."""
    x, y = np.asarray(x), np.asarray(y)
    if y.dtype.kind != "i":
        return np.asarray(np.power(x, y))
    return np.asarray(np.power(x, y & np.iinfo(y.dtype).max))


def joined(*parts: Values) -> list[Values]:
    """The complex numbers of real and imaginary parts, which take turns."""
    found = []
    for real, imaginary in zip(parts[::2], parts[1::2], strict=True):
        real, imaginary = np.asarray(real), np.asarray(imaginary)
        number = np.empty(
            np.broadcast_shapes(real.shape, imaginary.shape), np.result_type(real, np.complex64)
        )
        number.real, number.imag = real, imaginary
        found.append(number)
    return found


def relu(x: Values) -> Values:
    return np.asarray(np.maximum(x, np.asarray(x).dtype.type(0)))


def relu_gate(x: Values, y: Values) -> Values:
    return np.where(np.asarray(x) > 0, y, np.asarray(y).dtype.type(0))


def satur01(x: Values) -> Values:
    number = np.asarray(x).dtype.type
    return np.asarray(np.minimum(np.maximum(x, number(0)), number(1)))


def satur01_gate(x: Values, y: Values) -> Values:
    x = np.asarray(x)
    return np.where((x > 0) & (x < 1), y, np.asarray(y).dtype.type(0))


def sine(x: Values, ahead: Values) -> Values:
    """Of an angle so many quarter turns ahead, none or one."""
    return np.where(np.asarray(ahead) == 0, np.sin(x), np.cos(x))


def recip_sqrt(x: Values) -> Values:
    return np.asarray(np.asarray(x).dtype.type(1) / np.sqrt(x))


def square_below(x: Values) -> Values:
    """The last number whose root is less than x; if none is, the last one that has no root."""
    return _last_square(x, np.less)


def square_within(x: Values) -> Values:
    """The last number whose root is not more than x; if none is, the last one that has no root."""
    return _last_square(x, np.less_equal)


def _last_square(x: Values, compares: np.ufunc) -> Values:
    """The last number whose root compares so, which is near the square. Small floats are float32s."""
    x = np.asarray(x)
    wide = x.astype(np.float32) if x.itemsize == 2 else x
    near = (wide * wide).view(f"i{wide.itemsize}")
    found = np.full_like(wide, -np.finfo(wide.dtype).smallest_subnormal)
    for distance in range(-4, 3):
        number = np.maximum(near + near.dtype.type(distance), 0).view(wide.dtype)
        found = np.where(compares(np.sqrt(number), wide), number, found)
    return np.where(np.isnan(wide), wide, found).astype(x.dtype)


def truncated_quotient(x: Values, y: Values) -> Values:
    """Integer division rounded toward zero."""
    quotient = np.floor_divide(x, y)
    inexact = (quotient * y != x) & (np.asarray(y) != 0) & ((np.asarray(x) < 0) != (np.asarray(y) < 0))
    return np.asarray(np.where(inexact, quotient + np.asarray(x).dtype.type(1), quotient))


def upper_half(x: Values, y: Values) -> Values:
    """Of the product of two integers the bits that do not fit into one of them."""
    bits = 8 * np.asarray(x).dtype.itemsize
    product = np.asarray(np.asarray(x).astype(object) * np.asarray(y).astype(object) >> bits)
    return product.astype(np.asarray(x).dtype)


def popcount(x: Values) -> Values:
    """The number of bits that are set, negative numbers in two's complement."""
    x = np.asarray(x)
    return np.asarray(np.bitwise_count(x.view(f"u{x.itemsize}"))).astype(x.dtype)


def bits(x: Values) -> Values:
    """The bytes of a float as a signed integer."""
    x = np.asarray(x)
    return x.view(f"i{x.itemsize}")


def from_brain_bits(x: Values) -> Values:
    """The bfloat16 whose bytes an int16 holds."""
    return np.asarray(x).view(BF16.numpy)


def from_bits(x: Values) -> Values:
    """The float whose bytes a signed integer holds."""
    x = np.asarray(x)
    return x.view(f"f{x.itemsize}")
