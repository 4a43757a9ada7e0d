"""Where the LLVM target reads and writes: layouts, element types in memory, temporaries."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from handmade import at, call, elementwise, f64, launch, loop, put, run, static, tensor_like, vector

from arrayjit.backends import backend
from arrayjit.compile import build
from arrayjit.ir.assign import ArrayParam
from arrayjit.ir.code import Schedule
from arrayjit.ir.dtype import BOOL, F64, I64
from arrayjit.ir.expr import Cast, Const, Gather, Index
from arrayjit.ir.index import Affine, Symbol
from arrayjit.ir.loops import Kernel, LoopKind, Place, PlaceKind, Prefetch
from arrayjit.ir.tensor import Tensor
from arrayjit.targets.llvm import LlvmTarget
from arrayjit.tracer.calls.function import trace_function


@pytest.mark.parametrize("coefficient", [1, -1, 2, -3, 0])
def test_loads_at_every_distance_between_lanes(coefficient):
    source = np.arange(100.0)
    first = 0 if coefficient >= 0 else 99
    x, out, i = f64("x", 100), f64("out", 30), Symbol("i")
    result = np.empty(30)
    body = vector(i, 30, put(out, i, value=at(x, Affine.of(i) * coefficient + first)))
    run([body], [(x, source)], [(out, result)])
    np.testing.assert_array_equal(result, first + coefficient * np.arange(30.0))


@pytest.mark.parametrize("part", [0, 1])
@pytest.mark.parametrize("dtype", ["f8", "f4", "i2", "?"])
def test_every_other_cell_is_taken_out_of_neighbours(part, dtype):
    source = np.random.default_rng(2).integers(0, 2, (32, 2)).astype(dtype)
    x, i = tensor_like("x", source), Symbol("i")
    out = Tensor.of("out", (32,), x.dtype)
    result = np.empty(32, dtype)
    body = vector(i, 32, put(out, i, value=at(x, i, Affine.of(part))), lanes=8)
    run([body], [(x, source)], [(out, result)])
    np.testing.assert_array_equal(result, source[:, part])


@pytest.mark.parametrize("part", [0, 1])
@pytest.mark.parametrize("first", [0, 5])
@pytest.mark.parametrize("step", [2, 3, 4])
@pytest.mark.parametrize("dtype", ["f8", "f4", "i2", "i1", "?"])
def test_pairs_a_few_apart_are_picked_out_of_neighbours(dtype, step, first, part):
    shape = (31 * step + first + 1, 2)
    source = np.random.default_rng(2).integers(0, 2 if dtype == "?" else 100, shape).astype(dtype)
    x, i = tensor_like("x", source), Symbol("i")
    out = Tensor.of("out", (32,), x.dtype)
    result = np.empty(32, dtype)
    body = vector(i, 32, put(out, i, value=at(x, i * step + first, Affine.of(part))), lanes=8)
    run([body], [(x, source)], [(out, result)])
    np.testing.assert_array_equal(result, source[first::step, part])


@pytest.mark.parametrize(
    ("cpu", "dtype", "step", "loads"),
    [("avx512", "f8", 2, 2), ("avx512", "f4", 3, 2), ("avx512", "f8", 3, 16), ("avx2", "f8", 2, 16)],
)
def test_groups_that_are_near_are_in_two_vectors(cpu, dtype, step, loads):
    x, i = tensor_like("x", np.empty((8 * step, 2), dtype)), Symbol("i")
    y = tensor_like("y", np.empty((8, 2), dtype))
    parts = [put(y, i, Affine.of(part), value=at(x, i * step, Affine.of(part))) for part in (0, 1)]
    kernel = Kernel("near", (ArrayParam(x, "read"), ArrayParam(y, "write")), (vector(i, 8, *parts, lanes=8),))
    text = LlvmTarget("sync_llvm", cpu).emit(kernel).payload
    kind = "double" if dtype == "f8" else "float"
    assert len(set(re.findall(rf"load (?:<\d+ x {kind}>|{kind}), ptr (\S+),", text))) == loads


@pytest.mark.parametrize("stride", [3, 7])
def test_bools_are_put_together_as_bytes(stride):
    """Neighbours that are groups, and cells far apart: no bit goes into a register of masks by itself."""
    source = np.random.default_rng(2).integers(0, 2, (64, stride)).astype(bool)
    x, out, i = tensor_like("x", source), Tensor.of("out", (64,), BOOL), Symbol("i")
    body = vector(i, 64, put(out, i, value=at(x, i, Affine.of(1))), lanes=16)
    result = np.empty(64, bool)
    run([body], [(x, source)], [(out, result)])
    np.testing.assert_array_equal(result, source[:, 1])
    kernel = Kernel("f", (ArrayParam(x, "read"), ArrayParam(out, "update")), (body,))
    text = LlvmTarget("sync_llvm").emit(kernel).payload
    assert not re.search(r"(insertelement|shufflevector) <\d+ x i1>", text)


@pytest.mark.parametrize("first", [0, 1, 4])
@pytest.mark.parametrize("dtype", ["f8", "f4", "i8", "i4", "i2", "i1", "?"])
@pytest.mark.parametrize("lanes", [2, 8, 16])
@pytest.mark.parametrize("stride", [2, 3, 4, 7, 16])
def test_cells_between_others_are_not_written(first, dtype, lanes, stride):
    end = 31 * stride + 1 + first
    source = np.random.default_rng(3).integers(0, 2, end).astype(dtype)
    around = np.random.default_rng(4).integers(0, 2, end + 40).astype(dtype)
    expected, result = around.copy(), around[:end]
    expected[first:end:stride] = source[first::stride]
    x, y, i = tensor_like("x", source), tensor_like("y", result), Symbol("i")
    body = vector(i, 32, put(y, i * stride + first, value=at(x, i * stride + first)), lanes=lanes)
    run([body], [(x, source)], [(y, result)])
    np.testing.assert_array_equal(around, expected)


@pytest.mark.parametrize(
    ("dtype", "stride", "stores"),
    [("f8", 3, 0), ("f4", 4, 4), ("f4", 5, 0), ("i2", 7, 7), ("i2", 9, 0), ("?", 13, 13), ("?", 17, 0)],
)
def test_cells_a_few_apart_are_in_registers_under_masks(dtype, stride, stores):
    lanes = 64 // np.dtype(dtype).itemsize
    y, i = tensor_like("y", np.empty(lanes * stride, dtype)), Symbol("i")
    body = vector(i, lanes, put(y, i * stride, value=Const(1, y.dtype)), lanes=lanes)
    text = LlvmTarget("sync_llvm", "avx512").emit(Kernel("few", (ArrayParam(y, "write"),), (body,))).payload
    assert text.count("call void @llvm.masked.store") == stores


@pytest.mark.parametrize(
    ("cpu", "stores"), [("avx512", "@llvm.masked.store.v8f64"), ("avx2", "store double")]
)
def test_every_other_cell_is_in_two_vectors(cpu, stores):
    x, y, i = f64("x", 63), f64("y", 63), Symbol("i")
    body = vector(i, 32, put(y, i * 2, value=at(x, i * 2)), lanes=8)
    kernel = Kernel("apart", (ArrayParam(x, "read"), ArrayParam(y, "write")), (body,))
    text = LlvmTarget("sync_llvm", cpu).emit(kernel).payload
    assert (text.count("= load <8 x double>"), text.count("= load double")) == (2, 0)
    assert stores in text


@pytest.mark.parametrize("coefficient", [1, -1, 2, -3])
@pytest.mark.parametrize("boolean", [False, True])
def test_stores_at_every_distance_between_lanes(coefficient, boolean):
    source = np.arange(30) % 7
    if boolean:
        source = source > 3
    x, i = tensor_like("x", source), Symbol("i")
    out = Tensor.of("out", (100,), x.dtype)
    first = 0 if coefficient >= 0 else 99
    result = np.zeros(100, source.dtype)
    body = vector(i, 30, put(out, Affine.of(i) * coefficient + first, value=at(x, i)))
    run([body], [(x, source)], [(out, result)])
    expected = np.zeros(100, source.dtype)
    expected[first + coefficient * np.arange(30)] = source
    np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize(
    "view",
    [
        lambda a: a[::-1],
        lambda a: a[:, ::-1],
        lambda a: a[::2, 1::3],
        lambda a: a[::-2, ::-1],
        lambda a: a[:, 4:],
        lambda a: np.broadcast_to(a[0], a.shape),
    ],
)
def test_parameters_with_any_strides(view):
    base = np.random.default_rng(5).normal(size=(10, 12))
    source = view(base)
    x, out, i, j = tensor_like("x", source), f64("out", *source.shape), Symbol("i"), Symbol("j")
    result = np.empty(source.shape)
    rows, columns = source.shape
    body = loop(i, rows, vector(j, columns, put(out, i, j, value=at(x, i, j)), lanes=4))
    run([body], [(x, source)], [(out, result)])
    np.testing.assert_array_equal(result, source)


def test_extents_and_strides_known_at_launch():
    source = np.random.default_rng(6).normal(size=(7, 11))
    rows, columns = static("rows"), static("columns")
    shape = (Affine.of(rows), Affine.of(columns))
    x, i, j = Tensor("x", shape, F64), Symbol("i"), Symbol("j")
    turned = Tensor("turned", (shape[1], shape[0]), F64)
    result = np.empty((11, 7))
    body = loop(i, rows, vector(j, columns, put(turned, j, i, value=at(x, i, j)), lanes=4))
    run([body], [(x, source)], [(turned, result)], bindings=[(rows, 7), (columns, 11)])
    np.testing.assert_array_equal(result, source.T)


def test_gather_takes_an_index_per_lane():
    source = np.random.default_rng(7).normal(size=(5, 6))
    picks = np.array([4, 0, 3, 3, 1, 2, 0, 4, 1, 2, 2], np.int64)
    x, p, out, i = tensor_like("x", source), tensor_like("p", picks), f64("out", 11), Symbol("i")
    result = np.empty(11)
    value = Gather(x, (at(p, i), call("add", at(p, i), Const(1, I64))))
    run([vector(i, 11, put(out, i, value=value), lanes=4)], [(x, source), (p, picks)], [(out, result)])
    np.testing.assert_array_equal(result, source[picks, picks + 1])


@pytest.mark.parametrize("dtype", ["f8", "f4", "i8", "u4", "i2", "?"])
@pytest.mark.parametrize("lanes", [2, 8, 16])
def test_cells_from_anywhere_of_an_array_whose_strides_the_launch_knows(dtype, lanes):
    source = np.random.default_rng(7).integers(0, 2, (5, 3, 6)).astype(dtype)
    picks = np.random.default_rng(8).integers(0, 5, 37)
    rows, columns = static("rows"), static("columns")
    x = Tensor("x", (Affine.of(rows), Affine.of(3), Affine.of(columns)), tensor_like("x", source).dtype)
    p, out, i = tensor_like("p", picks), Tensor.of("out", (37,), x.dtype), Symbol("i")
    result = np.empty(37, dtype)
    value = Gather(x, (at(p, i), Const(2, I64), at(p, i)))
    body = vector(i, 37, put(out, i, value=value), lanes=lanes)
    run([body], [(x, source), (p, picks)], [(out, result)], bindings=[(rows, 5), (columns, 6)])
    np.testing.assert_array_equal(result, source[picks, 2, picks])


@pytest.mark.parametrize(
    ("cpu", "dtype", "cells", "lanes", "how"),
    [
        ("avx512fp16", "f8", 1 << 20, 8, "@llvm.masked.gather.v8f64"),
        ("avx512fp16", "u4", 9, 16, "@llvm.masked.gather.v16i32"),
        ("avx512fp16", "f8", 1 << 21, 8, "= load double"),
        ("avx512fp16", "f8", 9, 2, "= load double"),
        ("avx512fp16", "i2", 9, 16, "= load i16"),
        ("avx512", "f8", 9, 8, "= load double"),
    ],
)
def test_one_instruction_gathers_where_it_takes_less_time(cpu, dtype, cells, lanes, how):
    x, p, i = tensor_like("x", np.zeros(cells, dtype)), tensor_like("p", np.zeros(32, np.int64)), Symbol("i")
    out = Tensor.of("out", (32,), x.dtype)
    body = vector(i, 32, put(out, i, value=Gather(x, (at(p, i),))), lanes=lanes)
    params = (ArrayParam(x, "read"), ArrayParam(p, "read"), ArrayParam(out, "write"))
    text = LlvmTarget("sync_llvm", cpu).emit(Kernel("anywhere", params, (body,))).payload
    assert how in text
    assert ("gather" in text) == ("gather" in how)


def test_lanes_that_choose_the_same_row_read_neighbours():
    source = np.random.default_rng(7).normal(size=(5, 3, 40))
    x, p, out, i = tensor_like("x", source), tensor_like("p", np.array([4])), f64("out", 37), Symbol("i")
    result = np.empty(37)
    value = Gather(x, (at(p, 0), Const(2, I64), Index(i + 3)))
    body = vector(i, 37, put(out, i, value=value), lanes=8)
    run([body], [(x, source), (p, np.array([4]))], [(out, result)])
    np.testing.assert_array_equal(result, source[4, 2, 3:])
    params = (ArrayParam(x, "read"), ArrayParam(p, "read"), ArrayParam(out, "write"))
    assert "= load <8 x double>" in LlvmTarget("sync_llvm").emit(Kernel("row", params, (body,))).payload


@pytest.mark.parametrize(("cpu", "together"), [("zen5", True), ("avx512", False), ("avx2", False)])
def test_positions_along_two_axes_become_one_number_in_registers(cpu, together):
    x, p, i = tensor_like("x", np.zeros((5, 6))), tensor_like("p", np.zeros(32, np.int64)), Symbol("i")
    out = Tensor.of("out", (32,), x.dtype)
    body = vector(i, 32, put(out, i, value=Gather(x, (at(p, i), at(p, i)))), lanes=8)
    params = (ArrayParam(x, "read"), ArrayParam(p, "read"), ArrayParam(out, "write"))
    text = LlvmTarget("sync_llvm", cpu).emit(Kernel("anywhere", params, (body,))).payload
    assert ("mul <8 x i64>" in text) == together
    assert "gather" not in text


@pytest.mark.parametrize(("dtype", "alone"), [("i4", True), ("u4", True), ("i2", True), ("u1", False)])
def test_positions_of_fewer_bits_are_taken_out_as_they_lie_in_memory(dtype, alone):
    source, picks = np.random.default_rng(7).normal(size=300), np.arange(32, dtype=dtype)[::-1] * 4
    picks[3] = 255 if dtype[0] == "u" else 100
    x, p, out, i = tensor_like("x", source), tensor_like("p", picks), f64("out", 32), Symbol("i")
    body = vector(i, 32, put(out, i, value=Gather(x, (Cast(at(p, i), I64),))), lanes=8)
    result = np.empty(32)
    run([body], [(x, source), (p, picks)], [(out, result)])
    np.testing.assert_array_equal(result, source[picks])
    params = (ArrayParam(x, "read"), ArrayParam(p, "read"), ArrayParam(out, "write"))
    text = LlvmTarget("sync_llvm", "zen5").emit(Kernel("anywhere", params, (body,))).payload
    assert ("extractelement <8 x i64>" in text) != alone


def test_flat_form_is_the_same_memory():
    source = np.arange(12.0).reshape(3, 4)
    x, out, i = tensor_like("x", source), f64("out", 3, 4), Symbol("i")
    flat_x = Tensor("x", (Affine.of(12),), F64, base=x)
    flat_out = Tensor("out", (Affine.of(12),), F64, base=out)
    result = np.empty((3, 4))
    body = vector(i, 12, put(flat_out, Affine.of(i) * -1 + 11, value=at(flat_x, i)), lanes=4)
    run([body], [(x, source)], [(out, result)])
    np.testing.assert_array_equal(result, source.ravel()[::-1].reshape(3, 4))


def test_bool_is_a_byte_that_is_zero_or_one():
    bytes_ = np.array([0, 1, 2, 255, 128, 0, 7, 1, 0, 3], np.uint8)
    flags = bytes_.view(np.bool_)
    i = Symbol("i")
    x, out = Tensor.of("x", (10,), BOOL), Tensor.of("out", (10,), BOOL)
    result = np.full(10, 9, np.uint8)
    copy = vector(i, 10, put(out, i, value=at(x, i)), lanes=4)
    kernel = Kernel("copy", (ArrayParam(x, "read"), ArrayParam(out, "write")), (copy,))
    launch(kernel, "sync_llvm", [flags, result])
    np.testing.assert_array_equal(result, bytes_ != 0)
    np.testing.assert_array_equal(elementwise(lambda b: Cast(b, I64), flags), (bytes_ != 0).astype(np.int64))


def test_temporaries_live_in_the_workspace_or_on_the_stack():
    x, out, i = f64("x", 100), f64("out", 100), Symbol("i")
    first, second, third = f64("first", 100), f64("second", 100), Tensor.of("third", (100,), BOOL)
    placement = {
        first: Place(PlaceKind.ARENA, "large"),
        second: Place(PlaceKind.ARENA, "large", offset=832),
        third: Place(PlaceKind.STACK, "small"),
    }
    body = [
        vector(i, 100, put(first, i, value=call("add", at(x, i), Const(1.0, F64)))),
        vector(i, 100, put(second, i, value=call("multiply", at(x, i), Const(2.0, F64)))),
        vector(i, 100, put(third, i, value=call("less", at(second, i), at(first, i)))),
        vector(i, 100, put(out, i, value=call("where", at(third, i), at(first, i), at(second, i)))),
    ]
    source, result = np.random.default_rng(8).normal(size=100), np.empty(100)
    run(body, [(x, source)], [(out, result)], placement=placement, arena_bytes=1664)
    np.testing.assert_array_equal(result, np.maximum(source + 1, source * 2))


def test_index_is_a_number_per_lane():
    out, n, i = Tensor.of("out", (21,), I64), static("n"), Symbol("i")
    result = np.empty(21, np.int64)
    value = Index(Affine.of(i) * -3 + Affine.of(n) + 5)
    run([vector(i, 21, put(out, i, value=value))], writes=[(out, result)], bindings=[(n, 100)])
    np.testing.assert_array_equal(result, 105 - 3 * np.arange(21))


def test_an_array_may_have_no_elements():
    x, out, i, j = f64("x", 0, 5), f64("out", 0, 5), Symbol("i"), Symbol("j")
    body = loop(i, 0, vector(j, 5, put(out, i, j, value=at(x, i, j)), lanes=4))
    run([body], [(x, np.empty((0, 5)))], [(out, np.empty((0, 5)))])


@pytest.mark.parametrize(("lanes", "lines"), [(4, 1), (8, 1), (32, 4)])
def test_every_line_of_what_will_be_read_is_asked_for_and_may_lie_outside(lanes, lines):
    source, result = np.arange(64.0), np.empty(64)
    x, out, i = f64("x", 64), f64("out", 64), Symbol("i")
    body = loop(i, 64, Prefetch(x, (Affine.of(i) + 10**9,)), put(out, i, value=at(x, i)))
    body = replace(body, kind=LoopKind.VECTOR, lanes=lanes)
    run([body], [(x, source)], [(out, result)])
    np.testing.assert_array_equal(result, source)
    params = (ArrayParam(x, "read"), ArrayParam(out, "write"))
    text = backend("llvm").target.emit(Kernel("asked", params, (body,), {})).payload
    assert text.count("call void @llvm.prefetch") == lines


def test_lines_are_asked_for_one_after_each_load_and_the_rest_at_the_end():
    x, y, out, i = f64("x", 64), f64("y", 64), f64("out", 64), Symbol("i")
    asks = (Prefetch(tensor, (Affine.of(i) + 512,)) for tensor in (x, y))
    store = put(out, i, value=call("add", at(x, i), at(y, i)))
    body = replace(loop(i, 64, *asks, store), kind=LoopKind.VECTOR, lanes=16)
    params = (ArrayParam(x, "read"), ArrayParam(y, "read"), ArrayParam(out, "write"))
    text = backend("llvm").target.emit(Kernel("asked", params, (body,), {})).payload
    order = re.findall(r"load <16 x double>|llvm\.prefetch\.p0\(ptr %|store <16 x double>", text)
    load, ask, write = "load <16 x double>", "llvm.prefetch.p0(ptr %", "store <16 x double>"
    assert order == [load, ask, load, ask, write, ask, ask]


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("function", [np.sin, np.cos, np.exp, np.log, np.tanh])
def test_lines_are_asked_for_where_their_place_is_known(function, dtype):
    """Before a branch, that is: a sine's large arguments are looked at in one of their own."""
    x = np.linspace(0.1, 3, 30000).astype(dtype)
    computation = trace_function(lambda x: function(x), (x,), {}).computation
    sizes = (("threads", 1), ("l2_bytes", 400), ("l3_bytes", 500))
    built = build(computation, "sync_llvm", schedule=Schedule(sizes=sizes))
    assert any(note.startswith("prefetch") for note in built.optimized.kernel.notes)
    ours = np.empty_like(x)
    built.load().launch([x.ctypes.data, ours.ctypes.data])
    np.testing.assert_allclose(ours, function(x), rtol=1e-6 if dtype == "f4" else 1e-14)


def test_no_register_of_a_frame_goes_through_arrays():
    x, out, i = f64("x", 64), f64("out", 64), Symbol("i")
    params = (ArrayParam(x, "read"), ArrayParam(out, "write"))
    copied = Kernel("copied", params, (vector(i, 64, put(out, i, value=at(x, i))),), {})
    for target in (backend("llvm").target, LlvmTarget("llvm", "avx2")):
        assert '"frame-pointer"="all"' in target.emit(copied).payload


def test_copies_of_a_body_reach_their_cells_from_one_pointer():
    x, out, i, u = f64("x", 8, 10), f64("out", 8, 10), Symbol("i"), Symbol("u")
    copies = loop(u, 5, put(out, i, u, value=at(x, i, u + 5)), kind=LoopKind.UNROLLED)
    params = (ArrayParam(x, "read"), ArrayParam(out, "update"))
    text = backend("llvm").target.emit(Kernel("copies", params, (loop(i, 8, copies),), {})).payload
    assert text.count("freeze ptr") == 2
    assert text.count(" mul ") == 1
    assert text.count(" add ") == 1
