"""Aligned loops, and stores past the caches: vectors on whole cache lines, wherever the memory starts."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from handmade import at, call, f64, link, loop, put, run, static, vector

import arrayjit
from arrayjit.backends import backend
from arrayjit.ir.assign import ArrayParam, IndexParam
from arrayjit.ir.dtype import BOOL, F32, F64, named
from arrayjit.ir.expr import Const, Local, Variable
from arrayjit.ir.index import Affine, Symbol
from arrayjit.ir.loops import Define, For, If, Kernel, Update
from arrayjit.ir.tensor import Tensor

MARGIN = 256
"""Cells around a result that must stay as they are."""


def past(tensor, *index, value):
    return replace(put(tensor, *index, value=value), bypass=True)


def on_boundaries(symbol, hi, *stores, aligned, **how):
    """A vector loop that is aligned, or has its stores past the caches."""
    if not aligned:
        stores = [replace(store, bypass=True) for store in stores]
    return vector(symbol, hi, *stores, aligned=64 if aligned else None, **how)


def lying(cells, offset, dtype):
    """Zeros, and among them so many cells that start `offset` cells behind a cache line's boundary."""
    around = np.zeros(cells + 2 * MARGIN + 128, dtype)
    start = (-around.ctypes.data % 64) // around.itemsize + MARGIN + offset
    return around, around[start : start + cells]


def is_all_there_is(around, result, expected):
    """Whether the result is as expected, and zeros are around it."""
    right = bool((result == expected).all())
    result[:] = 0
    return right and not around.any()


@pytest.mark.parametrize("dtype", [F64, F32, named("i16"), named("u8"), BOOL], ids=str)
@pytest.mark.parametrize("lanes", [4, 16, 64])
@pytest.mark.parametrize("aligned", [True, False])
def test_every_start_and_length(dtype, lanes, aligned):
    n, i = static("n"), Symbol("i")
    x, out = (Tensor(label, (Affine.of(n),), dtype) for label in ("x", "out"))
    body = on_boundaries(i, n, put(out, i, value=at(x, i)), lanes=lanes, aligned=aligned)
    params = (IndexParam(n), ArrayParam(x, "read"), ArrayParam(out, "write"))
    procedure = link(Kernel("copied", params, (body,)))
    for offset in range(64 // dtype.itemsize):
        for cells in (0, 1, lanes - 1, lanes, lanes + 1, 2 * lanes - 1, 3 * lanes, 5 * lanes + 3):
            source = (np.arange(cells) % 3 + 1).astype(dtype.numpy)
            around, result = lying(cells, offset, dtype.numpy)
            procedure.launch([source.ctypes.data, result.ctypes.data], [cells])
            assert is_all_there_is(around, result, source), (offset, cells)


@pytest.mark.parametrize("cuts", [(1,), (4,), (1, 3), (1, 2, 4)], ids=str)
@pytest.mark.parametrize("seldom", [[], [0], [40, 41], [-1]], ids=str)
@pytest.mark.parametrize("lanes", [8, 16])
def test_parts_of_what_goes_past_the_caches(cuts, seldom, lanes):
    n, i = static("n"), Symbol("i")
    x, out = (Tensor(label, (Affine.of(n),), F64) for label in ("x", "out"))
    a, b, c = (Variable(name, F64) for name in "abc")
    body = (
        Define(a, at(x, i)),
        Define(b, call("multiply", Local(a), Local(a))),
        Define(c, call("sqrt", Local(b))),
        If(call("less", Local(a), Const(0.0, F64)), (Update(c, call("negative", Local(b))),), seldom=True),
        past(out, i, value=call("add", Local(c), Local(a))),
    )
    params = (IndexParam(n), ArrayParam(x, "read"), ArrayParam(out, "write"))
    procedure = link(Kernel("parts", params, (vector(i, n, *body, lanes=lanes, cuts=cuts),)))
    for offset in range(8):
        for cells in (lanes, lanes + 1, 2 * lanes, 5 * lanes - 1, 61, 100):
            source = np.random.default_rng(cells).uniform(1, 9, cells)
            source[[place for place in seldom if place < cells]] *= -1
            around, result = lying(cells, offset, np.float64)
            procedure.launch([source.ctypes.data, result.ctypes.data], [cells])
            squares = source * source
            expected = np.where(source < 0, -squares, np.sqrt(squares)) + source
            assert is_all_there_is(around, result, expected), (offset, cells)


@pytest.mark.parametrize("offset", range(8))
@pytest.mark.parametrize("aligned", [True, False])
def test_results_that_start_apart_within_a_line(offset, aligned):
    x, low, high, i = f64("x", 100), f64("low", 100), f64("high", 100), Symbol("i")
    stores = (put(low, i, value=at(x, i)), put(high, i, value=call("negative", at(x, i))))
    params = (ArrayParam(x, "read"), ArrayParam(low, "write"), ArrayParam(high, "write"))
    procedure = link(Kernel("both", params, (on_boundaries(i, 100, *stores, aligned=aligned),)))
    source = np.arange(1.0, 101.0)
    first, second = lying(100, 3, np.float64), lying(100, offset, np.float64)
    procedure.launch([source.ctypes.data, first[1].ctypes.data, second[1].ctypes.data])
    assert is_all_there_is(*first, source)
    assert is_all_there_is(*second, -source)


@pytest.mark.parametrize("columns", [64, 67])
@pytest.mark.parametrize("aligned", [True, False])
def test_rows_start_anywhere(columns, aligned):
    x, out, i, j = f64("x", 9, columns), f64("out", 9, columns), Symbol("i"), Symbol("j")
    body = loop(i, 9, on_boundaries(j, columns, put(out, i, j, value=at(x, i, j)), aligned=aligned))
    procedure = link(Kernel("rows", (ArrayParam(x, "read"), ArrayParam(out, "write")), (body,)))
    source = np.arange(1.0, 9 * columns + 1)
    around, result = lying(9 * columns, 5, np.float64)
    procedure.launch([source.ctypes.data, result.ctypes.data])
    assert is_all_there_is(around, result, source)


@pytest.mark.parametrize(("dtype", "word"), [(F64, "i64"), (F32, "i32"), (named("u8"), None)], ids=str)
def test_cells_around_whole_lines_go_past_the_caches_one_by_one(dtype, word):
    """What two rows write of a line goes to memory at once then; there are no such instructions for bytes."""
    x, out = (Tensor.of(label, (9, 1000), dtype) for label in ("x", "out"))
    i, j = Symbol("i"), Symbol("j")
    row = on_boundaries(j, 1000, put(out, i, j, value=at(x, i, j)), lanes=64, aligned=False)
    params = (ArrayParam(x, "read"), ArrayParam(out, "write"))
    text = backend("llvm").target.emit(Kernel("rows", params, (loop(i, 9, row),))).payload
    stored = re.findall(r"store (i\d+|<64 x \w+>) .*!nontemporal", text)
    assert (word in stored) == (word is not None)
    assert ("@llvm.masked.store" in text) == (word is None)


@pytest.mark.parametrize("offset", range(8))
@pytest.mark.parametrize("cells", [1, 15, 16, 17, 31, 40, 64, 101])
def test_an_aligned_loop_starts_vectors_on_boundaries(offset, cells):
    """What is repeated shows in a body that may not be: each iteration counts."""
    out, i = f64("out", cells), Symbol("i")
    count = put(out, i, value=call("add", at(out, i), Const(1.0, F64)))
    body = vector(i, cells, count, lanes=16, aligned=64)
    procedure = link(Kernel("counted", (ArrayParam(out, "update"),), (body,)))
    around, result = lying(cells, offset, np.float64)
    procedure.launch([result.ctypes.data])
    if cells < 16:
        assert (result == 1).all()
        return
    starts = [min(max(start, 0), cells - 16) for start in range(-offset, cells, 16)]
    expected = np.zeros(cells)
    for start in starts:
        expected[start : start + 16] += 1
    assert is_all_there_is(around, result, expected)


@pytest.mark.parametrize("offset", range(8))
@pytest.mark.parametrize("read", [1, 3])
def test_an_aligned_loop_starts_vectors_where_what_it_writes_has_a_boundary(read, offset):
    """However many rows it reads, which start otherwise."""
    x, out, i = f64("x", 3, 104), f64("out", 104), Symbol("i")
    total = at(out, i)
    for row in range(read):
        total = call("add", at(x, row, i), total)
    params = (ArrayParam(x, "read"), ArrayParam(out, "update"))
    body = vector(i, 104, put(out, i, value=total), lanes=16, aligned=64)
    procedure = link(Kernel("counted", params, (body,)))
    _, ones = lying(3 * 104, 3, np.float64)
    around, result = lying(104, offset, np.float64)
    ones[:] = 1
    procedure.launch([ones.ctypes.data, result.ctypes.data])
    expected = np.zeros(104)
    for start in [min(max(start, 0), 104 - 16) for start in range(-offset, 104, 16)]:
        expected[start : start + 16] += read
    assert is_all_there_is(around, result, expected)


@pytest.mark.parametrize("offset", range(8))
@pytest.mark.parametrize("lanes", [8, 16])
@pytest.mark.parametrize("cells", [1, 7, 8, 15, 16, 17, 31, 40, 64, 101])
def test_under_masks_no_iteration_is_repeated(offset, lanes, cells):
    """Nor left out, wherever the first boundary lies, and in the order of before: each cell is its own and
    what the one behind it was."""
    n, out, i = static("n"), f64("out", cells + 1), Symbol("i")
    moved = put(out, i, value=call("add", at(out, i), at(out, Affine.of(i) + 1)))
    params = (IndexParam(n), ArrayParam(out, "update"))
    for hi in (n, cells):
        body = vector(i, hi, moved, lanes=lanes, aligned=64, masked=True)
        procedure = link(Kernel("moved", params, (body,)))
        around, result = lying(cells + 1, offset, np.float64)
        result[:] = np.arange(1, cells + 2) ** 2
        expected = np.append(result[:-1] + result[1:], result[-1])
        procedure.launch([result.ctypes.data], [cells])
        assert is_all_there_is(around, result, expected)


def test_threads_share_an_aligned_loop():
    x, out, i = f64("x", 10007), f64("out", 10007), Symbol("i")
    body = vector(i, 10007, put(out, i, value=at(x, i)), aligned=64, grain=Affine.of(1))
    procedure = link(Kernel("copied", (ArrayParam(x, "read"), ArrayParam(out, "write")), (body,)), "llvm")
    source = np.arange(1.0, 10008.0)
    around, result = lying(10007, 3, np.float64)
    procedure.launch([source.ctypes.data, result.ctypes.data])
    assert is_all_there_is(around, result, source)


@pytest.mark.parametrize("cells", [0, 1, 191, 192, 193, 307, 1009])
@pytest.mark.parametrize("offset", [0, 1, 2])
def test_functions_of_arrays_that_start_anywhere(cells, offset):
    def function(x, y):
        y[1:-1, 1:-1] = x[1:-1, 1:-1] + (x[1:-1, 2:] - x[1:-1, :-2] + x[2:, 1:-1] * x[:-2, 1:-1])
        return y * 2

    x, y = (lying(7 * cells, offset, np.float64)[1].reshape(7, cells) for _ in range(2))
    x[...] = np.random.default_rng(0).standard_normal(x.shape)
    expected = y.copy()
    returned = function(x, expected)
    for target in ("sync_llvm", "llvm", "sync_c"):
        y[...] = 0
        np.testing.assert_array_equal(arrayjit.jit(function, target=target)(x, y), returned)
        np.testing.assert_array_equal(y, expected)


def test_loops_beside_stores_past_the_caches_may_begin_anywhere():
    """Whether vectors start on boundaries is asked of the stores alone."""
    rows, cells = 3, 70
    i, j, k, s = Symbol("i"), Symbol("j"), Symbol("k"), Variable("s", F64)
    x, out = f64("x", rows + 2, cells), f64("out", rows, cells)
    term = Update(s, call("add", Local(s), at(x, Affine.of(k), Affine.of(j))))
    terms = For(k, Affine.of(i), Affine.of(i) + 2, (term,))
    start, store = Define(s, Const(0.0, F64)), past(out, i, j, value=Local(s))
    source = np.random.default_rng(0).random((rows + 2, cells))
    result = np.zeros((rows, cells))
    run([loop(i, rows, vector(j, cells, start, terms, store))], [(x, source)], [(out, result)])
    assert (result == source[:-2] + source[1:-1]).all()


def test_what_went_past_the_caches_is_there_for_others_when_the_kernel_ends():
    """Nothing but a fence orders these stores."""
    x, out, i = f64("x", 1000), f64("out", 1000), Symbol("i")
    params = (ArrayParam(x, "read"), ArrayParam(out, "write"))
    text = emitted(Kernel("copied", params, (vector(i, 1000, past(out, i, value=at(x, i))),)))
    call_, fence, end = (text.index(part) for part in ("call i32", "fence seq_cst", "ret i32 %status"))
    assert call_ < fence < end
    plain = Kernel("copied", params, (vector(i, 1000, put(out, i, value=at(x, i))),))
    assert "fence" not in emitted(plain)


def test_lines_on_their_way_to_memory_are_not_touched_again():
    """The vector at an edge is stored from its first cell that is left on, not where it was computed."""
    (x, out), i = (Tensor.of(label, (1000,), named("i16")) for label in ("x", "out")), Symbol("i")
    params = (ArrayParam(x, "read"), ArrayParam(out, "write"))
    text = emitted(Kernel("copied", params, (vector(i, 1000, past(out, i, value=at(x, i)), lanes=8),)))
    slot = re.search(r"(%\S+) = alloca \[2 x <8 x i16>\]", text).group(1)
    moved = re.search(rf"(%\S+) = getelementptr i16, ptr {slot}, i64 (%\S+)\n", text)
    stored = re.search(r"call void @llvm.masked.store\S+\(<8 x i16> (%\S+), ptr (%\S+),", text)
    assert f"{stored.group(1)} = load <8 x i16>, ptr {moved.group(1)}, align 2" in text
    assert re.search(rf"{stored.group(2)} = getelementptr i16, ptr %\S+, i64 {moved.group(2)}\n", text)


def test_each_thread_ends_its_part_with_a_fence():
    x, out, i = f64("x", 1000), f64("out", 1000), Symbol("i")
    body = vector(i, 1000, past(out, i, value=at(x, i)), grain=Affine.of(1))
    text = emitted(Kernel("copied", (ArrayParam(x, "read"), ArrayParam(out, "write")), (body,)))
    shared = text[text.index("define internal void @shared") :]
    assert shared.index("fence seq_cst") < shared.index("ret void")


@pytest.mark.parametrize("target", ["sync_llvm", "llvm"])
def test_large_results_of_functions(target):
    function = arrayjit.jit(lambda x, y: (x + y, x[1:-1] - y[:-2]), target=target)
    x, y = np.arange(6e6) % 1000, np.arange(6e6) % 77
    for got, wanted in zip(function(x, y), (x + y, x[1:-1] - y[:-2]), strict=True):
        np.testing.assert_array_equal(got, wanted)
    if backend(target).target.caps().l3_bytes < 96e6:
        assert "past the caches" in function.explain(x, y)


def emitted(kernel):
    return backend("sync_llvm").target.emit(kernel).payload
