"""Slices between numbers whose difference is known have no more cells than that, wherever they start."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import arrayjit

TARGETS = ("interp", "sync_llvm", "sync_c")
STARTS = np.array(
    [0, 3, 20, 25, 29, 30, 31, 90, -1, -4, -8, -9, -29, -30, -31, -37, -90, 2**63 - 4, -(2**63) + 3]
)


def after(x: Any, p: Any) -> Any:
    y = np.zeros(len(p))
    for i in range(len(p)):
        y[i] = x[p[i] : p[i] + 8].sum()
    return y


def around(x: Any, p: Any) -> Any:
    y = np.zeros(len(p))
    for i in range(len(p)):
        y[i] = x[p[i] - 4 : p[i] + 4].sum()
    return y


def backwards(x: Any, p: Any) -> Any:
    y = np.zeros(len(p))
    for i in range(len(p)):
        y[i] = x[p[i] + 5 : p[i] - 2 : -1].sum()
    return y


def named(x: Any, p: Any) -> Any:
    y = np.zeros(len(p))
    for i in range(len(p)):
        start = p[i]
        stop = start + 5
        y[i] = x[start:stop].sum()
    return y


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("program", [after, around, backwards, named])
@pytest.mark.parametrize("extent", [30, 5, 1])
def test_slices_of_a_width_that_is_known(target: str, program: Any, extent: int) -> None:
    x = np.arange(1.0, extent + 1) ** 2
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(arrayjit.jit(program, target=target)(x, STARTS), program(x, STARTS))


def test_loops_over_them_are_made_for_as_many_cells() -> None:
    starts = np.resize(STARTS, 30_000)
    text = arrayjit.jit(after, target="sync_llvm").lower(np.ones(900), starts).as_text("optimized")
    assert "index[0, 9]" in text
    assert text.count("for ") == 2
    assert "vector(0, " in text


def moved(x: Any, p: Any) -> Any:
    """The start moves on after the end was computed from it."""
    y = np.zeros(6)
    stop = p[0] + 3
    for i in range(6):
        y[i] = x[p[0] : stop].sum()
        p[0] -= 1
    return y


def stored(x: Any, p: Any) -> Any:
    y = np.zeros(len(p))
    for i in range(len(p)):
        stop = p[i] + 3
        p[i] = 2
        y[i] = x[p[i] : stop].sum()
    return y


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("program", [moved, stored])
def test_a_start_that_has_changed_tells_nothing(target: str, program: Any) -> None:
    x, starts = np.arange(1.0, 31), np.array([20, 12, 9, 28])
    np.testing.assert_array_equal(
        arrayjit.jit(program, target=target)(x, starts.copy()), program(x, starts.copy())
    )
