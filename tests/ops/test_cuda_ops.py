"""Every op on every dtype in CUDA C, compiled by NVRTC and run by the simulated GPU: bit for bit NumPy, or
within the row's error, with registers for all."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import pytest
from elementwise import elementwise
from op_cells import cells, check, sample, user_ops

from arrayjit.ir.code import Code
from arrayjit.ir.ops import Op
from arrayjit.passes.manager import optimize
from arrayjit.runtime.cuda import nvrtc
from arrayjit.runtime.cuda.driver import SimulatedDriver
from arrayjit.targets.cuda import ARCHITECTURES, CudaTarget

SIZE = 70
"""More than two warps, and not three."""

# Divisions that are done bit by bit.
SIZE_OF_LONG = 9
LONG_DEFINITION = 400.0

AT_ONCE = 4
"""Batches in one kernel, which has registers for all of them."""

SIMULATED = ("sm_80", "sm_90")


def run_on(arch: str, code: Code, arrays: Sequence[np.ndarray]) -> None:
    driver = SimulatedDriver("cuda-sim", devices=1, arch=arch)
    memories = [driver.allocate(0, array.nbytes) for array in arrays]
    for memory, array in zip(memories, arrays, strict=True):
        driver.upload(memory, 0, array)
    driver.load(code).launch([memory.address for memory in memories], [], 0)
    for memory, array in zip(memories, arrays, strict=True):
        driver.download(memory, 0, array)
    driver.close()


def without_target(ptx: str) -> str:
    return re.sub(r"^\.target .*$", "", ptx, flags=re.MULTILINE)


@pytest.mark.parametrize("row", user_ops(), ids=str)
def test_op_is_numpys(row: Op) -> None:
    size = SIZE_OF_LONG if row.cost >= LONG_DEFINITION else SIZE
    batches = [sample(inputs, size) for inputs, _ in cells(row).computed]
    for first in range(0, len(batches), AT_ONCE):
        assert_numpys(row, batches[first : first + AT_ONCE])


def assert_numpys(row: Op, batches: Sequence[Sequence[np.ndarray]]) -> None:
    """On each architecture; what is the same PTX but for the architecture's name, runs once."""
    program = elementwise(row, batches)
    proved = set()
    for arch in ARCHITECTURES:
        target = CudaTarget("cuda-sim", arch)
        code = target.emit(optimize(program.computation, target.caps()).kernel)
        image = nvrtc.compiled(code.payload.source, arch, row.name)
        assert not [name for name, used in nvrtc.usage(image.log).items() if used.spilled_bytes]
        launched = without_target(image.ptx), code.payload.plan
        if arch in SIMULATED and launched not in proved:
            run_on(arch, code, list(program.arrays.values()))
            for batch, result in zip(batches, program.results, strict=True):
                check(row, result, batch)
                result[...] = 0
            proved.add(launched)
