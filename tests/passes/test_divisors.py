"""Quotients and remainders of integers made by products: those of NumPy, of any numerators and divisors."""

from __future__ import annotations

import numpy as np
import pytest

import arrayjit

TARGETS = [{"threads": 1}, {"threads": 2}, {"target": "c"}, {"target": "cuda-sim"}]


def divided(x, divisors):
    """Each number by each divisor: in vectors, and in order."""
    quotients = np.empty((len(divisors), len(x)), x.dtype)
    remainders = np.empty((len(divisors), len(x)), x.dtype)
    handed_on = np.zeros(len(divisors), x.dtype)
    for d in range(len(divisors)):
        quotients[d] = x // divisors[d]
        remainders[d] = x % divisors[d]
        for i in range(len(x)):
            handed_on[d] = (handed_on[d] * x[i] + x[i]) % divisors[d]
    return quotients, remainders, handed_on, np.divmod(x, divisors[0])


def of_every_size(dtype, count):
    """The ends of each number of bits, and any others."""
    random = np.random.default_rng(5)
    info = np.iinfo(dtype)
    near = [
        sign * (2**bits + by) for bits in range(info.bits + 1) for by in (-2, -1, 0, 1) for sign in (1, -1)
    ]
    any_bits = [
        int(bits) >> int(by)
        for bits, by in zip(
            random.integers(info.min, info.max, count, dtype, endpoint=True),
            random.integers(0, info.bits, count),
            strict=True,
        )
    ]
    return np.unique(np.array([n for n in (*near, *any_bits) if info.min <= n <= info.max], dtype))


@pytest.mark.parametrize("options", TARGETS, ids=str)
@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
def test_every_number_of_a_byte(dtype, options):
    info = np.iinfo(dtype)
    every = np.arange(info.min, info.max + 1).astype(dtype)
    _compare(every, every if "target" not in options else every[::5], options)


@pytest.mark.parametrize("options", TARGETS, ids=str)
@pytest.mark.parametrize("dtype", [np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64])
def test_numbers_of_every_size(dtype, options):
    simulated = options.get("target") == "cuda-sim"
    _compare(of_every_size(dtype, 300), of_every_size(dtype, 40)[:: 17 if simulated else 1], options)


def _compare(x, divisors, options):
    with np.errstate(all="ignore"):
        wanted = divided(x, divisors)
        got = arrayjit.jit(divided, **options)(x, divisors)
    for one, other in zip((*got[:3], *got[3]), (*wanted[:3], *wanted[3]), strict=True):
        np.testing.assert_array_equal(one, other, strict=True)


KNOWN = [3, 5, 6, 7, 10, 14, 28, 100, 641, 1_000_003, 2**31 - 1, 2**32 + 1, 2**53 - 1, 2**62 + 2, 2**63 - 1]


@pytest.mark.parametrize("options", TARGETS, ids=str)
@pytest.mark.parametrize("dtype", [np.int64, np.uint64])
def test_known_divisors_of_64_bits(dtype, options):
    divisors = [*KNOWN, *([2**63 + 2, 2**64 - 1] if dtype is np.uint64 else [-7])]
    near = [d * n + by for d in divisors for n in range(-3, 4) for by in (-1, 0, 1)]
    info = np.iinfo(dtype)
    x = np.concatenate(
        [np.array([n for n in near if info.min <= n <= info.max], dtype), of_every_size(dtype, 300)]
    )

    def divided(x):
        return tuple((x // dtype(d), x % dtype(d), np.divmod(x, dtype(d))) for d in divisors)

    for got, wanted in zip(arrayjit.jit(divided, **options)(x), divided(x), strict=True):
        for one, other in zip((*got[:2], *got[2]), (*wanted[:2], *wanted[2]), strict=True):
            np.testing.assert_array_equal(one, other, strict=True)


def power(base, exponents, modulus):
    """By squaring, in Python's integers."""
    out = np.zeros(len(exponents), np.int64)
    for i in range(len(exponents)):

        def step(state):
            result, square, left = state
            return (
                np.where(left % 2 == 1, result * square % modulus, result),
                square * square % modulus,
                left // 2,
            )

        out[i] = arrayjit.while_loop(lambda s: s[2] > 0, step, (1, base % modulus, exponents[i]))[0]
    return out


@pytest.mark.parametrize("options", TARGETS, ids=str)
@pytest.mark.parametrize("modulus", [1_000_000_007, 2, 1, -1, -7, 2**31])
def test_powers_by_a_modulus(modulus, options):
    exponents = np.random.default_rng(3).integers(0, 10**9, 40)
    got = arrayjit.jit(power, **options)(3, exponents, modulus)
    assert got.tolist() == [pow(3, int(exponent), modulus) for exponent in exponents]


def congruences(count, factor, shift, modulus, start):
    numbers = np.empty(count, np.int64)
    x = start
    for i in range(count):
        x = (factor * x + shift) % modulus
        numbers[i] = x
    return numbers


@pytest.mark.parametrize("options", TARGETS, ids=str)
def test_exceptions_are_those_of_divisions(options):
    jitted = arrayjit.jit(congruences, **options)
    np.testing.assert_array_equal(jitted(50, 75, 74, 65537, 1), congruences(50, 75, 74, 65537, 1))
    np.testing.assert_array_equal(jitted(50, 75, 74, -65537, 1), congruences(50, 75, 74, -65537, 1))
    with pytest.raises(ZeroDivisionError):
        jitted(50, 75, 74, 0, 1)
    with pytest.raises(OverflowError):
        jitted(50, 2**40, 74, 2**62 - 57, 1)
