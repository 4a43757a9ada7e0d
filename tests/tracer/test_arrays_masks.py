"""Masks as indices: what they select, count and write."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from refusing import assert_raises_like_numpy
from rolling import assert_like_numpy

import arrayjit

ROW = np.array([3.0, -1, 4, -1, 5, -9, 2, 6, -5])
MATRIX = np.arange(20.0).reshape(4, 5) % 7
THRESHOLDS = (-10.0, 0.0, 3.0, 100.0)
Program = Callable[..., Any]


@pytest.mark.parametrize(
    "program",
    [
        lambda x, t: x[x > t].sum(),
        lambda x, t: x[x > t].size,
        lambda x, t: len(x[x > t]) * 1.0,
        lambda x, t: x[x > t].shape[0] + 1,
        lambda x, t: x[x > t].prod(),
        lambda x, t: (x[x > t] * 2 + 1).sum(),
        lambda x, t: np.sqrt(x[x > t] + 10).sum(),
        lambda x, t: (x[x > t] * x[x > t]).sum(),
        lambda x, t: x[x > t] @ x[x > t],
        lambda x, t: x[::-1][x > t].sum(),
        lambda x, t: x[~(x > t)].max(initial=-1000),
        lambda x, t: np.cumsum(x[x > t]).sum(),
        lambda x, t: x[x > t][::-1].cumsum().max(initial=0),
        lambda x, t: x[x > t][:2].sum(),
        lambda x, t: x[x > t].astype(np.int32).sum(),
        lambda x, t: x.astype(np.float32)[x > t].sum(),
        lambda x, t: (x[x > t] > 4).sum(),
        lambda x, t: x[x > t][x[x > t] > 4].sum(),
        lambda x, t: np.count_nonzero(x > t),
        lambda x, t: np.any(x[x > t] > 4),
        lambda x, t: np.all(x[x > t] > 4),
        lambda x, t: x[(x > t) & (x < 5)].sum(),
    ],
)
def test_what_a_mask_selects_can_be_reduced(program: Program) -> None:
    assert_like_numpy(program, *[(ROW, t) for t in THRESHOLDS])


@pytest.mark.parametrize(
    "program",
    [
        lambda x, t: x[x > t].mean(),
        lambda x, t: x[x > t].max(),
        lambda x, t: x[x > t].min(),
        lambda x, t: x[x > t].var(),
        lambda x, t: x[x > t].std(ddof=1),
        lambda x, t: x[x > t].argmax(),
        lambda x, t: x[x > t][0],
        lambda x, t: x[x > t][-1],
    ],
)
def test_what_a_mask_surely_selects_has_a_mean_and_extremes(program: Program) -> None:
    assert_like_numpy(program, (ROW, -10.0), (ROW, 3.0))


@pytest.mark.parametrize(
    "program",
    [
        lambda x, t: x[x > t].sum(),
        lambda x, t: x[x[:, 0] > t].sum(axis=0),
        lambda x, t: x[x[:, 0] > t].sum(axis=1).sum(),
        lambda x, t: x[x[:, 0] > t, 1].sum(),
        lambda x, t: x[x[:, 0] > t, 1:3].sum(axis=0),
        lambda x, t: x[:, x[1] > t].sum(axis=1),
        lambda x, t: x[1:, x[1] > t][:, ::-1].sum(),
        lambda x, t: x[2, x[1] > t].sum(),
        lambda x, t: x[x[:, 0] > t, (x[:, 0] > t).nonzero()[0]].sum(),
        lambda x, t: x[np.ix_(x[:, 0] > t, x[1] > t)].sum(),
        lambda x, t: x[x[:, 0] > t][:, x[1] > t].sum(),
        lambda x, t: x.T[(x > t).T].sum(),
        lambda x, t: x[None][(x > t)[None]].sum(),
        lambda x, t: x[None, x > t].sum(axis=1),
    ],
)
def test_masks_stand_for_one_axis_or_several(program: Program) -> None:
    assert_like_numpy(program, *[(MATRIX, t) for t in THRESHOLDS])


def zero(x: Any, t: float) -> Any:
    x[x > t] = 0
    return x


def lift(x: Any, t: float) -> Any:
    x[x > t] += 1
    return x


def scale(x: Any, t: float) -> Any:
    y = x.copy()
    y[x > t] *= x[x > t]
    return y


def copied(x: Any, t: float) -> Any:
    y = np.zeros_like(x)
    mask = x > t
    y[mask] = x[mask]
    return y


def computed(x: Any, t: float) -> Any:
    mask = x <= t
    x[mask] = np.abs(x[mask]) * 2 - x[mask]
    return x


def reversed_values(x: Any, t: float) -> Any:
    x[x > t] = x[x > t][::-1]
    return x


def counted(x: Any, t: float) -> Any:
    x[x > t] = np.arange(x[x > t].size)
    return x


def kept_values(x: Any, t: float) -> Any:
    mask = x > t
    values = x[mask]
    x[mask] = -1
    x[~mask] += values.sum()
    return x


def rows(x: Any, t: float) -> Any:
    x[x[..., 0] > t] = -1
    return x


def mask_written(x: Any, t: float) -> Any:
    mask = x > t
    mask[mask] = False
    return mask


@pytest.mark.parametrize(
    "program", [zero, lift, scale, copied, computed, reversed_values, counted, kept_values, mask_written]
)
def test_writes_through_a_mask_are_in_row_major_order(program: Program) -> None:
    for x in (ROW, MATRIX, MATRIX.T, np.zeros((0, 3)), ROW.astype(np.int16)):
        assert_like_numpy(program, *[(x, t) for t in THRESHOLDS])


def rows_by_row(x: Any, t: float) -> Any:
    x[x[:, 0] > t] = np.arange(5)
    return x


def rows_by_column(x: Any, t: float) -> Any:
    mask = x[:, 0] > t
    x[mask] = x[mask, 1][:, None]
    return x


def column_part(x: Any, t: float) -> Any:
    x[x[:, 0] > t, 1:3] *= 2
    return x


def one_column(x: Any, t: float) -> Any:
    x[x[:, 0] > t, 0] = 9
    return x


def columns(x: Any, t: float) -> Any:
    x[:, x[0] > t] -= 1
    return x


@pytest.mark.parametrize("program", [rows, rows_by_row, rows_by_column, column_part, one_column, columns])
def test_writes_through_a_mask_of_some_axes(program: Program) -> None:
    assert_like_numpy(
        program, *[(MATRIX, t) for t in THRESHOLDS], *[(MATRIX.T.copy().T, t) for t in THRESHOLDS]
    )


def all_or_nothing(x: Any, t: float) -> Any:
    x[x.max() > t] = 7
    x[x.min() > t] += x
    return x, x[x.min() > t], x[True], x[False]


def test_a_single_bool_chooses_all_or_nothing() -> None:
    for x in (ROW, MATRIX, np.array(2.0)):
        assert_like_numpy(all_or_nothing, *[(x, t) for t in THRESHOLDS])


def test_a_mask_that_is_known_gives_a_shape_that_is_known() -> None:
    def program(x: Any) -> Any:
        return x[np.array([True, False] * 4 + [True])].reshape(5, 1), x[[True] * 4 + [False] * 5][range(3)]

    assert_like_numpy(program, (ROW,))
    assert "index[" not in arrayjit.jit(program).lower(ROW).as_text("assignments")


def by_positions(x: Any, t: float) -> Any:
    i, j = np.nonzero(x > t)
    x[i, j] += x[j % 4, i]
    return x


def where_with_one_argument(x: Any, t: float) -> Any:
    (i,) = np.where(x[:, 0] > t)
    x[i] = 0
    return x, i.sum()


@pytest.mark.parametrize(
    "program",
    [
        by_positions,
        where_with_one_argument,
        lambda x, t: np.flatnonzero(x > t).sum(),
        lambda x, t: (x > t).nonzero()[1].sum(),
        lambda x, t: np.argwhere(x > t).sum(axis=0),
        lambda x, t: np.compress(x[:, 0] > t, x, axis=0).sum(axis=0),
        lambda x, t: x.compress(x[0, :3] > t, axis=1).sum(axis=1),
        lambda x, t: np.extract(x > t, x + 1).sum(),
        lambda x, t: np.nonzero(x)[0].size,
        lambda x, t: len(np.nonzero(x > t)[0]),
    ],
)
def test_positions_of_what_holds(program: Program) -> None:
    assert_like_numpy(program, *[(MATRIX, t) for t in THRESHOLDS])


def in_a_loop(x: Any, steps: int) -> Any:
    total = np.float64(0)
    for step in range(steps):
        x[x > step] -= 1
        total = total + x[x < step].sum()
    return total, x


def sieve(n: int) -> Any:
    prime = np.ones(100, bool)
    prime[:2] = False
    for i in range(2, n):
        prime[i * i :: i] &= ~prime[i]
    return np.count_nonzero(prime), np.flatnonzero(prime).sum()


def mandelbrot(c: Any, steps: int) -> Any:
    z, count = np.zeros_like(c), np.zeros(c.shape, np.int64)
    for _ in range(steps):
        alive = np.abs(z) <= 2
        z[alive] = z[alive] * z[alive] + c[alive]
        count[alive] += 1
    return z, count


def test_loops_select_anew_in_each_iteration() -> None:
    assert_like_numpy(in_a_loop, (ROW, 7), (ROW, 0))
    assert_like_numpy(mandelbrot, (np.linspace(-2.5, 1, 40), 30))


WRONG: list[tuple[Program, str]] = [
    (lambda x: x[x[:4] > 0], "boolean index did not match indexed array along axis 0; size of axis is 9"),
    (lambda x: x[None, x[:4] > 0], "boolean index did not match indexed array along axis 1; size"),
    (lambda x: x[(x > 0)[None]], "too many indices for array"),
    (lambda x: x.__setitem__(x > 0, x), "cannot assign 9 input values to the"),
    (lambda x: x.__setitem__(x > 0, x[x < 0]), "NumPy boolean array indexing assignment cannot assign"),
    (lambda x: x.__setitem__(x > 0, x[None, :4]), "requires a 0 or 1-dimensional input, input has 2 dim"),
    (lambda x: x[:, None].__setitem__(x > 0, x[:4, None]), "shape mismatch: value array of shape (4,1)"),
    (lambda x: x[x > 100].max(), "zero-size array to reduction operation"),
    (lambda x: x[x > 100].argmin(), "argmin of an empty sequence"),
    (lambda x: x[x > 100][0], "out of bounds for axis 0 with size"),
    (lambda x: (x[x > 0] + x[x < 0]).sum(), "could not be broadcast together"),
    (lambda x: np.nonzero(x[0]), "Calling nonzero on 0d arrays is not allowed"),
    (lambda x: np.compress((x > 0)[None], x), "condition must be a 1-d array"),
    (lambda x: np.compress(np.append(x, x) > 5, x).sum(), "out of bounds"),
    (lambda x: np.place(x, x[:3] > 0, 1), "place: mask and data must be the same size"),
    (lambda x: np.place(x, x > 0, x[:0]), "Cannot insert from an empty array!"),
    (lambda x: np.place(x.astype(int), x > 0, x), "Cannot cast array data from dtype('float64')"),
    (lambda x: np.putmask(x.astype(int), x > 0, x), "Cannot cast array data from dtype('float64')"),
    (lambda x: np.putmask(x, x[:3] > 0, 1), "putmask: mask and data must be the same size"),
    (lambda x: np.where(x > 0, x), "either both or neither of x and y should be given"),
    (lambda x: np.ix_(x[None]), "Cross index must be 1 dimensional"),
]  # fmt: skip


@pytest.mark.parametrize(("program", "words"), WRONG)
def test_mistakes_raise_as_in_numpy(program: Program, words: str) -> None:
    assert_raises_like_numpy(program, words, ROW)


def test_a_selection_cannot_choose_what_is_compiled() -> None:
    with pytest.raises(arrayjit.ConcretizationError):
        arrayjit.jit(lambda x: np.zeros((3, 3)) if x[x > 0].size else x)(ROW)
