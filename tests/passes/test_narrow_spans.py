"""Integers that are compared, of which few bits are kept: those of NumPy, in vectors of narrow ones."""

from __future__ import annotations

import numpy as np
import pytest

from arrayjit import jit

TARGETS = ("llvm", "c", "interp")


def edges(image):
    """Sobel's, cut to a byte."""
    a = image.astype(np.int64)
    across = (a[:-2, 2:] + 2 * a[1:-1, 2:] + a[2:, 2:]) - (a[:-2, :-2] + 2 * a[1:-1, :-2] + a[2:, :-2])
    down = (a[2:, :-2] + 2 * a[2:, 1:-1] + a[2:, 2:]) - (a[:-2, :-2] + 2 * a[:-2, 1:-1] + a[:-2, 2:])
    return np.minimum(np.abs(across) + np.abs(down), 255).astype(np.uint8)


def brighter(image):
    return np.clip(image.astype(np.int64) * 3 - 100, 0, 255).astype(np.uint8)


def shifted(image):
    """More bits than those that are compared lead to them."""
    scaled = (image.astype(np.int64) * 70_000_001) >> 20
    return np.where(scaled > 9000, image, 7), np.minimum(scaled, 255).astype(np.uint8)


def kept(image):
    """All bits are stored as well."""
    darker = image.astype(np.int64) - 300
    return darker, np.maximum(darker, -128).astype(np.int8)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("program", [edges, brighter, shifted, kept])
@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.uint16, np.int16, np.int32])
def test_numbers_are_those_of_numpy(program, dtype, target):
    info = np.iinfo(dtype)
    image = np.random.default_rng(2).integers(info.min, info.max, (9, 90), dtype, endpoint=True)
    image[4, :4] = info.min, info.max, 0, 1
    results, wanted = jit(program, target=target)(image), program(image)
    pairs = zip(results, wanted, strict=True) if isinstance(wanted, tuple) else [(results, wanted)]
    for got, right in pairs:
        np.testing.assert_array_equal(got, right, strict=True)


@pytest.mark.parametrize("program", [edges, brighter])
def test_bytes_are_computed_in_16_bits(program):
    text = jit(program, target="llvm").lower(np.zeros((500, 640), np.uint8)).as_text("optimized")
    assert "i16" in text
    assert "i64" not in text
