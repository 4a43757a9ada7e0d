"""What the LLVM target promises of long bodies: no function grows with the program, and the bits are those of
one function."""

from __future__ import annotations

import re

import numpy as np
import pytest

from arrayjit.ir.assign import ArrayParam
from arrayjit.ir.interp import run as interpret
from arrayjit.ir.loops import For
from arrayjit.ir.parse import parse
from arrayjit.ir.verify import verify_kernel
from arrayjit.runtime.cpu import CpuDriver
from arrayjit.runtime.threads import ThreadPool
from arrayjit.targets import llvm_chunks
from arrayjit.targets.llvm import LlvmTarget
from arrayjit.targets.llvm_chunks import cut


def program(loops):
    """So many loops in a row, each with a sum before it that it needs."""
    parts = [
        f"""
    s{n}: f64 = f64(0.0)
    for i{n} in sequential(0, 20):
        s{n} = reduce(add, s{n}, x[i{n}])
    for j{n} in vector(0, 20, lanes=4):
        x[j{n}] = sqrt[f64](add[f64](multiply[f64](x[19 - j{n}], x[j{n}]), s{n}))
"""
        for n in range(loops)
    ]
    return parse("def f(x: update[f64, 20]):" + "".join(parts))


def functions(kernel):
    """The texts of the functions."""
    text = LlvmTarget("sync_llvm").emit(kernel).payload
    return re.split(r"(?m)^(?=define )", text)[1:]


def check(text, pool=0):
    """The kernel leaves what the interpreter does. Returns its status and the names of its functions."""
    kernel = parse(text)
    verify_kernel(kernel)
    tensors = [param.tensor for param in kernel.params if isinstance(param, ArrayParam)]
    shapes = [tuple(extent.constant for extent in tensor.shape) for tensor in tensors]
    generator = np.random.default_rng(5)
    arrays = [
        (9 * generator.random(shape)).astype(tensor.dtype.numpy)
        for tensor, shape in zip(tensors, shapes, strict=True)
    ]
    wanted = [array.copy() for array in arrays]
    workspace = np.full(kernel.arena_bytes + 64, 0xFF, np.uint8)
    place = workspace.ctypes.data
    loaded = CpuDriver("sync_llvm").load(LlvmTarget("sync_llvm").emit(kernel))
    status = loaded.launch([array.ctypes.data for array in arrays], (), place + -place % 64, pool)
    if status == 0:
        interpret(kernel, dict(zip(tensors, wanted, strict=True)), {})
        for got, expected in zip(arrays, wanted, strict=True):
            np.testing.assert_array_equal(got, expected, strict=True)
    return status, [re.search(r'@"?([a-z_]+)', function)[1] for function in functions(kernel)]


@pytest.fixture
def short(monkeypatch):
    """Every body with two loops is cut as often as it can be."""
    monkeypatch.setattr(llvm_chunks, "LENGTH", 1)


def test_a_short_body_is_one_function():
    assert len(functions(program(10))) == 2


def test_no_function_grows_with_the_program():
    small, large = (functions(program(loops)) for loops in (200, 800))
    assert max(map(len, large)) < 1.5 * max(map(len, small))
    assert len(large) - 2 >= 3 * (len(small) - 2) > 0


def test_every_statement_is_in_one_part_in_order():
    body = program(300).body
    parts = [part if isinstance(part, tuple) else (part,) for part in cut(body)]
    assert sum(parts, ()) == body
    assert len(parts) < 30


def test_a_sum_and_what_it_is_for_are_in_one_chunk(monkeypatch):
    monkeypatch.setattr(llvm_chunks, "LENGTH", 7)
    for part in cut(program(5).body):
        assert sum(isinstance(stmt, For) for stmt in part) == 2


def test_locals_that_are_needed_for_long_are_arguments(short):
    text = """
def f(x: update[f64, 20], y: update[f64, 20]):
    t: temporary[f64, 20] = place('stack', 0, 'made before')
    first: f64 = add[f64](x[0], f64(1.0))
    flag: bool = less[bool](x[1], first)
    for i in sequential(0, 20):
        t[i] = where[f64](flag, x[i], first)
    total: f64 = f64(0.0)
    for i1 in sequential(0, 20):
        total = reduce(add, total, t[i1])
    for i2 in vector(0, 20, lanes=4):
        y[i2] = add[f64](t[i2], multiply[f64](first, total))
    for i3 in sequential(0, 20):
        x[i3] = add[f64](y[19 - i3], total)
    y[3] = first
"""
    assert check(text)[1].count("chunk") == 3


def test_what_goes_from_round_to_round_is_changed_by_no_chunk(short):
    text = """
def f(x: update[f64, 20, 20], y: update[f64, 20]):
    total: f64 = f64(0.0)
    for k in sequential(0, 20):
        for i in sequential(0, 20):
            total = reduce(add, total, x[k, i])
        for i1 in sequential(0, 20):
            x[k, i1] = multiply[f64](x[k, i1], f64(0.5))
        for i2 in sequential(0, 20):
            total = reduce(maximum, total, x[i2, k])
        y[k] = total
    for k1 in sequential(0, 20):
        y[k1] = add[f64](y[k1], total)
"""
    assert check(text)[1].count("chunk") == 2


def test_what_a_test_defines_reaches_its_condition_and_body(short):
    text = """
def f(x: update[f64, 20]):
    while True:
        top: f64 = f64(0.0)
        for i in sequential(0, 20):
            x[i] = multiply[f64](x[i], f64(0.75))
        for i1 in sequential(0, 20):
            top = reduce(maximum, top, x[i1])
        if not less[bool](f64(1.0), top):
            break
        for i2 in sequential(0, 20):
            x[i2] = subtract[f64](x[i2], f64(0.125))
        for i3 in sequential(0, 20):
            x[i3] = multiply[f64](x[i3], f64(0.5))
        x[0] = top
"""
    assert check(text)[1].count("chunk") == 2


@pytest.mark.parametrize(("limit", "status"), [(-1.0, 1), (100.0, 0)])
def test_a_chunk_that_fails_ends_the_kernel(short, limit, status):
    text = f"""
def f(x: update[f64, 20], y: update[f64, 20]):
    for k in sequential(0, 3):
        for i in sequential(0, 20):
            raise_(less[bool](f64({limit}), x[i]), 'ValueError', 'too large')
        for i1 in sequential(0, 20):
            x[i1] = f64(200.0)
            raise_(less[bool](x[i1], f64(0.0)), 'ValueError', 'too small')
        for i2 in sequential(0, 20):
            x[i2] = f64(1.0)
    for k1 in sequential(0, 20):
        y[k1] = x[k1]
"""
    found, names = check(text)
    assert found == status
    assert names.count("chunk") == 5


def test_threads_share_loops_of_chunks(short):
    text = """
def f(x: update[f32, 33, 50], y: write[f32, 33, 50]):
    arena(576)
    a: temporary[f32, 4] = place('arena', 0, 'made before')
    t: temporary[f32, 50] = place('scratch', 0, 'each thread its own')
    for k in sequential(0, 4):
        a[k] = add[f32](x[k, k], f32(1.0))
    for i in parallel(0, 33, grain=1):
        for j in vector(0, 50, lanes=16):
            t[j] = add[f32](x[i, j], a[2])
        for j1 in vector(0, 50, lanes=16):
            y[i, j1] = t[49 - j1]
    for k1 in sequential(0, 33):
        x[k1, 0] = y[k1, 1]
"""
    pool = ThreadPool(2)
    for address in (0, pool.address):
        assert {"chunk", "shared", "share"} <= set(check(text, address)[1])
    pool.close()
