"""`x ** n` for an exponent that is known: products instead of a logarithm, as exact as the general case.

float32 is multiplied in float64. In float64 a product is carried as the sum of two numbers, the rounded
product and what rounding took from it, so that the result is off by little more than its own rounding.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeVar, Union

from ..dtype import F32, F64
from .terms import Term, fma, rarely, where

__all__ = ["known_power"]

LARGEST = 32
"""Exponents beyond this cost more as products than by the logarithm."""

TINY, SCALE = 2.0**-900, 2.0**128
"""Below `TINY`, the small part of a number may be too small to be one; times `SCALE` it is not."""

Number = TypeVar("Number")
Parts = tuple[Term, Union[Term, None]]
"""A number as the sum of two, the second far smaller or nothing."""


def known_power(x: Term, exponent: float) -> Term | None:
    """`x ** exponent`, or None where products do not help."""
    if x.dtype.is_integer:
        return _product(x, int(exponent), Term.__mul__) if 0 < exponent <= LARGEST else None
    if exponent == -0.5:
        return _inverse_root(x)
    if not 1 <= abs(exponent) <= LARGEST or 2 * exponent != int(2 * exponent):
        return None
    if exponent != int(exponent):
        return _of_root(x, int(2 * exponent))
    return _in_double(x, int(exponent)) if x.dtype is F32 else _in_parts(x, int(exponent))


def _product(x: Number, n: int, times: Callable[[Number, Number], Number]) -> Number:
    """`n` factors multiplied, from the leading bit of `n` down."""
    result = x
    for bit in f"{n:b}"[1:]:
        result = times(result, result)
        if bit == "1":
            result = times(result, x)
    return result


def _in_double(x: Term, n: int) -> Term:
    wide = x.cast(F64)
    return _product(wide if n > 0 else 1.0 / wide, abs(n), Term.__mul__).cast(F32)


def _in_parts(x: Term, n: int) -> Term:
    if abs(n) == 1:
        return x if n > 0 else 1.0 / x
    if n == 2:
        return x * x
    return _power_of_parts((x, None) if n > 0 else _inverse(x), abs(n))


def _power_of_parts(base: Parts, n: int) -> Term:
    return _rounded(*_last_factors(base, n))


def _last_factors(base: Parts, n: int) -> tuple[Parts, Parts]:
    """The two numbers whose product is the power."""
    half = _product(base, n // 2, _times)
    return (_times(half, half), base) if n % 2 else (half, half)


def _of_root(x: Term, n: int) -> Term:
    """`sqrt(x) ** n` for an odd `n`."""
    if x.dtype is F32:
        root = _not_negative(x).cast(F64).op("sqrt")
        return _product(root if n > 0 else 1.0 / root, abs(n), Term.__mul__).cast(F32)
    return _power_of_parts(_root(_not_negative(x)), n) if n > 0 else _of_inverse_root(x, -n)


def _of_inverse_root(x: Term, n: int) -> Term:
    """`(1 / sqrt(x)) ** n`. Where nothing is zero, tiny or not finite, no special case is near."""
    left, right = _last_factors(_inverse_root_in_parts(x), n)
    product, rest = left[0] * right[0], _plus_rest(None, left, right)
    assert rest is not None
    is_usual = (abs(product) >= TINY) & (abs(rest) < math.inf)
    general = _power_of_parts(_inverse_root_in_parts(_not_negative(x)), n)
    return rarely(~is_usual, general, fma(left[0], right[0], rest))


def _not_negative(x: Term) -> Term:
    """Zero and infinity without their signs, which C's `pow` ignores here."""
    return where(x == -math.inf, math.inf, x) + 0.0


def _root(x: Term) -> Parts:
    root = x.op("sqrt")
    return root, fma(-root, root, x) / (root + root)


def _inverse(x: Term) -> Parts:
    inverse = 1.0 / x
    return inverse, fma(-x, inverse, 1.0) * inverse


def _times(left: Parts, right: Parts) -> Parts:
    product = left[0] * right[0]
    lost = fma(left[0], right[0], -product)
    return product, _plus_rest(lost, left, right)


def _rounded(left: Parts, right: Parts) -> Term:
    """The product as one number. Where that is zero or not finite, the small parts mean nothing; where it is
    tiny, they are kept from vanishing."""
    product = left[0] * right[0]
    is_tiny = abs(product) < TINY
    scale = where(is_tiny, product.const(SCALE), 1.0)
    large = left[0] * scale
    rest = _plus_rest(None, (large, None if left[1] is None else left[1] * scale), right)
    assert rest is not None
    exact = fma(large, right[0], rest) * where(is_tiny, product.const(1.0 / SCALE), 1.0)
    return where((abs(rest) < math.inf) & (product != 0.0), exact, product)


def _plus_rest(total: Term | None, left: Parts, right: Parts) -> Term | None:
    """The total with what the small parts add to the product of the large ones."""
    for large, small in ((left[0], right[1]), (right[0], left[1])):
        if small is not None:
            total = large * small if total is None else fma(large, small, total)
    return total


def _inverse_root(x: Term) -> Term:
    """`1 / sqrt(x)`."""
    x = _not_negative(x)
    if x.dtype is F32:
        return (1.0 / x.cast(F64).op("sqrt")).cast(F32)
    first, change = _inverse_root_in_parts(x)
    return where(abs(change) < math.inf, first + change, first)


def _inverse_root_in_parts(x: Term) -> tuple[Term, Term]:
    """By one step of Newton's."""
    first = 1.0 / x.op("sqrt")
    product = x * first
    missing = fma(-product, first, 1.0) - fma(x, first, -product) * first
    return first, first * missing * 0.5
