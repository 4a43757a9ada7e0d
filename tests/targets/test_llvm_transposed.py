"""Loads across memory that neighbouring copies of a body make together, and those that they may not."""

from __future__ import annotations

import numpy as np
import pytest
from handmade import at, call, f64, loop, put, run, tensor_like, vector

from arrayjit.backends import backend
from arrayjit.ir.assign import ArrayParam
from arrayjit.ir.index import Affine, Symbol
from arrayjit.ir.loops import Kernel, LoopKind


def turned(x, y, lanes, count, first=0):
    """`y[i, j] = x[j, i]` for as many columns, from the first on."""
    j, i = Symbol("j"), Symbol("i")
    store = put(y, i, j, value=at(x, j, Affine.of(i) + first))
    return vector(j, lanes, loop(i, count, store, kind=LoopKind.UNROLLED), lanes=lanes)


def numbers(rows, columns, dtype):
    return (np.arange(rows * columns).reshape(rows, columns) % 251).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int32, np.int16, np.uint8, np.bool_])
@pytest.mark.parametrize("count", [2, 4, 8, 16])
@pytest.mark.parametrize("more", [1, 2, 4])
def test_every_width(dtype, count, more):
    lanes = count * more
    source = numbers(lanes, count + 5, dtype)
    result = np.zeros((count, lanes), dtype)
    x, y = tensor_like("x", source), tensor_like("y", result)
    run([turned(x, y, lanes, count, 3)], [(x, source)], [(y, result)])
    np.testing.assert_array_equal(result, source[:, 3 : 3 + count].T)


@pytest.mark.parametrize("view", [lambda a: a, lambda a: a[::-1], lambda a: a[::3], lambda a: a[:, 2:]])
def test_rows_anywhere(view):
    source = view(numbers(30, 12, np.float32))[:8]
    result = np.zeros((8, 8), np.float32)
    x, y = tensor_like("x", source), tensor_like("y", result)
    run([turned(x, y, 8, 8)], [(x, source)], [(y, result)])
    np.testing.assert_array_equal(result, source[:, :8].T)


@pytest.mark.parametrize(("lanes", "count"), [(8, 3), (8, 5), (2, 4), (4, 8), (8, 1)])
def test_other_numbers_of_copies_are_loaded_one_by_one(lanes, count):
    source = numbers(lanes, 8, np.float64)
    result = np.zeros((count, lanes))
    x, y = tensor_like("x", source), tensor_like("y", result)
    run([turned(x, y, lanes, count)], [(x, source)], [(y, result)])
    np.testing.assert_array_equal(result, source[:, :count].T)


def test_a_copy_sees_what_copies_before_it_wrote():
    x, i, j = f64("x", 8, 9), Symbol("i"), Symbol("j")
    doubled = put(x, j, Affine.of(i) + 1, value=call("add", at(x, j, i), at(x, j, i)))
    result = numbers(8, 9, np.float64)
    wanted = result[:, :1] * 2.0 ** np.arange(9)
    run([vector(j, 8, loop(i, 8, doubled, kind=LoopKind.UNROLLED), lanes=8)], [], [(x, result)])
    np.testing.assert_array_equal(result, wanted)


def test_rows_are_read_by_parts_that_all_cpus_can_interleave():
    x, y = f64("x", 8, 8), f64("y", 8, 8)
    kernel = Kernel("turned", (ArrayParam(x, "read"), ArrayParam(y, "write")), (turned(x, y, 8, 4),))
    text = backend("sync_llvm").target.emit(kernel).payload
    assert text.count("load <2 x double>") == 16
    assert "load double" not in text
