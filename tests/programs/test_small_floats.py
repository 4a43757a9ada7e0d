"""float16 and bfloat16: kept in 16 bits, computed with in float32, summed in float32."""

from __future__ import annotations

import numpy as np
import pytest
from ml_dtypes import bfloat16, finfo

import arrayjit

TARGETS = ("interp", "sync_llvm", "llvm")
SMALL = (np.float16, bfloat16)
each_small = pytest.mark.parametrize("small", SMALL, ids=lambda dtype: dtype.__name__)


def every(small):
    """All numbers of a dtype; of what is none, one that signals nothing."""
    numbers = np.arange(1 << 16, dtype=np.uint16).view(small)
    return np.where(np.isnan(numbers), small("nan"), numbers)


def numbers(small, shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(small)


def assert_same(got, want):
    assert got.dtype == want.dtype
    got, want = got.astype(np.float64), want.astype(np.float64)
    np.testing.assert_array_equal(got, want, strict=True)
    np.testing.assert_array_equal(np.signbit(got[got == got]), np.signbit(want[want == want]))


def between(small, dtype):
    """The numbers around which rounding turns, and those next to them."""
    finite = every(small)
    wide = np.sort(finite[np.isfinite(finite)].astype(dtype))
    middle = wide[1:] / 2 + wide[:-1] / 2
    largest, least = dtype(finfo(small).max), dtype(finfo(small).smallest_subnormal)
    step = largest * dtype(finfo(small).eps) / 4
    ends = [largest + step * n for n in range(3)] + [least / 2, least / 4, 1e-45, 3e38, np.inf, np.nan]
    ends = np.array(ends, dtype)
    exact = np.concatenate([wide, middle, ends, -ends])
    return np.concatenate([exact, np.nextafter(exact, dtype(np.inf)), np.nextafter(exact, dtype(-np.inf))])


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, *SMALL])
@each_small
def test_every_number_is_converted_as_numpy_does_it(small, dtype, target):
    with np.errstate(over="ignore"):
        want = every(small).astype(dtype)
    assert_same(arrayjit.jit(lambda x: x.astype(dtype))(every(small), target=target), want)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@each_small
def test_every_rounding_is_numpys(small, dtype, target):
    wide = between(small, dtype)
    with np.errstate(over="ignore"):
        want = wide.astype(small)
    assert_same(arrayjit.jit(lambda x: x.astype(small))(wide, target=target), want)


@each_small
def test_a_gpu_converts_by_instructions_and_rounds_as_numpy_does(small):
    def there_and_back(x, y):
        return x.astype(np.float32), y.astype(small), y.astype(small).astype(np.float32)

    narrow, wide = every(small), between(small, np.float32)
    source = arrayjit.jit(there_and_back, target="cuda-sim").lower(narrow, wide).as_text("cuda")
    assert f"cvt.rn.{'f16' if small is np.float16 else 'bf16'}.f32" in source
    with np.errstate(over="ignore"):
        wanted = there_and_back(narrow, wide)
    got = arrayjit.jit(there_and_back, target="cuda-sim")(narrow, wide)
    for one, other in zip(got, wanted, strict=True):
        assert_same(one.numpy(), other)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("kind", ["?", "i1", "u1", "i4", "u4", "i8", "u8"])
@each_small
def test_integers_are_converted_both_ways(small, kind, target):
    whole = np.arange(-70000, 70000, 7).astype(kind)
    rounded = np.concatenate([np.arange(-127, 128) / 3, [0.0, -0.0]]).astype(small)
    rounded = rounded if np.dtype(kind).kind == "i" else abs(rounded)
    there = arrayjit.jit(lambda x: x.astype(small))
    back = arrayjit.jit(lambda x: x.astype(kind))
    with np.errstate(over="ignore"):
        assert_same(there(whole, target=target), whole.astype(small))
    assert_same(back(rounded, target=target), rounded.astype(kind))


@pytest.mark.parametrize("target", TARGETS)
@each_small
def test_sums_do_not_stop_growing(small, target):
    ones = np.ones(5120, small)
    total, mean, product = arrayjit.jit(lambda x: (x.sum(), x.mean(), np.dot(x, x)))(ones, target=target)
    assert (total, mean, product) == (5120, 1, 5120)
    assert total.dtype == mean.dtype == product.dtype == small


def test_a_mean_does_not_overflow():
    large = np.full(5000, 100, np.float16)
    assert arrayjit.jit(np.mean)(large) == 100


def test_ufuncs_that_know_no_bfloat16_compute_in_what_numpy_takes():
    x = numbers(bfloat16, (4, 4))
    program = arrayjit.jit(lambda x: (x @ x, np.clip(x, -1, 1), np.linalg.norm(x), x * 2.5, x + np.int8(1)))
    for got, want in zip(program(x), program.__wrapped__(x), strict=True):
        assert got.dtype == want.dtype
        np.testing.assert_allclose(got, want, rtol=1e-6)


def test_numpy_knows_no_nan_of_bfloat16():
    x = np.array([[1.5, np.nan, 3, -2], [4, 0.25, np.inf, 1]], bfloat16)
    program = arrayjit.jit(
        lambda x: (
            *(np.nansum(x), np.nansum(x, axis=1), np.nanprod(x, axis=0), np.nanmax(x, axis=0), np.nanmin(x)),
            *(np.nanmean(x, axis=1), np.nanvar(x, axis=0), np.nanstd(x), np.nancumsum(x, axis=1)),
            *(np.nan_to_num(x), np.nan_to_num(x, nan=1, posinf=7)),
        )
    )
    for got, want in zip(program(x), program.__wrapped__(x), strict=True):
        assert_same(got, want)


def test_matrices_of_bfloat16_are_factorised_in_float64():
    a = np.array([[4, 1, 0.5], [1, 3, 0.25], [0.5, 0.25, 2]], bfloat16)
    program = arrayjit.jit(
        lambda a: (
            *(np.linalg.inv(a), np.linalg.det(a), *np.linalg.slogdet(a), np.linalg.solve(a, a[0])),
            *(np.linalg.cholesky(a), *np.linalg.qr(a), np.linalg.matrix_power(a, 2), np.linalg.norm(a)),
        )
    )
    for got, want in zip(program(a), program.__wrapped__(a), strict=True):
        assert got.dtype == want.dtype
        np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-14)


def softmax(x):
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def layer(x, w, b):
    h = x @ w + b
    return np.maximum(h, 0) * np.tanh(h)


def recurrence(x, n):
    s = x[0]
    y = x.copy()
    for i in range(n):
        s = s * x[1] + x[i]
        y[i] = s
    return s, y


def in_place(x):
    x[::2] += 1
    x[1:] *= x[:-1]
    x[x > 2] = 0.1
    return x.T


PROGRAMS = {
    "softmax": (softmax, lambda small: (numbers(small, (7, 33)),)),
    "a layer": (
        layer,
        lambda small: (numbers(small, (9, 40)), numbers(small, (40, 17), 1), numbers(small, 17, 2)),
    ),
    "a recurrence": (recurrence, lambda small: (numbers(small, 100), 100)),
    "writing in place": (in_place, lambda small: (numbers(small, (6, 5)),)),
    "other dtypes beside it": (
        lambda x: (x + 1, x * 2.5, x + np.float32(1), x + np.int8(3), np.sqrt(x > 0)),
        lambda small: (numbers(small, 5),),
    ),
    "functions of small integers": (
        lambda x: (np.sqrt(x), np.sin(x), np.arctan2(x, x)),
        lambda small: (np.arange(9, dtype=np.int8),),
    ),
    "selecting and sorting": (
        lambda x: (x[x > 0], np.sort(x), np.argsort(x), x.argmax(), np.where(x > 0, x, -x), np.cumsum(x)),
        lambda small: (numbers(small, 50),),
    ),
}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", PROGRAMS)
@each_small
def test_programs_do_what_numpy_does(small, name, target):
    """To a few units in the last place: sums and functions are rounded in between."""
    program, arguments = PROGRAMS[name]
    ours, theirs = arguments(small), arguments(small)
    unit = float(finfo(small).eps)
    got, want = arrayjit.jit(program)(*ours, target=target), program(*theirs)
    pairs = zip(got, want, strict=True) if isinstance(want, tuple) else [(got, want)]
    for one, other in (*pairs, *zip(ours, theirs, strict=True)):
        assert np.asarray(one).dtype == np.asarray(other).dtype
        one, other = (np.asarray(value).astype(np.float64) for value in (one, other))
        np.testing.assert_allclose(one, other, rtol=4 * unit, atol=unit / 4)
