"""Vectors across cache lines: put together from whole lines, with the same bits wherever arrays start, and
without a look at other pages than theirs."""

from __future__ import annotations

import ctypes
import mmap
import sys

import numpy as np
import pytest
from handmade import at, call, loop, put, run, tensor_like, vector

from arrayjit.ir.assign import ArrayParam
from arrayjit.ir.expr import Const, Local, Variable
from arrayjit.ir.index import Affine, Symbol
from arrayjit.ir.loops import Define, Kernel, Update
from arrayjit.ir.ops import op
from arrayjit.ir.tensor import Tensor
from arrayjit.targets.llvm import LlvmTarget

CELLS = 32 * 17
NO_ACCESS = 0
DTYPES = ("f8", "f4", "i8", "i4", "u4")


def product(tensors, lanes=32, cells=CELLS, extra=()):
    """The sum of products, vector by vector, or of one array's cells; and where it is stored."""
    i, total, out = Symbol("i"), Variable("total", tensors[0].dtype), Tensor.of("out", (), tensors[0].dtype)
    zero = Const(out.dtype.numpy.type(0).item(), out.dtype)
    value = at(tensors[0], i) if len(tensors) == 1 else call("multiply", at(tensors[0], i), at(tensors[1], i))
    summed = vector(i, cells, *extra, Update(total, value, op("add")), lanes=lanes)
    return out, (Define(total, zero), summed, put(out, value=Local(total)))


def text(tensors, body, out, cpu="avx512fp16"):
    params = (*(ArrayParam(tensor, "read") for tensor in tensors), ArrayParam(out, "write"))
    return LlvmTarget("sync_llvm", cpu).emit(Kernel("anywhere", params, body)).payload


def lying(values, offset):
    """The values in memory that starts so many bytes behind a cache line's boundary."""
    around = np.zeros(values.nbytes + 128, np.uint8)
    start = -around.ctypes.data % 64 + offset
    array = around[start : start + values.nbytes].view(values.dtype)
    array[:] = values
    return array


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("other", [0, 16, 56])
def test_sums_have_the_same_bits_wherever_arrays_start(dtype, other):
    first, second = np.random.default_rng(3).integers(-99, 99, (2, CELLS)).astype(dtype) / 7
    first, second = first.astype(dtype), lying(second.astype(dtype), other)
    for offset in range(0, 64, first.itemsize):
        arrays = lying(first, offset), second
        tensors = [tensor_like(label, array) for label, array in zip("xy", arrays, strict=True)]
        out, body = product(tensors)
        run(body, [*zip(tensors, arrays, strict=True)], [(out, np.zeros((), dtype))])


@pytest.mark.parametrize("offset", [0, 24])
def test_rows_are_gone_along_in_blocks(offset):
    values = lying(np.sin(np.arange(6.0 * 32 * 13)), offset)
    x, k, block, n = tensor_like("x", values), Symbol("l"), Symbol("block"), Symbol("i")
    out, total, part = Tensor.of("out", (), x.dtype), Variable("total", x.dtype), Variable("part", x.dtype)
    cell = at(x, Affine.of(k) + Affine.of(block) * 416 + Affine.of(n) * 32)
    inner = loop(n, 13, Update(part, cell, op("add")))
    blocks = loop(
        block, 6, Define(part, Const(0.0, x.dtype)), inner, Update(total, Local(part), op("maximum"))
    )
    body = (
        Define(total, Const(-np.inf, x.dtype)),
        vector(k, 32, blocks, lanes=32),
        put(out, value=Local(total)),
    )
    assert "vpermi2var" in text((x,), body, out)
    run(body, [(x, values)], [(out, np.zeros(()))])


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no mprotect")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shift", [0, 1, 3])
def test_nothing_is_read_on_other_pages(dtype, shift):
    values = np.arange(CELLS).astype(dtype)
    page = mmap.PAGESIZE
    inner = -(-2 * values.nbytes // page) * page
    memory = mmap.mmap(-1, inner + 2 * page)
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    mprotect = ctypes.CDLL(None, use_errno=True).mprotect
    mprotect.argtypes = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
    first, last = page + shift * values.itemsize, page + inner - (shift + CELLS) * values.itemsize
    arrays = [np.frombuffer(memory, dtype, CELLS, place) for place in (first, last)]
    for array in arrays:
        array[:] = values
    for beside in (start, start + page + inner):
        assert mprotect(beside, page, NO_ACCESS) == 0
    tensors = [tensor_like(label, array) for label, array in zip("xy", arrays, strict=True)]
    out, body = product(tensors)
    run(body, [*zip(tensors, arrays, strict=True)], [(out, np.zeros((), dtype))])


@pytest.mark.parametrize("dtype", [*DTYPES, "i2", "f2", "?"])
@pytest.mark.parametrize("cpu", ["avx512fp16", "avx512", "avx2"])
def test_processors_and_cells(cpu, dtype):
    x = tensor_like("x", np.zeros(CELLS, dtype))
    out, body = product([x])
    assert ("vpermi2var" in text([x], body, out, cpu)) == (cpu == "avx512fp16" and dtype in DTYPES)


def test_short_and_busy_loops_and_vectors_of_part_of_a_line_load_as_they_are():
    x = tensor_like("x", np.zeros(CELLS))
    y = Variable("y", x.dtype)
    busy = Define(y, call("exp", at(x, Affine.of(3))))
    for how in ({"cells": 32 * 7}, {"lanes": 4}, {"extra": (busy,)}):
        out, body = product([x], **how)
        assert "vpermi2var" not in text([x], body, out)


@pytest.mark.parametrize(("cells", "is_near"), [(1 << 18, True), ((1 << 18) + 32, False)])
def test_what_the_second_cache_cannot_hold_is_loaded_as_it_is(cells, is_near):
    x = tensor_like("x", np.zeros(cells))
    out, body = product([x], cells=cells)
    assert ("vpermi2var" in text([x], body, out)) == is_near


def test_what_overlaps_is_loaded_once():
    x, i, total = (
        tensor_like("x", np.zeros(CELLS + 1)),
        Symbol("i"),
        Variable("total", tensor_like("x", np.zeros(1)).dtype),
    )
    out = Tensor.of("out", (), x.dtype)
    value = call("subtract", at(x, Affine.of(i) + 1), at(x, i))
    summed = vector(i, CELLS, Update(total, value, op("add")), lanes=32)
    body = (Define(total, Const(0.0, x.dtype)), summed, put(out, value=Local(total)))
    assert "vpermi2var" not in text([x], body, out)
