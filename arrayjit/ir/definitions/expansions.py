"""The derived ops: what each is made of, so that every target gets them from its primitives.

Each has NumPy's exact values. Operands that the machine leaves undefined (division by zero, shift
counts beyond the width) are replaced before they reach a `raw_` op, so no target meets them.
The elementary functions are in `elementary.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ..dtype import BF16, BOOL, F16, F64, I32, DType, Kind, named
from .layout import from_bits, largest_exponent, mantissa_bits, power_of_two, signed, unsigned
from .terms import Term, definition, fma, rarely, where


@definition
def identity(x: Term) -> Term:
    return x


@definition
def negative(x: Term) -> Term:
    return from_bits(x.op("bits") ^ _sign_bit(x.dtype), x.dtype) if x.dtype.is_small else 0 - x


@definition
def absolute(x: Term) -> Term:
    if x.dtype.is_small:
        return from_bits(x.op("bits") & ~_sign_bit(x.dtype), x.dtype)
    return where(x < 0, 0 - x, x) if x.dtype.kind is Kind.INT else x


def _sign_bit(dtype: DType) -> int:
    """Of a float, as the signed integer of its width that has no other bit."""
    return -1 << (dtype.bits - 1)


@definition
def sign(x: Term) -> Term:
    """Of zeros 0.0, but of bfloat16 itself."""
    if x.dtype.kind is Kind.UINT:
        return where(x > 0, x.const(1), 0)
    negative_or_zero = where(x < 0, x.const(-1), where(x == 0, x if x.dtype is BF16 else 0, x))
    return where(x > 0, 1, negative_or_zero)


@definition
def square(x: Term) -> Term:
    return x * x


@definition
def reciprocal(x: Term) -> Term:
    if x.dtype.is_float:
        return 1.0 / x
    # NumPy divides in float64 and converts back, which for 1/0 leaves what the processor gives.
    return (1.0 / x.cast(F64)).cast(x.dtype)


@definition
def deg2rad(x: Term) -> Term:
    number = x.dtype.numpy.type
    return x * float(number(math.pi) / number(180))


@definition
def rad2deg(x: Term) -> Term:
    number = x.dtype.numpy.type
    return x * float(number(180) / number(math.pi))


# Comparison and logic


@definition
def isnan(x: Term) -> Term:
    return x != x


@definition
def isinf(x: Term) -> Term:
    return abs(x) == math.inf if x.dtype.is_float else x != x


@definition
def isfinite(x: Term) -> Term:
    return abs(x) < math.inf if x.dtype.is_float else x == x


@definition
def signbit(x: Term) -> Term:
    return x.op("bits") < 0


def _truth(x: Term) -> Term:
    return x if x.dtype is BOOL else x != 0


@definition
def logical_and(x: Term, y: Term) -> Term:
    return _truth(x) & _truth(y)


@definition
def logical_or(x: Term, y: Term) -> Term:
    return _truth(x) | _truth(y)


@definition
def logical_xor(x: Term, y: Term) -> Term:
    return _truth(x) ^ _truth(y)


@definition
def logical_not(x: Term) -> Term:
    return x == 0


@definition
def invert(x: Term) -> Term:
    return x ^ (-1 if x.dtype.kind is Kind.INT else 2**x.dtype.bits - 1 if x.dtype.is_integer else True)


def _mixed(name: str, if_left_negative: bool, if_right_negative: bool) -> Callable[..., Any]:
    """A comparison of an int64 with a uint64: by value, as NumPy does."""

    @definition
    def compare(x: Term, y: Term) -> Term:
        unsigned = x.cast(named("u64")).op(name, y.cast(named("u64")))
        if x.dtype.kind is Kind.INT:
            return where(x < 0, if_left_negative, unsigned)
        return where(y < 0, if_right_negative, unsigned)

    return compare


equal = _mixed("equal", False, False)
not_equal = _mixed("not_equal", True, True)
less = _mixed("less", True, False)
less_equal = _mixed("less_equal", True, False)
greater = _mixed("greater", False, True)
greater_equal = _mixed("greater_equal", False, True)


# Extremes. Of two zeros the second is taken, as NumPy's x86 loops do; its ARM loops are primitives.


def _pick(name: str, x: Term, y: Term) -> Term:
    """The one for which a comparison holds; of two zeros of float16 NumPy takes the first."""
    return where(x.op(f"{name}_equal" if x.dtype is F16 else name, y), x, y)


def _bounded(name: str, x: Term, y: Term) -> Term | None:
    """The extreme of a float and a known number: a NaN does not compare, and stays."""
    bound = y.known
    if not x.dtype.is_float or bound is None or bound != bound:
        return None
    return where(y.op(name if bound or x.dtype is F16 else f"{name}_equal", x), y, x)


def _extreme(name: str, among_numbers: bool) -> Callable[..., Any]:
    """The one for which a comparison holds. With a NaN it is NaN, or `among_numbers` the other one."""

    @definition
    def extreme(x: Term, y: Term) -> Term:
        bounded = None if among_numbers else _bounded(name, x, y)
        if bounded is not None:
            return bounded
        picked = _pick(name, x, y)
        if not x.dtype.is_float:
            return picked
        return where(y != y if among_numbers else x != x, x, picked)

    return extreme


maximum, minimum = _extreme("greater", False), _extreme("less", False)
fmax, fmin = _extreme("greater", True), _extreme("less", True)


@definition
def heaviside(x: Term, at_zero: Term) -> Term:
    step = where(x < 0, x.const(0.0), 1.0)
    return where(x != x, x, where(x == 0, at_zero, step))


# Shifts and division of integers


@definition
def left_shift(x: Term, count: Term) -> Term:
    inside = _shiftable(count)
    return where(inside, x.op("raw_left_shift", where(inside, count, 0)), 0)


@definition
def right_shift(x: Term, count: Term) -> Term:
    inside = _shiftable(count)
    most = x.dtype.bits - 1
    if x.dtype.kind is Kind.INT:
        return x.op("raw_right_shift", where(inside, count, most))
    return where(inside, x.op("raw_right_shift", where(inside, count, most)), 0)


def _shiftable(count: Term) -> Term:
    return count.cast(unsigned(count.dtype)) < count.dtype.bits


def _safe_divisor(y: Term) -> Term:
    """`y`, but 1 where division by it is undefined: zero, and -1, which overflows for the least integer."""
    if y.known not in (None, 0, -1):
        return y
    undefined = y == 0
    if y.dtype.kind is Kind.INT:
        undefined = undefined | (y == -1)
    return where(undefined, 1, y)


def _binary_digits(y: Term) -> int | None:
    """Of a known power of two the exponent."""
    known = int(y.known or 0)
    return known.bit_length() - 1 if known > 0 and known.bit_count() == 1 else None


def _on_wrong_side(rest: Term, divisor: Term) -> Term:
    """Does what a division towards zero leaves have another sign than the divisor?"""
    if (divisor.known or 0) > 0:
        return rest < 0
    return (rest != 0) & ((rest ^ divisor) < 0)


def _floor_divide_integers(x: Term, y: Term) -> Term:
    digits = _binary_digits(y)
    if digits is not None:
        return x.op("raw_right_shift", digits)
    divisor = _safe_divisor(y)
    quotient = x.op("raw_divide", divisor)
    if x.dtype.kind is Kind.INT:
        rest = x - quotient * divisor
        rounded_up = _on_wrong_side(rest, divisor)
        quotient = where(y == -1, 0 - x, where(rounded_up, quotient - 1, quotient))
    return where(y == 0, 0, quotient)


def _remainder_integers(x: Term, y: Term) -> Term:
    if _binary_digits(y) is not None:
        return x & (y - 1)
    divisor = _safe_divisor(y)
    rest = x.op("raw_remainder", divisor)
    if x.dtype.kind is Kind.INT:
        rest = where(_on_wrong_side(rest, divisor), rest + divisor, rest)
    # Anything modulo the stand-in 1 is 0, which is NumPy's answer for both undefined divisors.
    return rest


@definition
def floor_divide(x: Term, y: Term) -> Term:
    if x.dtype.is_integer:
        return _floor_divide_integers(x, y)
    rest = x.op("fmod", y)
    wrong_side = (rest != 0) & ((y < 0) ^ (rest < 0))
    quotient = (x - rest) / y
    quotient = where(wrong_side, quotient - 1.0, quotient)
    floor = quotient.op("floor")
    floor = where(quotient - floor > 0.5, floor + 1.0, floor)
    exact = x / y
    floor = where(quotient == 0, exact.const(0.0).op("copysign", exact), floor)
    return where(y == 0, exact, floor)


@definition
def remainder(x: Term, y: Term) -> Term:
    if x.dtype.is_integer:
        return _remainder_integers(x, y)
    rest = x.op("fmod", y)
    wrong_side = (y < 0) ^ (rest < 0)
    zero = y.const(0.0).op("copysign", y)
    return where(rest == 0, zero, where(wrong_side, rest + y, rest))


@definition
def divmod_quotient(x: Term, y: Term) -> Term:
    return x.op("floor_divide", y)


@definition
def divmod_remainder(x: Term, y: Term) -> Term:
    return x.op("remainder", y)


@definition
def wrapped_difference(x: Term, y: Term) -> Term:
    return x - y


@definition
def upper_half(x: Term, y: Term) -> Term:
    """By the products of the halves of both. Taken without their sign, negative numbers are larger by the
    power of two that their bits end at."""
    if x.dtype.kind is Kind.INT:
        plain, sign = named(f"u{x.dtype.bits}"), x.dtype.bits - 1
        product = x.cast(plain).op("raw_upper_half", y.cast(plain)).cast(x.dtype)
        return product - (x.op("raw_right_shift", sign) & y) - (y.op("raw_right_shift", sign) & x)
    half = x.dtype.bits // 2
    low = (1 << half) - 1
    x_low, x_high = x & low, x.op("raw_right_shift", half)
    y_low, y_high = y & low, y.op("raw_right_shift", half)
    middle = x_high * y_low + (x_low * y_low).op("raw_right_shift", half)
    other = x_low * y_high + (middle & low)
    return x_high * y_high + middle.op("raw_right_shift", half) + other.op("raw_right_shift", half)


@definition
def fmod(x: Term, y: Term) -> Term:
    """Of floats it is exact, so that every way there gives the same bits. The quotient, where it has no more
    bits than a mantissa, is cut off to the right whole number, or was rounded up to the next. What is left
    is a float in both cases, which a fused multiply-add finds, and in the second one less than zero."""
    if not x.dtype.is_float:
        return x.op("raw_remainder", _safe_divisor(y))
    size, unit = abs(x), abs(y)
    quotient = (size / unit).op("trunc")
    rest = fma(-quotient, unit, size)
    rest = where(rest < 0, rest + unit, rest)
    is_usual = (quotient < 2.0 ** mantissa_bits(x.dtype)) & (unit < math.inf)
    return rarely(~is_usual, x.op("raw_remainder", y), rest.op("copysign", x))


@definition
def integer_power(x: Term, y: Term) -> Term:
    """Square and multiply, modulo the width. NumPy raises for negative exponents: whoever builds
    the program puts a Check before."""
    return _power_from(1, 3, where((y & 1) != 0, x, 1), x, y)


def _power_from(start: int, end: int, result: Term, x: Term, y: Term) -> Term:
    """The power, of whose exponent the bits before `start` are done; `x` is the power of the last of them.
    Most exponents have few, and whether one has any from `end` on is asked before these are done."""
    for bit in range(start, end):
        x = x * x
        result = where((y & (1 << bit)) != 0, result * x, result)
    width = x.dtype.bits - (x.dtype.kind is Kind.INT)
    if end == width:
        return result
    has_more = y.op("raw_right_shift", end) != 0
    return rarely(has_more, _power_from(end, min(end + 8, width), result, x, y), result)


@definition
def float_power(x: Term, y: Term) -> Term:
    return x.op("power", y)


@definition
def bitwise_count(x: Term) -> Term:
    return abs(x).op("popcount").cast(named("u8"))


def _drop_trailing_zeros(x: Term) -> Term:
    """`x >> trailing_zeros(x)`, x unsigned and not 0."""
    return x.op("raw_right_shift", _trailing_zeros(x))


def _trailing_zeros(x: Term) -> Term:
    return ((x & (0 - x)) - 1).op("popcount")


def _gcd(x: Term, y: Term) -> Term:
    """Stein's algorithm on unsigned integers."""
    both = x | y
    some = where(both == 0, 1, both)
    left = _drop_trailing_zeros(where(x == 0, some, x))
    right = _drop_trailing_zeros(where(y == 0, some, y))
    odd = _odd_gcd(left, right, 2 * x.dtype.bits - 1, 8)
    return where(both == 0, 0, odd.op("raw_left_shift", _trailing_zeros(some)))


def _odd_gcd(left: Term, right: Term, rounds: int, at_once: int) -> Term:
    """Of odd numbers. Each round at least halves their product, so two for each bit suffice. Most numbers
    need far fewer, and whether any needs more is asked now and then."""
    for _ in range(at_once):
        is_less = left < right
        smaller = where(is_less, left, right)
        difference = where(is_less, right, left) - smaller
        left, right = smaller, _drop_trailing_zeros(where(difference == 0, smaller, difference))
    rest = rounds - at_once
    return rarely(left != right, _odd_gcd(left, right, rest, min(rest, 4)), left) if rest else left


def _magnitude(x: Term) -> Term:
    return abs(x).cast(unsigned(x.dtype))


@definition
def gcd(x: Term, y: Term) -> Term:
    return _gcd(_magnitude(x), _magnitude(y)).cast(x.dtype)


@definition
def lcm(x: Term, y: Term) -> Term:
    left, right = _magnitude(x), _magnitude(y)
    common = _gcd(left, right)
    return (left.op("raw_divide", where(common == 0, 1, common)) * right).cast(x.dtype)


# The parts of a float


@definition
def ldexp(x: Term, exponent: Term) -> Term:
    """`x * 2**exponent`: one product, if the power is a normal number."""
    top, integer = largest_exponent(x.dtype), signed(x.dtype)
    usual = x * power_of_two(exponent.cast(integer) + top, x.dtype)
    return rarely((exponent < 1 - top) | (exponent > top), _ldexp_in_steps(x, exponent), usual)


def _ldexp_in_steps(x: Term, exponent: Term) -> Term:
    """In three exact steps and one rounding: a step down leaves enough of the way that whatever it rounded
    off ends as zero."""
    top, integer = largest_exponent(x.dtype), signed(x.dtype)
    down = 1 - top + mantissa_bits(x.dtype) + 1
    rest = exponent
    for _ in range(2):
        step = where(rest < 1 - top, down, where(rest > top, top, rest))
        x, rest = x * power_of_two(step.cast(integer) + top, x.dtype), rest - step
    rest = where(rest < 1 - top, 1 - top, where(rest > top, top, rest))
    return x * power_of_two(rest.cast(integer) + top, x.dtype)


def _frexp(x: Term) -> tuple[Term, Term]:
    """Mantissa in [0.5, 1) and exponent; of zero, infinities and NaN the number itself and 0."""
    width, bias = mantissa_bits(x.dtype), largest_exponent(x.dtype)
    plain = (x != 0) & (abs(x) < math.inf)
    tiny = abs(x) < 2.0 ** (1 - bias)
    bits = where(tiny, x * 2.0**width, x).op("bits")
    field = (1 << width) * (2 * bias + 1)
    exponent = (bits & field).op("raw_right_shift", width) - (bias - 1)
    exponent = exponent - where(tiny, exponent.const(width), 0)
    mantissa = ((bits & ~field) | ((bias - 1) << width)).op("from_bits")
    return where(plain, mantissa, x), where(plain, exponent, 0).cast(I32)


@definition
def frexp_mantissa(x: Term) -> Term:
    return _frexp(x)[0]


@definition
def frexp_exponent(x: Term) -> Term:
    return _frexp(x)[1]


@definition
def modf_fraction(x: Term) -> Term:
    rest = where(abs(x) == math.inf, 0.0, x - x.op("trunc"))
    return rest.op("copysign", x)


@definition
def modf_integer(x: Term) -> Term:
    return x.op("trunc")


@definition
def nextafter(x: Term, y: Term) -> Term:
    """Of equal zeros NumPy gives the second, but of float16 the first."""
    bits = x.op("bits")
    away = (x < y) ^ (x < 0)
    moved = from_bits(bits + where(away, bits.const(1), -1), x.dtype)
    least = _least_positive(x).op("copysign", y)
    moved = where(x == 0, least, moved)
    return where((x != x) | (y != y), x + y, where(x == y, x if x.dtype is F16 else y, moved))


@definition
def spacing(x: Term) -> Term:
    """To the next number away from zero, but from a float16 to the next greater one; from zero up, but from
    bfloat16's of either sign on its own side."""
    bits = x.op("bits")
    beyond = from_bits(bits + (where(x < 0, bits.const(-1), 1) if x.dtype is F16 else 1), x.dtype)
    least = _least_positive(x)
    gap = where(x == 0, least.op("copysign", x) if x.dtype is BF16 else least, beyond - x)
    return where(abs(x) < math.inf, gap, math.nan)


def _least_positive(x: Term) -> Term:
    return x.const(2.0 ** (1 - largest_exponent(x.dtype) - mantissa_bits(x.dtype)))


# Sums of exponentials


@definition
def logaddexp(x: Term, y: Term) -> Term:
    larger = _pick("greater", x, y)
    distance = abs(x - y)
    total = larger + (-distance).op("exp").op("log1p")
    return where(x == y, x + math.log(2), where(distance == distance, total, distance))


@definition
def logaddexp2(x: Term, y: Term) -> Term:
    larger = _pick("greater", x, y)
    distance = abs(x - y)
    total = larger + (-distance).op("exp2").op("log1p") * (1 / math.log(2))
    return where(x == y, x + 1.0, where(distance == distance, total, distance))


# The gates of neural networks


@definition
def relu(x: Term) -> Term:
    return x.op("maximum", 0)


@definition
def relu_gate(x: Term, y: Term) -> Term:
    return where(x > 0, y, 0)


@definition
def satur01(x: Term) -> Term:
    return x.op("maximum", 0).op("minimum", 1)


@definition
def satur01_gate(x: Term, y: Term) -> Term:
    return where((x > 0) & (x < 1), y, 0)


@definition
def recip_sqrt(x: Term) -> Term:
    return 1.0 / x.op("sqrt")


@definition
def tanh_approx(x: Term) -> Term:
    return x.op("tanh")
