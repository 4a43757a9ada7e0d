"""In how many lanes a condition holds: the bits of masks are counted where loops have few vectors."""

from __future__ import annotations

import numpy as np
import pytest
from handmade import at, call, put, vector

import arrayjit
from arrayjit.ir.assign import ArrayParam
from arrayjit.ir.dtype import F64, I64
from arrayjit.ir.expr import Cast, Const, Local, Variable
from arrayjit.ir.index import Symbol
from arrayjit.ir.loops import Define, Kernel, Update
from arrayjit.ir.ops import op
from arrayjit.ir.tensor import Tensor
from arrayjit.targets.llvm import LlvmTarget

J = Symbol("j")


def chosen_by_counts(table, y):
    """Each count says which row is counted in next."""
    row, out = 0, np.zeros(len(y), np.int64)
    for i in range(len(y)):
        row = np.minimum((table[row] < y[i]).sum(), len(table) - 1)
        out[i] = row
    return out


def of_faces(dice, y):
    """Counts that each lane has for itself."""
    counts = (dice[:, :, None] == np.arange(6)).sum(1)
    return counts.max(1), (counts == 2).sum(1), (counts > 0).sum(1, dtype=np.int32)


def in_bytes(table, y):
    """As many lanes as a mask in a register of 64 bits has."""
    return (table > 2).sum(1, dtype=np.uint8), (table != y[0]).sum(1, dtype=np.int8)


@pytest.mark.parametrize("program", [chosen_by_counts, of_faces, in_bytes])
@pytest.mark.parametrize("dtype", ["f8", "f4", "i8", "u1"])
@pytest.mark.parametrize("size", [4, 7, 8, 9, 16, 26, 33, 47, 70, 130])
def test_counts_are_numpy_s(program, dtype, size):
    random = np.random.default_rng(size)
    table = np.sort((6 * random.random((size, size))).astype(dtype), axis=1)
    y = (6 * random.random(50)).astype(dtype)
    ours, its = arrayjit.jit(program)(table, y), program(table, y)
    for one, other in zip(np.atleast_2d(ours), np.atleast_2d(its), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(
    ("columns", "cpu", "counted"),
    [(20, "avx512", True), (8, "zen5", True), (800, "avx512", False), (20, "avx2", False)],
)
def test_bits_are_counted_where_few_vectors_are(columns, cpu, counted):
    a, y, count = Tensor.of("a", (columns,), F64), Tensor.of("y", (), I64), Variable("count", I64)
    condition = call("less", at(a, J), Const(0.5, F64))
    body = (
        Define(count, Const(0, I64)),
        vector(J, columns, Update(count, Cast(condition, I64), op("add")), lanes=8),
        put(y, value=Local(count)),
    )
    kernel = Kernel("counts", (ArrayParam(a, "read"), ArrayParam(y, "write")), body)
    assert ("@llvm.ctpop.i8" in LlvmTarget("sync_llvm", cpu).emit(kernel).payload) is counted
