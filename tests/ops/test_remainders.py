"""Remainders of floats: of quotients of any size, bit for bit the C library's."""

from __future__ import annotations

import numpy as np
import pytest
from test_targets import run_elementwise

from arrayjit.ir.dtype import F32, F64, DType
from arrayjit.ir.ops import OPS

random = np.random.default_rng(1)
floats = pytest.mark.parametrize("dtype", [F32, F64], ids=str)
targets = pytest.mark.parametrize("target", ["sync_llvm", "sync_c"])


def check(name: str, x: np.ndarray, y: np.ndarray, target: str) -> None:
    (result,) = run_elementwise(OPS[name], [(x, y)], target)
    with np.errstate(all="ignore"):
        want = OPS[name].ref(x, y)
    np.testing.assert_array_equal(result, want)
    known = ~np.isnan(want)
    np.testing.assert_array_equal(np.signbit(result[known]), np.signbit(want[known]))


@targets
@floats
@pytest.mark.parametrize("name", ["fmod", "remainder", "floor_divide"])
@pytest.mark.parametrize("beside", [-1, 0, 1])
def test_of_multiples_and_of_what_lies_beside_them(name: str, beside: int, dtype: DType, target: str) -> None:
    """Where the quotient is rounded up to the next whole number."""
    y = (random.random(20_000) + 0.5).astype(dtype.numpy)
    x = y * random.integers(-(2**20), 2**20, 20_000).astype(dtype.numpy)
    if beside:
        x = np.nextafter(x, dtype.numpy.type(beside * np.inf))
    check(name, x, y, target)


@targets
@floats
def test_of_all_floats(dtype: DType, target: str) -> None:
    """Subnormal ones, infinities and what is no number, and quotients of more bits than a mantissa."""
    bits = random.integers(0, 1 << dtype.bits, (2, 20_000), f"u{dtype.itemsize}")
    x, y = bits.view(dtype.numpy)
    check("fmod", x, y, target)


@targets
@floats
def test_of_special_values(dtype: DType, target: str) -> None:
    info = np.finfo(dtype.numpy)
    positive = [0.0, info.smallest_subnormal, info.tiny, 0.3, 1.0, 2.5, info.max, np.inf, np.nan]
    values = np.array([*positive, *np.negative(positive)], dtype.numpy)
    x, y = (part.ravel() for part in np.meshgrid(values, values))
    check("fmod", x, y, target)
