"""The scientific programs of `bench/kernels` as CUDA C on the simulated GPU, which finds races and missing
barriers: on one kind of GPU even they make grids, on the other a block runs nearly everything."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from kernels import KERNELS, Kernel, difference, results_of

import arrayjit
from arrayjit.ir.code import Caps, GpuCaps
from arrayjit.targets.cuda import CudaTarget

GRIDS = GpuCaps(wide=16, wide_again=16, busy_threads=64, shared_bytes=9000, processors=4)
ONE_BLOCK = GpuCaps()

SLOW = frozenset({"k_means"})
"""Simulated for a minute as one block."""

CASES = [
    *(pytest.param(kernel, GRIDS, id=f"{kernel.name}-grids") for kernel in KERNELS),
    *(
        pytest.param(kernel, ONE_BLOCK, id=f"{kernel.name}-one block")
        for kernel in KERNELS
        if kernel.name not in SLOW
    ),
]


def on_host(got: Any, wanted: Any) -> Any:
    """A result as NumPy has it."""
    if not isinstance(got, arrayjit.Array):
        return got
    array = got.numpy()
    return array if isinstance(wanted, np.ndarray) else array[()]


@pytest.mark.parametrize(("kernel", "gpu"), CASES)
def test_a_kernel_does_what_it_does_in_numpy(
    kernel: Kernel, gpu: GpuCaps, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ARRAYJIT_CACHE_BYTES", "0")
    monkeypatch.setattr(CudaTarget, "caps", lambda self: Caps(gpu=gpu))
    wanted = results_of(kernel.plain or kernel.function, kernel.arguments("small"))
    got = results_of(arrayjit.jit(kernel.function, target="cuda-sim"), kernel.arguments("small"))
    got = tuple(on_host(ours, theirs) for ours, theirs in zip(got, wanted, strict=True))
    assert difference(got, wanted) <= kernel.tolerance
