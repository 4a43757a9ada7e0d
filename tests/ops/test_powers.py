"""Powers whose exponent is written in the program: NumPy's short cuts, and products within power's bound."""

from __future__ import annotations

import numpy as np
import pytest

import arrayjit
from arrayjit.ir.ops import op

EDGES = (
    0.0,
    -0.0,
    1.0,
    -1.0,
    2.0,
    -2.0,
    1e30,
    -1e-30,
    1e-45,
    5e-324,
    1e155,
    -1e-155,
    np.inf,
    -np.inf,
    np.nan,
)


def numbers(dtype: str, exponent: float) -> np.ndarray:
    """Edges, numbers of all sizes, and those whose power is near the largest and the smallest number."""
    rng = np.random.default_rng(0)
    info = np.finfo(dtype)
    limits = [np.log(float(info.max)), np.log(float(info.tiny)), np.log(float(info.smallest_subnormal))]
    spread = np.concatenate([limit / exponent + rng.normal(size=400) / exponent for limit in limits])
    anything = np.concatenate([rng.uniform(-80, 80, 800), rng.normal(size=800)])
    with np.errstate(all="ignore"):
        sizes = np.exp(np.concatenate([spread, anything]))
        signs = rng.choice([-1.0, 1.0], sizes.size)
        return np.concatenate([np.array(EDGES), sizes * signs]).astype(dtype)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("exponent", [2, -1, 0.5, 1, 0, 2.0, -1.0, 1.0])
def test_short_cuts_give_the_bits_of_numpy(exponent: float, dtype: str) -> None:
    x = numbers(dtype, exponent or 1)
    with np.errstate(all="ignore"):
        wanted = x**exponent
    known = ~np.isnan(wanted)
    for function in (lambda x: x**exponent, lambda x: np.power(x, exponent)):
        got = arrayjit.jit(function)(x)
        np.testing.assert_array_equal(got, wanted, strict=True)
        np.testing.assert_array_equal(np.signbit(got)[known], np.signbit(wanted)[known])


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize(
    "exponent",
    [3, 4, 5, 8, 15, 31, 32, -2, -3, -7, -32, -0.5, 3.0, 33, 1.5, 2.5, -1.5, -6.5, 31.5, -31.5, 2.25],
)
def test_powers_are_within_the_published_bound(exponent: float, dtype: str) -> None:
    x = numbers(dtype, exponent)
    with np.errstate(all="ignore"):
        wanted = x**exponent
        exact = np.power(x.astype(np.longdouble), exponent)
    got = arrayjit.jit(lambda x: x**exponent)(x)
    finite = np.isfinite(wanted) & np.isfinite(got)
    unit = np.spacing(np.abs(wanted[finite])).astype(np.longdouble)
    error = np.abs(got[finite].astype(np.longdouble) - exact[finite]) / unit
    assert error.max() <= op("power").ulp[dtype == "f8"]
    np.testing.assert_array_equal(np.signbit(got)[finite], np.signbit(wanted)[finite])
    near_largest = np.abs(exact) >= np.finfo(dtype).max
    beyond = ~finite & ~near_largest | ~np.isfinite(x)
    np.testing.assert_array_equal(got[beyond], wanted[beyond])


@pytest.mark.parametrize("dtype", ["i1", "i8", "u2"])
@pytest.mark.parametrize("exponent", [0, 1, 2, 3, 7, 20, 40])
def test_powers_of_integers_wrap_as_in_numpy(exponent: int, dtype: str) -> None:
    x = np.arange(-60 if dtype != "u2" else 0, 60, 7).astype(dtype)
    np.testing.assert_array_equal(arrayjit.jit(lambda x: x**exponent)(x), x**exponent, strict=True)


def test_a_power_in_place_and_of_a_power() -> None:
    def nested(x):
        x **= 3
        return (x**3) ** -2

    x = np.linspace(0.5, 1.5, 37)
    ours, theirs = x.copy(), x.copy()
    np.testing.assert_allclose(arrayjit.jit(nested)(ours), nested(theirs), rtol=1e-14)
    np.testing.assert_allclose(ours, theirs, rtol=1e-15)
