"""Short rows go a vector of them at a time, and programs have NumPy's results on every target."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import arrayjit

Program = Callable[[np.ndarray], np.ndarray]


def softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def places(x: np.ndarray) -> np.ndarray:
    return x.argmin(axis=1)


def log_sums(x: np.ndarray) -> np.ndarray:
    largest = x[:, 1:].max(axis=1)
    return largest + np.log(np.exp(x[:, 1:] - largest[:, None]).sum(axis=1))


def scaled(x: np.ndarray) -> np.ndarray:
    x -= x.mean(axis=1, keepdims=True)
    x /= np.abs(x).max(axis=1, keepdims=True)
    return x[:, 1] + x.max(axis=1)


def of_blocks(x: np.ndarray) -> np.ndarray:
    first, second = x[: len(x) // 2], x[len(x) // 2 : len(x) // 2 * 2]
    return np.stack([softmax(first), softmax(second)])[:, ::2]


PROGRAMS = (softmax, places, log_sums, scaled, of_blocks)


def ran(program: Program, x: np.ndarray, target: str) -> tuple[np.ndarray, np.ndarray]:
    """The result, and what the argument has become."""
    argument = x.copy()
    return arrayjit.jit(program, target=target)(argument), argument


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("columns", [2, 3, 5, 8, 11])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_results_are_numpys_and_the_same_bits_on_every_target(
    program: Program, columns: int, dtype: type[np.generic]
) -> None:
    random = np.random.default_rng(columns)
    x = random.standard_normal((155, columns)).astype(dtype)
    x[3, 1], x[77, 0], x[100, :2] = np.nan, np.inf, -0.0
    after = x.copy()
    with np.errstate(all="ignore"):
        expected = program(after)
    accuracy = 1e-5 if dtype is np.float32 else 1e-12
    reference = ran(program, x, "interp")
    for target in ("llvm", "c"):
        for found, same, known in zip(ran(program, x, target), reference, (expected, after), strict=True):
            assert (found.dtype, found.shape) == (known.dtype, known.shape)
            np.testing.assert_allclose(found, known, rtol=accuracy, atol=accuracy)
            np.testing.assert_array_equal(found, same)


@pytest.mark.parametrize("program", [softmax, places, log_sums, scaled])
def test_a_lane_has_a_row(program: Program) -> None:
    notes = arrayjit.jit(program).lower(np.ones((200, 7), np.float32)).as_text()
    assert "in vector(0, 16, lanes=16)" in notes
    assert "x_turned" in notes


def test_equal_rows_have_equal_results_wherever_they_stand() -> None:
    row = np.random.default_rng(0).standard_normal(7).astype(np.float32)
    for program in (softmax, scaled):
        found = arrayjit.jit(program)(np.tile(row, (71, 1)))
        np.testing.assert_array_equal(found, np.broadcast_to(found[0], found.shape))
