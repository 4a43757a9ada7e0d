"""Grids stepped through time have NumPy's bits where caches are so small that arrays take turns and sweep."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from grids_in_steps import back_and_forth, fields, rows_between

from arrayjit.compile import build
from arrayjit.ir.code import Schedule
from arrayjit.tracer.calls.function import trace_function

SMALL = Schedule(sizes=(("l1_bytes", 256), ("l2_bytes", 8192), ("threads", 1)))


def upwards(a, b):
    for _ in range(5):
        b[:-1] = a[1:] * 0.5
        a[1:] = b[:-1] + a[1:] * 0.25


def through_a_third(a, b):
    c = np.zeros_like(a)
    for _ in range(5):
        c[:, :] = a * 0.5
        b[1:-1] += c[2:] - c[:-2]
        a[2:-2] -= 0.1 * b[4:]
        a[-1] = b[3]


def from_a_copy(a, b):
    for _ in range(9):
        old = a.copy()
        a[1:-1, 1:-1] = (old[1:-1, 2:] + old[1:-1, :-2] + old[2:, 1:-1] + old[:-2, 1:-1] - b[1:-1, 1:-1]) / 4
        a[0, :] = a[1, :]
        a[:, -1] = 2.0
    b[:] = old


def made_anew(a, b):
    u, v = a, b
    for _ in range(4):
        u, v = u + 0.1 * (np.roll(u, 1, 0) + np.roll(v, -1, 1)), v - 0.2 * u * v
    a[:], b[:] = u, v


def leapfrog(a, b):
    before, now = a, b
    for _ in range(7):
        new = np.zeros_like(now)
        around = now[1:-1, 2:] + now[1:-1, :-2] + now[2:, 1:-1] + now[:-2, 1:-1]
        new[1:-1, 1:-1] = 2 * now[1:-1, 1:-1] - before[1:-1, 1:-1] + 0.1 * around
        before, now = now, new
    a[:], b[:] = before, now


def complex_leapfrog(a, b):
    before, now = a + 1j * b, b + 1j * a
    for _ in range(6):
        energy = np.zeros_like(now)
        energy[1:-1] = a[1:-1] * now[1:-1] - 0.5 * (now[2:] + now[:-2])
        before, now = now, before - 0.2j * energy
    a[:], b[:] = before.real + now.imag, before.imag - now.real


def odd_leapfrog(a, b):
    before, now = a.copy(), b.copy()
    for _ in range(7):
        pull = np.zeros_like(now)
        pull[1:-1, 1:-1] = now[1:-1, 2:] + now[1:-1, :-2] - now[2:, 1:-1] * now[:-2, 1:-1]
        before, now = now, before - 0.1 * pull
    a[:], b[:] = before, now


def between_walls(a, b):
    before, now = a.copy(), b.copy()
    for k in range(7):
        pull = np.full_like(now, -0.0)
        pull[0] = k
        pull[1:-1] = now[2:] + now[:-2]
        before, now = now, before * 0.5 - 0.1 * pull
    a[:], b[:] = before, now


def cropped(a, b):
    now = a
    for k in range(7):
        now = 0.5 * (now[1:, 1:] - now[:-1, 1:]) + k * now[1:, :-1]
    b[: len(now), -now.shape[1] :] = now


def cropped_and_bordered(a, b):
    now = a.copy()
    for _ in range(6):
        now = now[1:] + now[:-1]
        now[0] = 2.0
    b[1 : len(now) + 1] += now


@pytest.mark.parametrize("shape", [(60, 24), (61, 23), (12, 90), (9, 9)])
@pytest.mark.parametrize(
    ("steps", "passes"),
    [
        (back_and_forth, {"sweep"}),
        (rows_between, {"sweep"}),
        (fields, {"sweep"}),
        (upwards, set()),
        (through_a_third, {"sweep"}),
        (from_a_copy, {"swap", "sweep"}),
        (made_anew, {"sweep"}),
        (leapfrog, {"swap", "sweep"}),
        (complex_leapfrog, {"swap", "interior"}),
        (odd_leapfrog, {"swap", "interior"}),
        (between_walls, {"swap", "interior"}),
        (cropped, {"swap"}),
        (cropped_and_bordered, set()),
    ],
)
def test_steps_have_numpy_s_bits(
    steps: Callable[[np.ndarray, np.ndarray], None], passes: set[str], shape: tuple[int, int]
) -> None:
    wanted = np.random.default_rng(0).uniform(-1, 1, (2, *shape))
    ours = wanted.copy()
    built = build(trace_function(steps, tuple(ours.copy()), {}).computation, "sync_llvm", schedule=SMALL)
    if shape == (60, 24):
        assert passes <= {note.partition(":")[0] for note in built.optimized.kernel.notes}
    built.load().launch([array.ctypes.data for array in ours])
    steps(*wanted)
    assert np.array_equal(ours, wanted)
