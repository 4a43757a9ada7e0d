"""Constants that are chosen lane by lane: from registers where the CPU can, from memory elsewhere."""

from __future__ import annotations

import numpy as np
import pytest
from handmade import at, call, put, vector

import arrayjit
from arrayjit.backends import fresh_backend
from arrayjit.ir.assign import ArrayParam
from arrayjit.ir.dtype import F32, F64, named
from arrayjit.ir.index import Symbol
from arrayjit.ir.loops import Kernel
from arrayjit.ir.ops import OPS
from arrayjit.ir.tensor import Tensor
from arrayjit.processor import features
from arrayjit.targets.host import CPUS, host_cpu
from arrayjit.targets.llvm import LlvmTarget

HERE = [cpu.name for cpu in CPUS if features().issuperset(cpu.features)]
COUNT = 96


def choosing(name, dtype, lanes):
    index, symbol = Tensor.of("n", (COUNT,), named(f"i{dtype.bits}")), Symbol("i")
    chosen = Tensor.of("y", (COUNT,), dtype)
    body = vector(symbol, COUNT, put(chosen, symbol, value=call(name, at(index, symbol))), lanes=lanes)
    return Kernel("choose", (ArrayParam(index, "read"), ArrayParam(chosen, "write")), (body,))


TABLES = [(op.name, dtype) for op in OPS.values() for dtype in op.tables]


@pytest.mark.parametrize(("name", "dtype"), TABLES)
@pytest.mark.parametrize("lanes", [2, 4, 8, 16, 32])
@pytest.mark.parametrize("cpu", HERE)
def test_the_lowest_bits_choose(cpu, lanes, dtype, name):
    made_for = fresh_backend("sync_llvm", cpu=cpu)
    procedure = made_for.get_device().load(made_for.target.emit(choosing(name, dtype, lanes)))
    integer = named(f"i{dtype.bits}").numpy
    info = np.iinfo(integer)
    index = np.random.default_rng(3).integers(info.min, info.max, COUNT, integer)
    result = np.empty(COUNT, dtype.numpy)
    procedure.launch([index.ctypes.data, result.ctypes.data])
    table = np.array(OPS[name].tables[dtype], dtype.numpy)
    np.testing.assert_array_equal(result, table[index % len(table)], strict=True)


@pytest.mark.parametrize(
    ("cpu", "dtype", "lanes", "instruction"),
    [
        ("avx512", F32, 32, "permvar.sf.512"),
        ("avx512", F64, 8, "vpermi2var.pd.512"),
        ("avx2", F32, 8, "avx2.permps"),
    ],
)
def test_registers_that_hold_the_table_are_chosen_from(cpu, dtype, lanes, instruction):
    _chosen_by(instruction, LlvmTarget("sync_llvm", cpu), choosing("raw_centre_log", dtype, lanes))


@pytest.mark.parametrize(("cpu", "instruction"), [("avx512", "permvar.df.512"), ("avx2", "avx2.permd")])
def test_eight_doubles_are_in_one_register_or_halved_in_two(cpu, instruction):
    _chosen_by(instruction, LlvmTarget("sync_llvm", cpu), choosing("raw_exp_bits", F64, 8))


@pytest.mark.parametrize(("name", "times"), [("raw_exp_bits", 2), ("raw_erf_centre", 1)])
def test_halves_that_are_zero_are_not_chosen(name, times):
    text = LlvmTarget("sync_llvm", "avx2").emit(choosing(name, F64, 4)).payload
    assert text.count("call <8 x i32> @llvm.x86.avx2.permd") == times


def _chosen_by(instruction, target, kernel):
    text = target.emit(kernel).payload
    assert instruction in text
    assert "private" not in text


@pytest.mark.parametrize(("cpu", "dtype"), [("avx2", F64), ("sse2", F32), ("neon", F32)])
def test_other_tables_are_in_memory(cpu, dtype):
    text = LlvmTarget("sync_llvm", cpu).emit(choosing("raw_centre_log", dtype, 4)).payload
    assert "private unnamed_addr constant [16 x" in text
    assert "llvm.x86" not in text


def test_where_masks_have_registers_one_instruction_asks_for_any_lane():
    text = arrayjit.jit(np.power).lower(*[np.ones(4096, np.float32)] * 2).as_text("llvm")
    if "avx512f" in host_cpu().features:
        assert "icmp ne i16" in text
    else:
        assert "icmp slt <8 x i32>" in text
