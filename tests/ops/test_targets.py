"""Every op on every dtype through the whole compiler: bit for bit NumPy, or within the row's error."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from elementwise import elementwise
from op_cells import cells, check, sample, user_ops

from arrayjit.compile import build, run
from arrayjit.ir.dtype import from_numpy
from arrayjit.ir.ops import Op, op

SIZES = (0, 1, 7, 8, 9, 1000)
LONG_DEFINITION = 400.0
SIZES_OF_LONG = (9, 1000)


def run_elementwise(row: Op, batches: Sequence[Sequence[np.ndarray]], target: str) -> list[np.ndarray]:
    """The op on each batch of arguments, all in one routine."""
    program = elementwise(row, batches)
    run(build(program.computation, target).load(), program.arrays)
    return list(program.results)


@pytest.mark.parametrize("target", ["interp", "sync_llvm", "sync_c"])
@pytest.mark.parametrize("row", user_ops(), ids=str)
def test_op_is_numpys(row: Op, target: str) -> None:
    sizes = SIZES_OF_LONG if row.cost >= LONG_DEFINITION or target == "sync_c" else SIZES
    batches = [sample(inputs, size) for inputs, _ in cells(row).computed for size in sizes]
    for batch, result in zip(batches, run_elementwise(row, batches, target), strict=True):
        check(row, result, batch)


def test_the_check_sees_a_wrong_op() -> None:
    batch = sample([from_numpy(np.float32)] * 2, 9)
    (result,) = run_elementwise(op("subtract"), [batch], "sync_llvm")
    with pytest.raises(AssertionError, match="of 9 wrong"):
        check(op("add"), result, batch)
