"""Whole kernels as a compiler of array programs writes them, compiled by NVRTC and run by the interpreter."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

ARCHITECTURES = ("sm_80", "sm_90", "sm_100")

Run = Callable[..., None]


def source(name: str) -> str:
    return (Path(__file__).parent / "sources" / f"{name}.cu").read_text()


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(7)


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_elementwise_with_vectors_and_a_tail(run: Run, rng: np.random.Generator, arch: str) -> None:
    x = rng.standard_normal(50_003).astype(np.float32)
    y = np.empty_like(x)
    run(source("gelu"), "gelu4", 64, 256, x, y, np.int32(x.size), arch=arch)
    wide = x.astype(np.float64)
    expected = 0.5 * wide * (1 + np.tanh(0.7978845608 * (wide + 0.044715 * wide**3)))
    np.testing.assert_allclose(y, expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_softmax_over_rows(run: Run, rng: np.random.Generator, arch: str) -> None:
    x = (3 * rng.standard_normal((20, 301))).astype(np.float32)
    y = np.empty_like(x)
    run(source("softmax"), "softmax", 20, 128, x, y, np.int32(301), arch=arch)
    expected = np.exp(x - x.max(axis=1, keepdims=True, initial=-np.inf).astype(np.float64))
    np.testing.assert_allclose(y, expected / expected.sum(axis=1, keepdims=True), rtol=1e-5)


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_product_in_shared_tiles(run: Run, rng: np.random.Generator, arch: str) -> None:
    a, b = (rng.standard_normal(shape).astype(np.float32) for shape in ((50, 29), (29, 45)))
    c = np.empty((50, 45), np.float32)
    run(source("product"), "product", (2, 2), 64, a, b, c, *map(np.int32, (50, 45, 29)), arch=arch)
    np.testing.assert_allclose(c, a.astype(np.float64) @ b, rtol=0, atol=1e-5)


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_product_on_tensor_cores(run: Run, rng: np.random.Generator, arch: str) -> None:
    a, b = (rng.standard_normal((64, 64)).astype(ml_dtypes.bfloat16) for _ in range(2))
    c = np.empty((64, 64), np.float32)
    run(
        source("tensor_product"),
        "product",
        (1, 1),
        128,
        a.view(np.uint16),
        b.view(np.uint16),
        c,
        *map(np.int32, (64, 64, 64)),
        arch=arch,
        shared_bytes=2 * (2 * 64 * 40 + 2 * 32 * 72),
    )
    np.testing.assert_allclose(c, a.astype(np.float64) @ b.astype(np.float64), rtol=0, atol=1e-5)


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_sum_with_shuffles_and_atomics(run: Run, rng: np.random.Generator, arch: str) -> None:
    x = rng.random(20_001).astype(np.float32)
    total = np.zeros(1, np.float32)
    run(source("total"), "total", 10, 128, x, total, np.int32(x.size), arch=arch)
    np.testing.assert_allclose(total, x.sum(dtype=np.float64), rtol=1e-6)
