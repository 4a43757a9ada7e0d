"""float16: kept in 16 bits, computed with in float32, summed in float32."""

from __future__ import annotations

import numpy as np
import pytest

import arrayjit

TARGETS = ("interp", "sync_llvm", "llvm")
EVERY = np.arange(1 << 16, dtype=np.uint16).view(np.float16)


def numbers(shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float16)


def assert_same(got, want):
    np.testing.assert_array_equal(got, want, strict=True)
    np.testing.assert_array_equal(np.signbit(got[got == got]), np.signbit(want[want == want]))


def between(dtype):
    """The numbers around which rounding to float16 turns, and those next to them."""
    wide = np.sort(EVERY[np.isfinite(EVERY)]).astype(dtype)
    middle = (wide[1:] + wide[:-1]) / 2
    ends = np.array([65504, 65519.99, 65520, 65536, 1e30, np.inf, np.nan, 2.0**-25, 2.0**-26, 1e-45], dtype)
    exact = np.concatenate([wide, middle, ends, -ends])
    return np.concatenate([exact, np.nextafter(exact, dtype(np.inf)), np.nextafter(exact, dtype(-np.inf))])


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_every_number_is_converted_as_numpy_does_it(dtype, target):
    assert_same(arrayjit.jit(lambda x: x.astype(dtype))(EVERY, target=target), EVERY.astype(dtype))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_every_rounding_is_numpys(dtype, target):
    wide = between(dtype)
    with np.errstate(over="ignore"):
        want = wide.astype(np.float16)
    assert_same(arrayjit.jit(lambda x: x.astype(np.float16))(wide, target=target), want)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("kind", ["?", "i1", "u1", "i4", "u4", "i8", "u8"])
def test_integers_are_converted_both_ways(kind, target):
    whole = np.arange(-70000, 70000, 7).astype(kind)
    rounded = np.concatenate([np.arange(-127, 128) / 3, [0.0, -0.0]]).astype(np.float16)
    rounded = rounded if np.dtype(kind).kind == "i" else abs(rounded)
    there = arrayjit.jit(lambda x: x.astype(np.float16))
    back = arrayjit.jit(lambda x: x.astype(kind))
    with np.errstate(over="ignore"):
        assert_same(there(whole, target=target), whole.astype(np.float16))
    assert_same(back(rounded, target=target), rounded.astype(kind))


@pytest.mark.parametrize("target", TARGETS)
def test_sums_do_not_stop_growing(target):
    ones = np.ones(5000, np.float16)
    total, mean, product = arrayjit.jit(lambda x: (x.sum(), x.mean(), x @ x))(ones, target=target)
    assert (total, mean, product) == (5000, 1, 5000)
    assert total.dtype == mean.dtype == product.dtype == np.float16


def test_a_mean_does_not_overflow():
    large = np.full(5000, 100, np.float16)
    assert arrayjit.jit(np.mean)(large) == 100


def softmax(x):
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def layer(x, w, b):
    h = x @ w + b
    return np.maximum(h, 0) * np.tanh(h)


def recurrence(x, n):
    s = np.float16(0)
    y = x.copy()
    for i in range(n):
        s = s * np.float16(0.9) + x[i]
        y[i] = s
    return s, y


def in_place(x):
    x[::2] += 1
    x[1:] *= x[:-1]
    x[x > 2] = np.float16(0.1)
    return x.T


PROGRAMS = {
    "softmax": (softmax, lambda: (numbers((7, 33)),)),
    "a layer": (layer, lambda: (numbers((9, 40)), numbers((40, 17), 1), numbers(17, 2))),
    "a recurrence": (recurrence, lambda: (numbers(100), 100)),
    "writing in place": (in_place, lambda: (numbers((6, 5)),)),
    "other dtypes beside it": (
        lambda x: (x + 1, x * 2.5, x + np.float32(1), x + np.int8(3), x * np.arange(5), np.sqrt(x > 0)),
        lambda: (numbers(5),),
    ),
    "functions of small integers": (
        lambda x: (np.sqrt(x), np.sin(x), np.arctan2(x, x)),
        lambda: (np.arange(9, dtype=np.int8),),
    ),
    "selecting and sorting": (
        lambda x: (x[x > 0], np.sort(x), np.argsort(x), x.argmax(), np.where(x > 0, x, -x), np.cumsum(x)),
        lambda: (numbers(50),),
    ),
}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_do_what_numpy_does(name, target):
    """To three units in the last place, where sums and functions are rounded in between."""
    program, arguments = PROGRAMS[name]
    ours, theirs = arguments(), arguments()
    got, want = arrayjit.jit(program)(*ours, target=target), program(*theirs)
    pairs = zip(got, want, strict=True) if isinstance(want, tuple) else [(got, want)]
    for one, other in (*pairs, *zip(ours, theirs, strict=True)):
        assert np.asarray(one).dtype == np.asarray(other).dtype
        np.testing.assert_allclose(one, other, rtol=3 * 2.0**-10, atol=2.0**-12)
