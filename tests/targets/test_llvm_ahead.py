"""Copies of a number in all lanes, which are made where the loop that uses them is entered."""

from __future__ import annotations

import numpy as np
import pytest
from handmade import at, call, f64, loop, put, run, tensor_like, vector

from arrayjit.ir.assign import ArrayParam
from arrayjit.ir.dtype import F64
from arrayjit.ir.expr import Const, Local, Variable
from arrayjit.ir.index import Symbol
from arrayjit.ir.loops import Define, Kernel
from arrayjit.targets.llvm import LlvmTarget

J, STEP = Symbol("j"), Symbol("step")


def scaled(x, factor, steps=3, made_inside=False, terms=1):
    """Steps that multiply a row by a number, which is made before them or in each of them."""
    number = Variable("number", F64)
    define = Define(number, call("add", at(factor), Const(0.5, F64)))
    value = at(x, J)
    for _ in range(terms):
        value = call("subtract", call("multiply", value, Local(number)), at(x, J))
    row = vector(J, 64, put(x, J, value=value), lanes=16)
    if made_inside:
        return [loop(STEP, steps, define, row)]
    return [define, loop(STEP, steps, row)]


def lines(body, x, factor, cpu="zen5"):
    """The code for a body."""
    kernel = Kernel("steps", (ArrayParam(x, "update"), ArrayParam(factor, "read")), tuple(body))
    return LlvmTarget("sync_llvm", cpu).emit(kernel).payload.splitlines()


def made_in_innermost(text):
    """How often copies are made where the loop over the row has begun."""
    first = max(number for number, line in enumerate(text) if line.startswith("loop"))
    return sum("zeroinitializer" in line for line in text[first:])


@pytest.mark.parametrize("made_inside", [False, True])
@pytest.mark.parametrize(("cpu", "made"), [("zen5", 0), ("avx512", 1), ("avx512fp16", 1), ("avx2", 1)])
def test_copies_are_made_ahead_where_the_compiler_would_not(cpu, made, made_inside):
    x, factor = f64("x", 64), f64("factor")
    assert made_in_innermost(lines(scaled(x, factor, made_inside=made_inside), x, factor, cpu)) == made


def test_long_loops_keep_none():
    x, factor = f64("x", 64), f64("factor")
    assert made_in_innermost(lines(scaled(x, factor, terms=100), x, factor)) == 1


def test_outside_of_other_loops_the_compiler_has_loads_to_move():
    x, factor = f64("x", 64), f64("factor")
    row = vector(J, 64, put(x, J, value=call("multiply", at(x, J), at(factor))), lanes=16)
    assert made_in_innermost(lines([row], x, factor)) == 1


@pytest.mark.parametrize("terms", [1, 3, 100])
@pytest.mark.parametrize("made_inside", [False, True])
def test_the_numbers_are_those_of_each_step(terms, made_inside):
    source, factor = np.linspace(0.1, 0.9, 64), np.array(0.25)
    expected = source.copy()
    for _ in range(3):
        value = expected.copy()
        for _ in range(terms):
            value = value * (factor + 0.5) - expected
        expected = value
    x, number = tensor_like("x", source), tensor_like("factor", factor)
    run(scaled(x, number, 3, made_inside, terms), [(number, factor)], [(x, source)])
    np.testing.assert_array_equal(source, expected)
