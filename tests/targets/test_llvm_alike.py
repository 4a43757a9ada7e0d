"""What the LLVM target promises of nests that are alike: they are one function, whatever their arrays are
called and wherever these lie, the bits are those of each for itself, and what differs is not taken for it."""

from __future__ import annotations

import re

import numpy as np
import pytest

from arrayjit.ir.assign import ArrayParam
from arrayjit.ir.interp import run as interpret
from arrayjit.ir.parse import parse
from arrayjit.ir.verify import verify_kernel
from arrayjit.runtime.cpu import CpuDriver
from arrayjit.runtime.threads import ThreadPool
from arrayjit.targets import llvm_alike
from arrayjit.targets.llvm import LlvmTarget


@pytest.fixture(autouse=True)
def every_size(monkeypatch):
    """Short nests are worth a call, too."""
    monkeypatch.setattr(llvm_alike, "LENGTH", 1)


def functions(text, pool=0):
    """The kernel leaves what the interpreter does. Returns how many functions of nests there are, and how
    many calls of such."""
    kernel = parse(text)
    verify_kernel(kernel)
    tensors = [param.tensor for param in kernel.params if isinstance(param, ArrayParam)]
    generator = np.random.default_rng(5)
    arrays = [
        (9 * generator.random([extent.constant for extent in tensor.shape])).astype(tensor.dtype.numpy)
        for tensor in tensors
    ]
    wanted = [array.copy() for array in arrays]
    workspace = np.full(kernel.arena_bytes + 64, 0xFF, np.uint8)
    place = workspace.ctypes.data
    code = LlvmTarget("sync_llvm").emit(kernel)
    procedure = CpuDriver("sync_llvm").load(code)
    assert procedure.launch([array.ctypes.data for array in arrays], (), place + -place % 64, pool) == 0
    interpret(kernel, dict(zip(tensors, wanted, strict=True)), {})
    for got, expected in zip(arrays, wanted, strict=True):
        np.testing.assert_array_equal(got, expected, strict=True)
    return tuple(len(re.findall(f'(?m)^ *{word} .*@"nest', code.payload)) for word in ("define", "call"))


def nest(number, into="y", source="x", factor="f64(3.0)", bounds="0, 20", index="j"):
    """A nest with names of its own."""
    i, j = f"i{number}", f"j{number}"
    index = index.replace("j", j)
    return f"""
    for {i} in sequential(0, 10):
        for {j} in vector({bounds}, lanes=4):
            t{number}: f64 = multiply[f64]({source}[{i}, {index}], {factor})
            {into}[{i}, {j}] = add[f64]({into}[{i}, {j}], t{number})
"""


ARRAYS = (
    "def f(x: update[f64, 10, 20], y: update[f64, 10, 20], z: update[f64, 10, 20], w: update[f32, 10, 20]):"
)


def test_nests_of_other_arrays_are_one_function():
    text = ARRAYS + nest(1) + nest(2, "z", "y") + nest(3, "x", "z")
    assert functions(text) == (1, 3)


def test_an_array_in_two_places_is_not_two_arrays():
    assert functions(ARRAYS + nest(1, "y", "x") + nest(2, "y", "y")) == (0, 0)
    assert functions(ARRAYS + nest(1, "x", "x") + nest(2, "y", "y")) == (1, 2)


@pytest.mark.parametrize(
    "other",
    [
        {"factor": "f64(-3.0)"},
        {"factor": "f64(3.0000000000000004)"},
        {"factor": "z[0, 0]"},
        {"bounds": "0, 16"},
        {"bounds": "4, 20"},
        {"index": "19 - j"},
    ],
    ids=str,
)
def test_other_nests_are_not_alike(other):
    assert functions(ARRAYS + nest(1) + nest(2, **other)) == (0, 0)


def test_zeros_of_other_signs_are_not_alike():
    assert functions(ARRAYS + nest(1, factor="f64(0.0)") + nest(2, factor="f64(-0.0)")) == (0, 0)


def test_elements_of_other_types_are_not_alike():
    text = """
    for i in sequential(0, 10):
        for j in vector(0, 20, lanes=4):
            z[i, j] = x[i, j]
    for i1 in sequential(0, 10):
        for j1 in vector(0, 20, lanes=4):
            w[i1, j1] = w[9 - i1, j1]
"""
    assert functions(ARRAYS + text) == (0, 0)


def test_cells_with_neighbours_are_not_alike_those_without():
    text = """
def f(x: read[f64, 20, 2], y: read[f64, 39], z: update[f64, 20], w: update[f64, 20]):
    for j in vector(0, 20, lanes=4):
        z[j] = x[j, 0]
    for j1 in vector(0, 20, lanes=4):
        w[j1] = y[2*j1]
"""
    assert functions(text) == (0, 0)


def test_shapes_are_alike_if_cells_lie_alike():
    text = """
def f(x: update[f64, 10, 20], y: update[f64, 2, 5, 20], z: update[f64, 10, 21]):
    for i in sequential(0, 5):
        for j in vector(0, 20, lanes=4):
            x[i, j] = multiply[f64](x[i, j], f64(0.5))
    for i1 in sequential(0, 5):
        for j1 in vector(0, 20, lanes=4):
            y[0, i1, j1] = multiply[f64](y[0, i1, j1], f64(0.5))
    for i2 in sequential(0, 5):
        for j2 in vector(0, 20, lanes=4):
            z[i2, j2] = multiply[f64](z[i2, j2], f64(0.5))
"""
    assert functions(text) == (1, 2)


def test_locals_and_numbers_from_outside_are_arguments():
    text = """
def f(x: update[f64, 10, 20], y: update[f64, 10, 20]):
    first: f64 = add[f64](x[0, 0], f64(1.0))
    second: f64 = add[f64](y[0, 0], f64(1.0))
    for k in sequential(0, 10):
        for j in vector(0, 20, lanes=4):
            x[k, j] = multiply[f64](add[f64](x[k, j], first), cast(index(k), f64))
        for j1 in vector(0, 20, lanes=4):
            y[k, j1] = multiply[f64](add[f64](y[k, j1], second), cast(index(k), f64))
"""
    assert functions(text) == (1, 2)


def test_a_local_that_is_a_number_stays_one():
    text = """
def f(x: update[f64, 10, 20], y: update[f64, 10, 20]):
    half: f64 = f64(0.5)
    for j in vector(0, 20, lanes=4):
        x[0, j] = multiply[f64](x[0, j], half)
    for j1 in vector(0, 20, lanes=4):
        y[0, j1] = multiply[f64](y[0, j1], half)
"""
    assert functions(text) == (0, 0)


def test_what_changes_a_local_or_raises_is_no_function():
    text = """
def f(x: update[f64, 10, 20], y: update[f64, 10, 20]):
    total: f64 = f64(0.0)
    for i in sequential(0, 10):
        total = reduce(add, total, x[i, 0])
    for i1 in sequential(0, 10):
        total = reduce(add, total, y[i1, 0])
    for k in sequential(0, 10):
        raise_(less[bool](x[k, 0], f64(-1.0)), 'ValueError', 'negative')
    for k1 in sequential(0, 10):
        raise_(less[bool](y[k1, 0], f64(-1.0)), 'ValueError', 'negative')
    x[0, 0] = total
"""
    assert functions(text) == (0, 0)


TEMPORARIES = """
def f(x: update[f64, 10, 20], y: update[f64, 10, 20]):
    arena({size})
    a: temporary[f64, 10, 20] = place('{kind}', 0, 'made before')
    b: temporary[f64, 10, 20] = place('{kind}', {second}, 'made before')
    for i in sequential(0, 10):
        for j in vector(0, 20, lanes=4):
            a[i, j] = multiply[f64](x[i, j], f64(0.5))
    for i1 in sequential(0, 10):
        for j1 in vector(0, 20, lanes=4):
            x[9 - i1, j1] = add[f64](a[i1, j1], f64(1.0))
    for i2 in sequential(0, 10):
        for j2 in vector(0, 20, lanes=4):
            b[i2, j2] = multiply[f64](y[i2, j2], f64(0.5))
    for i3 in sequential(0, 10):
        for j3 in vector(0, 20, lanes=4):
            y[9 - i3, j3] = add[f64](b[i3, j3], f64(1.0))
"""


@pytest.mark.parametrize(
    ("kind", "second", "found"),
    [("arena", 0, (2, 4)), ("arena", 1600, (2, 4)), ("stack", 0, (2, 4)), ("scratch", 0, (2, 4))],
)
def test_temporaries_are_arguments_wherever_they_are(kind, second, found):
    assert functions(TEMPORARIES.format(kind=kind, second=second, size=3200)) == found


def test_what_threads_have_to_themselves_is_alike_in_one_place_only():
    assert functions(TEMPORARIES.format(kind="scratch", second=1600, size=3200)) == (0, 0)


def test_temporaries_that_share_memory_are_not_told_apart_by_pointers():
    both = """
    for i{n} in sequential(0, 20):
        for k{n} in sequential(0, 2):
            a[0] = {x}[0, i{n}]
            {x}[1, i{n}] = a[0]
            b[0] = {x}[2, i{n}]
            {x}[3, i{n}] = b[0]
"""
    text = """
def f(x: update[f64, 10, 20], y: update[f64, 10, 20]):
    arena(128)
    a: temporary[f64, 8] = place('arena', 0, 'made before')
    b: temporary[f64, 8] = place('arena', {at}, 'made before')
"""
    bodies = "".join(both.format(n=n, x=x) for n, x in enumerate("xy"))
    assert functions(text.format(at=64) + bodies) == (1, 2)
    assert functions(text.format(at=0) + bodies) == (0, 0)


def test_a_nest_in_a_nest_is_called_from_its_function():
    inner = """
        for j{n} in vector(0, 20, lanes=4):
            {x}[{k}, j{n}] = sqrt[f64]({x}[{k}, j{n}])
"""
    outer = "".join(
        f"\n    for k{n} in sequential(0, 10):" + inner.format(n=n, x=x, k=f"k{n}")
        for n, x in enumerate("xyz")
    )
    assert functions(ARRAYS + outer) == (1, 3)


def test_threads_share_loops_of_nests():
    text = """
def f(x: update[f32, 33, 50], y: update[f32, 33, 50]):
    arena(512)
    t: temporary[f32, 50] = place('scratch', 0, 'each thread its own')
"""
    for n, (one, other) in enumerate((("x", "y"), ("y", "x"))):
        text += f"""
    for i{n} in parallel(0, 33, grain=1):
        for j{n} in vector(0, 50, lanes=16):
            t[j{n}] = add[f32]({one}[i{n}, j{n}], f32(1.0))
        for k{n} in vector(0, 50, lanes=16):
            {other}[i{n}, k{n}] = t[49 - k{n}]
"""
    pool = ThreadPool(2)
    for address in (0, pool.address):
        assert functions(text, address) == (1, 2)
    pool.close()


@pytest.mark.parametrize(("grain", "found"), [(", grain=4", (1, 2)), ("", (0, 0))])
def test_what_threads_share_is_worth_a_call_however_short(monkeypatch, grain, found):
    monkeypatch.setattr(llvm_alike, "LENGTH", 60)
    text = "def f(x: update[f32, 64], y: update[f32, 64]):"
    for n, (one, other) in enumerate((("x", "y"), ("y", "x"))):
        text += f"""
    for i{n} in vector(0, 64, lanes=4{grain}):
        {other}[i{n}] = add[f32]({one}[i{n}], f32(1.0))
"""
    pool = ThreadPool(2)
    for address in (0, pool.address):
        assert functions(text, address) == found
    pool.close()


def test_what_runs_often_is_called_by_no_one():
    text = """
    for i in parallel(0, 10):
        for j in vector(0, 20, lanes=4):
            x[i, j] = sqrt[f64](x[i, j])
        for j1 in vector(0, 20, lanes=4):
            y[i, j1] = sqrt[f64](y[i, j1])
"""
    assert functions(ARRAYS + text) == (0, 0)
