"""Extremes that vectors form: where the LLVM target looks for NaN."""

from __future__ import annotations

import math

import pytest
from handmade import at, vector

from arrayjit.ir.assign import ArrayParam
from arrayjit.ir.dtype import F64
from arrayjit.ir.expr import Expr, Local, Variable, constant
from arrayjit.ir.index import Symbol
from arrayjit.ir.loops import Define, Kernel, Stmt, Store, Update
from arrayjit.ir.ops import OPS
from arrayjit.ir.tensor import Tensor
from arrayjit.targets.llvm import LlvmTarget


def emitted(cpu: str, stores: bool) -> str:
    """The largest number of 256, which are stored elsewhere, too, or not."""
    x, y, out = Tensor.of("x", (256,), F64), Tensor.of("y", (256,), F64), Tensor.of("out", (), F64)
    i, most = Symbol("i"), Variable("most", F64)
    value: Expr = at(x, i)
    copies: list[Stmt] = [Store(y, at(x, i).index, value)] if stores else []
    steps = vector(i, 256, *copies, Update(most, value, OPS["maximum"]), lanes=32)
    body = (Define(most, constant(-math.inf, F64)), steps, Store(out, (), Local(most)))
    params = (ArrayParam(x, "read"), ArrayParam(y, "write"), ArrayParam(out, "write"))
    return str(LlvmTarget("sync_llvm", cpu).emit(Kernel("most", params, body)).payload)


@pytest.mark.parametrize(("cpu", "lanes"), [("avx512", 8), ("avx2", 4)])
def test_one_comparison_looks_at_two_registers(cpu: str, lanes: int) -> None:
    text = emitted(cpu, False)
    assert text.count(f"fcmp uno <{lanes} x double>") >= 32 // lanes // 2
    loop = text[text.index("phi") : text.index("br i1", text.index("phi"))]
    assert loop.count("fcmp uno") == loop.count(f"fcmp uno <{lanes} x double>") == 32 // lanes // 2


def test_what_stores_is_not_done_again() -> None:
    assert emitted("avx512", True).count("store <32 x double>") == 1
    loops = [emitted("avx512", stores).count("phi i64") for stores in (True, False)]
    assert loops == [1, 2]
