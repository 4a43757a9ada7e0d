"""Sums of whole arrays on the simulated GPU: parts formed by many blocks, 16 bytes at a time."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import arrayjit
from arrayjit.ir.code import Caps, GpuCaps
from arrayjit.ir.launches import walk_steps
from arrayjit.passes.manager import optimize
from arrayjit.runtime.cuda import nvrtc
from arrayjit.runtime.cuda.sass import disassembled
from arrayjit.targets.cuda import ARCHITECTURES, CudaTarget

REDUCTIONS = ["sum", "prod", "max", "min", "any", "all", "argmax", "argmin"]


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """A GPU that is worth it for short arrays."""
    gpu = GpuCaps(processors=2, busy_threads=64, wide=16, wide_again=16)
    monkeypatch.setattr(CudaTarget, "caps", lambda self: Caps(gpu=gpu))


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("size", [1, 15, 16, 17, 67, 1023, 1024, 1031, 4100])
def test_any_number_of_terms(size: int) -> None:
    """Of which every sum is exact."""
    x = np.random.default_rng(0).integers(-9, 9, size).astype(np.float32)
    got = arrayjit.jit(lambda x: x.sum(), target="cuda-sim")(x)
    assert float(got) == x.sum()


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("name", REDUCTIONS)
def test_any_reduction_of_rows_and_of_views(name: str) -> None:
    x = np.random.default_rng(0).integers(0, 3, (37, 41)).astype(np.float64)

    def both(x):
        return getattr(x, name)(), getattr(x[::-1, 1:], name)()

    for got, wanted in zip(arrayjit.jit(both, target="cuda-sim")(x), both(x), strict=True):
        assert got.numpy() == wanted


def made(name: str, arch: str) -> tuple[Any, Any]:
    """A reduction of many cells: what is launched, and its machine code."""
    target = CudaTarget("cuda", arch)
    lowered = arrayjit.jit(lambda x: getattr(x, name)(), target="interp").lower(np.ones((4096, 1000), "f4"))
    payload: Any = target.emit(optimize(lowered.build.computation, target.caps(), verify=True).kernel).payload
    return payload, nvrtc.compiled(payload.source, arch, "sums")


@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("name", ["sum", "any", "argmax"])
def test_a_thread_reads_16_bytes_at_once_and_all_processors_have_blocks(name: str, arch: str) -> None:
    payload, image = made(name, arch)
    usage = nvrtc.usage(image.log).values()
    assert all(kernel.spilled_bytes == kernel.stack_bytes == 0 for kernel in usage)
    assert re.search(r"LDG\.E\.128", disassembled(image.cubin))
    first = next(walk_steps(payload.plan))
    assert first.grid[0].count({}) * first.threads[0] >= 148 * 1024
