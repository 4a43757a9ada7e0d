"""Positions that loops test one by one: whatever their signs are, results and exceptions are NumPy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import arrayjit

TARGETS = ("interp", "sync_llvm", "sync_c")


def count(p: Any, h: Any) -> None:
    for i in range(len(p)):
        h[p[i]] += 1


def count_both(p: Any, q: Any, h: Any) -> None:
    for i in range(len(p)):
        h[p[i], q[i]] += i


def chase(p: Any, h: Any) -> None:
    j = 0
    for _ in range(len(p)):
        j = p[j]
        h[j] += 1


def _positions(share: float, outside: int | None, dtype: Any = np.int64) -> np.ndarray:
    """500 positions in an axis of 90 cells, of which a share counts from the end, and one may be outside."""
    rng = np.random.default_rng(7)
    positions = rng.integers(0, 90, 500) - 90 * (rng.random(500) < share)
    if outside is not None:
        positions[400] = outside
    return positions.astype(dtype)


def _same(function: Any, target: str, *args: np.ndarray) -> None:
    """Do both end alike, and leave the same in their last argument?"""
    ours, theirs = [[arg.copy() for arg in args] for _ in range(2)]
    raised = None
    try:
        function(*theirs)
    except IndexError as error:
        raised = error
    if raised is None:
        arrayjit.jit(function, target=target)(*ours)
    else:
        with pytest.raises(IndexError):
            arrayjit.jit(function, target=target)(*ours)
    np.testing.assert_array_equal(ours[-1], theirs[-1])


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("share", [0.0, 0.01, 0.5, 1.0])
@pytest.mark.parametrize("outside", [None, 90, -91, 2**31 - 1])
def test_positions_of_either_sign(target: str, share: float, outside: int | None) -> None:
    for dtype in (np.int64, np.int32):
        _same(count, target, _positions(share, outside, dtype), np.zeros(90, np.int64))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("share", [0.0, 0.5])
def test_positions_along_two_axes(target: str, share: float) -> None:
    second = np.arange(500) % 7
    _same(count_both, target, _positions(share, None), second, np.zeros((90, 7), np.int64))
    _same(count_both, target, _positions(share, None), second, np.zeros((90, 6), np.int64))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("outside", [None, 500, -501])
def test_positions_that_lead_to_one_another(target: str, outside: int | None) -> None:
    following = np.roll(np.arange(500), -1) - 500 * (np.arange(500) % 3 == 0)
    if outside is not None:
        following[400] = outside
    _same(chase, target, following, np.zeros(500, np.int64))
