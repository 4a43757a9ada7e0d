"""Grids stepped through time have NumPy's bits where threads share slabs of rows, taken in any order."""

from __future__ import annotations

import ctypes
import random
from collections.abc import Callable

import numpy as np
import pytest

from arrayjit.compile import build
from arrayjit.ir.code import Schedule
from arrayjit.runtime.c import CDriver
from arrayjit.runtime.cpu import CpuDriver
from arrayjit.targets.c import CTarget
from arrayjit.targets.llvm import LlvmTarget
from arrayjit.tracer.calls.function import trace_function

POOL = ctypes.CFUNCTYPE(
    None, *(ctypes.c_void_p,) * 3, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64
)
LOOP = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)


class Shuffled:
    """A pool that hands out every iteration for itself, in any order."""

    def __init__(self) -> None:
        self._random = random.Random(0)
        self._run = POOL(self._share)
        self._word = ctypes.c_void_p(ctypes.cast(self._run, ctypes.c_void_p).value)
        self.address = ctypes.addressof(self._word)

    def _share(
        self, pool: int, loop: int, context: int, trips: int, grain: int, own: int | None, size: int
    ) -> None:
        for start in self._random.sample(range(trips), trips):
            LOOP(loop)(context, start, start + 1, own)


def back_and_forth(a, b):
    for _ in range(7):
        b[1:-1, 1:-1] = 0.2 * (a[1:-1, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:] + a[2:, 1:-1] + a[:-2, 1:-1])
        a[1:-1, 1:-1] = 0.2 * (b[1:-1, 1:-1] + b[1:-1, :-2] + b[1:-1, 2:] + b[2:, 1:-1] + b[:-2, 1:-1])


def rows_between(a, b):
    for k in range(6):
        a[0, :] = b[1, :] * k
        b[2:-2, 1:-1] = 0.25 * (a[4:, 1:-1] + a[:-4, 1:-1]) - a[2:-2, :-2]
        b[-1, :] = a[-2, :]
        a[1:-1, :] = b[:-2, :] - b[2:, :]
        a[7, :] = b[7, :]
        a[:, 0] = 1.0


def fields(a, b):
    c = np.ones_like(a)
    for k in range(6):
        c[0, :] = k
        c[1:, :] -= 0.5 * (a[1:, :] - a[:-1, :])
        b[:, 1:] -= 0.5 * (a[:, 1:] - a[:, :-1])
        a[:-1, :-1] -= 0.7 * (b[:-1, 1:] - b[:-1, :-1] + c[1:, :-1] - c[:-1, :-1])
    b += c


def forwards(a, b):
    for _ in range(5):
        b[1:, :] = a[:-1, :] - a[1:, :]
        a[2:, :] = b[:-2, :] * 0.5 + b[1:-1, :]


def backwards(a, b):
    for _ in range(5):
        b[:-1, :] = a[1:, :] - a[:-1, :]
        a[:-2, :] = b[2:, :] * 0.5 + b[1:-1, :]


def in_place(a, b):
    for _ in range(6):
        a[1:-1, 1:-1] = 0.25 * (a[2:, 1:-1] + a[:-2, 1:-1] + a[1:-1, 2:] + b[1:-1, 1:-1])
        b[1:-1] = a[2:] - a[:-2]


@pytest.mark.parametrize("steps", [back_and_forth, rows_between, fields, forwards, backwards, in_place])
@pytest.mark.parametrize("rows", [430, 431])
@pytest.mark.parametrize("threads", [2, 3])
@pytest.mark.parametrize("target", ["sync_llvm", "sync_c"])
def test_slabs_may_be_taken_in_any_order(
    steps: Callable[[np.ndarray, np.ndarray], None], rows: int, threads: int, target: str
) -> None:
    wanted = np.random.default_rng(0).uniform(-1, 1, (2, rows, 24))
    ours = wanted.copy()
    schedule = Schedule(
        sizes=(
            ("l1_bytes", 256),
            ("l2_bytes", 8192),
            ("l3_bytes", 100_000),
            ("threads", threads),
            ("thread_work", 16),
        )
    )
    built = build(trace_function(steps, tuple(ours.copy()), {}).computation, target, schedule=schedule)
    assert f"sweep: {threads} slabs of rows go through memory apart" in built.optimized.kernel.notes
    pool = Shuffled()
    workspace = np.full(built.optimized.kernel.arena_bytes + 64, 0xFF, np.uint8)
    place = workspace.ctypes.data
    kernel = built.optimized.kernel
    if target == "sync_llvm":
        loaded = CpuDriver(target).load(LlvmTarget(target).emit(kernel))
    else:
        loaded = CDriver(target).load(CTarget(target).emit(kernel))
    loaded.launch([array.ctypes.data for array in ours], (), place + -place % 64, pool.address)
    steps(*wanted)
    assert np.array_equal(ours, wanted)
