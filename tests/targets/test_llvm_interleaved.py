"""Groups of neighbours: read and written for all lanes at once, in the order in which the program does it."""

from __future__ import annotations

import re
from functools import partial, reduce

import numpy as np
import pytest
from handmade import at, call, loop, put, run, tensor_like, vector

from arrayjit.ir.assign import ArrayParam
from arrayjit.ir.dtype import F64
from arrayjit.ir.expr import Cast, Const, Index, Local, Variable
from arrayjit.ir.index import Affine, Symbol
from arrayjit.ir.loops import Define, Kernel, LoopKind, Update
from arrayjit.ir.tensor import Tensor
from arrayjit.targets.llvm import LlvmTarget
from arrayjit.targets.llvm_interleaved import lanes_of

DTYPES = [np.float64, np.float32, np.int16, np.uint8, np.bool_]


def numbers(*shape, dtype=np.float64):
    return (np.arange(np.prod(shape)).reshape(shape) * 7 % 11).astype(dtype)


def part(tensor, symbol, number):
    return at(tensor, symbol, Affine.of(number))


def group(tensor, symbol, values):
    """A store to each part."""
    return [put(tensor, symbol, Affine.of(number), value=value) for number, value in enumerate(values)]


def wide_stores(vectors, arrays):
    """How many vectors are stored, and how many single cells, where there are no masks to store by."""
    params = tuple(ArrayParam(tensor, "update") for tensor in arrays)
    text = LlvmTarget("sync_llvm", "avx2").emit(Kernel("kernel", params, (vectors,))).payload
    return len(re.findall(r"store <", text)), len(re.findall(r"store (?!<)", text))


@pytest.mark.parametrize("count", [2, 3, 4, 5])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("lanes", [4, 16])
def test_parts_in_another_order(count, dtype, lanes):
    source = numbers(37, count, dtype=dtype)
    result = np.zeros_like(source)
    x, y, i = tensor_like("x", source), tensor_like("y", source), Symbol("i")
    body = vector(i, 37, *group(y, i, [part(x, i, n) for n in reversed(range(count))]), lanes=lanes)
    run([body], [(x, source)], [(y, result)])
    np.testing.assert_array_equal(result, source[:, ::-1])


@pytest.mark.parametrize("count", [2, 3, 4])
def test_a_group_is_one_store(count):
    source = numbers(32, count)
    x, y, i = tensor_like("x", source), tensor_like("y", source), Symbol("i")
    stores = group(y, i, [part(x, i, n) for n in range(count)])
    assert wide_stores(vector(i, 32, *stores), [x, y]) == (1, 0)
    assert wide_stores(vector(i, 32, *reversed(stores)), [x, y]) == (1, 0)
    assert wide_stores(vector(i, 32, *stores[1:]), [x, y]) == (0, 8 * (count - 1))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_pairs_beside_single_numbers(dtype):
    source, factor = numbers(40, 2, dtype=dtype), numbers(40, dtype=dtype)
    result, sums = np.zeros_like(source), np.zeros_like(factor)
    x, f, y, s = map(tensor_like, "xfys", (source, factor, result, sums))
    i = Symbol("i")
    pairs = group(y, i, [call("multiply", part(x, i, n), at(f, i)) for n in (0, 1)])
    single = put(s, i, value=call("add", part(x, i, 0), part(x, i, 1)))
    run([vector(i, 40, *pairs, single)], [(x, source), (f, factor)], [(y, result), (s, sums)])
    np.testing.assert_array_equal(result, source * factor[:, None])
    np.testing.assert_array_equal(sums, source.sum(axis=1))


@pytest.mark.parametrize("lanes", [4, 8, 32])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int16])
def test_many_pairs_beside_few_single_numbers(dtype, lanes):
    """Single numbers are read and written in the order of lanes that pairs take."""
    source, other, factor = numbers(70, 2, dtype=dtype), numbers(70, 2, dtype=dtype), numbers(70, dtype=dtype)
    result, sums = np.zeros_like(source), np.zeros_like(factor)
    x, y, f, z, s = map(tensor_like, "xyfzs", (source, other, factor, result, sums))
    i, scaled = Symbol("i"), Variable("scaled", f.dtype)
    first = Define(scaled, call("multiply", part(x, i, 0), at(f, i)))
    pairs = group(
        z, i, [call("add", Local(scaled), part(y, i, 0)), call("add", part(x, i, 1), part(y, i, 1))]
    )
    body = vector(i, 70, first, *pairs, put(s, i, value=Local(scaled)), lanes=lanes)
    run([body], [(x, source), (y, other), (f, factor)], [(z, result), (s, sums)])
    np.testing.assert_array_equal(sums, source[:, 0] * factor)
    np.testing.assert_array_equal(result[:, 0], sums + other[:, 0])
    np.testing.assert_array_equal(result[:, 1], source[:, 1] + other[:, 1])


@pytest.mark.parametrize(("singles", "in_order"), [(1, False), (2, False), (3, True)])
def test_the_order_of_lanes_is_that_of_memory_where_that_takes_fewer_instructions(singles, in_order):
    i = Symbol("i")
    x, y = (Tensor.of(name, (16, 2), F64) for name in "xy")
    f = [Tensor.of(f"f{n}", (16,), F64) for n in range(singles)]
    factor = reduce(partial(call, "add"), [at(tensor, i) for tensor in f])
    pairs = group(y, i, [call("multiply", part(x, i, n), factor if n else Const(2.0, F64)) for n in (0, 1)])
    assert (lanes_of(vector(i, 16, *pairs, lanes=8), 8).numbers == ()) is in_order


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_pairs_and_the_number_of_the_lane(dtype):
    source = numbers(40, 2, dtype=dtype)
    result = np.zeros_like(source)
    x, y, i = tensor_like("x", source), tensor_like("y", source), Symbol("i")
    number = Cast(Index(Affine.of(i)), x.dtype)
    stores = group(y, i, [call("add", part(x, i, 1), number), part(x, i, 0)])
    run([vector(i, 40, *stores)], [(x, source)], [(y, result)])
    np.testing.assert_array_equal(result, source[:, ::-1] + np.arange(40)[:, None] * [1, 0])


def test_pairs_of_different_sizes():
    source = numbers(40, 2, dtype=np.float32)
    result = np.zeros((40, 2))
    x, y, i = tensor_like("x", source), tensor_like("y", result), Symbol("i")
    swapped = group(y, i, [Cast(part(x, i, n), F64) for n in (1, 0)])
    run([vector(i, 40, *swapped)], [(x, source)], [(y, result)])
    np.testing.assert_array_equal(result, source[:, ::-1])


def test_pairs_that_are_added_up_keep_the_order_of_lanes():
    """Lane `l` adds up iterations `l`, `l + 4`, ...; then the lanes are folded in half."""
    source = np.random.default_rng(0).normal(size=(64, 2))
    x, s, i = tensor_like("x", source), Tensor.of("s", (1,), F64), Symbol("i")
    total, result = Variable("total", F64), np.zeros(1)
    add = Update(total, part(x, i, 1), call("add", Const(0.0, F64), Const(0.0, F64)).op)
    body = [Define(total, Const(0.0, F64)), vector(i, 64, add, lanes=4), put(s, 0, value=Local(total))]
    run(body, [(x, source)], [(s, result)])
    lanes = np.zeros(4)
    for row in source[:, 1].reshape(16, 4):
        lanes = lanes + row
    assert result[0] == (lanes[0] + lanes[2]) + (lanes[1] + lanes[3])


def test_what_was_stored_is_read_back():
    """The second store needs what the first one wrote."""
    source = numbers(33, 2)
    x, i = tensor_like("x", source), Symbol("i")
    more = call("add", part(x, i, 0), Const(1.0, F64))
    stores = group(x, i, [more, call("multiply", part(x, i, 0), part(x, i, 1))])
    result = source.copy()
    run([vector(i, 33, *stores)], [], [(x, result)])
    np.testing.assert_array_equal(result[:, 0], source[:, 0] + 1)
    np.testing.assert_array_equal(result[:, 1], (source[:, 0] + 1) * source[:, 1])
    assert wide_stores(vector(i, 33, *stores), [x])[0] == 0


def test_parts_written_in_place():
    source = numbers(33, 2)
    x, i = tensor_like("x", source), Symbol("i")
    stores = group(x, i, [call("add", part(x, i, n), Const(1.0, F64)) for n in (0, 1)])
    result = source.copy()
    run([vector(i, 33, *stores)], [], [(x, result)])
    np.testing.assert_array_equal(result, source + 1)
    assert wide_stores(vector(i, 32, *stores), [x]) == (1, 0)


def test_a_part_that_is_stored_twice():
    source = numbers(16, 2)
    x, y, i = tensor_like("x", source), tensor_like("y", source), Symbol("i")
    first, second = group(y, i, [part(x, i, 0), part(x, i, 1)])
    again = put(y, i, Affine.of(0), value=Const(5.0, F64))
    for stores, wanted in (([first, again, second], 5.0), ([again, first, second], source[:, 0])):
        result = np.zeros_like(source)
        run([vector(i, 16, *stores)], [(x, source)], [(y, result)])
        np.testing.assert_array_equal(result[:, 0], np.broadcast_to(wanted, 16))
        np.testing.assert_array_equal(result[:, 1], source[:, 1])


def test_in_lockstep_lanes_read_what_others_have_not_written_yet():
    source = numbers(33, 2)
    x, i = tensor_like("x", source), Symbol("i")
    following = Affine.of(i) + 1
    stores = group(x, i, [part(x, following, 0), call("negative", part(x, following, 1))])
    shifted = loop(i, 32, *stores, kind=LoopKind.LOCKSTEP, lanes=8)
    result = source.copy()
    run([shifted], [], [(x, result)])
    np.testing.assert_array_equal(result[:-1], source[1:] * [1, -1])
    assert wide_stores(shifted, [x]) == (1, 0)


@pytest.mark.parametrize("rows", [7, 8])
def test_every_other_cell_of_a_row(rows):
    """The last cell may have no neighbour: none is read there."""
    source = numbers(2 * rows - 1)
    result = np.zeros(rows)
    x, y, i = tensor_like("x", source), tensor_like("y", result), Symbol("i")
    run([vector(i, rows, put(y, i, value=at(x, Affine.of(i) * 2)), lanes=4)], [(x, source)], [(y, result)])
    np.testing.assert_array_equal(result, source[::2])
    assert x.part_of((Affine.of(i) * 2,), 2) is None


def test_groups_of_rows_that_are_elsewhere():
    """Rows that have more than the groups, and rows backwards."""
    whole = numbers(30, 8)
    for source in (whole[:, :2], whole[::-1, 2:4], whole[::2, 4:6]):
        result = np.zeros((len(source), 2))
        x, y, i = tensor_like("x", source), tensor_like("y", result), Symbol("i")
        swapped = vector(i, len(source), *group(y, i, [part(x, i, 1), part(x, i, 0)]), lanes=4)
        run([swapped], [(x, source)], [(y, result)])
        np.testing.assert_array_equal(result, source[:, ::-1])


def neighbours_added(x, y, i, count):
    """For each part of a group the sum of three neighbours."""
    before, here, after = ([at(x, i + place, Affine.of(n)) for n in range(count)] for place in (0, 1, 2))
    sums = (
        call("add", call("subtract", *terms[:2]), terms[2]) for terms in zip(before, here, after, strict=True)
    )
    return group(y, i, list(sums))


@pytest.mark.parametrize("count", [2, 3, 4])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int16])
@pytest.mark.parametrize("lanes", [4, 8, 16])
def test_parts_that_are_added(count, dtype, lanes):
    source, result = numbers(39, count, dtype=dtype), numbers(37, count, dtype=dtype)
    x, y, i = tensor_like("x", source), tensor_like("y", result), Symbol("i")
    body = vector(i, 37, *neighbours_added(x, y, i, count), lanes=lanes)
    run([body], [(x, source)], [(y, result)])
    np.testing.assert_array_equal(result, source[:-2] - source[1:-1] + source[2:])


def test_parts_are_added_as_groups():
    source, result = numbers(34, 2), numbers(32, 2)
    x, y, i = tensor_like("x", source), tensor_like("y", result), Symbol("i")
    body = vector(i, 32, *neighbours_added(x, y, i, 2))
    params = tuple(ArrayParam(tensor, "update") for tensor in (x, y))
    text = LlvmTarget("sync_llvm", "avx2").emit(Kernel("kernel", params, (body,))).payload
    assert set(re.findall(r"f(?:add|sub) <(\d+) x double>", text)) == {"16"}
