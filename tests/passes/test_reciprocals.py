"""Quotients made by products: the bits are NumPy's, of any numerators and divisors."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import arrayjit
from arrayjit.backends import backend
from arrayjit.ir.code import Caps, Schedule
from arrayjit.passes.manager import optimize
from arrayjit.tracer.calls.function import trace_function

COUNT = 6


def quotients(x, divisors):
    """Each number of `x` by each divisor, and by two of them in turn."""
    return tuple(x / divisors[n] for n in range(COUNT)), x / divisors[0] / divisors[1]


def through_points(x, points):
    """Polynomials that are one at a point, and none at the others."""
    value = np.zeros_like(x)
    for i in range(4):
        basis = np.ones_like(x)
        for j in range(4):
            if i != j:
                basis *= (x - points[j]) / (points[i] - points[j])
        value += basis
    return value


def numbers(dtype):
    """Any bits, numbers of usual size, and those at which products would not do."""
    random = np.random.default_rng(11)
    info = np.finfo(dtype)
    size = np.dtype(dtype).itemsize
    any_bits = np.frombuffer(random.bytes(3000 * size), dtype)
    usual = random.standard_normal(3000).astype(dtype)
    ends = [0, np.inf, np.nan, info.tiny, info.max, info.smallest_subnormal, 1, 1 + info.eps, 2 - info.eps]
    special = np.array([*ends, *(2.0**power for power in range(info.minexp, info.maxexp))], dtype)
    with np.errstate(over="ignore"):
        above = np.nextafter(special, dtype(np.inf))
    beside = np.concatenate([np.nextafter(special, dtype(0)), special, above])
    return np.concatenate([any_bits, usual, beside, -beside])


def close_to_midpoints(dtype, divisors):
    """Numerators whose quotients lie as near as can be to where rounding changes its mind."""
    random = np.random.default_rng(12)
    bits = np.finfo(dtype).nmant + 1
    found = []
    for divisor in divisors:
        for _ in range(300):
            middle = Fraction(2 * int(random.integers(2 ** (bits - 1), 2**bits)) + 1, 2 ** (bits + 1))
            about = dtype(float(middle * Fraction(float(divisor))))
            found += [about, np.nextafter(about, dtype(0)), np.nextafter(about, dtype(np.inf))]
    return np.array(found, dtype)


USUAL = [3.0, -7.0, 0.1, 1 + 2**-20, 2 - 2**-20, 1e3]
DIVISORS = {
    "usual": USUAL,
    "zero": [*USUAL[:-1], -0.0],
    "infinite": [np.inf, *USUAL[1:]],
    "not a number": [*USUAL[:2], np.nan, *USUAL[3:]],
    "large": [*USUAL[:3], 3e38, *USUAL[4:]],
    "small": [*USUAL[:4], 1e-45, *USUAL[5:]],
}


@pytest.mark.parametrize("target", ["llvm", "c"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", DIVISORS)
@pytest.mark.parametrize("function", [quotients, through_points])
def test_the_bits_are_those_of_divisions(function, kind, dtype, target):
    divisors = np.array(DIVISORS[kind], dtype)
    x = np.concatenate([numbers(dtype), close_to_midpoints(dtype, np.array(USUAL, dtype))])
    computation = trace_function(function, (x, divisors), {}).computation
    assert notes(computation) == 1
    with np.errstate(all="ignore"):
        expected = flat(function(x, divisors))
    for one, other in zip(flat(arrayjit.jit(function, target=target)(x, divisors)), expected, strict=True):
        np.testing.assert_array_equal(one, other)
        np.testing.assert_array_equal(np.signbit(one)[~np.isnan(one)], np.signbit(other)[~np.isnan(other)])


def flat(results):
    if isinstance(results, tuple):
        return [array for result in results for array in flat(result)]
    return [results]


CAPS, SLOW = Caps(), Caps(vector_bytes=64, registers=32, divisions=(16.0, 32.0))


def notes(computation, caps=CAPS, without=()):
    """How many loops multiply."""
    kernel = optimize(computation, caps, Schedule(without), verify=True).kernel
    return sum(note.startswith("reciprocals") for note in kernel.notes)


def test_what_has_no_fused_product_divides():
    x = np.ones(4000)
    computation = trace_function(quotients, (x, x[:COUNT]), {}).computation
    assert notes(computation) == 1
    assert notes(computation, Caps(fma=False)) == 0
    assert notes(computation, without=("reciprocals",)) == 0


def test_a_loop_that_waits_for_memory_divides():
    x = np.ones(4000)
    computation = trace_function(lambda x, d: (x - x[::-1]) * x / d + x, (x, 3.0), {}).computation
    assert notes(computation) == 0


@pytest.mark.parametrize("target", ["llvm", "c"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("divisor", [3.7, -0.3, 0.0, -0.0, np.inf, np.nan, 1e-38, 3e38])
def test_numerators_are_looked_at_after_many(divisor, dtype, target):
    """Those that no product will do for stand at either end of what is done again at once, or nowhere."""
    plain = np.random.default_rng(13).standard_normal(3 * 4096 + 1003).astype(dtype)
    plain[::5] = 0
    plain[1::5] = -0.0
    divide = arrayjit.jit(lambda x, d: x / d, target=target)
    for places in ((), (0,), (4095,), (4096, 4097), (3 * 4096,), (-1,)):
        x = plain.copy()
        for place, number in zip(places, (np.finfo(dtype).tiny, -np.inf), strict=False):
            x[place] = number
        with np.errstate(all="ignore"):
            expected = x / dtype(divisor)
        np.testing.assert_array_equal(divide(x, dtype(divisor)), expected)
        signs = np.signbit(divide(x, dtype(divisor)))
        np.testing.assert_array_equal(signs[~np.isnan(expected)], np.signbit(expected[~np.isnan(expected)]))


def test_rows_are_looked_at_one_by_one():
    def shares(x):
        return x / x.sum(axis=1, keepdims=True)

    x = np.random.default_rng(14).random((40, 1000))
    assert notes(trace_function(shares, (x,), {}).computation) == 1
    x[3, 7], x[5, 999], x[6], x[7] = np.inf, 1e-300, 0, -x[7]
    with np.errstate(all="ignore"):
        expected = x / arrayjit.jit(lambda x: x.sum(axis=1, keepdims=True))(x)
        np.testing.assert_array_equal(arrayjit.jit(shares)(x), expected)
        np.testing.assert_array_equal(arrayjit.jit(shares, threads=1)(x), expected)


def test_what_is_seldom_done_again_is_no_work():
    """As many parts are worth a thread as if there were no divisions in them."""
    x = np.ones(1_000_000)
    computation = trace_function(lambda x, d: x / d, (x, 3.7), {}).computation
    kernel = optimize(computation, Caps(threads=2), Schedule(), verify=True).kernel
    assert "threads: loop i of 244 is shared, 4 at least for each thread" in kernel.notes


def test_what_reads_what_it_writes_is_not_done_again():
    def halves(x, d):
        x /= d

    x = np.random.default_rng(15).standard_normal(10_000)
    expected = x / 0.3
    assert notes(trace_function(halves, (x, 0.3), {}).computation) == 0
    arrayjit.jit(halves)(x, 0.3)
    np.testing.assert_array_equal(x, expected)


def test_what_reads_what_it_writes_by_another_name_is_not_done_again():
    def shares(x, d):
        total = x + 1
        total[...] = total.reshape(-1).reshape(x.shape) / d
        total.reshape(-1)[:] = (total / d).reshape(-1)
        return total

    x = np.random.default_rng(16).standard_normal((64, 100))
    x[3, 5], x[60, 99] = np.nan, 1e-310
    for threads in (1, 2):
        np.testing.assert_array_equal(arrayjit.jit(shares, threads=threads)(x, 3.7), shares(x, 3.7))


def quotients_in_place(x, d):
    x /= d


def steps(x, d):
    for k in range(60, 0, -1):
        x[: k * 16] = x[1 : k * 16 + 1] / d + 1.0


@pytest.mark.parametrize("program", [quotients_in_place, steps])
def test_where_divisions_last_long_fewer_of_them_are_worth_it(program):
    computation = trace_function(program, (np.ones(961), 3.7), {}).computation
    assert (notes(computation), notes(computation, SLOW)) == (0, 1)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("divisor", [3.7, -0.3, 0.0, -0.0, np.inf, np.nan, 1e-38, 3e38])
@pytest.mark.parametrize("program", [quotients_in_place, steps])
def test_what_is_written_where_it_is_read_is_divided_with_the_same_bits(program, divisor, dtype):
    x = np.random.default_rng(17).standard_normal(961).astype(dtype)
    number, llvm = np.array(divisor, dtype), backend("sync_llvm")
    kernel = optimize(trace_function(program, (x, number[()]), {}).computation, SLOW, verify=True).kernel
    procedure = llvm.get_device().load(llvm.target.emit(kernel))
    for zeros, place, special in (
        (1, 0, 1),
        (5, 7, -np.inf),
        (3, -1, np.finfo(dtype).tiny),
        (2, 400, np.nan),
    ):
        x[::zeros], x[1::zeros], x[place] = 0, -0.0, special
        with np.errstate(all="ignore"):
            expected = x.copy()
            program(expected, number[()])
        arrays = {"x": x, "d": number}
        procedure.launch([arrays[param.tensor.label].ctypes.data for param in kernel.params])
        np.testing.assert_array_equal(x, expected)
        assert not np.any((np.signbit(x) != np.signbit(expected)) & ~np.isnan(x))


@pytest.mark.parametrize("bits", [5, 6, 7])
def test_every_quotient_of_short_numbers_is_rounded_correctly(bits):
    """The method in integers: all pairs of significands of few bits."""
    significands = range(2 ** (bits - 1), 2**bits)
    for divisor in significands:
        reciprocal = rounded(Fraction(1, divisor), bits)
        for numerator in significands:
            about = rounded(numerator * reciprocal, bits)
            excess = rounded(about * divisor - numerator, bits)
            assert rounded(about - excess * reciprocal, bits) == rounded(Fraction(numerator, divisor), bits)


def rounded(number, bits):
    """To so many bits, and where two are as near, to the even one."""
    number = Fraction(number)
    if number == 0:
        return number
    unit = Fraction(1)
    while abs(number) >= unit * 2**bits:
        unit *= 2
    while abs(number) < unit * 2 ** (bits - 1):
        unit /= 2
    return round(number / unit) * unit
