"""Positions that surely lie within an axis need no test; all others raise NumPy's exception."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import arrayjit
from arrayjit.stages import Lowered

Positions = Callable[[np.ndarray, np.ndarray], np.ndarray]

TABLE = np.arange(16.0) ** 2
NUMBERS = np.array([-70, -17, -16, -1, 0, 3, 15, 16, 90])
BYTES = NUMBERS.astype(np.uint8)

SURE: dict[str, Positions] = {
    "clipped": lambda k, b: np.clip(k, 0, 15),
    "clipped floors": lambda k, b: np.clip(np.floor(k / 3).astype(np.int32), 1, 14) + 1,
    "clipped below zero": lambda k, b: np.clip(k, -16, -1),
    "rests": lambda k, b: k % 16,
    "bits": lambda k, b: k & 15,
    "bytes, shifted": lambda k, b: b >> 4,
    "bits of several conditions": lambda k, b: (
        ((k > 3).astype(np.int64) << 1) + ((k > 9).astype(np.int64) << 3)
    ),
    "in another shape": lambda k, b: (k % 16).reshape(3, 3).ravel() // 2,
    "a choice": lambda k, b: np.where(k > 3, np.minimum(b, 15), 7),
    "counted": lambda k, b: np.arange(len(k)) * 2 - 1,
    "where extremes stand": lambda k, b: np.argmax(np.subtract.outer(k, np.arange(16)) % 7, axis=1),
}

OPEN: dict[str, Positions] = {
    "one end": lambda k, b: np.minimum(k, 15),
    "one too far": lambda k, b: np.clip(k, 0, 15) + 1,
    "rests of another sign": lambda k, b: k % -18,
    "sums that wrap around": lambda k, b: b + np.uint8(20),
    "bits of negative numbers": lambda k, b: k & -2,
    "bits moved too far": lambda k, b: (k > 3).astype(np.int64) << 4,
}


def looked_up(positions: Positions) -> Callable[..., np.ndarray]:
    return lambda x, k, b: x[positions(k, b)]


def lowered(positions: Positions) -> Lowered:
    return arrayjit.jit(looked_up(positions)).lower(TABLE, NUMBERS, BYTES)


@pytest.mark.parametrize("name", SURE)
def test_what_lies_within_is_not_looked_at(name: str) -> None:
    assert "raise_" not in lowered(SURE[name]).as_text()
    result = arrayjit.jit(looked_up(SURE[name]))(TABLE, NUMBERS, BYTES)
    np.testing.assert_array_equal(result, looked_up(SURE[name])(TABLE, NUMBERS, BYTES))


@pytest.mark.parametrize("name", OPEN)
def test_what_may_lie_beyond_is_looked_at(name: str) -> None:
    assert "raise_" in lowered(OPEN[name]).as_text()
    for function in (looked_up(OPEN[name]), arrayjit.jit(looked_up(OPEN[name]))):
        with pytest.raises(IndexError):
            function(TABLE, NUMBERS, BYTES)


def test_four_points_of_a_picture_are_one_loop() -> None:
    def between(picture: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        rows, columns = picture.shape
        i = np.clip(np.floor(y).astype(np.int32), 0, rows - 2)
        j = np.clip(np.floor(x).astype(np.int32), 0, columns - 2)
        below, behind = y - i, x - j
        upper = picture[i, j] * (1 - behind) + picture[i, j + 1] * behind
        lower = picture[i + 1, j] * (1 - behind) + picture[i + 1, j + 1] * behind
        return upper * (1 - below) + lower * below

    random = np.random.default_rng(0)
    picture, x, y = (
        random.random((30, 40)),
        44 * random.random((25, 20)) - 2,
        33 * random.random((25, 20)) - 2,
    )
    text = arrayjit.jit(between).lower(picture, x, y).as_text()
    assert "raise_" not in text
    assert "arena" not in text
    np.testing.assert_array_equal(arrayjit.jit(between)(picture, x, y), between(picture, x, y))
