"""The published errors hold on many numbers, and definitions give every target the same bits."""

from __future__ import annotations

import numpy as np
import pytest
from op_cells import assert_same, cells, check, edges, sample, user_ops
from test_targets import run_elementwise

from arrayjit.ir.dtype import DType
from arrayjit.ir.ops import Op

RANGES = (1.0, 3.0, 20.0, 110.0, 750.0, 1e6)
EACH = 20_000
DEFINED = [
    pytest.param(op, inputs[0], id=f"{op}-{inputs[0]}")
    for op in user_ops()
    if any(op.ulp)
    for inputs, _ in cells(op).computed
    if inputs[0].is_float and op.definition(inputs) is not None
]


def many(dtype: DType, arity: int) -> tuple[np.ndarray, ...]:
    """Any bits at all, several ranges and orders of magnitude, and the edges."""
    columns = []
    for seed in range(arity):
        rng = np.random.default_rng(seed)
        bits = rng.integers(0, 256, EACH * dtype.itemsize, np.uint8).view(dtype.numpy)
        bits[np.isnan(bits)] = np.nan  # libraries differ over what signals
        uniform = [rng.uniform(-bound, bound, EACH) for bound in RANGES]
        scaled = rng.uniform(-1, 1, EACH) * 10.0 ** rng.integers(-12, 4, EACH)
        with np.errstate(over="ignore"):
            numbers = [part.astype(dtype.numpy) for part in (bits, *uniform, scaled, edges(dtype))]
        columns.append(rng.permutation(np.concatenate(numbers)) if seed else np.concatenate(numbers))
    return tuple(columns)


@pytest.mark.parametrize(("op", "dtype"), DEFINED)
def test_error_is_within_what_the_row_publishes(op: Op, dtype: DType) -> None:
    args = many(dtype, op.arity)
    (result,) = run_elementwise(op, [args], "sync_llvm")
    check(op, result, args)


@pytest.mark.parametrize(("op", "dtype"), DEFINED)
def test_targets_agree_to_the_bit(op: Op, dtype: DType) -> None:
    args = sample([dtype] * op.arity, 1000)
    native, reference = (run_elementwise(op, [args], target)[0] for target in ("sync_llvm", "interp"))
    assert_same(native, reference, args)
