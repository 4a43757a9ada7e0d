"""Stencils of stencils have NumPy's bits where rows keep values for the next, in strips and on threads."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from arrayjit.compile import build
from arrayjit.ir.code import Caps, Pipes, Schedule
from arrayjit.passes.manager import optimize
from arrayjit.tracer.calls.function import trace_function


def laplacian(a):
    return a[2:, 1:-1] + a[:-2, 1:-1] + a[1:-1, 2:] + a[1:-1, :-2] - 4 * a[1:-1, 1:-1]


def twice(a):
    return laplacian(np.sqrt(laplacian(a) ** 2 + 1))


def limited(a):
    flux = np.sqrt(a[1:] * a[1:] + 0.5) - a[:-1] / 3
    flux = np.where(flux * (a[1:] - a[:-1]) > 0, 0, flux)
    return flux[1:] - flux[:-1]


def across(a):
    root = np.sqrt(np.abs(a) + 0.25)
    return (root[1:, 1:] - root[:-1, :-1]) * (root[1:, :-1] + root[:-1, 1:])


def curvature(a):
    down, right = a[1:, :-1] - a[:-1, :-1], a[:-1, 1:] - a[:-1, :-1]
    steep = np.sqrt(1 + down * down + right * right)
    down, right = down / steep, right / steep
    return down[1:, 1:] - down[:-1, 1:] + right[1:, 1:] - right[1:, :-1]


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("shape", [(24, 131), (37, 200), (15, 65, 7), (24, 131, 1)])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("program", [twice, limited, across, curvature])
def test_rows_that_are_kept_have_numpy_s_bits(
    program: Callable[[np.ndarray], np.ndarray], dtype: str, shape: tuple[int, ...], threads: int
) -> None:
    a = np.random.default_rng(0).uniform(-1, 1, shape).astype(dtype)
    wanted = program(a)
    schedule = Schedule(
        sizes=(("l1_bytes", 2048), ("l2_bytes", 10240), ("threads", threads), ("thread_work", 50))
    )
    built = build(trace_function(program, (a,), {}).computation, "sync_llvm", schedule=schedule)
    notes = {note.partition(":")[0] for note in built.optimized.kernel.notes}
    assert "retain" in notes
    ours = np.empty_like(wanted)
    built.load().launch([a.ctypes.data, ours.ctypes.data])
    assert np.array_equal(ours, wanted)


@pytest.mark.parametrize(
    ("program", "at_once", "l3_bytes", "is_kept"),
    [
        (lambda a: laplacian(laplacian(a)), 4, 1 << 22, True),
        (lambda a: laplacian(laplacian(a)), 4, 1 << 18, False),
        (lambda a: laplacian(laplacian(a)), 2, 1 << 18, True),
        (lambda a: np.diff(np.sqrt(a), axis=0), 4, 1 << 18, True),
    ],
)
def test_additions_are_done_again_while_memory_is_waited_for(
    program: Callable[[np.ndarray], np.ndarray], at_once: int, l3_bytes: int, is_kept: bool
) -> None:
    caps = Caps(64, 32, l2_bytes=1 << 17, l3_bytes=l3_bytes, pipes=Pipes(at_once=at_once))
    kernel = optimize(trace_function(program, (np.ones((300, 300)),), {}).computation, caps).kernel
    assert any(note.startswith("retain") for note in kernel.notes) == is_kept
