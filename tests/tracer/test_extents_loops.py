"""Loops whose bodies slice by the index: extents are expressions in it, and the loops are kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from rolling import length
from sizing import assert_near

import arrayjit

Program = Callable[..., Any]


def cholesky(a: Any) -> None:
    for i in range(a.shape[0]):
        for j in range(i):
            a[i, j] = (a[i, j] - a[i, :j] @ a[j, :j]) / a[j, j]
        a[i, i] = np.sqrt(a[i, i] - a[i, :i] @ a[i, :i])
        a[i, i + 1 :] = 0


def elimination(a: Any) -> None:
    n = a.shape[0]
    for k in range(n - 1):
        a[k + 1 :, k] /= a[k, k]
        a[k + 1 :, k + 1 :] -= np.outer(a[k + 1 :, k], a[k, k + 1 :])


def products_of_prefixes(a: Any) -> Any:
    result = np.zeros_like(a)
    for i in range(a.shape[0]):
        for j in range(a.shape[0]):
            result[i, j] = a[i, :i] @ a[:i, j] + a[j:i, i].sum()
    return result


def back_substitution(a: Any) -> Any:
    n = a.shape[0]
    x = np.ones(n)
    for i in range(n - 1, -1, -1):
        x[i] = (x[i] - a[i, i + 1 :] @ x[i + 1 :]) / a[i, i]
    return x


def durbin(a: Any) -> Any:
    r = a[0] / 100
    y = np.empty_like(r)
    y[0] = -r[0]
    alpha, beta = -r[0], 1.0
    for k in range(1, r.shape[0]):
        beta *= 1.0 - alpha * alpha
        alpha = -(r[k] + np.dot(np.flip(r[:k]), y[:k])) / beta
        y[:k] += alpha * np.flip(y[:k])
        y[k] = alpha
    return y


def householder(a: Any) -> None:
    for j in range(a.shape[0] - 1):
        v = a[j:, j].copy()
        v[0] += np.sign(v[0]) * np.linalg.norm(v)
        v /= np.linalg.norm(v)
        a[j:, j:] -= 2 * np.outer(v, v @ a[j:, j:])


def statistics_of_prefixes(a: Any) -> Any:
    result = np.zeros((a.shape[0], 5))
    for i in range(1, a.shape[0]):
        part = a[i, :i]
        result[i] = part.mean(), part.std(), part.max(), part.argmin(), np.diff(a[:i, i]).sum()
    return result


def shrinking_window(a: Any) -> None:
    n = a.shape[0]
    for k in range(n // 2):
        a[k, k : n - k] = a[k, k : n - k][::-1] + np.arange(n)[k : n - k]


def moving_window(a: Any) -> Any:
    width = 3
    result = np.zeros(max(a.shape[0] - width + 1, 0))
    for i in range(result.shape[0]):
        result[i] = a[i : i + width, i : i + width].sum() + a[i, i : i + width] @ np.ones(width)
    return result


def growing_arrays(a: Any) -> Any:
    total = 0.0
    for i in range(1, a.shape[0]):
        total = total + (np.zeros((i, 2)) + a[:i, :2]).sum() + np.arange(i) @ a[i, :i] + np.eye(i)[0, 0]
    return total


def rolled_rows(a: Any) -> None:
    for i in range(a.shape[0]):
        a[i] = np.roll(a[i], i)


def joined_parts(a: Any) -> None:
    for i in range(a.shape[0]):
        a[i] = np.concatenate([a[i, i:], a[i, :i]])


def sums_of_blocks(a: Any) -> Any:
    total = np.zeros(a.shape[0])
    for i in range(a.shape[0]):
        for j in range(i, a.shape[0]):
            total[i] += a[i : j + 1, j].cumsum()[-1] * a[: i + 1].reshape(-1)[j]
    return total


def every_other_row(a: Any) -> None:
    for i in range(0, a.shape[0] - 1, 2):
        a[i : i + 2] = a[i : i + 2][::-1]


def masked_prefixes(a: Any) -> Any:
    result = np.zeros(a.shape[0])
    for i in range(a.shape[0]):
        row = a[i, :i]
        result[i] = row[row > 0].sum()
    return result


PROGRAMS = [
    cholesky,
    elimination,
    products_of_prefixes,
    back_substitution,
    durbin,
    householder,
    statistics_of_prefixes,
    shrinking_window,
    moving_window,
    growing_arrays,
    rolled_rows,
    joined_parts,
    sums_of_blocks,
    every_other_row,
    masked_prefixes,
]


def positive(n: int) -> np.ndarray:
    """A matrix that is positive definite."""
    some = np.random.default_rng(n).standard_normal((n, n))
    return some @ some.T + n * np.eye(n)


@pytest.mark.parametrize("program", PROGRAMS)
def test_programs(program: Program) -> None:
    for target in ("interp", "sync_llvm"):
        for n in (2, 5, 9):
            plain, traced = positive(n), positive(n)
            assert_near(arrayjit.jit(program, target=target)(traced), program(plain), 1e-12)
            assert_near(traced, plain, 1e-12)


@pytest.mark.parametrize("program", PROGRAMS)
def test_their_loops_are_kept(program: Program) -> None:
    assert length(program, positive(12)) == length(program, positive(31))


def sparse_product(data: Any, columns: Any, starts: Any, x: Any) -> Any:
    result = np.zeros(starts.shape[0] - 1)
    for i in range(result.shape[0]):
        lo, hi = starts[i], starts[i + 1]
        result[i] = data[lo:hi] @ x[columns[lo:hi]]
    return result


def test_bounds_read_from_arrays() -> None:
    starts = np.array([0, 2, 2, 5, 6])
    data, columns, x = np.arange(6.0), np.array([1, 3, 0, 2, 4, 1]), np.arange(5.0) - 1
    for target in ("interp", "sync_llvm"):
        got = arrayjit.jit(sparse_product, target=target)(data, columns, starts, x)
        assert_near(got, sparse_product(data, columns, starts, x), 1e-15)


def test_rows_chosen_by_an_array() -> None:
    def program(a: Any, order: Any) -> None:
        for i in range(order.shape[0]):
            a[order[i]] += a[i]

    order = np.array([3, -1, 0, 3, 2])
    for target in ("interp", "sync_llvm"):
        plain, traced = positive(5), positive(5)
        program(plain, order)
        arrayjit.jit(program, target=target)(traced, order)
        assert_near(traced, plain, 0.0)
        with pytest.raises(IndexError, match="index is out of bounds for axis 0 with size 5"):
            arrayjit.jit(program, target=target)(traced, order + 3)


def test_a_prefix_of_unknown_length_in_a_loop() -> None:
    def program(a: Any, k: int) -> None:
        for i in range(k):
            a[i, :k] += a[:k, i].sum()

    for target in ("interp", "sync_llvm"):
        jitted = arrayjit.jit(program, target=target)
        for k in (0, 1, 3, 5):
            plain, traced = positive(5), positive(5)
            program(plain, k)
            jitted(traced, k)
            assert_near(traced, plain, 1e-14)
        with pytest.raises(IndexError, match="index is out of bounds for axis 0 with size 5"):
            jitted(positive(5), 6)
        assert jitted.stats().compiles == 1


def test_what_the_bounds_of_loops_tell_is_not_computed() -> None:
    def program(x: Any, y: Any) -> Any:
        result = np.zeros_like(x)
        n = x.shape[0]
        for i in range(n):
            for j in range(i + 1):
                result[i] += x[j] * y[i - j] + x[j:i].sum() + y[j : n - i + j].max()
        return result

    x, y = np.arange(9.0), np.arange(9.0) % 4
    text = arrayjit.jit(program).lower(x, y).as_text("assignments")
    assert "check" not in text
    assert "where" not in text
    for target in ("interp", "sync_llvm"):
        assert_near(arrayjit.jit(program, target=target)(x, y), program(x, y), 0.0)


def test_steps_and_quotients_stay_below_what_they_are_made_of() -> None:
    def program(x: Any) -> None:
        n, m = x.shape
        for i in range(n):
            for j in range(1 + i % 2, m - 1, 2):
                x[i, j] += x[i, j - 1] * x[i, j + 1] + x[j // 3 + i - i // 2, 0]
            for j in range(i // 2):
                x[2 * j + 1, 1] -= x[i - 2 * j - 1, 2]

    x = np.arange(90.0).reshape(10, 9) % 7
    assert "check" not in arrayjit.jit(program).lower(x).as_text("assignments")
    for target in ("interp", "sync_llvm"):
        plain, traced = x.copy(), x.copy()
        program(plain)
        arrayjit.jit(program, target=target)(traced)
        assert_near(traced, plain, 0.0)


def test_a_step_too_far_is_an_error() -> None:
    def program(x: Any) -> None:
        for i in range(len(x)):
            for j in range(i % 2, len(x), 2):
                x[j] += x[j + 1]

    for n in (6, 7):
        with pytest.raises(IndexError):
            program(np.ones(n))
        with pytest.raises(IndexError):
            arrayjit.jit(program)(np.ones(n))
