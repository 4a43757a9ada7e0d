"""Results whose length only the run knows: arrays of their own, exactly as long as in NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from rolling import assert_like_numpy

import arrayjit

ROW = np.array([3.0, -1, 4, -1, 5, -9, 2, 6, -5])
MATRIX = np.arange(20.0).reshape(4, 5) % 7
Program = Callable[..., Any]


@pytest.mark.parametrize(
    "program",
    [
        lambda x, t: x[x > t],
        lambda x, t: (x[x > t] * 2, x[x < t][::-1], x.sum()),
        lambda x, t: np.nonzero(x > t),
        lambda x, t: np.where(x > t)[-1],
        lambda x, t: np.flatnonzero(x > t),
        lambda x, t: np.argwhere(x > t),
        lambda x, t: np.cumsum(x[x > t]),
        lambda x, t: x[x > t][:2],
        lambda x, t: np.extract(x > t, x).astype(np.int16),
        lambda x, t: np.concatenate([x[x > t], x[x <= t]]),
        lambda x, t: np.sqrt(x[x > t] + 10)[:, None] + np.arange(2),
        lambda x, t: np.ix_(x.ravel() > t),
        lambda x, t: [chosen := x[x > t], chosen],
        lambda x, t: np.outer(x[x > t], [1, 2, 4]).ravel(),
        lambda x, t: np.stack([x[x > t], -x[x > t]], axis=1).reshape(-1),
        lambda x, t: (np.kron(x[x > t], [1, 2]), (x[x > t] * (2 + 1j)).imag),
        lambda x, t: np.unpackbits(x[x > t].astype(np.uint8)),
    ],
)
def test_selections_are_returned(program: Program) -> None:
    for x in (ROW, MATRIX, MATRIX.T, np.zeros((0, 3))):
        assert_like_numpy(program, *[(x, t) for t in (-10.0, 0.0, 3.0, 100.0)])


@pytest.mark.parametrize(
    "program",
    [
        lambda x, t: x[x[:, 0] > t],
        lambda x, t: x[:, x[0] > t],
        lambda x, t: x[x[:, 0] > t, 1:],
        lambda x, t: x[np.ix_(x[:, 0] > t, x[0] > t)],
        lambda x, t: np.compress(x[0] > t, x, axis=1),
        lambda x, t: x[x[:, 0] > t].sum(axis=1),
        lambda x, t: x[:, x[0] > t].T,
    ],
)
def test_selections_of_rows_and_columns_are_returned(program: Program) -> None:
    assert_like_numpy(program, *[(MATRIX, t) for t in (-10.0, 0.0, 3.0, 100.0)])


def test_a_result_holds_no_more_memory_than_it_shows() -> None:
    result = arrayjit.jit(lambda x: x[x > 0])(ROW)
    assert result.base is None
    assert result.nbytes == 5 * 8


@pytest.mark.parametrize("select", [lambda x: x[x > 0], lambda x: x[x > 0][::-1], np.argwhere])
def test_a_selection_that_is_returned_twice_is_one_array(select: Program) -> None:
    def program(x: Any) -> Any:
        chosen = select(x)
        return chosen, chosen

    first, second = arrayjit.jit(program)(ROW)
    assert first is second
    np.testing.assert_array_equal(first, select(ROW), strict=True)


def test_one_compilation_serves_every_length() -> None:
    select = arrayjit.jit(lambda x: x[x > 0])
    for x in (ROW, -ROW, ROW * 0):
        np.testing.assert_array_equal(select(x), x[x > 0])
    assert select.stats().compiles == 1


def test_views_of_a_selection_are_returned_as_copies_only() -> None:
    def program(x: Any) -> Any:
        chosen = x[x > 0]
        return chosen, chosen[1:]

    with pytest.raises(arrayjit.ConcretizationError, match=r"return a copy: x\.copy\(\)"):
        arrayjit.jit(program)(ROW)


def test_without_checks_positions_in_range_do_the_same() -> None:
    def program(a: Any, p: Any) -> Any:
        a[p] += 1
        np.add.at(a, p, 2)
        return a[p], np.take(a, p), a[p[0]]

    unchecked = arrayjit.jit(program, unchecked=True)
    arguments = (ROW, np.array([1, -1, 1, 3]))
    assert "IndexError" in arrayjit.jit(program).lower(*arguments).as_text("assignments")
    assert "IndexError" not in unchecked.lower(*arguments).as_text("assignments")
    np.testing.assert_array_equal(
        unchecked(ROW.copy(), arguments[1])[0], program(ROW.copy(), arguments[1])[0]
    )
