"""Points of two or three coordinates, and colours: sums and differences of them have NumPy's results."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import arrayjit


def centre(x: np.ndarray) -> np.ndarray:
    return x.mean(axis=0)


def extent(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return x.min(axis=0), x.max(axis=0)


def spread(x: np.ndarray) -> np.ndarray:
    around = x - x.mean(axis=0)
    return (around * around).sum(axis=0) / np.abs(around).max(axis=0)


def attraction(x: np.ndarray) -> np.ndarray:
    forces = np.zeros_like(x)
    for i in range(x.shape[0]):
        apart = x - x[i]
        squares = (apart * apart).sum(axis=1) + 0.1
        forces[i] = ((1 / (squares * np.sqrt(squares)))[:, None] * apart).sum(axis=0)
    return forces


def within_a_cutoff(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    forces, energy = np.zeros_like(x), np.zeros(())
    for i in range(x.shape[0] - 1):
        apart = x[i + 1 :] - x[i]
        squares = (apart * apart).sum(axis=1)
        near = squares < 2.0
        on_each = np.where(near, 1 / (squares + 0.1), 0.0)[:, None] * apart
        forces[i] -= on_each.sum(axis=0)
        forces[i + 1 :] += on_each
        energy += np.where(near, 1 / (squares + 0.1), 0.0).sum()
    return forces, energy


def colours(x: np.ndarray) -> np.ndarray:
    picture = x[: len(x) // 10 * 10].reshape(10, -1, x.shape[1])
    return picture.mean(axis=(0, 1)) - picture.max(axis=(0, 1))


@pytest.mark.parametrize("program", [centre, extent, spread, attraction, within_a_cutoff, colours])
@pytest.mark.parametrize("columns", [2, 3, 4])
@pytest.mark.parametrize("rows", [10, 100, 403])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_points(program: Callable[..., object], columns: int, rows: int, dtype: type[np.generic]) -> None:
    x = np.random.default_rng(rows).standard_normal((rows, columns)).astype(dtype)
    expected, reference, found, in_c = (
        result if isinstance(result, tuple) else (result,)
        for result in (
            program(x),
            *(arrayjit.jit(program, target=target)(x) for target in ("interp", "llvm", "c")),
        )
    )
    accuracy = 2e-4 if dtype is np.float32 else 1e-11
    for known, same, one, other in zip(expected, reference, found, in_c, strict=True):
        assert (one.dtype, one.shape) == (known.dtype, known.shape)
        np.testing.assert_allclose(one, known, rtol=accuracy, atol=accuracy)
        np.testing.assert_array_equal(one, same)
        np.testing.assert_array_equal(other, same)


@pytest.mark.parametrize("program", [attraction, within_a_cutoff])
def test_pairs_go_in_vectors_and_are_not_kept(program: Callable[..., object]) -> None:
    text = arrayjit.jit(program).lower(np.ones((100, 3))).as_text("optimized")
    assert "in vector(0, 8, lanes=8)" in text or "in vector(0, -k + 99, lanes=8)" in text
    assert "temporary[f64, 100]" not in text
