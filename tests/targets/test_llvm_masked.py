"""What is left of vector loops with loops inside: the first lanes of one more vector."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from handmade import at, call, f64, loop, put, run, tensor_like, vector

from arrayjit.ir.assign import ArrayParam
from arrayjit.ir.dtype import F32, F64, I64
from arrayjit.ir.expr import Cast, Const, Gather, Index, Local, Variable
from arrayjit.ir.index import Affine, Symbol
from arrayjit.ir.loops import Bind, Define, If, Kernel, LoopKind, Update
from arrayjit.ir.ops import op
from arrayjit.ir.tensor import Tensor
from arrayjit.targets.llvm import LlvmTarget

J, ROW = Symbol("j"), Symbol("row")
ROWS = 5


def summed(a, y, columns, lanes, term=None, start=0):
    """Down each column but the first few, what is added up, and what that leaves of the column."""
    total = Variable("total", a.dtype)
    cell = at(a, ROW, J) if term is None else term
    body = (
        Define(total, Const(0, a.dtype)),
        loop(ROW, ROWS, Update(total, cell, op("add"))),
        put(y, J, value=Local(total)),
        loop(ROW, ROWS, put(a, ROW, J, value=call("subtract", at(a, ROW, J), Local(total)))),
    )
    return vector(J, columns, *body, lo=start, lanes=lanes)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64, np.int32, np.int16])
@pytest.mark.parametrize("lanes", [2, 8, 16, 32])
@pytest.mark.parametrize("columns", [0, 1, 2, 7, 8, 9, 31, 33, 47, 63])
def test_so_many_columns_and_no_others_are_changed(dtype, lanes, columns):
    cells, sums = (np.arange(ROWS * 70) * 37 % 23).astype(dtype).reshape(ROWS, 70), np.full(70, 5, dtype)
    before, start = cells.copy(), min(3, columns)
    a, y = tensor_like("a", cells), tensor_like("y", sums)
    run([summed(a, y, columns, lanes, start=start)], [], [(a, cells), (y, sums)])
    totals = before.sum(axis=0, dtype=dtype)
    inside = (np.arange(70) >= start) & (np.arange(70) < columns)
    np.testing.assert_array_equal(sums, np.where(inside, totals, 5))
    np.testing.assert_array_equal(cells, np.where(inside, before - totals, before))


def integer(value):
    return Const(value, I64)


def stores(body, *arrays, cpu="avx512"):
    """The stores under masks in the code for a body."""
    kernel = Kernel("rest", tuple(ArrayParam(array, "update") for array in arrays), (body,))
    return LlvmTarget("sync_llvm", cpu).emit(kernel).payload.count("call void @llvm.masked.store")


@pytest.mark.parametrize("name", ["maximum", "minimum"])
def test_extremes_of_integers_divide_nothing(name):
    cells, most = np.arange(ROWS * 20).reshape(ROWS, 20) * 37 % 23, np.zeros(20, np.int64)
    a, y = tensor_like("a", cells), tensor_like("y", most)
    term = call(
        "where", call("less", at(a, ROW, J), integer(7)), integer(1), call(name, at(a, ROW, J), integer(9))
    )
    body = summed(a, y, 13, 8, term=term)
    assert stores(body, a, y) == 2
    run([body], [], [(a, cells), (y, most)])


def test_steps_may_bind_what_all_lanes_have():
    cells, sums = np.arange(ROWS * 20).reshape(ROWS, 20) * 37 % 23, np.zeros(20, np.int64)
    a, y, number = tensor_like("a", cells), tensor_like("y", sums), Symbol("number")
    total = Variable("total", I64)
    steps = (Bind(number, Index(Affine.of(ROW))), Update(total, at(a, number, J), op("add")))
    body = (Define(total, Const(0, I64)), loop(ROW, ROWS, *steps), put(y, J, value=Local(total)))
    columns = vector(J, 13, *body)
    assert stores(columns, a, y) == 1
    run([columns], [(a, cells)], [(y, sums)])
    np.testing.assert_array_equal(sums[:13], cells.sum(axis=0)[:13])


def test_only_processors_with_masks_use_them():
    a, y = f64("a", ROWS, 70), f64("y", 70)
    assert stores(summed(a, y, 69, 8), a, y) == 2
    assert stores(summed(a, y, 69, 8), a, y, cpu="avx2") == 0


def test_what_is_left_goes_by_registers():
    a, y = f64("a", ROWS, 70), f64("y", 70)
    assert stores(summed(a, y, 69, 32), a, y) == 2
    assert stores(summed(a, y, 64 + 24, 32), a, y) == 0


def test_each_register_of_what_is_read_has_a_mask():
    cells, sums = np.arange(ROWS * 70.0).reshape(ROWS, 70), np.zeros(70, np.float32)
    a, y, total = tensor_like("a", cells), tensor_like("y", sums), Variable("total", F64)
    inner = loop(ROW, ROWS, Update(total, at(a, ROW, J), op("add")))
    store = put(y, J, value=Cast(Local(total), F32))
    body = vector(J, 69, Define(total, Const(0.0, F64)), inner, store, lanes=16)
    assert stores(body, a, y) == 1
    run([body], [(a, cells)], [(y, sums)])
    np.testing.assert_array_equal(sums, np.append(cells.sum(axis=0)[:69], 0))


def test_nothing_is_left_of_whole_vectors():
    a, y = f64("a", ROWS, 70), f64("y", 70)
    assert stores(summed(a, y, 64, 8), a, y) == 0


def test_short_bodies_go_one_by_one():
    x = f64("x", 70)
    assert stores(vector(J, 69, put(x, J, value=call("add", at(x, J), at(x, J))), lanes=8), x) == 0


def test_integers_are_not_divided_by_what_is_not_there():
    a, y = Tensor.of("a", (ROWS, 70), I64), Tensor.of("y", (70,), I64)
    quotient = call("raw_divide", Const(100, I64), at(a, ROW, J))
    assert stores(summed(a, y, 69, 8), a, y) == 2
    assert stores(summed(a, y, 69, 8, quotient), a, y) == 0


def test_positions_that_are_not_there_are_not_followed():
    a, y, places = f64("a", ROWS, 70), f64("y", 70), Tensor.of("places", (70,), I64)
    assert stores(summed(a, y, 69, 8, Gather(y, (at(places, J),))), a, y, places) == 0


def test_cells_across_memory_go_one_by_one():
    a, y, b = f64("a", ROWS, 70), f64("y", 70), f64("b", 70, ROWS)
    assert stores(summed(a, y, 69, 8, at(b, J, ROW)), a, y, b) == 0


def test_sums_of_the_loop_keep_their_order():
    """What lanes do not add up for themselves is added one by one behind whole vectors."""
    a, y, total = f64("a", ROWS, 70), f64("y", 1), Variable("total", f64("a").dtype)
    inner = loop(ROW, ROWS, Update(total, at(a, ROW, J), op("add")))
    body = (Define(total, Const(0.0, total.dtype)), vector(J, 69, inner, lanes=8))
    store = put(y, 0, value=Local(total))
    kernel = Kernel("sums", (ArrayParam(a, "read"), ArrayParam(y, "write")), (*body, store))
    assert "masked" not in LlvmTarget("sync_llvm", "avx512").emit(kernel).payload


def test_branches_are_not_taken_for_what_is_not_there():
    a, y = f64("a", ROWS, 70), f64("y", 70)
    whole = summed(a, y, 69, 8)
    branch = If(call("greater", at(y, 0), Const(0.0, y.dtype)), whole.body[-1:])
    assert stores(vector(J, 69, *whole.body[:-1], branch, lanes=8), a, y) == 0


def moved_down(x, lanes):
    """Each cell but the last from the next one, as many as an outer loop counts down to."""
    count = Symbol("count")
    value = call("divide", at(x, J + 1), Const(3.0, F64))
    return loop(
        count, 0, loop(J, count, put(x, J, value=value), kind=LoopKind.LOCKSTEP, lanes=lanes), lo=69, step=-1
    )


@pytest.mark.parametrize("lanes", [2, 8, 16, 32])
def test_what_is_left_in_lockstep_is_the_first_lanes(lanes):
    cells = np.arange(70.0)
    expected = cells.copy()
    for count in range(69, 0, -1):
        expected[:count] = expected[1 : count + 1] / 3
    x = tensor_like("x", cells)
    run([moved_down(x, lanes)], [], [(x, cells)])
    np.testing.assert_array_equal(cells, expected)


def test_only_where_it_was_measured_lockstep_ends_under_masks():
    x = f64("x", 70)
    assert stores(moved_down(x, 16), x, cpu="zen5") == 1
    assert stores(moved_down(x, 16), x, cpu="avx512fp16") == 0


def rows_in_order(x, ends, y, dtype, lanes, fused):
    """Sums of rows that end where the run says, each from -0.0 on, in order."""
    i, k, first, last = Symbol("i"), Symbol("k"), Symbol("first"), Symbol("last")
    total = Variable("total", dtype)
    cell = Cast(at(x, i), dtype)
    term = call("multiply", cell, Const(-2.0, dtype)) if fused else cell
    adding = loop(i, Affine.of(last), Update(total, term, op("add"), fused), lo=Affine.of(first))
    row = (
        Bind(first, at(ends, k, 0)),
        Bind(last, at(ends, k, 1)),
        Define(total, Const(-0.0, dtype)),
        replace(adding, kind=LoopKind.LOCKSTEP, lanes=lanes, masked=True),
        put(y, k, value=Local(total)),
    )
    return loop(k, y.shape[0].constant, *row)


@pytest.mark.parametrize(("cells", "dtype"), [("f8", F64), ("f4", F32), ("f4", F64)])
@pytest.mark.parametrize("lanes", [4, 8])
@pytest.mark.parametrize("fused", [False, True])
def test_what_lies_behind_the_end_of_a_row_adds_nothing(cells, dtype, lanes, fused):
    source = np.random.default_rng(5).normal(size=60).astype(cells)
    source[::17], source[1::17], source[2::17] = np.inf, np.nan, -0.0
    spans = [(first, first + cells) for first in (0, 2, 3, 19) for cells in range(20)]
    ends = np.array([*spans, (9, 3), (2, 3), (5, -(1 << 33)), (60, 60)], np.int64)
    x, p, result = tensor_like("x", source), tensor_like("ends", ends), np.empty(len(ends), dtype.numpy)
    y = tensor_like("y", result)
    body = rows_in_order(x, p, y, dtype, lanes, fused)
    run([body], [(x, source), (p, ends)], [(y, result)])
    assert str(result[0]) == "-0.0"
    params = (ArrayParam(x, "read"), ArrayParam(p, "read"), ArrayParam(y, "update"))
    for cpu, masks in (("zen5", True), ("avx2", False)):
        text = LlvmTarget("sync_llvm", cpu).emit(Kernel("rows", params, (body,))).payload
        assert ("@llvm.masked.load" in text) == masks
