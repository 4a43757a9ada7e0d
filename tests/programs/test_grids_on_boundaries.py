"""Grids that steps go through in copies, whose rows begin on boundaries, have NumPy's bits."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from arrayjit.compile import build
from arrayjit.ir.code import Schedule
from arrayjit.tracer.calls.function import trace_function

SIZES = ("l1_bytes", 4096), ("l2_bytes", 65536), ("threads", 1)
PADDED = Schedule(sizes=(*SIZES, ("pads", 1)))


def relaxed(steps, a, b, c):
    for _ in range(steps):
        b[1:-1, 1:-1] = 0.2 * (a[1:-1, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:] + a[2:, 1:-1] + a[:-2, 1:-1])
        a[1:-1, 1:-1] = 0.2 * (b[1:-1, 1:-1] + b[1:-1, :-2] + b[1:-1, 2:] + b[2:, 1:-1] + b[:-2, 1:-1])


def in_place(steps, a, b, c):
    b[2:5] = 3.0
    for k in range(steps):
        a[1:-1, 1:-1] += 0.1 * (a[1:-1, :-2] + a[1:-1, 2:] - 2 * a[1:-1, 1:-1]) * c[1:-1, 1:-1]
        a[0, :] = b[1, :] * k
        a[:, -1] = a[:, -2]
    c += a


def fields(steps, a, b, c):
    for k in range(steps):
        c[0, :] = k
        c[1:, :] -= 0.5 * (a[1:, :] - a[:-1, :])
        b[:, 1:] -= 0.5 * (a[:, 1:] - a[:, :-1])
        a[:-1, :-1] -= 0.7 * (b[:-1, 1:] - b[:-1, :-1] + c[1:, :-1] - c[:-1, :-1])
    b += c


def leapfrog(steps, a, b, c):
    before, now = a.copy(), b.copy()
    for _ in range(steps):
        after = 2 * now - before
        after[1:-1, 1:-1] += c[1:-1, 1:-1] * (now[1:-1, 2:] - 2 * now[1:-1, 1:-1] + now[1:-1, :-2])
        before, now = now, after
    c[...] = now


def watched(steps, a, b, c):
    for k in range(steps):
        b[1:-1, 1:-1] = 0.5 * (a[1:-1, :-2] + a[1:-1, 2:])
        c[k % 4, 0] = np.abs(b - a).max()
        a[1:-1, 1:-1] = b[1:-1, 1:-1]


def sixteen_steps(steps, a, b, c):
    relaxed(16, a, b, c)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("shape", [(20, 70), (64, 127), (21, 128)])
@pytest.mark.parametrize("program", [relaxed, in_place, fields, leapfrog, watched, sixteen_steps])
def test_grids_have_numpy_s_bits(
    program: Callable[..., None], shape: tuple[int, int], dtype: type[np.floating]
) -> None:
    start = np.random.default_rng(0).uniform(0.1, 1, (3, *shape)).astype(dtype)
    traced = trace_function(program, (5, *start.copy()), {})
    built = build(traced.computation, "sync_llvm", schedule=PADDED)
    assert any(note.startswith("pad:") for note in built.optimized.kernel.notes)
    procedure, labels = built.load(), [param.tensor.label for param in traced.computation.params]
    for steps in (0, 1, 15, 16, 17, 32, 35):
        wanted, ours = start.copy(), start.copy()
        program(steps, *wanted)
        places = {"steps": np.array(steps), **dict(zip("abc", ours, strict=True))}
        procedure.launch([places[label].ctypes.data for label in labels])
        assert np.array_equal(ours, wanted), steps


def test_sums_are_the_same_whether_grids_are_padded() -> None:
    def program(a: np.ndarray, b: np.ndarray, s: np.ndarray) -> None:
        for k in range(20):
            b[1:-1, 1:-1] = 0.5 * (a[1:-1, :-2] + a[1:-1, 2:])
            a[1:-1, 1:-1] = b[1:-1, 1:-1]
            s[k] = (a * b).sum()

    results = []
    for pads in (0, 1):
        arrays = [*np.random.default_rng(0).uniform(0.1, 1, (2, 40, 70)), np.zeros(20)]
        computation = trace_function(program, tuple(arrays), {}).computation
        schedule = Schedule(sizes=(*SIZES, ("pads", pads)))
        build(computation, "sync_llvm", schedule=schedule).load().launch([a.ctypes.data for a in arrays])
        results.append(arrays)
    for one, other in zip(*results, strict=True):
        assert np.array_equal(one, other)
