"""Points, colours and small vectors are read and written whole, and programs have NumPy's results."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import arrayjit


def blended(a: np.ndarray, b: np.ndarray, opacity: np.ndarray) -> np.ndarray:
    share = opacity[:, None].astype(np.uint16)
    return ((a * share + b * (255 - share)) // 255).astype(np.uint8)


def near(a: np.ndarray, b: np.ndarray, opacity: np.ndarray) -> np.ndarray:
    distances = ((a[:, None, :].astype(np.int64) - b[None, :, :]) ** 2).sum(axis=-1)
    return (distances < 10_000).sum(axis=1)


def scaled(a: np.ndarray, b: np.ndarray, opacity: np.ndarray) -> np.ndarray:
    return a * (opacity / 255)[:, None]


@pytest.mark.parametrize("parts", [2, 3, 4])
@pytest.mark.parametrize("program", [blended, near, scaled])
@pytest.mark.parametrize("length", [40, 64, 203])
def test_groups_of_neighbours_are_taken_together(
    program: Callable[..., np.ndarray], parts: int, length: int
) -> None:
    random = np.random.default_rng(parts)
    a, b = random.integers(0, 256, (2, length, parts)).astype(np.uint8)
    arguments = a, b, random.integers(0, 256, length).astype(np.uint8)
    compiled = arrayjit.jit(program)
    assert f"in sequential(0, {parts})" not in compiled.lower(*arguments).as_text()
    np.testing.assert_array_equal(compiled(*arguments), program(*arguments))
