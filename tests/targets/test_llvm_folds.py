"""What lanes accumulated in several locals at once: the bits of each are those of its own order."""

from __future__ import annotations

import llvmlite.binding as llvm
import numpy as np
import pytest
from handmade import at, link, run, tensor_like, vector

from arrayjit.backends import fresh_backend
from arrayjit.ir.assign import ArrayParam
from arrayjit.ir.expr import Local, Variable, constant
from arrayjit.ir.index import Affine, Symbol
from arrayjit.ir.loops import Define, Kernel, Store, Update
from arrayjit.ir.ops import OPS
from arrayjit.targets.host import CPUS
from arrayjit.targets.llvm import LlvmTarget

HOST = llvm.get_host_cpu_features()
HERE = [cpu.name for cpu in CPUS if all(HOST.get(feature) for feature in cpu.features)]


def numbers(shape, dtype):
    return (np.random.default_rng(7).standard_normal(shape) * 100).astype(dtype)


def rows(x, out, lanes, ops=("add",), start=None):
    """`out[r]` is what row `r` of a matrix comes to, all rows in one loop, each from `start` or its own."""
    count, length = (extent.constant for extent in x.shape)
    i = Symbol("i")
    every = [(Variable(f"p{r}", x.dtype), OPS[ops[r % len(ops)]]) for r in range(count)]
    starts = [at(out, r) if start is None else constant(start, x.dtype) for r in range(count)]
    before = [Define(p, first) for (p, _), first in zip(every, starts, strict=True)]
    updates = [Update(p, at(x, Affine.of(r), i), op) for r, (p, op) in enumerate(every)]
    after = [Store(out, (Affine.of(r),), Local(p)) for r, (p, _) in enumerate(every)]
    return (*before, vector(i, length, *updates, lanes=lanes), *after)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64, np.int32, np.int8])
@pytest.mark.parametrize("lanes", [2, 4, 8, 16, 32])
@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 8, 11, 17])
def test_any_number_of_rows(count, lanes, dtype):
    source, result = numbers((count, 3 * lanes + 1), dtype), numbers(count, dtype)
    x, out = tensor_like("x", source), tensor_like("out", result)
    run(rows(x, out, lanes), [(x, source)], [(out, result)])


@pytest.mark.parametrize("start", [0.0, -0.0, 2.5])
@pytest.mark.parametrize("ops", [("add",), ("add", "multiply"), ("add", "add", "maximum"), ("minimum",)])
def test_rows_that_start_alike(ops, start):
    source, result = numbers((6, 40), np.float64), np.zeros(6)
    x, out = tensor_like("x", source), tensor_like("out", result)
    run(rows(x, out, 8, ops, start), [(x, source)], [(out, result)])


@pytest.mark.parametrize("start", [0.0, -0.0])
def test_a_sum_of_negative_zeros_has_the_sign_of_its_start(start):
    source, result = np.full((4, 40), -0.0), np.ones(4)
    x, out = tensor_like("x", source), tensor_like("out", result)
    run(rows(x, out, 8, start=start), [(x, source)], [(out, result)])
    assert np.signbit(result).tolist() == [np.signbit(start)] * 4


def test_bools():
    source, result = numbers((4, 40), np.float64) > 90, np.zeros(4, bool)
    x, out = tensor_like("x", source), tensor_like("out", result)
    run(rows(x, out, 8, ("logical_or",)), [(x, source)], [(out, result)])


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", HERE)
def test_the_bits_are_the_same_on_all_cpus(name, dtype):
    source = numbers((7, 64), dtype)
    result, wanted = np.zeros(7, dtype), np.zeros(7, dtype)
    x, out = tensor_like("x", source), tensor_like("out", result)
    kernel = Kernel("rows", (ArrayParam(x, "read"), ArrayParam(out, "update")), rows(x, out, 16))
    made_for = fresh_backend("sync_llvm", cpu=name)
    procedure = made_for.get_device().load(made_for.target.emit(kernel))
    procedure.launch([source.ctypes.data, result.ctypes.data], ())
    link(kernel, "interp").launch([source.ctypes.data, wanted.ctypes.data], ())
    assert result.tobytes() == wanted.tobytes()


FOLDS = [("avx512", 4, 4), ("avx512", 8, 7), ("avx512", 5, 4 + 3), ("avx2", 4, 4 + 3), ("sse2", 2, 4 + 1)]


@pytest.mark.parametrize(("cpu", "count", "additions"), FOLDS)
def test_as_few_additions_as_registers_allow(cpu, count, additions):
    """Of rows of eight float64s, beside a step of each, and what they start from."""
    x = tensor_like("x", np.zeros((count, 8)))
    out = tensor_like("out", np.zeros(count))
    kernel = Kernel("rows", (ArrayParam(x, "read"), ArrayParam(out, "write")), rows(x, out, 8, start=0.0))
    lines = LlvmTarget("sync_llvm", cpu).emit(kernel).payload.splitlines()
    assert sum("fadd" in line and "splat" not in line for line in lines) == additions
