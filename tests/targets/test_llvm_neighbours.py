"""Vectors that start a few cells beside others: their lanes are moved, and only what is missing is loaded."""

from __future__ import annotations

import re

import numpy as np
import pytest
from handmade import at, call, f64, loop, put, run, tensor_like, vector

from arrayjit.ir.assign import ArrayParam
from arrayjit.ir.index import Symbol
from arrayjit.ir.loops import Kernel, LoopKind
from arrayjit.targets.llvm import LlvmTarget

J = Symbol("j")


def sum_of(x, *places):
    """Of the cells at these distances from the lane's own."""
    first, *others = (at(x, J + place) for place in places)
    for other in others:
        first = call("add", first, other)
    return first


def text(cpu, lanes, *places):
    x, y = f64("x", 200), f64("y", 128)
    body = vector(J, 128, put(y, J, value=sum_of(x, *places)), lanes=lanes)
    kernel = Kernel("near", (ArrayParam(x, "read"), ArrayParam(y, "write")), (body,))
    return LlvmTarget("sync_llvm", cpu).emit(kernel).payload


def loads(cpu, lanes, *places):
    """What is loaded from the array, by how often."""
    found = re.findall(r"= load (<\d+ x double>|double)", text(cpu, lanes, *places))
    return {kind: found.count(kind) for kind in found}


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int32, np.int64, np.int16, np.uint8])
@pytest.mark.parametrize("lanes", [4, 8, 16, 32])
@pytest.mark.parametrize(
    "places", [(1, 0), (0, 1), (1, 0, 2), (5, 4, 6, 3, 7, 1, 9), (0, 1, 2, 3, 4, 5, 6, 7, 8, 9), (4, 0, 8, 2)]
)
def test_every_width_and_distance(dtype, lanes, places):
    source = (np.arange(128 + max(places)) * 37 % 23).astype(dtype)
    result = np.zeros(128, dtype)
    x, y = tensor_like("x", source), tensor_like("y", result)
    run([vector(J, 128, put(y, J, value=sum_of(x, *places)), lanes=lanes)], [(x, source)], [(y, result)])
    np.testing.assert_array_equal(result, sum(source[place : place + 128] for place in places))


def test_of_three_neighbours_two_are_moved():
    assert loads("avx512", 16, 1, 0, 2) == {"<16 x double>": 1, "double": 2}


def test_cells_that_are_missing_are_loaded_together():
    assert loads("avx512", 16, 4, 2, 8) == {"<16 x double>": 1, "<2 x double>": 1, "<4 x double>": 1}


def test_lanes_are_moved_of_what_was_loaded():
    assert loads("avx512", 16, 0, 1, 2, 3) == {"<16 x double>": 2, "double": 1, "<2 x double>": 1}


def test_a_single_register_is_moved_by_one_lane():
    assert loads("avx512", 8, 4, 3, 5) == {"<8 x double>": 1, "double": 2}
    assert loads("avx512", 8, 4, 2, 6) == {"<8 x double>": 3}


def test_narrow_vectors_are_loaded_where_they_are():
    assert loads("avx2", 16, 1, 0, 2) == {"<16 x double>": 3}
    assert loads("avx512", 4, 1, 0, 2) == {"<4 x double>": 3}


def test_what_was_written_since_is_loaded_again():
    source, cells = np.arange(65.0), np.zeros(64)
    result = source.copy()
    x, y = f64("x", 65), f64("y", 64)
    doubled = put(x, J, value=call("add", at(x, J + 1), at(x, J + 1)))
    body = loop(J, 64, doubled, put(y, J, value=at(x, J)), kind=LoopKind.LOCKSTEP, lanes=16)
    run([body], [], [(x, result), (y, cells)])
    np.testing.assert_array_equal(cells, 2 * source[1:])


def test_another_loop_loads_for_itself():
    """What it has not stored itself may have been written since, by a function called between them."""
    x, y = f64("x", 200), f64("y", 2, 16)
    loops = [vector(J, 16, put(y, row, J, value=at(x, J + row)), lanes=16) for row in (0, 1)]
    kernel = Kernel("apart", (ArrayParam(x, "read"), ArrayParam(y, "write")), tuple(loops))
    made = LlvmTarget("sync_llvm", "avx512").emit(kernel).payload
    assert made.count("= load <16 x double>") == 2
    assert "= load double" not in made
