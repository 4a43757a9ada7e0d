"""Programs that put arrays together and go over them: what NumPy computes, with nothing put together."""

from __future__ import annotations

import numpy as np
import pytest

import arrayjit

X = np.random.default_rng(0).standard_normal((40, 50))


def neighbours(x):
    return np.roll(x, 1, 0) + np.roll(x, -1, 0) - np.roll(x, 1, 1) * np.roll(x, -1, 1)


def rolled_in_place(x):
    x[:] = x - 0.5 * np.roll(x, 2, 1)
    return x


def diagonal(x):
    return x + np.roll(np.roll(x, 1, 0), -1, 1)


def over_time(x):
    x = x.copy()
    for _ in range(5):
        around = np.roll(x, 1, 0) + np.roll(x, -1, 0)
        around += np.roll(x, 1, 1)
        x = x + 0.1 * (around - 3 * x)
    return x


def padded(x):
    p = np.pad(x, 1)
    return p[1:-1, 2:] - p[1:-1, :-2] + p[2:, 1:-1]


def edges(x):
    p = np.pad(x, ((1, 1), (0, 0)), mode="edge")
    return p[2:] - 2 * p[1:-1] + p[:-2]


def halves(x):
    both = np.concatenate([x[:, 25:], x[:, :25]], axis=1)
    return both * x + np.abs(both)


def changed_between(x):
    x = x.copy()
    moved = np.roll(x, 1, 0)
    x += 1
    return x * moved


def summed(x):
    moved = np.roll(x, 1, 1)
    return (x * moved).sum(1), moved[3]


PROGRAMS = [neighbours, rolled_in_place, diagonal, over_time, padded, edges, halves, changed_between, summed]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_is_what_numpy_computes(program):
    ours = arrayjit.jit(program)(X.copy())
    theirs = program(X.copy())
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-14)


@pytest.mark.parametrize("program", [neighbours, over_time, padded, halves], ids=lambda p: p.__name__)
def test_nothing_is_put_together(program):
    text = arrayjit.jit(program).lower(X.copy()).as_text("optimized")
    labels = [line.split(":")[0].strip() for line in text.splitlines() if ": temporary[" in line]
    assert not [label for label in labels if label.startswith(("rolled", "padded", "concatenated"))]
