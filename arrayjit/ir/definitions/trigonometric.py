"""Trigonometric functions and their inverses, whatever the argument's size.

An angle is taken apart in quarter turns (`angles.py`); of the rest, polynomials give sine and cosine. In
float64 the rest comes in two parts, which keeps the error below one unit in the last place (as the
kernels of Sun's fdlibm do). Sines of float32s that are not far are taken in half turns, with one polynomial.
"""

from __future__ import annotations

import math

from ..dtype import F32, F64
from .angles import FAR, far_angle, less_half_turns, near_angle
from .elementary import horner, nearest, polynomial, rounded
from .terms import Term, definition, fma, rarely, where

__all__ = ["arccos", "arcsin", "arctan", "arctan2", "cos", "far_sine", "far_tangent", "sin", "tan"]

_SINE32 = (-0.1666665487335786, 0.008332173540391424, -0.00019516655590070436)
_COSINE32 = (0.04166664555454732, -0.0013887309869161325, 2.4432413185210705e-05)
# For an angle r of at most a quarter turn, the sine is r + r times this polynomial in r**2 - 0.75. Centred
# there, squares and sums lose so few bits to rounding that no sine exceeds 1.
_SINE_OF_QUARTER = (
    -0.12039534747600555, -0.15449687838554382, 0.007896150462329388, -0.00019029329996556044,
    2.611236823213403e-06,
)  # fmt: skip
_SINE64 = (
    -0.16666666666666632, 0.008333333333322316, -0.00019841269829725346, 2.7557313662094935e-06,
    -2.5050753269279832e-08, 1.5896505178499372e-10,
)  # fmt: skip
_COSINE64 = (
    0.041666666666666595, -0.0013888888888872895, 2.4801587288748003e-05, -2.7557314148574606e-07,
    2.0875696566339785e-09, -1.1358310182976058e-11,
)  # fmt: skip


Parts = tuple[Term, Term]
"""A number as the sum of two, the second far smaller."""


def _sine_and_cosine(large: Term, small: Term) -> tuple[Parts, Parts]:
    """For an angle of at most an eighth of a turn."""
    square = large * large
    half = fma(square, -0.5, 1.0)
    if large.dtype is F32:
        rest = (square * large) * horner(square, _SINE32)
        return (large, rest), (half, (square * square) * horner(square, _COSINE32))
    rest = fma(square * large, polynomial(square, _SINE64), small * half)
    lost = fma(square, -0.5, 1.0 - half) - large * small
    return (large, rest), (half, fma(square * square, polynomial(square, _COSINE64), lost))


def _negated(value: Term, count: Term) -> Term:
    """The value, or after two or three quarter turns its opposite."""
    sign = (count & 2).op("raw_left_shift", count.dtype.bits - 2)
    return (value.op("bits") ^ sign).op("from_bits")


def _is_odd(count: Term) -> Term:
    return count.op("raw_left_shift", count.dtype.bits - 1) < 0


def _wave(parts: tuple[Term, Term, Term]) -> Term:
    """The sine of an angle."""
    count, large, small = parts
    sine, cosine = _sine_and_cosine(large, small)
    odd = _is_odd(count)
    return _negated(where(odd, cosine[0], sine[0]) + where(odd, cosine[1], sine[1]), count)


def _is_far(x: Term) -> Term:
    return abs(x) >= FAR[x.dtype]


def _far_sine(x: Term, ahead: int) -> Term:
    return x.op("raw_far_sine", x.op("bits").const(ahead))


@definition
def far_sine(x: Term, ahead: Term) -> Term:
    """So many quarter turns ahead, which makes a cosine of it."""
    count, large, small = far_angle(x)
    return _wave((count + ahead, large, small))


def _of_half_turns(count: Term, angle: Term) -> Term:
    """The sine of an angle of at most a quarter turn, and its sign for each of so many half turns."""
    sine = fma(horner(fma(angle, angle, -0.75), _SINE_OF_QUARTER), angle, angle)
    return sine.op("bits") ^ count.op("raw_left_shift", count.dtype.bits - 1)


def _single_sine(x: Term) -> Term:
    """Of half turns, lest there be a choice of two polynomials."""
    size = abs(x)
    whole, count = rounded(size, 1 / math.pi)
    sign = x.op("bits") & (-1 << (count.dtype.bits - 1))
    return (_of_half_turns(count, less_half_turns(size, whole)) ^ sign).op("from_bits")


def _single_cosine(x: Term) -> Term:
    """The sine of what is missing to the next odd number of quarter turns."""
    size = abs(x)
    whole, count = nearest(fma(size, 1 / math.pi, -0.5))
    return _of_half_turns(count, -less_half_turns(size, whole + 0.5)).op("from_bits")


@definition
def sin(x: Term) -> Term:
    if x.dtype is F32:
        return rarely(_is_far(x), _far_sine(x, 0), _single_sine(x))
    value = rarely(_is_far(x), _far_sine(x, 0), _wave(near_angle(x)))
    return where(x == 0, x, value)


@definition
def cos(x: Term) -> Term:
    if x.dtype is F32:
        return rarely(_is_far(x), _far_sine(x, 1), _single_cosine(x))
    count, large, small = near_angle(x)
    return rarely(_is_far(x), _far_sine(x, 1), _wave((count + 1, large, small)))


def _slope(parts: tuple[Term, Term, Term]) -> Term:
    """Sine by cosine, or the other way round: a first quotient, then what both roundings took from it."""
    count, large, small = parts
    odd = _is_odd(count)
    sine, cosine = (_rounded(*number) for number in _sine_and_cosine(large, small))
    high, low = (where(odd, c, s) for s, c in zip(sine, cosine, strict=True))
    divisor, rest = (where(odd, s, c) for s, c in zip(sine, cosine, strict=True))
    inverse = 1.0 / divisor
    quotient = high * inverse
    exact = fma(fma(-quotient, divisor, high) + fma(-quotient, rest, low), inverse, quotient)
    return (exact.op("bits") ^ count.op("raw_left_shift", count.dtype.bits - 1)).op("from_bits")


def _rounded(large: Term, small: Term) -> Parts:
    total = large + small
    return total, small - (total - large)


@definition
def far_tangent(x: Term) -> Term:
    return _slope(far_angle(x))


@definition
def tan(x: Term) -> Term:
    value = rarely(_is_far(x), x.op("raw_far_tangent"), _slope(near_angle(x)))
    return where(x == 0, x, value)


# Inverses

_ARCTAN32 = (
    -0.3333315274397363, 0.19993773024863923, -0.1421105682221554, 0.1066601043142024,
    -0.07552226208922899, 0.04321199638822518, -0.016368008140157927, 0.002920711451008171,
)  # fmt: skip
_ARCTAN64 = (
    -0.3333333333333307, 0.19999999999951462, -0.14285714282575124, 0.11111111007026087,
    -0.09090907002982672, 0.07692279839123599, -0.06666404055787276, 0.05880527802262207,
    -0.05253518492747011, 0.04722322001116011, -0.042191783705954215, 0.03664189874013551,
    -0.02990383895578594, 0.021984829238647776, -0.013900537431750362, 0.0071964872707868666,
    -0.0028849103633406693, 0.0008313190342016344, -0.00015216026680525614, 1.3225016770857236e-05,
)  # fmt: skip
_ARCSINE32 = (
    0.1666665999173272, 0.0750050416077214, 0.04451695904290159, 0.03180769125353694,
    0.014438691672684745, 0.03751634669444297,
)  # fmt: skip
_ARCSINE64 = (
    0.1666666666666676, 0.07499999999970798, 0.04464285717461333, 0.030381942707730914,
    0.02237221498876952, 0.0173516119985812, 0.013980820680879316, 0.011398911405631033,
    0.010780256410954673, 0.003706397227025544, 0.02170747195751621, -0.020999095034514345,
    0.03262864309598111,
)  # fmt: skip

# pi / 2 and pi as the sum of two.
_RIGHT = {F32: (1.5707963705062866, -4.3711390001862426e-08), F64: (math.pi / 2, 6.123233995736766e-17)}
_STRAIGHT = {dtype: (2 * high, 2 * low) for dtype, (high, low) in _RIGHT.items()}


def _arctangent(ratio: Term) -> Term:
    """Of a number from 0 to 1."""
    square = ratio * ratio
    tail = _ARCTAN32 if ratio.dtype is F32 else _ARCTAN64
    return fma(ratio * square, horner(square, tail), ratio)


def _added(base: tuple[Term, Term], angle: Term, negated: Term) -> Term:
    """The angle or its opposite, from a base."""
    return base[0] + (where(negated, -angle, angle) + base[1])


@definition
def arctan(x: Term) -> Term:
    size = abs(x)
    steep = size > 1
    angle = _arctangent(where(steep, 1.0 / size, size))
    high, low = (where(steep, x.const(part), 0.0) for part in _RIGHT[x.dtype])
    return _added((high, low), angle, steep).op("copysign", x)


@definition
def arctan2(y: Term, x: Term) -> Term:
    across, up = abs(x), abs(y)
    steep, behind = up > across, x.op("signbit")
    shorter, longer = where(steep, across, up), where(steep, up, across)
    # Equal are also both zeros and both infinities.
    ratio = where(shorter == longer, where(shorter == 0, shorter, 1.0), shorter / longer)
    parts = zip(_RIGHT[x.dtype], _STRAIGHT[x.dtype], strict=True)
    high, low = (
        where(steep, x.const(right), where(behind, x.const(straight), 0.0)) for right, straight in parts
    )
    return _added((high, low), _arctangent(ratio), steep ^ behind).op("copysign", y)


def _arcsine_parts(size: Term) -> tuple[Term, Term, Term]:
    """Whether the number is large, and the sum of two that is then half its arc cosine, else its arc sine."""
    large = size >= 0.5
    square = where(large, fma(size, -0.5, 0.5), size * size)
    root = where(large, square.op("sqrt"), size)
    tail = _ARCSINE32 if size.dtype is F32 else _ARCSINE64
    rest = (root * square) * polynomial(square, tail)
    if size.dtype is F64:
        # What the root lost to rounding; the little number keeps 0 / 0 away.
        lost = fma(-root, root, square) / fma(root, 2.0, 2.0**-200)
        rest = where(large, rest + lost, rest)
    return large, root, rest


@definition
def arcsin(x: Term) -> Term:
    large, root, rest = _arcsine_parts(abs(x))
    high, low = _RIGHT[x.dtype]
    base = fma(root, -2.0, high)
    lost = fma(root, -2.0, high - base)
    beyond = base + fma(rest, -2.0, lost + low)
    return where(large, beyond, root + rest).op("copysign", x)


@definition
def arccos(x: Term) -> Term:
    large, root, rest = _arcsine_parts(abs(x))
    angle = root + rest
    obtuse = x < 0
    bases = zip(_RIGHT[x.dtype], _STRAIGHT[x.dtype], strict=True)
    high, low = (where(large, where(obtuse, x.const(straight), 0.0), right) for right, straight in bases)
    return _added((high, low), where(large, angle + angle, angle), where(large, obtuse, ~obtuse))
