"""Elementary functions as straight-line arithmetic, for whole vectors: no branch, no call, no table
but those that registers hold.

Each is right for every argument (NaN, infinities, subnormal numbers, overflow, -0.0), within the error
that its row in `ops.py` publishes, and, being made of exactly rounded primitives, gives the same bits on
every target. Polynomials are minimax fits.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from ...frozen import frozen
from ..dtype import F32, F64, DType
from .layout import largest_exponent, mantissa_bits, power_of_two, shifted_right
from .tables import EXP_POWERS
from .terms import Number, Term, definition, fma, rarely, where

__all__ = [
    "NEGLIGIBLE",
    "WIDTHS",
    "changed",
    "clamped",
    "doublings",
    "exp",
    "exp2",
    "expm1",
    "expm1_half",
    "exponent_and_mantissa",
    "exponent_unit",
    "half_exp",
    "horner",
    "lifted_if_tiny",
    "nearest",
    "normal_parts",
    "parts_from",
    "polynomial",
    "rounded",
    "scaled",
    "short_exp2",
    "times_power_of_two",
    "usual_exp",
]


@frozen
class Width:
    """What depends on the float's width.

    `rounder` added to a number rounds it to an integer, which then stands in the sum's lowest bits.
    `ln2_high` has trailing zeros, so that its product with an exponent is exact. `exp_span` is where e**x
    leaves the finite numbers, `expm1_bottom` where it no longer differs from -1; within `usual_exponent` of 0
    it is far from doing so, and from subnormal numbers. `exp_tail` has the terms of e**r from the square on,
    for r up to half a step of the table of powers, `expm1_tail` up to half of log 2.
    """

    rounder: float
    rounder_bits: int
    ln2_high: float
    ln2_low: float
    log2_e: tuple[float, float]
    log10_e: tuple[float, float]
    log10_2: tuple[float, float]
    exp_span: tuple[float, float]
    usual_exponent: float
    expm1_bottom: float
    exp_tail: tuple[float, ...]
    expm1_tail: tuple[float, ...]
    log_tail: tuple[float, ...]


WIDTHS: Mapping[DType, Width] = {
    F32: Width(
        rounder=12582912.0,
        rounder_bits=0x4B400000,
        ln2_high=float.fromhex("0x1.62e4p-1"),
        ln2_low=1.4286068203094173e-06,
        log2_e=(1.4426950216293335, 1.925963033500011e-08),
        log10_e=(0.4342944920063019, -1.0103049952192578e-08),
        log10_2=(0.301025390625, 4.605038981195214e-06),
        exp_span=(-104.5, 90.0),
        usual_exponent=87.0,
        expm1_bottom=-18.0,
        exp_tail=(0.5000163316726685, 0.16666923463344574),
        expm1_tail=(
            0.5000000096919017, 0.16666517121158048, 0.04166620031218392, 0.008369095723616266,
            0.0013950854692386782,
        ),
        log_tail=(
            0.33333224543473844, -0.24999688214718224, 0.20010012282132744, -0.16685482980476765,
            0.14011351620796075, -0.12114962349924391, 0.1396061158268358, -0.13192132591807013,
        ),
    ),
    F64: Width(
        rounder=6755399441055744.0,
        rounder_bits=0x4338000000000000,
        ln2_high=float.fromhex("0x1.62e42fefa38p-1"),
        ln2_low=5.497923018708371e-14,
        log2_e=(1.4426950408889634, 2.0355273740931033e-17),
        log10_e=(0.4342944819032518, 1.098319650216765e-17),
        log10_2=(0.30102999566383914, 1.42050232272661e-13),
        exp_span=(-746.0, 711.0),
        usual_exponent=708.0,
        expm1_bottom=-40.0,
        exp_tail=(
            0.5000000000000308, 0.16666666666666702, 0.04166666656796707, 0.00833333332868767,
            0.001388978954603666, 0.00019841987264472842,
        ),
        expm1_tail=(
            0.5000000000000013, 0.16666666666666702, 0.04166666666651207, 0.008333333333306174,
            0.001388888894798701, 0.0001984126991962783, 2.4801488852538184e-05, 2.755721429934537e-06,
            2.7631695676513794e-07, 2.5118491133795496e-08,
        ),
        log_tail=(
            0.6666666666666731, 0.39999999999435915, 0.2857142873841359, 0.22222198929308518,
            0.18183547781649026, 0.15314434998178075, 0.1479241573242352,
        ),
    ),
}  # fmt: skip


# So small a number equals its sine, its e**x - 1 and the like, in every width.
NEGLIGIBLE = 2.0**-54

_LONG = 24
"""The most coefficients that two chains are enough for."""


def polynomial(x: Term, coefficients: tuple[float, ...]) -> Term:
    """From the constant term up; long ones in two interleaved chains, which halves the wait, the longest ones
    in four."""
    if len(coefficients) <= 5:
        return horner(x, coefficients)
    square = x * x
    if len(coefficients) <= _LONG:
        return fma(horner(square, coefficients[1::2]), x, horner(square, coefficients[0::2]))
    fourth = square * square
    first, second, third, last = (horner(fourth, coefficients[start::4]) for start in range(4))
    return fma(fma(last, x, third), square, fma(second, x, first))


def horner(x: Term, coefficients: tuple[float, ...]) -> Term:
    total = x.const(coefficients[-1])
    for coefficient in coefficients[-2::-1]:
        total = fma(total, x, coefficient)
    return total


def clamped(x: Term, bottom: Number, top: Number) -> Term:
    """NaN stays NaN."""
    x = where(x > top, top, x)
    return where(x < bottom, bottom, x)


# Exponentials: x = n ln 2 / N + r with |r| <= ln 2 / 2N, and e**x = 2**(n/N) (1 + q(r)), of which a table of
# N powers has the first factor but for a whole power of two.


def rounded(x: Term, factor: float) -> tuple[Term, Term]:
    """The integer nearest to `x * factor`, as a float and in the lowest bits of an integer, which has other
    bits above: moved up by the bits of a mantissa, it is right."""
    return _integer(fma(x, factor, WIDTHS[x.dtype].rounder))


def nearest(x: Term) -> tuple[Term, Term]:
    """The integer nearest to `x`, in the same way."""
    return _integer(x + WIDTHS[x.dtype].rounder)


def _integer(shifted: Term) -> tuple[Term, Term]:
    return shifted - WIDTHS[shifted.dtype].rounder, shifted.op("bits")


def _per_doubling(dtype: DType) -> int:
    """How many steps of the table make the power twice as large."""
    return len(EXP_POWERS[dtype])


def _steps_and_change(x: Term) -> tuple[Term, Term]:
    """How many steps up the power nearest to `e**x` is, in the lowest bits of an integer, and how much
    e**x differs from it, relative to it."""
    width, count = WIDTHS[x.dtype], _per_doubling(x.dtype)
    whole, steps = rounded(x, count / math.log(2))
    r = fma(whole, -width.ln2_low / count, fma(whole, -width.ln2_high / count, x))
    return steps, _exp_change(r)


def _exp_change(r: Term) -> Term:
    """`e**r - 1`."""
    return fma(r * r, polynomial(r, WIDTHS[r.dtype].exp_tail), r)


def _changed(entry: Term, steps: Term, change: Term) -> Term:
    """The power of the table at `entry`, so many `steps` up and changed by so much."""
    return changed(entry.op("raw_exp_bits"), steps, change, _per_doubling(change.dtype))


def changed(entry: Term, steps: Term, change: Term, per_doubling: int) -> Term:
    """An entry of a table of powers, so many per doubling, that is so many `steps` up and changed by so much,
    relative to it."""
    moved = steps.op("raw_left_shift", mantissa_bits(change.dtype) + 1 - per_doubling.bit_length())
    power = (entry.op("bits") + moved).op("from_bits")
    return fma(power, change, power)


def doublings(steps: Term, dtype: DType, per_doubling: int) -> tuple[Term, Term]:
    """Of so many steps: how many are left over, and the whole powers of two in the way of `rounded`."""
    up, rounder = 1 << mantissa_bits(dtype) - 2, WIDTHS[dtype].rounder_bits
    whole = shifted_right(steps + (up - rounder), per_doubling.bit_length() - 1)
    return steps & (per_doubling - 1), whole + (rounder - up // per_doubling)


def scaled(x: Term, k: Term) -> Term:
    """`x * 2**k` in two steps, so that 2**k itself may be out of range; only the second one rounds."""
    both = k + (2 * largest_exponent(x.dtype) - WIDTHS[x.dtype].rounder_bits)
    first = shifted_right(both, 1)
    return x * power_of_two(first, x.dtype) * power_of_two(both - first, x.dtype)


def in_span(x: Term) -> Term:
    return clamped(x, *WIDTHS[x.dtype].exp_span)


def exp_in_span(x: Term, halvings: int = 0) -> Term:
    """`e**x / 2**halvings`, for x within the span."""
    steps, change = _steps_and_change(x)
    return _scaled_power(steps, change, halvings)


def _scaled_power(steps: Term, change: Term, halvings: int = 0) -> Term:
    """The same as `_changed` and halved, whatever the result is."""
    left, k = doublings(steps, change.dtype, _per_doubling(change.dtype))
    return scaled(_changed(left, left, change), k - halvings if halvings else k)


def usual_exp(x: Term) -> Term:
    """e**x where it is neither too large nor subnormal."""
    steps, change = _steps_and_change(x)
    return _changed(steps, steps, change)


def _power_of(x: Term, is_usual: Term, usual: Term, general: Term, bottom: float) -> Term:
    """A power with the exponent `x`, which is 0 below the `bottom`: such exponents, as the -inf of a mask,
    need no products that round to 0, which take processors a hundred times as long."""
    is_lost = x < bottom
    rest = rarely(~(is_usual | is_lost), general, where(is_lost, 0.0, usual))
    return rarely(~is_usual, rest, usual)


@definition
def exp(x: Term) -> Term:
    width = WIDTHS[x.dtype]
    is_usual = abs(x) <= width.usual_exponent
    return _power_of(x, is_usual, usual_exp(x), exp_in_span(in_span(x)), width.exp_span[0])


def half_exp(x: Term) -> Term:
    """`e**x / 2` of a positive number, which is finite wherever it can be."""
    steps, change = _steps_and_change(x)
    usual = _changed(steps, steps - _per_doubling(x.dtype), change)
    is_usual = x <= WIDTHS[x.dtype].usual_exponent
    return rarely(~is_usual, exp_in_span(in_span(x), halvings=1), usual)


_SHORT_EXP2 = (
    1.0000000005542113, 0.6931472057366993, 0.2402264688962273, 0.05550328777451203,
    0.009618489062444849, 0.0013399931173091366, 0.00015345786147305806,
)  # fmt: skip


def short_exp2(x: Term) -> Term:
    """2**x to 29 bits, where it is neither too large nor subnormal; anything for NaN."""
    whole, k = rounded(x, 1.0)
    return times_power_of_two(polynomial(x - whole, _SHORT_EXP2), k)


def times_power_of_two(x: Term, k: Term) -> Term:
    """Where the result is neither too large nor subnormal."""
    return (x.op("bits") + k.op("raw_left_shift", mantissa_bits(x.dtype))).op("from_bits")


def _exp2_steps_and_change(x: Term) -> tuple[Term, Term]:
    count = _per_doubling(x.dtype)
    whole, steps = rounded(x, float(count))
    return steps, _exp_change(fma(whole, -1 / count, x) * math.log(2))


@definition
def exp2(x: Term) -> Term:
    top = largest_exponent(x.dtype) + 1.0
    bottom = -top - mantissa_bits(x.dtype) - 1.0
    steps, change = _exp2_steps_and_change(x)
    general = _scaled_power(*_exp2_steps_and_change(clamped(x, bottom, top)))
    return _power_of(x, abs(x) < top - 2.0, _changed(steps, steps, change), general, bottom)


def expm1_half(x: Term) -> Term:
    """`(e**x - 1) / 2`, which is finite wherever half of e**x is: `(2**k - 1) / 2 + 2**k r / 2 + ...`, where
    what rounding takes from the first sum and from r counts in the rest."""
    width, bias = WIDTHS[x.dtype], largest_exponent(x.dtype)
    above = where(x < width.expm1_bottom, width.expm1_bottom, x)
    whole, k = rounded(above, 1 / math.log(2))
    first = fma(whole, -width.ln2_high, above)
    r = fma(whole, -width.ln2_low, first)
    lost = fma(whole, -width.ln2_low, first - r)
    tail = fma(polynomial(r, width.expm1_tail), r * r, lost)
    scale = power_of_two(k + (bias - 1), x.dtype)
    base, linear = scale - 0.5, scale * r
    total = base + linear
    half = total + fma(scale, tail, linear - (total - base))
    return rarely(x > (bias + 1) * math.log(2), exp_in_span(in_span(x), halvings=1), half)


@definition
def expm1(x: Term) -> Term:
    half = expm1_half(x)
    return where(abs(x) < NEGLIGIBLE, x, half + half)


# Exponents and mantissas


def exponent_and_mantissa(x: Term) -> tuple[Term, Term]:
    """A positive number as `2**k m`, m in [2/3, 4/3) or [sqrt 1/2, sqrt 2)."""
    lifted, lift = lifted_if_tiny(x)
    k, m = normal_parts(lifted)
    return k - lift, m


def lifted_if_tiny(x: Term) -> tuple[Term, Term]:
    """A positive number, if it is subnormal times a power of two that makes it usual; and its exponent."""
    lift = mantissa_bits(x.dtype) + 2
    tiny = x < 2.0 ** (1 - largest_exponent(x.dtype))
    return where(tiny, x * 2.0**lift, x), where(tiny, x.const(float(lift)), 0.0)


def normal_parts(x: Term) -> tuple[Term, Term]:
    k, m, _ = parts_from(x, 0x3F2AAAAB if x.dtype is F32 else 0x3FE6A09E00000000)
    return (k * exponent_unit(F32) if x.dtype is F32 else k), m


def exponent_unit(dtype: DType) -> float:
    """That of the exponents `parts_from` gives, by which constants are multiplied rather than exponents."""
    return 2.0 ** -mantissa_bits(dtype) if dtype is F32 else 1.0


def parts_from(x: Term, start: int) -> tuple[Term, Term, Term]:
    """A usual number as `2**k m`, m from the number whose bits are `start` to twice that, k in units of an
    exponent, and an integer whose bits of a mantissa are how far m's are from these."""
    mantissa, bias = mantissa_bits(x.dtype), largest_exponent(x.dtype)
    bits = x.op("bits")
    if x.dtype is F32:
        parts = bits - start
        up = parts & -(1 << mantissa)
        return up.cast(F32), (bits - up).op("from_bits"), parts
    # No conversion is needed: in the lowest bits of a large float an integer is that many units.
    parts = bits + (((bias + 1) << mantissa) - start)
    unit_bits = (bias + mantissa) << mantissa
    k = (shifted_right(parts, mantissa) | unit_bits).op("from_bits") - (2.0**mantissa + (bias + 1))
    return k, ((parts & ((1 << mantissa) - 1)) + start).op("from_bits"), parts
