"""Schedules for GPUs compute what NumPy does: the interpreter runs the final loops, for a GPU on which even
small kernels make grids, and for one on which a block runs nearly everything."""

from __future__ import annotations

import numpy as np
import pytest
from kernels import KERNELS, Kernel, difference, results_of

import arrayjit
from arrayjit.ir.code import Caps, GpuCaps
from arrayjit.targets.interp import InterpTarget

WIDE = GpuCaps(wide=16, wide_again=16, busy_threads=64, shared_bytes=9000, processors=4)
NARROW = GpuCaps()


def on_gpu(monkeypatch: pytest.MonkeyPatch, gpu: GpuCaps) -> None:
    """Let the interpreter's passes plan for a GPU, and verify what they do."""
    monkeypatch.setattr(InterpTarget, "caps", lambda self: Caps(gpu=gpu))
    monkeypatch.setenv("ARRAYJIT_VERIFY", "1")
    monkeypatch.setenv("ARRAYJIT_CACHE_BYTES", "0")


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
def test_a_kernel_does_in_grids_what_it_does_in_numpy(
    kernel: Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    on_gpu(monkeypatch, WIDE)
    wanted = results_of(kernel.plain or kernel.function, kernel.arguments("small"))
    got = results_of(arrayjit.jit(kernel.function, target="interp"), kernel.arguments("small"))
    assert difference(got, wanted) <= kernel.tolerance


def softmax(x):
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def relax(x, steps):
    for _ in range(steps):
        x[1:-1] = (x[:-2] + x[2:]) / 2
    return x.sum()


def halve(x):
    return arrayjit.while_loop(lambda x: np.abs(x).max() > 1, lambda x: x * 0.5, x)


def pick(x, positions):
    return x[positions] * 2


def add_up(x, positions):
    np.add.at(x, positions, 1.5)
    return np.cumsum(x)


def select(x):
    return x[x > 0.5].sum(), np.argmax(x), np.sort(x)


def as_tuple(result):
    return result if isinstance(result, tuple) else (result,)


RANDOM = np.random.default_rng(3)
PROGRAMS = {
    "softmax": (softmax, RANDOM.random((40, 70))),
    "steps": (relax, RANDOM.random(900), 7),
    "while": (halve, 20 * RANDOM.random(300)),
    "gather": (pick, RANDOM.random((30, 5)), np.arange(-30, 30, 2)),
    "scatter": (add_up, RANDOM.random(50), np.array([3, 3, 49, -1, 0] * 9)),
    "selection": (select, RANDOM.random(200)),
}


@pytest.mark.parametrize("gpu", [WIDE, NARROW], ids=["grids", "one block"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_is_numpys(name: str, gpu: GpuCaps, monkeypatch: pytest.MonkeyPatch) -> None:
    on_gpu(monkeypatch, gpu)
    function, *arguments = PROGRAMS[name]
    twice = [[np.copy(a) if isinstance(a, np.ndarray) else a for a in arguments] for _ in range(2)]
    got = arrayjit.jit(function, target="interp")(*twice[0])
    wanted = function(*twice[1])
    for ours, theirs in zip((got, *twice[0]), (wanted, *twice[1]), strict=True):
        for one, other in zip(as_tuple(ours), as_tuple(theirs), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12)


@pytest.mark.parametrize("gpu", [WIDE, NARROW], ids=["grids", "one block"])
def test_an_exception_leaves_memory_as_it_was_there(gpu: GpuCaps, monkeypatch: pytest.MonkeyPatch) -> None:
    on_gpu(monkeypatch, gpu)

    def write_then_fail(x, positions):
        x[:] = 1.0
        y = x[positions]
        x[:] = 2.0
        return y

    x = np.zeros(500)
    with pytest.raises(IndexError, match="out of bounds"):
        arrayjit.jit(write_then_fail, target="interp")(x, np.array([3, 500]))
    np.testing.assert_array_equal(x, 1.0)
