"""Rows and columns that are chosen one after the other are looked up at once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import arrayjit

PROGRAMS: dict[str, Callable[..., np.ndarray]] = {
    "rows, columns": lambda x, p, q: x[p][:, q],
    "columns, rows": lambda x, p, q: x[:, q][p],
    "np.take": lambda x, p, q: np.take(np.take(x, p, axis=0), q, axis=1).sum(axis=1),
    "columns of one order": lambda x, p, q: x[p][:, q][:, 2] + x[p][::2, q].sum(),
    "clipped": lambda x, p, q: x[np.clip(p + 3, 0, 11)][:, q % 5],
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_is_chosen_twice_is_looked_up_once(name: str) -> None:
    random = np.random.default_rng(0)
    x, p, q = random.random((12, 10)), random.integers(-12, 12, 30), random.integers(-10, 10, 20)
    compiled, program = arrayjit.jit(PROGRAMS[name]), PROGRAMS[name]
    np.testing.assert_allclose(compiled(x, p, q), program(x, p, q), rtol=1e-14)
    with pytest.raises(IndexError):
        compiled(x[:, :4], p, np.full(20, 4))


def test_rows_are_not_copied() -> None:
    text = (
        arrayjit.jit(lambda x, p, q: x[p][:, q]).lower(np.ones((400, 300)), *np.ones((2, 99), int)).as_text()
    )
    assert "99, 300" not in text


def test_what_is_overwritten_in_between_is_copied() -> None:
    def program(x: np.ndarray, p: np.ndarray, q: np.ndarray) -> np.ndarray:
        rows = x[p]
        x[:] = 0
        p[:] = 0
        return rows[:, q]

    random = np.random.default_rng(0)
    x, p, q = random.random((12, 10)), random.integers(0, 12, 30), random.integers(0, 10, 20)
    expected = x[p][:, q]
    np.testing.assert_array_equal(arrayjit.jit(program)(x, p, q), expected)
    assert not x.any()
