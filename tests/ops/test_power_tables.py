"""The tables of powers and logarithms, recomputed, and both where their errors are largest."""

from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from test_targets import run_elementwise

import arrayjit
from arrayjit.ir.definitions.layout import mantissa_bits
from arrayjit.ir.definitions.tables import (
    LOG_OF_CENTRES,
    LOG_OF_MIDDLES,
    POWERS,
    RECIPROCALS,
    RECIPROCALS_OF_MIDDLES,
    REST_OF_LOG,
    REST_OF_POWERS,
)
from arrayjit.ir.dtype import F32, F64, DType
from arrayjit.ir.ops import OPS

both = pytest.mark.parametrize("dtype", [F32, F64], ids=repr)


def rounded(number: Decimal, dtype: DType) -> float:
    return float(dtype.numpy.type(float(number)))


@both
def test_logarithms_are_those_of_the_reciprocals(dtype: DType) -> None:
    short = 2 ** (16 if dtype is F32 else 43)
    rows = zip(RECIPROCALS[dtype], LOG_OF_CENTRES[dtype], REST_OF_LOG[dtype], strict=True)
    with localcontext(prec=60):
        for reciprocal, high, rest in rows:
            exact = -Decimal(reciprocal).ln()
            assert high == round(exact * short) / short
            assert rest == rounded(exact - Decimal(high), dtype)


def test_logarithms_of_middles_have_few_bits_and_are_right_to_more() -> None:
    for reciprocal, log in zip(RECIPROCALS_OF_MIDDLES[F32], LOG_OF_MIDDLES[F32], strict=True):
        assert log == round(log * 2**17) / 2**17
        with localcontext(prec=60):
            assert abs(Decimal(reciprocal).ln() + Decimal(log)) < Decimal(2) ** -30


def test_logarithms_of_float32s_are_right_to_a_unit_around_one() -> None:
    first, last = np.array([0.68, 1.5], np.float32).view(np.int32)
    x = np.arange(first, last, dtype=np.int32).view(np.float32)
    exact = np.log(x.astype(np.float64))
    (result,) = run_elementwise(OPS["log"], [(x,)], "sync_llvm")
    assert np.max(np.abs(result - exact) / np.spacing(np.abs(exact).astype(np.float32))) < 1.0


@both
def test_powers_are_those_of_two_less_their_steps(dtype: DType) -> None:
    integer = np.dtype(f"i{dtype.itemsize}")
    with localcontext(prec=60):
        for step, (entry, rest) in enumerate(zip(POWERS[dtype], REST_OF_POWERS[dtype], strict=True)):
            exact = Decimal(2) ** (Decimal(step) / 16)
            bits = np.array(entry, dtype.numpy).view(integer) + (step << (mantissa_bits(dtype) - 4))
            power = float(bits.astype(integer).view(dtype.numpy))
            assert power == rounded(exact, dtype)
            assert rest == rounded(exact / Decimal(power) - 1, dtype)


@both
def test_what_is_left_of_a_centre_is_exact(dtype: DType) -> None:
    unit = 2.0 ** -mantissa_bits(dtype)
    for centre, reciprocal in enumerate(RECIPROCALS[dtype]):
        for edge in (centre - 0.5, centre + 0.5):
            for units in (-3, -2, -1, 1, 2, 3):
                x = Fraction(1 + edge / 16 + units * unit)
                rest = x * Fraction(reciprocal) - 1
                assert abs(rest) < 0.035
                assert Fraction(float(dtype.numpy.type(float(rest)))) == rest


@both
@pytest.mark.parametrize("bases", [(0.96, 1.04), (1.03, 1.1), (1.9, 2.0), (1.0, 2.0), (1e-3, 1e3)], ids=str)
def test_errors_are_within_the_bound_where_they_are_largest(bases: tuple[float, float], dtype: DType) -> None:
    rng = np.random.default_rng(7)
    count, most = 200_000, 87 if dtype is F32 else 708
    x = rng.uniform(*bases, count).astype(dtype.numpy)
    size = rng.uniform(0.8 * most, most, count) * rng.choice((-1, 1), count)
    with np.errstate(divide="ignore", over="ignore"):
        y = (size / np.log(x.astype(np.float64))).astype(dtype.numpy)
    (result,) = run_elementwise(OPS["power"], [(x, y)], "sync_llvm")
    wide = np.float64 if dtype is F32 else np.longdouble
    with np.errstate(all="ignore"):
        exact = np.power(x.astype(wide), y.astype(wide))
        _, exponent = np.frexp(exact)
        error = np.abs(result - exact) / np.ldexp(wide(1), exponent - 1 - mantissa_bits(dtype))
    usual = np.isfinite(result) & (result > np.finfo(dtype.numpy).tiny)
    assert error[usual].max() <= OPS["power"].error(dtype)


@both
def test_powers_of_minus_one_are_numpys(dtype: DType) -> None:
    wholes = [0, 1, 2, 3, 2**22 + 1, 2**24, 2**24 + 2, 2**51 + 1, 2**52 + 1, 2**53, 1e30]
    others = [0.5, 1.5, 2**21 + 0.5, 1e-30, np.finfo(dtype.numpy).smallest_subnormal, np.inf, np.nan]
    y = np.array([*wholes, *others], dtype.numpy)
    y = np.concatenate([y, -y])
    found = arrayjit.jit(lambda y: y.dtype.type(-1.0) ** y)(y)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(found, np.power(dtype.numpy.type(-1.0), y))
