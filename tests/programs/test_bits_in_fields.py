"""Bits that programs add up by shifts and masks are counted at once, as many as they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import arrayjit

TARGETS = [{}, {"target": "c"}, {"target": "interp"}]


def by_a_product(x):
    x = x - ((x >> 1) & 0x5555555555555555)
    x = (x & 0x3333333333333333) + ((x >> 2) & 0x3333333333333333)
    x = (x + (x >> 4)) & 0x0F0F0F0F0F0F0F0F
    return (x * 0x0101010101010101) >> 56


def by_halves(x):
    for width, mask in ((1, 0x55555555), (2, 0x33333333), (4, 0x0F0F0F0F), (8, 0x00FF00FF), (16, 0x0000FFFF)):
        x = (x & mask) + ((x >> width) & mask)
    return x


def of_each(x):
    out = np.zeros(len(x), np.uint32)
    for i in range(len(x)):
        v = x[i]
        v = v - ((v >> 1) & 0x55555555)
        v = (v & 0x33333333) + ((v >> 2) & 0x33333333)
        out[i] = (((v + (v >> 4)) & 0x0F0F0F0F) * 0x01010101) >> 24
    return out


def of_other_fields(x):
    x = x - ((x >> 1) & 0x5555555555555555)
    x = (x & 0x3333333333333333) + ((x >> 2) & 0x3333333333333333)
    return (x + (x >> 2)) & 0x0F0F0F0F0F0F0F0F, (x * 0x0101010101010101) >> 56


@pytest.mark.parametrize("options", TARGETS, ids=str)
@pytest.mark.parametrize(
    ("function", "dtypes"),
    [
        (by_a_product, (np.uint64, np.int64)),
        (by_halves, (np.uint32, np.int32, np.uint64)),
        (of_each, (np.uint32,)),
        (of_other_fields, (np.uint64, np.int64)),
    ],
)
def test_bits_are_as_many(function: Callable[..., Any], dtypes: Any, options: dict[str, Any]) -> None:
    bits = np.random.default_rng(2).integers(0, 2**64, 301, np.uint64)
    bits[:3] = 0, 2**64 - 1, 2**63
    for dtype in dtypes:
        x = bits.astype(dtype)
        with np.errstate(over="ignore"):
            wanted = function(x)
        found = arrayjit.jit(function, **options)(x)
        for one, other in zip(np.atleast_2d(found), np.atleast_2d(wanted), strict=True):
            assert one.dtype == other.dtype
            np.testing.assert_array_equal(one, other)


def test_they_are_counted_at_once() -> None:
    for function, dtype in ((by_a_product, np.int64), (by_halves, np.uint32), (of_each, np.uint32)):
        assert "popcount" in arrayjit.jit(function).lower(np.ones(40, dtype)).as_text("optimized")
