"""Every op on every dtype in CUDA C, compiled by NVRTC and run by the simulated GPU: bit for bit NumPy, or
within the row's error."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from elementwise import Elementwise, elementwise
from op_cells import cells, check, sample, user_ops

from arrayjit.ir.ops import Op
from arrayjit.passes.manager import optimize
from arrayjit.runtime.cuda.driver import SimulatedDriver
from arrayjit.targets.cuda import CudaTarget

SIZE = 70
"""More than two warps, and not three."""

# Divisions that are done bit by bit.
SIZE_OF_LONG = 9
LONG_DEFINITION = 400.0

ARCHITECTURES = ("sm_80", "sm_90")


@pytest.fixture(params=ARCHITECTURES)
def driver(request: pytest.FixtureRequest) -> Iterator[SimulatedDriver]:
    made = SimulatedDriver("cuda-sim", devices=1, arch=request.param)
    yield made
    made.close()


def run_on(driver: SimulatedDriver, program: Elementwise, arch: str) -> None:
    target = CudaTarget("cuda-sim", arch)
    code = target.emit(optimize(program.computation, target.caps()).kernel)
    memories = [driver.allocate(0, array.nbytes) for array in program.arrays.values()]
    for memory, array in zip(memories, program.arrays.values(), strict=True):
        driver.upload(memory, 0, array)
    driver.load(code).launch([memory.address for memory in memories], [], 0)
    for memory, array in zip(memories, program.arrays.values(), strict=True):
        driver.download(memory, 0, array)


@pytest.mark.parametrize("row", user_ops(), ids=str)
def test_op_is_numpys(row: Op, driver: SimulatedDriver, request: pytest.FixtureRequest) -> None:
    size = SIZE_OF_LONG if row.cost >= LONG_DEFINITION else SIZE
    batches = [sample(inputs, size) for inputs, _ in cells(row).computed]
    program = elementwise(row, batches)
    run_on(driver, program, driver.api.info(0).arch)
    for batch, result in zip(batches, program.results, strict=True):
        check(row, result, batch)
