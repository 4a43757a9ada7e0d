"""Angles of any size taken apart: so many quarter turns, and a rest of at most one eighth.

Angles of everyday size lose the multiple of pi / 2 in pieces (Cody and Waite, Software Manual for the
Elementary Functions, 1980); fused multiply-add makes the first subtraction exact. Larger ones are multiplied
by just those bits of 2 / pi that decide the fraction (Payne and Hanek, Radian reduction for trigonometric
functions, 1983).
"""

from __future__ import annotations

import math
from itertools import pairwise

from ..dtype import F32, F64, I64, named
from .elementary import WIDTHS, rounded
from .layout import mantissa_bits
from .terms import Term, fma, where

__all__ = ["FAR", "far_angle", "less_half_turns", "near_angle"]

FAR = {F32: 2.0**17, F64: 2.0**40}
"""From here on an angle is far."""

# pi / 2 in pieces, each cut off so that what is left is positive: then -0.0 stays what it is.
_QUARTER = {
    F32: (1.570796251296997, 7.549789415861596e-08, 5.390302529957765e-15),
    F64: (1.5707963267948966, 6.123233995736765e-17, 1.0828566739219139e-32),
}


def near_angle(x: Term) -> tuple[Term, Term, Term]:
    """How many quarter turns, as an integer; the rest; and, in float64, what its rounding left out."""
    whole, count = rounded(x, 2 / math.pi)
    first, second, third = _QUARTER[x.dtype]
    rest = fma(whole, -first, x)
    if x.dtype is F32:
        return count, fma(whole, -third, fma(whole, -second, rest)), x.const(0.0)
    product = whole * second
    lost = fma(whole, third, fma(whole, second, -product))
    large = rest - product
    return count, large, ((rest - large) - product) - lost


def less_half_turns(x: Term, count: Term) -> Term:
    """A near float32 less so many half turns, or odd multiples of a quarter one."""
    for piece in _QUARTER[F32]:
        x = fma(count, -2 * piece, x)
    return x


def far_angle(x: Term) -> tuple[Term, Term, Term]:
    """The same for an angle that is not near."""
    return _far_single(x) if x.dtype is F32 else _far_double(x)


# 1 / 2 pi in pieces of 28 bits: the product of each with a float32 is exact.
_TURNS = tuple(
    float.fromhex(piece)
    for piece in (
        "0x1.45f306cp-3", "0x1.c9c882ap-31", "0x1.4fe13aap-61", "0x1.e8fa9a6p-89", "0x1.dc0db62p-118",
        "0x1.2b32788p-147", "0x1.c820ff2p-177",
    )
)  # fmt: skip
# From here on the product with any float32 is below one turn.
_SMALL_TURNS = 5


def _far_single(x: Term) -> tuple[Term, Term, Term]:
    """In float64: whole turns are dropped from each exact product before they are added."""
    wide = x.cast(F64)
    turns = wide.const(0.0)
    for piece in _TURNS[:_SMALL_TURNS]:
        product = wide * piece
        turns = turns + (product - product.op("rint"))
    for piece in _TURNS[_SMALL_TURNS:]:
        turns = fma(wide, piece, turns)
    quarters = turns * 4.0
    whole = quarters.op("rint")
    rest = ((quarters - whole) * (math.pi / 2)).cast(F32)
    count = (whole.cast(F32) + WIDTHS[F32].rounder).op("bits")
    return count, rest, rest.const(0.0)


U64 = named("u64")

# 2 / pi after 14 zero bits.
_TWO_OVER_PI = (
    0x00028BE60DB93910, 0x54A7F09D5F47D4D3, 0x77036D8A5664F10E, 0x4107F9458EAF7AEF,
    0x1586DC91B8E90937, 0x4B801924BBA82746, 0x4873F877AC72C4A6, 0x9CFBA208D7D4BAED,
    0x1213A671C09AD17D, 0xF904E64758E60D4C, 0xE7D272117E2EF7E4, 0xA0EC7FE25FFF7816,
    0x603FBCBC462D6829, 0xB47DB4D9FB3C9F2C, 0x26DD3D18FD9A797F, 0xA8B5D49EEB1FAF97,
    0xC5ECF41CE7DE294A, 0x4BA9AFED7EC47E35, 0x7421580CC11BF1ED,
)  # fmt: skip
_ZEROS = 14
_LOW = 0xFFFFFFFF


def _far_double(x: Term) -> tuple[Term, Term, Term]:
    """In integers. x is `m * 2**e`, m having 53 bits. Of 2 / pi the 192 bits count that follow those whose
    product with x is a multiple of four; the highest two bits of their product with m are quarter turns."""
    bits = abs(x).op("bits").cast(U64)
    m = (bits & (2**52 - 1)) | 2**52
    start = bits.op("raw_right_shift", mantissa_bits(F64)) - (1023 + 52 + 2 - _ZEROS)
    high, middle, low = _window(start)
    carried = m * middle
    lowest = carried + _upper_product(m, low)
    total = m * high + _upper_product(m, middle) + where(lowest < carried, lowest.const(1), 0)
    return _quarters(x, total, lowest)


def _window(start: Term) -> tuple[Term, Term, Term]:
    """192 bits of the table from a position on."""
    number = start.op("raw_right_shift", 6)
    words = [start.const(word) for word in _TWO_OVER_PI]
    for step, left in ((8, 11), (4, 7), (2, 5), (1, 4)):
        moved = (number & step) != 0
        words = [where(moved, words[k + step], words[k]) for k in range(left)]
    shift = start & 63
    rest = shift ^ 63
    first, second, third = (
        word.op("raw_left_shift", shift) | following.op("raw_right_shift", 1).op("raw_right_shift", rest)
        for word, following in pairwise(words)
    )
    return first, second, third


def _upper_product(m: Term, word: Term) -> Term:
    """The upper 64 bits of a product."""
    left, right = (m & _LOW, m.op("raw_right_shift", 32)), (word & _LOW, word.op("raw_right_shift", 32))
    crossed, other = left[0] * right[1], left[1] * right[0]
    middle = (left[0] * right[0]).op("raw_right_shift", 32) + (crossed & _LOW) + (other & _LOW)
    upper = crossed.op("raw_right_shift", 32) + other.op("raw_right_shift", 32)
    return left[1] * right[1] + upper + middle.op("raw_right_shift", 32)


def _quarters(x: Term, high: Term, low: Term) -> tuple[Term, Term, Term]:
    """128 bits of quarter turns, two of them whole; the rest is between -1/2 and 1/2."""
    count = (high + 2**61).op("raw_right_shift", 62).cast(I64)
    fraction = high.op("raw_left_shift", 2) | low.op("raw_right_shift", 62)
    # In two parts that float64 holds: the upper 53 bits, signed, and the 63 below.
    upper = (fraction & (2**64 - 2**11)).cast(I64).cast(F64) * 2.0**-64
    below = (fraction & (2**11 - 1)).op("raw_left_shift", 52) | (
        low.op("raw_left_shift", 2).op("raw_right_shift", 12)
    )
    lower = below.cast(I64).cast(F64) * 2.0**-116
    quarters = upper + lower
    lost = lower - (quarters - upper)
    first, second, _ = _QUARTER[F64]
    large = quarters * first
    small = fma(quarters, first, -large) + fma(quarters, second, lost * first)
    negative = x < 0
    large, small = where(negative, -large, large), where(negative, -small, small)
    infinite = abs(x) == math.inf
    return where(negative, 0 - count, count), where(infinite, math.nan, large), small
