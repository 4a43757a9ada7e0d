"""Grids stepped through time have NumPy's bits where threads share slabs of rows, taken in any order."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from grids_in_steps import back_and_forth, fields, rows_between
from shuffled import Shuffled

from arrayjit.compile import build
from arrayjit.ir.code import Schedule
from arrayjit.runtime.c import CDriver
from arrayjit.runtime.cpu import CpuDriver
from arrayjit.targets.c import CTarget
from arrayjit.targets.llvm import LlvmTarget
from arrayjit.tracer.calls.function import trace_function


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
    kernel = built.optimized.kernel
    assert f"sweep: {threads} slabs of rows go through memory apart" in kernel.notes
    if target == "sync_llvm":
        loaded = CpuDriver(target).load(LlvmTarget(target).emit(kernel))
    else:
        loaded = CDriver(target).load(CTarget(target).emit(kernel))
    pool = Shuffled()
    workspace = np.full(kernel.arena_bytes + 64, 0xFF, np.uint8)
    place = workspace.ctypes.data
    assert loaded.launch([array.ctypes.data for array in ours], (), place + -place % 64, pool.address) == 0
    assert any(trips == threads for trips, *_ in pool.calls)
    steps(*wanted)
    assert np.array_equal(ours, wanted)
