"""Long scans on CPUs go by segments: within NumPy's error, never decreasing, with the reference's bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import arrayjit

SIZES = (1024, 1025, 1100, 2055, 4097)

EXACT: dict[str, tuple[Callable[[Any], Any], str]] = {
    "sums of integers": (lambda x: np.cumsum(x), "i8"),
    "sums of narrow integers": (lambda x: np.cumsum(x), "i2"),
    "products of integers": (lambda x: np.cumprod(x), "i8"),
    "greatest so far": (lambda x: np.maximum.accumulate(x), "f4"),
    "least of each row so far": (lambda x: np.minimum.accumulate(np.stack([x, -x]) * 2, axis=1), "f8"),
    "any so far": (lambda x: np.logical_or.accumulate(x > 8), "i4"),
    "parity so far": (lambda x: np.bitwise_xor.accumulate(x), "i4"),
}


def drawn(size: int, dtype: str) -> np.ndarray:
    random = np.random.default_rng(size)
    if dtype[0] == "i":
        return random.integers(-9, 9, size).astype(dtype)
    x = random.normal(size=size).astype(dtype)
    x[size // 2 :: 97] = np.nan
    return x


@pytest.mark.parametrize("name", EXACT)
def test_what_has_one_result_is_numpy_s(name: str) -> None:
    function, dtype = EXACT[name]
    for size in SIZES:
        x = drawn(size, dtype)
        np.testing.assert_array_equal(arrayjit.jit(function)(x), function(x), strict=True)


@pytest.mark.parametrize("target", ["interp", "sync_llvm"])
@pytest.mark.parametrize("ufunc", [np.add, np.multiply, np.maximum], ids=lambda ufunc: ufunc.__name__)
def test_each_step_of_a_small_float_is_rounded(ufunc: np.ufunc, target: str) -> None:
    """So that NumPy's sums stop where a unit in the last place is more than what is added."""
    random = np.random.default_rng(1)
    x = random.random(9000).astype("f2") if ufunc is np.add else random.uniform(0.9, 1.1, 9000).astype("f2")
    scan = arrayjit.jit(lambda x: ufunc.accumulate(x), target=target)
    np.testing.assert_array_equal(scan(x), ufunc.accumulate(x), strict=True)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_floats_are_summed_within_numpy_s_error(dtype: str) -> None:
    for size in SIZES:
        x = np.random.default_rng(size).normal(size=size).astype(dtype)
        x[0] = x[1] = -0.0
        got = arrayjit.jit(lambda x: np.cumsum(x))(x)
        assert got.dtype == x.dtype
        assert np.signbit(got[:2]).all()
        error = np.abs(got - np.cumsum(x, dtype="g"))
        assert (error <= np.finfo(dtype).eps * np.cumsum(np.abs(x), dtype="g") * 32).all()


def test_infinities_and_nans_reach_what_comes_after_them_only() -> None:
    x = np.ones(3000)
    x[[1500, 1800]] = np.inf, -np.inf
    got = arrayjit.jit(lambda x: np.cumsum(x))(x)
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(got, np.cumsum(x))


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_sums_of_what_is_not_negative_never_decrease(dtype: str) -> None:
    random = np.random.default_rng(0)
    x = (random.random(50_000) ** 40).astype(dtype)
    x[random.random(50_000) < 0.5] = 0
    assert (np.diff(arrayjit.jit(lambda x: np.cumsum(x))(x)) >= 0).all()


def test_the_bits_are_those_of_the_reference() -> None:
    def both(x: Any) -> Any:
        return np.cumsum(x), np.cumsum(np.stack([x, x[::-1]]), axis=1)

    x = np.random.default_rng(1).normal(size=1200)
    got, want = (arrayjit.jit(both, target=target)(x) for target in ("llvm", "interp"))
    for one, other in zip(got, want, strict=True):
        np.testing.assert_array_equal(one, other)
    assert (got[0] != np.cumsum(x)).any()


def test_a_loop_of_the_user_s_keeps_its_order() -> None:
    def running(x: Any) -> Any:
        y = np.empty_like(x)
        y[0] = x[0]
        for k in range(1, x.shape[0]):
            y[k] = y[k - 1] + x[k]
        return y

    x = np.random.default_rng(2).normal(size=2000)
    np.testing.assert_array_equal(arrayjit.jit(running)(x), np.cumsum(x))
